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
    std::atomic<eddy_code> code{-1}, with_limit{-1};
  } waiting;
  waiting.other = run_of(session.get());
  bind(waiting.other.get(), 0, &x);
  bind(waiting.other.get(), 1, &limit);
  ASSERT_EQ(api().run_submit(waiting.other.get(), nullptr, nullptr, nullptr, nullptr, nullptr),
            EDDY_OK);
  const auto wait_for_other = [](void* user, eddy_run, eddy_code) {
    auto& of = *static_cast<Waiting*>(user);
    of.with_limit = api().run_wait(of.other.get(), 1'000'000, nullptr);
    of.code = api().run_wait(of.other.get(), -1, nullptr);
  };
  ASSERT_EQ(api().run_submit(run.get(), nullptr, executor.get(), wait_for_other, &waiting, nullptr),
            EDDY_OK);
  executor.reset();
  ASSERT_EQ(api().run_cancel(run.get(), nullptr), EDDY_OK);
  while (waiting.code == -1) std::this_thread::yield();
  EXPECT_EQ(waiting.code, EDDY_WOULD_DEADLOCK);
  EXPECT_EQ(waiting.with_limit, EDDY_WOULD_DEADLOCK) << "a loop until it is done would never end";
  ASSERT_EQ(api().run_cancel(waiting.other.get(), nullptr), EDDY_OK);
  EXPECT_EQ(api().run_wait(waiting.other.get(), -1, nullptr), EDDY_CANCELLED);
}

// A run that is submitted again and again by its own callback.
struct Chain {
  float x = 1;
  eddy_executor executor = nullptr;
  int num_left = 0;
  std::string wrong;
  std::atomic<bool> is_done{false};

  void note(const std::string& what, const std::string& answer) {
    if (answer != "ok" && wrong.empty()) wrong = what + ": " + answer;
  }
  static void go_on(void* user, eddy_run run, eddy_code code) {
    auto& self = *static_cast<Chain*>(user);
    if (code != EDDY_OK) self.note("the run", api().code_name(code));
    Owned<eddy_value> value;
    self.note("run_output", said([&](auto e) { return api().run_output(run, 0, value.out(), e); }));
    eddy_tensor view = {};
    self.note("value_tensor",
              said([&](auto e) { return api().value_tensor(value.get(), &view, e); }));
    if (*static_cast<const float*>(view.data) != -self.x) self.note("the output", "another");
    self.x += 1;
    const bool goes_on = self.num_left-- > 0 && self.wrong.empty();
    if (goes_on) {
      self.note("run_submit", said([&](auto e) {
                  return api().run_submit(run, nullptr, self.executor, go_on, user, e);
                }));
    }
    if (!goes_on || !self.wrong.empty()) self.is_done = true;
  }
};

// Each run is run by the thread that submits it, before that call has returned.
TEST_F(CEndings, ACallbackUsesAndSubmitsItsOwnRun) {
  Owned<eddy_graph> graph = new_graph();
  output(graph.get(), "y", op(graph.get(), "Neg", {input(graph.get(), "x", {})}));
  const Owned<eddy_session> session = session_of(graph.get());
  for (const int kind :
       {-1, int{EDDY_EXECUTOR_INLINE}, int{EDDY_EXECUTOR_THREAD}, int{EDDY_EXECUTOR_CALLER}}) {
    SCOPED_TRACE("executor " + std::to_string(kind));
    Owned<eddy_executor> executor;
    if (kind >= 0) {
      ASSERT_EQ(api().executor_create(kind, executor.out(), nullptr), EDDY_OK);
    }
    for (int round = 0; round < 20; ++round) {
      const Owned<eddy_run> run = run_of(session.get());
      Chain chain;
      chain.executor = executor.get();
      chain.num_left = 100;
      bind(run.get(), 0, &chain.x);
      ASSERT_EQ(said([&](auto e) {
                  return api().run_submit(run.get(), nullptr, executor.get(), Chain::go_on, &chain,
                                          e);
                }),
                "ok");
      while (!chain.is_done) {
        if (kind == EDDY_EXECUTOR_CALLER) {
          ASSERT_EQ(api().executor_run(executor.get(), 1, nullptr, nullptr), EDDY_OK);
        }
      }
      EXPECT_EQ(chain.wrong, "");
      EXPECT_EQ(chain.num_left, -1);
    }
  }
}

TEST_F(CEndings, OneThreadWaitsForTheRunsThatAnotherSubmits) {
  Owned<eddy_graph> graph = new_graph();
  const eddy_value_id x = input(graph.get(), "x", {3});
  const eddy_value_id at = input(graph.get(), "at", {}, EDDY_INT64);
  output(graph.get(), "y", op(graph.get(), "Gather", {x, at}));
  const Owned<eddy_session> session = session_of(graph.get());
  const Owned<eddy_run> run = run_of(session.get());
  const float numbers[] = {1, 2, 3};
  const std::vector<int64_t> dims = {3};
  const eddy_tensor of_x = tensor(numbers, dims);
  ASSERT_EQ(api().run_bind_input_memory(run.get(), 0, &of_x, nullptr), EDDY_OK);
  int64_t place = 0;
  const eddy_tensor of_at = {&place, nullptr, 0, EDDY_INT64, {}};
  ASSERT_EQ(api().run_bind_input_memory(run.get(), 1, &of_at, nullptr), EDDY_OK);
  std::atomic<bool> is_over{false};
  std::atomic<int> num_refused{0};
  std::string wrong;
  std::thread waiting([&] {
    for (int i = 0; !is_over; ++i) {
      const std::string answer = said([&](auto e) {
        return i % 2 == 0 ? api().run_poll(run.get(), e) : api().run_wait(run.get(), 1000, e);
      });
      if (answer == "ok" || answer == "not done") continue;
      ++num_refused;
      const bool is_it = answer.find("index 7 is out of range") != std::string::npos ||
                         answer.find("no run") != std::string::npos;
      if (!is_it && wrong.empty()) wrong = answer;
    }
  });
  for (int i = 0; i < 4000; ++i) {
    place = i % 2 == 0 ? 7 : 1;
    ASSERT_EQ(said([&](auto e) {
                return api().run_submit(run.get(), nullptr, nullptr, nullptr, nullptr, e);
              }),
              "ok");
    const std::string answer = said([&](auto e) { return api().run_wait(run.get(), -1, e); });
    if (i % 2 == 0) {
      EXPECT_THAT(answer, testing::HasSubstr("index 7 is out of range"));
    } else {
      EXPECT_EQ(answer, "ok");
    }
  }
  is_over = true;
  waiting.join();
  EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace eddy::c
