// Claim: each task runs once, those of one worker in the order given, whoever enqueues and whether
// workers run, linger or sleep then; and a pool goes at any moment after its last task.
#include "runtime/cpu/worker_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "graph/base/processor.h"
#include "graph/base/random.h"

namespace eddy {
namespace {

using std::chrono::microseconds;

// Calls the function once, and goes with that.
void enqueue(WorkerPool& pool, std::function<void()> function) {
  const auto run = [](void* context) {
    const std::unique_ptr<std::function<void()>> own(static_cast<std::function<void()>*>(context));
    (*own)();
  };
  pool.enqueue(run, new std::function<void()>(std::move(function)));
}

void assist(WorkerPool& pool, std::function<void()> function) {
  const auto run = [](void* context) {
    const std::unique_ptr<std::function<void()>> own(static_cast<std::function<void()>*>(context));
    (*own)();
  };
  pool.assist(run, new std::function<void()>(std::move(function)));
}

TEST(WorkerPool, OneWorkerStartsTasksInTheOrderGiven) {
  std::vector<int> order;
  {
    WorkerPool pool(1);
    for (int i = 0; i < 1000; ++i) enqueue(pool, [&order, i] { order.push_back(i); });
  }
  ASSERT_EQ(order.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(WorkerPool, HelpersStartWhenNoTaskWaits) {
  std::vector<std::string> order;
  std::atomic<bool> has_begun{false};
  std::atomic<bool> may_end{false};
  {
    WorkerPool pool(1);
    enqueue(pool, [&] {
      has_begun = true;
      while (!may_end) std::this_thread::yield();
    });
    while (!has_begun) std::this_thread::yield();
    assist(pool, [&] { order.push_back("helper 1"); });
    assist(pool, [&] { order.push_back("helper 2"); });
    EXPECT_FALSE(pool.has_waiting()) << "nobody gives way to helpers";
    enqueue(pool, [&] { order.push_back("task"); });
    may_end = true;
  }
  EXPECT_EQ(order, (std::vector<std::string>{"task", "helper 1", "helper 2"}));
}

// Where no processor is free, none is woken for them.
TEST(WorkerPool, HelpersOfSleepingWorkersRunOnceEachBeforeThePoolGoes) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> num_run{0};
    {
      WorkerPool pool(2);
      enqueue(pool, [] {});
      std::this_thread::sleep_for(microseconds(round % 2 == 0 ? 1000 : 150));
      for (int i = 0; i < 3; ++i) assist(pool, [&] { ++num_run; });
    }
    EXPECT_EQ(num_run, 3);
  }
}

// Each task enqueues two until `depth` is 0.
void spread(WorkerPool& pool, std::atomic<int>& count, int depth) {
  ++count;
  for (int i = 0; depth > 0 && i < 2; ++i) {
    enqueue(pool, [&pool, &count, depth] { spread(pool, count, depth - 1); });
  }
}

TEST(WorkerPool, TasksOfManyThreadsAndOfTasksRunOnceEach) {
  for (const int num_threads : {1, 2, 3, 8}) {
    std::atomic<int> count{0};
    {
      WorkerPool pool(num_threads);
      std::vector<std::jthread> callers;
      for (int c = 0; c < 4; ++c) {
        callers.emplace_back([&] {
          for (int i = 0; i < 50; ++i) enqueue(pool, [&] { spread(pool, count, 4); });
        });
      }
    }
    EXPECT_EQ(count, 4 * 50 * 31) << num_threads << " threads";
  }
}

// A wake-up that is lost would leave its task, and this test, waiting for ever.
TEST(WorkerPool, NoWakeUpIsLostAroundTheMomentWhenWorkersGoToSleep) {
  constexpr uint64_t kSeed = 20261128;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  WorkerPool pool(3);
  for (int round = 0; round < 600; ++round) {
    const int num_tasks = 1 + static_cast<int>(random.below(4));
    std::latch ended(num_tasks);
    for (int i = 0; i < num_tasks; ++i) {
      if (random.below(3) == 0) assist(pool, [] {});
      enqueue(pool, [&] { ended.count_down(); });
    }
    ended.wait();
    // Workers linger for some 150 µs.
    const microseconds pause(random.below(400));
    if (round % 2 == 0) std::this_thread::sleep_for(pause);
    const auto until = std::chrono::steady_clock::now() + pause;
    while (round % 2 == 1 && std::chrono::steady_clock::now() < until) cpu_relax();
  }
  EXPECT_FALSE(pool.has_waiting());
}

TEST(WorkerPool, ItGoesAtOnceAfterItsLastTaskHasSaidThatItEnds) {
  for (int round = 0; round < 300; ++round) {
    std::atomic<bool> has_ended{false};
    auto pool = std::make_unique<WorkerPool>(2);
    enqueue(*pool, [] {});
    enqueue(*pool, [&] { has_ended = true; });
    while (!has_ended) cpu_relax();
    pool.reset();
  }
}

TEST(WorkerPool, ItsWorkersRunBesideEachOther) {
  WorkerPool pool(4);
  std::latch all_are_there(4);
  std::latch ended(4);
  for (int i = 0; i < 4; ++i) {
    enqueue(pool, [&] {
      all_are_there.arrive_and_wait();
      ended.count_down();
    });
  }
  ended.wait();
}

TEST(WorkerPool, ItSaysHowManyHaveNothingToDoAndWhetherTasksWait) {
  WorkerPool pool(2);
  EXPECT_EQ(pool.num_idle(), 2);
  std::atomic<bool> may_end{false};
  std::atomic<int> num_running{0};
  for (int i = 0; i < 3; ++i) {
    enqueue(pool, [&] {
      ++num_running;
      while (!may_end) std::this_thread::sleep_for(microseconds(50));
    });
  }
  while (num_running < 2) std::this_thread::sleep_for(microseconds(50));
  EXPECT_EQ(pool.num_idle(), -1);
  EXPECT_TRUE(pool.has_waiting());
  may_end = true;
  while (pool.num_idle() < 2) std::this_thread::sleep_for(microseconds(50));
  EXPECT_FALSE(pool.has_waiting());
}

// Of one that looks for what another thread does: it gives way to tasks, and to helpers.
TEST(WorkerPool, AWorkerThatOnlyLooksCountsAsIdleUntilThereIsWork) {
  WorkerPool pool(1);
  std::atomic<bool> looks{false};
  std::atomic<bool> has_helped{false};
  enqueue(pool, [&] {
    const WorkerPool::Looking looking(pool);
    looks = true;
    while (!pool.has_work()) cpu_relax();
    EXPECT_FALSE(has_helped) << "the helper waits for this worker";
  });
  while (!looks) std::this_thread::sleep_for(microseconds(50));
  EXPECT_EQ(pool.num_idle(), 1);
  EXPECT_FALSE(pool.has_work());
  assist(pool, [&] { has_helped = true; });
  EXPECT_FALSE(pool.has_waiting()) << "helpers are no tasks";
  while (!has_helped) std::this_thread::sleep_for(microseconds(50));
  while (pool.num_idle() < 1) std::this_thread::sleep_for(microseconds(50));
  EXPECT_FALSE(pool.has_work());
}

}  // namespace
}  // namespace eddy
