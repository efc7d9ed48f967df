// Claim: an operator's state of a run is made before its node's first call in the run, is seen by
// every call there whatever way it runs, by no other run, and is ended before the run's end is
// known.
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "tests/runtime/api/c/fixture.h"

namespace eddy::c {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// A state of a run that counts its calls, which are the output; in how many states.
struct RunCounts {
  std::atomic<int> begun{0}, ended{0};
  std::atomic<bool> fails{false};
};

eddy_operator counting(eddy_operator op) {
  op.begin_run = [](void* user, void* state, void** run_state) -> eddy_code {
    auto& counts = *static_cast<RunCounts*>(user);
    EXPECT_EQ(state, nullptr);
    if (counts.fails) return EDDY_RESOURCE_EXHAUSTED;
    ++counts.begun;
    *run_state = new float(0);
    return EDDY_OK;
  };
  op.end_run = [](void* user, void*, void* run_state) {
    ++static_cast<RunCounts*>(user)->ended;
    delete static_cast<float*>(run_state);
  };
  op.run = [](void*, const eddy_call* call) -> eddy_code {
    *static_cast<float*>(call->outputs[0].data) = ++*static_cast<float*>(call->run_state);
    return EDDY_OK;
  };
  return op;
}

// y counts the calls in a loop of 5 iterations, z those of one node more.
Owned<eddy_graph> counting_loop(Owned<eddy_graph> graph, eddy_value_id x,
                                eddy_value_id (*count)(eddy_graph, eddy_value_id)) {
  eddy_graph g = graph.get();
  const int64_t five = 5;
  const eddy_tensor of = {const_cast<int64_t*>(&five), nullptr, 0, EDDY_INT64, {}};
  eddy_value_id trips = 0;
  EXPECT_EQ(api().graph_constant(g, &of, "", &trips, nullptr), EDDY_OK);
  const bool yes = true;
  const eddy_tensor always = {const_cast<bool*>(&yes), nullptr, 0, EDDY_BOOL, {}};
  eddy_value_id goes_on = 0;
  EXPECT_EQ(api().graph_constant(g, &always, "", &goes_on, nullptr), EDDY_OK);
  eddy_while loop = {};
  loop.struct_size = sizeof(loop);
  loop.initial = &x;
  loop.num_carried = 1;
  loop.trip_limit = trips;
  eddy_value_id before[2] = {}, after[2] = {}, y = 0;
  EXPECT_EQ(api().graph_begin_while(g, &loop, before, nullptr), EDDY_OK);
  EXPECT_EQ(api().graph_begin_after(g, goes_on, &before[1], 1, after, nullptr), EDDY_OK);
  const eddy_value_id next = count(g, after[1]);
  EXPECT_EQ(said([&](auto e) { return api().graph_end_while(g, &next, 1, &y, 1, e); }), "ok");
  EXPECT_EQ(api().graph_output(g, "y", y, nullptr), EDDY_OK);
  EXPECT_EQ(api().graph_output(g, "z", count(g, x), nullptr), EDDY_OK);
  return graph;
}

class CRunState : public CApi {
 protected:
  Owned<eddy_graph> counting_loop_of() {
    Owned<eddy_graph> graph = new_graph();
    const eddy_value_id x = input(graph.get(), "x", {});
    return counting_loop(std::move(graph), x,
                         [](eddy_graph g, eddy_value_id of) { return own_op(g, "Count", of); });
  }
  static void expect_counts(eddy_run run) {
    EXPECT_THAT(output_of(run, 0), ElementsAre(5));
    EXPECT_THAT(output_of(run, 1), ElementsAre(1));
  }
};

TEST_F(CRunState, HaveAStateForEachNodeInEachRunThatGoesBeforeItsEndIsKnown) {
  RunCounts counts;
  add(counting(operator_of("Count", &counts)));
  Owned<eddy_graph> graph = counting_loop_of();
  for (const char* threads : {"1", "3"}) {
    counts.begun = counts.ended = 0;
    Owned<eddy_session> session = session_of(graph.get(), {{"threads", threads}});
    Owned<eddy_run> run = run_of(session.get());
    const float x = 0;
    bind(run.get(), 0, &x);
    for (int i = 1; i <= 4; ++i) {
      if (i % 2 == 0) {
        ASSERT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
      } else {
        ASSERT_EQ(said([&](auto e) {
                    return api().run_submit(run.get(), nullptr, nullptr, nullptr, nullptr, e);
                  }),
                  "ok");
        ASSERT_EQ(said([&](auto e) { return api().run_wait(run.get(), -1, e); }), "ok");
      }
      EXPECT_EQ(counts.begun, 2 * i);
      EXPECT_EQ(counts.ended, 2 * i);
      expect_counts(run.get());
    }
  }
}

TEST_F(CRunState, KeepStatesOfRunsAtOnceApart) {
  RunCounts counts;
  add(counting(operator_of("Count", &counts)));
  Owned<eddy_graph> graph = counting_loop_of();
  Owned<eddy_session> session = session_of(graph.get(), {{"threads", "2"}});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      Owned<eddy_run> run = run_of(session.get());
      const float x = 0;
      bind(run.get(), 0, &x);
      for (int i = 0; i < 50; ++i) {
        ASSERT_EQ(api().run_execute(run.get(), nullptr, nullptr), EDDY_OK);
        expect_counts(run.get());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counts.begun, 400);
  EXPECT_EQ(counts.ended, 400);
}

TEST_F(CRunState, WhoseStateCannotBeMadeFailTheRunAndNotTheNext) {
  RunCounts counts;
  add(counting(operator_of("Count", &counts)));
  Owned<eddy_graph> graph = counting_loop_of();
  Owned<eddy_session> session = session_of(graph.get());
  Owned<eddy_run> run = run_of(session.get());
  const float x = 0;
  bind(run.get(), 0, &x);
  counts.fails = true;
  EXPECT_THAT(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }),
              AllOf(HasSubstr("resource exhausted"), HasSubstr("Count_0: begin_run returned 4")));
  counts.fails = false;
  ASSERT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
  expect_counts(run.get());
  EXPECT_EQ(counts.begun, counts.ended);
}

