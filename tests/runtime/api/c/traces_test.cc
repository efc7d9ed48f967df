// Claim: a session's plan is a picture, a run's trace is one, too, and costs the runs after it
// nothing; runs of a stream go in its order; which outputs can be streamed is said before; errors
// of every call name where the caller's program stands; and with check_memory on, memory of inputs
// that is written or freed too early is named.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "tests/runtime/api/c/fixture.h"

namespace eddy::c {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class Traces : public CApi {
 protected:
  static std::string text_of(eddy_value value) {
    eddy_tensor view = {};
    EXPECT_EQ(said([&](auto e) { return api().value_tensor(value, &view, e); }), "ok");
    return {static_cast<const char*>(view.data), static_cast<size_t>(view.dims[0])};
  }
  static std::string execute(eddy_run run) {
    return said([&](auto e) { return api().run_execute(run, nullptr, e); });
  }
  static std::string start(eddy_run run) {
    return said([&](auto e) { return api().run_start_trace(run, e); });
  }
  static std::string stop(eddy_run run) {
    Owned<eddy_value> json;
    const std::string code = said([&](auto e) { return api().run_stop_trace(run, json.out(), e); });
    return code == "ok" ? text_of(json.get()) : code;
  }
  static size_t count(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++found;
    }
    return found;
  }
};

TEST_F(Traces, APlanIsAPictureThatNamesItsGraph) {
  const auto session = session_of(doubling().get());
  Owned<eddy_value> svg;
  ASSERT_EQ(said([&](auto e) { return api().session_plan_svg(session.get(), svg.out(), e); }),
            "ok");
  EXPECT_THAT(text_of(svg.get()),
              AllOf(HasSubstr("<svg"), HasSubstr("double"), HasSubstr("</svg>")));
  EXPECT_THAT(said([&](auto e) { return api().session_plan_svg(session.get(), nullptr, e); }),
              HasSubstr("there is no place for the value"));
}

TEST_F(Traces, ATraceHasTheRunsBetweenStartAndStopAndNoOthers) {
  const auto session = session_of(doubling().get(), {{"loops", "host"}});
  const auto run = run_of(session.get());
  const float x = 1, limit = 5;
  bind(run.get(), 0, &x);
  bind(run.get(), 1, &limit);
  ASSERT_EQ(execute(run.get()), "ok");
  for (const size_t runs : {1, 3, 2}) {
    ASSERT_EQ(start(run.get()), "ok");
    for (size_t i = 0; i < runs; ++i) ASSERT_EQ(execute(run.get()), "ok");
    EXPECT_THAT(output_of(run.get(), 0), ElementsAre(8));
    EXPECT_THAT(output_of(run.get(), 1), ElementsAre(1, 2, 4));
    const std::string json = stop(run.get());
    EXPECT_THAT(json, HasSubstr("traceEvents"));
    // An iteration is shown behind the loop's name.
    EXPECT_EQ(count(json, "double[2]"), runs) << json;
    ASSERT_EQ(execute(run.get()), "ok");  // not traced
    EXPECT_THAT(output_of(run.get(), 0), ElementsAre(8));
  }
}

TEST_F(Traces, WhatIsBoundStaysBoundThroughATrace) {
  const auto session = session_of(doubling().get());
  const auto run = run_of(session.get());
  float x = 1, limit = 5, y = 0, other = 0;
  const std::vector<int64_t> dims;
  bind(run.get(), 0, &x);
  bind(run.get(), 1, &limit);
  const auto bind_y = [&](float* to) {
    const eddy_tensor memory = tensor(to, dims);
    return said([&](auto e) { return api().run_bind_output_memory(run.get(), 0, &memory, e); });
  };
  ASSERT_EQ(bind_y(&y), "ok");
  ASSERT_EQ(start(run.get()), "ok");
  ASSERT_EQ(execute(run.get()), "ok");
  EXPECT_EQ(y, 8);
  ASSERT_EQ(bind_y(&other), "ok");
  const float seven = 7;
  bind(run.get(), 0, &seven);
  EXPECT_THAT(stop(run.get()), HasSubstr("traceEvents"));
  ASSERT_EQ(execute(run.get()), "ok");
  EXPECT_EQ(other, 7);
  EXPECT_EQ(y, 8);
}

