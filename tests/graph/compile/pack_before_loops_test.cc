// Claim: a matrix from outside of a loop that products in it read turned over, by their own flag or
// through transpositions, is turned over before the outermost loop that it comes from outside of,
// once for all that read it there; where it is turned to and fro, it is read as it lies, and
// transpositions that nothing else reads go; what the loop changes, constants, products of one row,
// batches and other types stay as they are. Where products in the loop have many terms it is packed
// there instead, and like products behind the loop read what was packed.
#include "graph/compile/pack_before_loops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

using ::testing::ElementsAre;
using Names = std::vector<std::string>;

class PackBeforeLoopsTest : public ::testing::Test {
 protected:
  PackBeforeLoopsTest() : b_(ops_) {
    EXPECT_TRUE(add_standard_schemas(ops_).is_ok());
    h_ = b_.input("h", floats({16, 4}));
    w_ = b_.input("w", floats({4, 4}));
  }

  static ValueType floats(const Dims& dims) { return tensor_type(ElementType::kFloat, dims); }

  Value turned(Value x) { return b_.op("Transpose", {x}, {{"perm", std::vector<int64_t>{1, 0}}}); }
  Value by_turned(Value a, Value b) { return b_.op("Gemm", {a, b}, {{"transB", int64_t{1}}}); }
  // A loop of three rounds; `next` makes the next value of one that begins as `initial`.
  Value loop(const char* name, Value initial, const std::function<Value(Value)>& next) {
    return b_.while_loop(
        {.name = name, .initial = {initial}, .trip_limit = b_.scalar(int64_t{3})},
        [&](Value, ValueSpan carried) {
          return WhileTest{b_.scalar(true), {carried[0]}};
        },
        [&](Value, ValueSpan received) { return std::vector<Value>{next(received[0])}; })[0];
  }
  Value loop(const std::function<Value(Value)>& next) { return loop("loop", h_, next); }

  Graph turn(size_t num_expected) {
    Result<Graph> graph = b_.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    Result<PackedGraph> made = pack_before_loops(std::move(*graph), ops_, {.panel_width = 0});
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    EXPECT_EQ(made->num_turned, num_expected);
    EXPECT_EQ(made->num_packed, 0);
    return std::move(made->graph);
  }
  Graph pack(size_t num_packed, size_t num_turned) {
    Result<Graph> graph = b_.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    Result<PackedGraph> made = pack_before_loops(std::move(*graph), ops_, {.panel_width = 32});
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    EXPECT_EQ(made->num_packed, num_packed);
    EXPECT_EQ(made->num_turned, num_turned);
    return std::move(made->graph);
  }
  // The operators of a region, and of those inside, after their node.
  static void add_names(const Graph& graph, RegionId region, Names& names) {
    for (const NodeId id : graph.region(region).nodes) {
      const Node& node = graph.node(id);
      if (node.kind == NodeKind::kExec) {
        const bool has_flag = node.attributes.get_int("transB", 0) != 0;
        names.push_back(node.op->name + (has_flag ? "{transB}" : ""));
        continue;
      }
      names.push_back(node.name + "{");
      for (const RegionId inner : node.regions) add_names(graph, inner, names);
      names.push_back("}");
    }
  }
  static Names names(const Graph& graph) {
    Names names;
    add_names(graph, Graph::kRoot, names);
    return names;
  }
  void expect_left(const std::function<Value(Value)>& next) {
    b_.output("y", loop(next));
    turn(0);
  }

  OpTable ops_;
  GraphBuilder b_;
  Value h_, w_;
};

TEST_F(PackBeforeLoopsTest, AMatrixFromOutsideIsTurnedBeforeTheLoop) {
  const Value c = b_.input("c", floats({4}));
  b_.output("y", loop([&](Value h) {
              return b_.op("Gemm", {h, w_, c}, {{"transB", int64_t{1}}, {"alpha", 2.0f}});
            }));
  const Graph graph = turn(1);
  EXPECT_THAT(names(graph), ElementsAre("Transpose", "loop{", "Gemm", "}"));
  const Node& transpose = graph.node(graph.root().nodes[0]);
  EXPECT_EQ(graph.value(transpose.inputs[0]).name, "w");
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    if (node.kind != NodeKind::kExec || node.op->name != "Gemm") continue;
    EXPECT_EQ(node.inputs[1], transpose.outputs[0]);
    EXPECT_EQ(graph.value(node.inputs[2]).name, "c");
    EXPECT_EQ(node.attributes.get_float("alpha", 1), 2.0f);
  }
}

// As a recurrent operator's loop reads its weights, and the loop back.
TEST_F(PackBeforeLoopsTest, WhatIsTurnedToAndFroIsReadAsItLies) {
  const Value r = b_.input("r", floats({8, 4})), over = turned(r);
  b_.output("y", loop([&](Value h) { return by_turned(b_.op("MatMul", {h, over}), over); }));
  EXPECT_THAT(names(turn(1)), ElementsAre("Transpose", "loop{", "MatMul", "Gemm", "}"));
}

