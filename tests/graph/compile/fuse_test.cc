// Claim: trees of elementwise nodes of one device and one shape become one node, as large as
// readers, regions and limits allow, in loops and branches too; what has another reader behind the
// tree is a further result, and before its end a node of its own; a Split that trees alone read
// goes, and no other; a tree that the device refuses stays; the plan of what comes out is proved.
#include "graph/compile/fuse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "graph/ir/builder.h"
#include "graph/loops/trip_rule.h"
#include "graph/schedule/plan_graph.h"
#include "ops/schema/standard.h"
#include "tests/graph/compile/placed_graph.h"

namespace eddy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const ValueType kRow = tensor_type(ElementType::kFloat, {64});

class FuseTest : public ::testing::Test {
 protected:
  FuseTest() { EXPECT_TRUE(add_standard_schemas(ops_).is_ok()); }

  // An elementwise node on the device.
  static Value on_device(GraphBuilder& b, const char* op, std::initializer_list<Value> inputs,
                         const char* name = "") {
    return b.op(op, inputs, {}, {.name = name, .device = "cuda"});
  }

  FusedGraph fuse_it(GraphBuilder& b) {
    GraphOnDevice given = finish_on_device(b);
    options_.function_of = [this](const Graph& g, NodeId id) -> std::optional<ElementFunction> {
      const std::string& op = g.node(id).op->name;
      if (others_.contains(op)) return std::nullopt;
      return ElementFunction{op + "_f32", op == "LeakyRelu" ? 0.5f : 0.0f, 0};
    };
    options_.prepare = [this](const Expression& expression, const std::vector<ElementType>& inputs,
                              const std::vector<ElementType>& outputs) {
      EXPECT_EQ(inputs.size(), expression.num_inputs);
      EXPECT_EQ(outputs.size(), expression.num_results());
      programs_.push_back(expression.text());
      const bool refuses =
          refuses_ || (!refused_.empty() && programs_.back().find(refused_) != std::string::npos);
      return refuses ? unsupported("the compiler is out of order") : Status::ok();
    };
    Result<FusedGraph> fused =
        fuse(std::move(given.graph), ops_, std::move(given.value_devices), options_);
    EXPECT_TRUE(fused.is_ok()) << fused.status().to_string();
    check(*fused);
    return std::move(*fused);
  }

  // The nodes of the device determine where its values are, and a plan can be proved.
  static void check(const FusedGraph& fused) {
    expect_on_device(fused.graph, fused.value_devices);
    PlanOptions options;
    options.is_auto = false;
    options.devices = {"cpu", "cuda"};
    options.value_devices = fused.value_devices;
    Plan plan = plan_graph(fused.graph, options);
    const Status proof = prove_plan(fused.graph, plan);
    EXPECT_TRUE(proof.is_ok()) << proof.to_string();
  }

  // "region: operator name(inputs)" of every exec node, in order.
  static std::vector<std::string> nodes(const Graph& graph) {
    std::vector<std::string> lines;
    for (uint32_t r = 0; r < graph.num_regions(); ++r) {
      for (const NodeId id : graph.region(RegionId(r)).nodes) {
        const Node& node = graph.node(id);
        if (node.kind != NodeKind::kExec) continue;
        const std::string& region = graph.region(RegionId(r)).name;
        lines.push_back((region.empty() ? "" : region + ": ") + node.op->name);
      }
    }
    return lines;
  }

  OpTable ops_;
  FuseOptions options_;
  std::set<std::string> others_ = {"MatMul", "ReduceSum", "Identity"};
  std::vector<std::string> programs_;
  bool refuses_ = false;
  std::string refused_;  // of programs with this function
};

TEST_F(FuseTest, AChainBecomesOneNodeUnderTheNameOfItsEnd) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", kRow);
  const Value y = on_device(b, "Mul", {x, b.tensor<float>({1}, {2.0f})}, "scale");
  b.output("y", on_device(b, "LeakyRelu", {on_device(b, "Tanh", {y}, "squash")}, "end"));
  const FusedGraph fused = fuse_it(b);
  EXPECT_THAT(nodes(fused.graph), ElementsAre("Fused"));
  EXPECT_EQ(fused.graph.node(NodeId(0)).name, "end");
  EXPECT_EQ(fused.graph.node(NodeId(0)).device, "cuda");
  EXPECT_EQ(fused.graph.value(fused.graph.outputs()[0]).type, kRow);
  EXPECT_THAT(programs_,
              ElementsAre("Mul_f32 0 1; Tanh_f32 2; LeakyRelu_f32 3 @3f000000,00000000"));
  EXPECT_EQ(fused.report.text(),
            "1 fused kernel of 3 elementwise nodes\n"
            "  fused into end: Mul scale, Tanh squash, LeakyRelu end\n");
}

