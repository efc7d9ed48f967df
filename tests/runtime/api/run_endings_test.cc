// long: one table of ways, endings and misuses, with what each of them needs.
// Claim: a run ends in the same way however it was submitted: with the same status, once, its
// outputs collected, its turn and its stream given back, waiting threads woken and its callback
// called last. And what a Call is asked at the wrong moment is refused by name, or defined.
#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <mutex>
#include <thread>

#include "tests/runtime/testing/ways.h"

namespace eddy {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing::WaysTest;

enum class How { kRun, kRunAsync, kRunOn, kCall, kSubmit, kSubmitOn };
constexpr How kAll[] = {How::kRun,  How::kRunAsync, How::kRunOn,
                        How::kCall, How::kSubmit,   How::kSubmitOn};
constexpr How kOfAStream[] = {How::kRunOn, How::kSubmitOn};
constexpr How kWithCallback[] = {How::kRunAsync, How::kRunOn, How::kSubmit, How::kSubmitOn};
const char* const kNames[] = {"run", "run_async", "run_on", "call", "submit", "submit_on"};

bool is_of_call(How how) {
  return how == How::kCall || how == How::kSubmit || how == How::kSubmitOn;
}

constexpr float kEndless = 1e30f;  // 2^24 + 1 == 2^24
constexpr float kFails = -1;

TensorView scalar_view(float& value) { return {&value, nullptr, 0, ElementType::kFloat}; }

// One run, submitted in one of the ways; a synchronous one on a thread of its own.
class Submitted {
 public:
  Submitted(Session& session, How how, float limit, const RunOptions& options = {},
            Stream* stream_or_null = nullptr, std::function<void()> in_callback = {})
      : session_(session), how_(how), limit_(limit), in_callback_(std::move(in_callback)) {
    if (is_of_call(how)) {
      call_ = std::move(*session.prepare());
      EXPECT_TRUE(call_->bind_input(0, scalar_view(limit_)).is_ok());
      EXPECT_TRUE(call_->bind_output(0, scalar_view(bound_)).is_ok());
    }
    switch (how) {
      case How::kRun:
        thread_ = std::thread([this, options] { take(session_.run(inputs(), options)); });
        return;
      case How::kCall:
        thread_ = std::thread([this, options] { status_ = call_->run(options); });
        return;
      case How::kRunAsync:
        handle_.emplace(session.run_async(inputs(), callback(), options));
        return;
      case How::kRunOn:
        handle_.emplace(session.run_on(*stream_or_null, inputs(), callback(), options));
        return;
      case How::kSubmit:
        status_ = call_->submit(options, on_end());
        break;
      case How::kSubmitOn:
        status_ = call_->submit_on(*stream_or_null, options, on_end());
        break;
    }
    is_refused_ = !status_.is_ok();
  }

  void cancel() {
    if (call_ != nullptr) return call_->cancel();
    handle_ ? handle_->cancel() : session_.cancel_all();
  }
  // How it has ended; a callback has the same.
  Status wait() {
    if (thread_.joinable()) thread_.join();
    if (handle_) status_ = handle_->wait();
    if (call_ != nullptr && !is_refused_) status_ = call_->wait();
    const bool calls_back = how_ != How::kRun && how_ != How::kCall && !is_refused_;
    // A Call is free again before it calls back.
    while (calls_back && num_called_ == 0) std::this_thread::yield();
    EXPECT_EQ(num_called_, calls_back ? 1 : 0);
    if (calls_back) {
      std::lock_guard lock(mutex_);
      EXPECT_EQ(called_with_.to_string(), status_.to_string());
    }
    return status_;
  }
  // Where there is one.
  std::optional<float> output() {
    if (call_ == nullptr) return collected_;
    const TensorView made = call_->output(0);
    if (made.data == nullptr) return std::nullopt;
    EXPECT_EQ(made.data, &bound_);
    return bound_;
  }
  const Call* call_or_null() const { return call_.get(); }

