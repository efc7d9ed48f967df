// Claim: graphs that are built through the C interface say what is wrong with them in one line,
// with the place in the caller's program, when they are built and when they run; they go to ONNX
// and back.
#include "tests/runtime/api/c/fixture.h"

namespace eddy::c {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class CGraphs : public CApi {
 protected:
  static eddy_location at(uint32_t line, const char* text = nullptr, uint32_t column = 0) {
    return {sizeof(eddy_location), "prog.edy", line, column, text};
  }
};

TEST_F(CGraphs, AnErrorOfBuildingStandsWhereTheCallerSays) {
  Owned<eddy_graph> graph = new_graph();
  const eddy_value_id x = input(graph.get(), "x", {2, 3});
  const eddy_value_id inputs[] = {x, input(graph.get(), "w", {4})};
  const eddy_location here = at(7);
  eddy_node node = {};
  node.struct_size = sizeof(node);
  node.op = "Add";
  node.num_outputs = 1;
  node.inputs = inputs;
  node.num_inputs = 2;
  node.location = &here;
  eddy_value_id y = 0;
  EXPECT_THAT(
      said([&](auto e) { return api().graph_node(graph.get(), &node, &y, e); }),
      AllOf(HasSubstr("invalid argument: prog.edy:7: "), HasSubstr("Add"), HasSubstr("broadcast")));
  EXPECT_THAT(said([&](auto e) { return api().graph_finish(graph.get(), e); }),
              HasSubstr("broadcast"))
      << "what the graph refuses sticks";
  EXPECT_THAT(said([&](auto e) { return api().graph_output(graph.get(), "a", inputs[0], e); }),
              AllOf(HasSubstr("broadcast"), HasSubstr("an earlier call was refused for this")));
  EXPECT_EQ(y, 0u);
}

// Not where the loop around it stands; and when the graph says it again, not where that call does.
TEST_F(CGraphs, AnErrorOfBuildingInALoopStandsAtItsNode) {
  Owned<eddy_graph> graph = new_graph();
  eddy_graph g = graph.get();
  const eddy_value_id x = input(g, "x", {3});
  const eddy_value_id w = input(g, "w", {4});
  const eddy_location loop_at = at(11, "while true", 3);
  eddy_while loop = {};
  loop.struct_size = sizeof(loop);
  loop.initial = &x;
  loop.num_carried = 1;
  loop.location = &loop_at;
  eddy_value_id before[2] = {};
  ASSERT_EQ(said([&](auto e) { return api().graph_begin_while(g, &loop, before, e); }), "ok");
  const auto add = [&](const char* name, std::vector<eddy_value_id> of, const eddy_location& here) {
    eddy_node node = {};
    node.struct_size = sizeof(node);
    node.op = name;
    node.num_outputs = 1;
    node.inputs = of.data();
    node.num_inputs = of.size();
    node.location = &here;
    eddy_value_id made = 0;
    return said([&](auto e) { return api().graph_node(g, &node, &made, e); });
  };
  EXPECT_THAT(add("Neg", {77}, at(11, nullptr, 9)),
              HasSubstr("invalid argument: prog.edy:11:9: input 0 is value 77"));
  const std::string wanted = "invalid argument: prog.edy:12:5: Add";
  EXPECT_THAT(add("Add", {before[1], w}, at(12, nullptr, 5)), HasSubstr(wanted));
  EXPECT_THAT(add("Neg", {x}, at(13, nullptr, 7)), HasSubstr(wanted));
  EXPECT_THAT(said([&](auto e) { return api().graph_finish(g, e); }), HasSubstr(wanted));
}

// z = x[i] while i goes on: fails when i leaves x.
TEST_F(CGraphs, AnErrorOfARunNamesTheIterationTheLoopsTextAndThePlace) {
  Owned<eddy_graph> graph = new_graph();
  eddy_graph g = graph.get();
  const eddy_value_id x = input(g, "x", {3});
  const eddy_value_id zero = scalar(g, 0.0f);
  const eddy_location loop_at = at(11, "while err > tol");
  eddy_while loop = {};
  loop.struct_size = sizeof(loop);
  loop.name = "search";
  loop.initial = &zero;
  loop.num_carried = 1;
  loop.location = &loop_at;
  eddy_value_id before[2] = {};
  ASSERT_EQ(said([&](auto e) { return api().graph_begin_while(g, &loop, before, e); }), "ok");
  eddy_value_id yes = 0;
  const uint8_t one = 1;
  const eddy_tensor truth = {const_cast<uint8_t*>(&one), nullptr, 0, EDDY_BOOL, {}};
  ASSERT_EQ(api().graph_constant(g, &truth, "", &yes, nullptr), EDDY_OK);
  eddy_value_id after[2] = {};
  ASSERT_EQ(said([&](auto e) { return api().graph_begin_after(g, yes, &before[1], 1, after, e); }),
            "ok");
  const eddy_location node_at = at(12, nullptr, 5);
  const eddy_value_id next = op(g, "Gather", {x, after[0]}, &node_at);
  eddy_value_id last = 0;
  ASSERT_EQ(said([&](auto e) { return api().graph_end_while(g, &next, 1, &last, 1, e); }), "ok");
  output(g, "y", last);
  Owned<eddy_session> session = session_of(g);
  Owned<eddy_run> run = run_of(session.get());
  const float numbers[] = {1, 2, 3};
  const std::vector<int64_t> dims = {3};
  const eddy_tensor of = tensor(numbers, dims);
  ASSERT_EQ(api().run_bind_input_memory(run.get(), 0, &of, nullptr), EDDY_OK);
  Owned<eddy_error> error;
  ASSERT_EQ(api().run_execute(run.get(), nullptr, error.out()), EDDY_INVALID_ARGUMENT);
  EXPECT_THAT(api().error_message(error.get()),
              HasSubstr("prog.edy:12:5: in iteration 3 of 'while err > tol': Gather"));
  EXPECT_THAT(api().error_reason(error.get()), HasSubstr("index 3"));
  ASSERT_EQ(api().error_num_parts(error.get()), 2u);
  eddy_path_part part = {};
  part.struct_size = sizeof(part);
  ASSERT_EQ(api().error_part(error.get(), 0, &part), EDDY_OK);
  EXPECT_EQ(part.kind, EDDY_PART_LOOP);
  EXPECT_STREQ(part.name, "search");
  EXPECT_EQ(part.iteration, 3);
  eddy_location location = {};
  location.struct_size = sizeof(location);
  ASSERT_EQ(api().error_location(error.get(), &location), EDDY_OK);
  EXPECT_STREQ(location.file, "prog.edy");
  EXPECT_EQ(location.line, 12u);
  EXPECT_EQ(location.column, 5u);
}

// Nodes without a name, of one operator on both sides of the test.
TEST_F(CGraphs, AnErrorInTheTestAndOneBehindItNameTheirOwnPlaces) {
  for (const bool fails_in_test : {true, false}) {
    Owned<eddy_graph> graph = new_graph();
    eddy_graph g = graph.get();
    const eddy_value_id x = input(g, "x", {3});
    const eddy_value_id zero = scalar(g, 0.0f);
    eddy_while loop = {};
    loop.struct_size = sizeof(loop);
    loop.initial = &zero;
    loop.num_carried = 1;
    eddy_value_id before[2] = {}, after[2] = {}, last = 0, first_row = 0;
    const int64_t row = 0;
    const eddy_tensor of_row = {const_cast<int64_t*>(&row), nullptr, 0, EDDY_INT64, {}};
    ASSERT_EQ(api().graph_constant(g, &of_row, "", &first_row, nullptr), EDDY_OK);
    ASSERT_EQ(api().graph_begin_while(g, &loop, before, nullptr), EDDY_OK);
    const eddy_location test_at = at(1), body_at = at(2);
    const eddy_value_id seen =
        op(g, "Gather", {x, fails_in_test ? before[0] : first_row}, &test_at);
    const eddy_value_id goes_on = op(g, "Less", {seen, scalar(g, 100.0f)}, &test_at);
    ASSERT_EQ(api().graph_begin_after(g, goes_on, &before[1], 1, after, nullptr), EDDY_OK);
    const eddy_value_id next = op(g, "Gather", {x, fails_in_test ? first_row : after[0]}, &body_at);
    ASSERT_EQ(api().graph_end_while(g, &next, 1, &last, 1, nullptr), EDDY_OK);
    output(g, "y", last);
    Owned<eddy_session> session = session_of(g);
    Owned<eddy_run> run = run_of(session.get());
    const float numbers[] = {1, 2, 3};
    const std::vector<int64_t> dims = {3};
    const eddy_tensor of = tensor(numbers, dims);
    ASSERT_EQ(api().run_bind_input_memory(run.get(), 0, &of, nullptr), EDDY_OK);
    EXPECT_THAT(
        said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }),
        HasSubstr(fails_in_test ? "prog.edy:1: in iteration 3" : "prog.edy:2: in iteration 3"));
  }
}