TEST_F(FuseTest, AResultThatTwoNodesOfATreeReadIsComputedOnce) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", kRow);
  const Value e = on_device(b, "Exp", {x});
  b.output("y", on_device(b, "Mul", {e, on_device(b, "Sigmoid", {e})}));
  EXPECT_THAT(nodes(fuse_it(b).graph), ElementsAre("Fused"));
  EXPECT_THAT(programs_, ElementsAre("Exp_f32 0; Sigmoid_f32 1; Mul_f32 1 2"));
}

TEST_F(FuseTest, WhatIsReadBeforeTheTreeEndsStaysANode) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", kRow);
  const Value e = on_device(b, "Exp", {x}, "shared");
  b.output("sum", on_device(b, "ReduceSum", {e}));
  b.output("y", on_device(b, "Tanh", {on_device(b, "Neg", {e})}));
  EXPECT_THAT(nodes(fuse_it(b).graph), ElementsAre("Exp", "ReduceSum", "Fused"));
}

TEST_F(FuseTest, WhatIsReadBehindTheTreeIsAFurtherResult) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", kRow);
  const Value e = on_device(b, "Exp", {x}, "e");
  const Value n = on_device(b, "Neg", {e}, "n");
  b.output("e", e);
  b.output("y", on_device(b, "Tanh", {n}, "end"));
  b.output("sum", on_device(b, "ReduceSum", {n}));
  const FusedGraph fused = fuse_it(b);
  EXPECT_THAT(nodes(fused.graph), ElementsAre("Fused", "ReduceSum"));
  EXPECT_THAT(programs_, ElementsAre("Exp_f32 0; Neg_f32 1; Tanh_f32 2 -> 1 2"));
  const Node& node = fused.graph.node(NodeId(0));
  ASSERT_EQ(node.outputs.size(), 3u);
  EXPECT_EQ(node.name, "end");
  EXPECT_THAT(fused.graph.outputs(), ElementsAre(node.outputs[1], node.outputs[0],
                                                 fused.graph.node(NodeId(1)).outputs[0]));
}

// The first tree that reads it takes it, if the other one is behind that.
TEST_F(FuseTest, OneOfTwoTreesMakesWhatBothRead) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", kRow);
  const Value e = on_device(b, "Exp", {x});
  const Value s = b.op("ReduceSum", {on_device(b, "Tanh", {e})}, {}, {.device = "cuda"});
  b.output("y", on_device(b, "Add", {on_device(b, "Neg", {e}), s}));
  EXPECT_THAT(nodes(fuse_it(b).graph), ElementsAre("Fused", "ReduceSum", "Fused"));
  EXPECT_THAT(programs_, ::testing::UnorderedElementsAre("Exp_f32 0; Tanh_f32 1 -> 1",
                                                         "Neg_f32 1; Add_f32 2 0"));
}

TEST_F(FuseTest, ALoopThatReadsAResultStandsBehindItsNode) {
  // Inside it is read, or handed on as it is.
  for (const auto& [is_behind, is_read] :
       {std::pair{false, true}, {true, true}, {false, false}, {true, false}}) {
    programs_.clear();
    GraphBuilder b(ops_);
    const Value x = b.input("x", kRow);
    const Value e = on_device(b, "Exp", {x});
    Value y;
    if (is_behind) y = on_device(b, "Neg", {e});
    const auto chosen = b.if_else(
        b.input("p", tensor_type(ElementType::kBool, {})),
        [&, reads = is_read] {
          return std::vector<Value>{reads ? on_device(b, "ReduceSum", {e}) : e};
        },
        [&] { return std::vector<Value>{on_device(b, "ReduceSum", {x})}; });
    b.output("c", chosen[0]);
    if (!is_behind) y = on_device(b, "Neg", {e});
    b.output("y", y);
    const std::vector<std::string> made = nodes(fuse_it(b).graph);
    EXPECT_EQ(made[0], is_behind ? "Fused" : "Exp");
    EXPECT_EQ(programs_.size(), is_behind ? 1u : 0u);
  }
}