 private:
  NamedTensors inputs() { return {{"limit", Tensor::borrow(scalar_view(limit_))}}; }
  void take(const Result<NamedTensors>& outputs) {
    status_ = outputs.status();
    if (outputs.is_ok()) collected_ = (*outputs)[0].second.values<float>()[0];
  }
  RunCallback callback() {
    return [this](Result<NamedTensors> outputs) {
      if (outputs.is_ok()) collected_ = (*outputs)[0].second.values<float>()[0];
      called(outputs.status());
    };
  }
  Call::Callback on_end() {
    return [this](const Status& status) { called(status); };
  }
  void called(const Status& status) {
    if (in_callback_) in_callback_();
    std::lock_guard lock(mutex_);
    called_with_ = status;
    ++num_called_;
  }

  Session& session_;
  const How how_;
  float limit_;
  float bound_ = -7;
  std::function<void()> in_callback_;
  std::unique_ptr<Call> call_;
  std::optional<RunHandle> handle_;
  std::thread thread_;
  Status status_;
  bool is_refused_ = false;
  std::optional<float> collected_;
  std::mutex mutex_;
  Status called_with_;  // under the mutex
  std::atomic<int> num_called_{0};
};

class RunEndingsTest : public WaysTest {
 protected:
  void SetUp() override {
    const auto check = [](std::span<const TensorView> in) -> Result<int64_t> {
      if (*in[0].as<float>() < 0) return run_failed("no limit below 0");
      return 1;
    };
    ASSERT_TRUE(library_.add_host_function("check", check).is_ok());
    make();
  }
  void TearDown() override {
    stream_ = nullptr;
    session_ = nullptr;
  }
  // "y" counts to "limit"; "checked" fails below 0.
  void make(uint32_t max_runs_in_flight = 2) {
    stream_ = nullptr;
    GraphBuilder b(library_.ops());
    const Value limit = b.input("limit", tensor_type(ElementType::kFloat, {}));
    const auto y = b.while_loop(
        {.name = "count", .initial = {b.scalar(0.0f)}},
        [&](Value, ValueSpan c) {
          return WhileTest{b.op("Less", {c[0], limit}), {c[0]}};
        },
        [&](Value, ValueSpan f) {
          return std::vector<Value>{b.op("Add", {f[0], b.scalar(1.0f)})};
        });
    b.output("y", y[0]);
    b.output("checked",
             b.op("HostPredicate", {limit}, {{"name", std::string("check")}}, {.domain = "eddy"}));
    SessionOptions few = options();
    few.max_runs_in_flight = max_runs_in_flight;
    session_ = std::move(*Session::create(library_, std::move(*b.finish()), few));
    stream_ = std::move(*session_->create_stream());
  }
  Stream* stream(How how) const {
    return how == How::kRunOn || how == How::kSubmitOn ? stream_.get() : nullptr;
  }
  void await_runs(const std::string& text) const {
    while (session_->describe_runs().find(text) == std::string::npos) std::this_thread::yield();
  }
  // Everything was given back, and the next run is right.
  void expect_at_rest() {
    await_runs("0 run(s) in flight, 0 waiting");
    while (!stream_->is_idle()) std::this_thread::yield();
    const auto outputs = session_->run(to(3));
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    EXPECT_EQ((*outputs)[0].second.values<float>()[0], 3.0f);
  }
  template <typename Play>
  void in_each(std::span<const How> hows, const Play& play) {
    for (const How how : hows) {
      SCOPED_TRACE(kNames[static_cast<int>(how)]);
      play(how);
    }
  }

