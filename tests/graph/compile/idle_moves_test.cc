// Claim: nodes of the device that move no element become views of the same names and types; those
// that move one, leave one out or stand elsewhere stay as they are.
#include "graph/compile/idle_moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "ops/schema/standard.h"
#include "tests/graph/compile/placed_graph.h"

namespace eddy {
namespace {

using ::testing::Each;
using Ints = std::vector<int64_t>;

class IdleMovesTest : public ::testing::Test {
 protected:
  IdleMovesTest() { EXPECT_TRUE(add_standard_schemas(ops_).is_ok()); }

  static Value op(GraphBuilder& b, const char* name, const std::vector<Value>& inputs,
                  Attributes attributes = {}, const char* device = "cuda") {
    return b.ops(name, inputs, std::move(attributes),
                 {.name = name, .device = device, .output_names = {name}})[0];
  }
  static Value turn(GraphBuilder& b, Value x, Ints perm, const char* device = "cuda") {
    return op(b, "Transpose", {x}, {{"perm", std::move(perm)}}, device);
  }
  IdleMoves moves(GraphBuilder& b) {
    GraphOnDevice given = finish_on_device(b);
    auto made = idle_moves(std::move(given.graph), ops_, std::move(given.value_devices), "cuda");
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    expect_on_device(made->graph, made->value_devices);
    return std::move(*made);
  }
  static std::vector<std::string> names(const Graph& graph) {
    std::vector<std::string> names;
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
      names.push_back(graph.node(NodeId(n)).op->name);
    }
    return names;
  }

  OpTable ops_;
};

TEST_F(IdleMovesTest, WhatMovesNothingIsAView) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {5, 1, 3}));
  b.output("a", turn(b, x, {1, 0, 2}));
  b.output("b", turn(b, x, {0, 2, 1}));
  b.output("c", op(b, "Gather", {x, b.scalar(int64_t{-1})}, {{"axis", 1}}));
  b.output("d", op(b, "Slice", {x, b.int64s({0, 0}), b.int64s({9, 1})}));
  const IdleMoves made = moves(b);
  EXPECT_EQ(made.num_views, 4u);
  EXPECT_THAT(names(made.graph), Each("Reshape"));
  const ValueInfo& first = made.graph.value(made.graph.node(NodeId(0)).outputs[0]);
  EXPECT_EQ(first.type, tensor_type(ElementType::kFloat, {1, 5, 3}));
  EXPECT_EQ(first.name, "Transpose");
}

TEST_F(IdleMovesTest, OthersStayAsTheyAre) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {5, 1, 3}));
  const Value open = b.input("open", tensor_type(ElementType::kFloat, {1, b.symbol("n")}));
  b.output("a", turn(b, x, {2, 1, 0}));
  b.output("b", turn(b, x, {1, 0, 2}, ""));
  b.output("c", op(b, "Gather", {x, b.scalar(int64_t{0})}, {{"axis", 0}}));
  b.output("d", op(b, "Slice", {x, b.int64s({0}), b.int64s({4})}));
  b.output("e", turn(b, open, {1, 0}));
  EXPECT_EQ(moves(b).num_views, 0u);
}

}  // namespace
}  // namespace eddy
