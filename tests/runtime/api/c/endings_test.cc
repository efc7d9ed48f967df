// Claim: the end of a run reaches the caller's loop and descriptors by the thread that sees it,
// whatever other callbacks do, and nothing of the caller's is called or let go of there.
#include <poll.h>

#include <atomic>
#include <thread>

#include "tests/runtime/api/c/fixture.h"

namespace eddy::c {
namespace {

class CEndings : public CApi {};

struct Seen {
  std::atomic<int> calls{0};
  std::atomic<eddy_code> code{-1};
};
void see(void* user, eddy_run, eddy_code code) {
  auto& seen = *static_cast<Seen*>(user);
  seen.code = code;
  ++seen.calls;
}

struct Gate {
  std::atomic<bool> is_reached{false};
  std::atomic<bool> is_open{false};
  std::atomic<bool> is_left{false};
};
void wait_at(void* gate, eddy_run, eddy_code) {
  auto& at = *static_cast<Gate*>(gate);
  at.is_reached = true;
  while (!at.is_open) std::this_thread::yield();
  at.is_left = true;
}

TEST_F(CEndings, TheCallersLoopAndDescriptorsDoNotWaitForACallbackThatBlocks) {
  Owned<eddy_session> session = session_of(doubling().get());
  const float x = 1;
  const float limit = 100;
  Owned<eddy_run> runs[3];
  for (Owned<eddy_run>& each : runs) {
    each = run_of(session.get());
    bind(each.get(), 0, &x);
    bind(each.get(), 1, &limit);
  }
  Gate gate;
  ASSERT_EQ(api().run_submit(runs[0].get(), nullptr, nullptr, wait_at, &gate, nullptr), EDDY_OK);
  while (!gate.is_reached) std::this_thread::yield();
  Owned<eddy_executor> executor;
  ASSERT_EQ(api().executor_create(EDDY_EXECUTOR_CALLER, executor.out(), nullptr), EDDY_OK);
  pollfd files[] = {{-1, POLLIN, 0}, {-1, POLLIN, 0}};
  ASSERT_EQ(api().executor_fd(executor.get(), &files[0].fd, nullptr), EDDY_OK);
  ASSERT_EQ(api().run_fd(runs[2].get(), &files[1].fd, nullptr), EDDY_OK);
  Seen seen;
  ASSERT_EQ(api().run_submit(runs[1].get(), nullptr, executor.get(), see, &seen, nullptr), EDDY_OK);
  ASSERT_EQ(api().run_submit(runs[2].get(), nullptr, nullptr, nullptr, nullptr, nullptr), EDDY_OK);
  for (pollfd& each : files) EXPECT_EQ(poll(&each, 1, 30'000), 1);
  EXPECT_EQ(api().run_poll(runs[2].get(), nullptr), EDDY_OK);
  ASSERT_EQ(api().executor_run(executor.get(), 10, nullptr, nullptr), EDDY_OK);
  EXPECT_EQ(seen.calls, 1);
  EXPECT_EQ(seen.code, EDDY_OK);
  gate.is_open = true;
  while (!gate.is_left) std::this_thread::yield();
}

// All that the last callback lets go of goes, while the thread that has ended the run is still in
// its last steps.
TEST_F(CEndings, TheLastHandleOfASessionMayGoInACallbackOfTheCallersLoop) {
  const Owned<eddy_graph> graph = doubling();
  const float x = 1;
  const float limit = 4;
  for (int round = 0; round < 300; ++round) {
    Owned<eddy_executor> executor;
    ASSERT_EQ(api().executor_create(EDDY_EXECUTOR_CALLER, executor.out(), nullptr), EDDY_OK);
    Owned<eddy_session> session = session_of(graph.get());
    Owned<eddy_run> run = run_of(session.get());
    bind(run.get(), 0, &x);
    bind(run.get(), 1, &limit);
    Seen seen;
    ASSERT_EQ(api().run_submit(run.get(), nullptr, executor.get(), see, &seen, nullptr), EDDY_OK);
    run.reset();
    session.reset();
    size_t count = 0;
    while (count == 0) {
      ASSERT_EQ(api().executor_run(executor.get(), 1, &count, nullptr), EDDY_OK);
    }
    EXPECT_EQ(seen.code, EDDY_OK);
  }
}

TEST_F(CEndings, ARunThatIsAwaitedByItsDescriptorGoesWithItsLastHandle) {
  const Owned<eddy_graph> graph = doubling();
  const float x = 1;
  const float limit = 4;
  for (int round = 0; round < 300; ++round) {
    Owned<eddy_session> session = session_of(graph.get());
    Owned<eddy_run> run = run_of(session.get());
    bind(run.get(), 0, &x);
    bind(run.get(), 1, &limit);
    pollfd file = {-1, POLLIN, 0};
    ASSERT_EQ(api().run_fd(run.get(), &file.fd, nullptr), EDDY_OK);
    ASSERT_EQ(api().run_submit(run.get(), nullptr, nullptr, nullptr, nullptr, nullptr), EDDY_OK);
    if (round % 3 == 0) {
      ASSERT_EQ(poll(&file, 1, 30'000), 1);
      ASSERT_EQ(api().run_poll(run.get(), nullptr), EDDY_OK);
    }
    const eddy_run handle = run.get();
    run.reset();
    session.reset();
    // Nothing but the run itself holds it, until it has ended.
    while (api().run_poll(handle, nullptr) != EDDY_INVALID_HANDLE) std::this_thread::yield();
  }
}

// Nobody drains it: the callback comes from Eddy's thread, which may not wait for the session.
TEST_F(CEndings, ARunThatOutlivesItsCallersLoopCallsWhereWaitingIsRefused) {
  Owned<eddy_session> session = session_of(doubling().get());
  Owned<eddy_run> run = run_of(session.get());
  const float x = 0;  // endless
  const float limit = 1;
  bind(run.get(), 0, &x);
  bind(run.get(), 1, &limit);
  Owned<eddy_executor> executor;
  ASSERT_EQ(api().executor_create(EDDY_EXECUTOR_CALLER, executor.out(), nullptr), EDDY_OK);
  struct Waiting {
    Owned<eddy_run> other;
    std::atomic<eddy_code> code{-1};
  } waiting;
  waiting.other = run_of(session.get());
  bind(waiting.other.get(), 0, &x);
  bind(waiting.other.get(), 1, &limit);
  ASSERT_EQ(api().run_submit(waiting.other.get(), nullptr, nullptr, nullptr, nullptr, nullptr),
            EDDY_OK);
  const auto wait_for_other = [](void* user, eddy_run, eddy_code) {
    auto& of = *static_cast<Waiting*>(user);
    of.code = api().run_wait(of.other.get(), -1, nullptr);
  };
  ASSERT_EQ(api().run_submit(run.get(), nullptr, executor.get(), wait_for_other, &waiting, nullptr),
            EDDY_OK);
  executor.reset();
  ASSERT_EQ(api().run_cancel(run.get(), nullptr), EDDY_OK);
  while (waiting.code == -1) std::this_thread::yield();
  EXPECT_EQ(waiting.code, EDDY_WOULD_DEADLOCK);
  ASSERT_EQ(api().run_cancel(waiting.other.get(), nullptr), EDDY_OK);
  EXPECT_EQ(api().run_wait(waiting.other.get(), -1, nullptr), EDDY_CANCELLED);
}

}  // namespace
}  // namespace eddy::c