  std::unique_ptr<Stream> stream_;
};

TEST_P(RunEndingsTest, WithItsOutputs) {
  in_each(kAll, [&](How how) {
    Submitted run(*session_, how, 5, {}, stream(how));
    EXPECT_TRUE(run.wait().is_ok());
    EXPECT_EQ(run.output(), 5.0f);
    expect_at_rest();
  });
}

TEST_P(RunEndingsTest, WithTheErrorOfANode) {
  in_each(kAll, [&](How how) {
    Submitted run(*session_, how, kFails, {}, stream(how));
    const Status status = run.wait();
    EXPECT_EQ(status.code(), StatusCode::kRunFailed);
    EXPECT_THAT(status.message(), HasSubstr("no limit below 0"));
    EXPECT_EQ(run.output(), std::nullopt);
    expect_at_rest();
  });
}

TEST_P(RunEndingsTest, CancelledWhileItWaitsForItsTurn) {
  make(1);
  in_each(kAll, [&](How how) {
    RunHandle first = session_->run_async(endless(), {});
    Submitted run(*session_, how, 5, {}, stream(how));
    await_runs(", 1 waiting");
    run.cancel();
    EXPECT_EQ(run.wait().to_string(),
              "cancelled: the run was cancelled while it waited for its turn");
    EXPECT_EQ(run.output(), std::nullopt);
    first.cancel();
    EXPECT_EQ(first.wait().code(), StatusCode::kCancelled);
    expect_at_rest();
  });
}

TEST_P(RunEndingsTest, CancelledWhileItWaitsForItsStream) {
  in_each(kOfAStream, [&](How how) {
    RunHandle first = session_->run_on(*stream_, endless(), {});
    Submitted run(*session_, how, 5, {}, stream(how));
    RunHandle last = session_->run_on(*stream_, to(2), {});
    run.cancel();
    EXPECT_EQ(run.wait().to_string(),
              "cancelled: the run was cancelled while it waited for its stream");
    EXPECT_FALSE(first.is_done());
    first.cancel();
    EXPECT_TRUE(last.wait().is_ok());
    expect_at_rest();
  });
}

void expect_cancelled_in_its_loop(const Status& ended) {
  EXPECT_EQ(ended.code(), StatusCode::kCancelled);
  EXPECT_EQ(ended.message(), "the run was cancelled");
  EXPECT_TRUE(ended.path().starts_with("count[")) << ended.to_string();
}

TEST_P(RunEndingsTest, CancelledWhileItRuns) {
  in_each(kAll, [&](How how) {
    Submitted run(*session_, how, kEndless, {}, stream(how));
    await_runs("count[");
    run.cancel();
    expect_cancelled_in_its_loop(run.wait());
    EXPECT_EQ(run.output(), std::nullopt);
    expect_at_rest();
  });
}

TEST_P(RunEndingsTest, PastItsDeadlineBeforeAndWhileItWaitsAndWhileItRuns) {
  make(1);
  in_each(kAll, [&](How how) {
    const std::string waited = stream(how) != nullptr ? "stream" : "turn";
    Submitted at_once(*session_, how, 5, {.timeout = milliseconds(0)}, stream(how));
    EXPECT_EQ(at_once.wait().to_string(),
              "deadline exceeded: the run passed its deadline while it waited for its " + waited);
    RunHandle first = session_->run_async(endless(), {});
    await_runs("count[");
    {
      Submitted run(*session_, how, 5, {.timeout = milliseconds(3)}, stream(how));
      const std::string text = run.wait().to_string();
      // A machine under load may pass it before the stream has come to the run.
      EXPECT_TRUE(text.ends_with(" while it waited for its turn") ||
                  (stream(how) != nullptr && text.ends_with(" while it waited for its stream")))
          << text;
    }
    first.cancel();
    EXPECT_EQ(first.wait().code(), StatusCode::kCancelled);
    await_runs("0 run(s) in flight");
    Submitted run(*session_, how, kEndless, {.timeout = milliseconds(20)}, stream(how));
    EXPECT_EQ(run.wait().code(), StatusCode::kDeadlineExceeded);
    EXPECT_EQ(run.output(), std::nullopt);
    expect_at_rest();
  });
}

TEST_P(RunEndingsTest, WithItsSessionClosedBeforeAndWhileItWaitsAndWhileItRuns) {
  in_each(kAll, [&](How how) {
    make(1);
    Submitted runs(*session_, how, kEndless, {}, stream(how));
    await_runs("count[");
    Submitted waits(*session_, how, 5, {}, stream(how));
    if (stream(how) == nullptr) await_runs(", 1 waiting");
    session_->close();
    expect_cancelled_in_its_loop(runs.wait());
    EXPECT_EQ(waits.wait().to_string(),
              "cancelled: the run was cancelled while it waited for its " +
                  std::string(stream(how) ? "stream" : "turn"));
    Submitted late(*session_, how, 5, {}, stream(how));
    EXPECT_EQ(late.wait().to_string(), "cancelled: the session is closed");
  });
}

TEST_P(RunEndingsTest, ACallbackThatBlocksHoldsNothingOfItsRun) {
  make(1);
  in_each(kWithCallback, [&](How how) {
    std::promise<void> is_called, may_return;
    Submitted run(*session_, how, 5, {}, stream(how), [&] {
      is_called.set_value();
      may_return.get_future().wait();
    });
    is_called.get_future().wait();
    if (run.call_or_null() != nullptr) {
      EXPECT_TRUE(run.call_or_null()->is_done());
      EXPECT_EQ(run.output(), 5.0f);
    }
    expect_at_rest();
    may_return.set_value();
    EXPECT_TRUE(run.wait().is_ok());
  });
}

TEST_P(RunEndingsTest, ACallbackMayDestroyItsCallAndItsSession) {
  in_each(kWithCallback, [&](How how) {
    make();
    auto stream = std::move(stream_);
    std::unique_ptr<Call> call;
    std::promise<void> is_over;
    float limit = 5;
    if (!is_of_call(how)) {
      const auto owner = std::make_shared<std::unique_ptr<Session>>(std::move(session_));
      const auto callback = [&, owner](Result<NamedTensors>) {
        stream = nullptr;
        *owner = nullptr;
        is_over.set_value();
      };
      Session& session = **owner;
      RunHandle run = how == How::kRunAsync ? session.run_async(to(limit), callback)
                                            : session.run_on(*stream, to(limit), callback);
      EXPECT_TRUE(run.wait().is_ok());
    } else {
      call = std::move(*session_->prepare());
      ASSERT_TRUE(call->bind_input(0, scalar_view(limit)).is_ok());
      const auto callback = [&](const Status&) {
        call = nullptr;
        stream = nullptr;
        session_ = nullptr;
        is_over.set_value();
      };
      const Status status =
          how == How::kSubmit ? call->submit({}, callback) : call->submit_on(*stream, {}, callback);
      EXPECT_TRUE(status.is_ok());
    }
    is_over.get_future().wait();
  });
}

TEST_P(RunEndingsTest, RowsAndSparesComeInEachWayOfSubmitting) {
  GraphBuilder b(library_.ops());
  const Value n = b.input("n", tensor_type(ElementType::kInt64, {}));
  const auto out = b.while_loop(
      {.name = "count", .initial = {b.scalar(0.0f)}, .trip_limit = n, .num_scan_outputs = 1},
      [&](Value, ValueSpan c) {
        return WhileTest{b.scalar(true), {c[0]}};
      },
      [&](Value, ValueSpan f) {
        return std::vector<Value>{b.op("Add", {f[0], b.scalar(1.0f)}), f[0]};
      });
  b.output("y", out[0]);
  b.output("rows", out[1]);
  stream_ = nullptr;
  session_ = make_session(b);
  stream_ = std::move(*session_->create_stream());
  int64_t trips = 0;
  float place = 0, spare = 0;
  auto call = std::move(*session_->prepare());
  ASSERT_TRUE(call->bind_input(0, {&trips, nullptr, 0, ElementType::kInt64}).is_ok());
  ASSERT_TRUE(call->bind_output(0, scalar_view(place), scalar_view(spare)).is_ok());
  for (int round = 0; round < 12; ++round) {
    trips = 3 + round;
    // Every other time without streams.
    const auto rows = std::make_shared<OutputStream>(1000);
    RunOptions options;
    if (round % 2 == 0) options.streams = {{"rows", rows}};
    const Status status = round % 3 == 0   ? call->run(options)
                          : round % 3 == 1 ? call->submit(options)
                                           : call->submit_on(*stream_, options);
    ASSERT_TRUE(status.is_ok()) << status.to_string();
    EXPECT_TRUE(call->wait().is_ok());
    const TensorView y = call->output(0);
    EXPECT_TRUE(y.data == &place || y.data == &spare);
    EXPECT_EQ(*y.as<float>(), static_cast<float>(trips));
    EXPECT_EQ(call->output(1).count(), trips);
    float next = 0;
    while (round % 2 == 0) {
      const auto row = rows->next();
      if (!row) break;
      EXPECT_EQ(row->values<float>()[0], next++);
    }
    EXPECT_EQ(next, round % 2 == 0 ? static_cast<float>(trips) : 0.0f);
  }
  while (!stream_->is_idle()) std::this_thread::yield();
}

TEST_P(RunEndingsTest, WhatStandsBehindOnTheStreamReadsTheOutput) {
  float limit = 0, made = -1, seen = -2;
  struct Steps {
    float *limit, *made, *seen;
  } steps{&limit, &made, &seen};
  auto call = std::move(*session_->prepare());
  ASSERT_TRUE(call->bind_input(0, scalar_view(limit)).is_ok());
  ASSERT_TRUE(call->bind_output(0, scalar_view(made)).is_ok());
  const Work in_front{[](void* context) {
                        *static_cast<Steps*>(context)->limit = 40;
                        return true;
                      },
                      &steps, false};
  const Work behind{[](void* context) {
                      auto& self = *static_cast<Steps*>(context);
                      *self.seen = *self.made;
                      return true;
                    },
                    &steps, false};
  ASSERT_TRUE(stream_->launch(in_front));
  ASSERT_TRUE(call->submit_on(*stream_).is_ok());
  ASSERT_TRUE(stream_->launch(behind));
  while (!stream_->is_idle()) std::this_thread::yield();
  EXPECT_EQ(seen, 40.0f);
  EXPECT_TRUE(call->wait().is_ok());
}

class CallMisuseTest : public RunEndingsTest {
 protected:
  void SetUp() override {
    RunEndingsTest::SetUp();
    call_ = std::move(*session_->prepare());
  }
  void TearDown() override {
    call_ = nullptr;
    RunEndingsTest::TearDown();
  }
  void bind(float limit) {
    limit_ = limit;
    ASSERT_TRUE(call_->bind_input(0, scalar_view(limit_)).is_ok());
  }

