// Claim: what a caller's function throws ends nothing but its call: a run fails with it, a
// callback's is logged; and a function that a run waits for may not wait for that run, nor for its
// rows.
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "tests/runtime/api/c/fixture.h"

namespace eddy::c {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(CApi, WordsOfACallerAreShownAsUtf8InOneLine) {
  eddy_operator broken = operator_of("Broken", nullptr);
  broken.run = [](void*, const eddy_call* call) -> eddy_code {
    call->fail(call->impl, "caf\xe9 \xc3\xa9\nand \xff");
    return EDDY_RUN_FAILED;
  };
  ASSERT_EQ(api().library_add_operator(library.get(), &broken, nullptr), EDDY_OK);
  Owned<eddy_graph> graph = new_graph();
  const eddy_location at = {sizeof(at), "b\xfc.calc", 3, 1, ""};
  const eddy_value_id x = input(graph.get(), "x", {});
  ASSERT_EQ(api().graph_set_location(graph.get(), &at, nullptr), EDDY_OK);
  output(graph.get(), "y", own_op(graph.get(), "Broken", x));
  Owned<eddy_session> session = session_of(graph.get());
  Owned<eddy_run> run = run_of(session.get());
  const float number = 2;
  bind(run.get(), 0, &number);
  EXPECT_THAT(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }),
              AllOf(HasSubstr("b\xef\xbf\xbd.calc:3:1"),
                    HasSubstr("caf\xef\xbf\xbd \xc3\xa9?and \xef\xbf\xbd")));
}

TEST_F(CApi, NamesOfACallerAreShownAsUtf8InOneLine) {
  Owned<eddy_graph> graph = new_graph();
  output(graph.get(), "y", op(graph.get(), "Neg", {input(graph.get(), "x", {})}));
  eddy_session session = nullptr;
  EXPECT_THAT(said([&](auto e) {
                return api().session_load(library.get(), "no\xff\nfile", nullptr, 0, &session, e);
              }),
              HasSubstr("no\xef\xbf\xbd?file"));
  const eddy_option option = {
      "thr\xe9"
      "ads",
      "1"};
  EXPECT_THAT(
      said([&](auto e) { return api().session_create(graph.get(), &option, 1, &session, e); }),
      HasSubstr("thr\xef\xbf\xbd"
                "ads"));
}

TEST_F(CApi, ACallbackThatThrowsIsLoggedAndTheRunIsAsItWas) {
  struct Logged {
    std::mutex mutex;
    std::string lines;
    std::string take() {
      const std::lock_guard lock(mutex);
      return std::exchange(lines, "");
    }
  } logged;
  const eddy_log log = [](void* user, const char* line) {
    auto& mine = *static_cast<Logged*>(user);
    const std::lock_guard lock(mine.mutex);
    mine.lines += line;
    throw std::runtime_error("and the log throws, too");
  };
  ASSERT_EQ(api().context_set_log(context.get(), log, &logged, nullptr), EDDY_OK);
  Owned<eddy_graph> graph = new_graph();
  const eddy_value_id x = input(graph.get(), "x", {});
  output(graph.get(), "y", op(graph.get(), "Neg", {x}));
  Owned<eddy_session> session = session_of(graph.get());
  Owned<eddy_run> run = run_of(session.get());
  const float number = 2;
  bind(run.get(), 0, &number);
  EXPECT_NE(logged.take(), "") << "a log that throws ends nothing";
  const eddy_run_callback throws = [](void*, eddy_run, eddy_code) {
    throw std::runtime_error("my list is full");
  };
  for (const int32_t kind : {EDDY_EXECUTOR_INLINE, EDDY_EXECUTOR_THREAD, EDDY_EXECUTOR_CALLER}) {
    Owned<eddy_executor> executor;
    ASSERT_EQ(api().executor_create(kind, executor.out(), nullptr), EDDY_OK);
    ASSERT_EQ(api().run_submit(run.get(), nullptr, executor.get(), throws, nullptr, nullptr),
              EDDY_OK);
    EXPECT_EQ(api().run_wait(run.get(), -1, nullptr), EDDY_OK);
    if (kind == EDDY_EXECUTOR_CALLER) {
      size_t count = 0;
      while (count == 0) {
        ASSERT_EQ(api().executor_run(executor.get(), SIZE_MAX, &count, nullptr), EDDY_OK);
      }
    }
    std::string line;
    while (line.empty()) line = logged.take();
    EXPECT_THAT(line, HasSubstr("a run's callback: it threw: my list is full")) << kind;
    EXPECT_THAT(output_of(run.get(), 0), ElementsAre(-2));
  }
}

