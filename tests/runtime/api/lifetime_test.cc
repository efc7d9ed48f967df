// Claim: a session goes when nothing uses it any more and not before: a callback may hold its last
// reference, and close() and destruction wait for everything else, callbacks included.
#include <atomic>
#include <future>
#include <thread>

#include "runtime/cpu/cpu_device.h"
#include "tests/runtime/testing/ways.h"

namespace eddy {
namespace {

using std::chrono::milliseconds;
using testing::WaysTest;

const ValueType kFloat = tensor_type(ElementType::kFloat, {});

class LifetimeTest : public WaysTest {
 protected:
  // Counts to `limit`. The session alone keeps the device, by which one sees that it has gone.
  std::shared_ptr<Session> make_counter(uint32_t max_runs_in_flight = 8,
                                        std::shared_ptr<SharedThreads> threads = nullptr) {
    GraphBuilder b(library_.ops());
    build_count_to_limit(b);
    SessionOptions given = options();
    given.max_runs_in_flight = max_runs_in_flight;
    if (threads != nullptr) given.num_threads = 0;
    given.threads = std::move(threads);
    given.make_device = [this]() -> Result<std::shared_ptr<Device>> {
      auto device = std::make_shared<CpuDevice>(CpuDeviceOptions{.num_threads = 2});
      device_ = device;
      return std::shared_ptr<Device>(std::move(device));
    };
    auto session = Session::create(library_, std::move(*b.finish()), given);
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    return std::move(*session);
  }
  bool is_gone() const { return device_.expired(); }

  std::weak_ptr<Device> device_;
};

TEST_P(LifetimeTest, ACallbackMayHoldTheLastReferenceOfItsSession) {
  for (int round = 0; round < 30; ++round) {
    std::shared_ptr<Session> session = make_counter();
    Session& called = *session;
    std::atomic<bool> has_run{false};
    RunHandle run = called.run_async(
        to(static_cast<float>(round)),
        [&has_run, owner = std::move(session)](Result<NamedTensors> o) { has_run = o.is_ok(); });
    EXPECT_TRUE(run.wait().is_ok());
    EXPECT_TRUE(has_run);
    EXPECT_TRUE(is_gone()) << "the handle is done once the session has gone";
  }
}

TEST_P(LifetimeTest, SoMayTheCallbackOfARunThatNeverStarted) {
  std::shared_ptr<Session> session = make_counter();
  Session& called = *session;
  RunHandle bad = called.run_async({}, [owner = std::move(session)](Result<NamedTensors>) {});
  EXPECT_EQ(bad.wait().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(is_gone());

  session = make_counter(1);
  Session& full = *session;
  RunHandle first = full.run_async(endless(), {});
  RunHandle second = full.run_async(to(1), [owner = std::move(session)](Result<NamedTensors>) {});
  second.cancel();
  EXPECT_EQ(second.wait().code(), StatusCode::kCancelled);
  EXPECT_FALSE(is_gone()) << "a run is in flight";
  first.cancel();
  EXPECT_EQ(first.wait().code(), StatusCode::kCancelled);
  EXPECT_TRUE(is_gone());
}

TEST_P(LifetimeTest, SoMayWhatARunHasForAnInput) {
  std::shared_ptr<Session> session = make_counter();
  Session& called = *session;
  static const float limit = 3;
  const TensorView view{const_cast<float*>(&limit), nullptr, 0, ElementType::kFloat};
  NamedTensors inputs = {{"limit", Tensor::adopt(view, std::move(session))}};
  RunHandle run = called.run_async(std::move(inputs), {});
  EXPECT_TRUE(run.wait().is_ok());
  EXPECT_TRUE(is_gone());
}

TEST_P(LifetimeTest, ASessionDestroyedInItsCallbackGoesWithItsLastRun) {
  std::shared_ptr<Session> session = make_counter(2);
  std::atomic<int> num_called{0};
  std::promise<void> is_destroyed;
  const auto count = [&](Result<NamedTensors>) { ++num_called; };
  RunHandle endless_run = session->run_async(endless(), count);
  std::vector<RunHandle> others;
  RunHandle first = session->run_async(to(1), [&](Result<NamedTensors>) {
    for (int i = 0; i < 5; ++i) others.push_back(session->run_async(to(2), count));
    session.reset();
    is_destroyed.set_value();
  });
  is_destroyed.get_future().wait();
  EXPECT_TRUE(first.wait().is_ok());
  for (RunHandle& other : others) EXPECT_TRUE(other.wait().is_ok());
  EXPECT_FALSE(is_gone());
  endless_run.cancel();
  EXPECT_EQ(endless_run.wait().code(), StatusCode::kCancelled);
  EXPECT_EQ(num_called, 6);
  EXPECT_TRUE(is_gone());
}

TEST_P(LifetimeTest, ThreadsThatSessionsShareSurviveSuchASession) {
  const auto threads = std::make_shared<SharedThreads>(2);
  std::shared_ptr<Session> stays = make_counter(8, threads);
  for (int round = 0; round < 10; ++round) {
    std::shared_ptr<Session> goes = make_counter(8, threads);
    Session& called = *goes;
    RunHandle run = called.run_async(to(5), [owner = std::move(goes)](Result<NamedTensors>) {});
    EXPECT_TRUE(stays->run_async(to(5), {}).wait().is_ok());
    EXPECT_TRUE(run.wait().is_ok());
  }
  EXPECT_TRUE(stays->run(to(3)).is_ok());
}

TEST_P(LifetimeTest, CloseReturnsOnceTheLastCallbackHas) {
  for (int round = 0; round < 10; ++round) {
    std::shared_ptr<Session> session = make_counter(1);
    std::atomic<int> num_called{0};
    const auto count = [&](Result<NamedTensors>) {
      std::this_thread::sleep_for(std::chrono::microseconds(300));
      ++num_called;
    };
    session->run_async(endless(), count);
    for (int i = 0; i < 4; ++i) session->run_async(to(1), count);
    for (int i = 0; i < 4; ++i) session->run_async({}, count);
    session->close();
    EXPECT_EQ(num_called, 9);
  }
}

// Strings are copied one by one, so that collecting them takes its time.
TEST_P(LifetimeTest, DestructionWaitsUntilARunHasGivenItsOutputs) {
  constexpr int64_t kStrings = 3000;
  std::vector<std::string> texts(kStrings, std::string(40, 'x'));
  const int64_t dims[1] = {kStrings};
  const NamedTensors inputs = {
      {"x", Tensor::copy_of({texts.data(), dims, 1, ElementType::kString})}};
  for (int round = 0; round < 30; ++round) {
    GraphBuilder b(library_.ops());
    b.output("y", b.op("Identity", {b.input("x", tensor_type(ElementType::kString, {kStrings}))}));
    auto session = make_session(b);
    ASSERT_NE(session, nullptr);
    std::atomic<bool> is_over{false};
    std::thread runs([&, called = session.get()] {
      const auto outputs = called->run(inputs);
      ASSERT_TRUE(outputs.is_ok());
      EXPECT_EQ((*outputs)[0].second.view().as<std::string>()[kStrings - 1].size(), 40u);
      is_over = true;
    });
    while (!is_over && session->describe_runs().starts_with("0 run")) continue;
    session.reset();
    runs.join();
  }
}

EDDY_IN_ALL_WAYS(LifetimeTest);

}  // namespace
}  // namespace eddy
