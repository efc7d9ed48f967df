// Claim: operators between ranks have the shapes that their group, size and axis say, unknown where
// these are not; attributes that contradict each other are refused in one line that names them; and
// those of com.microsoft are the same operators over all ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "ops/schema/eddy/collective.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

class CollectiveTest : public testing::Test {
 protected:
  CollectiveTest() { EXPECT_TRUE(add_standard_schemas(ops_).is_ok()); }

  // The type of one operator's result, or the builder's error.
  std::string made(const char* op, const ValueType& x, Attributes attributes,
                   const char* domain = "eddy") {
    GraphBuilder b(ops_);
    std::vector<Value> inputs;
    if (x.is_tensor() && x.tensor.element != ElementType::kUndefined) {
      inputs.push_back(b.input("x", x));
    }
    const Value y = b.op(op, inputs, std::move(attributes), {.name = "node", .domain = domain});
    if (!b.status().is_ok()) return b.status().to_string();
    return to_string(b.type(y));
  }
  static ValueType floats(Dims dims) { return TensorType(ElementType::kFloat, dims); }
  std::string type_of(const ValueType& type) { return to_string(type); }

  OpTable ops_;
};

TEST_F(CollectiveTest, AnAxisGrowsOrShrinksByTheNumberOfRanks) {
  const ValueType x = floats({6, 4});
  EXPECT_EQ(made("AllGather", x, {{"group", Ints{0, 2, 5}}}), type_of(floats({18, 4})));
  EXPECT_EQ(made("AllGather", x, {{"size", int64_t{4}}, {"axis", int64_t{-1}}}),
            type_of(floats({6, 16})));
  EXPECT_EQ(made("AllGather", x, {}), type_of(floats({kUnknownDim, 4})));
  EXPECT_EQ(made("ReduceScatter", x, {{"size", int64_t{3}}}), type_of(floats({2, 4})));
  EXPECT_EQ(made("ReduceScatter", x, {{"axis", int64_t{1}}}), type_of(floats({6, kUnknownDim})));
}

TEST_F(CollectiveTest, OthersKeepTheShapeOrAreOneElement) {
  const ValueType x = floats({6, 4});
  for (const char* op : {"AllReduce", "Broadcast", "AllToAll"}) {
    EXPECT_EQ(made(op, x, {}), type_of(x)) << op;
  }
  const ValueType flag = TensorType(ElementType::kBool, Dims());
  EXPECT_EQ(made("Send", x, {{"root", int64_t{1}}}), type_of(flag));
  EXPECT_EQ(made("Barrier", ValueType(), {}), type_of(flag));
  EXPECT_EQ(made("Rank", ValueType(), {}), type_of(TensorType(ElementType::kInt64, Dims())));
  EXPECT_EQ(made("Recv", ValueType(), {{"root", int64_t{1}}, {"type", x}}), type_of(x));
}

TEST_F(CollectiveTest, AnExchangeGivesTheBoxOfItsPlace) {
  const Ints from = {0, 0, 6, 4, 6, 0, 6, 4}, to = {0, 0, 7, 4, 5, 0, 2, 4};
  const auto boxes = [&](Attributes more) {
    more.set("from", from);
    more.set("to", to);
    return more;
  };
  const ValueType x = floats({6, 4});
  EXPECT_EQ(made("Exchange", x, boxes({})), type_of(floats({kUnknownDim, kUnknownDim})));
  EXPECT_EQ(made("Exchange", x, boxes({{"size", int64_t{2}}})), type_of(floats({kUnknownDim, 4})));
  EXPECT_EQ(made("Exchange", x, boxes({{"size", int64_t{2}}, {"place", int64_t{1}}})),
            type_of(floats({2, 4})));
  EXPECT_EQ(made("Exchange", x, boxes({{"group", Ints{4, 2}}, {"place", int64_t{0}}})),
            type_of(floats({7, 4})));
  const auto refused = [&](Attributes more, const char* message) {
    EXPECT_THAT(made("Exchange", x, boxes(std::move(more))), HasSubstr(message));
  };
  for (const int64_t size : {int64_t{1} << 40, INT64_MAX}) {  // as many boxes would fill memory
    EXPECT_THAT(made("Exchange", floats({}), {{"size", size}, {"from", Ints()}, {"to", Ints()}}),
                HasSubstr("'from' has 0 numbers"));
  }
  EXPECT_THAT(made("Exchange", x, {{"size", int64_t{1}}, {"from", Ints(18)}, {"to", Ints(18)}}),
              HasSubstr("'from' has 18 numbers; it takes as many starts as sizes for each of 1 "
                        "ranks, of 1 to 8 axes"));
  refused({{"size", int64_t{3}}},
          "'from' has 8 numbers; it takes as many starts as sizes for each "
          "of 3 ranks");
  refused({{"size", int64_t{4}}}, "have boxes of 1 axes, but the input is float[6,4]");
  refused({{"size", int64_t{2}}, {"place", int64_t{2}}}, "'place' is 2; it is one of 2");
  EXPECT_THAT(
      made("Exchange", floats({5, 4}), boxes({{"size", int64_t{2}}, {"place", int64_t{1}}})),
      HasSubstr("axis 0 of the input is 5, but place 1 of the group has 6 there"));
  EXPECT_THAT(made("Exchange", x, {{"from", from}, {"to", Ints{1}}}),
              HasSubstr("'from' has 8 numbers and 'to' has 1"));
  for (const Ints& wrong : {Ints{0, 0, 6, -1, 6, 0, 6, 4}, Ints{0, INT64_MAX, 6, 4, 6, 0, 6, 4},
                            Ints{0, 0, INT64_MAX / 2, 4, 6, 0, 6, 4}}) {
    EXPECT_THAT(made("Exchange", x, {{"size", int64_t{2}}, {"from", wrong}, {"to", to}}),
                HasSubstr("attribute 'from': of place 0, axis"));
  }
}