TEST_F(CApi, TilesThatCannotBeCountedFailTheRun) {
  eddy_operator op = operator_of("Tiled", nullptr);
  op.run = [](void*, const eddy_call*) -> eddy_code { return EDDY_OK; };
  op.count_tiles = [](void*, const eddy_call*) -> uint32_t {
    throw std::runtime_error("no tiles today");
  };
  op.run_tile = [](void*, const eddy_call*, uint32_t) -> eddy_code { return EDDY_OK; };
  op.destroy = [](void*) { throw std::runtime_error("nor an end"); };
  add(op);
  Owned<eddy_graph> graph = new_graph();
  output(graph.get(), "y", own_op(graph.get(), "Tiled", input(graph.get(), "x", {})));
  Owned<eddy_session> session = session_of(graph.get(), {{"threads", "2"}});
  Owned<eddy_run> run = run_of(session.get());
  const float number = 2;
  bind(run.get(), 0, &number);
  EXPECT_THAT(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }),
              AllOf(HasSubstr("run failed"), HasSubstr("no tiles today")));
}

TEST_F(CApi, ACallbackOfARowMayNotWaitForTheRunThatMakesTheRows) {
  struct Rows {
    eddy_run run = nullptr;
    std::atomic<int> refused{0};
    std::atomic<int> count{0};
  };
  Owned<eddy_graph> graph = doubling();
  Owned<eddy_session> session = session_of(graph.get());
  for (const int32_t kind : {EDDY_EXECUTOR_INLINE, EDDY_EXECUTOR_THREAD, EDDY_EXECUTOR_CALLER}) {
    Rows mine;
    Owned<eddy_executor> executor;
    ASSERT_EQ(api().executor_create(kind, executor.out(), nullptr), EDDY_OK);
    Owned<eddy_run> run = run_of(session.get());
    mine.run = run.get();
    const eddy_row_callback on_row = [](void* user, eddy_value row) {
      auto& of = *static_cast<Rows*>(user);
      const eddy_code code = api().run_wait(of.run, -1, nullptr);
      if (code == EDDY_WOULD_DEADLOCK) ++of.refused;
      ++of.count;
      api().release(row);
    };
    Owned<eddy_rows> rows;
    ASSERT_EQ(api().rows_create(1, executor.get(), on_row, &mine, rows.out(), nullptr), EDDY_OK);
    ASSERT_EQ(api().run_stream_output(run.get(), 1, rows.get(), nullptr), EDDY_OK);
    const float numbers[] = {1, 1000};
    bind(run.get(), 0, &numbers[0]);
    bind(run.get(), 1, &numbers[1]);
    ASSERT_EQ(api().run_submit(run.get(), nullptr, nullptr, nullptr, nullptr, nullptr), EDDY_OK);
    while (mine.count < 10) {
      if (kind == EDDY_EXECUTOR_CALLER) {
        ASSERT_EQ(api().executor_run(executor.get(), SIZE_MAX, nullptr, nullptr), EDDY_OK);
      }
      std::this_thread::yield();
    }
    EXPECT_EQ(api().run_wait(run.get(), -1, nullptr), EDDY_OK);
    EXPECT_GE(mine.refused, 8) << "while the loop still waited for room";
  }
}

