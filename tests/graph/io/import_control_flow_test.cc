// Claim: If, Loop, SequenceMap, CaseOf and While become case-of and while nodes with ONNX's
// meaning: names resolve inside out, the check comes before the body, counts and types are
// checked.
#include <gtest/gtest.h>

#include "graph/io/export.h"
#include "tests/graph/io/test_import.h"

namespace eddy {
namespace {

using namespace test;  // NOLINT: a test's own vocabulary

const Node& node_of(const Graph& g, NodeKind kind) {
  for (uint32_t n = 0; n < g.num_nodes(); ++n) {
    if (g.node(NodeId(n)).kind == kind) return g.node(NodeId(n));
  }
  EDDY_CHECK(false) << "no such node";
  return g.node(NodeId(0));
}

struct LoopParts {
  Messages body_nodes;
  Names body_outputs;
  Names inputs = {"m", "c", "x"};
  Names outputs = {"y"};
  Messages body_inputs = {info("i", int64s({})), info("ci", bools({})), info("v", floats({2}))};
};

std::string loop_model(const LoopParts& parts) {
  Messages body_outputs, outputs;
  for (const std::string& name : parts.body_outputs) body_outputs.push_back(untyped(name));
  for (const std::string& name : parts.outputs) outputs.push_back(untyped(name));
  const WireWriter body =
      graph({.nodes = parts.body_nodes, .inputs = parts.body_inputs, .outputs = body_outputs});
  return model(graph(
      {.nodes = {node("Loop", parts.inputs, parts.outputs, {graph_attribute("body", body)}, "L")},
       .inputs = {info("m", int64s({})), info("c", bools({})), info("x", floats({2})),
                  info("limit", floats({2}))},
       .outputs = outputs}));
}

const Messages kStep = {node("Add", {"v", "limit"}, {"v2"}), node("Less", {"i", "i"}, {"go"})};

TEST(ImportLoop, TheConditionIsCarriedAndOnlyChecked) {
  const Graph g = must_import(loop_model({.body_nodes = kStep, .body_outputs = {"go", "v2"}}));
  const Node& loop = node_of(g, NodeKind::kWhile);
  EXPECT_EQ(loop.name, "L");
  ASSERT_EQ(loop.inputs.size(), 3u);  // trip limit, condition, x
  EXPECT_EQ(g.value(loop.inputs[0]).name, "m");
  EXPECT_EQ(g.value(loop.inputs[1]).name, "c");
  const Region& before = g.region(loop.regions[0]);
  EXPECT_TRUE(before.nodes.empty());
  ASSERT_EQ(before.results.size(), 2u);
  EXPECT_EQ(before.results[0], before.parameters[1]);
  EXPECT_EQ(before.results[1], before.parameters[2]);
  const Region& after = g.region(loop.regions[1]);
  EXPECT_EQ(after.nodes.size(), 2u);
  EXPECT_EQ(g.value(after.results[0]).name, "go");
  EXPECT_EQ(g.value(after.results[1]).name, "v2");
  ASSERT_EQ(after.captures.size(), 1u);
  EXPECT_EQ(g.value(after.captures[0]).name, "limit");
  EXPECT_EQ(loop.outputs.size(), 1u);
}

TEST(ImportLoop, WithoutAConditionThePredicateIsTrueAndTheBodysIsIgnored) {
  const Graph g = must_import(
      loop_model({.body_nodes = kStep, .body_outputs = {"go", "v2"}, .inputs = {"m", "", "x"}}));
  const Node& loop = node_of(g, NodeKind::kWhile);
  EXPECT_EQ(loop.inputs.size(), 2u);
  const ValueInfo& predicate = g.value(g.region(loop.regions[0]).results[0]);
  ASSERT_EQ(predicate.origin, ValueOrigin::kConstant);
  EXPECT_EQ(*g.constant(predicate.constant).view().as<uint8_t>(), 1);
  EXPECT_EQ(g.region(loop.regions[1]).results.size(), 1u);
}

TEST(ImportLoop, WithoutATripLimitTheFirstInputIsNone) {
  const Graph g = must_import(
      loop_model({.body_nodes = kStep, .body_outputs = {"go", "v2"}, .inputs = {"", "c", "x"}}));
  EXPECT_TRUE(node_of(g, NodeKind::kWhile).inputs[0].is_none());
}

TEST(ImportLoop, FurtherBodyOutputsAreStacked) {
  const Graph g = must_import(loop_model(
      {.body_nodes = kStep, .body_outputs = {"go", "v2", "v2", "i"}, .outputs = {"y", "s", "t"}}));
  const Node& loop = node_of(g, NodeKind::kWhile);
  EXPECT_EQ(loop.num_scan_outputs, 2u);
  EXPECT_EQ(to_string(g.value(g.outputs()[1]).type), "float[?,2]");
  EXPECT_EQ(to_string(g.value(g.outputs()[2]).type), "int64[?]");
}

TEST(ImportLoop, InsideTheBodyTheConditionIsTrue) {
  const Graph g = must_import(
      loop_model({.body_nodes = {node("Not", {"ci"}, {"go"})}, .body_outputs = {"go", "v"}}));
  const Region& after = g.region(node_of(g, NodeKind::kWhile).regions[1]);
  const ValueInfo& input = g.value(g.node(after.nodes[0]).inputs[0]);
  ASSERT_EQ(input.origin, ValueOrigin::kConstant);
  EXPECT_EQ(*g.constant(input.constant).view().as<uint8_t>(), 1);
}

TEST(ImportLoop, CarriedShapesMayGrow) {
  const Graph g = must_import(
      loop_model({.body_nodes = {node("Concat", {"v", "limit"}, {"v2"}, {attribute("axis", 0)})},
                  .body_outputs = {"ci", "v2"}}));
  EXPECT_EQ(to_string(g.value(g.outputs()[0]).type), "float[?]");
}

TEST(ImportLoop, WiderDeclaredTypesHoldAndUndeclaredShapesDoNot) {
  Messages inputs = {info("i", int64s({})), info("ci", bools({})), info("v", floats({-1}))};
  const Graph wide = must_import(
      loop_model({.body_nodes = kStep, .body_outputs = {"go", "v"}, .body_inputs = inputs}));
  EXPECT_EQ(to_string(wide.value(wide.outputs()[0]).type), "float[?]");
  inputs[2] = info("v", TensorType(ElementType::kFloat));
  const Graph bare = must_import(
      loop_model({.body_nodes = kStep, .body_outputs = {"go", "v"}, .body_inputs = inputs}));
  EXPECT_EQ(to_string(bare.value(bare.outputs()[0]).type), "float[2]");
}

TEST(ImportLoop, ABodyOfWrongArityIsRefused) {
  LoopParts parts{.body_nodes = kStep, .body_outputs = {"go", "v2"}};
  parts.body_inputs.pop_back();
  expect_import_error(loop_model(parts), StatusCode::kInvalidArgument,
                      "node 'L' (Loop): its graph 'body' takes 2 inputs, but 3 are passed");
  expect_import_error(loop_model({.body_nodes = kStep, .body_outputs = {"go"}}),
                      StatusCode::kInvalidArgument, "gives 1 outputs, but at least 2 are needed");
}

TEST(ImportLoop, APredicateThatIsNoBoolIsRefused) {
  expect_import_error(
      loop_model({.body_nodes = kStep, .body_outputs = {"go", "v2"}, .inputs = {"m", "x", "x"}}),
      StatusCode::kInvalidArgument,
      "node 'L' (Loop): the condition must be one bool, not float[2]");
  expect_import_error(loop_model({.body_nodes = kStep, .body_outputs = {"v2", "v2"}}),
                      StatusCode::kInvalidArgument,
                      "its body's condition, output 'v2', must be one bool, not float[2]");
}

TEST(ImportLoop, ATripLimitThatIsNoInt64IsRefused) {
  expect_import_error(
      loop_model({.body_nodes = kStep, .body_outputs = {"go", "v2"}, .inputs = {"x", "c", "x"}}),
      StatusCode::kInvalidArgument, "trip limit must be one int64");
}

TEST(ImportLoop, AMissingBodyIsNamed) {
  expect_import_error(model(graph({.nodes = {node("Loop", {"m"}, {"y"}, {}, "L")},
                                   .inputs = {info("m", int64s({}))},
                                   .outputs = {untyped("y")}})),
                      StatusCode::kInvalidArgument, "needs a graph as attribute 'body'");
}

TEST(ImportLoop, ErrorsInsideABodyCarryThePath) {
  const Result<Graph> g =
      import_text(loop_model({.body_nodes = {node("Add", {"v", "nowhere"}, {"v2"}, {}, "inner")},
                              .body_outputs = {"ci", "v2"}}));
  ASSERT_FALSE(g.is_ok());
  EXPECT_EQ(g.status().path(), "L");
  EXPECT_NE(g.status().message().find("node 'inner' (Add): input 'nowhere'"), std::string::npos);
}

std::string if_model(const WireWriter& then_graph, const WireWriter& else_graph,
                     const ValueType& condition = bools({}), const Messages& more = {}) {
  Messages nodes = {
      node("If", {"c"}, {"y"},
           {graph_attribute("then_branch", then_graph), graph_attribute("else_branch", else_graph)},
           "choice")};
  nodes.insert(nodes.end(), more.begin(), more.end());
  return model(graph({.nodes = nodes,
                      .inputs = {info("c", condition), info("x", floats({2}))},
                      .outputs = {untyped("y")}}));
}

TEST(ImportIf, TheThenBranchIsRegionOne) {
  const Graph g =
      must_import(if_model(graph({.nodes = {node("Neg", {"x"}, {"r"})}, .outputs = {untyped("r")}}),
                           graph({.outputs = {untyped("x")}})));
  const Node& choice = node_of(g, NodeKind::kCaseOf);
  ASSERT_EQ(choice.regions.size(), 2u);
  EXPECT_EQ(g.region(choice.regions[0]).nodes.size(), 0u);
  EXPECT_EQ(g.region(choice.regions[0]).results[0], g.inputs()[1]);
  EXPECT_EQ(g.region(choice.regions[1]).nodes.size(), 1u);
}

TEST(ImportIf, InnerDefinitionsHideOuterOnes) {
  const WireWriter hides = graph(
      {.nodes = {node("Neg", {"x"}, {"t"}), node("Abs", {"t"}, {"y"})}, .outputs = {untyped("y")}});
  const std::string text = if_model(hides, hides, bools({}), {node("Neg", {"y"}, {"t"})});
  const Graph g = must_import(text);
  const Region& then_region = g.region(node_of(g, NodeKind::kCaseOf).regions[1]);
  const Node& inner = g.node(then_region.nodes[1]);
  EXPECT_EQ(inner.inputs[0], g.node(then_region.nodes[0]).outputs[0]);
}

TEST(ImportIf, CapturesReachThroughSeveralLevels) {
  const WireWriter inner =
      graph({.nodes = {node("Neg", {"x"}, {"deep"})}, .outputs = {untyped("deep")}});
  const WireWriter outer = graph({.nodes = {node("If", {"c"}, {"mid"},
                                                 {graph_attribute("then_branch", inner),
                                                  graph_attribute("else_branch", inner)})},
                                  .outputs = {untyped("mid")}});
  const Graph g = must_import(if_model(outer, outer));
  EXPECT_EQ(count_ops(g, "Neg"), 4u);
  for (uint32_t r = 1; r < g.num_regions(); ++r) {
    EXPECT_FALSE(g.region(RegionId(r)).captures.empty());
  }
}

TEST(ImportIf, ConditionsOtherThanOneBoolAreRefused) {
  const WireWriter branch = graph({.outputs = {untyped("x")}});
  expect_import_error(if_model(branch, branch, int64s({})), StatusCode::kInvalidArgument,
                      "(If): the condition must be one bool, not int64[]");
  expect_import_error(if_model(branch, branch, bools({2})), StatusCode::kInvalidArgument,
                      "must be one bool");
}

TEST(ImportIf, BranchesOfDifferentTypesOrCountsAreRefused) {
  const WireWriter x = graph({.outputs = {untyped("x")}});
  expect_import_error(if_model(x, graph({.outputs = {untyped("c")}})), StatusCode::kInvalidArgument,
                      "choice");
  expect_import_error(if_model(x, graph({})), StatusCode::kInvalidArgument,
                      "its graph 'else_branch' gives 0 outputs");
  expect_import_error(
      if_model(x, graph({.inputs = {info("p", floats({}))}, .outputs = {untyped("p")}})),
      StatusCode::kInvalidArgument, "takes 1 inputs, but 0 are passed");
}

TEST(ImportIf, NestingBeyondTheLimitIsRefused) {
  ImportOptions options;
  options.limits.max_nesting = 6;
  WireWriter branch = graph({.outputs = {untyped("x")}});
  const auto deeper = [&](int levels) {
    for (int i = 0; i < levels; ++i) {
      branch = graph({.nodes = {node("If", {"c"}, {"r"},
                                     {graph_attribute("then_branch", branch),
                                      graph_attribute("else_branch", branch)})},
                      .outputs = {untyped("r")}});
    }
    return if_model(branch, branch);
  };
  EXPECT_TRUE(import_text(deeper(3), options).is_ok());
  expect_import_error(deeper(3), StatusCode::kResourceExhausted, "nested more than 6 deep",
                      options);
}

TEST(ImportSequenceMap, BecomesALoopOverTheElements) {
  const WireWriter body = graph({.nodes = {node("Add", {"a", "b"}, {"s"})},
                                 .inputs = {info("a", floats({-1})), info("b", floats({2}))},
                                 .outputs = {info("s", floats({-1}))}});
  const Graph g = must_import(model(
      graph({.nodes = {node("SequenceMap", {"xs", "x"}, {"ys"}, {graph_attribute("body", body)})},
             .inputs = {info("xs", ValueType::sequence_of(floats({2}))), info("x", floats({2}))},
             .outputs = {untyped("ys")}})));
  EXPECT_EQ(count_ops(g, "SequenceAt"), 1u);
  EXPECT_EQ(count_ops(g, "SequenceInsert"), 1u);
  EXPECT_TRUE(g.value(g.outputs()[0]).type.is_sequence());
}

TEST(ImportCaseOf, BranchesDefaultAndPassThroughAreRead) {
  const WireWriter pass = graph({.outputs = {untyped("x")}});
  const WireWriter neg = graph({.nodes = {node("Neg", {"x"}, {"r"})}, .outputs = {untyped("r")}});
  const auto text = [&](int64_t fallback) {
    return model(
        graph({.nodes = {node("CaseOf", {"s", "x"}, {"y"},
                              {graph_attribute("branch_0", pass), graph_attribute("branch_1", neg),
                               graph_attribute("branch_2", pass), attribute("default", fallback)},
                              "pick", "eddy")},
               .inputs = {info("s", int64s({})), info("x", floats({2}))},
               .outputs = {untyped("y")}}));
  };
  const Graph g = must_import(text(1));
  const Node& pick = node_of(g, NodeKind::kCaseOf);
  EXPECT_EQ(pick.regions.size(), 3u);
  EXPECT_EQ(pick.default_region, 1);
  EXPECT_EQ(pick.inputs.size(), 2u);
  expect_import_error(text(3), StatusCode::kInvalidArgument, "default region 3 does not exist");
  expect_import_error(text(-2), StatusCode::kInvalidArgument, "has a bad default");
}

TEST(ImportWhile, BothRegionsAreRead) {
  const WireWriter before =
      graph({.nodes = {node("Abs", {"v"}, {"f"}), node("Less", {"i", "m"}, {"p"})},
             .inputs = {info("i", int64s({})), info("v", floats({2}))},
             .outputs = {untyped("p"), untyped("f")}});
  const WireWriter after = graph({.nodes = {node("Neg", {"u"}, {"n"})},
                                  .inputs = {info("j", int64s({})), info("u", floats({2}))},
                                  .outputs = {untyped("n"), untyped("j")}});
  const auto text = [&](const WireWriter& second) {
    return model(
        graph({.nodes = {node("While", {"", "x"}, {"y", "js"},
                              {graph_attribute("before", before), graph_attribute("after", second)},
                              "W", "eddy")},
               .inputs = {info("m", int64s({})), info("x", floats({2}))},
               .outputs = {untyped("y"), untyped("js")}}));
  };
  const Graph g = must_import(text(after));
  const Node& loop = node_of(g, NodeKind::kWhile);
  EXPECT_EQ(loop.num_scan_outputs, 1u);
  EXPECT_EQ(g.region(loop.regions[0]).nodes.size(), 2u);
  EXPECT_EQ(g.value(g.region(loop.regions[1]).parameters[1]).name, "u");
  expect_import_error(text(graph({.outputs = {untyped("x")}})), StatusCode::kInvalidArgument,
                      "its graph 'after' takes 0 inputs, but 2 are passed");
}

// How ranks agree on a decision is metadata of its node, and a mark on the decision in the graph.
WireWriter with_agree(WireWriter node, std::string_view how) {
  WireWriter entry;
  entry.bytes(1, "eddy.agree");
  entry.bytes(2, how);
  node.message(9, entry);
  return node;
}

std::string agreeing_loop(std::string_view how) {
  const WireWriter body =
      graph({.nodes = kStep,
             .inputs = {info("i", int64s({})), info("ci", bools({})), info("v", floats({2}))},
             .outputs = {untyped("go"), untyped("v2")}});
  return model(
      graph({.nodes = {with_agree(
                 node("Loop", {"m", "c", "x"}, {"y"}, {graph_attribute("body", body)}, "L"), how)},
             .inputs = {info("m", int64s({})), info("c", bools({})), info("x", floats({2})),
                        info("limit", floats({2}))},
             .outputs = {untyped("y")}}));
}

TEST(ImportAgree, TheLoopsPredicateIsMarkedAndStaysSoInAFile) {
  const Graph first = must_import(agreeing_loop("root:2"));
  const std::string text = format_onnx(first).value();
  const Graph second = must_import(text);
  for (const Graph* const g : {&first, &second}) {
    const Node& loop = node_of(*g, NodeKind::kWhile);
    const ValueInfo& predicate = g->value(g->region(loop.regions[0]).results[0]);
    ASSERT_EQ(predicate.origin, ValueOrigin::kNodeOutput);
    const Node& mark = g->node(predicate.producer);
    EXPECT_EQ(mark.op->name, "Agree");
    EXPECT_EQ(mark.name, "L_agree");
    EXPECT_EQ(mark.attributes.get_string("how", ""), "root");
    EXPECT_EQ(mark.attributes.get_int("root", -1), 2);
    EXPECT_EQ(mark.inputs[0], g->region(loop.regions[0]).parameters[1]);
  }
}

TEST(ImportAgree, TheConditionOfAnIfIsMarked) {
  const auto branch = [](const char* op, const char* name) {
    return graph({.nodes = {node(op, {"x"}, {name})}, .outputs = {untyped(name)}});
  };
  const Graph g = must_import(
      model(graph({.nodes = {with_agree(node("If", {"c"}, {"y"},
                                             {graph_attribute("then_branch", branch("Neg", "t")),
                                              graph_attribute("else_branch", branch("Abs", "e"))},
                                             "I"),
                                        "any")},
                   .inputs = {info("c", bools({})), info("x", floats({2}))},
                   .outputs = {untyped("y")}})));
  const ValueInfo& selector = g.value(node_of(g, NodeKind::kCaseOf).inputs[0]);
  ASSERT_EQ(selector.origin, ValueOrigin::kNodeOutput);
  EXPECT_EQ(g.node(selector.producer).attributes.get_string("how", ""), "any");
}

TEST(ImportAgree, UnknownWordsAreRefusedWithTheNode) {
  for (const char* const how :
       {"some", "root:", "root:x", "all:1", "root:-1", "root:99999999999"}) {
    expect_import_error(agreeing_loop(how), StatusCode::kInvalidArgument, "node 'L' (Loop)");
    expect_import_error(agreeing_loop(how), StatusCode::kInvalidArgument,
                        "must be all, any, root or root:RANK");
  }
}

}  // namespace
}  // namespace eddy
