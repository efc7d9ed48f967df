// Claim: a convolution of floats by weights that are no constant becomes one that may be computed
// by Winograd's transforms where its windows are known to be of 3 x 3 or 5 x 5, with strides and
// dilations of 1 and one group, in loops' bodies too; all others stay as they are.
#include "graph/compile/allow_winograd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

using ::testing::ElementsAre;
using Ints = std::vector<int64_t>;

class AllowWinogradTest : public ::testing::Test {
 protected:
  AllowWinogradTest() : b_(ops_) { EXPECT_TRUE(add_standard_schemas(ops_).is_ok()); }

  static ValueType floats(const Dims& dims) { return tensor_type(ElementType::kFloat, dims); }
  Value conv(Value x, Value w, Attributes attributes = {}) {
    return b_.op("Conv", {x, w}, std::move(attributes), {.name = "conv"});
  }
  Value conv(const Dims& w, Attributes attributes = {}, ElementType element = ElementType::kFloat) {
    return conv(b_.input("x", tensor_type(element, {1, 16, 20, 20})),
                b_.input("w", tensor_type(element, w)), std::move(attributes));
  }

  std::vector<std::string> allow(Value y, size_t num_expected) {
    b_.output("y", y);
    Result<Graph> graph = b_.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    Result<WinogradGraph> made = allow_winograd(std::move(*graph), ops_);
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    EXPECT_EQ(made->num_convolutions, num_expected);
    std::vector<std::string> names;
    for (uint32_t n = 0; n < made->graph.num_nodes(); ++n) {
      const Node& node = made->graph.node(NodeId(n));
      if (node.kind == NodeKind::kExec) names.push_back(node.op->name + " " + node.name);
    }
    return names;
  }
  void expect_left(Value y) { EXPECT_THAT(allow(y, 0), ElementsAre("Conv conv")); }
  void expect_allowed(Value y) { EXPECT_THAT(allow(y, 1), ElementsAre("WinogradConv conv")); }

  OpTable ops_;
  GraphBuilder b_;
};

TEST_F(AllowWinogradTest, WindowsOfThree) { expect_allowed(conv({8, 16, 3, 3})); }
TEST_F(AllowWinogradTest, WindowsOfFiveWithPads) {
  expect_allowed(conv({8, 16, 5, 5}, {{"pads", Ints{2, 2, 2, 2}}, {"strides", Ints{1, 1}}}));
}
TEST_F(AllowWinogradTest, UnknownNumbersOfChannels) {
  expect_allowed(conv({kUnknownDim, kUnknownDim, 5, 5}));
}
TEST_F(AllowWinogradTest, ManyTapsAndFewPositionsStay) { expect_left(conv({8, 16, 16, 16})); }
TEST_F(AllowWinogradTest, OtherWindowsStay) { expect_left(conv({8, 16, 3, 5})); }
TEST_F(AllowWinogradTest, WindowsOfFourStay) { expect_left(conv({8, 16, 4, 4})); }
TEST_F(AllowWinogradTest, UnknownWindowsStay) { expect_left(conv({8, 16, 3, kUnknownDim})); }
TEST_F(AllowWinogradTest, StridesStay) {
  expect_left(conv({8, 16, 3, 3}, {{"strides", Ints{1, 2}}}));
}
TEST_F(AllowWinogradTest, DilationsStay) {
  expect_left(conv({8, 16, 3, 3}, {{"dilations", Ints{2, 2}}}));
}
TEST_F(AllowWinogradTest, GroupsStay) { expect_left(conv({8, 8, 3, 3}, {{"group", int64_t{2}}})); }
TEST_F(AllowWinogradTest, DoublesStay) {
  expect_left(conv({8, 16, 3, 3}, {}, ElementType::kDouble));
}
TEST_F(AllowWinogradTest, ConstantsStay) {
  const std::vector<float> ones(8 * 16 * 9, 1.0f);
  const Dims dims = {8, 16, 3, 3};
  expect_left(conv(b_.input("x", floats({1, 16, 20, 20})),
                   b_.constant(TensorView{const_cast<float*>(ones.data()), dims.data(), 4,
                                          ElementType::kFloat})));
}
TEST_F(AllowWinogradTest, InALoop) {
  const Value w = b_.input("w", floats({16, 16, 3, 3}));
  const Value x = b_.input("x", floats({1, 16, 20, 20}));
  const auto made = b_.while_loop(
      {.name = "loop", .initial = {x}, .trip_limit = b_.scalar(int64_t{3})},
      [&](Value, ValueSpan carried) {
        return WhileTest{b_.scalar(true), {carried[0]}};
      },
      [&](Value, ValueSpan v) {
        return std::vector<Value>{conv(v[0], w, {{"pads", Ints{1, 1, 1, 1}}})};
      });
  expect_allowed(made[0]);
}

}  // namespace
}  // namespace eddy
