// Claim: a session serves the runs that wait for their turn in the order in which they came,
// whether a thread waits with them or not, and a run takes memory only when it has its turn. What
// waits is bounded, memory that is kept for later can be released, and neither a callback that
// blocks nor a run state that must be made holds up another's run.
#include <algorithm>
#include <future>
#include <mutex>
#include <thread>

#include "runtime/cpu/cpu_device.h"
#include "runtime/device/strand_runner.h"
#include "tests/runtime/testing/ways.h"

namespace eddy {
namespace {

using testing::WaysTest;

// Notes the threads that make what a run state is made of.
class NotingDevice : public CpuDevice {
 public:
  NotingDevice() : CpuDevice({.num_threads = 2}) {}

  Result<std::unique_ptr<Stream>> create_stream() override {
    note();
    return CpuDevice::create_stream();
  }
  std::unique_ptr<StrandRunner> create_runner_or_null(const StrandCode& code,
                                                      const Bindings& bindings) override {
    note();
    return CpuDevice::create_runner_or_null(code, bindings);
  }
  std::vector<std::thread::id> take_makers() {
    std::lock_guard lock(mutex_);
    return std::exchange(makers_, {});
  }

 private:
  void note() {
    std::lock_guard lock(mutex_);
    makers_.push_back(std::this_thread::get_id());
  }

  std::mutex mutex_;
  std::vector<std::thread::id> makers_;  // under the mutex
};

class TurnsTest : public WaysTest {
 protected:
  // A session in which few runs at a time note their number, and the run of number 0 waits for go_.
  std::unique_ptr<Session> make_noting(int64_t num_elements) {
    SessionOptions one = options();
    one.max_runs_in_flight = 1;
    return make_noting(num_elements, one);
  }
  std::unique_ptr<Session> make_noting(int64_t num_elements, const SessionOptions& few) {
    const Status status = library_.add_host_function(
        "note", [this](std::span<const TensorView> inputs) -> Result<int64_t> {
          const int64_t number = *inputs[0].as<int64_t>();
          if (number == 0) go_.get_future().wait();
          std::lock_guard lock(mutex_);
          order_.push_back(number);
          return 1;
        });
    EXPECT_TRUE(status.is_ok());
    GraphBuilder b(library_.ops());
    const Value number = b.input("number", tensor_type(ElementType::kInt64, {}));
    b.output("noted",
             b.op("HostPredicate", {number}, {{"name", std::string("note")}}, {.domain = "eddy"}));
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {num_elements}));
    b.output("y", b.op("ReduceSum", {b.op("Exp", {b.op("Tanh", {x})})}));
    auto session = Session::create(library_, std::move(*b.finish()), few);
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    return std::move(*session);
  }
  static NamedTensors inputs(int64_t number, const Tensor& x) {
    return {{"number", Tensor::scalar<int64_t>(number)}, {"x", x}};
  }
  static void await_waiting(const Session& session, int count) {
    const std::string text = ", " + std::to_string(count) + " waiting";
    while (session.describe_runs().find(text) == std::string::npos) std::this_thread::yield();
  }

  std::promise<void> go_;
  std::mutex mutex_;
  std::vector<int64_t> order_;  // under the mutex
};

TEST_P(TurnsTest, RunsAreServedInTheOrderOfComingHoweverTheyWait) {
  auto session = make_noting(4);
  const Tensor x = Tensor::zeros(ElementType::kFloat, {4});
  RunHandle first = session->run_async(inputs(0, x), {});
  std::vector<RunHandle> handles;
  std::vector<std::thread> threads;
  for (int k = 1; k <= 8; ++k) {
    if (k % 3 == 1) {
      handles.push_back(session->run_async(inputs(k, x), {}));
    } else {
      threads.emplace_back([&, k] { EXPECT_TRUE(session->run(inputs(k, x)).is_ok()); });
    }
    await_waiting(*session, k);
  }
  // One that leaves the queue leaves the order of the others.
  handles[1].cancel();
  await_waiting(*session, 7);
  go_.set_value();
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < handles.size(); ++i) EXPECT_EQ(handles[i].wait().is_ok(), i != 1);
  std::lock_guard lock(mutex_);
  EXPECT_EQ(order_, (std::vector<int64_t>{0, 1, 2, 3, 5, 6, 7, 8}));
}