// By a host function whose type is an integer's.
TEST_F(CGraphs, AHostFunctionSelectsOneOfManyBranches) {
  const eddy_decide choose = [](void*, const eddy_call* call, int64_t* decision) -> eddy_code {
    *decision = static_cast<int64_t>(*static_cast<const float*>(call->inputs[0].data));
    return EDDY_OK;
  };
  ASSERT_EQ(said([&](auto e) {
              return api().library_add_host_function(library.get(), "choose", 0, choose, nullptr,
                                                     nullptr, e);
            }),
            "ok");
  Owned<eddy_graph> graph = new_graph();
  eddy_graph g = graph.get();
  const eddy_value_id x = input(g, "x", {});
  const eddy_type number = type(EDDY_INT64, {});
  eddy_attribute attributes[2] = {};
  attributes[0].struct_size = attributes[1].struct_size = sizeof(eddy_attribute);
  attributes[0].name = "name";
  attributes[0].kind = EDDY_ATTRIBUTE_STRING;
  attributes[0].s = "choose";
  attributes[1].name = "type";
  attributes[1].kind = EDDY_ATTRIBUTE_TYPE;
  attributes[1].type = &number;
  eddy_node node = {};
  node.struct_size = sizeof(node);
  node.op = "HostPredicate";
  node.domain = "eddy";
  node.num_outputs = 1;
  node.inputs = &x;
  node.num_inputs = 1;
  node.attributes = attributes;
  node.num_attributes = 2;
  eddy_case choice = {};
  choice.struct_size = sizeof(choice);
  ASSERT_EQ(said([&](auto e) { return api().graph_node(g, &node, &choice.selector, e); }), "ok");
  choice.num_branches = 3;
  choice.default_branch = 0;
  ASSERT_EQ(said([&](auto e) { return api().graph_begin_case(g, &choice, e); }), "ok");
  for (const float made : {10.0f, 20.0f, 30.0f}) {
    ASSERT_EQ(api().graph_begin_branch(g, nullptr), EDDY_OK);
    const eddy_value_id result = scalar(g, made);
    ASSERT_EQ(said([&](auto e) { return api().graph_end_branch(g, &result, 1, e); }), "ok");
  }
  eddy_value_id y = 0;
  ASSERT_EQ(said([&](auto e) { return api().graph_end_case(g, &y, 1, e); }), "ok");
  output(g, "y", y);
  Owned<eddy_session> session = session_of(g);
  Owned<eddy_run> run = run_of(session.get());
  for (const auto& [chosen, made] :
       {std::pair(0.0f, 10.0f), {1.0f, 20.0f}, {2.0f, 30.0f}, {9.0f, 10.0f}}) {
    bind(run.get(), 0, &chosen);
    ASSERT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
    EXPECT_THAT(output_of(run.get(), 0), ElementsAre(made));
  }
}

