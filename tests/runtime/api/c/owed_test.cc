// Claim: an answer that is owed and never comes keeps no caller waiting: once its run was stopped,
// each way of waiting returns with which node owes it, the memory that it may still write stays,
// and when the answer does come the run is usable again. What a caller's function throws, and waits
// of functions that a run waits for, are refused likewise.
#include <poll.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/runtime/api/c/fixture.h"

namespace eddy::c {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kDeadlineNs = 200'000'000;  // the kernel is called before, also on a slow machine

// y = Wait(x), whose kernel answers later: never, unless the test does.
struct Owed {
  std::atomic<eddy_pending> pending{nullptr};
  std::atomic<float*> to{nullptr};
  std::atomic<int> destroyed{0};
  bool answers = false;
};

class COwed : public CApi {
 protected:
  COwed() {
    eddy_operator op = operator_of("Wait", &owed);
    op.flags = EDDY_ANSWERS_LATER;
    op.run = [](void* user, const eddy_call* call) -> eddy_code {
      auto& mine = *static_cast<Owed*>(user);
      auto* const to = static_cast<float*>(call->outputs[0].data);
      if (mine.answers) {
        *to = *static_cast<const float*>(call->inputs[0].data) + 1;
        return EDDY_OK;
      }
      mine.to = to;
      mine.pending = call->defer(call->impl);
      return EDDY_LATER;
    };
    op.destroy = [](void* user) { ++static_cast<Owed*>(user)->destroyed; };
    add(op);
  }

  static eddy_value_id wait_node(eddy_graph g, eddy_value_id x) {
    const eddy_location where = {sizeof(where), "prog.calc", 12, 3, "y = wait(x)"};
    return own_op(g, "Wait", x, {}, "slow", &where);
  }

  Owned<eddy_session> waiting_session(const char* limit_ms = "10") {
    Owned<eddy_graph> graph = new_graph();
    output(graph.get(), "y", wait_node(graph.get(), input(graph.get(), "x", {})));
    return session_of(graph.get(), {{"answer_limit_ms", limit_ms}});
  }

  Owned<eddy_run> bound_run(eddy_session session) {
    Owned<eddy_run> run = run_of(session);
    bind(run.get(), 0, &x);
    return run;
  }

  // The test is the last that owes.
  void answer() {
    *owed.to.load() = 7;
    EXPECT_EQ(api().pending_complete(owed.pending, EDDY_OK, 0, nullptr, nullptr), EDDY_OK);
  }
  // All that was made has gone: nothing of a run that was left stays behind.
  void TearDown() override { await_end(); }
  void await_end() {
    library.reset();
    while (owed.destroyed == 0) std::this_thread::yield();
  }
  void await_call() {
    while (owed.pending == nullptr) std::this_thread::yield();
  }

  const float x = 4;
  Owed owed;
  const eddy_run_options late = {sizeof(late), kDeadlineNs, 0};
};

TEST_F(COwed, TheDeadlineNamesTheNodeThatOwesAndTheRunIsUsableOnceItHasAnswered) {
  Owned<eddy_session> session = waiting_session();
  Owned<eddy_run> run = bound_run(session.get());
  EXPECT_THAT(said([&](auto e) { return api().run_execute(run.get(), &late, e); }),
              AllOf(HasSubstr("deadline exceeded: prog.calc:12:3: "), HasSubstr("slow"),
                    HasSubstr("passed its deadline and waits for the answer that Wait owes")));
  EXPECT_EQ(api().run_wait(run.get(), -1, nullptr), EDDY_DEADLINE_EXCEEDED);
  EXPECT_EQ(api().run_wait(run.get(), 1'000'000, nullptr), EDDY_DEADLINE_EXCEEDED);
  EXPECT_EQ(api().run_poll(run.get(), nullptr), EDDY_DEADLINE_EXCEEDED);
  const auto in_use = AllOf(HasSubstr("invalid state"), HasSubstr("under way still"),
                            HasSubstr("the answer that Wait owes"));
  EXPECT_THAT(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), in_use);
  EXPECT_THAT(said([&](auto e) {
                return api().run_submit(run.get(), nullptr, nullptr, nullptr, nullptr, e);
              }),
              in_use);
  eddy_tensor view = {};
  EXPECT_THAT(said([&](auto e) { return api().run_output_memory(run.get(), 0, &view, e); }),
              in_use);
  eddy_metrics metrics = {};
  metrics.struct_size = sizeof(metrics);
  ASSERT_EQ(api().session_metrics(session.get(), &metrics, nullptr), EDDY_OK);
  EXPECT_EQ(metrics.runs_late, 1u);
  EXPECT_EQ(metrics.runs_in_flight, 1u);

