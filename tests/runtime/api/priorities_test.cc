// Claim: where runs wait for their turn or for a worker, those of higher priority go first, and
// those of one priority in the order of coming.
// And: a thread that waits for a run does not wait for a worker or the callback thread to do what
// it can do itself.
#include <algorithm>
#include <future>
#include <mutex>
#include <thread>

#include "tests/runtime/testing/ways.h"

namespace eddy {
namespace {

using testing::WaysTest;

class PrioritiesTest : public WaysTest {
 protected:
  PrioritiesTest() {
    const Status status = library_.add_host_function(
        "note", [this](std::span<const TensorView> inputs) -> Result<int64_t> {
          const int64_t number = *inputs[0].as<int64_t>();
          {
            const std::lock_guard lock(mutex_);
            order_.push_back(number);
            threads_.push_back(std::this_thread::get_id());
          }
          if (number < 0) go_.wait();
          return 1;
        });
    EXPECT_TRUE(status.is_ok());
  }
  // Runs note their number; those of a number below 0 wait for go_.
  std::unique_ptr<Session> make_noting(const SessionOptions& options) {
    GraphBuilder b(library_.ops());
    const Value number = b.input("number", tensor_type(ElementType::kInt64, {}));
    b.output("noted",
             b.op("HostPredicate", {number}, {{"name", std::string("note")}}, {.domain = "eddy"}));
    auto session = Session::create(library_, std::move(*b.finish()), options);
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    return std::move(*session);
  }
  static NamedTensors inputs(int64_t number) {
    return {{"number", Tensor::scalar<int64_t>(number)}};
  }
  std::vector<int64_t> noted() {
    const std::lock_guard lock(mutex_);
    return order_;
  }
  void await_noted(size_t count) {
    while (noted().size() < count) std::this_thread::yield();
  }
  static bool runs_on_workers() { return GetParam().loops == Loops::kDevice; }