  float limit_ = 0;
  float place_ = 0;
  std::unique_ptr<Call> call_;
};

TEST_P(CallMisuseTest, WhatNeedsACallAtRestSaysThatARunIsUnderWay) {
  bind(kEndless);
  ASSERT_TRUE(call_->submit().is_ok());
  bool is_called = false;
  const Tensor one = Tensor::scalar(1.0f);
  const Status refused[] = {call_->run(),
                            call_->submit({}, [&](const Status&) { is_called = true; }),
                            call_->submit_on(*stream_),
                            call_->bind_input(0, scalar_view(limit_)),
                            call_->bind_input(0, one),
                            call_->bind_output(0, scalar_view(place_)),
                            call_->bind_device_output(0, scalar_view(place_))};
  for (const Status& status : refused) {
    EXPECT_EQ(status.to_string(),
              "invalid argument: a run of this Call is under way; wait() for it first, or prepare "
              "another Call");
  }
  EXPECT_FALSE(call_->is_done());
  EXPECT_FALSE(call_->wait_for(milliseconds(1)));
  EXPECT_EQ(call_->output(0).data, nullptr) << "there is none before the end";
  EXPECT_EQ(call_->value(0).kind(), ValueKind::kNone);
  EXPECT_EQ(call_->copied_bytes(), 0u);
  call_->cancel();
  EXPECT_EQ(call_->wait().code(), StatusCode::kCancelled);
  EXPECT_FALSE(is_called);
  bind(4);
  EXPECT_TRUE(call_->submit().is_ok());
  EXPECT_TRUE(call_->wait_for(std::chrono::hours(1)));
  EXPECT_TRUE(call_->wait().is_ok());
  EXPECT_EQ(*call_->output(0).as<float>(), 4.0f);
}

TEST_P(CallMisuseTest, BeforeTheFirstRunThereIsNothing) {
  EXPECT_TRUE(call_->is_done());
  EXPECT_THAT(call_->wait().message(), HasSubstr("no run was submitted yet"));
  EXPECT_EQ(call_->output(0).data, nullptr);
  EXPECT_EQ(call_->value(0).kind(), ValueKind::kNone);
  call_->cancel();
  for (const Status& status : {call_->run(), call_->submit(), call_->submit_on(*stream_)}) {
    EXPECT_EQ(status.to_string(), "invalid argument: input 'limit' (float[]) is missing");
    EXPECT_EQ(call_->wait().to_string(), status.to_string());
  }
  bind(2);
  EXPECT_TRUE(call_->run().is_ok()) << "a cancel reaches no later run";
  EXPECT_EQ(call_->output(99).data, nullptr);
  EXPECT_EQ(call_->value(99).kind(), ValueKind::kNone);
  EXPECT_THAT(call_->bind_input(9, scalar_view(limit_)).message(), HasSubstr("no input 9"));
  EXPECT_THAT(call_->bind_output(9, scalar_view(limit_)).message(), HasSubstr("no output 9"));
}

TEST_P(CallMisuseTest, ACallDestroyedWhileItsRunIsUnderWayCancelsIt) {
  for (const bool waits : {false, true}) {
    call_ = nullptr;
    make(1);
    call_ = std::move(*session_->prepare());
    RunHandle first = session_->run_async(waits ? endless() : to(1), {});
    if (!waits) {
      EXPECT_TRUE(first.wait().is_ok());
    }
    bind(kEndless);
    std::promise<Status> ended;
    ASSERT_TRUE(call_->submit({}, [&](const Status& status) { ended.set_value(status); }).is_ok());
    call_ = nullptr;
    EXPECT_EQ(ended.get_future().get().code(), StatusCode::kCancelled);
    first.cancel();
    (void)first.wait();
    expect_at_rest();
    call_ = std::move(*session_->prepare());
  }
}

TEST_P(CallMisuseTest, ACallIsDestroyedInACallbackAndInAHostFunction) {
  bind(kEndless);
  ASSERT_TRUE(call_->submit().is_ok());
  RunHandle run = session_->run_async(to(2), [&](Result<NamedTensors>) { call_ = nullptr; });
  EXPECT_TRUE(run.wait().is_ok());
  EXPECT_EQ(call_, nullptr);
  // There it is left to itself.
  std::unique_ptr<Call> doomed;
  Library library;
  ASSERT_TRUE(library
                  .add_host_function("destroy",
                                     [&](std::span<const TensorView>) -> Result<int64_t> {
                                       doomed = nullptr;
                                       return 1;
                                     })
                  .is_ok());
  GraphBuilder b(library.ops());
  const Value x = b.input("limit", tensor_type(ElementType::kFloat, {}));
  b.output("y", b.op("HostPredicate", {x}, {{"name", std::string("destroy")}}, {.domain = "eddy"}));
  auto session = std::move(*Session::create(library, std::move(*b.finish()), options()));
  doomed = std::move(*session->prepare());
  ASSERT_TRUE(doomed->bind_input(0, scalar_view(limit_)).is_ok());
  std::promise<Status> ended;
  ASSERT_TRUE(doomed->submit({}, [&](const Status& status) { ended.set_value(status); }).is_ok());
  EXPECT_EQ(ended.get_future().get().code(), StatusCode::kCancelled);
  EXPECT_EQ(doomed, nullptr);
}

TEST_P(CallMisuseTest, ACallbackMaySubmitItsCallAgainButNotWaitForIt) {
  std::atomic<int> left{10};
  std::promise<void> is_over;
  StatusCode waited = StatusCode::kOk;
  Call::Callback next = [&](const Status& status) {
    EXPECT_TRUE(status.is_ok());
    EXPECT_EQ(*call_->output(0).as<float>(), static_cast<float>(left));
    if (--left == 0) return is_over.set_value();
    limit_ = static_cast<float>(left);
    EXPECT_TRUE(call_->submit({}, next).is_ok());
    const Status refused = call_->wait();  // unless it has ended by now
    if (!refused.is_ok()) waited = refused.code();
  };
  bind(10);
  ASSERT_TRUE(call_->submit({}, next).is_ok());
  is_over.get_future().wait();
  EXPECT_TRUE(waited == StatusCode::kOk || waited == StatusCode::kWouldDeadlock);
}

TEST_P(CallMisuseTest, ATraceIsGivenToPrepare) {
  bind(1);
  RunOptions options;
  options.trace_or_null = reinterpret_cast<TraceRecorder*>(this);  // never followed
  for (const Status& status : {call_->run(options), call_->submit(options)}) {
    EXPECT_THAT(status.message(), HasSubstr("by the recorder that prepare() is given"));
  }
  EXPECT_TRUE(call_->run().is_ok());
}

EDDY_IN_ALL_WAYS(RunEndingsTest);
EDDY_IN_ALL_WAYS(CallMisuseTest);

}  // namespace
}  // namespace eddy