// What a callback in the loop of its run does to it, however the loop is driven.
class CRowsInLoop : public CApi {
 protected:
  struct Called {
    std::function<void()> act;
    int count = 0;
    std::atomic<bool> is_gone{false};
  };
  // Doubles 1 up to 1000, 10 rows.
  void make(const char* loops) {
    graph_ = doubling();
    session_ = session_of(graph_.get(), {{"loops", loops}});
    other_ = session_of(graph_.get(), {{"loops", loops}});
    ASSERT_EQ(api().executor_create(EDDY_EXECUTOR_INLINE, executor_.out(), nullptr), EDDY_OK);
  }
  // Called on the first row alone.
  void stream_to(eddy_run run, Called& called, eddy_rows* rows) {
    const eddy_row_callback on_row = [](void* user, eddy_value row) {
      auto& mine = *static_cast<Called*>(user);
      api().release(row);
      if (mine.count++ == 0) mine.act();
    };
    const eddy_function gone = [](void* user) { static_cast<Called*>(user)->is_gone = true; };
    ASSERT_EQ(api().rows_create_with(1, executor_.get(), on_row, &called, gone, rows, nullptr),
              EDDY_OK);
    ASSERT_EQ(api().run_stream_output(run, 1, *rows, nullptr), EDDY_OK);
    bind(run, 0, &numbers_[0]);
    bind(run, 1, &numbers_[1]);
  }

  float numbers_[2] = {1, 1000};
  Owned<eddy_graph> graph_;
  Owned<eddy_session> session_, other_;
  Owned<eddy_executor> executor_;
};

TEST_F(CRowsInLoop, AllHandlesMayBeReleasedThere) {
  for (const char* loops : {"host", "device"}) {
    for (const bool has_stream : {false, true}) {
      SCOPED_TRACE(std::string(loops) + (has_stream ? ", on a stream" : ""));
      make(loops);
      Owned<eddy_stream> stream;
      ASSERT_EQ(api().session_create_stream(session_.get(), stream.out(), nullptr), EDDY_OK);
      Owned<eddy_run> run = run_of(session_.get());
      Called called;
      Owned<eddy_rows> rows;
      std::atomic<bool> is_submitted = false;
      called.act = [&] {
        while (!is_submitted) std::this_thread::yield();
        stream.reset();
        run.reset();
        session_.reset();
        rows.reset();
      };
      stream_to(run.get(), called, rows.out());
      // Not at once, on this thread, which would wait for itself.
      numbers_[1] = 1e30f;
      ASSERT_EQ(said([&](auto e) {
                  return has_stream
                             ? api().run_submit_on(run.get(), stream.get(), nullptr, nullptr,
                                                   nullptr, nullptr, e)
                             : api().run_submit(run.get(), nullptr, nullptr, nullptr, nullptr, e);
                }),
                "ok");
      is_submitted = true;
      while (!called.is_gone) std::this_thread::yield();
      EXPECT_GE(called.count, 1);
    }
  }
}

TEST_F(CRowsInLoop, AnotherSessionsRunIsWaitedForOrThatIsRefused) {
  for (const char* loops : {"host", "device"}) {
    SCOPED_TRACE(loops);
    make(loops);
    Called called;  // until the run has let go of it
    Owned<eddy_run> run = run_of(session_.get());
    Owned<eddy_run> others = run_of(other_.get());
    bind(others.get(), 0, &numbers_[0]);
    bind(others.get(), 1, &numbers_[1]);
    Owned<eddy_rows> rows;
    eddy_code code = EDDY_INTERNAL;
    called.act = [&] { code = api().run_execute(others.get(), nullptr, nullptr); };
    stream_to(run.get(), called, rows.out());
    EXPECT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
    EXPECT_EQ(code, std::string(loops) == "host" ? EDDY_WOULD_DEADLOCK : EDDY_OK);
    EXPECT_EQ(called.count, 10);
  }
}