  std::promise<void> may_go_;
  std::shared_future<void> go_{may_go_.get_future()};
  std::mutex mutex_;
  std::vector<int64_t> order_;            // under the mutex
  std::vector<std::thread::id> threads_;  // under the mutex
};

// Numbers 0 to 5, of priorities low, normal, high, low, normal, high.
constexpr Priority kPriorities[] = {Priority::kLow, Priority::kNormal, Priority::kHigh};
const std::vector<int64_t> kByPriority = {2, 5, 1, 4, 0, 3};

TEST_P(PrioritiesTest, RunsThatWaitForTheirTurnGoByPriority) {
  SessionOptions one = options();
  one.max_runs_in_flight = 1;
  auto session = make_noting(one);
  RunHandle first = session->run_async(inputs(-1), {});
  await_noted(1);
  std::vector<RunHandle> handles;
  for (int64_t k = 0; k < 6; ++k) {
    handles.push_back(session->run_async(inputs(k), {}, {.priority = kPriorities[k % 3]}));
  }
  may_go_.set_value();
  while (!std::ranges::all_of(handles, &RunHandle::is_done)) std::this_thread::yield();
  for (RunHandle& handle : handles) EXPECT_TRUE(handle.wait().is_ok());
  std::vector<int64_t> expected = {-1};
  expected.insert(expected.end(), kByPriority.begin(), kByPriority.end());
  EXPECT_EQ(noted(), expected);
}

TEST_P(PrioritiesTest, RunsThatWaitForAWorkerGoByPriority) {
  if (!runs_on_workers()) GTEST_SKIP() << "loops of the host start on the scheduler's thread";
  SessionOptions one = options();
  one.num_threads = 1;
  auto session = make_noting(one);
  RunHandle first = session->run_async(inputs(-1), {});
  await_noted(1);
  std::vector<RunHandle> handles;
  for (int64_t k = 0; k < 6; ++k) {
    handles.push_back(session->run_async(inputs(k), {}, {.priority = kPriorities[k % 3]}));
  }
  EXPECT_NE(session->describe_runs().find("waits for a worker"), std::string::npos)
      << session->describe_runs();
  may_go_.set_value();
  while (!std::ranges::all_of(handles, &RunHandle::is_done)) std::this_thread::yield();
  std::vector<int64_t> expected = {-1};
  expected.insert(expected.end(), kByPriority.begin(), kByPriority.end());
  EXPECT_EQ(noted(), expected);
}

// Without the waiting threads' help none of these would end before go_.
TEST_P(PrioritiesTest, AThreadThatWaitsRunsWhatNoWorkerHasBegun) {
  if (!runs_on_workers()) GTEST_SKIP() << "loops of the host start on the scheduler's thread";
  SessionOptions one = options();
  one.num_threads = 1;
  auto session = make_noting(one);
  RunHandle blocker = session->run_async(inputs(-1), {});
  await_noted(1);
  for (int64_t k = 1; k <= 3; ++k) {
    std::thread::id called_on;
    RunHandle handle = session->run_async(inputs(k), [&](const Result<NamedTensors>& outputs) {
      EXPECT_TRUE(outputs.is_ok());
      called_on = std::this_thread::get_id();
    });
    EXPECT_FALSE(handle.is_done());
    EXPECT_TRUE(handle.wait().is_ok());
    EXPECT_TRUE(handle.is_done());
    EXPECT_EQ(called_on, std::this_thread::get_id());
  }
  const int64_t number = 4;
  auto call = std::move(*session->prepare());
  const TensorView view = {const_cast<int64_t*>(&number), nullptr, 0, ElementType::kInt64};
  ASSERT_TRUE(call->bind_input(0, view).is_ok());
  std::promise<void> called;
  for (int k = 0; k < 2; ++k) {
    ASSERT_TRUE(call->submit({}, [&](const Status&) { called.set_value(); }).is_ok());
    EXPECT_TRUE(call->wait().is_ok());
    called.get_future().wait();  // a Call's wait() calls nothing back: the callback thread does
    called = {};
  }
  EXPECT_EQ(noted(), (std::vector<int64_t>{-1, 1, 2, 3, 4, 4}));
  EXPECT_TRUE(std::all_of(threads_.begin() + 1, threads_.end(),
                          [](std::thread::id id) { return id == std::this_thread::get_id(); }));
  EXPECT_FALSE(blocker.is_done());
  may_go_.set_value();
  EXPECT_TRUE(blocker.wait().is_ok());
}

TEST_P(PrioritiesTest, ARunThatWaitsForAWorkerIsStopped) {
  if (!runs_on_workers()) GTEST_SKIP() << "loops of the host start on the scheduler's thread";
  SessionOptions one = options();
  one.num_threads = 1;
  auto session = make_noting(one);
  RunHandle blocker = session->run_async(inputs(-1), {});
  await_noted(1);
  RunHandle by_handle = session->run_async(inputs(1), {});
  RunHandle by_session = session->run_async(inputs(2), {});
  by_handle.cancel();
  EXPECT_EQ(by_handle.wait().code(), StatusCode::kCancelled);
  session->cancel_all();
  EXPECT_EQ(by_session.wait().code(), StatusCode::kCancelled);
  may_go_.set_value();
  EXPECT_EQ(blocker.wait().code(), StatusCode::kCancelled);
  EXPECT_EQ(noted(), (std::vector<int64_t>{-1}));
  EXPECT_TRUE(session->run(inputs(3)).is_ok());
}

// Its thread, and all it needs, belong to the session, of which the callback holds the last
// reference; what waits for the handle calls it back, or the callback thread does.
TEST_P(PrioritiesTest, ASessionMayGoInACallbackOnWhateverThread) {
  for (int round = 0; round < 200; ++round) {
    std::shared_ptr<Session> session = make_noting(options());
    Session* const plain = session.get();
    RunHandle handle = plain->run_async(
        inputs(round), [own = std::move(session)](const Result<NamedTensors>& outputs) mutable {
          EXPECT_TRUE(outputs.is_ok());
          own = nullptr;
        });
    EXPECT_TRUE(handle.wait().is_ok());
  }
}

// Waiting threads, workers and the callback thread race for the same runs.
TEST_P(PrioritiesTest, EachRunRunsOnceAndIsCalledBackOnceWhileManyWait) {
  constexpr int kClients = 4, kRuns = 300;
  auto session = make_noting(options());
  std::atomic<int> num_callbacks{0};
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] {
      for (int k = 0; k < kRuns; ++k) {
        const RunOptions how = {.priority = kPriorities[static_cast<size_t>(k % 3)]};
        RunHandle handle = session->run_async(
            inputs(client * kRuns + k), [&](const Result<NamedTensors>&) { ++num_callbacks; }, how);
        if (k % 5 == 0) continue;  // its handle goes
        EXPECT_TRUE(handle.wait().is_ok());
      }
    });
  }
  for (std::thread& client : clients) client.join();
  session = nullptr;
  EXPECT_EQ(num_callbacks, kClients * kRuns);
  std::vector<int64_t> all = noted();
  std::ranges::sort(all);
  ASSERT_EQ(all.size(), static_cast<size_t>(kClients * kRuns));
  for (int64_t k = 0; k < std::ssize(all); ++k) EXPECT_EQ(all[static_cast<size_t>(k)], k);
}

EDDY_IN_ALL_WAYS(PrioritiesTest);

}  // namespace
}  // namespace eddy