TEST_F(Traces, ATraceIsStartedOnceAndBetweenRuns) {
  const auto session = session_of(doubling().get());
  const auto run = run_of(session.get());
  EXPECT_THAT(stop(run.get()), HasSubstr("invalid state: the run is not traced"));
  ASSERT_EQ(start(run.get()), "ok");
  EXPECT_THAT(start(run.get()), HasSubstr("traced already"));
  EXPECT_THAT(execute(run.get()), HasSubstr("input 'x'"));  // which fails as ever
  EXPECT_THAT(stop(run.get()), HasSubstr("traceEvents"));
  EXPECT_THAT(start(nullptr), HasSubstr("invalid handle"));
}

TEST_F(Traces, WhichOutputsCanBeStreamedIsSaid) {
  const auto session = session_of(doubling().get());
  const auto can = [&](size_t index) {
    int32_t made = -1;
    const std::string code =
        said([&](auto e) { return api().session_can_stream(session.get(), index, &made, e); });
    return code == "ok" ? std::to_string(made) : code;
  };
  EXPECT_EQ(can(0), "0");
  EXPECT_EQ(can(1), "1");
  EXPECT_THAT(can(2), HasSubstr("there is no output 2"));
  const auto run = run_of(session.get());
  const float x = 1;
  bind(run.get(), 0, &x);
  bind(run.get(), 1, &x);
  Owned<eddy_rows> rows;
  ASSERT_EQ(api().rows_create(1, nullptr, nullptr, nullptr, rows.out(), nullptr), EDDY_OK);
  EXPECT_THAT(said([&](auto e) { return api().run_stream_output(run.get(), 0, rows.get(), e); }),
              AllOf(HasSubstr("'y' cannot be streamed"), HasSubstr("'rows'")));
}

// x[i + 1] = 2 x[i] by runs of one stream, each of which reads what the one before has written.
TEST_F(Traces, RunsOfAStreamGoInItsOrder) {
  Owned<eddy_graph> graph = new_graph();
  const eddy_value_id x = input(graph.get(), "x", {});
  output(graph.get(), "y", op(graph.get(), "Add", {x, x}));
  const auto session = session_of(graph.get(), {{"threads", "2"}});
  constexpr size_t kRuns = 20;
  float values[kRuns + 1] = {1};
  std::vector<Owned<eddy_run>> runs;
  Owned<eddy_stream> stream;
  ASSERT_EQ(
      said([&](auto e) { return api().session_create_stream(session.get(), stream.out(), e); }),
      "ok");
  std::atomic<int> ended{0};
  const eddy_run_callback on_end = [](void* user, eddy_run, eddy_code code) {
    if (code == EDDY_OK) ++*static_cast<std::atomic<int>*>(user);
  };
  for (size_t i = 0; i < kRuns; ++i) {
    eddy_run run = runs.emplace_back(run_of(session.get())).get();
    bind(run, 0, &values[i]);
    const eddy_tensor to = tensor(&values[i + 1], {});
    ASSERT_EQ(api().run_bind_output_memory(run, 0, &to, nullptr), EDDY_OK);
    ASSERT_EQ(said([&](auto e) {
                return api().run_submit_on(run, stream.get(), nullptr, nullptr,
                                           i % 2 == 0 ? on_end : nullptr, &ended, e);
              }),
              "ok");
  }
  stream.reset();  // its runs keep it
  for (auto& run : runs) {
    EXPECT_EQ(said([&](auto e) { return api().run_wait(run.get(), -1, e); }), "ok");
  }
  for (size_t i = 0; i <= kRuns; ++i) EXPECT_EQ(values[i], static_cast<float>(1u << i));
  ASSERT_EQ(api().session_close(session.get(), nullptr), EDDY_OK);  // after the last callback
  EXPECT_EQ(ended.load(), static_cast<int>(kRuns / 2));
}

TEST_F(Traces, StreamsOfOthersAreRefused) {
  const auto session = session_of(doubling().get()), other = session_of(doubling().get());
  Owned<eddy_stream> stream;
  ASSERT_EQ(api().session_create_stream(other.get(), stream.out(), nullptr), EDDY_OK);
  const auto run = run_of(session.get());
  float numbers[1] = {};
  const auto submit = [&](eddy_stream on) {
    return said([&](auto e) {
      return api().run_submit_on(run.get(), on, nullptr, nullptr, nullptr, nullptr, e);
    });
  };
  EXPECT_THAT(submit(stream.get()), HasSubstr("of another session"));
  EXPECT_THAT(submit(nullptr), HasSubstr("invalid handle"));
  EXPECT_THAT(said([&](auto e) {
                return api().session_adopt_stream(session.get(), numbers, stream.out(), e);
              }),
              HasSubstr("has no streams but its own"));
}

