// Claim: whatever many clients do to sessions at once, each run ends exactly once, closing ends,
// and a forked child gets an error for each use of its parent's session.
//
// EDDY_CLOSES=N closes N sessions instead of some hundred in each way.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "graph/base/processor.h"
#include "graph/base/random.h"
#include "runtime/api/shared_threads.h"
#include "tests/runtime/testing/ways.h"

namespace eddy {
namespace {

using testing::WaysTest;

class ClientsTest : public WaysTest {
 protected:
  void SetUp() override {
    const auto more = [this](std::span<const TensorView> in) -> Result<int64_t> {
      if (from_host_) from_host_();
      return *in[0].as<int64_t>() < *in[1].as<int64_t>() ? 1 : 0;
    };
    ASSERT_TRUE(library_.add_host_function("more?", more).is_ok());
  }

  // Counts x up to `limit`; the host decides where `asks_host`.
  std::unique_ptr<Session> make_counter(bool asks_host = false, SessionOptions given = {}) {
    GraphBuilder b(library_.ops());
    const ValueType number = tensor_type(ElementType::kInt64, {});
    const Value x = b.input("x", number);
    const Value limit = b.input("limit", number);
    const auto counted = b.while_loop(
        {.name = "count", .initial = {x}},
        [&](Value, ValueSpan c) {
          if (!asks_host) return WhileTest{b.op("Less", {c[0], limit}), {c[0]}};
          const Value go = b.op("HostPredicate", {c[0], limit}, {{"name", std::string("more?")}},
                                {.domain = "eddy"});
          return WhileTest{go, {c[0]}};
        },
        [&](Value, ValueSpan f) {
          return std::vector<Value>{b.op("Add", {f[0], b.scalar<int64_t>(1)})};
        });
    b.output("y", counted[0]);
    auto graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    SessionOptions options = this->options();
    options.max_runs_in_flight = given.max_runs_in_flight;
    if (given.threads) {
      options.threads = given.threads;
      options.num_threads = 0;
    }
    auto session = Session::create(library_, std::move(*graph), options);
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    return std::move(*session);
  }
  static NamedTensors count_to(int64_t limit) {
    return {{"x", Tensor::scalar<int64_t>(0)}, {"limit", Tensor::scalar(limit)}};
  }
  static constexpr int64_t kForEver = INT64_MAX;

