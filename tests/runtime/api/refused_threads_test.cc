// Claim: where the system gives no more threads, a session or run that needs one ends with
// kResourceExhausted and reports it, once; and the next run, when there are threads again, is
// right.
//
// pthread_create is replaced in this program, for libraries, too.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "graph/base/sanitizers.h"
#include "tests/runtime/testing/ways.h"

#if !EDDY_HAS_ASAN && !EDDY_HAS_TSAN  // they have one of their own

namespace {

std::atomic<bool> are_refused{false};
std::atomic<int> num_given{0};  // first, where they are refused
std::atomic<int> num_refused{0};

}  // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*run)(void*), void* argument) {
  using Create = decltype(&pthread_create);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  if (!are_refused || num_given-- > 0) return create(thread, attributes, run, argument);
  ++num_refused;
  return EAGAIN;
}

namespace eddy {
namespace {

using testing::WaysTest;

class RefusedThreadsTest : public WaysTest {
 protected:
  void SetUp() override {
    num_given = 0;
    num_refused = 0;
  }
  void TearDown() override { are_refused = false; }

  // Takes effect while a session is made that may start only the necessary threads: where the host
  // drives loops, the scheduler's. The threads of its streams are refused then, and a run requests
  // them again.
  void refuse_further() {
    num_given = GetParam().loops == Loops::kHost ? 1 : 0;
    are_refused = true;
  }

  Result<std::unique_ptr<Session>> make_counter() {
    GraphBuilder b(library_.ops());
    build_count_to_limit(b);
    return Session::create(library_, std::move(*b.finish()), options());
  }
};

void expect_no_thread(const Status& status) {
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status.to_string();
  EXPECT_NE(status.message().find("the system gives no more threads: "), std::string::npos)
      << status.to_string();
  EXPECT_GT(num_refused, 0);
}

TEST_P(RefusedThreadsTest, ARunWithACallbackSaysThatThereIsNoThreadForIt) {
  auto session = make_counter();
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  are_refused = true;
  int num_callbacks = 0;
  Status told;
  std::thread::id called_on;
  const auto callback = [&](Result<NamedTensors> outputs) {
    ++num_callbacks;
    called_on = std::this_thread::get_id();
    told = outputs.status();
  };
  RunHandle refused = (*session)->run_async(to(3), callback);
  expect_no_thread(refused.wait());
  EXPECT_EQ(num_callbacks, 1);
  EXPECT_EQ(called_on, std::this_thread::get_id());
  EXPECT_EQ(told.to_string(), refused.wait().to_string());
  are_refused = false;
  RunHandle next = (*session)->run_async(to(3), callback);
  while (!next.is_done()) std::this_thread::yield();  // nor helps, as wait() would
  EXPECT_TRUE(next.wait().is_ok()) << next.wait().to_string();
  EXPECT_EQ(num_callbacks, 2);
  EXPECT_NE(called_on, std::this_thread::get_id());
}

TEST_P(RefusedThreadsTest, ARunWithADeadlineSaysThatThereIsNoThreadForItsTimer) {
  auto session = make_counter();
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  const RunOptions options{.timeout = std::chrono::hours(1)};
  ASSERT_TRUE((*session)->run(to(3)).is_ok());  // the workers are there
  are_refused = true;
  const Status status = (*session)->run(to(3), options).status();
  // A session with host-driven loops has the timer's thread already.
  if (!status.is_ok()) expect_no_thread(status);
  EXPECT_EQ(status.is_ok(), GetParam().loops == Loops::kHost) << status.to_string();
  are_refused = false;
  EXPECT_TRUE((*session)->run(to(3), options).is_ok());
}

TEST_P(RefusedThreadsTest, ASessionThatNeedsAThreadSaysThatThereIsNone) {
  are_refused = true;
  auto session = make_counter();
  if (!session.is_ok()) expect_no_thread(session.status());
  are_refused = false;
  // Loops that the host drives need the scheduler's thread from the start.
  EXPECT_EQ(session.is_ok(), GetParam().loops == Loops::kDevice);
  if (session.is_ok()) {
    EXPECT_TRUE((*session)->run(to(3)).is_ok());
  }
}

TEST_P(RefusedThreadsTest, ARunThatNeedsWorkersSaysThatThereAreNone) {
  GraphBuilder b(library_.ops());
  build_count_to_limit(b);
  const auto other = b.while_loop(
      {.name = "other", .initial = {b.scalar(0.0f)}},
      [&](Value, ValueSpan c) {
        return WhileTest{b.op("Less", {c[0], b.scalar(9.0f)}), {c[0]}};
      },
      [&](Value, ValueSpan f) {
        return std::vector<Value>{b.op("Add", {f[0], b.scalar(1.0f)})};
      });
  b.output("other", other[0]);
  refuse_further();
  const auto session = make_session(b);
  ASSERT_NE(session, nullptr);
  num_given = 0;
  const Status status = session->run(to(3)).status();
  are_refused = false;
  if (!status.is_ok()) expect_no_thread(status);
  // A program of one strand without another driver runs on the caller's thread.
  const bool is_on_this_thread =
      GetParam().loops == Loops::kDevice && GetParam().assignment == Assignment::kSerial;
  EXPECT_EQ(status.is_ok(), is_on_this_thread) << status.to_string();
  EXPECT_TRUE(session->run(to(3)).is_ok());
}

TEST_P(RefusedThreadsTest, AStreamThatNobodyWouldMoveIsNotMade) {
  refuse_further();
  auto session = make_counter();
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  num_given = 0;
  expect_no_thread((*session)->create_stream().status());
  are_refused = false;
  auto stream = (*session)->create_stream();
  ASSERT_TRUE(stream.is_ok()) << stream.status().to_string();
  RunHandle run = (*session)->run_on(**stream, to(3), [](const auto&) {});
  EXPECT_TRUE(run.wait().is_ok()) << run.wait().to_string();
}

EDDY_IN_ALL_WAYS(RefusedThreadsTest);

}  // namespace
}  // namespace eddy

#endif
