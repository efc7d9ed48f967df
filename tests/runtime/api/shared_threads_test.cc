// Claim: sessions that share threads give what they give alone, may go in any order, and never
// wait for each other where the wait could not end.
#include "runtime/api/shared_threads.h"

#include <atomic>
#include <future>
#include <thread>

#include "tests/runtime/testing/ways.h"

namespace eddy {
namespace {

using testing::WaysTest;

const ValueType kFloat = tensor_type(ElementType::kFloat, {});

class SharedThreadsTest : public WaysTest {
 protected:
  // y = x + n by counting to `limit`; endless when the limit is out of reach.
  std::unique_ptr<Session> make_counter(SessionOptions options) {
    GraphBuilder b(library_.ops());
    const Value x = b.input("x", kFloat);
    const Value limit = b.input("limit", kFloat);
    const auto y = b.while_loop(
        {.name = "count", .initial = {x}},
        [&](Value, ValueSpan c) {
          return WhileTest{b.op("Less", {c[0], limit}), {c[0]}};
        },
        [&](Value, ValueSpan f) {
          return std::vector<Value>{b.op("Add", {f[0], b.scalar(1.0f)})};
        });
    b.output("y", y[0]);
    return finish(b, std::move(options));
  }
  // go = the result of the host function "ask".
  std::unique_ptr<Session> make_asker(SessionOptions options) {
    GraphBuilder b(library_.ops());
    const Value x = b.input("x", kFloat);
    OpOptions host;
    host.domain = "eddy";
    b.output("go", b.op("HostPredicate", {x}, {{"name", std::string("ask")}}, host));
    return finish(b, std::move(options));
  }
  std::unique_ptr<Session> finish(GraphBuilder& b, SessionOptions options) {
    auto graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    auto session = Session::create(library_, std::move(*graph), options);
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    return std::move(*session);
  }
  SessionOptions shared() const {
    SessionOptions result = options();
    result.num_threads = 0;
    result.threads = threads_;
    return result;
  }
  static NamedTensors inputs(float x, float limit) {
    return {{"x", Tensor::scalar(x)}, {"limit", Tensor::scalar(limit)}};
  }
  static float value(const Result<NamedTensors>& outputs) {
    return outputs.is_ok() ? (*outputs)[0].second.values<float>()[0] : -1.0f;
  }

