// Claim: each callback that is posted is called once, whoever calls it, one at a time and in order;
// one that no waiter calls is called by the queue's thread, also where that naps.
#include "runtime/api/callback_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "graph/base/random.h"

namespace eddy {
namespace {

constexpr CallbackWake kWakes[] = {CallbackWake::kUnlessNapping, CallbackWake::kYes};

class CallbackQueueTest : public testing::Test {
 protected:
  CallbackQueue& queue() { return *thread_.queue(); }
  // Posts one, which this thread then calls unless the other one has come first.
  void post_and_help() {
    EndSignal end;
    end.clear();
    queue().post([&end] { end.set(); }, CallbackWake::kUnlessNapping);
    queue().help(end);
    end.wait({});
  }

  CallbackThread thread_;
};

TEST_F(CallbackQueueTest, OneThatNoWaiterCallsIsCalledAlsoInANap) {
  for (int round = 0; round < 200; ++round) {
    // The thread naps after these, or sleeps, or is about to.
    for (int i = 0; i < round % 5; ++i) post_and_help();
    if (round % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(10 * round));
    std::promise<std::thread::id> called;
    queue().post([&called] { called.set_value(std::this_thread::get_id()); }, kWakes[round % 2]);
    EXPECT_NE(called.get_future().get(), std::this_thread::get_id());
  }
}

TEST_F(CallbackQueueTest, AWaiterCallsItsOwnUnderItsOwnThread) {
  // The thread is kept busy, so that it cannot come first; what it does ends before the wait.
  std::promise<void> go_on, is_here;
  EndSignal end;
  end.clear();
  std::thread::id caller;
  const auto note_caller = [&] {
    caller = std::this_thread::get_id();
    end.set();
  };
  queue().post(
      [&] {
        is_here.set_value();
        go_on.get_future().wait();
      },
      CallbackWake::kYes);
  is_here.get_future().wait();
  queue().post(note_caller, CallbackWake::kNo);
  queue().help(end);
  EXPECT_FALSE(end.is_set()) << "two callbacks ran at once";
  go_on.set_value();
  end.wait({});
  EXPECT_NE(caller, std::this_thread::get_id()) << "the thread goes on with what is queued";
  // With the thread asleep it is the waiter's: nothing wakes that one.
  queue().drain();
  end.clear();
  queue().post(note_caller, CallbackWake::kNo);
  queue().help(end);
  EXPECT_TRUE(end.is_set());
  EXPECT_EQ(caller, std::this_thread::get_id());
}

TEST_F(CallbackQueueTest, AllAreCalledOnceAndInOrderWhoeverHelps) {
  constexpr uint64_t kSeed = 7;
  constexpr int kClients = 4, kEach = 3000;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::atomic<int> num_inside{0};
  std::atomic<bool> has_met{false};
  int num_called = 0;  // under the queue's order
  std::vector<int> next(kClients, 0);
  bool in_order = true;
  std::vector<std::thread> clients;
  for (int c = 0; c < kClients; ++c) {
    clients.emplace_back([&, c] {
      Random random(kSeed + static_cast<uint64_t>(c));
      for (int i = 0; i < kEach; ++i) {
        const bool waits = random.below(3) != 0;
        EndSignal end;
        end.clear();
        queue().post(
            [&, i] {
              if (num_inside.fetch_add(1) != 0) has_met = true;
              in_order = in_order && next[static_cast<size_t>(c)]++ == i;
              ++num_called;
              num_inside.fetch_sub(1);
              end.set();
            },
            kWakes[random.below(2)]);
        if (waits) queue().help(end);
        end.wait({});
      }
    });
  }
  for (std::thread& client : clients) client.join();
  queue().drain();
  EXPECT_FALSE(has_met) << "two callbacks ran at once";
  EXPECT_TRUE(in_order);
  EXPECT_EQ(num_called, kClients * kEach);
}

TEST(CallbackThreadTest, ItsEndDoesNotLoseWhatIsQueuedInANap) {
  for (int round = 0; round < 300; ++round) {
    std::atomic<int> num_called{0};
    {
      CallbackThread thread;
      EndSignal end;
      end.clear();
      thread.queue()->post([&end] { end.set(); }, CallbackWake::kUnlessNapping);
      thread.queue()->help(end);
      end.wait({});
      for (int i = 0; i < round % 3; ++i) {
        thread.queue()->post([&num_called] { ++num_called; }, CallbackWake::kUnlessNapping);
      }
    }
    EXPECT_EQ(num_called, round % 3);
  }
}

TEST_F(CallbackQueueTest, WhatAHelperLeavesIsTheThreads) {
  for (int round = 0; round < 200; ++round) {
    EndSignal first, second;
    first.clear();
    second.clear();
    std::promise<void> is_inside, go_on;
    std::thread helper([&] {
      queue().post(
          [&] {
            is_inside.set_value();
            go_on.get_future().wait();
            first.set();
          },
          CallbackWake::kNo);
      queue().help(first);
    });
    is_inside.get_future().wait();
    queue().post([&] { second.set(); }, CallbackWake::kNo);
    queue().help(second);  // another thread is inside a callback
    EXPECT_FALSE(second.is_set());
    go_on.set_value();
    const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    ASSERT_TRUE(second.wait({.deadline_or_null = &late})) << "round " << round;
    helper.join();
  }
}

}  // namespace
}  // namespace eddy