// What else reads it would wait for the product, too.
TEST_F(FuseTest, ATreeThatReadsWhatIsMadeLaterGivesNothingElse) {
  for (const bool is_later : {false, true}) {
    programs_.clear();
    GraphBuilder b(ops_);
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {8, 8}));
    const auto product = [&] { return b.op("MatMul", {x, x}, {}, {.device = "cuda"}); };
    Value p, e;
    if (!is_later) p = product();
    e = on_device(b, "Exp", {x});
    if (is_later) p = product();
    b.output("y", on_device(b, "Add", {e, p}));
    b.output("sum", b.op("ReduceSum", {e}, {}, {.device = "cuda"}));
    const std::vector<std::string> made = nodes(fuse_it(b).graph);
    const std::vector<std::string> apart = {"Exp", "MatMul", "Add", "ReduceSum"};
    const std::vector<std::string> fused = {"MatMul", "Fused", "ReduceSum"};
    EXPECT_EQ(made, is_later ? apart : fused);
  }
}

// How often the loop runs is read off its predicate (graph/loops/trip_rule.h).
TEST_F(FuseTest, APredicateThatOthersReadStaysANode) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {}));
  const Value bound = b.input("bound", tensor_type(ElementType::kInt64, {}));
  const auto results = b.while_loop(
      {.name = "loop", .initial = {x}},
      [&](Value iteration, ValueSpan carried) {
        const Value goes_on = on_device(b, "Less", {iteration, bound});
        const Value kept = on_device(b, "Where", {goes_on, carried[0], x});
        return WhileTest{goes_on, {on_device(b, "Exp", {kept})}};
      },
      [&](Value, ValueSpan carried) { return std::vector<Value>{carried[0]}; });
  b.output("y", results[0]);
  const FusedGraph fused = fuse_it(b);
  EXPECT_THAT(nodes(fused.graph), ElementsAre("before: Less", "before: Fused"));
  const NodeId loop = fused.graph.value(fused.graph.outputs()[0]).producer;
  EXPECT_TRUE(find_trip_rule(fused.graph, loop).is_settled);
}

TEST_F(FuseTest, ATreeHasNoMoreResultsThanTheLimit) {
  options_.max_results = 3;
  GraphBuilder b(ops_);
  Value x = b.input("x", kRow);
  for (int i = 0; i < 5; ++i) b.output("y" + std::to_string(i), x = on_device(b, "Exp", {x}));
  EXPECT_THAT(nodes(fuse_it(b).graph), ElementsAre("Fused", "Fused"));
  EXPECT_THAT(programs_, ::testing::UnorderedElementsAre("Exp_f32 0; Exp_f32 1 -> 1",
                                                         "Exp_f32 0; Exp_f32 1; Exp_f32 2 -> 1 2"));
}

TEST_F(FuseTest, OnlyResultsOfOneShapeAreFused) {
  GraphBuilder b(ops_);
  const Value wide = b.input("wide", tensor_type(ElementType::kFloat, {8, 64}));
  const Value row = b.input("row", kRow);
  const Value bias = on_device(b, "Exp", {on_device(b, "Neg", {row})});
  b.output("y", on_device(b, "Tanh", {on_device(b, "Add", {wide, bias})}));
  EXPECT_THAT(nodes(fuse_it(b).graph), ElementsAre("Fused", "Fused"));
  EXPECT_THAT(programs_,
              ::testing::UnorderedElementsAre("Neg_f32 0; Exp_f32 1", "Add_f32 0 1; Tanh_f32 2"));
}

TEST_F(FuseTest, SymbolsAndOperatorsOfOneInputKeepAnUnknownShape) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {b.symbol("n"), 4}));
  const Value u = b.input("u", tensor_type(ElementType::kFloat, {kUnknownDim}));
  const Value v = b.input("v", tensor_type(ElementType::kFloat, {kUnknownDim}));
  b.output("symbolic", on_device(b, "Exp", {on_device(b, "Add", {x, x})}));
  b.output("unary", on_device(b, "Tanh", {on_device(b, "Exp", {on_device(b, "Add", {u, v})})}));
  // Whether u + v has the shape of u + v + u is not known.
  b.output("apart", on_device(b, "Add", {u, on_device(b, "Add", {u, v})}));
  EXPECT_THAT(nodes(fuse_it(b).graph), ElementsAre("Fused", "Fused", "Add", "Add"));
}

TEST_F(FuseTest, NodesOfTheCpuStayAndSoDoOtherDomains) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", kRow);
  const Value on_cpu = b.op("Exp", {x}, {}, {.device = "cpu"});
  const Value there = b.op("ToDevice", {on_cpu}, {}, {.domain = "eddy", .device = "cuda"});
  b.output("y", on_device(b, "Neg", {there}));
  EXPECT_THAT(nodes(fuse_it(b).graph), ElementsAre("Exp", "ToDevice", "Neg"));
}