TEST_F(PackBeforeLoopsTest, ATranspositionThatNothingElseReadsGoes) {
  b_.output("y", by_turned(h_, turned(w_)));
  const Graph graph = turn(1);
  EXPECT_THAT(names(graph), ElementsAre("Gemm"));
  EXPECT_EQ(graph.value(graph.node(NodeId(0)).inputs[1]).name, "w");
}

TEST_F(PackBeforeLoopsTest, ATranspositionInTheLoopMovesOut) {
  b_.output("y", loop([&](Value h) {
              return b_.op("MatMul", {b_.op("MatMul", {h, turned(w_)}), turned(turned(w_))});
            }));
  EXPECT_THAT(names(turn(2)), ElementsAre("Transpose", "loop{", "MatMul", "MatMul", "}"));
}

TEST_F(PackBeforeLoopsTest, ATranspositionBeforeTheLoopStaysThere) {
  const Value over = turned(w_);
  expect_left([&](Value h) { return b_.op("MatMul", {h, over}); });
}

TEST_F(PackBeforeLoopsTest, LoopsOfOneRegionShareATranspositionBeforeTheFirst) {
  const auto next = [&](Value h) { return by_turned(h, w_); };
  const Value first = loop("first", h_, next);
  b_.output("y", loop("second", first, [&](Value h) { return loop("inner", h, next); }));
  EXPECT_THAT(names(turn(2)), ElementsAre("Transpose", "first{", "Gemm", "}", "second{", "inner{",
                                          "Gemm", "}", "}"));
}

TEST_F(PackBeforeLoopsTest, AMatrixOfAnOuterRoundIsTurnedInThatRound) {
  b_.output("y", loop("outer", w_, [&](Value w) {
              const Value made = b_.op("Tanh", {w});
              return loop("inner", w, [&](Value h) { return by_turned(h, made); });
            }));
  EXPECT_THAT(names(turn(1)),
              ElementsAre("outer{", "Tanh", "Transpose", "inner{", "Gemm", "}", "}"));
}

TEST_F(PackBeforeLoopsTest, ABranchTurnsForItsOwnLoopOnly) {
  const Value which = b_.input("which", tensor_type(ElementType::kBool, {}));
  const auto next = [&](Value h) { return by_turned(h, w_); };
  const std::vector<CaseBody> branches = {[&] { return std::vector<Value>{next(h_)}; },
                                          [&] { return std::vector<Value>{loop("a", h_, next)}; }};
  const auto made = b_.case_of({.name = "case", .selector = which}, branches);
  b_.output("y", loop("b", made[0], next));
  EXPECT_THAT(names(turn(2)), ElementsAre("case{", "Gemm{transB}", "Transpose", "a{", "Gemm", "}",
                                          "}", "Transpose", "b{", "Gemm", "}"));
}

