// Claim: which nodes become convolutions and pools of blocked images, which become part of them,
// and where images are turned over: as seldom as can be, and never where channels would mix.
#include "graph/compile/block_channels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;
using Ints = std::vector<int64_t>;

class BlockChannelsTest : public ::testing::Test {
 protected:
  static constexpr int64_t kBlock = 4;

  BlockChannelsTest() { EXPECT_TRUE(add_standard_schemas(ops_).is_ok()); }

  Value ones(GraphBuilder& b, const Dims& dims) {
    const std::vector<float> values(static_cast<size_t>(*dims.count()), 1.0f);
    return b.tensor<float>(dims, std::span<const float>(values));
  }
  Value image(GraphBuilder& b, int64_t channels) {
    return b.input("x", tensor_type(ElementType::kFloat, {1, channels, 6, 6}));
  }
  Value conv(GraphBuilder& b, Value x, int64_t channels, int64_t filters) {
    return b.op("Conv", {x, ones(b, {filters, channels, 3, 3})}, {{"pads", Ints{1, 1, 1, 1}}});
  }
  Value norm(GraphBuilder& b, Value x, int64_t channels) {
    const Value v = ones(b, {channels});
    return b.op("BatchNormalization", {x, v, v, v, v});
  }
  Graph block(GraphBuilder& b, bool blocks_norms = true) {
    auto graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    auto blocked =
        block_channels(std::move(*graph), ops_, {.block = kBlock, .blocks_norms = blocks_norms});
    EXPECT_TRUE(blocked.is_ok()) << blocked.status().to_string();
    return std::move(blocked->graph);
  }
  // Of nodes that have an input which is not constant.
  static std::vector<std::string> ops_of(const Graph& graph, RegionId region = Graph::kRoot) {
    std::vector<std::string> names;
    for (const NodeId id : graph.region(region).nodes) {
      const Node& node = graph.node(id);
      if (node.kind == NodeKind::kExec && !is_of_constants(graph, id))
        names.push_back(node.op->name);
    }
    return names;
  }
  static bool is_of_constants(const Graph& graph, NodeId id) {
    return std::ranges::all_of(graph.node(id).inputs, [&](ValueId input) {
      if (input.is_none()) return true;
      const ValueInfo& info = graph.value(input);
      return info.origin == ValueOrigin::kConstant ||
             (info.origin == ValueOrigin::kNodeOutput && is_of_constants(graph, info.producer));
    });
  }
  static const Node& node_of(const Graph& graph, std::string_view op) {
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
      const Node& node = graph.node(NodeId(n));
      if (node.kind == NodeKind::kExec && node.op->name == op) return node;
    }
    ADD_FAILURE() << "there is no " << op;
    return graph.node(NodeId(0));
  }

  OpTable ops_;
};

TEST_F(BlockChannelsTest, AResidualBlockIsThreeNodesAndTurnedOverOnce) {
  GraphBuilder b(ops_);
  const Value x = conv(b, image(b, 1), 1, 8);
  const Value a = b.op("Relu", {norm(b, conv(b, x, 8, 8), 8)});
  const Value sum = b.op("Add", {norm(b, conv(b, a, 8, 8), 8), x});
  b.output("y", b.op("Relu", {sum}));
  const Graph graph = block(b);
  EXPECT_THAT(ops_of(graph), ElementsAre("Unsqueeze", "BlockedConv", "BlockedConv", "BlockedConv",
                                         "UnblockChannels"));
  const Node& last = graph.node(graph.value(graph.outputs()[0]).producer);
  const Node& conv = graph.node(graph.value(last.inputs[0]).producer);
  EXPECT_EQ(conv.inputs.size(), 4u) << "it adds";
  EXPECT_THAT(conv.attributes.get_floats("clamp"), ElementsAre(0.0f, ::testing::Gt(1e30f)));
}

TEST_F(BlockChannelsTest, TheFirstLayerReadsTheImageAsItComesAndReadersShareATurnedOne) {
  GraphBuilder narrow(ops_);
  narrow.output("y", conv(narrow, image(narrow, 1), 1, 8));
  EXPECT_THAT(ops_of(block(narrow)), ElementsAre("Unsqueeze", "BlockedConv", "UnblockChannels"));

  GraphBuilder wide(ops_);
  const Value x = image(wide, 4);
  wide.output("y",
              wide.op("Add", {conv(wide, x, 4, 8), wide.op("Sigmoid", {conv(wide, x, 4, 8)})}));
  EXPECT_THAT(ops_of(block(wide)), UnorderedElementsAre("BlockChannels", "BlockedConv",
                                                        "BlockedConv", "UnblockChannels"));
}

TEST_F(BlockChannelsTest, AConvolutionEndsWithAnActivation) {
  GraphBuilder b(ops_);
  const Value x = conv(b, image(b, 1), 1, 8);
  const Value swish = b.op("Mul", {b.op("Sigmoid", {x}), x});
  b.output("y", b.op("LeakyRelu", {conv(b, swish, 8, 8)}, {{"alpha", 0.25f}}));
  const Graph graph = block(b);
  ASSERT_THAT(ops_of(graph),
              ElementsAre("Unsqueeze", "BlockedConv", "BlockedConv", "UnblockChannels"));
  const Node& last = graph.node(graph.value(graph.outputs()[0]).producer);
  const Node& second = graph.node(graph.value(last.inputs[0]).producer);
  EXPECT_EQ(second.attributes.get_string("activation", ""), "LeakyRelu");
  EXPECT_EQ(second.attributes.get_float("alpha", 0), 0.25f);
  const Node& first = graph.node(graph.value(second.inputs[0]).producer);
  EXPECT_EQ(first.attributes.get_string("activation", ""), "Swish");
}