TEST_F(FuseTest, BodiesOfLoopsAndBranchesAreFusedEachForItself) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", kRow);
  const Value limit = b.input("limit", tensor_type(ElementType::kFloat, {}));
  const Value captured = on_device(b, "Exp", {on_device(b, "Neg", {x})}, "captured");
  const auto results = b.while_loop(
      {.name = "grow", .initial = {x}},
      [&](Value, ValueSpan carried) {
        const Value squares = on_device(b, "Mul", {carried[0], carried[0]});
        const Value sum = b.op("ReduceSum", {on_device(b, "Sqrt", {squares})},
                               {{"keepdims", int64_t{0}}}, {.device = "cuda"});
        return WhileTest{b.op("Less", {sum, limit}, {}, {.device = "cpu"}), {carried[0]}};
      },
      [&](Value, ValueSpan carried) {
        const Value y = on_device(b, "Mul", {carried[0], captured});
        return std::vector<Value>{on_device(b, "Add", {y, on_device(b, "Exp", {y})})};
      });
  const Value is_large = b.input("is_large", tensor_type(ElementType::kBool, {}));
  const auto chosen = b.if_else(
      is_large,
      [&] { return std::vector<Value>{on_device(b, "Neg", {on_device(b, "Tanh", {results[0]})})}; },
      [&] { return std::vector<Value>{on_device(b, "Neg", {results[0]})}; });
  b.output("y", chosen[0]);
  const FusedGraph fused = fuse_it(b);
  EXPECT_THAT(nodes(fused.graph),
              ElementsAre("Fused", "before: Fused", "before: ReduceSum", "before: Less",
                          "after: Fused", "else: Neg", "then: Fused"));
  EXPECT_THAT(fused.report.text(), HasSubstr("fused into grow/"));
}

TEST_F(FuseTest, LimitsCutATreeAndTheRestBecomesTreesOfItsOwn) {
  options_.max_steps = 4;
  GraphBuilder b(ops_);
  Value x = b.input("x", kRow);
  for (int i = 0; i < 10; ++i) x = on_device(b, "Exp", {x});
  b.output("y", x);
  EXPECT_THAT(nodes(fuse_it(b).graph), ElementsAre("Fused", "Fused", "Fused"));

  options_.max_inputs = 3;
  GraphBuilder c(ops_);
  Value sum = c.input("x", kRow);
  for (int i = 0; i < 4; ++i) {
    sum = on_device(c, "Add", {sum, c.input("i" + std::to_string(i), kRow)});
  }
  c.output("y", sum);
  EXPECT_THAT(nodes(fuse_it(c).graph), ElementsAre("Fused", "Fused"));
}

TEST_F(FuseTest, ATreeThatTheDeviceRefusesStaysAndTheReportSaysWhy) {
  refuses_ = true;
  GraphBuilder b(ops_);
  const Value x = b.input("x", kRow);
  b.output("y", on_device(b, "Tanh", {on_device(b, "Exp", {x})}, "end"));
  const FusedGraph fused = fuse_it(b);
  EXPECT_THAT(nodes(fused.graph), ElementsAre("Exp", "Tanh"));
  EXPECT_THAT(fused.report.text(), HasSubstr("not fused: end: the compiler is out of order"));
}

// The gates of an LSTM's cell: four parts, of which two trees and one node read.
struct Gates {
  Value whole;
  std::vector<Value> parts;
};
Gates gates(GraphBuilder& b, int64_t axis) {
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {8, 8}));
  const Value whole = b.op("MatMul", {x, x}, {}, {.device = "cuda"});
  const Value sizes = b.tensor<int64_t>({4}, {2, 2, 2, 2});
  return {whole, b.ops("Split", std::vector<Value>{whole, sizes}, {{"axis", axis}},
                       {.name = "gates", .num_outputs = 4, .device = "cuda"})};
}