TEST_F(CRowsInLoop, AnotherSessionMayGoThereWhileItsRunIsUnderWay) {
  for (const char* loops : {"host", "device"}) {
    SCOPED_TRACE(loops);
    make(loops);
    Called called;  // until the run has let go of it
    Owned<eddy_run> run = run_of(session_.get());
    Owned<eddy_run> others = run_of(other_.get());
    const float endless[] = {0, 1};
    bind(others.get(), 0, &endless[0]);
    bind(others.get(), 1, &endless[1]);
    Owned<eddy_rows> rows;
    called.act = [&] {
      EXPECT_EQ(api().run_submit(others.get(), nullptr, nullptr, nullptr, nullptr, nullptr),
                EDDY_OK);
      (void)api().session_close(other_.get(), nullptr);
      others.reset();
      other_.reset();
    };
    stream_to(run.get(), called, rows.out());
    EXPECT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
    EXPECT_EQ(called.count, 10);
  }
}

TEST_F(CRowsInLoop, OneThatThrowsIsWantedNoMoreByRunsToCome) {
  make("device");
  Called called;  // until the run has let go of it
  Owned<eddy_run> run = run_of(session_.get());
  Owned<eddy_rows> rows;
  called.act = [] { throw std::runtime_error("no more"); };
  stream_to(run.get(), called, rows.out());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
    EXPECT_EQ(called.count, 1);
  }
}

// while go_on(x): x = x + x, whose rows its own host function asks for.
TEST_F(CApi, AHostFunctionMayNotWaitForRowsOfTheLoopThatAsksIt) {
  struct Asks {
    eddy_rows rows = nullptr;
    std::atomic<int> count{0};
    std::atomic<eddy_code> code{EDDY_OK}, limited{EDDY_OK};
  } asks;
  const eddy_decide decide = [](void* user, const eddy_call*, int64_t* decision) -> eddy_code {
    auto& mine = *static_cast<Asks*>(user);
    eddy_value row = nullptr;
    if (mine.count == 0) {
      mine.code = api().rows_next(mine.rows, -1, &row, nullptr);
      mine.limited = api().rows_next(mine.rows, 1'000'000'000'000, &row, nullptr);
    }
    *decision = ++mine.count < 4 ? 1 : 0;
    return EDDY_OK;
  };
  ASSERT_EQ(
      api().library_add_host_function(library.get(), "go_on", 0, decide, &asks, nullptr, nullptr),
      EDDY_OK);
  Owned<eddy_graph> graph = doubling_while("go_on");
  Owned<eddy_session> session = session_of(graph.get());
  Owned<eddy_run> run = run_of(session.get());
  Owned<eddy_rows> rows;
  ASSERT_EQ(api().rows_create(8, nullptr, nullptr, nullptr, rows.out(), nullptr), EDDY_OK);
  asks.rows = rows.get();
  ASSERT_EQ(api().run_stream_output(run.get(), 1, rows.get(), nullptr), EDDY_OK);
  const float one = 1;
  bind(run.get(), 0, &one);
  ASSERT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
  EXPECT_EQ(asks.code, EDDY_WOULD_DEADLOCK);
  EXPECT_EQ(asks.limited, EDDY_WOULD_DEADLOCK);
  eddy_value row = nullptr;
  for (const float wanted : {1, 2, 4}) {
    ASSERT_EQ(api().rows_next(rows.get(), -1, &row, nullptr), EDDY_OK);
    EXPECT_THAT(floats(Owned<eddy_value>(row).get()), ElementsAre(wanted));
  }
  EXPECT_EQ(api().rows_next(rows.get(), -1, &row, nullptr), EDDY_END);
}

