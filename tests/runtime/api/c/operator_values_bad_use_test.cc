// Claim: what an operator of values does against its contract fails the run with what it did, and
// no memory is read or written beyond its end; what it cannot have is refused when it is added.
#include <cstddef>
#include <stdexcept>

#include "tests/runtime/api/c/operator_values_fixture.h"

namespace eddy::c {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// One function, of which the operator's code takes no notice.
TEST_F(COperatorValues, WhatAFunctionRefusesFailsTheRun) {
  const eddy_type row = type(EDDY_FLOAT, {EDDY_UNKNOWN_DIM});
  const eddy_type list = sequence_of(row);
  const int64_t two = 2, three = 3, less = -1;
  void* data = nullptr;
  const int64_t falling[] = {3, 1}, rising[] = {0, 1};
#define CALLS(of, ...)                                     \
  said_by(of, [&](const eddy_value_call& c) -> eddy_code { \
    EXPECT_EQ(c.__VA_ARGS__, EDDY_RUN_FAILED);             \
    return EDDY_OK;                                        \
  })
  EXPECT_THAT(CALLS(row, make_none(c.impl, 0)),
              HasSubstr("output 0 is declared float[?], so it can't be nothing"));
  EXPECT_THAT(CALLS(row, make_sequence(c.impl, 0)), HasSubstr("so it can't be a sequence"));
  EXPECT_THAT(CALLS(row, make_tensor(c.impl, 1, &two, 1, &data)),
              HasSubstr("there is no output 1"));
  EXPECT_THAT(CALLS(row, make_tensor(c.impl, 0, nullptr, 1, &data)), HasSubstr("dims is null"));
  EXPECT_THAT(CALLS(row, make_tensor(c.impl, 0, &two, 9, &data)), HasSubstr("has rank 9"));
  EXPECT_THAT(CALLS(row, make_tensor(c.impl, 0, &less, 1, &data)), HasSubstr("dimension of -1"));
  EXPECT_THAT(CALLS(row, make_tensor(c.impl, 0, &two, 1, nullptr)), HasSubstr("it is null"));
  EXPECT_THAT(CALLS(row, make_tensor(c.impl, 0, nullptr, 0, &data)),
              HasSubstr("output 0 is declared float[?], so it can't have float[]"));
  EXPECT_THAT(CALLS(type(EDDY_FLOAT, {2}), make_tensor(c.impl, 0, &three, 1, &data)),
              HasSubstr("so it can't have float[3]"));
  EXPECT_THAT(CALLS(row, make_strings(c.impl, 0, nullptr, 0, falling, "abc")),
              HasSubstr("offset 1 is below the one before it"));
  EXPECT_THAT(CALLS(row, make_strings(c.impl, 0, nullptr, 0, rising, "abc")),
              HasSubstr("so it can't have string[]"));
  EXPECT_THAT(CALLS(type(EDDY_STRING, {2}), make_tensor(c.impl, 0, &two, 1, &data)),
              HasSubstr("make_strings() makes them"));
  EXPECT_THAT(CALLS(list, make_tensor(c.impl, 0, &two, 1, &data)),
              HasSubstr("make_sequence() comes first"));
  EXPECT_THAT(CALLS(list, share(c.impl, 0, 0)), HasSubstr("so it can't share input 0"));
  EXPECT_THAT(CALLS(row, share(c.impl, 0, 7)), HasSubstr("there is no input 7"));
  EXPECT_THAT(CALLS(row, share_tensor(c.impl, 0, 0, 1)), HasSubstr("has no tensor 1; it has 1"));
  EXPECT_THAT(CALLS(type(EDDY_FLOAT, {3}), share(c.impl, 0, 0)),
              HasSubstr("so it can't have float[2]"));
  EXPECT_THAT(CALLS(type(EDDY_INT64, {2}), share_tensor(c.impl, 0, 0, 0)),
              HasSubstr("is declared int64[2], but input 0 is of float"));
#undef CALLS
}

TEST_F(COperatorValues, WhatTheCodeLeavesUndoneOrDoesTwiceFailsTheRun) {
  const eddy_type row = type(EDDY_FLOAT, {EDDY_UNKNOWN_DIM});
  const eddy_type list = sequence_of(row);
  const int64_t two = 2;
  void* data = nullptr;
  EXPECT_THAT(said_by(row, [](const eddy_value_call&) { return EDDY_OK; }),
              AllOf(HasSubstr("Bad"), HasSubstr("it has not made output 0")));
  EXPECT_THAT(said_by(row,
                      [&](const eddy_value_call& c) {
                        EXPECT_EQ(c.share(c.impl, 0, 0), EDDY_OK);
                        return c.make_tensor(c.impl, 0, &two, 1, &data);
                      }),
              HasSubstr("output 0 is made already"));
  EXPECT_THAT(said_by(row,
                      [&](const eddy_value_call& c) {
                        eddy_tensor view = {};
                        EXPECT_EQ(c.tensor(c.impl, 0, SIZE_MAX, &view), EDDY_RUN_FAILED);
                        return c.share(c.impl, 0, 0);
                      }),
              HasSubstr("input 0 has no tensor"));
  EXPECT_THAT(said_by(list,
                      [&](const eddy_value_call& c) {
                        EXPECT_EQ(c.make_sequence(c.impl, 0), EDDY_OK);
                        EXPECT_EQ(c.make_tensor(c.impl, 0, nullptr, 0, &data), EDDY_RUN_FAILED);
                        return EDDY_OK;
                      }),
              HasSubstr("so it can't have float[]"));
  EXPECT_THAT(said_by(row, [](const eddy_value_call&) { return EDDY_LATER; }),
              HasSubstr("run_values answers at once"));
  EXPECT_THAT(said_by(row,
                      [](const eddy_value_call& c) {
                        c.fail(c.impl, "no rows today");
                        return EDDY_RUN_FAILED;
                      }),
              HasSubstr("no rows today"));
  EXPECT_THAT(
      said_by(row,
              [](const eddy_value_call&) -> eddy_code { throw std::runtime_error("it rains"); }),
      HasSubstr("it threw: it rains"));
}

// Other nodes count on sizes that have one symbol being equal.
TEST_F(COperatorValues, SizesThatTheShapesPromiseAreKept) {
  add_values(
      "Keep", 1, 1,
      [](const eddy_value_call& call) {
        const int64_t dims[] = {1};
        void* data = nullptr;
        call.make_tensor(call.impl, 0, dims, 1, &data);
        *static_cast<float*>(data) = 1;
        return EDDY_OK;
      },
      [](const eddy_shapes& shapes) { shapes.outputs[0] = shapes.inputs[0]; });
  Owned<eddy_graph> graph = new_graph();
  eddy_graph g = graph.get();
  int64_t n = 0;
  ASSERT_EQ(api().graph_symbol(g, "n", &n, nullptr), EDDY_OK);
  const eddy_value_id x = input_of(g, "x", type(EDDY_FLOAT, {n}));
  output(g, "y", op(g, "Add", {x, values_op(g, "Keep", {x})[0]}));
  const Owned<eddy_session> session = session_of(g);
  const Owned<eddy_run> run = run_of(session.get());
  EXPECT_EQ(execute(run.get(), {floats_value({4}).get()}), "ok");
  EXPECT_THAT(execute(run.get(), {floats_value({4, 5, 6}).get()}),
              AllOf(HasSubstr("run failed"), HasSubstr("output 0 of Keep is declared float[3] but "
                                                       "the kernel made float[1]")));
}

TEST_F(COperatorValues, AShapeFunctionSaysTheSameInARun) {
  static bool changes;
  changes = false;
  add_values(
      "Fickle", 1, 1, [](const eddy_value_call& call) { return call.share(call.impl, 0, 0); },
      [](const eddy_shapes& shapes) {
        shapes.outputs[0] = shapes.inputs[0];
        if (changes) shapes.outputs[0] = sequence_of(shapes.inputs[0]);
      });
  Owned<eddy_graph> graph = new_graph();
  const eddy_value_id x = input_of(graph.get(), "x", type(EDDY_FLOAT, {EDDY_UNKNOWN_DIM}));
  output(graph.get(), "y", values_op(graph.get(), "Fickle", {x})[0]);
  const Owned<eddy_session> session = session_of(graph.get());
  const Owned<eddy_run> run = run_of(session.get());
  EXPECT_EQ(execute(run.get(), {floats_value({4}).get()}), "ok");
  changes = true;
  EXPECT_THAT(execute(run.get(), {floats_value({4}).get()}),
              AllOf(HasSubstr("run failed"),
                    HasSubstr("the shape function says sequence(float[1]) of output 0, and said "
                              "float[?] when the graph was built")));
}

// A list without elements is of its element type nevertheless.
TEST_F(COperatorValues, AnEmptyListOfOtherElementsIsNotShared) {
  const eddy_type texts = sequence_of(type(EDDY_STRING, {}));
  add_values("Share", 1, {sequence_of(type(EDDY_FLOAT, {}))},
             [](const eddy_value_call& call) { return call.share(call.impl, 0, 0); });
  Owned<eddy_graph> graph = new_graph();
  const eddy_value_id x = input_of(graph.get(), "x", texts);
  output(graph.get(), "y", values_op(graph.get(), "Share", {x})[0]);
  const Owned<eddy_session> session = session_of(graph.get());
  const Owned<eddy_run> run = run_of(session.get());
  Owned<eddy_value> none;
  ASSERT_EQ(api().value_sequence(EDDY_STRING, nullptr, 0, none.out(), nullptr), EDDY_OK);
  EXPECT_THAT(execute(run.get(), {none.get()}), HasSubstr("but input 0 is of string"));
}

TEST_F(COperatorValues, AnOptionalListIsNoTensor) {
  Owned<eddy_graph> graph = new_graph();
  eddy_type maybe = type(EDDY_FLOAT, {EDDY_UNKNOWN_DIM});
  maybe.wrappers[0] = EDDY_WRAPPER_OPTIONAL;
  maybe.wrappers[1] = EDDY_WRAPPER_SEQUENCE;
  const eddy_value_id x = input_of(graph.get(), "x", maybe);
  output(graph.get(), "y", op(graph.get(), "OptionalHasElement", {x}));
  const Owned<eddy_session> session = session_of(graph.get());
  const Owned<eddy_run> run = run_of(session.get());
  const Owned<eddy_value> row = floats_value({1, 2});
  EXPECT_THAT(said([&](auto e) { return api().run_bind_input(run.get(), 0, row.get(), e); }),
              HasSubstr("but a tensor was given"));
}

TEST_F(COperatorValues, WhatSuchAnOperatorCannotHaveIsRefused) {
  const auto refused = [&](const std::function<void(eddy_operator&)>& spoil) {
    eddy_operator op = operator_of("Refused", nullptr);
    op.run_values = [](void*, const eddy_value_call*) -> eddy_code { return EDDY_OK; };
    spoil(op);
    return said([&](auto e) { return api().library_add_operator(library.get(), &op, e); });
  };
  const auto alone = HasSubstr("has `run_values` beside flags or other functions that run it");
  EXPECT_THAT(refused([](eddy_operator& op) { op.flags = EDDY_ANSWERS_LATER; }), alone);
  EXPECT_THAT(refused([](eddy_operator& op) {
                op.run = [](void*, const eddy_call*) -> eddy_code { return EDDY_OK; };
              }),
              alone);
  EXPECT_THAT(refused([](eddy_operator& op) {
                op.enqueue = [](void*, const eddy_call*, void*) -> eddy_code { return EDDY_OK; };
              }),
              alone);
  EXPECT_THAT(refused([](eddy_operator& op) {  // a caller of before
                op.struct_size = offsetof(eddy_operator, run_values);
              }),
              HasSubstr("has no function `run`"));
  // Functions that see tensors alone.
  eddy_operator plain = operator_of("Plain", nullptr);
  plain.run = [](void*, const eddy_call*) -> eddy_code { return EDDY_OK; };
  add(plain);
  plain.name = "Lists";
  plain.shapes = [](void*, const eddy_shapes* shapes) -> eddy_code {
    shapes->outputs[0] = sequence_of(shapes->inputs[0]);
    return EDDY_OK;
  };
  add(plain);
  for (const bool is_string : {true, false}) {
    Owned<eddy_graph> graph = new_graph();
    const eddy_value_id x = input(graph.get(), "x", {}, is_string ? EDDY_STRING : EDDY_FLOAT);
    output(graph.get(), "y", own_op(graph.get(), is_string ? "Plain" : "Lists", x));
    Owned<eddy_session> session;
    EXPECT_THAT(said([&](auto e) {
                  return api().session_create(graph.get(), nullptr, 0, session.out(), e);
                }),
                HasSubstr("which only a function `run_values` can see"));
  }
  // A tensor is expected there, so that the graph itself says where.
  Owned<eddy_graph> graph = new_graph();
  const eddy_value_id list = input_of(graph.get(), "list", sequence_of(unranked(EDDY_FLOAT)));
  eddy_node node = {};
  node.struct_size = sizeof(node);
  node.op = "Plain";
  node.domain = "test";
  node.num_outputs = 1;
  node.inputs = &list;
  node.num_inputs = 1;
  eddy_value_id made = 0;
  EXPECT_THAT(said([&](auto e) { return api().graph_node(graph.get(), &node, &made, e); }),
              HasSubstr("input 0 ('x0') of Plain must be a tensor, not sequence"));
}

}  // namespace
}  // namespace eddy::c