TEST_F(CRunState, GiveItToTilesAndToAnswersThatComeLater) {
  RunCounts counts;
  eddy_operator tiled = counting(operator_of("Count", &counts));
  tiled.count_tiles = [](void*, const eddy_call* call) -> uint32_t {
    ++*static_cast<float*>(call->run_state);
    return 2;
  };
  tiled.run_tile = [](void*, const eddy_call* call, uint32_t tile) -> eddy_code {
    if (tile == 0) {
      *static_cast<float*>(call->outputs[0].data) = *static_cast<float*>(call->run_state);
    }
    return EDDY_OK;
  };
  eddy_operator later = counting(operator_of("Later", &counts));
  later.flags = EDDY_ANSWERS_LATER;
  add(tiled);
  add(later);
  Owned<eddy_graph> graph = new_graph();
  const eddy_value_id x = input(graph.get(), "x", {});
  output(graph.get(), "y", own_op(graph.get(), "Later", own_op(graph.get(), "Count", x)));
  Owned<eddy_session> session = session_of(graph.get(), {{"threads", "2"}});
  Owned<eddy_run> run = run_of(session.get());
  const float zero = 0;
  bind(run.get(), 0, &zero);
  for (int i = 1; i <= 3; ++i) {
    ASSERT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
    EXPECT_THAT(output_of(run.get(), 0), ElementsAre(1));
    EXPECT_EQ(counts.ended, 2 * i);
  }
}

