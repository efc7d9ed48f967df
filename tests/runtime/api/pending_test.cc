// Claim: a call that answers later holds up its own strand and nothing else; the answer may come
// from any thread, at once, or when a file can be read; an error, a throw or no answer at all fails
// the run at the node; and a run that is stopped notifies its calls and ends with them.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "tests/runtime/testing/ways.h"

namespace eddy {
namespace {

using ::testing::HasSubstr;
using testing::WaysTest;

const ValueType kFloat = tensor_type(ElementType::kFloat, {});

// A thread that does what it is given.
class Elsewhere {
 public:
  Elsewhere() : thread_([this] { loop(); }) {}
  ~Elsewhere() {
    post({});
    thread_.join();
  }
  void post(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(work));
    }
    changed_.notify_one();
  }

 private:
  void loop() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !queue_.empty(); });
      const std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      if (!work) return;
      work();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::thread thread_;
};

class PendingTest : public WaysTest {
 protected:
  using Shared = std::shared_ptr<PendingDecision>;
  static Shared share(PendingDecision decision) {
    return std::make_shared<PendingDecision>(std::move(decision));
  }
  void add(AsyncHostFunction function) {
    ASSERT_TRUE(library_.add_async_host_function("more?", std::move(function)).is_ok());
  }
  // y counts from 0 while more?(y) says so.
  std::unique_ptr<Session> make_loop() {
    GraphBuilder b(library_.ops());
    const Value start = b.input("start", kFloat);
    b.output("y", b.while_loop(
                      {.name = "count", .initial = {start}},
                      [&](Value, ValueSpan c) {
                        const Value more =
                            b.op("HostPredicate", {c[0]}, {{"name", std::string("more?")}},
                                 {.name = "ask", .domain = "eddy"});
                        return WhileTest{more, {c[0]}};
                      },
                      [&](Value, ValueSpan f) {
                        return std::vector<Value>{b.op("Add", {f[0], b.scalar(1.0f)})};
                      })[0]);
    return make_session(b);
  }
  static NamedTensors from(float start) { return {{"start", Tensor::scalar(start)}}; }
  static float result(const Result<NamedTensors>& outputs) {
    EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    return outputs.is_ok() ? (*outputs)[0].second.values<float>()[0] : -1;
  }
};

TEST_P(PendingTest, AnswersFromAnotherThreadDecideALoop) {
  Elsewhere elsewhere;
  add([&elsewhere](std::span<const TensorView> inputs, PendingDecision decision) {
    elsewhere.post([inputs, decision = share(std::move(decision))] {
      decision->complete(*inputs[0].as<float>() < 200 ? 1 : 0);
    });
  });
  auto session = make_loop();
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(result(session->run(from(0))), 200);
  EXPECT_EQ(result(session->run(from(150))), 200);
  EXPECT_EQ(session->run_async(from(7), {}).wait().code(), StatusCode::kOk);
}

TEST_P(PendingTest, AnAnswerMayComeBeforeTheFunctionReturns) {
  add([](std::span<const TensorView> inputs, PendingDecision decision) {
    decision.complete(*inputs[0].as<float>() < 1000 ? 1 : 0);
  });
  auto session = make_loop();
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(result(session->run(from(0))), 1000);
}

TEST_P(PendingTest, RunsThatWaitForAnswersHoldUpNoOther) {
  std::mutex mutex;
  std::vector<Shared> held;
  add([&](std::span<const TensorView> inputs, PendingDecision decision) {
    if (*inputs[0].as<float>() < 0) {  // to be answered by the test
      const std::lock_guard lock(mutex);
      held.push_back(share(std::move(decision)));
    } else {
      decision.complete(*inputs[0].as<float>() < 100 ? 1 : 0);
    }
  });
  auto session = make_loop();
  ASSERT_NE(session, nullptr);
  constexpr size_t kHeld = 20;  // more than there are threads
  std::vector<RunHandle> handles;
  for (size_t i = 0; i < kHeld; ++i) handles.push_back(session->run_async(from(-1), {}));
  const auto num_held = [&] {
    const std::lock_guard lock(mutex);
    return held.size();
  };
  while (num_held() < kHeld) std::this_thread::yield();
  EXPECT_EQ(result(session->run(from(0))), 100);
  EXPECT_THAT(session->describe_runs(), HasSubstr("waits for an answer"));
  for (const Shared& decision : held) decision->complete(0);
  for (RunHandle& handle : handles) EXPECT_TRUE(handle.wait().is_ok());
}