TEST_F(CGraphs, BranchesTakeTheirTurnAndPassThrough) {
  Owned<eddy_graph> graph = new_graph();
  eddy_graph g = graph.get();
  const eddy_value_id which = input(g, "which", {}, EDDY_INT64);
  const eddy_value_id x = input(g, "x", {});
  eddy_case choice = {};
  choice.struct_size = sizeof(choice);
  choice.name = "choice";
  choice.selector = which;
  choice.num_branches = 2;
  choice.pass_through = &x;
  choice.num_pass_through = 1;
  choice.default_branch = -1;
  ASSERT_EQ(said([&](auto e) { return api().graph_begin_case(g, &choice, e); }), "ok");
  for (const char* name : {"Neg", "Abs"}) {
    ASSERT_EQ(said([&](auto e) { return api().graph_begin_branch(g, e); }), "ok");
    const eddy_value_id made = op(g, name, {x});
    ASSERT_EQ(said([&](auto e) { return api().graph_end_branch(g, &made, 1, e); }), "ok");
  }
  eddy_value_id y = 0;
  ASSERT_EQ(said([&](auto e) { return api().graph_end_case(g, &y, 1, e); }), "ok");
  output(g, "y", y);
  Owned<eddy_session> session = session_of(g);
  Owned<eddy_run> run = run_of(session.get());
  int64_t selector = 0;
  const float number = -3;
  const eddy_tensor of = {&selector, nullptr, 0, EDDY_INT64, {}};
  ASSERT_EQ(api().run_bind_input_memory(run.get(), 0, &of, nullptr), EDDY_OK);
  bind(run.get(), 1, &number);
  const std::pair<int64_t, float> cases[] = {{0, 3}, {1, 3}, {7, -3}};
  for (const auto& [taken, expected] : cases) {
    selector = taken;
    ASSERT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
    EXPECT_THAT(output_of(run.get(), 0), ElementsAre(expected)) << taken;
  }
}