  std::shared_ptr<SharedThreads> threads_ = std::make_shared<SharedThreads>(2);
};

TEST_P(SharedThreadsTest, TwoSessionsRunBesideEachOtherOnTheSameThreads) {
  auto a = make_counter(shared());
  auto b = make_counter(shared());
  EXPECT_EQ(threads_->num_workers(), 2);
  std::vector<RunHandle> handles;
  std::atomic<int> num_right{0};
  constexpr int kRuns = 50;
  for (int i = 0; i < kRuns; ++i) {
    for (Session* session : {a.get(), b.get()}) {
      handles.push_back(session->run_async(inputs(0, static_cast<float>(i)),
                                           [&num_right, i](Result<NamedTensors> outputs) {
                                             num_right += value(outputs) == static_cast<float>(i);
                                           }));
    }
    EXPECT_EQ(value(a->run(inputs(0, 7))), 7.0f);
  }
  for (RunHandle& handle : handles) EXPECT_TRUE(handle.wait().is_ok());
  EXPECT_EQ(num_right, 2 * kRuns);
}

TEST_P(SharedThreadsTest, AnEndlessRunOfOneDoesNotHoldUpTheOther) {
  auto a = make_counter(shared());
  auto b = make_counter(shared());
  std::vector<RunHandle> endless;
  for (int i = 0; i < 3; ++i) endless.push_back(a->run_async(inputs(1e30f, 2e30f), {}));
  EXPECT_EQ(value(b->run(inputs(0, 1000))), 1000.0f);
  EXPECT_TRUE(b->run_async(inputs(0, 1000), {}).wait().is_ok());
  a->close();
  for (RunHandle& handle : endless) EXPECT_EQ(handle.wait().code(), StatusCode::kCancelled);
  EXPECT_EQ(value(b->run(inputs(0, 3))), 3.0f);
}

TEST_P(SharedThreadsTest, SessionsAndTheirThreadsGoInAnyOrder) {
  for (const bool is_first_first : {true, false}) {
    for (int round = 0; round < 20; ++round) {
      threads_ = std::make_shared<SharedThreads>(2);
      auto a = make_counter(shared());
      auto b = make_counter(shared());
      threads_ = nullptr;
      const RunOptions soon{.timeout = std::chrono::milliseconds(1 + round % 3)};
      RunHandle of_a = a->run_async(inputs(1e30f, 2e30f), {}, soon);
      RunHandle of_b = b->run_async(inputs(0, 500), {}, {.timeout = std::chrono::seconds(20)});
      std::unique_ptr<Session>& first = is_first_first ? a : b;
      std::unique_ptr<Session>& second = is_first_first ? b : a;
      first = nullptr;  // waits for its own run
      EXPECT_TRUE((is_first_first ? of_a : of_b).is_done());
      if (second == b) {
        EXPECT_EQ(value(second->run(inputs(0, 5))), 5.0f);
      }
      second = nullptr;
      EXPECT_EQ(of_a.wait().code(), StatusCode::kDeadlineExceeded);
      EXPECT_TRUE(of_b.wait().is_ok());
    }
  }
}

TEST_P(SharedThreadsTest, ASessionTakesOverTheCallbackThreadOfOneThatWentAndSharesNone) {
  const auto thread_of_callbacks = [&](Session& session) {
    std::thread::id id;
    RunHandle handle = session.run_async(inputs(0, 3), [&id](Result<NamedTensors> outputs) {
      EXPECT_EQ(value(outputs), 3.0f);
      id = std::this_thread::get_id();
    });
    while (!handle.is_done()) std::this_thread::yield();  // nor helps, as wait() would
    EXPECT_TRUE(handle.wait().is_ok());
    return id;
  };
  auto a = make_counter(shared());
  auto b = make_counter(shared());
  const std::thread::id of_a = thread_of_callbacks(*a);
  const std::thread::id of_b = thread_of_callbacks(*b);
  EXPECT_NE(of_a, of_b);
  EXPECT_NE(of_a, std::this_thread::get_id());
  a.reset();
  auto c = make_counter(shared());
  EXPECT_EQ(thread_of_callbacks(*c), of_a);
  EXPECT_EQ(thread_of_callbacks(*b), of_b);
}

TEST_P(SharedThreadsTest, MoreSessionsThanAreKeptThreadsForComeAndGo) {
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<Session>> sessions;
    std::vector<RunHandle> handles;
    std::atomic<int> num_right{0};
    for (int i = 0; i < 12; ++i) {
      sessions.push_back(make_counter(shared()));
      handles.push_back(sessions.back()->run_async(inputs(0, 5), [&](Result<NamedTensors> outputs) {
        num_right += value(outputs) == 5.0f;
      }));
    }
    sessions.clear();  // each waits for its callback
    EXPECT_EQ(num_right, 12);
    for (RunHandle& handle : handles) EXPECT_TRUE(handle.wait().is_ok());
  }
}

TEST_P(SharedThreadsTest, ResultsOutliveSessionsAndThreads) {
  Tensor y;
  {
    auto session = make_counter(shared());
    threads_ = nullptr;
    y = (*session->run(inputs(0, 7)))[0].second;
  }
  EXPECT_EQ(y.values<float>()[0], 7.0f);
}

TEST_P(SharedThreadsTest, AHostFunctionMayNotWaitForTheOtherSessionButACallbackMay) {
  std::unique_ptr<Session> other;
  std::atomic<StatusCode> of_run{StatusCode::kOk};
  std::atomic<StatusCode> of_wait{StatusCode::kOk};
  ASSERT_TRUE(library_
                  .add_host_function("ask",
                                     [&](std::span<const TensorView>) -> Result<int64_t> {
                                       of_run = other->run(inputs(0, 3)).status().code();
                                       RunHandle long_run = other->run_async(inputs(0, 1e6f), {});
                                       of_wait = long_run.wait().code();
                                       long_run.cancel();
                                       return 1;
                                     })
                  .is_ok());
  other = make_counter(shared());
  auto asker = make_asker(shared());
  ASSERT_TRUE(asker->run_async({{"x", Tensor::scalar(1.0f)}}, {}).wait().is_ok());
  EXPECT_EQ(of_run, StatusCode::kWouldDeadlock);
  EXPECT_EQ(of_wait, StatusCode::kWouldDeadlock);

  std::promise<float> in_callback;
  asker->run_async({{"x", Tensor::scalar(1.0f)}}, [&](Result<NamedTensors>) {
    in_callback.set_value(value(other->run(inputs(0, 9))));
  });
  EXPECT_EQ(in_callback.get_future().get(), 9.0f);

  // With threads of its own, a host function may wait for the other session.
  auto alone = make_asker(options());
  ASSERT_TRUE(alone->run_async({{"x", Tensor::scalar(1.0f)}}, {}).wait().is_ok());
  EXPECT_EQ(of_run, StatusCode::kOk);
  EXPECT_EQ(of_wait, StatusCode::kOk);
}

TEST_P(SharedThreadsTest, CloseInAHostFunctionOfTheOtherReturns) {
  std::unique_ptr<Session> other;
  ASSERT_TRUE(library_
                  .add_host_function("ask",
                                     [&](std::span<const TensorView>) -> Result<int64_t> {
                                       other->close();
                                       return 1;
                                     })
                  .is_ok());
  other = make_counter(shared());
  auto asker = make_asker(shared());
  RunHandle endless = other->run_async(inputs(1e30f, 2e30f), {});
  ASSERT_TRUE(asker->run({{"x", Tensor::scalar(1.0f)}}).is_ok());
  EXPECT_EQ(endless.wait().code(), StatusCode::kCancelled);
}

TEST_P(SharedThreadsTest, AnotherNumberOfThreadsIsRefused) {
  SessionOptions wrong = shared();
  wrong.num_threads = 3;
  GraphBuilder b(library_.ops());
  b.output("y", b.op("Neg", {b.input("x", kFloat)}));
  EXPECT_EQ(Session::create(library_, std::move(*b.finish()), wrong).status().message(),
            "num_threads is 3, but the shared threads have 2 workers; leave num_threads 0");
}

EDDY_IN_ALL_WAYS(SharedThreadsTest);

}  // namespace
}  // namespace eddy