TEST_F(CollectiveTest, WhatContradictsItselfIsRefusedByName) {
  const ValueType x = floats({6, 4});
  const ValueType bools = TensorType(ElementType::kBool, {6, 4});
  const auto refused = [&](const char* op, Attributes attributes, const char* message) {
    EXPECT_THAT(made(op, x, std::move(attributes)), HasSubstr(message)) << op;
  };
  refused("AllReduce", {{"group", Ints{1, 0, 1}}}, "'group' has rank 1 twice");
  refused("AllReduce", {{"group", Ints{-1, 0}}}, "'group' has the rank -1");
  refused("AllReduce", {{"group", Ints{0, 1}}, {"size", int64_t{3}}},
          "'size' is 3, but 'group' has 2 ranks");
  refused("AllReduce", {{"reduction", std::string("mean")}}, "'reduction' is 'mean'");
  refused("AllReduce", {{"order", std::string("ring")}}, "'order' is 'ring'");
  refused("AllReduce", {{"channel", int64_t{-2}}}, "'channel' is -2");
  refused("AllReduce", {{"reduction", std::string("and")}}, "'and' takes bool, not float");
  refused("Broadcast", {{"group", Ints{1, 2}}, {"root", int64_t{0}}}, "not in the group");
  refused("Broadcast", {{"size", int64_t{2}}, {"root", int64_t{2}}}, "not in the group");
  refused("ReduceScatter", {{"size", int64_t{4}}}, "axis 0 of size 6 can't be cut");
  refused("AllToAll", {{"size", int64_t{4}}}, "axis 0 of size 6 can't be cut");
  refused("AllGather", {{"size", INT64_MAX}}, "too long for axis 0");
  refused("AllGather", {{"axis", int64_t{2}}}, "axis 2 is out of range");
  EXPECT_THAT(made("AllReduce", bools, {}), HasSubstr("'sum' takes numbers, not bool"));
  EXPECT_THAT(made("AllReduce", TensorType(ElementType::kInt32, {2}),
                   {{"reduction", std::string("average")}}),
              HasSubstr("'average' takes floats, not int32"));
  EXPECT_THAT(made("Recv", ValueType(), {{"root", int64_t{1}}, {"type", floats({kUnknownDim})}}),
              HasSubstr("sizes are all known"));
}

TEST_F(CollectiveTest, ThoseOfMicrosoftAreTheSameOverAllRanks) {
  const ValueType x = floats({6, 4});
  GraphBuilder b(ops_);
  const Value in = b.input("x", x);
  const OpOptions options{.domain = "com.microsoft"};
  b.output("sum", b.op("AllReduce", {in}, {}, options));
  b.output("all",
           b.op("AllGather", {in}, {{"group_size", int64_t{3}}, {"axis", int64_t{1}}}, options));
  b.output("swapped", b.op("AllToAll", {in}, {{"group_size", int64_t{2}}}, options));
  const auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  ASSERT_EQ(graph->num_nodes(), 3u);
  for (uint32_t n = 0; n < 3; ++n) EXPECT_EQ(graph->node(NodeId(n)).op->domain, "eddy");
  EXPECT_EQ(graph->value(graph->outputs()[1]).type, floats({6, 12}));
  EXPECT_EQ(graph->node(NodeId(2)).attributes.get_int("size", 0), 2);
}

TEST_F(CollectiveTest, AGroupNamesItsFirstRankAsRoot) {
  const auto c = read_collective("Broadcast", {{"group", Ints{3, 1}}});
  ASSERT_TRUE(c.is_ok());
  EXPECT_EQ(c->root, 3);
  EXPECT_EQ(c->num_ranks, 2);
  EXPECT_TRUE(c->in_rank_order);
}

}  // namespace
}  // namespace eddy