// Of constants, it is called while the session is made.
TEST_F(CRunState, IsThereWhereACallIsFolded) {
  RunCounts counts;
  add(counting(operator_of("Count", &counts)));
  Owned<eddy_graph> graph = new_graph();
  const eddy_value_id made = own_op(graph.get(), "Count", scalar(graph.get(), 7));
  output(graph.get(), "y", op(graph.get(), "Add", {made, input(graph.get(), "x", {})}));
  Owned<eddy_session> session = session_of(graph.get());
  Owned<eddy_run> run = run_of(session.get());
  const float x = 5;
  bind(run.get(), 0, &x);
  ASSERT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
  EXPECT_THAT(output_of(run.get(), 0), ElementsAre(6));
  EXPECT_EQ(counts.begun, counts.ended);
}

TEST_F(CRunState, IsEndedBeforeOtherThreadsSeeTheEnd) {
  struct Slow {
    std::atomic<bool> is_ending{false}, has_ended{false};
  } slow;
  eddy_operator op = operator_of("Count", &slow);
  op.run = [](void*, const eddy_call* call) -> eddy_code {
    *static_cast<float*>(call->outputs[0].data) = 1;
    return EDDY_OK;
  };
  op.end_run = [](void* user, void*, void*) {
    auto& of = *static_cast<Slow*>(user);
    of.is_ending = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    of.has_ended = true;
  };
  add(op);
  Owned<eddy_graph> graph = new_graph();
  output(graph.get(), "y", own_op(graph.get(), "Count", input(graph.get(), "x", {})));
  for (const char* threads : {"1", "3"}) {
    Owned<eddy_session> session = session_of(graph.get(), {{"threads", threads}});
    Owned<eddy_run> run = run_of(session.get());
    const float x = 0;
    bind(run.get(), 0, &x);
    slow.is_ending = slow.has_ended = false;
    std::thread executing(
        [&] { EXPECT_EQ(api().run_execute(run.get(), nullptr, nullptr), EDDY_OK); });
    while (!slow.is_ending) std::this_thread::yield();
    while (api().run_poll(run.get(), nullptr) == EDDY_NOT_DONE) std::this_thread::yield();
    EXPECT_TRUE(slow.has_ended);
    executing.join();
  }
}

// What lets go of its session, or waits for it, inside.
TEST_F(CRunState, MayLetGoOfItsSessionWhereItEnds) {
  struct Held {
    eddy_run run = nullptr;
    eddy_session session = nullptr;
    std::atomic<int> closed{0};
  } held;
  eddy_operator op = operator_of("Count", &held);
  op.run = [](void*, const eddy_call* call) -> eddy_code {
    *static_cast<float*>(call->outputs[0].data) = 1;
    return EDDY_OK;
  };
  op.end_run = [](void* user, void*, void*) {
    auto& of = *static_cast<Held*>(user);
    if (of.session == nullptr) return;
    const eddy_code code = api().session_close(of.session, nullptr);
    EXPECT_EQ(api().release(std::exchange(of.run, nullptr)), EDDY_OK);
    EXPECT_EQ(api().release(std::exchange(of.session, nullptr)), EDDY_OK);
    of.closed = 1 + code;  // from here on they are the next one's
  };
  add(op);
  Owned<eddy_graph> graph = new_graph();
  output(graph.get(), "y", own_op(graph.get(), "Count", input(graph.get(), "x", {})));
  const float x = 0;
  for (const bool is_submitted : {true, false}) {
    held.closed = 0;
    eddy_session session = nullptr;
    ASSERT_EQ(api().session_create(graph.get(), nullptr, 0, &session, nullptr), EDDY_OK);
    eddy_run run = nullptr;
    ASSERT_EQ(api().run_create(session, &run, nullptr), EDDY_OK);
    bind(run, 0, &x);
    held.session = session;
    held.run = run;
    if (is_submitted) {
      ASSERT_EQ(api().run_submit(run, nullptr, nullptr, nullptr, nullptr, nullptr), EDDY_OK);
    } else {
      ASSERT_EQ(api().run_execute(run, nullptr, nullptr), EDDY_OK);
    }
    while (held.closed == 0) std::this_thread::yield();
    EXPECT_EQ(held.closed, 1 + EDDY_NOT_DONE);
  }
}

}  // namespace
}  // namespace eddy::c
