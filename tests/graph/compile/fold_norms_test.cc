// Claim: a normalization of constants behind a convolution without other readers becomes the
// convolution's weights, with the same values within rounding, with and without bias, in groups and
// in loops; every other pair stays as it is.
#include "graph/compile/fold_norms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "graph/base/random.h"
#include "graph/compile/simplify.h"
#include "graph/ir/builder.h"
#include "ops/contract/evaluate.h"
#include "ops/reference/reference_kernels.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

using ::testing::ElementsAre;

struct Form {
  bool has_bias = false;
  int64_t groups = 1;
  float epsilon = 1e-5f;
};

class FoldNormsTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kSeed = 23;
  static constexpr int64_t kChannels = 4;
  static constexpr int64_t kFilters = 6;

  FoldNormsTest() {
    EXPECT_TRUE(add_standard_schemas(ops_).is_ok());
    add_reference_kernels(kernels_);
  }

  Value numbers(GraphBuilder& b, const Dims& dims, float low, float high) {
    std::vector<float> values(static_cast<size_t>(*dims.count()));
    for (float& value : values) value = random_.uniform(low, high);
    return b.tensor<float>(dims, std::span<const float>(values));
  }
  Value convolution(GraphBuilder& b, Value x, const Form& form) {
    std::vector<Value> inputs = {x, numbers(b, {kFilters, kChannels / form.groups, 3, 3}, -1, 1)};
    if (form.has_bias) inputs.push_back(numbers(b, {kFilters}, -1, 1));
    return b.op("Conv", std::span<const Value>(inputs), {{"group", form.groups}}, {.name = "conv"});
  }
  Value normalization(GraphBuilder& b, Value x, const Form& form) {
    return b.op("BatchNormalization",
                {x, numbers(b, {kFilters}, 0.5f, 2), numbers(b, {kFilters}, -1, 1),
                 numbers(b, {kFilters}, -1, 1), numbers(b, {kFilters}, 0.1f, 3)},
                {{"epsilon", form.epsilon}}, {.name = "norm"});
  }
  FoldedNorms fold(GraphBuilder& b) {
    auto graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    auto folded = fold_norms(std::move(*graph), ops_);
    EXPECT_TRUE(folded.is_ok()) << folded.status().to_string();
    return std::move(*folded);
  }
  EvaluateFunction evaluate() {
    return [this](const Node& node, std::span<const TensorView> inputs) {
      return evaluate_node(kernels_, *node.op, node.attributes, node.opset_version, inputs,
                           node.outputs.size());
    };
  }
  // The graph's one output, by evaluating node after node.
  std::vector<float> run(const Graph& graph, const std::vector<float>& x) {
    const int64_t dims[] = {2, kChannels, 5, 5};
    std::map<uint32_t, OwnedTensor> made;
    for (const NodeId id : graph.root().nodes) {
      const Node& node = graph.node(id);
      std::vector<TensorView> inputs;
      for (const ValueId value : node.inputs) {
        const ValueInfo& info = graph.value(value);
        if (info.origin == ValueOrigin::kConstant) {
          inputs.push_back(graph.constant(info.constant).view());
        } else if (info.origin == ValueOrigin::kParameter) {
          inputs.push_back({const_cast<float*>(x.data()), dims, 4, ElementType::kFloat});
        } else {
          inputs.push_back(made.at(value.index()).view());
        }
      }
      auto results = evaluate()(node, inputs);
      EXPECT_TRUE(results.is_ok()) << results.status().to_string();
      made.emplace(node.outputs[0].index(), std::move((*results)[0]));
    }
    const TensorView out = made.at(graph.outputs()[0].index()).view();
    return {out.as<float>(), out.as<float>() + out.count()};
  }
  static std::vector<std::string> ops_of(const Graph& graph) {
    std::vector<std::string> names;
    for (const NodeId id : graph.root().nodes) {
      if (graph.node(id).kind == NodeKind::kExec) names.push_back(graph.node(id).op->name);
    }
    return names;
  }
  const ValueType kImage = tensor_type(ElementType::kFloat, {2, kChannels, 5, 5});

  OpTable ops_;
  KernelRegistry kernels_;
  Random random_{kSeed};
};

TEST_F(FoldNormsTest, WhatIsFoldedHasTheSameValuesWithinRounding) {
  for (const Form& form : {Form{}, Form{.has_bias = true}, Form{.groups = 2},
                           Form{.has_bias = true, .groups = 2, .epsilon = 0.1f}}) {
    SCOPED_TRACE("seed " + std::to_string(kSeed));
    const auto build = [&](GraphBuilder& b) {
      random_ = Random(kSeed);
      const Value x = b.input("x", kImage);
      b.output("y", normalization(b, convolution(b, x, form), form));
    };
    GraphBuilder plain(ops_);
    build(plain);
    const Graph given = std::move(*plain.finish());
    GraphBuilder again(ops_);
    build(again);
    FoldedNorms folded = fold(again);
    EXPECT_EQ(folded.num_folded, 1u);
    auto simple = simplify(std::move(folded.graph), ops_, {.evaluate = evaluate()});
    ASSERT_TRUE(simple.is_ok()) << simple.status().to_string();
    EXPECT_THAT(ops_of(*simple), ElementsAre("Conv"));
    EXPECT_EQ(simple->node(simple->root().nodes[0]).name, "conv");
    std::vector<float> x(2 * kChannels * 25);
    for (float& value : x) value = random_.uniform(-1.0f, 1.0f);
    const std::vector<float> expected = run(given, x);
    const std::vector<float> found = run(*simple, x);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], 2e-5 * (1 + std::fabs(expected[i]))) << i;
    }
  }
}

TEST_F(FoldNormsTest, WhatHasAnotherReaderOrIsUnknownStays) {
  const Form form;
  GraphBuilder shared(ops_);
  const Value conv = convolution(shared, shared.input("x", kImage), form);
  shared.output("conv", conv);
  shared.output("y", normalization(shared, conv, form));
  EXPECT_EQ(fold(shared).num_folded, 0u);

  GraphBuilder unknown(ops_);
  const Value x = unknown.input("x", kImage);
  const Value weights =
      unknown.input("w", tensor_type(ElementType::kFloat, {kFilters, kChannels, 3, 3}));
  unknown.output("y", normalization(unknown, unknown.op("Conv", {x, weights}), form));
  EXPECT_EQ(fold(unknown).num_folded, 0u);

  GraphBuilder other(ops_);
  const Value image = other.input("x", tensor_type(ElementType::kFloat, {2, kFilters, 5, 5}));
  other.output("y", normalization(other, other.op("Tanh", {image}), form));
  EXPECT_EQ(fold(other).num_folded, 0u);
}

TEST_F(FoldNormsTest, ABodyOfALoopIsFoldedToo) {
  const Form form;
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {1, kChannels, 9, 9}));
  const Value limit = b.input("limit", tensor_type(ElementType::kInt64, {}));
  const auto results = b.while_loop(
      {.initial = {b.scalar(0.0f)}, .trip_limit = limit},
      [&](Value, ValueSpan v) {
        return WhileTest{b.scalar(true), {v[0]}};
      },
      [&](Value, ValueSpan v) {
        const Value y = normalization(b, convolution(b, x, form), form);
        const Value sum = b.op("ReduceSum", {y}, {{"keepdims", int64_t{0}}});
        return std::vector<Value>{b.op("Add", {v[0], sum})};
      });
  b.output("y", results[0]);
  EXPECT_EQ(fold(b).num_folded, 1u);
}

}  // namespace
}  // namespace eddy