  std::function<void()> from_host_;
};

bool is_ending(const Status& status) {
  return status.is_ok() || status.code() == StatusCode::kCancelled ||
         status.code() == StatusCode::kDeadlineExceeded;
}

struct Tally {
  std::atomic<int> submitted{0};
  std::atomic<int> called{0};
  std::atomic<int> wrong{0};
};

// One client's random doings.
void play(Session& session, uint64_t seed, int steps, Tally& tally) {
  Random random(seed);
  std::vector<RunHandle> handles;
  const auto inputs = [](int64_t limit) {
    return NamedTensors{{"x", Tensor::scalar<int64_t>(0)}, {"limit", Tensor::scalar(limit)}};
  };
  for (int i = 0; i < steps; ++i) {
    const auto limit = static_cast<int64_t>(random.below(300));
    const bool is_endless = random.below(4) == 0;
    RunOptions options;
    if (random.below(4) == 0) options.timeout = std::chrono::microseconds(random.below(3000));
    ++tally.submitted;
    handles.push_back(session.run_async(
        inputs(is_endless ? INT64_MAX : limit),
        [&tally, limit, is_endless](Result<NamedTensors> made) {
          ++tally.called;
          const bool is_right = made.is_ok()
                                    ? !is_endless && (*made)[0].second.values<int64_t>()[0] == limit
                                    : is_ending(made.status());
          if (!is_right) ++tally.wrong;
        },
        options));
    if (is_endless || random.below(3) == 0) handles[random.below(handles.size())].cancel();
    if (is_endless) handles.back().cancel();
    if (random.below(16) == 0) session.cancel_all();
    if (random.below(16) == 0) (void)session.describe_runs();
    if (random.below(8) == 0 && !is_ending(handles.back().wait())) ++tally.wrong;
  }
  for (RunHandle& handle : handles) {
    if (!is_ending(handle.wait())) ++tally.wrong;
  }
}

TEST_P(ClientsTest, SixtyFourThreadsSubmitCancelAndClose) {
  for (const bool closes : {false, true}) {
    auto session = make_counter(false, {.max_runs_in_flight = 8});
    Tally tally;
    std::vector<std::thread> clients;
    for (uint64_t t = 0; t < 64; ++t) {
      clients.emplace_back([&, t] { play(*session, t, 12, tally); });
    }
    if (closes) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      session->close();
    }
    for (std::thread& client : clients) client.join();
    session.reset();
    EXPECT_EQ(tally.called, tally.submitted);
    EXPECT_EQ(tally.wrong, 0);
  }
}

TEST_P(ClientsTest, ClosingEndsHoweverRunsStand) {
  const char* const wanted = std::getenv("EDDY_CLOSES");
  const int closes = wanted == nullptr ? 150 : std::atoi(wanted);
  enum How { kDrain, kCancel, kDeadline, kFromCallback, kNumHows };
  for (int i = 0; i < closes; ++i) {
    Random random(static_cast<uint64_t>(i));
    const int how = i % kNumHows;
    auto session = make_counter(random.below(4) == 0, {.max_runs_in_flight = 3});
    Tally tally;
    for (int r = 0; r < 5; ++r) {
      const bool is_endless = how == kCancel || how == kDeadline;
      RunOptions options;
      if (how == kDeadline) options.timeout = std::chrono::microseconds(random.below(500));
      ++tally.submitted;
      session->run_async(
          count_to(is_endless ? kForEver : static_cast<int64_t>(random.below(50))),
          [&, r](Result<NamedTensors> made) {
            if (!made.is_ok() && !is_ending(made.status())) ++tally.wrong;
            if (how == kFromCallback && r == 1) session->close();
            ++tally.called;  // last: `session` goes when all have been
          },
          options);
    }
    for (uint64_t spins = random.below(2000); spins > 0; --spins) cpu_relax();
    if (how == kCancel) session->close();
    while (how == kFromCallback && tally.called < tally.submitted) std::this_thread::yield();
    session.reset();
    ASSERT_EQ(tally.called, tally.submitted) << "close " << i;
    ASSERT_EQ(tally.wrong, 0) << "close " << i;
  }
}

TEST_P(ClientsTest, ACallbackSubmitsTheNextRun) {
  auto session = make_counter();
  std::atomic<int> left{20};
  std::atomic<int> wrong{0};
  std::function<void(Result<NamedTensors>)> next = [&](Result<NamedTensors> made) {
    if (!made.is_ok()) ++wrong;
    if (--left > 0) session->run_async(count_to(left), next);
  };
  session->run_async(count_to(7), next);
  while (left > 0) std::this_thread::yield();
  session.reset();
  EXPECT_EQ(wrong, 0);
}

TEST_P(ClientsTest, WaitingInAHostFunctionForItsOwnSessionIsRefused) {
  auto session = make_counter(/*asks_host=*/true);
  auto other = make_counter();
  std::atomic<int> refused{0};
  std::atomic<int> done_elsewhere{0};
  from_host_ = [&] {
    if (session->run(count_to(1)).status().code() == StatusCode::kWouldDeadlock) ++refused;
    if (other->run(count_to(1)).is_ok()) ++done_elsewhere;  // another session's run is no trouble
  };
  EXPECT_TRUE(session->run(count_to(3)).is_ok());
  from_host_ = nullptr;
  EXPECT_EQ(refused, 4);
  EXPECT_EQ(done_elsewhere, 4);
}

TEST_P(ClientsTest, SessionsOfOneProcessDoNotMeet) {
  auto a = make_counter();
  auto b = make_counter();
  Tally tally_a, tally_b;
  std::thread first([&] { play(*a, 1, 60, tally_a); });
  std::thread second([&] { play(*b, 2, 60, tally_b); });
  for (int i = 0; i < 20; ++i) a->cancel_all();
  first.join();
  a->close();
  second.join();
  EXPECT_TRUE(b->run(count_to(5)).is_ok());
  EXPECT_EQ(a->run(count_to(5)).status().code(), StatusCode::kCancelled);
  a.reset();
  b.reset();
  EXPECT_EQ(tally_a.wrong + tally_b.wrong, 0);
  EXPECT_EQ(tally_a.called + tally_b.called, 120);
}

#ifndef EDDY_SANITIZER  // their runtimes do not survive a fork of a process with threads
// Tries everything that a child may do with its parent's session; 0 when each attempt returned the
// error.
int try_in_child(std::unique_ptr<Session> session, Call& call, RunHandle handle) {
  const auto is_told = [](const Status& status) {
    return status.message().find("made before fork()") != std::string::npos;
  };
  const NamedTensors inputs = {{"x", Tensor::scalar<int64_t>(0)},
                               {"limit", Tensor::scalar<int64_t>(2)}};
  if (!is_told(session->run(inputs).status())) return 1;
  bool is_called = false;
  RunHandle late = session->run_async(
      inputs, [&](Result<NamedTensors> made) { is_called = is_told(made.status()); });
  if (!is_called || !is_told(late.wait())) return 2;
  if (!is_told(call.run())) return 3;
  if (!is_told(handle.wait()) || !handle.is_done()) return 4;
  handle.cancel();
  session->cancel_all();
  if (session->describe_runs().empty()) return 5;
  session->close();
  session.reset();
  return 0;
}

TEST_P(ClientsTest, AForkedChildIsToldToMakeItsOwnSession) {
  auto session = make_counter();
  auto call = session->prepare();
  ASSERT_TRUE(call.is_ok());
  RunHandle endless = session->run_async(count_to(kForEver), {});
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    int result = try_in_child(std::move(session), **call, endless);
    if (result == 0) result = make_counter()->run(count_to(9)).is_ok() ? 0 : 6;
    _exit(result);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "the child hung or crashed: " << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
  endless.cancel();
  EXPECT_EQ(endless.wait().code(), StatusCode::kCancelled);
  EXPECT_TRUE(session->run(count_to(3)).is_ok());
}

TEST_P(ClientsTest, AForkedChildMayDropThreadsThatItsParentShared) {
  auto threads = std::make_shared<SharedThreads>(1);
  auto session = make_counter(false, {.threads = threads});
  EXPECT_TRUE(session->run_async(count_to(3), [](const Result<NamedTensors>&) {}).wait().is_ok());
  session.reset();  // its threads stay
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    threads.reset();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "the child hung or crashed: " << status;
}
#endif

EDDY_IN_ALL_WAYS(ClientsTest);

}  // namespace
}  // namespace eddy
