// Claim: tree ensembles of ai.onnx.ml give what a hand finds by walking their trees: each
// comparison, missing values, several votes at a leaf, each aggregate, base values, classes; and
// the ensembles of the standard's own examples.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/ops/testing/calls.h"

namespace eddy::testing {
namespace {

using Words = std::vector<std::string>;
using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

OpCall make(const char* op, int opset, const TestTensor& x, Attributes attributes) {
  const size_t num_outputs = std::string(op) == "TreeEnsembleClassifier" ? 2 : 1;
  return make_of("ai.onnx.ml", op, opset, {x}, std::move(attributes), num_outputs);
}

// Both kernels, of which the plain one must agree with the hand.
std::vector<TestTensor> run_both(const OpCall& call) {
  compare_with_reference(call);
  auto outputs = run_op(call, KernelSet::kReference);
  EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
  std::vector<TestTensor> tensors;
  if (!outputs.is_ok()) return tensors;
  for (const TestValue& output : *outputs) tensors.push_back(output.tensor());
  return tensors;
}
Floats regress(const TestTensor& x, const Attributes& attributes, int opset = 1) {
  const auto outputs = run_both(make("TreeEnsembleRegressor", opset, x, attributes));
  return outputs.empty() ? Floats() : outputs[0].values<float>();
}

// x[1] ? (x[0] ? 1 : 2 and 20) : 4, and a second tree that is a leaf: 0.5.
Attributes two_trees(const std::string& mode) {
  return {{"nodes_treeids", Ints{0, 0, 0, 0, 0, 3}},
          {"nodes_nodeids", Ints{0, 1, 2, 3, 4, 0}},
          {"nodes_featureids", Ints{1, 0, 0, 0, 0, 0}},
          {"nodes_values", Floats{2, 5, 0, 0, 0, 0}},
          {"nodes_modes", Words{mode, mode, "LEAF", "LEAF", "LEAF", "LEAF"}},
          {"nodes_truenodeids", Ints{1, 2, 0, 0, 0, 0}},
          {"nodes_falsenodeids", Ints{4, 3, 0, 0, 0, 0}},
          {"target_treeids", Ints{0, 0, 0, 0, 3}},
          {"target_nodeids", Ints{2, 3, 3, 4, 0}},
          {"target_ids", Ints{0, 0, 1, 0, 0}},
          {"target_weights", Floats{1, 2, 20, 4, 0.5f}},
          {"n_targets", int64_t{2}}};
}

TEST(TreeEnsembleRegressorTest, EachComparisonDecides) {
  // By x[1] against 2 and x[0] against 5: which of the three leaves.
  const TestTensor x = TestTensor::of<float>({4, 2}, {5, 2, 6, 1, 4, 3, 5, 3});
  const Floats a = {1.5f, 0}, b = {2.5f, 20}, c = {4.5f, 0};
  const auto expect = [&](const char* mode, const std::vector<Floats>& leaves) {
    SCOPED_TRACE(mode);
    Floats expected;
    for (const Floats& leaf : leaves) expected.insert(expected.end(), leaf.begin(), leaf.end());
    EXPECT_EQ(regress(x, two_trees(mode)), expected);
  };
  expect("BRANCH_LEQ", {a, b, c, c});
  expect("BRANCH_LT", {c, b, c, c});
  expect("BRANCH_GTE", {a, c, b, a});
  expect("BRANCH_GT", {c, c, b, b});
  expect("BRANCH_EQ", {a, c, c, c});
  expect("BRANCH_NEQ", {c, a, a, b});
}

TEST(TreeEnsembleRegressorTest, AMissingValueGoesWhereTheNodeSays) {
  const TestTensor x = TestTensor::of<float>({3, 2}, {0, kNan, kNan, 0, kNan, kNan});
  for (const char* mode : {"BRANCH_LEQ", "BRANCH_GTE", "BRANCH_NEQ"}) {
    SCOPED_TRACE(mode);
    const bool low_is_true = std::string(mode) != "BRANCH_GTE";
    Attributes trees = two_trees(mode);
    // Without the attribute: false, whatever the comparison.
    EXPECT_EQ(regress(x, trees), (low_is_true ? Floats{4.5f, 0, 2.5f, 20, 4.5f, 0}
                                              : Floats{4.5f, 0, 4.5f, 0, 4.5f, 0}));
    trees.set("nodes_missing_value_tracks_true", Ints{1, 0, 0, 0, 0, 0});
    EXPECT_EQ(regress(x, trees), (low_is_true ? Floats{1.5f, 0, 2.5f, 20, 2.5f, 20}
                                              : Floats{2.5f, 20, 4.5f, 0, 2.5f, 20}));
  }
}

TEST(TreeEnsembleRegressorTest, VotesAreAggregatedAndBaseValuesAdded) {
  const TestTensor x = TestTensor::of<double>({1, 2}, {6, 1});
  Attributes trees = two_trees("BRANCH_LEQ");
  trees.set("base_values", Floats{100, 200});
  EXPECT_EQ(regress(x, trees), (Floats{102.5f, 220}));
  trees.set("base_values", Floats{1});
  EXPECT_EQ(regress(x, trees), (Floats{3.5f, 21}));
  trees.set("aggregate_function", "AVERAGE");
  EXPECT_EQ(regress(x, trees), (Floats{2.25f, 11}));
  trees.set("aggregate_function", "MIN");
  EXPECT_EQ(regress(x, trees), (Floats{1.5f, 21}));
  trees.set("aggregate_function", "MAX");
  EXPECT_EQ(regress(x, trees), (Floats{3, 21}));
  trees.set("post_transform", "SOFTMAX");
  const Floats y = regress(x, trees);
  EXPECT_NEAR(y[0], 1 / (1 + std::exp(18)), 1e-7);
}

TEST(TreeEnsembleRegressorTest, IntegersAndASingleRow) {
  EXPECT_EQ(regress(TestTensor::of<int64_t>({2}, {6, 2}), two_trees("BRANCH_LEQ")),
            (Floats{2.5f, 20}));
  EXPECT_EQ(regress(TestTensor::of<int32_t>({1, 3}, {5, 3, 9}), two_trees("BRANCH_LEQ")),
            (Floats{4.5f, 0}));
}

TEST(TreeEnsembleRegressorTest, TensorsOfDoublesSplitDoublesSinceVersion3) {
  const double split = std::nextafter(2.0, 3.0);
  const TestTensor splits = TestTensor::of<double>({6}, {split, 5, 0, 0, 0, 0}),
                   weights = TestTensor::of<double>({5}, {1, 2, 20, 4, 0.1});
  Attributes trees;
  const Attributes of_floats = two_trees("BRANCH_LT");
  for (const auto& entry : of_floats.entries()) {
    if (entry.name != "nodes_values" && entry.name != "target_weights") {
      trees.set(entry.name, entry.value);
    }
  }
  trees.set("nodes_values_as_tensor",
            Constant{ElementType::kDouble, splits.dims(), splits.view().data});
  trees.set("target_weights_as_tensor",
            Constant{ElementType::kDouble, weights.dims(), weights.view().data});
  // As floats 2 and the split are equal.
  EXPECT_EQ(regress(TestTensor::of<double>({2, 2}, {0, 2, 0, split}), trees, 3),
            (Floats{1.1f, 0, 4.1f, 0}));
  EXPECT_EQ(regress(TestTensor::of<float>({1, 2}, {0, 2}), trees, 3), (Floats{1.1f, 0}));
  EXPECT_FALSE(
      run_op(make("TreeEnsembleRegressor", 1, TestTensor::of<float>({1, 2}, {0, 2}), trees),
             KernelSet::kCpu)
          .is_ok());
}

// x[0] <= 1 ? node 1 : node 2.
Attributes stump(const Ints& nodes, const Ints& ids, const Floats& weights) {
  return {{"nodes_treeids", Ints{0, 0, 0}},
          {"nodes_nodeids", Ints{0, 1, 2}},
          {"nodes_featureids", Ints{0, 0, 0}},
          {"nodes_values", Floats{1, 0, 0}},
          {"nodes_modes", Words{"BRANCH_LEQ", "LEAF", "LEAF"}},
          {"nodes_truenodeids", Ints{1, 0, 0}},
          {"nodes_falsenodeids", Ints{2, 0, 0}},
          {"class_treeids", Ints(nodes.size(), 0)},
          {"class_nodeids", nodes},
          {"class_ids", ids},
          {"class_weights", weights}};
}

TEST(TreeEnsembleClassifierTest, TheGreatestScoreNamesTheClass) {
  const TestTensor x = TestTensor::of<float>({3, 1}, {0, 2, 1});
  Attributes trees = stump({1, 1, 2, 2}, {0, 2, 1, 2}, {0.75f, 0.25f, 0.5f, 0.5f});
  trees.set("classlabels_strings", Words{"a", "b", "c"});
  auto y = run_both(make("TreeEnsembleClassifier", 1, x, trees));
  ASSERT_EQ(y.size(), 2u);
  EXPECT_EQ(y[0].strings(), (Words{"a", "b", "a"}));  // of equal ones the first
  EXPECT_EQ(y[1].values<float>(), (Floats{0.75f, 0, 0.25f, 0, 0.5f, 0.5f, 0.75f, 0, 0.25f}));
  trees.set("base_values", Floats{0, 0, 1});
  y = run_both(make("TreeEnsembleClassifier", 3, x, trees));
  EXPECT_EQ(y[0].strings(), (Words{"c", "c", "c"}));
  OpCall call = make("TreeEnsembleClassifier", 5, x, trees);
  call.num_outputs = 1;
  EXPECT_EQ(run_one(call, KernelSet::kCpu).strings(), (Words{"c", "c", "c"}));
}

TEST(TreeEnsembleClassifierTest, VotesForOneOfTwoClassesSpeakForTheSecond) {
  const TestTensor x = TestTensor::of<float>({2, 1}, {0, 2});
  for (const int64_t id : {0, 1}) {
    Attributes trees = stump({1, 2}, {id, id}, {0.25f, 0.75f});
    trees.set("classlabels_int64s", Ints{10, 20});
    auto y = run_both(make("TreeEnsembleClassifier", 1, x, trees));
    ASSERT_EQ(y.size(), 2u);
    EXPECT_EQ(y[0].values<int64_t>(), (Ints{10, 20}));
    EXPECT_EQ(y[1].values<float>(), (Floats{0.75f, 0.25f, 0.25f, 0.75f}));
    // Where votes are negative the score is no probability, and its sign decides.
    trees.set("class_weights", Floats{-2, 0.25f});
    y = run_both(make("TreeEnsembleClassifier", 1, x, trees));
    EXPECT_EQ(y[0].values<int64_t>(), (Ints{10, 20}));
    EXPECT_EQ(y[1].values<float>(), (Floats{2, -2, -0.25f, 0.25f}));
    trees.set("class_weights", Floats{-2, 1});
    trees.set("post_transform", "LOGISTIC");
    y = run_both(make("TreeEnsembleClassifier", 1, x, trees));
    EXPECT_EQ(y[0].values<int64_t>(), (Ints{10, 20}));
    const auto logistic = [](double score) {
      return static_cast<float>(1 / (1 + std::exp(-score)));
    };
    const Floats scores = y[1].values<float>();
    const Floats expected = {logistic(2), logistic(-2), logistic(-1), logistic(1)};
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(scores[i], expected[i], 1e-6) << i;
  }
}

TEST(TreeEnsembleTest, TheStandardsExampleOfATree) {
  const TestTensor modes = TestTensor::of<uint8_t>({3}, {0, 0, 0}),
                   splits = TestTensor::of<double>({3}, {3.14, 1.2, 4.2}),
                   weights = TestTensor::of<double>({4}, {5.23, 12.12, -12.23, 7.21});
  const Attributes trees = {
      {"n_targets", int64_t{2}},
      {"tree_roots", Ints{0}},
      {"nodes_modes", Constant{ElementType::kUint8, {3}, modes.view().data}},
      {"nodes_featureids", Ints{0, 0, 0}},
      {"nodes_splits", Constant{ElementType::kDouble, {3}, splits.view().data}},
      {"nodes_truenodeids", Ints{1, 0, 1}},
      {"nodes_trueleafs", Ints{0, 1, 1}},
      {"nodes_falsenodeids", Ints{2, 2, 3}},
      {"nodes_falseleafs", Ints{0, 1, 1}},
      {"leaf_targetids", Ints{0, 1, 0, 1}},
      {"leaf_weights", Constant{ElementType::kDouble, {4}, weights.view().data}}};
  const TestTensor x = TestTensor::of<double>({3, 2}, {1.2, 3.4, -0.12, 1.66, 4.14, 1.77});
  const auto y = run_both(make("TreeEnsemble", 5, x, trees));
  ASSERT_EQ(y.size(), 1u);
  EXPECT_EQ(y[0].values<double>(), (Doubles{5.23, 0, 5.23, 0, 0, 12.12}));
}

TEST(TreeEnsembleTest, TheStandardsExampleOfMembership) {
  const TestTensor modes = TestTensor::of<uint8_t>({3}, {0, 6, 6}),
                   splits = TestTensor::of<float>({3}, {11, 232344, kNan}),
                   weights = TestTensor::of<float>({4}, {1, 10, 1000, 100}),
                   members = TestTensor::of<float>({8}, {1.2f, 3.7f, 8, 9, kNan, 12, 7, kNan});
  Attributes trees = {
      {"n_targets", int64_t{4}},
      {"tree_roots", Ints{0}},
      {"membership_values", Constant{ElementType::kFloat, {8}, members.view().data}},
      {"nodes_modes", Constant{ElementType::kUint8, {3}, modes.view().data}},
      {"nodes_featureids", Ints{0, 0, 0}},
      {"nodes_splits", Constant{ElementType::kFloat, {3}, splits.view().data}},
      {"nodes_trueleafs", Ints{0, 1, 1}},
      {"nodes_truenodeids", Ints{1, 0, 1}},
      {"nodes_falseleafs", Ints{1, 0, 1}},
      {"nodes_falsenodeids", Ints{2, 2, 3}},
      {"leaf_targetids", Ints{0, 1, 2, 3}},
      {"leaf_weights", Constant{ElementType::kFloat, {4}, weights.view().data}}};
  const TestTensor x = TestTensor::of<float>({6, 1}, {1.2f, 3.4f, -0.12f, kNan, 12, 7});
  auto y = run_both(make("TreeEnsemble", 5, x, trees));
  ASSERT_EQ(y.size(), 1u);
  EXPECT_EQ(y[0].values<float>(), (Floats{1, 0, 0,    0, 0, 0, 0,    100, 0, 0,  0, 100,
                                          0, 0, 1000, 0, 0, 0, 1000, 0,   0, 10, 0, 0}));
  // A missing value may be a member of any set.
  trees.set("nodes_missing_value_tracks_true", Ints{1, 1, 0});
  y = run_both(make("TreeEnsemble", 5, TestTensor::of<float>({1, 1}, {kNan}), trees));
  EXPECT_EQ(y[0].values<float>(), (Floats{1, 0, 0, 0}));
}

TEST(TreeEnsembleTest, HalvesAndATreeThatIsALeaf) {
  const auto halves = [](const Floats& values) {
    TestTensor tensor(ElementType::kFloat16, {static_cast<int64_t>(values.size())});
    for (size_t i = 0; i < values.size(); ++i) {
      tensor.view().mutable_as<Float16>()[i] = Float16(values[i]);
    }
    return tensor;
  };
  const TestTensor modes = TestTensor::of<uint8_t>({2}, {1, 0}), splits = halves({0.5f, 0}),
                   weights = halves({1, 2.5f, -4});
  const Attributes trees = {
      {"n_targets", int64_t{1}},
      {"tree_roots", Ints{0, 1}},
      {"nodes_modes", Constant{ElementType::kUint8, {2}, modes.view().data}},
      {"nodes_featureids", Ints{0, 0}},
      {"nodes_splits", Constant{ElementType::kFloat16, {2}, splits.view().data}},
      {"nodes_trueleafs", Ints{1, 1}},
      {"nodes_truenodeids", Ints{0, 2}},
      {"nodes_falseleafs", Ints{1, 1}},
      {"nodes_falsenodeids", Ints{1, 2}},
      {"leaf_targetids", Ints{0, 0, 0}},
      {"leaf_weights", Constant{ElementType::kFloat16, {3}, weights.view().data}},
      {"post_transform", int64_t{0}}};
  TestTensor x = halves({0.25f});
  const auto y = run_both(make("TreeEnsemble", 5, x, trees));
  ASSERT_EQ(y.size(), 1u);
  EXPECT_EQ(y[0].element(), ElementType::kFloat16);
  EXPECT_EQ(number_at(y[0].view(), 0), -3);
}

}  // namespace
}  // namespace eddy::testing
