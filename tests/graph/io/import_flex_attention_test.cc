// Claim: FlexAttention is Attention where it has no graphs, and else products around the nodes of
// its graphs; heads are folded where those of Q may be more; what does not fit is refused by name.
#include <gtest/gtest.h>

#include <string>

#include "tests/graph/io/test_import.h"

namespace eddy {
namespace {

using namespace test;  // NOLINT: a test's own vocabulary

struct FlexModel {
  std::vector<ValueType> types = {floats({2, 4, 5, 8}), floats({2, 4, 6, 8}), floats({2, 4, 6, 3})};
  Messages attributes = {};
  Names inputs = {"q", "k", "v"};
  int64_t version = 1;
};

std::string flex_model(const FlexModel& parts) {
  Messages inputs;
  for (size_t i = 0; i < parts.types.size(); ++i) {
    inputs.push_back(info(std::string(1, "qkv"[i]), parts.types[i]));
  }
  const WireWriter flex =
      node("FlexAttention", parts.inputs, {"y"}, parts.attributes, "flex", "ai.onnx.preview");
  WireWriter proto;
  proto.integer(1, 8);
  proto.message(7, graph({.nodes = {flex}, .inputs = inputs, .outputs = {untyped("y")}}));
  proto.message(8, opset_import("", 26));
  proto.message(8, opset_import("ai.onnx.preview", parts.version));
  return proto.data();
}

// Doubles what it is given.
WireWriter doubling() {
  return graph({.nodes = {node("Add", {"s", "s"}, {"t"})},
                .inputs = {untyped("s")},
                .outputs = {untyped("t")}});
}

TEST(ImportFlexAttention, WithoutGraphsIsAttention) {
  const Graph g = must_import(flex_model({.attributes = {float_attribute("scale", 0.5f)}}));
  EXPECT_EQ(g.num_nodes(), 1u);
  EXPECT_EQ(count_ops(g, "Attention"), 1u);
  EXPECT_EQ(g.value(g.outputs()[0]).type, floats({2, 4, 5, 3}));
}

TEST(ImportFlexAttention, GraphsStandBetweenTheProducts) {
  for (const char* name : {"score_mod", "prob_mod"}) {
    const Graph g = must_import(flex_model({.attributes = {graph_attribute(name, doubling())}}));
    EXPECT_EQ(count_ops(g, "MatMul"), 2u) << name;
    EXPECT_EQ(count_ops(g, "Add"), 1u) << name;
    EXPECT_EQ(count_ops(g, "Reshape"), 0u) << name;
    EXPECT_EQ(g.value(g.outputs()[0]).type, floats({2, 4, 5, 3})) << name;
    EXPECT_EQ(g.value(g.outputs()[0]).name, "y") << name;
  }
}

TEST(ImportFlexAttention, HeadsAreFoldedWhereQMayHaveMore) {
  const Messages attributes = {graph_attribute("score_mod", doubling())};
  const auto reshapes = [&](int64_t heads, int64_t shared) {
    const Graph g = must_import(flex_model(
        {.types = {floats({2, heads, 5, 8}), floats({2, shared, 6, 8}), floats({2, shared, 6, 3})},
         .attributes = attributes}));
    return count_ops(g, "Reshape");
  };
  EXPECT_EQ(reshapes(4, 4), 0u);
  EXPECT_EQ(reshapes(4, 2), 4u);
  EXPECT_EQ(reshapes(-2, -2), 0u);  // the same symbol
  EXPECT_EQ(reshapes(-2, -3), 4u);
}

TEST(ImportFlexAttention, WhatDoesNotFitIsRefusedByName) {
  const auto refused = [](const FlexModel& parts, std::string_view part) {
    expect_import_error(flex_model(parts), StatusCode::kInvalidArgument, part);
  };
  refused({.inputs = {"q", "k"}}, "takes Q, K and V, none of them left out");
  refused({.inputs = {"q", "", "v"}}, "takes Q, K and V, none of them left out");
  refused({.types = {floats({2, 4, 5, 8}), floats({2, 4, 6, 8}), floats({2, 4, 6})}},
          "[batch, heads, length, size], not float[2,4,6]");
  refused({.types = {floats({2, 4, 5, 8}), int64s({2, 4, 6, 8}), floats({2, 4, 6, 3})}},
          "must be floats of one type");
  refused({.types = {floats({2, 3, 5, 8}), floats({2, 2, 6, 8}), floats({2, 2, 6, 3})}},
          "its 3 heads of Q are no multiple of the 2 of K");
  refused({.types = {floats({2, 3, 5, 8}), floats({2, 0, 6, 8}), floats({2, 0, 6, 3})}},
          "its 3 heads of Q are no multiple of the 0 of K");
  for (const int64_t bad : {int64_t{0}, int64_t{7}, int64_t{-1}, int64_t{1} << 40}) {
    refused({.attributes = {attribute("softmax_precision", bad)}},
            "softmax_precision must be a type of floats, not " + std::to_string(bad));
  }
  refused({.attributes = {attribute("is_causal", int64_t{1})}}, "has no attribute 'is_causal'");
  refused({.attributes = {attribute("scale", int64_t{1})}}, "its scale must be a float");
  refused({.attributes = {attribute("score_mod", int64_t{1})}},
          "needs a graph as attribute 'score_mod'");
  refused({.attributes = {graph_attribute("prob_mod", graph({.outputs = {untyped("q")}}))}},
          "its graph 'prob_mod' takes 0 inputs, but 1 are passed");
  const WireWriter shape = graph({.nodes = {node("Shape", {"s"}, {"t"})},
                                  .inputs = {untyped("s")},
                                  .outputs = {untyped("t")}});
  refused({.attributes = {graph_attribute("score_mod", shape)}}, "give it the same element type");
  expect_import_error(flex_model({.version = 2}), StatusCode::kUnsupported,
                      "version 2 of ai.onnx.preview is not supported, only 1");
}

}  // namespace
}  // namespace eddy
