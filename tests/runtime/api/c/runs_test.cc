// Claim: graphs built piece by piece through the C interface run in every way (here, submitted with
// a callback on each executor, awaited by a descriptor, by name), give the same results, end once,
// and handles may be released in any order.
#include <poll.h>

#include <atomic>
#include <thread>

#include "tests/runtime/api/c/fixture.h"

namespace eddy::c {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class CRuns : public CApi {};

TEST_F(CRuns, ALoopRunsAgainAndAgainInItsCallersMemory) {
  Owned<eddy_session> session = session_of(doubling().get());
  Owned<eddy_run> run = run_of(session.get());
  float x = 1;
  float limit = 10;
  float y = 0;
  bind(run.get(), 0, &x);
  bind(run.get(), 1, &limit);
  const eddy_tensor place = tensor(&y, {});
  ASSERT_EQ(said([&](auto e) { return api().run_bind_output_memory(run.get(), 0, &place, e); }),
            "ok");
  ASSERT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
  EXPECT_EQ(y, 16.0f);
  EXPECT_THAT(output_of(run.get(), 1), ElementsAre(1, 2, 4, 8));
  x = 3;
  ASSERT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
  EXPECT_EQ(y, 12.0f) << "inputs are read anew by each run";
  EXPECT_THAT(output_of(run.get(), 1), ElementsAre(3, 6));
}

TEST_F(CRuns, HandlesMayGoInAnyOrder) {
  Owned<eddy_graph> graph = doubling();
  Owned<eddy_session> session = session_of(graph.get());
  Owned<eddy_run> run = run_of(session.get());
  context.reset();
  library.reset();
  graph.reset();
  session.reset();
  const float x = 1;
  const float limit = 3;
  bind(run.get(), 0, &x);
  bind(run.get(), 1, &limit);
  ASSERT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
  Owned<eddy_value> value;
  ASSERT_EQ(said([&](auto e) { return api().run_output(run.get(), 0, value.out(), e); }), "ok");
  run.reset();
  EXPECT_THAT(floats(value.get()), ElementsAre(4)) << "values outlive everything";
}

// Counts what a session logs when it has found its program.
void count_found(void* user, const char* line) {
  if (std::string(line).starts_with("found the program")) ++*static_cast<std::atomic<int>*>(user);
}

TEST_F(CRuns, SessionsOfOneGraphShareItsProgramUnlessToldNotTo) {
  std::atomic<int> num_found{0};
  ASSERT_EQ(api().context_set_log(context.get(), count_found, &num_found, nullptr), EDDY_OK);
  const Owned<eddy_graph> graph = doubling();
  Owned<eddy_session> first = session_of(graph.get());
  const Owned<eddy_session> second = session_of(graph.get());
  EXPECT_EQ(num_found, 1);
  const Owned<eddy_session> own = session_of(graph.get(), {{"share_program", "false"}});
  const Owned<eddy_session> other = session_of(graph.get(), {{"loops", "host"}});
  EXPECT_EQ(num_found, 1);
  first.reset();
  const float x = 1;
  const float limit = 3;
  for (const Owned<eddy_session>* each : {&second, &own, &other}) {
    const Owned<eddy_run> run = run_of(each->get());
    bind(run.get(), 0, &x);
    bind(run.get(), 1, &limit);
    ASSERT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
    EXPECT_THAT(output_of(run.get(), 0), ElementsAre(4));
  }
  ASSERT_EQ(api().context_set_log(context.get(), nullptr, nullptr, nullptr), EDDY_OK);
}

TEST_F(CRuns, RunsByNameGiveTheOutputsThatAreAskedFor) {
  Owned<eddy_session> session = session_of(doubling().get());
  const float numbers[] = {1, 3};
  Owned<eddy_value> inputs[2];
  for (int i = 0; i < 2; ++i) {
    const eddy_tensor of = tensor(&numbers[i], {});
    ASSERT_EQ(api().value_copy(&of, inputs[i].out(), nullptr), EDDY_OK);
  }
  const char* const names[] = {"limit", "x"};
  const eddy_value given[] = {inputs[1].get(), inputs[0].get()};
  const char* const wanted[] = {"rows", "y"};
  eddy_value made[2] = {};
  ASSERT_EQ(said([&](auto e) {
              return api().session_run(session.get(), names, given, 2, wanted, made, 2, nullptr, e);
            }),
            "ok");
  const Owned<eddy_value> rows(made[0]);
  const Owned<eddy_value> y(made[1]);
  EXPECT_THAT(floats(rows.get()), ElementsAre(1, 2));
  EXPECT_THAT(floats(y.get()), ElementsAre(4));
  EXPECT_THAT(said([&](auto e) {
                return api().session_run(session.get(), names, given, 1, wanted, made, 2, nullptr,
                                         e);
              }),
              HasSubstr("x"));
  const char* const unknown[] = {"z"};
  EXPECT_THAT(said([&](auto e) {
                return api().session_run(session.get(), names, given, 2, unknown, made, 1, nullptr,
                                         e);
              }),
              "not found: there is no output 'z'; there are 2: y, rows");
}

struct Seen {
  std::atomic<int> calls{0};
  std::atomic<eddy_code> code{-1};
  std::thread::id thread;
};
void see(void* user, eddy_run, eddy_code code) {
  auto& seen = *static_cast<Seen*>(user);
  seen.thread = std::this_thread::get_id();
  seen.code = code;
  ++seen.calls;
}

TEST_F(CRuns, CallbacksComeOnceWhereTheirExecutorRunsThem) {
  Owned<eddy_session> session = session_of(doubling().get());
  const float x = 1;
  const float limit = 1000;
  for (int32_t kind : {EDDY_EXECUTOR_INLINE, EDDY_EXECUTOR_THREAD, EDDY_EXECUTOR_CALLER}) {
    Owned<eddy_executor> executor;
    ASSERT_EQ(api().executor_create(kind, executor.out(), nullptr), EDDY_OK);
    Owned<eddy_run> run = run_of(session.get());
    bind(run.get(), 0, &x);
    bind(run.get(), 1, &limit);
    Seen seen;
    ASSERT_EQ(said([&](auto e) {
                return api().run_submit(run.get(), nullptr, executor.get(), see, &seen, e);
              }),
              "ok");
    if (kind == EDDY_EXECUTOR_CALLER) {
      pollfd file = {-1, POLLIN, 0};
      ASSERT_EQ(api().executor_fd(executor.get(), &file.fd, nullptr), EDDY_OK);
      ASSERT_EQ(poll(&file, 1, 30'000), 1);
      EXPECT_EQ(seen.calls, 0) << "only executor_run calls";
      size_t count = 0;
      ASSERT_EQ(api().executor_run(executor.get(), 10, &count, nullptr), EDDY_OK);
      EXPECT_EQ(count, 1u);
      EXPECT_EQ(seen.thread, std::this_thread::get_id());
      ASSERT_EQ(api().executor_run(executor.get(), 10, &count, nullptr), EDDY_OK);
      EXPECT_EQ(count, 0u);
      EXPECT_EQ(poll(&file, 1, 0), 0) << "nothing waits any more, and the loop has seen it";
    } else {
      while (seen.calls == 0) std::this_thread::yield();
    }
    EXPECT_EQ(seen.code, EDDY_OK);
    EXPECT_EQ(said([&](auto e) { return api().run_wait(run.get(), -1, e); }), "ok");
    EXPECT_THAT(output_of(run.get(), 0), ElementsAre(1024));
    EXPECT_EQ(seen.calls, 1);
  }
}

TEST_F(CRuns, ASubmittedRunWithACallbackOutlivesItsHandle) {
  Owned<eddy_executor> executor;
  ASSERT_EQ(api().executor_create(EDDY_EXECUTOR_THREAD, executor.out(), nullptr), EDDY_OK);
  const float x = 1;
  const float limit = 1e30f;
  Seen seen;
  {
    Owned<eddy_session> session = session_of(doubling().get());
    Owned<eddy_run> run = run_of(session.get());
    bind(run.get(), 0, &x);
    bind(run.get(), 1, &limit);
    ASSERT_EQ(said([&](auto e) {
                return api().run_submit(run.get(), nullptr, executor.get(), see, &seen, e);
              }),
              "ok");
  }
  executor.reset();
  while (seen.calls == 0) std::this_thread::yield();
  EXPECT_EQ(seen.code, EDDY_OK);
}

TEST_F(CRuns, ADescriptorIsReadableOnceTheRunHasEnded) {
  Owned<eddy_session> session = session_of(doubling().get());
  Owned<eddy_run> run = run_of(session.get());
  const float x = 1;
  const float limit = 100;
  bind(run.get(), 0, &x);
  bind(run.get(), 1, &limit);
  pollfd file = {-1, POLLIN, 0};
  ASSERT_EQ(said([&](auto e) { return api().run_fd(run.get(), &file.fd, e); }), "ok");
  for (int round = 0; round < 100; ++round) {
    ASSERT_EQ(said([&](auto e) {
                return api().run_submit(run.get(), nullptr, nullptr, nullptr, nullptr, e);
              }),
              "ok");
    ASSERT_EQ(poll(&file, 1, 30'000), 1) << round;
    ASSERT_EQ(said([&](auto e) { return api().run_poll(run.get(), e); }), "ok");
    ASSERT_THAT(output_of(run.get(), 0), ElementsAre(128));
  }
}

// x stays below the limit for ever: until it is stopped.
// A callback that submits anew has its turn in the next call, so that a loop sees what else waits.
TEST_F(CRuns, ACallOfTheExecutorCallsWhatWaitsThen) {
  struct Chain {
    eddy_executor executor;
    int calls = 0;
  } chain{};
  Owned<eddy_graph> graph = new_graph();
  output(graph.get(), "y", op(graph.get(), "Neg", {input(graph.get(), "x", {})}));
  const Owned<eddy_session> session = session_of(graph.get());
  Owned<eddy_executor> executor;
  ASSERT_EQ(api().executor_create(EDDY_EXECUTOR_CALLER, executor.out(), nullptr), EDDY_OK);
  chain.executor = executor.get();
  const Owned<eddy_run> run = run_of(session.get());
  const float x = 1;
  bind(run.get(), 0, &x);
  static eddy_run_callback again;
  again = [](void* user, eddy_run of, eddy_code) {
    auto& mine = *static_cast<Chain*>(user);
    if (++mine.calls >= 100) return;
    EXPECT_EQ(api().run_submit(of, nullptr, mine.executor, again, user, nullptr), EDDY_OK);
  };
  ASSERT_EQ(api().run_submit(run.get(), nullptr, executor.get(), again, &chain, nullptr), EDDY_OK);
  pollfd file = {-1, POLLIN, 0};
  ASSERT_EQ(api().executor_fd(executor.get(), &file.fd, nullptr), EDDY_OK);
  for (int calls = 0; chain.calls < 100;) {
    ASSERT_EQ(poll(&file, 1, 30'000), 1);
    size_t count = 0;
    ASSERT_EQ(api().executor_run(executor.get(), SIZE_MAX, &count, nullptr), EDDY_OK);
    EXPECT_LE(count, 1u);
    calls += static_cast<int>(count);
    EXPECT_EQ(chain.calls, calls);
  }
}

TEST_F(CRuns, AnOutputThatNoLoopStacksIsNotStreamed) {
  const Owned<eddy_session> session = session_of(doubling().get());
  const Owned<eddy_run> run = run_of(session.get());
  Owned<eddy_rows> rows;
  ASSERT_EQ(api().rows_create(8, nullptr, nullptr, nullptr, rows.out(), nullptr), EDDY_OK);
  EXPECT_NE(said([&](auto e) { return api().run_stream_output(run.get(), 0, rows.get(), e); }),
            "ok");
  EXPECT_EQ(said([&](auto e) { return api().run_stream_output(run.get(), 1, rows.get(), e); }),
            "ok");
  EXPECT_EQ(said([&](auto e) { return api().run_stream_output(run.get(), 0, nullptr, e); }), "ok");
}

TEST_F(CRuns, EndlessRunsAreCancelledOrLateAndCounted) {
  Owned<eddy_session> session = session_of(doubling().get());
  Owned<eddy_run> run = run_of(session.get());
  const float x = 0;
  const float limit = 1;
  bind(run.get(), 0, &x);
  bind(run.get(), 1, &limit);
  eddy_run_options options = {sizeof(options), 20'000'000, 0};
  EXPECT_THAT(said([&](auto e) { return api().run_execute(run.get(), &options, e); }),
              AllOf(HasSubstr("deadline exceeded"), HasSubstr("in iteration "),
                    HasSubstr("of 'double'"), HasSubstr("the run passed its deadline")));
  ASSERT_EQ(said([&](auto e) {
              return api().run_submit(run.get(), nullptr, nullptr, nullptr, nullptr, e);
            }),
            "ok");
  EXPECT_EQ(api().run_wait(run.get(), 1'000'000, nullptr), EDDY_NOT_DONE);
  EXPECT_EQ(api().run_poll(run.get(), nullptr), EDDY_NOT_DONE);
  EXPECT_THAT(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }),
              HasSubstr("under way"));
  EXPECT_EQ(api().run_cancel(run.get(), nullptr), EDDY_OK);
  EXPECT_EQ(api().run_wait(run.get(), -1, nullptr), EDDY_CANCELLED);
  EXPECT_EQ(api().run_wait(run.get(), 0, nullptr), EDDY_CANCELLED) << "the result stays";
  EXPECT_THAT(said([&](auto e) {
                Owned<eddy_value> value;
                return api().run_output(run.get(), 0, value.out(), e);
              }),
              HasSubstr("there are no outputs"));
  eddy_metrics metrics = {};
  metrics.struct_size = sizeof(metrics);
  ASSERT_EQ(api().session_metrics(session.get(), &metrics, nullptr), EDDY_OK);
  EXPECT_EQ(metrics.runs_late, 1u);
  EXPECT_EQ(metrics.runs_cancelled, 1u);
  EXPECT_EQ(metrics.runs_succeeded, 0u);
  EXPECT_GT(metrics.plan_ns, 0);
}

struct Rows {
  std::vector<float> seen;
  std::atomic<int> count{0};
};
void take_row(void* user, eddy_value value) {
  auto& rows = *static_cast<Rows*>(user);
  eddy_tensor view = {};
  EXPECT_EQ(api().value_tensor(value, &view, nullptr), EDDY_OK);
  rows.seen.push_back(*static_cast<const float*>(view.data));
  EXPECT_EQ(api().release(value), EDDY_OK);
  ++rows.count;
}

TEST_F(CRuns, RowsComeWhileTheirLoopRunsByCallOrCallback) {
  Owned<eddy_session> session = session_of(doubling().get());
  const float x = 1;
  const float limit = 10;
  constexpr int32_t kNoCallback = -1;
  const int32_t kinds[] = {kNoCallback, EDDY_EXECUTOR_INLINE, EDDY_EXECUTOR_THREAD,
                           EDDY_EXECUTOR_CALLER};
  for (const int32_t kind : kinds) {
    SCOPED_TRACE(kind);
    Owned<eddy_executor> executor;
    if (kind >= 0) {
      ASSERT_EQ(api().executor_create(kind, executor.out(), nullptr), EDDY_OK);
    }
    Rows seen;
    Owned<eddy_rows> rows;
    ASSERT_EQ(said([&](auto e) {
                return api().rows_create(1, executor.get(), kind < 0 ? nullptr : take_row, &seen,
                                         rows.out(), e);
              }),
              "ok");
    Owned<eddy_run> run = run_of(session.get());
    bind(run.get(), 0, &x);
    bind(run.get(), 1, &limit);
    ASSERT_EQ(said([&](auto e) { return api().run_stream_output(run.get(), 1, rows.get(), e); }),
              "ok");
    ASSERT_EQ(said([&](auto e) {
                return api().run_submit(run.get(), nullptr, nullptr, nullptr, nullptr, e);
              }),
              "ok");
    if (kind < 0) {
      // The loop has room for one row, so it waits for this thread.
      EXPECT_EQ(api().run_wait(run.get(), 5'000'000, nullptr), EDDY_NOT_DONE);
      eddy_code code = EDDY_OK;
      while (code == EDDY_OK) {
        eddy_value row = nullptr;
        code = api().rows_next(rows.get(), -1, &row, nullptr);
        if (code == EDDY_OK) take_row(&seen, row);
      }
      EXPECT_EQ(code, EDDY_END);
    } else if (kind == EDDY_EXECUTOR_CALLER) {
      pollfd file = {-1, POLLIN, 0};
      ASSERT_EQ(api().executor_fd(executor.get(), &file.fd, nullptr), EDDY_OK);
      while (seen.count < 4) {
        ASSERT_EQ(poll(&file, 1, 30'000), 1);
        ASSERT_EQ(api().executor_run(executor.get(), 1, nullptr, nullptr), EDDY_OK);
      }
    }
    EXPECT_EQ(said([&](auto e) { return api().run_wait(run.get(), -1, e); }), "ok");
    while (seen.count < 4) std::this_thread::yield();
    EXPECT_THAT(seen.seen, ElementsAre(1, 2, 4, 8));
    EXPECT_THAT(output_of(run.get(), 1), ElementsAre(1, 2, 4, 8)) << "and the output is whole";
  }
}

// A run and its rows wait in an executor that is never drained, and keep it: they are called when
// its handle goes, or later where they come later.
TEST_F(CRuns, RowsAndEndsThatWaitWhenTheirExecutorIsReleasedAreCalled) {
  const float x = 1;
  const float limit = 10;
  Rows seen;
  Seen ended;
  {
    Owned<eddy_session> session = session_of(doubling().get());
    Owned<eddy_executor> executor;
    ASSERT_EQ(api().executor_create(EDDY_EXECUTOR_CALLER, executor.out(), nullptr), EDDY_OK);
    Owned<eddy_rows> rows;
    ASSERT_EQ(api().rows_create(8, executor.get(), take_row, &seen, rows.out(), nullptr), EDDY_OK);
    Owned<eddy_run> run = run_of(session.get());
    bind(run.get(), 0, &x);
    bind(run.get(), 1, &limit);
    ASSERT_EQ(api().run_stream_output(run.get(), 1, rows.get(), nullptr), EDDY_OK);
    ASSERT_EQ(said([&](auto e) {
                return api().run_submit(run.get(), nullptr, executor.get(), see, &ended, e);
              }),
              "ok");
    ASSERT_EQ(said([&](auto e) { return api().run_wait(run.get(), -1, e); }), "ok");
    EXPECT_EQ(seen.count, 0) << "nobody has drained the executor";
    EXPECT_EQ(ended.calls, 0);
  }
  while (ended.calls == 0) std::this_thread::yield();
  EXPECT_THAT(seen.seen, ElementsAre(1, 2, 4, 8));
  EXPECT_EQ(ended.calls, 1);
}

TEST_F(CRuns, ADescriptorTellsOfRows) {
  Owned<eddy_session> session = session_of(doubling().get());
  const float x = 1;
  const float limit = 1e6f;
  Owned<eddy_rows> rows;
  ASSERT_EQ(api().rows_create(2, nullptr, nullptr, nullptr, rows.out(), nullptr), EDDY_OK);
  Owned<eddy_run> run = run_of(session.get());
  bind(run.get(), 0, &x);
  bind(run.get(), 1, &limit);
  ASSERT_EQ(api().run_stream_output(run.get(), 1, rows.get(), nullptr), EDDY_OK);
  pollfd file = {-1, POLLIN, 0};
  ASSERT_EQ(api().rows_fd(rows.get(), &file.fd, nullptr), EDDY_OK);
  ASSERT_EQ(api().run_submit(run.get(), nullptr, nullptr, nullptr, nullptr, nullptr), EDDY_OK);
  size_t count = 0;
  while (true) {
    ASSERT_EQ(poll(&file, 1, 30'000), 1) << "after " << count << " rows";
    Owned<eddy_value> row;
    const eddy_code code = api().rows_next(rows.get(), 0, row.out(), nullptr);
    if (code == EDDY_END) break;
    if (code == EDDY_OK) ++count;
  }
  EXPECT_EQ(count, 20u);
  EXPECT_EQ(api().run_wait(run.get(), -1, nullptr), EDDY_OK);
}

TEST_F(CRuns, RowsThatAreClosedLetTheLoopGoOn) {
  Owned<eddy_session> session = session_of(doubling().get());
  const float x = 1;
  const float limit = 1e6f;
  Owned<eddy_rows> rows;
  ASSERT_EQ(api().rows_create(1, nullptr, nullptr, nullptr, rows.out(), nullptr), EDDY_OK);
  Owned<eddy_run> run = run_of(session.get());
  bind(run.get(), 0, &x);
  bind(run.get(), 1, &limit);
  ASSERT_EQ(api().run_stream_output(run.get(), 1, rows.get(), nullptr), EDDY_OK);
  ASSERT_EQ(api().run_submit(run.get(), nullptr, nullptr, nullptr, nullptr, nullptr), EDDY_OK);
  ASSERT_EQ(api().rows_close(rows.get(), nullptr), EDDY_OK);
  EXPECT_EQ(api().run_wait(run.get(), -1, nullptr), EDDY_OK);
  eddy_value none = nullptr;
  EXPECT_EQ(api().rows_next(rows.get(), -1, &none, nullptr), EDDY_END);
}

TEST_F(CRuns, SessionsOfOneFinishedGraphAreMadeByManyThreads) {
  const Owned<eddy_graph> graph = doubling();
  ASSERT_EQ(api().graph_finish(graph.get(), nullptr), EDDY_OK);
  std::atomic<int> num_made{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        Owned<eddy_session> session;
        Owned<eddy_value> text;
        num_made += api().session_create(graph.get(), nullptr, 0, session.out(), nullptr) == 0;
        num_made += api().graph_print(graph.get(), text.out(), nullptr) == 0;
        eddy_type of = {};
        of.struct_size = sizeof(of);
        num_made += api().graph_type(graph.get(), 1, &of, nullptr) == 0;
      }
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(num_made, 120);
}

}  // namespace
}  // namespace eddy::c
