// Claim: any number of runs of one session may be in flight at once; each ends exactly once, with
// its own values or its own error.
#include <atomic>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "tests/runtime/testing/ways.h"

namespace eddy {
namespace {

using testing::WaysTest;

const ValueType kFloat = tensor_type(ElementType::kFloat, {});

class RunsTest : public WaysTest {
 protected:
  // y = x + n by counting; endless when n is infinite.
  std::unique_ptr<Session> make_counter() {
    GraphBuilder b(library_.ops());
    const Value x = b.input("x", kFloat);
    const Value limit = b.input("limit", kFloat);
    b.output("y", b.while_loop(
                      {.name = "count", .initial = {x}},
                      [&](Value, std::span<const Value> c) {
                        return WhileTest{b.op("Less", {c[0], limit}), {c[0]}};
                      },
                      [&](Value, std::span<const Value> f) {
                        return std::vector<Value>{b.op("Add", {f[0], b.scalar(1.0f)})};
                      })[0]);
    return make_session(b);
  }
  static NamedTensors inputs(float x, float limit) {
    return {{"x", Tensor::scalar(x)}, {"limit", Tensor::scalar(limit)}};
  }
};

TEST_P(RunsTest, ConcurrentRunsOfOneProgramKeepTheirValuesApart) {
  auto session = make_counter();
  std::vector<std::thread> threads;
  std::atomic<int> num_wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const float limit = static_cast<float>(100 * t + i);
        auto o = session->run(inputs(0, limit));
        if (!o.is_ok() || (*o)[0].second.values<float>()[0] != limit) ++num_wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_wrong, 0);
}

TEST_P(RunsTest, EachAsynchronousRunCallsBackExactlyOnce) {
  auto session = make_counter();
  constexpr int kRuns = 200;
  std::atomic<int> num_called{0};
  std::atomic<int> num_right{0};
  std::vector<RunHandle> handles;
  for (int i = 0; i < kRuns; ++i) {
    handles.push_back(
        session->run_async(inputs(0, static_cast<float>(i)), [&, i](Result<NamedTensors> o) {
          ++num_called;
          if (o.is_ok() && (*o)[0].second.values<float>()[0] == static_cast<float>(i)) ++num_right;
        }));
  }
  for (RunHandle& handle : handles) EXPECT_TRUE(handle.wait().is_ok());
  EXPECT_EQ(num_called, kRuns);
  EXPECT_EQ(num_right, kRuns);
}

TEST_P(RunsTest, AnEndlessRunIsCancelledAndOthersGoOn) {
  auto session = make_counter();
  std::promise<StatusCode> ended;
  // 1e30 + 1 == 1e30: the loop never ends by itself.
  RunHandle endless = session->run_async(
      inputs(1e30f, 2e30f), [&](Result<NamedTensors> o) { ended.set_value(o.status().code()); });
  for (int i = 0; i < 20; ++i) {
    auto o = session->run(inputs(0, 10));
    ASSERT_TRUE(o.is_ok()) << o.status().to_string();
  }
  EXPECT_FALSE(endless.is_done());
  // It has started by the time it can be seen inside its loop.
  while (session->describe_runs().find("count[") == std::string::npos) std::this_thread::yield();
  endless.cancel();
  EXPECT_EQ(endless.wait().code(), StatusCode::kCancelled);
  EXPECT_EQ(ended.get_future().get(), StatusCode::kCancelled);
}

TEST_P(RunsTest, MoreEndlessRunsThanWorkersStarveNobody) {
  auto session = make_counter();
  std::vector<RunHandle> endless;
  for (int i = 0; i < 4; ++i) endless.push_back(session->run_async(inputs(1e30f, 2e30f), {}));
  RunHandle short_run = session->run_async(inputs(0, 1000), {});
  EXPECT_TRUE(short_run.wait().is_ok());
  session->cancel_all();
  for (RunHandle& handle : endless) EXPECT_EQ(handle.wait().code(), StatusCode::kCancelled);
}

TEST_P(RunsTest, CloseCancelsWhatRunsAndRefusesWhatComes) {
  auto session = make_counter();
  RunHandle endless = session->run_async(inputs(1e30f, 2e30f), {});
  session->close();
  EXPECT_EQ(endless.wait().code(), StatusCode::kCancelled);
  EXPECT_EQ(session->run(inputs(0, 1)).status().code(), StatusCode::kCancelled);
}

TEST_P(RunsTest, ARunMayBeSubmittedButNotAwaitedInACallback) {
  auto session = make_counter();
  std::promise<StatusCode> waited;
  std::promise<bool> second_ended;
  session->run_async(inputs(0, 1), [&](Result<NamedTensors>) {
    waited.set_value(session->run(inputs(0, 1)).status().code());
    session->run_async(inputs(0, 5),
                       [&](Result<NamedTensors> o) { second_ended.set_value(o.is_ok()); });
  });
  EXPECT_EQ(waited.get_future().get(), StatusCode::kWouldDeadlock);
  EXPECT_TRUE(second_ended.get_future().get());
}

TEST_P(RunsTest, BadInputsAreNamed) {
  auto session = make_counter();
  const auto message = [&](NamedTensors given, StatusCode code = StatusCode::kInvalidArgument) {
    const auto o = session->run(given);
    EXPECT_EQ(o.status().code(), code);
    return o.status().message();
  };
  EXPECT_EQ(message({{"x", Tensor::scalar(1.0f)}}), "input 'limit' (float[]) is missing");
  EXPECT_EQ(message({{"x", Tensor::scalar(1.0f)}, {"x", Tensor::scalar(2.0f)}}),
            "input 'x' is given twice; leave one out");
  EXPECT_EQ(message({{"z", Tensor::scalar(1.0f)}}, StatusCode::kNotFound),
            "there is no input 'z'; the graph's inputs are: x, limit");
  EXPECT_EQ(message({{"x", Tensor::scalar<int64_t>(1)}}),
            "input 'x' must be float[], but int64[] was given");
  EXPECT_EQ(message({{"x", Tensor::of<float>({2}, {1, 2})}}),
            "input 'x' must be float[], but float[2] was given");
}

TEST_P(RunsTest, OutputsMayOutliveTheirSession) {
  Tensor y;
  {
    auto session = make_counter();
    y = (*session->run(inputs(0, 7)))[0].second;
  }
  EXPECT_EQ(y.values<float>()[0], 7.0f);
}

TEST_P(RunsTest, ARunOnAStreamStartsBehindWhatIsInFrontAndHoldsWhatComesAfter) {
  auto session = make_counter();
  auto stream = std::move(*session->create_stream());
  float x = 0;
  float limit = 0;
  struct Steps {
    float* limit;
    std::atomic<bool> go{false};
    std::atomic<bool> is_behind{false};
  } steps;
  steps.limit = &limit;
  stream->launch({[](void* context) {
                    auto& self = *static_cast<Steps*>(context);
                    while (!self.go) std::this_thread::yield();
                    *self.limit = 500;  // the run must read this, not what was there before
                    return true;
                  },
                  &steps, false});
  const auto borrow = [](float& value) {
    return Tensor::borrow({&value, nullptr, 0, ElementType::kFloat});
  };
  float result = -1;
  RunHandle run = session->run_on(*stream, {{"x", borrow(x)}, {"limit", borrow(limit)}},
                                  [&](Result<NamedTensors> o) {
                                    if (o.is_ok()) result = (*o)[0].second.values<float>()[0];
                                  });
  stream->launch(
      {[](void* context) { return static_cast<Steps*>(context)->is_behind = true; }, &steps, true});
  EXPECT_FALSE(run.is_done());
  EXPECT_FALSE(steps.is_behind);
  steps.go = true;
  EXPECT_TRUE(run.wait().is_ok());
  while (!stream->is_idle()) std::this_thread::yield();
  EXPECT_TRUE(steps.is_behind);
  EXPECT_EQ(result, 500.0f);
}

TEST_P(RunsTest, AStreamIsReleasedHoweverItsRunEnds) {
  auto session = make_counter();
  auto stream = std::move(*session->create_stream());
  RunHandle bad = session->run_on(*stream, {}, {});
  RunHandle endless = session->run_on(*stream, inputs(1e30f, 2e30f), {});
  RunHandle behind = session->run_on(*stream, inputs(0, 3), {});
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_FALSE(behind.is_done());
  endless.cancel();
  EXPECT_EQ(bad.wait().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(endless.wait().code(), StatusCode::kCancelled);
  EXPECT_TRUE(behind.wait().is_ok());
  while (!stream->is_idle()) std::this_thread::yield();
}

TEST_P(RunsTest, TheLogHookTellsTheStepsAndWhatCallbacksThrow) {
  std::mutex mutex;
  std::string lines;
  GraphBuilder b(library_.ops());
  b.output("y", b.op("Neg", {b.input("x", kFloat)}));
  SessionOptions logged = options();
  logged.log = [&](std::string_view line) {
    std::lock_guard lock(mutex);
    lines += std::string(line) + "\n";
  };
  auto session = Session::create(library_, std::move(*b.finish()), logged);
  ASSERT_TRUE(session.is_ok());
  RunHandle run = (*session)->run_async({{"x", Tensor::scalar(1.0f)}}, [](Result<NamedTensors>) {
    throw std::runtime_error("oops");
  });
  EXPECT_TRUE(run.wait().is_ok());
  std::lock_guard lock(mutex);
  for (const char* part : {"simplified 1 node", "planned 1 region", "proved", "bound", "oops"}) {
    EXPECT_NE(lines.find(part), std::string::npos) << part << " in\n" << lines;
  }
}

EDDY_IN_ALL_WAYS(RunsTest);

}  // namespace
}  // namespace eddy
