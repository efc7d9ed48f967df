// Claim: in either layout: which nodes become convolutions and pools of images laid out so, which
// become part of them, and where images are turned over: as seldom as can be, and never where
// channels would mix.
#include "graph/compile/lay_out_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;
using Ints = std::vector<int64_t>;

class LayOutImagesTest : public ::testing::Test {
 protected:
  LayOutImagesTest() { EXPECT_TRUE(add_standard_schemas(ops_).is_ok()); }

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
  Graph lay_out(GraphBuilder& b, const LayOutImagesOptions& options) {
    auto graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    auto laid = lay_out_images(std::move(*graph), ops_, options);
    EXPECT_TRUE(laid.is_ok()) << laid.status().to_string();
    return std::move(laid->graph);
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

class BlockedImagesTest : public LayOutImagesTest {
 protected:
  Graph block(GraphBuilder& b, bool scales_norms = true) {
    return lay_out(b, {.layout = blocks_, .scales_norms = scales_norms});
  }
  const BlockedLayout blocks_{4};
};

class ChannelsLastTest : public LayOutImagesTest {
 protected:
  Graph turn(GraphBuilder& b, const std::string& device = "") {
    return lay_out(b, {.layout = layout_, .device = device});
  }
  Value biased(GraphBuilder& b, Value x, int64_t channels, int64_t filters) {
    return b.op("Conv", {x, ones(b, {filters, channels, 3, 3}), ones(b, {filters})},
                {{"pads", Ints{1, 1, 1, 1}}});
  }
  const ChannelsLastLayout layout_;
};

TEST_F(BlockedImagesTest, AResidualBlockIsThreeNodesAndTurnedOverOnce) {
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

TEST_F(BlockedImagesTest, TheFirstLayerReadsTheImageAsItComesAndReadersShareATurnedOne) {
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

TEST_F(BlockedImagesTest, AConvolutionEndsWithAnActivation) {
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

TEST_F(BlockedImagesTest, AProductWithItsSigmoidHasNoOtherReaderOfEither) {
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

TEST_F(BlockedImagesTest, WhatHasAnotherReaderIsNoPartOfAConvolution) {
  GraphBuilder b(ops_);
  const Value y = conv(b, image(b, 1), 1, 8);
  b.output("relu", b.op("Relu", {y}));
  b.output("y", y);
  EXPECT_THAT(ops_of(block(b)), UnorderedElementsAre("Unsqueeze", "BlockedConv", "UnblockChannels",
                                                     "Relu", "UnblockChannels"));
}

TEST_F(BlockedImagesTest, ChannelsAreJoinedWhereBlocksAreWhole) {
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

TEST_F(BlockedImagesTest, NodesThatMakeSomethingInfiniteOfZeroReadPlainImages) {
  GraphBuilder b(ops_);
  b.output("y", b.op("Log", {b.op("Abs", {conv(b, image(b, 1), 1, 5)})}));
  EXPECT_THAT(ops_of(block(b)),
              ElementsAre("Unsqueeze", "BlockedConv", "Abs", "UnblockChannels", "Log"));
}

TEST_F(BlockedImagesTest, NormalizationsStayWhereTheyMustNotRound) {
  GraphBuilder b(ops_);
  b.output("y", norm(b, conv(b, image(b, 1), 1, 8), 8));
  EXPECT_THAT(ops_of(block(b, false)),
              ElementsAre("Unsqueeze", "BlockedConv", "UnblockChannels", "BatchNormalization"));
}

TEST_F(BlockedImagesTest, AnImageThatALoopReadsIsTurnedOverOutsideIt) {
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

TEST_F(BlockedImagesTest, GroupsAndUnknownWeightsStay) {
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

TEST_F(ChannelsLastTest, AResidualBlockIsTurnedOverWhereItComesInAndWhereItGoesOut) {
  GraphBuilder b(ops_);
  const Value x = biased(b, image(b, 3), 3, 8);
  const Value a = b.op("Relu", {norm(b, conv(b, x, 8, 8), 8)});
  const Value sum = b.op("Add", {norm(b, conv(b, a, 8, 8), 8), x});
  b.output("y", b.op("MaxPool", {b.op("Relu", {sum})}, {{"kernel_shape", Ints{2, 2}}}));
  const Graph graph = turn(b);
  EXPECT_THAT(ops_of(graph), ElementsAre("Transpose", "ChannelsLastConv", "ChannelsLastConv",
                                         "ChannelsLastConv", "ChannelsLastMaxPool", "Transpose"));
  const Node& last = graph.node(graph.value(graph.outputs()[0]).producer);
  const Node& pool = graph.node(graph.value(last.inputs[0]).producer);
  const Node& conv = graph.node(graph.value(pool.inputs[0]).producer);
  EXPECT_EQ(conv.inputs.size(), 4u) << "it adds";
  EXPECT_EQ(conv.attributes.get_int("relu", 0), 1);
}

// The bias of the one that is added is added by the one that adds, which has one anyway.
TEST_F(ChannelsLastTest, TwoConvolutionsThatAreAddedHaveOneBias) {
  GraphBuilder b(ops_);
  const Value x = image(b, 4);
  const Value sum = b.op("Add", {biased(b, x, 4, 8), biased(b, x, 4, 8)});
  b.output("y", b.op("Relu", {sum}));
  const Graph graph = turn(b);
  EXPECT_THAT(ops_of(graph),
              ElementsAre("Transpose", "ChannelsLastConv", "ChannelsLastConv", "Transpose"));
  EXPECT_EQ(node_of(graph, "ChannelsLastConv").inputs.size(), 2u);
}

// The library ends in nothing else: elementwise nodes, which are fused, do it.
TEST_F(ChannelsLastTest, WhatIsNoReluIsNoPartOfAConvolution) {
  GraphBuilder b(ops_);
  const Value x = biased(b, image(b, 3), 3, 8);
  const Value swish = b.op("Mul", {b.op("Sigmoid", {x}), x});
  const Value bounds = b.scalar(6.0f);
  const Value clipped = b.op("Clip", {conv(b, swish, 8, 8), b.scalar(0.0f), bounds});
  b.output("y", b.op("Log", {b.op("Add", {clipped, swish})}));
  EXPECT_THAT(ops_of(turn(b)), ElementsAre("Transpose", "ChannelsLastConv", "Sigmoid", "Mul",
                                           "ChannelsLastConv", "Clip", "Add", "Log", "Transpose"));
}

TEST_F(ChannelsLastTest, NormalizationsBehindNoConvolutionScaleAndShift) {
  GraphBuilder b(ops_);
  const Value x = b.op("Relu", {conv(b, image(b, 3), 3, 8)});
  const Value joined = b.op("Concat", {x, b.op("Neg", {x})}, {{"axis", int64_t{-3}}});
  const Value scaled = b.op("Relu", {norm(b, joined, 16)});
  b.output("y", b.op("GlobalMaxPool", {conv(b, scaled, 16, 5)}));
  const Graph graph = turn(b);
  EXPECT_THAT(ops_of(graph), ElementsAre("Transpose", "ChannelsLastConv", "Neg", "Concat", "Mul",
                                         "Add", "Relu", "ChannelsLastConv", "ReduceMax", "Reshape"))
      << "one position lies alike in both orders";
  EXPECT_EQ(node_of(graph, "Concat").attributes.get_int("axis", 0), 3);
  EXPECT_EQ(graph.value(graph.outputs()[0]).type.tensor.dims, (Dims{1, 5, 1, 1}));
}

TEST_F(ChannelsLastTest, FiltersStandInOrderAndGroupsStay) {
  GraphBuilder b(ops_);
  b.output("y", b.op("Conv", {image(b, 6), ones(b, {9, 2, 3, 1})}, {{"group", int64_t{3}}}));
  const Graph graph = turn(b);
  const Node& conv = node_of(graph, "ChannelsLastConv");
  EXPECT_EQ(graph.value(conv.inputs[1]).type.tensor.dims, (Dims{9, 3, 1, 2}));
  EXPECT_EQ(conv.attributes.get_int("group", 0), 3);
  EXPECT_EQ(graph.value(graph.outputs()[0]).type.tensor.dims, (Dims{1, 9, 4, 6}));
}

TEST_F(ChannelsLastTest, NodesOfAnotherDeviceReadImagesAsTheyCome) {
  GraphBuilder b(ops_);
  const Value x = conv(b, image(b, 3), 3, 8);
  const Value there = b.op("Relu", {x}, {}, {.device = "cpu"});
  const Value last = b.op("Conv", {there, ones(b, {8, 8, 1, 1})}, {}, {.device = "cpu"});
  b.output("y", last);
  EXPECT_THAT(ops_of(turn(b, "cuda")),
              ElementsAre("Transpose", "ChannelsLastConv", "Transpose", "Relu", "Conv"));
}

TEST_F(ChannelsLastTest, Float64AndUnknownWeightsStay) {
  GraphBuilder wide(ops_);
  const std::vector<double> ones(8 * 4, 1.0);
  const Value w = wide.tensor<double>({8, 4, 1, 1}, std::span<const double>(ones));
  const Value x = wide.input("x", tensor_type(ElementType::kDouble, {1, 4, 6, 6}));
  wide.output("y", wide.op("Conv", {x, w}));
  EXPECT_THAT(ops_of(turn(wide)), ElementsAre("Conv"));

  GraphBuilder unknown(ops_);
  const Value v = unknown.input("w", tensor_type(ElementType::kFloat, {8, 8, 3, 3}));
  unknown.output("y", unknown.op("Conv", {image(unknown, 8), v}));
  EXPECT_THAT(ops_of(turn(unknown)), ElementsAre("Conv"));
}

}  // namespace
}  // namespace eddy