TEST_F(BlockChannelsTest, AProductWithItsSigmoidHasNoOtherReaderOfEither) {
  for (const bool reads_sigmoid : {false, true}) {
    GraphBuilder b(ops_);
    const Value x = conv(b, image(b, 1), 1, 8);
    const Value sigmoid = b.op("Sigmoid", {x});
    b.output("y", b.op("Mul", {x, sigmoid}));
    b.output("too", b.op("Neg", {reads_sigmoid ? sigmoid : x}));
    EXPECT_THAT(ops_of(block(b)),
                UnorderedElementsAre("Unsqueeze", "BlockedConv", "Sigmoid", "Mul", "Neg",
                                     "UnblockChannels", "UnblockChannels"));
  }
}

TEST_F(BlockChannelsTest, WhatHasAnotherReaderIsNoPartOfAConvolution) {
  GraphBuilder b(ops_);
  const Value y = conv(b, image(b, 1), 1, 8);
  b.output("relu", b.op("Relu", {y}));
  b.output("y", y);
  EXPECT_THAT(ops_of(block(b)), UnorderedElementsAre("Unsqueeze", "BlockedConv", "UnblockChannels",
                                                     "Relu", "UnblockChannels"));
}

TEST_F(BlockChannelsTest, ChannelsAreJoinedWhereBlocksAreWhole) {
  for (const int64_t filters : {8, 6}) {
    GraphBuilder b(ops_);
    const Value x = image(b, 1);
    const Value joined =
        b.op("Concat", {conv(b, x, 1, filters), conv(b, x, 1, 5)}, {{"axis", int64_t{1}}});
    b.output("y", b.op("MaxPool", {joined}, {{"kernel_shape", Ints{2, 2}}}));
    const Graph graph = block(b);
    if (filters == 8) {
      EXPECT_THAT(ops_of(graph), ElementsAre("Unsqueeze", "BlockedConv", "BlockedConv", "Concat",
                                             "BlockedPool", "UnblockChannels"));
    } else {
      EXPECT_THAT(ops_of(graph),
                  UnorderedElementsAre("Unsqueeze", "BlockedConv", "BlockedConv", "UnblockChannels",
                                       "UnblockChannels", "Concat", "MaxPool"));
    }
  }
}

TEST_F(BlockChannelsTest, NodesThatMakeSomethingInfiniteOfZeroReadPlainImages) {
  GraphBuilder b(ops_);
  b.output("y", b.op("Log", {b.op("Abs", {conv(b, image(b, 1), 1, 5)})}));
  EXPECT_THAT(ops_of(block(b)),
              ElementsAre("Unsqueeze", "BlockedConv", "Abs", "UnblockChannels", "Log"));
}

TEST_F(BlockChannelsTest, NormalizationsStayWhereTheyMustNotRound) {
  GraphBuilder b(ops_);
  b.output("y", norm(b, conv(b, image(b, 1), 1, 8), 8));
  EXPECT_THAT(ops_of(block(b, false)),
              ElementsAre("Unsqueeze", "BlockedConv", "UnblockChannels", "BatchNormalization"));
}

TEST_F(BlockChannelsTest, AnImageThatALoopReadsIsTurnedOverOutsideIt) {
  GraphBuilder b(ops_);
  const Value y = conv(b, image(b, 1), 1, 8);
  const auto made = b.while_loop(
      {.initial = {b.scalar(0.0f)}, .trip_limit = b.scalar<int64_t>(3)},
      [&](Value, ValueSpan c) {
        return WhileTest{b.scalar(true), {c[0]}};
      },
      [&](Value, ValueSpan f) {
        const Value sum = b.op("ReduceSum", {y}, {{"keepdims", int64_t{0}}});
        return std::vector<Value>{b.op("Add", {f[0], sum})};
      });
  b.output("sum", made[0]);
  const Graph graph = block(b);
  EXPECT_THAT(ops_of(graph), ElementsAre("Unsqueeze", "BlockedConv", "UnblockChannels"));
  const Node& loop = graph.node(graph.root().nodes.back());
  EXPECT_THAT(ops_of(graph, loop.regions[1]), ElementsAre("ReduceSum", "Add"));
}

TEST_F(BlockChannelsTest, GroupsAndUnknownWeightsStay) {
  GraphBuilder groups(ops_);
  groups.output("y", groups.op("Conv", {image(groups, 6), ones(groups, {6, 3, 3, 3})},
                               {{"group", int64_t{2}}}));
  EXPECT_THAT(ops_of(block(groups)), ElementsAre("Conv"));

  GraphBuilder unknown(ops_);
  const Value w = unknown.input("w", tensor_type(ElementType::kFloat, {8, 8, 3, 3}));
  unknown.output("y", unknown.op("Conv", {image(unknown, 8), w}));
  EXPECT_THAT(ops_of(block(unknown)), ElementsAre("Conv"));

  GraphBuilder depthwise(ops_);
  depthwise.output("y", depthwise.op("Conv", {image(depthwise, 6), ones(depthwise, {6, 1, 3, 3})},
                                     {{"group", int64_t{6}}}));
  EXPECT_EQ(node_of(block(depthwise), "BlockedConv").attributes.get_int("group", 0), 6);
}

}  // namespace
}  // namespace eddy