TEST_F(PackBeforeLoopsTest, WhatTheLoopChangesStays) {
  expect_left([&](Value h) { return b_.op("MatMul", {by_turned(h, h), h}); });
}
TEST_F(PackBeforeLoopsTest, ProductsOutsideOfLoopsStay) {
  b_.output("y", by_turned(h_, w_));
  turn(0);
}
TEST_F(PackBeforeLoopsTest, AConstantStays) {
  const Value w = b_.tensor<float>({4, 4}, std::vector<float>(16, 1.0f));
  expect_left([&](Value h) { return by_turned(h, w); });
}
TEST_F(PackBeforeLoopsTest, OneRowStays) {
  b_.output("y", loop("loop", b_.input("row", floats({1, 4})),
                      [&](Value h) { return by_turned(h, w_); }));
  turn(0);
}
TEST_F(PackBeforeLoopsTest, AnUnknownNumberOfRowsDoesNot) {
  b_.output("y", loop("loop", b_.input("rows", floats({kUnknownDim, 4})),
                      [&](Value h) { return by_turned(h, w_); }));
  EXPECT_THAT(names(turn(1)), ElementsAre("Transpose", "loop{", "Gemm", "}"));
}
TEST_F(PackBeforeLoopsTest, BatchesOfMatricesStay) {
  const Value x = b_.input("many", floats({2, 4, 4}));
  b_.output("y", loop("loop", x, [&](Value h) {
              return b_.op("MatMul",
                           {h, b_.op("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 1}}})});
            }));
  turn(0);
}
TEST_F(PackBeforeLoopsTest, DoublesStay) {
  const Value x = b_.input("x", tensor_type(ElementType::kDouble, {4, 4}));
  b_.output("y", loop("loop", x, [&](Value h) { return by_turned(h, x); }));
  turn(0);
}

// Products of 8 x 400 x 400 terms are many.
class ManyTermsTest : public PackBeforeLoopsTest {
 protected:
  ManyTermsTest()
      : g_(b_.input("g", floats({8, 400}))),
        v_(b_.input("v", floats({400, 400}))),
        row_(b_.input("row", floats({400}))) {}

  Value g_, v_, row_;
};

TEST_F(ManyTermsTest, TheirMatrixIsPackedBeforeTheLoop) {
  b_.output("y", loop("loop", g_, [&](Value g) { return b_.op("MatMul", {g, v_}); }));
  const Graph graph = pack(1, 0);
  EXPECT_THAT(names(graph), ElementsAre("PackMatrix", "loop{", "PackedMatMul", "}"));
  const Node& packed = graph.node(graph.root().nodes[0]);
  EXPECT_EQ(packed.attributes.get_int("width", 0), 32);
  EXPECT_EQ(packed.attributes.get_int("turned", 0), 0);
  EXPECT_EQ(to_string(graph.value(packed.outputs[0]).type), "float[166416]");  // 13 x 32 x 400 + 16
}

TEST_F(ManyTermsTest, OneWayAndTurnedAreTwoPackings) {
  b_.output("y", loop("loop", g_, [&](Value g) {
              const Value there = b_.op("Gemm", {b_.op("MatMul", {g, v_}), v_, row_});
              return by_turned(by_turned(there, v_), v_);
            }));
  EXPECT_THAT(names(pack(4, 0)), ElementsAre("PackMatrix", "PackMatrix", "loop{", "PackedMatMul",
                                             "PackedMatMul", "PackedMatMul", "PackedMatMul", "}"));
}

TEST_F(ManyTermsTest, ATranspositionInFrontGoesIntoThePacking) {
  b_.output("y", loop("loop", g_, [&](Value g) { return b_.op("MatMul", {g, turned(v_)}); }));
  const Graph graph = pack(1, 0);
  EXPECT_THAT(names(graph), ElementsAre("PackMatrix", "loop{", "PackedMatMul", "}"));
  EXPECT_EQ(graph.node(graph.root().nodes[0]).attributes.get_int("turned", 0), 1);
}

// An iteration that is made again behind its loop.
TEST_F(ManyTermsTest, LikeProductsBehindTheLoopReadWhatWasPacked) {
  const Value before = b_.op("MatMul", {g_, v_}, {}, {.name = "before"});
  const Value y = loop("loop", before, [&](Value g) { return b_.op("MatMul", {g, v_}); });
  b_.output("y", b_.op("MatMul", {by_turned(y, v_), v_}));
  EXPECT_THAT(names(pack(2, 0)), ElementsAre("MatMul", "PackMatrix", "loop{", "PackedMatMul", "}",
                                             "Gemm{transB}", "PackedMatMul"));
}

TEST_F(ManyTermsTest, WhatABranchHasPackedIsItsOwn) {
  const Value which = b_.input("which", tensor_type(ElementType::kBool, {}));
  const auto next = [&](Value g) { return b_.op("MatMul", {g, v_}); };
  const std::vector<CaseBody> branches = {[&] { return std::vector<Value>{g_}; },
                                          [&] { return std::vector<Value>{loop("a", g_, next)}; }};
  b_.output("y", next(b_.case_of({.name = "case", .selector = which}, branches)[0]));
  EXPECT_THAT(names(pack(1, 0)),
              ElementsAre("case{", "PackMatrix", "a{", "PackedMatMul", "}", "}", "MatMul"));
}

// What is scaled, turns A over, or adds more than a row is not packed; it is turned as ever.
TEST_F(ManyTermsTest, OtherFormsOfGemmAreNot) {
  b_.output("y", loop("loop", b_.input("square", floats({400, 400})), [&](Value g) {
              Value y = b_.op("Gemm", {g, v_}, {{"alpha", 2.0f}, {"transB", int64_t{1}}});
              y = b_.op("Gemm", {y, v_}, {{"transA", int64_t{1}}, {"transB", int64_t{1}}});
              y = b_.op("Gemm", {y, v_, row_}, {{"beta", 2.0f}, {"transB", int64_t{1}}});
              return b_.op("Gemm", {y, v_, g}, {{"transB", int64_t{1}}});
            }));
  EXPECT_THAT(names(pack(0, 4)),
              ElementsAre("Transpose", "loop{", "Gemm", "Gemm", "Gemm", "Gemm", "}"));
}

TEST_F(ManyTermsTest, FewTermsAndOneRowAreNot) {
  b_.output("few", loop("few", h_, [&](Value h) { return b_.op("MatMul", {h, w_}); }));
  b_.output("one", loop("one", b_.input("single", floats({1, 400})), [&](Value h) {
              return b_.op("MatMul", {h, v_});
            }));
  EXPECT_THAT(names(pack(0, 0)), ElementsAre("few{", "MatMul", "}", "one{", "MatMul", "}"));
}

}  // namespace
}  // namespace eddy