  answer();
  // Its end, which is a moment later, may be waited for; it fails with the deadline, as it would
  // have.
  EXPECT_EQ(api().run_wait(run.get(), -1, nullptr), EDDY_DEADLINE_EXCEEDED);
  owed.answers = true;
  EXPECT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
  EXPECT_THAT(output_of(run.get(), 0), ElementsAre(5));
  ASSERT_EQ(api().session_metrics(session.get(), &metrics, nullptr), EDDY_OK);
  EXPECT_EQ(metrics.runs_late, 1u) << "it was counted when its caller had it";
  EXPECT_EQ(metrics.runs_succeeded, 1u);
}

TEST_F(COwed, AnAnswerWithinTheLimitIsWaitedFor) {
  Owned<eddy_session> session = waiting_session("60000");
  Owned<eddy_run> run = bound_run(session.get());
  std::thread answers([&] {
    await_call();
    std::this_thread::sleep_for(std::chrono::nanoseconds(2 * kDeadlineNs));
    answer();
  });
  EXPECT_THAT(said([&](auto e) { return api().run_execute(run.get(), &late, e); }),
              AllOf(HasSubstr("passed its deadline"), testing::Not(HasSubstr("owes"))));
  answers.join();
  EXPECT_EQ(api().run_poll(run.get(), nullptr), EDDY_DEADLINE_EXCEEDED);
}

TEST_F(COwed, WithoutADeadlineACancelByAnotherThreadEndsTheWait) {
  Owned<eddy_session> session = waiting_session();
  Owned<eddy_run> run = bound_run(session.get());
  std::thread cancels([&] {
    await_call();
    EXPECT_EQ(api().run_cancel(run.get(), nullptr), EDDY_OK);
  });
  EXPECT_THAT(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }),
              AllOf(HasSubstr("cancelled: "), HasSubstr("Wait owes")));
  cancels.join();
  answer();
}