TEST_F(FuseTest, ASplitWhosePartsTreesAloneReadGoes) {
  for (const int64_t axis : {0, 1, -1}) {
    GraphBuilder b(ops_);
    const Gates g = gates(b, axis);
    const Value in = on_device(b, "Mul", {on_device(b, "Sigmoid", {g.parts[0]}), g.parts[3]});
    b.output("c", on_device(b, "Add", {in, g.parts[2]}, "c"));
    b.output("h", on_device(b, "Tanh", {g.parts[1]}, "h"));
    const FusedGraph fused = fuse_it(b);
    EXPECT_THAT(nodes(fused.graph), ElementsAre("MatMul", "FusedParts", "FusedParts"));
    const int64_t at = axis == 0 ? 0 : 1;
    std::map<std::string, std::vector<int64_t>> parts;
    for (uint32_t n = 1; n < 3; ++n) {
      const Node& node = fused.graph.node(NodeId(n));
      const auto numbers = node.attributes.get_ints("parts");
      parts[node.name].assign(numbers.begin(), numbers.end());
      for (const ValueId input : node.inputs) {
        EXPECT_EQ(input, fused.graph.node(NodeId(0)).outputs[0]) << "each input is the whole";
      }
    }
    EXPECT_THAT(parts["h"], ElementsAre(at, 2, 2));
    ASSERT_EQ(parts["c"].size(), 9u);
    std::set<int64_t> firsts;
    for (size_t i = 0; i < 9; i += 3) {
      firsts.insert(parts["c"][i + 1]);
      EXPECT_THAT(std::vector(parts["c"].begin() + static_cast<ptrdiff_t>(i),
                              parts["c"].begin() + static_cast<ptrdiff_t>(i) + 3),
                  ElementsAre(at, ::testing::_, 2));
    }
    EXPECT_THAT(firsts, ElementsAre(0, 4, 6));
    EXPECT_THAT(fused.report.text(), HasSubstr("  read in place: parts of gates\n"));
  }
}

TEST_F(FuseTest, ASplitThatAnotherNodeReadsStays) {
  const auto fused_with = [&](const std::function<void(GraphBuilder&, const Gates&)>& other) {
    GraphBuilder b(ops_);
    const Gates g = gates(b, 1);
    b.output("y", on_device(b, "Tanh", {on_device(b, "Add", {g.parts[0], g.parts[1]})}));
    b.output("z", on_device(b, "Exp", {g.parts[2]}));
    other(b, g);
    return nodes(fuse_it(b).graph);
  };
  EXPECT_THAT(fused_with([](GraphBuilder&, const Gates&) {}),
              ElementsAre("MatMul", "FusedParts", "FusedParts"))
      << "the last part has no reader";
  EXPECT_THAT(fused_with([](GraphBuilder& b, const Gates& g) { b.output("p", g.parts[3]); }),
              ElementsAre("MatMul", "Split", "Fused", "Exp"));
  EXPECT_THAT(fused_with([](GraphBuilder& b, const Gates& g) {
                b.output("s", on_device(b, "ReduceSum", {g.parts[0]}));
              }),
              ElementsAre("MatMul", "Split", "Fused", "Exp", "ReduceSum"));
  EXPECT_THAT(fused_with([](GraphBuilder& b, const Gates& g) {
                b.output("s", b.op("Exp", {g.parts[3]}, {}, {.name = "of the CPU"}));
              }),
              ElementsAre("MatMul", "Split", "Fused", "Exp", "Exp"));
}

TEST_F(FuseTest, ASplitThatARefusedTreeReadsStays) {
  refused_ = "Neg_f32";
  GraphBuilder b(ops_);
  const Gates g = gates(b, 1);
  b.output("y", on_device(b, "Tanh", {on_device(b, "Add", {g.parts[0], g.parts[1]})}));
  b.output("z", on_device(b, "Neg", {g.parts[2]}, "end"));
  b.output("e", on_device(b, "Exp", {g.parts[3]}));
  const FusedGraph fused = fuse_it(b);
  EXPECT_THAT(nodes(fused.graph), ElementsAre("MatMul", "Split", "Fused", "Neg", "Exp"));
  EXPECT_THAT(fused.report.text(), HasSubstr("not fused: end: "));
  EXPECT_THAT(fused.report.text(), ::testing::Not(HasSubstr("in place")));
}

TEST_F(FuseTest, AHundredThousandNodesAreFusedInAMoment) {
  GraphBuilder b(ops_);
  Value x = b.input("x", kRow);
  for (int i = 0; i < 100'000; ++i) x = on_device(b, i % 3 == 0 ? "Identity" : "Exp", {x});
  b.output("y", x);
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok());
  options_.function_of = [](const Graph& g, NodeId id) -> std::optional<ElementFunction> {
    if (g.node(id).op->name == "Identity") return std::nullopt;
    return ElementFunction{"Exp_f32"};
  };
  options_.prepare = [](const Expression&, const std::vector<ElementType>&,
                        const std::vector<ElementType>&) { return Status::ok(); };
  const std::vector<uint32_t> devices(graph->num_values(), 1);
  const auto fused = fuse(std::move(*graph), ops_, devices, options_);
  ASSERT_TRUE(fused.is_ok());
  EXPECT_EQ(fused->report.kernels.size(), 33'333u);
}

}  // namespace
}  // namespace eddy
