// Claim: a convolution of one element and the depthwise one that alone reads what it makes become
// one operator with the ends of both where what lies between is known to be of 1 MiB, in loops'
// bodies too; in all other cases the graph stays as it is.
#include "graph/compile/join_expansions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

using ::testing::ElementsAre;
using Ints = std::vector<int64_t>;

class JoinExpansionsTest : public ::testing::Test {
 protected:
  JoinExpansionsTest() : b_(ops_) { EXPECT_TRUE(add_standard_schemas(ops_).is_ok()); }

  Value ones(const Dims& dims) {
    const std::vector<float> values(static_cast<size_t>(*dims.count()), 1.0f);
    return b_.tensor<float>(dims, std::span<const float>(values));
  }
  static Attributes blocked(Attributes attributes) {
    attributes.set("block", int64_t{8});
    return attributes;
  }
  Value image(int64_t rows = 64) {
    return b_.input("x", tensor_type(ElementType::kFloat, {1, 2, rows, 64, 8}));
  }
  Value conv(std::initializer_list<Value> inputs, Attributes attributes, const char* name) {
    return b_.op("BlockedConv", inputs, blocked(std::move(attributes)),
                 {.name = name, .domain = "eddy"});
  }
  // 64 rows of 64 positions are 1 MiB.
  Value expansion(Value x, Attributes attributes = {}) {
    return conv({x, ones({64, 16, 1, 1}), ones({64})}, std::move(attributes), "expansion");
  }
  Value depthwise(Value x, Attributes attributes = {{"pads", Ints{1, 1, 1, 1}}}) {
    attributes.set("group", int64_t{64});
    return conv({x, ones({64, 1, 3, 3}), ones({64})}, std::move(attributes), "depthwise");
  }
  std::vector<std::string> join(Value y) {
    b_.output("y", y);
    Result<Graph> graph = b_.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    auto made = join_expansions(std::move(*graph), ops_);
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    joined_ = std::move(made->graph);
    std::vector<std::string> names;
    for (uint32_t n = 0; n < joined_->num_nodes(); ++n) {
      const Node& node = joined_->node(NodeId(n));
      if (node.kind == NodeKind::kExec) names.push_back(node.op->name + " " + node.name);
    }
    return names;
  }
  void expect_left(Value y) {
    EXPECT_THAT(join(y), ElementsAre("BlockedConv expansion", "BlockedConv depthwise"));
  }

  OpTable ops_;
  GraphBuilder b_;
  std::optional<Graph> joined_;
};

TEST_F(JoinExpansionsTest, WithTheEndsOfBoth) {
  const Value inner =
      expansion(image(), {{"activation", std::string("LeakyRelu")}, {"alpha", 0.5f}});
  const Value outer = depthwise(
      inner,
      {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}, {"clamp", std::vector<float>{0, 6}}});
  EXPECT_THAT(join(outer), ElementsAre("ExpandedConv depthwise"));
  const Node& node = joined_->node(NodeId(0));
  EXPECT_EQ(node.attributes.get_string("inner_activation", ""), "LeakyRelu");
  EXPECT_EQ(node.attributes.get_float("inner_alpha", 0), 0.5f);
  EXPECT_EQ(node.attributes.get_string("activation", ""), "");
  EXPECT_THAT(node.attributes.get_floats("clamp"), ElementsAre(0, 6));
  EXPECT_THAT(node.attributes.get_ints("strides"), ElementsAre(2, 2));
  EXPECT_EQ(joined_->value(node.outputs[0]).type,
            ValueType(TensorType(ElementType::kFloat, {1, 8, 32, 32, 8})));
}

TEST_F(JoinExpansionsTest, InALoopsBody) {
  const auto loop = b_.while_loop(
      {.name = "loop", .initial = {image()}, .trip_limit = b_.scalar(int64_t{3})},
      [&](Value, ValueSpan c) {
        return WhileTest{b_.scalar(true), {c[0]}};
      },
      [&](Value, ValueSpan f) {
        const Value wide = depthwise(expansion(f[0]));
        return std::vector<Value>{conv({wide, ones({16, 64, 1, 1})}, {}, "projection")};
      });
  EXPECT_THAT(join(loop[0]), ElementsAre("ExpandedConv depthwise", "BlockedConv projection"));
}

TEST_F(JoinExpansionsTest, SmallOnesStay) { expect_left(depthwise(expansion(image(63)))); }
TEST_F(JoinExpansionsTest, OfUnknownSizeTheyStay) {
  expect_left(depthwise(expansion(image(kUnknownDim))));
}
TEST_F(JoinExpansionsTest, StridesStay) {
  expect_left(depthwise(expansion(image(256), {{"strides", Ints{2, 1}}})));
}
TEST_F(JoinExpansionsTest, PaddedExpansionsStay) {
  expect_left(depthwise(expansion(image(), {{"pads", Ints{1, 0, 0, 0}}})));
}
TEST_F(JoinExpansionsTest, WindowsThatMaySeeNothingStay) {
  expect_left(depthwise(expansion(image()), {{"pads", Ints{3, 1, 1, 1}}}));
}
TEST_F(JoinExpansionsTest, DilationsStay) {
  expect_left(depthwise(expansion(image()), {{"dilations", Ints{2, 2}}}));
}
TEST_F(JoinExpansionsTest, DenseConvolutionsStay) {
  const Value inner = expansion(image());
  expect_left(conv({inner, ones({8, 64, 3, 3})}, {}, "depthwise"));
}
TEST_F(JoinExpansionsTest, WhatOthersReadStays) {
  const Value inner = expansion(image());
  b_.output("z", inner);
  expect_left(depthwise(inner));
}
TEST_F(JoinExpansionsTest, AddendsStay) {
  const Value x = image();
  const Value more = b_.input("more", tensor_type(ElementType::kFloat, {1, 8, 64, 64, 8}));
  expect_left(depthwise(conv({x, ones({64, 16, 1, 1}), ones({64}), more}, {}, "expansion")));
}
TEST_F(JoinExpansionsTest, WeightsThatChangeStay) {
  const Value w = b_.input("w", tensor_type(ElementType::kFloat, {64, 16, 1, 1}));
  expect_left(depthwise(conv({image(), w}, {}, "expansion")));
}

}  // namespace
}  // namespace eddy