// Its callback comes once, and what the late answer writes to outlives every handle.
TEST_F(COwed, ASubmittedRunCallsBackOnceAndKeepsAllThatItUses) {
  struct Told {
    std::atomic<int> count{0};
    std::atomic<eddy_code> code{EDDY_OK};
    std::atomic<eddy_code> again{EDDY_OK};
  } told;
  Owned<eddy_session> session = waiting_session();
  Owned<eddy_run> run = bound_run(session.get());
  int fd = -1;
  ASSERT_EQ(api().run_fd(run.get(), &fd, nullptr), EDDY_OK);
  const eddy_run_callback ended = [](void* user, eddy_run of, eddy_code code) {
    auto& mine = *static_cast<Told*>(user);
    mine.code = code;
    mine.again = api().run_submit(of, nullptr, nullptr, nullptr, nullptr, nullptr);
    ++mine.count;
  };
  ASSERT_EQ(
      said([&](auto e) { return api().run_submit(run.get(), &late, nullptr, ended, &told, e); }),
      "ok");
  while (told.count == 0) std::this_thread::yield();
  EXPECT_EQ(told.code, EDDY_DEADLINE_EXCEEDED);
  EXPECT_EQ(told.again, EDDY_INVALID_STATE);
  pollfd ready = {fd, POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 10'000), 1);
  EXPECT_EQ(api().session_close(session.get(), nullptr), EDDY_NOT_DONE);
  run.reset();
  session.reset();
  library.reset();
  context.reset();
  EXPECT_EQ(owed.destroyed, 0);
  answer();
  await_end();
  EXPECT_EQ(told.count, 1);
}

TEST_F(COwed, ARunWithoutACallbackIsCancelledWithItsHandleAndNothingWaits) {
  Owned<eddy_session> session = waiting_session();
  Owned<eddy_run> run = bound_run(session.get());
  ASSERT_EQ(api().run_submit(run.get(), nullptr, nullptr, nullptr, nullptr, nullptr), EDDY_OK);
  await_call();
  run.reset();
  session.reset();
  library.reset();
  answer();
}

TEST_F(COwed, ARunByNameIsLeftLikewise) {
  Owned<eddy_session> session = waiting_session();
  const eddy_tensor of = tensor(&x, {});
  Owned<eddy_value> value;
  ASSERT_EQ(api().value_copy(&of, value.out(), nullptr), EDDY_OK);
  const char* const in = "x";
  const char* const out = "y";
  const eddy_value given = value.get();
  Owned<eddy_value> made;
  const auto run = [&](const eddy_run_options* options, eddy_error* e) {
    return api().session_run(session.get(), &in, &given, 1, &out, made.out(), 1, options, e);
  };
  EXPECT_THAT(said([&](auto e) { return run(&late, e); }), HasSubstr("the answer that Wait owes"));
  value.reset();
  answer();
  owed.answers = true;
  ASSERT_EQ(api().value_copy(&of, value.out(), nullptr), EDDY_OK);
  const eddy_value next = value.get();
  EXPECT_EQ(said([&](auto e) {
              return api().session_run(session.get(), &in, &next, 1, &out, made.out(), 1, nullptr,
                                       e);
            }),
            "ok");
  EXPECT_THAT(floats(made.get()), ElementsAre(5));
}

// Many runs, some answered just as their limit passes: each is either in time or late, none hangs
// and none is lost.
TEST_F(COwed, AnAnswerBesideTheLimitIsOneOrTheOther) {
  Owned<eddy_session> session = waiting_session("1");
  const eddy_run_options soon = {sizeof(soon), 1'000'000, 0};
  for (int i = 0; i < 60; ++i) {
    Owned<eddy_run> run = bound_run(session.get());
    owed.pending = nullptr;
    std::atomic<bool> has_result{false};
    std::thread answers([&, i] {
      // On a slow machine the deadline may pass before the kernel is called: nothing is owed then.
      while (owed.pending == nullptr && !has_result) std::this_thread::yield();
      if (owed.pending == nullptr) return;
      std::this_thread::sleep_for(std::chrono::microseconds(1500 + 20 * i));
      answer();
    });
    EXPECT_EQ(api().run_execute(run.get(), &soon, nullptr), EDDY_DEADLINE_EXCEEDED);
    has_result = true;
    if (i % 2 == 0) run.reset();
    answers.join();
  }
  while (api().session_close(session.get(), nullptr) == EDDY_NOT_DONE) std::this_thread::yield();
}

TEST_F(COwed, AHostFunctionMayNotRunASessionOfItsThreadsThatMayOwe) {
  struct Inner {
    eddy_run run;
    eddy_code code = EDDY_OK;
  } inner;
  Owned<eddy_session> session = waiting_session();
  Owned<eddy_run> run = bound_run(session.get());
  inner.run = run.get();
  Owned<eddy_library> other;
  ASSERT_EQ(api().library_create(context.get(), other.out(), nullptr), EDDY_OK);
  const eddy_decide decide = [](void* user, const eddy_call*, int64_t* decision) -> eddy_code {
    auto& mine = *static_cast<Inner*>(user);
    mine.code = api().run_execute(mine.run, nullptr, nullptr);
    *decision = 0;
    return EDDY_OK;
  };
  ASSERT_EQ(
      api().library_add_host_function(other.get(), "ask", 0, decide, &inner, nullptr, nullptr),
      EDDY_OK);
  library = std::move(other);
  Owned<eddy_graph> graph = new_graph();
  output(graph.get(), "y", decided(graph.get(), "ask", input(graph.get(), "x", {})));
  Owned<eddy_session> outer = session_of(graph.get());
  Owned<eddy_run> asks = bound_run(outer.get());
  EXPECT_EQ(said([&](auto e) { return api().run_execute(asks.get(), nullptr, e); }), "ok");
  EXPECT_EQ(inner.code, EDDY_WOULD_DEADLOCK);
  EXPECT_EQ(owed.pending, nullptr) << "a run was begun that was refused";
}

// A run that waits behind it in a stream was told of its end, and holds nothing up.
TEST_F(COwed, ClosingWaitsForNoRunInAStreamBehindOneThatOwes) {
  Owned<eddy_session> session = waiting_session();
  Owned<eddy_stream> stream;
  ASSERT_EQ(api().session_create_stream(session.get(), stream.out(), nullptr), EDDY_OK);
  Owned<eddy_run> first = bound_run(session.get());
  Owned<eddy_run> second = bound_run(session.get());
  for (const eddy_run run : {first.get(), second.get()}) {
    ASSERT_EQ(said([&](auto e) {
                return api().run_submit_on(run, stream.get(), nullptr, nullptr, nullptr, nullptr,
                                           e);
              }),
              "ok");
  }
  await_call();
  EXPECT_EQ(api().session_close(session.get(), nullptr), EDDY_NOT_DONE);
  EXPECT_EQ(api().run_wait(second.get(), -1, nullptr), EDDY_CANCELLED);
  answer();
  EXPECT_EQ(api().session_close(session.get(), nullptr), EDDY_OK);
}

// x fails beside Wait(x), which owes: the reason is the failure.
TEST_F(COwed, AFailureElsewhereIsTold) {
  eddy_operator fails = operator_of("Fail", &owed);
  // Where the two are on one stream this one goes first, so it waits until the other owes.
  fails.flags = EDDY_ANSWERS_LATER;
  fails.run = [](void* user, const eddy_call* call) -> eddy_code {
    auto& mine = *static_cast<Owed*>(user);
    const eddy_pending pending = call->defer(call->impl);
    std::thread([&mine, pending] {
      while (mine.pending == nullptr) std::this_thread::yield();
      EXPECT_EQ(api().pending_complete(pending, EDDY_RUN_FAILED, 0, "disk is full", nullptr),
                EDDY_OK);
    }).detach();
    return EDDY_LATER;
  };
  add(fails);
  Owned<eddy_graph> graph = new_graph();
  const eddy_value_id in = input(graph.get(), "x", {});
  output(graph.get(), "y", wait_node(graph.get(), in));
  output(graph.get(), "z", own_op(graph.get(), "Fail", in, {}, "failing"));
  Owned<eddy_session> session = session_of(
      graph.get(), {{"answer_limit_ms", "10"}, {"threads", "2"}, {"assignment", "rank"}});
  Owned<eddy_run> run = bound_run(session.get());
  EXPECT_THAT(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }),
              AllOf(HasSubstr("run failed"), HasSubstr("failing"), HasSubstr("disk is full"),
                    HasSubstr("the answer that Wait at slow owes")));
  answer();
  EXPECT_EQ(api().run_wait(run.get(), -1, nullptr), EDDY_RUN_FAILED);
}