TEST_P(TurnsTest, AThreadThatWaitsGivesUpAtItsDeadlineAndWhenAllAreCancelled) {
  auto session = make_noting(4);
  const Tensor x = Tensor::zeros(ElementType::kFloat, {4});
  RunHandle first = session->run_async(inputs(0, x), {});
  const auto late = session->run(inputs(1, x), {.timeout = std::chrono::milliseconds(3)});
  EXPECT_EQ(late.status().message(), "the run passed its deadline while it waited for its turn");
  std::thread waits([&] {
    EXPECT_EQ(session->run(inputs(2, x)).status().message(),
              "the run was cancelled while it waited for its turn");
  });
  await_waiting(*session, 1);
  session->cancel_all();
  waits.join();
  go_.set_value();
  EXPECT_EQ(first.wait().code(), StatusCode::kCancelled);
  EXPECT_TRUE(session->run(inputs(3, x)).is_ok());
}

TEST_P(TurnsTest, AThousandRunsThatWaitTakeNoMemory) {
  constexpr int64_t kElements = 100'000;
  auto session = make_noting(kElements);
  const Tensor x = Tensor::zeros(ElementType::kFloat, {kElements});
  ASSERT_TRUE(session->run(inputs(1, x)).is_ok());
  constexpr size_t kOutputBytes = 1024;  // of one run may still be with its caller
  const size_t one_run_bytes = session->memory().peak_bytes + kOutputBytes;
  std::vector<RunHandle> handles;
  for (int k = 0; k < 1000; ++k) handles.push_back(session->run_async(inputs(k, x), {}));
  EXPECT_LE(session->memory().used_bytes, one_run_bytes);
  go_.set_value();
  for (RunHandle& handle : handles) EXPECT_TRUE(handle.wait().is_ok());
  EXPECT_LE(session->memory().peak_bytes, one_run_bytes);
}

TEST_P(TurnsTest, ThePoolKeepsNoMoreStatesThanRunsMayBeInFlight) {
  constexpr int64_t kElements = 100'000;
  auto session = make_noting(kElements);
  const Tensor x = Tensor::zeros(ElementType::kFloat, {kElements});
  ASSERT_TRUE(session->run(inputs(1, x)).is_ok());
  const size_t one_run_bytes = session->memory().used_bytes;
  const int64_t number = 1;
  {
    std::vector<std::unique_ptr<Call>> calls;
    for (int k = 0; k < 5; ++k) {
      calls.push_back(std::move(*session->prepare()));
      ASSERT_TRUE(
          calls.back()
              ->bind_input(0, {const_cast<int64_t*>(&number), nullptr, 0, ElementType::kInt64})
              .is_ok());
      ASSERT_TRUE(calls.back()->bind_input(1, x).is_ok());
      ASSERT_TRUE(calls.back()->run().is_ok());
    }
    EXPECT_GE(session->memory().used_bytes, 2 * one_run_bytes);
  }
  EXPECT_LE(session->memory().used_bytes, one_run_bytes);
}

TEST_P(TurnsTest, ACallbackThatBlocksHoldsUpNoRun) {
  SessionOptions two = options();
  two.max_runs_in_flight = 2;
  auto session = make_noting(4, two);
  const Tensor x = Tensor::zeros(ElementType::kFloat, {4});
  std::promise<void> may_return;
  std::vector<RunHandle> handles;
  handles.push_back(session->run_async(
      inputs(1, x), [&](Result<NamedTensors>) { may_return.get_future().wait(); }));
  for (int k = 2; k < 7; ++k) handles.push_back(session->run_async(inputs(k, x), {}));
  EXPECT_TRUE(session->run(inputs(7, x)).is_ok());
  await_waiting(*session, 0);
  while (!session->describe_runs().starts_with("0 run")) std::this_thread::yield();
  EXPECT_FALSE(handles[0].is_done());
  may_return.set_value();
  for (RunHandle& handle : handles) EXPECT_TRUE(handle.wait().is_ok());
}

