// Claim: a run that waits, for its turn or behind its stream, ends as soon as it is cancelled or
// passes its deadline; a run that ends later than its deadline has failed, whatever it made; and
// what ended in time stays so.
#include <atomic>
#include <future>
#include <thread>

#include "graph/base/processor.h"
#include "graph/base/random.h"
#include "runtime/api/shared_threads.h"
#include "runtime/coroutine/scheduler.h"
#include "tests/runtime/testing/ways.h"

namespace eddy {
namespace {

using std::chrono::milliseconds;
using testing::WaysTest;

const ValueType kFloat = tensor_type(ElementType::kFloat, {});

class WaitingTest : public WaysTest {
 protected:
  // Counts to `limit`; one run at a time.
  std::unique_ptr<Session> make_counter(uint32_t max_runs_in_flight = 1) {
    GraphBuilder b(library_.ops());
    build_count_to_limit(b);
    SessionOptions with_limit = options();
    with_limit.max_runs_in_flight = max_runs_in_flight;
    auto session = Session::create(library_, std::move(*b.finish()), with_limit);
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    return std::move(*session);
  }
};

TEST_P(WaitingTest, ARunThatWaitsForItsTurnIsCancelledAtOnce) {
  auto session = make_counter();
  RunHandle first = session->run_async(endless(), {});
  std::promise<Status> called;
  RunHandle second = session->run_async(
      to(3), [&](Result<NamedTensors> outputs) { called.set_value(outputs.status()); });
  RunHandle third = session->run_async(to(4), {});
  EXPECT_FALSE(second.is_done());
  second.cancel();
  EXPECT_EQ(second.wait().code(), StatusCode::kCancelled);
  EXPECT_EQ(called.get_future().get().message(),
            "the run was cancelled while it waited for its turn");
  EXPECT_FALSE(first.is_done());
  EXPECT_FALSE(third.is_done());
  first.cancel();
  EXPECT_EQ(first.wait().code(), StatusCode::kCancelled);
  EXPECT_TRUE(third.wait().is_ok());
}

TEST_P(WaitingTest, ARunThatWaitsForItsTurnPassesItsDeadline) {
  auto session = make_counter();
  RunHandle first = session->run_async(endless(), {});
  RunHandle second = session->run_async(to(3), {}, {.timeout = milliseconds(5)});
  RunHandle at_once = session->run_async(to(3), {}, {.timeout = milliseconds(0)});
  EXPECT_EQ(second.wait().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(at_once.wait().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(second.wait().message(), "the run passed its deadline while it waited for its turn");
  EXPECT_FALSE(first.is_done());
  first.cancel();
}

TEST_P(WaitingTest, CancelAllAndCloseEndWhatWaits) {
  auto session = make_counter();
  for (const bool is_close : {false, true}) {
    std::vector<RunHandle> handles;
    for (int i = 0; i < 5; ++i) handles.push_back(session->run_async(endless(), {}));
    std::atomic<bool> has_begun{false};
    std::thread waits([&] {
      has_begun = true;
      EXPECT_EQ(session->run(endless()).status().code(), StatusCode::kCancelled);
    });
    while (!has_begun) std::this_thread::yield();
    std::this_thread::sleep_for(milliseconds(2));
    if (is_close) {
      session->close();
    } else {
      // Runs that had not begun to wait are cancelled by the next call, as in a program.
      while (!handles.back().is_done()) session->cancel_all();
    }
    for (RunHandle& handle : handles) EXPECT_EQ(handle.wait().code(), StatusCode::kCancelled);
    std::atomic<bool> has_ended{false};
    std::thread again([&] {
      while (!has_ended) session->cancel_all();
    });
    waits.join();
    has_ended = true;
    again.join();
  }
}

TEST_P(WaitingTest, ARunBehindItsStreamIsCancelledAndTheStreamGoesOn) {
  auto session = make_counter(8);
  for (const bool is_deadline : {false, true}) {
    auto stream = std::move(*session->create_stream());
    std::atomic<bool> go{false};
    std::atomic<bool> is_behind{false};
    const Work in_front{[](void* context) {
                          while (!*static_cast<std::atomic<bool>*>(context)) {
                            std::this_thread::yield();
                          }
                          return true;
                        },
                        &go, false};
    const Work behind{
        [](void* context) { return *static_cast<std::atomic<bool>*>(context) = true; }, &is_behind,
        false};
    ASSERT_TRUE(stream->launch(in_front));
    RunOptions options;
    if (is_deadline) options.timeout = milliseconds(3);
    RunHandle waits = session->run_on(*stream, to(3), {}, options);
    RunHandle next = session->run_on(*stream, to(5), {});
    ASSERT_TRUE(stream->launch(behind));
    if (!is_deadline) waits.cancel();
    EXPECT_EQ(waits.wait().code(),
              is_deadline ? StatusCode::kDeadlineExceeded : StatusCode::kCancelled);
    EXPECT_FALSE(next.is_done());
    EXPECT_FALSE(is_behind);
    go = true;
    EXPECT_TRUE(next.wait().is_ok());
    while (!stream->is_idle()) std::this_thread::yield();
    EXPECT_TRUE(is_behind);
  }
}

// The kernel's own time decides, not the time of observation: each way of ending meets each moment.
TEST_P(WaitingTest, CancelAndDeadlineMayComeAtAnyMomentOfAWait) {
  auto session = make_counter(2);
  auto stream = std::move(*session->create_stream());
  for (int round = 0; round < 300; ++round) {
    std::atomic<int> num_called{0};
    const auto count = [&](Result<NamedTensors>) { ++num_called; };
    std::vector<RunHandle> handles;
    for (int i = 0; i < 6; ++i) {
      RunOptions options;
      if (i % 2 == 1) options.timeout = std::chrono::microseconds(round * 7 % 400);
      handles.push_back(i < 3 ? session->run_async(to(200), count, options)
                              : session->run_on(*stream, to(100), count, options));
    }
    for (int i = round % 3; i < 6; i += 2) handles[static_cast<size_t>(i)].cancel();
    for (RunHandle& handle : handles) {
      const StatusCode code = handle.wait().code();
      EXPECT_TRUE(code == StatusCode::kOk || code == StatusCode::kCancelled ||
                  code == StatusCode::kDeadlineExceeded);
    }
    EXPECT_EQ(num_called, 6);
  }
  while (!stream->is_idle()) std::this_thread::yield();
}

TEST_P(WaitingTest, ACancelIsNotLostWhileItsRunGetsItsTurn) {
  constexpr uint64_t kSeed = 7;
  Random random(kSeed);
  auto session = make_counter(1);
  for (int round = 0; round < 3000; ++round) {
    const RunHandle before = session->run_async(to(3), [](const auto&) {});
    RunHandle endless_run = session->run_async(endless(), [](const auto&) {});
    for (uint64_t spins = random.below(2000); spins > 0; --spins) cpu_relax();
    endless_run.cancel();
    // A lost one would be waited for until the test's time is over.
    ASSERT_EQ(endless_run.wait().code(), StatusCode::kCancelled) << "seed " << kSeed;
  }
}

TEST_P(WaitingTest, ARunThatEndsAfterItsDeadlineHasFailedThoughItMadeItsOutputs) {
  // One node that sleeps: no command comes after it at which the run would be seen to be late.
  ASSERT_TRUE(library_
                  .add_host_function("nap",
                                     [](std::span<const TensorView>) -> Result<int64_t> {
                                       std::this_thread::sleep_for(milliseconds(10));
                                       return 1;
                                     })
                  .is_ok());
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", kFloat);
  OpOptions host;
  host.domain = "eddy";
  b.output("y", b.op("HostPredicate", {x}, {{"name", std::string("nap")}}, host));
  auto session = make_session(b);
  const NamedTensors inputs = {{"x", Tensor::scalar(1.0f)}};
  for (const auto timeout : {std::chrono::nanoseconds(-5), std::chrono::nanoseconds(0),
                             std::chrono::nanoseconds(1), std::chrono::nanoseconds(2'000'000)}) {
    EXPECT_EQ(session->run(inputs, {.timeout = timeout}).status().code(),
              StatusCode::kDeadlineExceeded);
    EXPECT_EQ(session->run_async(inputs, {}, {.timeout = timeout}).wait().code(),
              StatusCode::kDeadlineExceeded);
  }
  for (const auto timeout :
       {std::chrono::nanoseconds(std::chrono::hours(1)), std::chrono::nanoseconds::max()}) {
    EXPECT_TRUE(session->run(inputs, {.timeout = timeout}).is_ok());
    EXPECT_TRUE(session->run_async(inputs, {}, {.timeout = timeout}).wait().is_ok());
  }
}

TEST_P(WaitingTest, ARunThatEndedInTimeStaysSoWhileItWaitsForTheCallbackThread) {
  auto session = make_counter(8);
  std::promise<void> go;
  RunHandle holds =
      session->run_async(to(1), [&](Result<NamedTensors>) { go.get_future().wait(); });
  auto stream = std::move(*session->create_stream());
  RunHandle in_time = session->run_on(*stream, to(1), {}, {.timeout = std::chrono::seconds(20)});
  // The stream goes on once the run has ended, before any callback.
  std::atomic<bool> has_ended{false};
  ASSERT_TRUE(stream->launch(
      {[](void* context) { return *static_cast<std::atomic<bool>*>(context) = true; }, &has_ended,
       false}));
  while (!has_ended || !stream->is_idle()) std::this_thread::yield();
  in_time.cancel();
  go.set_value();
  EXPECT_TRUE(holds.wait().is_ok());
  EXPECT_TRUE(in_time.wait().is_ok());
}

TEST_P(WaitingTest, ACallReportsItsLoops) {
  auto session = make_counter();
  auto call = std::move(*session->prepare());
  for (const float limit : {5.0f, 0.0f, 17.0f}) {
    ASSERT_TRUE(
        call->bind_input(0, {const_cast<float*>(&limit), nullptr, 0, ElementType::kFloat}).is_ok());
    ASSERT_TRUE(call->run().is_ok());
    EXPECT_EQ(session->loop_reports().at(0).iterations, static_cast<int64_t>(limit));
  }
}

TEST_P(WaitingTest, AStreamMayGoAsSoonAsTheHandlesOfItsRunsHaveBeenWaitedFor) {
  auto session = make_counter(2);
  for (int round = 0; round < 300; ++round) {
    auto stream = session->create_stream();
    ASSERT_TRUE(stream.is_ok()) << stream.status().to_string();
    RunHandle first = session->run_on(**stream, to(static_cast<float>(round % 4)), {});
    RunHandle second = session->run_on(**stream, to(2), {});
    if (round % 3 == 0) second.cancel();
    EXPECT_TRUE(first.wait().is_ok());
    const Status status = second.wait();
    EXPECT_TRUE(status.is_ok() || (round % 3 == 0 && status.code() == StatusCode::kCancelled));
    stream->reset();
  }
}

TEST_P(WaitingTest, CancellingAllReachesRunsThatStandBehindTheirStream) {
  auto session = make_counter(4);
  for (int round = 0; round < 20; ++round) {
    auto stream = std::move(*session->create_stream());
    std::vector<RunHandle> handles;
    for (int i = 0; i < 3; ++i) handles.push_back(session->run_on(*stream, endless(), {}));
    handles.push_back(session->run_async(endless(), {}));
    session->cancel_all();
    for (RunHandle& handle : handles) {
      EXPECT_EQ(handle.wait().code(), StatusCode::kCancelled);
    }
    EXPECT_TRUE(session->run(to(2)).is_ok());
  }
}

TEST_P(WaitingTest, AStreamDestroyedBeforeItsRunHasEndedSaysWhatToWaitFor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto session = make_counter();
        auto stream = std::move(*session->create_stream());
        RunHandle endless_run = session->run_on(*stream, endless(), {});
        stream.reset();
      },
      "wait for the run's handle first");
}

// No thread can stop this run in time: the timer thread is blocked.
TEST(LateRunTest, ARunThatNoTimerHasStoppedIsLateAllTheSame) {
  Library library;
  ASSERT_TRUE(library
                  .add_host_function("nap",
                                     [](std::span<const TensorView>) -> Result<int64_t> {
                                       std::this_thread::sleep_for(milliseconds(10));
                                       return 1;
                                     })
                  .is_ok());
  GraphBuilder b(library.ops());
  OpOptions host;
  host.domain = "eddy";
  b.output("y",
           b.op("HostPredicate", {b.input("x", kFloat)}, {{"name", std::string("nap")}}, host));
  const auto threads = std::make_shared<SharedThreads>(1);
  auto session = Session::create(library, std::move(*b.finish()),
                                 {.threads = threads, .loops = Loops::kDevice});
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  std::promise<void> is_held;
  std::promise<void> may_go;
  ASSERT_TRUE(threads->scheduler()
                  .spawn([&is_held, go = may_go.get_future()]() mutable {
                    is_held.set_value();
                    go.wait();
                  })
                  .is_ok());
  is_held.get_future().wait();
  const Status status =
      (*session)->run({{"x", Tensor::scalar(1.0f)}}, {.timeout = milliseconds(1)}).status();
  may_go.set_value();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.to_string();
}

EDDY_IN_ALL_WAYS(WaitingTest);

}  // namespace
}  // namespace eddy