// Functions that a run waits for may not wait for it.
TEST_F(COwed, AFunctionOfAStopMayNotWaitForItsRun) {
  struct Stop {
    eddy_run run = nullptr;
    eddy_session session = nullptr;
    std::atomic<int> count{0};
    std::atomic<eddy_code> wait{EDDY_OK}, limited{EDDY_OK}, close{EDDY_OK};
  } stop;
  Owned<eddy_session> session = waiting_session();
  Owned<eddy_run> run = bound_run(session.get());
  stop.run = run.get();
  stop.session = session.get();
  const eddy_function stopped = [](void* user) {
    auto& mine = *static_cast<Stop*>(user);
    mine.wait = api().run_wait(mine.run, -1, nullptr);
    mine.limited = api().run_wait(mine.run, 1'000'000'000'000, nullptr);
    mine.close = api().session_close(mine.session, nullptr);
    ++mine.count;
  };
  std::thread asks([&] {
    await_call();
    EXPECT_EQ(api().pending_on_stop(owed.pending, stopped, &stop, nullptr), EDDY_OK);
    EXPECT_EQ(api().run_cancel(run.get(), nullptr), EDDY_OK);
  });
  EXPECT_EQ(api().run_execute(run.get(), nullptr, nullptr), EDDY_CANCELLED);
  asks.join();
  EXPECT_EQ(stop.count, 1);
  EXPECT_EQ(stop.wait, EDDY_WOULD_DEADLOCK);
  EXPECT_EQ(stop.limited, EDDY_WOULD_DEADLOCK);
  EXPECT_EQ(stop.close, EDDY_NOT_DONE);
  answer();
}

}  // namespace
}  // namespace eddy::c