TEST_F(CGraphs, AttributesSymbolsAndTypesArrive) {
  Owned<eddy_graph> graph = new_graph();
  eddy_graph g = graph.get();
  int64_t rows = 0;
  ASSERT_EQ(api().graph_symbol(g, "rows", &rows, nullptr), EDDY_OK);
  const eddy_value_id x = input(g, "x", {rows, 3});
  const int64_t order[] = {1, 0};
  eddy_attribute perm = {};
  perm.struct_size = sizeof(perm);
  perm.name = "perm";
  perm.kind = EDDY_ATTRIBUTE_INTS;
  perm.count = 2;
  perm.ints = order;
  eddy_node node = {};
  node.struct_size = sizeof(node);
  node.op = "Transpose";
  node.num_outputs = 1;
  node.inputs = &x;
  node.num_inputs = 1;
  node.attributes = &perm;
  node.num_attributes = 1;
  eddy_value_id y = 0;
  ASSERT_EQ(said([&](auto e) { return api().graph_node(g, &node, &y, e); }), "ok");
  eddy_type made = {};
  made.struct_size = sizeof(made);
  ASSERT_EQ(api().graph_type(g, y, &made, nullptr), EDDY_OK);
  EXPECT_EQ(made.rank, 2);
  EXPECT_EQ(made.dims[0], 3);
  EXPECT_EQ(made.dims[1], rows);
  output(g, "y", y);
  Owned<eddy_session> session = session_of(g, {{"dim.rows", "2"}, {"memory_limit", "10mb"}});
  const char* name = nullptr;
  ASSERT_EQ(api().session_input(session.get(), 0, &name, &made, nullptr), EDDY_OK);
  EXPECT_STREQ(name, "x");
  EXPECT_EQ(made.dims[0], 2) << "fixed by the option";
  ASSERT_EQ(api().graph_type(g, y, &made, nullptr), EDDY_OK) << "the graph is finished";
  EXPECT_EQ(made.dims[1], rows);
  EXPECT_THAT(said([&](auto e) { return api().graph_type(g, 0, &made, e); }),
              HasSubstr("the graph has given no value 0"));
}

TEST_F(CGraphs, GoToOnnxAndBack) {
  Owned<eddy_graph> graph = doubling();
  Owned<eddy_value> file;
  ASSERT_EQ(said([&](auto e) { return api().graph_export_bytes(graph.get(), file.out(), e); }),
            "ok");
  eddy_tensor bytes = {};
  ASSERT_EQ(api().value_tensor(file.get(), &bytes, nullptr), EDDY_OK);
  Owned<eddy_graph> again;
  ASSERT_EQ(said([&](auto e) {
              return api().graph_import_bytes(library.get(), bytes.data,
                                              static_cast<size_t>(bytes.dims[0]), again.out(), e);
            }),
            "ok");
  Owned<eddy_value> texts[2];
  ASSERT_EQ(api().graph_print(graph.get(), texts[0].out(), nullptr), EDDY_OK);
  ASSERT_EQ(api().graph_print(again.get(), texts[1].out(), nullptr), EDDY_OK);
  std::string read[2];
  for (int i = 0; i < 2; ++i) {
    eddy_tensor view = {};
    ASSERT_EQ(api().value_tensor(texts[i].get(), &view, nullptr), EDDY_OK);
    read[i] = {static_cast<const char*>(view.data), static_cast<size_t>(view.dims[0])};
  }
  EXPECT_EQ(read[0], read[1]);
  EXPECT_THAT(said([&](auto e) {
                Owned<eddy_graph> none;
                return api().graph_import_bytes(library.get(), "no model", 8, none.out(), e);
              }),
              HasSubstr("invalid argument"));
}

