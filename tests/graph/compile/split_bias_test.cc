// Claim: a convolution's constant bias becomes an Add of the same result where exactly one
// elementwise node of the device and of the same shape reads that, in loops' bodies too; in all
// other cases the graph stays as it is.
#include "graph/compile/split_bias.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "ops/schema/standard.h"
#include "tests/graph/compile/placed_graph.h"

namespace eddy {
namespace {

using ::testing::ElementsAre;

const ValueType kImage = tensor_type(ElementType::kFloat, {1, 2, 4, 4});

class SplitBiasTest : public ::testing::Test {
 protected:
  SplitBiasTest() { EXPECT_TRUE(add_standard_schemas(ops_).is_ok()); }

  static Value op(GraphBuilder& b, const char* name, std::initializer_list<Value> inputs,
                  const char* device = "cuda") {
    return b.op(name, inputs, {}, {.name = name, .device = device});
  }
  static Value weights(GraphBuilder& b) { return b.tensor<float>({2, 2, 1, 1}, {1, 2, 3, 4}); }
  static Value conv(GraphBuilder& b, Value x, Value bias, const char* device = "cuda") {
    return op(b, "Conv", {x, weights(b), bias}, device);
  }
  static Value bias(GraphBuilder& b) { return b.tensor<float>({2}, {5, 6}); }

  SplitBiases split(GraphBuilder& b) {
    GraphOnDevice given = finish_on_device(b);
    const SplitBiasOptions options = {"cuda", [](const Graph& from, NodeId id) {
                                        const std::string& name = from.node(id).op->name;
                                        return name == "Relu" || name == "Add";
                                      }};
    Result<SplitBiases> made =
        split_bias(std::move(given.graph), ops_, std::move(given.value_devices), options);
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    expect_on_device(made->graph, made->value_devices);
    return std::move(*made);
  }
  size_t num_split(GraphBuilder& b) { return split(b).num_split; }

  OpTable ops_;
};

TEST_F(SplitBiasTest, ABiasThatReluReadsIsAnAddOfAColumn) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", kImage);
  b.output("y", op(b, "Relu", {conv(b, x, bias(b))}));
  const SplitBiases made = split(b);
  EXPECT_EQ(made.num_split, 1u);
  std::vector<std::string> names;
  for (uint32_t n = 0; n < made.graph.num_nodes(); ++n) {
    names.push_back(made.graph.node(NodeId(n)).op->name);
  }
  EXPECT_THAT(names, ElementsAre("Conv", "Add", "Relu"));
  const Node& sum = made.graph.node(NodeId(0));
  EXPECT_EQ(sum.inputs.size(), 2u);
  const Node& add = made.graph.node(NodeId(1));
  EXPECT_EQ(add.device, "cuda");
  const TensorView column = made.graph.constant(made.graph.value(add.inputs[1]).constant).view();
  EXPECT_THAT(column.shape(), ElementsAre(2, 1, 1));
  EXPECT_EQ(column.as<float>()[1], 6.0f);
}

TEST_F(SplitBiasTest, BothBiasesOfASumAreSplitAndThoseInALoopToo) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", kImage);
  b.output("y", op(b, "Add", {conv(b, x, bias(b)), conv(b, x, bias(b))}));
  EXPECT_EQ(num_split(b), 2u);

  GraphBuilder looping(ops_);
  const Value from = looping.input("x", kImage);
  looping.output("y", looping.while_loop(
                          {.name = "loop", .initial = {from}},
                          [&](Value, ValueSpan v) {
                            return WhileTest{looping.scalar(true), {v[0]}};
                          },
                          [&](Value, ValueSpan v) {
                            return std::vector<Value>{
                                op(looping, "Relu", {conv(looping, v[0], bias(looping))})};
                          })[0]);
  EXPECT_EQ(num_split(looping), 1u);
}

TEST_F(SplitBiasTest, OthersStayAsTheyAre) {
  using Build = std::function<void(GraphBuilder&, Value x)>;
  const std::pair<const char*, Build> cases[] = {
      {"a result", [](GraphBuilder& b, Value x) { b.output("y", conv(b, x, bias(b))); }},
      {"a result that Relu reads, too",
       [](GraphBuilder& b, Value x) {
         const Value sum = conv(b, x, bias(b));
         b.output("y", sum);
         b.output("z", op(b, "Relu", {sum}));
       }},
      {"two readers",
       [](GraphBuilder& b, Value x) {
         const Value sum = conv(b, x, bias(b));
         b.output("y", op(b, "Add", {op(b, "Relu", {sum}), sum}));
       }},
      {"a reader that is not elementwise",
       [](GraphBuilder& b, Value x) { b.output("y", op(b, "Softmax", {conv(b, x, bias(b))})); }},
      {"a reader on the CPU",
       [](GraphBuilder& b, Value x) { b.output("y", op(b, "Relu", {conv(b, x, bias(b))}, "")); }},
      {"a convolution on the CPU",
       [](GraphBuilder& b, Value x) { b.output("y", op(b, "Relu", {conv(b, x, bias(b), "")})); }},
      {"a bias that is computed",
       [](GraphBuilder& b, Value x) {
         const Value given = b.input("bias", tensor_type(ElementType::kFloat, {2}));
         b.output("y", op(b, "Relu", {conv(b, x, given)}));
       }},
      {"no bias",
       [](GraphBuilder& b, Value x) {
         b.output("y", op(b, "Relu", {op(b, "Conv", {x, weights(b)})}));
       }},
      {"a reader of a larger shape",
       [](GraphBuilder& b, Value x) {
         const Value many = b.input("many", tensor_type(ElementType::kFloat, {3, 2, 4, 4}));
         b.output("y", op(b, "Add", {conv(b, x, bias(b)), many}));
       }},
  };
  for (const auto& [what, build] : cases) {
    SCOPED_TRACE(what);
    GraphBuilder b(ops_);
    build(b, b.input("x", kImage));
    EXPECT_EQ(num_split(b), 0u);
  }
}

}  // namespace
}  // namespace eddy