TEST_F(CApi, AnOperatorMayNotWaitForItsOwnRun) {
  struct Waits {
    eddy_run run = nullptr;
    eddy_session session = nullptr;
    eddy_code wait = EDDY_OK, close = EDDY_OK;
  } waits;
  eddy_operator op = operator_of("Ask", &waits);
  op.run = [](void* user, const eddy_call*) -> eddy_code {
    auto& mine = *static_cast<Waits*>(user);
    mine.wait = api().run_wait(mine.run, -1, nullptr);
    mine.close = api().session_close(mine.session, nullptr);
    return EDDY_OK;
  };
  add(op);
  Owned<eddy_graph> graph = new_graph();
  output(graph.get(), "y", own_op(graph.get(), "Ask", input(graph.get(), "x", {})));
  const float number = 2;
  for (const auto& [loops, submits] : std::vector<std::pair<const char*, bool>>{
           {"device", false}, {"device", true}, {"host", false}, {"host", true}}) {
    SCOPED_TRACE(loops);
    Owned<eddy_session> session = session_of(graph.get(), {{"loops", loops}});
    Owned<eddy_run> run = run_of(session.get());
    bind(run.get(), 0, &number);
    waits = {run.get(), session.get()};
    if (submits) {
      ASSERT_EQ(api().run_submit(run.get(), nullptr, nullptr, nullptr, nullptr, nullptr), EDDY_OK);
    } else {
      (void)api().run_execute(run.get(), nullptr, nullptr);  // closing cancels it
    }
    (void)api().run_wait(run.get(), -1, nullptr);
    EXPECT_EQ(waits.wait, EDDY_WOULD_DEADLOCK) << submits;
    EXPECT_EQ(waits.close, EDDY_NOT_DONE) << submits;
  }
}

// Rows that nobody can take hold no loop up, of this run and of runs to come.
TEST_F(CApi, RowsThatAreClosedOrReleasedAreWantedNoMore) {
  Owned<eddy_graph> graph = doubling();
  Owned<eddy_session> session = session_of(graph.get());
  for (const bool releases : {false, true}) {
    Owned<eddy_run> run = run_of(session.get());
    Owned<eddy_rows> rows;
    ASSERT_EQ(api().rows_create(1, nullptr, nullptr, nullptr, rows.out(), nullptr), EDDY_OK);
    ASSERT_EQ(api().run_stream_output(run.get(), 1, rows.get(), nullptr), EDDY_OK);
    const float numbers[] = {1, 1000};
    bind(run.get(), 0, &numbers[0]);
    bind(run.get(), 1, &numbers[1]);
    if (releases) {
      rows.reset();
    } else {
      ASSERT_EQ(api().rows_close(rows.get(), nullptr), EDDY_OK);
    }
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
      EXPECT_THAT(output_of(run.get(), 0), ElementsAre(1024));
    }
  }
}

TEST_F(CApi, NamesAreTextWithoutControlCharacters) {
  const eddy_decide decide = [](void*, const eddy_call*, int64_t*) -> eddy_code { return EDDY_OK; };
  for (const char* name : {"", "a\nb", "\xff\xfe"}) {
    EXPECT_THAT(said([&](auto e) {
                  return api().library_add_host_function(library.get(), name, 0, decide, nullptr,
                                                         nullptr, e);
                }),
                HasSubstr("the name of the host function"));
    const eddy_operator op = operator_of(name, nullptr);
    EXPECT_THAT(said([&](auto e) { return api().library_add_operator(library.get(), &op, e); }),
                HasSubstr("the name of the operator"));
  }
  Owned<eddy_graph> graph;
  EXPECT_THAT(
      said([&](auto e) { return api().graph_create(library.get(), "a\nb", graph.out(), e); }),
      HasSubstr("the name of the graph"));
  graph = new_graph();
  const eddy_type of = type(EDDY_FLOAT, {});
  eddy_value_id x = input(graph.get(), "x", {});
  for (const char* name : {"", "a\nb", "\xff\xfe"}) {
    EXPECT_THAT(said([&](auto e) { return api().graph_input(graph.get(), name, &of, &x, e); }),
                HasSubstr("the name of the input"));
    EXPECT_THAT(said([&](auto e) { return api().graph_output(graph.get(), name, x, e); }),
                HasSubstr("the name of the output"));
  }
}

}  // namespace
}  // namespace eddy::c