TEST_F(Traces, ErrorsOfAllCallsNameWhereTheProgramStands) {
  Owned<eddy_graph> graph = new_graph();
  eddy_graph g = graph.get();
  const auto at = [&](uint32_t line) {
    const eddy_location here = {sizeof(here), "prog.edy", line, 4, "let x"};
    return said([&](auto e) { return api().graph_set_location(g, &here, e); });
  };
  EXPECT_EQ(at(6), "ok");
  EXPECT_EQ(at(7), "ok");
  EXPECT_THAT(said([&](auto e) { return api().graph_output(g, "y", 99, e); }),
              HasSubstr("prog.edy:7:4: the output is value 99"));
  EXPECT_THAT(said([&](auto e) { return api().graph_end_while(g, nullptr, 0, nullptr, 0, e); }),
              HasSubstr("prog.edy:7:4: "));
  // What the graph itself has refused keeps its place.
  EXPECT_THAT(at(9), HasSubstr("prog.edy:7:4: "));
  EXPECT_THAT(said([&](auto e) { return api().graph_begin_branch(g, e); }),
              HasSubstr("prog.edy:7:4: "));
}

TEST_F(Traces, NodesHaveThePlaceThatWasSetUnlessTheySayTheirs) {
  Owned<eddy_graph> graph = new_graph();
  eddy_graph g = graph.get();
  const eddy_value_id x = input(g, "x", {2, 2}), i = input(g, "i", {}, EDDY_INT64);
  const eddy_location here = {sizeof(here), "prog.edy", 7, 0, ""},
                      own = {sizeof(own), "other.edy", 3, 0, ""};
  ASSERT_EQ(api().graph_set_location(g, &here, nullptr), EDDY_OK);
  const eddy_value_id first = op(g, "Gather", {x, i});
  ASSERT_EQ(api().graph_set_location(g, nullptr, nullptr), EDDY_OK);
  output(g, "first", first);
  output(g, "second", op(g, "Gather", {first, i}, &own));
  const auto session = session_of(g);
  const auto run = run_of(session.get());
  const std::vector<float> xs(4);
  const std::vector<int64_t> dims = {2, 2};
  const eddy_tensor of = tensor(xs.data(), dims);
  ASSERT_EQ(api().run_bind_input_memory(run.get(), 0, &of, nullptr), EDDY_OK);
  int64_t index = 5;
  const eddy_tensor at = {&index, nullptr, 0, EDDY_INT64, {}};
  ASSERT_EQ(api().run_bind_input_memory(run.get(), 1, &at, nullptr), EDDY_OK);
  EXPECT_THAT(execute(run.get()), HasSubstr("prog.edy:7: Gather_0: index 5"));
}

