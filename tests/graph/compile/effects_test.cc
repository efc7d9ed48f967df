// Claim: graph passes leave communication alone: a node that nobody reads stays, equal ones stay
// two, also in loops; constant operands are not evaluated, even where a kernel could; loops that
// communicate are not merged; and Rank, which has no effect, goes where nobody reads it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "graph/compile/merge_loops.h"
#include "graph/compile/simplify.h"
#include "graph/ir/builder.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

const ValueType kLine = tensor_type(ElementType::kFloat, {4});

class Effects : public testing::Test {
 protected:
  Effects() { EXPECT_TRUE(add_standard_schemas(ops_).is_ok()); }

  static Value op(GraphBuilder& b, const char* name, std::initializer_list<Value> inputs,
                  Attributes attributes = {}) {
    return b.op(name, inputs, std::move(attributes), {.domain = "eddy"});
  }
  // Evaluates whatever it is asked to, to the first operand.
  Graph simplified(GraphBuilder& b) {
    auto graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    SimplifyOptions options;
    options.evaluate = [this](const Node& node, std::span<const TensorView> inputs) {
      ++num_evaluated_;
      std::vector<OwnedTensor> results;
      results.push_back(copy_of(inputs[0]));
      EXPECT_EQ(node.outputs.size(), 1u);
      return Result<std::vector<OwnedTensor>>(std::move(results));
    };
    auto simple = simplify(std::move(*graph), ops_, options);
    EXPECT_TRUE(simple.is_ok()) << simple.status().to_string();
    return std::move(*simple);
  }
  static OwnedTensor copy_of(const TensorView& view) {
    OwnedTensor copy{view.element, Dims(view.shape()),
                     std::make_unique<std::byte[]>(view.size_bytes())};
    std::memcpy(copy.bytes.get(), view.data, view.size_bytes());
    return copy;
  }
  static int count(const Graph& graph, std::string_view op) {
    int found = 0;
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
      const Node& node = graph.node(NodeId(n));
      found += node.kind == NodeKind::kExec && node.op->name == op;
    }
    return found;
  }
  // Counts from `initial` while the sum over ranks, or the value itself, is small.
  static Value loop(GraphBuilder& b, const char* name, Value initial, bool communicates) {
    return b.while_loop(
        {.name = name, .initial = {initial}},
        [&](Value, ValueSpan c) {
          const Value all = communicates ? op(b, "AllReduce", {c[0]}) : c[0];
          return WhileTest{b.op("Less", {all, b.scalar(10.0f)}), {c[0]}};
        },
        [&](Value, ValueSpan f) {
          return std::vector<Value>{b.op("Add", {f[0], b.scalar(1.0f)})};
        })[0];
  }

  OpTable ops_;
  int num_evaluated_ = 0;
};

TEST_F(Effects, WhatNobodyReadsStays) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", kLine);
  op(b, "AllReduce", {x});
  op(b, "Send", {x}, {{"root", int64_t{1}}});
  op(b, "Barrier", {});
  op(b, "Exchange", {x}, {{"from", std::vector<int64_t>()}, {"to", std::vector<int64_t>()}});
  op(b, "Recv", {}, {{"root", int64_t{1}}, {"type", kLine}});
  op(b, "Rank", {});
  b.op("Relu", {x});
  b.output("y", b.op("Neg", {x}));
  const Graph graph = simplified(b);
  for (const char* name : {"AllReduce", "Send", "Barrier", "Exchange", "Recv", "Neg"}) {
    EXPECT_EQ(count(graph, name), 1) << name;
  }
  EXPECT_EQ(count(graph, "Rank"), 0);
  EXPECT_EQ(count(graph, "Relu"), 0);
}

TEST_F(Effects, EqualOnesStayTwo) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", kLine);
  for (const char* name : {"a", "b"}) {
    b.output(name, b.op("Relu", {op(b, "AllReduce", {x})}));
  }
  b.output("c", b.op("Neg", {x}));
  b.output("d", b.op("Neg", {x}));
  const Graph graph = simplified(b);
  EXPECT_EQ(count(graph, "AllReduce"), 2);
  EXPECT_EQ(count(graph, "Relu"), 2);
  EXPECT_EQ(count(graph, "Neg"), 1);
}

TEST_F(Effects, ConstantOperandsAreNotEvaluated) {
  GraphBuilder b(ops_);
  b.output("sum", op(b, "AllReduce", {b.scalar(1.0f)}));
  b.output("max", op(b, "AllReduce", {b.scalar(1.0f)}, {{"reduction", std::string("max")}}));
  const Graph graph = simplified(b);
  EXPECT_EQ(count(graph, "AllReduce"), 2);
  EXPECT_EQ(num_evaluated_, 0);
}

TEST_F(Effects, AnUnreadNodeKeepsItsLoop) {
  GraphBuilder b(ops_);
  loop(b, "unread", b.input("x", tensor_type(ElementType::kFloat, {})), true);
  b.output("y", b.op("Neg", {b.input("z", kLine)}));
  const Graph graph = simplified(b);
  EXPECT_EQ(count(graph, "AllReduce"), 1);
  EXPECT_EQ(count(graph, "Less"), 1);
}

TEST_F(Effects, LoopsThatCommunicateAreNotMerged) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {}));
  b.output("apart", loop(b, "apart", x, true));
  b.output("plain", loop(b, "plain", x, false));
  const auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  std::map<std::string, std::string> why;
  for (uint32_t n = 0; n < graph->num_nodes(); ++n) {
    const Node& node = graph->node(NodeId(n));
    if (node.kind == NodeKind::kWhile) why[node.name] = why_not_merged(*graph, NodeId(n));
  }
  ASSERT_EQ(why.size(), 2u);
  EXPECT_EQ(why["apart"], "a node inside has effects");
  EXPECT_EQ(why["plain"], "");
}

}  // namespace
}  // namespace eddy