void set(void* user) { ++*static_cast<int*>(user); }

TEST_F(CGraphs, BorrowedConstantsAreReleasedOnceAlsoWhenRefused) {
  int released = 0;
  const float numbers[] = {1, 2};
  const std::vector<int64_t> dims = {2};
  const eddy_tensor of = tensor(numbers, dims);
  {
    Owned<eddy_graph> graph = new_graph();
    eddy_graph g = graph.get();
    eddy_value_id w = 0;
    ASSERT_EQ(said([&](auto e) {
                return api().graph_borrow_constant(g, &of, "w", set, &released, &w, e);
              }),
              "ok");
    output(g, "y", op(g, "Add", {input(g, "x", {2}), w}));
    Owned<eddy_session> session = session_of(g);
    Owned<eddy_run> run = run_of(session.get());
    ASSERT_EQ(api().run_bind_input_memory(run.get(), 0, &of, nullptr), EDDY_OK);
    ASSERT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
    EXPECT_THAT(output_of(run.get(), 0), ElementsAre(2, 4));
    EXPECT_EQ(released, 0);
    const eddy_tensor bad = {nullptr, dims.data(), 1, EDDY_FLOAT, {}};
    EXPECT_THAT(said([&](auto e) {
                  return api().graph_borrow_constant(g, &bad, "w", set, &released, &w, e);
                }),
                HasSubstr("the graph is finished"));
    EXPECT_EQ(released, 1);
  }
  EXPECT_EQ(released, 2);
}

TEST_F(CGraphs, WhatIsNestedTooDeeplyIsRefusedWhereItIsBuilt) {
  Owned<eddy_graph> graph = new_graph();
  eddy_case choice = {};
  choice.struct_size = sizeof(choice);
  choice.name = "deeper";
  choice.selector = input(graph.get(), "which", {}, EDDY_BOOL);
  choice.num_branches = 2;
  choice.default_branch = -1;
  std::string answer = "ok";
  int depth = 0;
  for (; depth < 5000 && answer == "ok"; ++depth) {
    answer = said([&](auto e) { return api().graph_begin_case(graph.get(), &choice, e); });
    if (answer != "ok") break;
    answer = said([&](auto e) { return api().graph_begin_branch(graph.get(), e); });
  }
  EXPECT_THAT(answer, HasSubstr("nested more than 900 deep"));
  EXPECT_LT(depth, 1000);
}

TEST_F(CGraphs, WhatIsNestedAsDeeplyAsItMayBeRuns) {
  Owned<eddy_graph> graph = new_graph();
  eddy_graph g = graph.get();
  const eddy_value_id x = input(g, "x", {});
  eddy_case choice = {};
  choice.struct_size = sizeof(choice);
  choice.name = "deeper";
  choice.selector = input(g, "which", {}, EDDY_BOOL);
  choice.num_branches = 2;
  choice.default_branch = -1;
  constexpr int kDepth = 900;
  for (int i = 0; i < kDepth; ++i) {
    ASSERT_EQ(said([&](auto e) { return api().graph_begin_case(g, &choice, e); }), "ok");
    ASSERT_EQ(said([&](auto e) { return api().graph_begin_branch(g, e); }), "ok");
  }
  eddy_value_id result = op(g, "Neg", {x});
  for (int i = 0; i < kDepth; ++i) {
    ASSERT_EQ(said([&](auto e) { return api().graph_end_branch(g, &result, 1, e); }), "ok");
    ASSERT_EQ(said([&](auto e) { return api().graph_begin_branch(g, e); }), "ok");
    ASSERT_EQ(said([&](auto e) { return api().graph_end_branch(g, &x, 1, e); }), "ok");
    ASSERT_EQ(said([&](auto e) { return api().graph_end_case(g, &result, 1, e); }), "ok");
  }
  output(g, "y", result);
  const Owned<eddy_session> session = session_of(g);
  const Owned<eddy_run> run = run_of(session.get());
  const float number = 3;
  bind(run.get(), 0, &number);
  const bool is_first = false;
  const eddy_tensor which = {const_cast<bool*>(&is_first), nullptr, 0, EDDY_BOOL, {}};
  ASSERT_EQ(api().run_bind_input_memory(run.get(), 1, &which, nullptr), EDDY_OK);
  ASSERT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
  EXPECT_THAT(output_of(run.get(), 0), testing::ElementsAre(-3));
}

}  // namespace
}  // namespace eddy::c