TEST_P(PendingTest, CancelAndDeadlinesReachAPendingCall) {
  std::atomic<int> num_stopped{0};
  add([&num_stopped](std::span<const TensorView>, PendingDecision decision) {
    const Shared kept = share(std::move(decision));
    kept->on_stop([&num_stopped, kept] {
      ++num_stopped;
      kept->complete(cancelled("stopped"));
    });
  });
  auto session = make_loop();
  ASSERT_NE(session, nullptr);
  RunHandle handle = session->run_async(from(0), {});
  handle.cancel();
  EXPECT_EQ(handle.wait().code(), StatusCode::kCancelled);
  EXPECT_EQ(session->run(from(0), {.timeout = std::chrono::milliseconds(5)}).status().code(),
            StatusCode::kDeadlineExceeded);
  EXPECT_LE(num_stopped, 2) << "a run that is stopped before it asks does not ask";
}

TEST_P(PendingTest, ErrorsAndDroppedAnswersNameTheNodeAndItsIteration) {
  enum class How { kError, kDropped, kThrown } how = How::kError;
  add([&how](std::span<const TensorView> inputs, PendingDecision decision) {
    if (*inputs[0].as<float>() < 3) return decision.complete(1);
    if (how == How::kError) return decision.complete(run_failed("no line to the oracle"));
    if (how == How::kThrown) throw std::runtime_error("no idea");
  });
  auto session = make_loop();
  ASSERT_NE(session, nullptr);
  const auto message = [&] { return session->run(from(0)).status().to_string(); };
  EXPECT_THAT(message(), HasSubstr("at count[3]/ask: no line to the oracle"));
  how = How::kDropped;
  EXPECT_THAT(message(), HasSubstr("at count[3]/ask: the call was dropped without an answer"));
  how = How::kThrown;
  EXPECT_THAT(message(), HasSubstr("at count[3]/ask: host function 'more?' threw: no idea"));
}

TEST_P(PendingTest, AFileThatCanBeReadIsAnAnswer) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  add([&ends](std::span<const TensorView>, PendingDecision decision) {
    decision.complete_when_readable(ends[0], [&ends]() -> Result<int64_t> {
      char letter = 0;
      if (read(ends[0], &letter, 1) != 1) return run_failed("nothing to read");
      if (letter == '!') throw std::runtime_error("no such letter");
      return letter == '+' ? 1 : 0;
    });
  });
  auto session = make_loop();
  ASSERT_NE(session, nullptr);
  RunHandle counts = session->run_async(from(0), {});
  ASSERT_EQ(write(ends[1], "+++", 3), 3);
  EXPECT_FALSE(counts.wait_for(std::chrono::milliseconds(20)));
  ASSERT_EQ(write(ends[1], "-", 1), 1);
  EXPECT_TRUE(counts.wait().is_ok());
  // One that waits for a file that stays empty.
  RunHandle stuck = session->run_async(from(0), {});
  EXPECT_FALSE(stuck.wait_for(std::chrono::milliseconds(10)));
  stuck.cancel();
  EXPECT_EQ(stuck.wait().code(), StatusCode::kCancelled);
  ASSERT_EQ(write(ends[1], "!", 1), 1);
  EXPECT_THAT(session->run(from(0)).status().to_string(), HasSubstr("threw: no such letter"));
  close(ends[0]);
  EXPECT_THAT(session->run(from(0)).status().to_string(), HasSubstr("cannot be waited for"));
  close(ends[1]);
}

EDDY_IN_ALL_WAYS(PendingTest);

}  // namespace
}  // namespace eddy