TEST_F(Traces, RowsSayWhenTheyCallNoMore) {
  const auto session = session_of(doubling().get());
  std::vector<float> seen;
  struct User {
    std::vector<float>* seen;
    std::atomic<bool>* is_gone;
  };
  std::atomic<bool> is_gone{false};
  User user{&seen, &is_gone};
  const eddy_row_callback on_row = [](void* of, eddy_value row) {
    static_cast<User*>(of)->seen->push_back(floats(row)[0]);
    api().release(row);
  };
  const eddy_function destroy = [](void* of) { *static_cast<User*>(of)->is_gone = true; };
  Owned<eddy_rows> rows;
  ASSERT_EQ(said([&](auto e) {
              return api().rows_create_with(4, nullptr, on_row, &user, destroy, rows.out(), e);
            }),
            "ok");
  auto run = run_of(session.get());
  const float x = 1, limit = 5;
  bind(run.get(), 0, &x);
  bind(run.get(), 1, &limit);
  ASSERT_EQ(api().run_stream_output(run.get(), 1, rows.get(), nullptr), EDDY_OK);
  rows.reset();
  ASSERT_EQ(execute(run.get()), "ok");
  EXPECT_FALSE(is_gone);
  run.reset();  // rows that still wait are called for
  ASSERT_EQ(api().session_close(session.get(), nullptr), EDDY_OK);
  for (int i = 0; i < 1000 && !is_gone; ++i) usleep(10'000);
  EXPECT_TRUE(is_gone);
  EXPECT_THAT(seen, ElementsAre(1, 2, 4));
  // Also after a failure.
  is_gone = false;
  EXPECT_NE(api().rows_create_with(4, nullptr, on_row, &user, destroy, nullptr, nullptr), EDDY_OK);
  EXPECT_TRUE(is_gone);
}

class MemoryChecks : public Traces {
 protected:
  // A run of y = wait(x), whose operator calls `inside_` while the run is under way.
  void SetUp() override {
    eddy_operator wait = {};
    wait.struct_size = sizeof(wait);
    wait.name = "Wait";
    wait.domain = "test";
    wait.since_version = 1;
    wait.min_inputs = wait.max_inputs = wait.num_outputs = 1;
    wait.user = this;
    wait.shapes = [](void*, const eddy_shapes* shapes) {
      shapes->outputs[0] = shapes->inputs[0];
      return eddy_code{EDDY_OK};
    };
    wait.run = [](void* user, const eddy_call*) {
      static_cast<MemoryChecks*>(user)->inside_();
      return eddy_code{EDDY_OK};
    };
    ASSERT_EQ(api().library_add_operator(library.get(), &wait, nullptr), EDDY_OK);
    graph_ = new_graph();
    eddy_node node = {};
    const eddy_value_id x = input(graph_.get(), "x", {1024});
    node.struct_size = sizeof(node);
    node.op = "Wait";
    node.domain = "test";
    node.num_outputs = 1;
    node.inputs = &x;
    node.num_inputs = 1;
    eddy_value_id y = 0;
    ASSERT_EQ(said([&](auto e) { return api().graph_node(graph_.get(), &node, &y, e); }), "ok");
    output(graph_.get(), "y", y);
    session_ = session_of(graph_.get(), {{"check_memory", "true"}});
    run_ = run_of(session_.get());
    pages_ = static_cast<float*>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(pages_, MAP_FAILED);
    const std::vector<int64_t> dims = {1024};
    const eddy_tensor of = tensor(pages_, dims);
    ASSERT_EQ(api().run_bind_input_memory(run_.get(), 0, &of, nullptr), EDDY_OK);
  }
  void TearDown() override { munmap(pages_, 4096); }
  std::string submit_and_wait() {
    const std::string code = said([&](auto e) {
      return api().run_submit(run_.get(), nullptr, nullptr, nullptr, nullptr, e);
    });
    if (code != "ok") return code;
    return said([&](auto e) { return api().run_wait(run_.get(), -1, e); });
  }

  std::function<void()> inside_ = [] {};
  Owned<eddy_graph> graph_;
  Owned<eddy_session> session_;
  Owned<eddy_run> run_;
  float* pages_ = nullptr;
};

TEST_F(MemoryChecks, MemoryThatStaysAsItIsPassesAndMayChangeBetweenRuns) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(execute(run_.get()), "ok");
    EXPECT_EQ(submit_and_wait(), "ok");
    pages_[i] = 1;
  }
}

TEST_F(MemoryChecks, MemoryThatIsWrittenMeanwhileIsNamed) {
  inside_ = [this] { pages_[1023] += 1; };
  EXPECT_THAT(execute(run_.get()),
              HasSubstr("invalid argument: the memory of input 'x' was written"));
  EXPECT_THAT(submit_and_wait(), HasSubstr("the memory of input 'x' was written"));
  EXPECT_THAT(said([&](auto e) { return api().run_poll(run_.get(), e); }),
              HasSubstr("the memory of input 'x' was written"));
  inside_ = [] {};
  EXPECT_EQ(execute(run_.get()), "ok");
}

TEST_F(MemoryChecks, ACallbackGetsTheCodeOfIt) {
  inside_ = [this] { pages_[0] += 1; };
  std::atomic<int> code{-1};
  const eddy_run_callback on_end = [](void* user, eddy_run, eddy_code of) {
    static_cast<std::atomic<int>*>(user)->store(of);
  };
  ASSERT_EQ(api().run_submit(run_.get(), nullptr, nullptr, on_end, &code, nullptr), EDDY_OK);
  ASSERT_EQ(api().session_close(session_.get(), nullptr), EDDY_OK);
  EXPECT_THAT(code.load(), ::testing::AnyOf(EDDY_INVALID_ARGUMENT, EDDY_CANCELLED));
}

TEST_F(MemoryChecks, MemoryThatIsGoneIsNamedBeforeItIsRead) {
  ASSERT_EQ(munmap(pages_, 4096), 0);
  EXPECT_THAT(execute(run_.get()), HasSubstr("input 'x' is bound to memory that is not there"));
  EXPECT_THAT(submit_and_wait(), HasSubstr("input 'x' is bound to memory that is not there"));
}

TEST_F(MemoryChecks, MemoryThatGoesMeanwhileIsNamed) {
  inside_ = [this] { munmap(pages_, 4096); };
  EXPECT_THAT(execute(run_.get()), HasSubstr("the memory of input 'x' was freed while"));
}

}  // namespace
}  // namespace eddy::c