TEST_P(TurnsTest, AStateThatMustBeMadeIsNotMadeInsideAnothersRun) {
  const auto device = std::make_shared<NotingDevice>();
  SessionOptions one = options();
  one.max_runs_in_flight = 1;
  one.make_device = [&]() -> Result<std::shared_ptr<Device>> {
    return std::shared_ptr<Device>(device);
  };
  auto session = make_noting(4, one);
  const Tensor x = Tensor::zeros(ElementType::kFloat, {4});
  auto call = std::move(*session->prepare());  // which keeps its state
  const int64_t number = 0;
  ASSERT_TRUE(call->bind_input(0, {const_cast<int64_t*>(&number), nullptr, 0, ElementType::kInt64})
                  .is_ok());
  ASSERT_TRUE(call->bind_input(1, x).is_ok());
  std::thread runs([&] { EXPECT_TRUE(call->run().is_ok()); });
  const std::thread::id runner = runs.get_id();
  while (!session->describe_runs().starts_with("1 run")) std::this_thread::yield();
  (void)device->take_makers();
  RunHandle waits = session->run_async(inputs(1, x), {});
  await_waiting(*session, 1);
  go_.set_value();
  EXPECT_TRUE(waits.wait().is_ok());
  runs.join();
  const auto makers = device->take_makers();
  EXPECT_FALSE(makers.empty());
  EXPECT_EQ(std::ranges::count(makers, runner), 0);
}

TEST_P(TurnsTest, WhatWaitsIsBounded) {
  SessionOptions few = options();
  few.max_runs_in_flight = 1;
  few.max_runs_waiting = 3;
  auto session = make_noting(4, few);
  const Tensor x = Tensor::zeros(ElementType::kFloat, {4});
  auto stream = std::move(*session->create_stream());
  std::vector<RunHandle> handles;
  handles.push_back(session->run_on(*stream, inputs(0, x), {}));
  while (!session->describe_runs().starts_with("1 run")) std::this_thread::yield();
  handles.push_back(session->run_on(*stream, inputs(1, x), {}));  // behind the first
  for (int k = 2; k < 4; ++k) handles.push_back(session->run_async(inputs(k, x), {}));
  const std::string why =
      "3 runs wait already, as many as max_runs_waiting allows; wait for some of them first, or "
      "raise it";
  std::vector<Status> refused;
  refused.push_back(session->run_async(inputs(4, x), {}).wait());
  refused.push_back(session->run_on(*stream, inputs(5, x), {}).wait());
  refused.push_back(session->run(inputs(6, x)).status());
  for (const Status& status : refused) {
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
    EXPECT_EQ(status.message(), why);
  }
  go_.set_value();
  for (RunHandle& handle : handles) EXPECT_TRUE(handle.wait().is_ok());
  EXPECT_TRUE(session->run(inputs(7, x)).is_ok());

  // A run with outputs for a callback that does not come.
  std::promise<void> is_called, may_return;
  handles.clear();
  handles.push_back(session->run_async(inputs(8, x), [&](Result<NamedTensors>) {
    is_called.set_value();
    may_return.get_future().wait();
  }));
  is_called.get_future().wait();
  for (int k = 9; k < 11; ++k) {
    handles.push_back(session->run_async(inputs(k, x), {}));
    while (!session->describe_runs().starts_with("0 run")) std::this_thread::yield();
    // Its turn comes when that run has left, and waits for its callback.
    EXPECT_TRUE(session->run(inputs(20 + k, x)).is_ok());
  }
  EXPECT_EQ(session->run_async(inputs(11, x), {}).wait().message(), why);
  EXPECT_TRUE(session->run(inputs(12, x)).is_ok());
  may_return.set_value();
  for (RunHandle& handle : handles) EXPECT_TRUE(handle.wait().is_ok());
}

TEST_P(TurnsTest, WhatIsKeptForRunsToComeCanBeGivenBack) {
  constexpr int64_t kElements = 100'000;
  SessionOptions many = options();
  many.max_runs_in_flight = 4;
  auto session = make_noting(kElements, many);
  const Tensor x = Tensor::zeros(ElementType::kFloat, {kElements});
  std::vector<RunHandle> handles;
  for (int k = 1; k < 9; ++k) handles.push_back(session->run_async(inputs(k, x), {}));
  for (RunHandle& handle : handles) ASSERT_TRUE(handle.wait().is_ok());
  EXPECT_GT(session->memory().used_bytes + session->memory().cached_bytes,
            kElements * sizeof(float));
  session->trim();
  EXPECT_EQ(session->memory().used_bytes, 0u);
  EXPECT_EQ(session->memory().cached_bytes, 0u);
  EXPECT_TRUE(session->run(inputs(9, x)).is_ok());
}

EDDY_IN_ALL_WAYS(TurnsTest);

}  // namespace
}  // namespace eddy
