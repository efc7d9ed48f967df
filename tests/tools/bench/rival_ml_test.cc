// Claim: the operators of domain ai.onnx.ml give what ONNX Runtime gives, on seeded inputs, where
// both follow the standard's text. Skipped where ONNX Runtime is not installed; a case that its
// version refuses is left out and named.
#include <limits>

#include "tests/tools/bench/rival.h"

namespace eddy::testing {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;
using Words = std::vector<std::string>;

constexpr const char* kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"};

class RivalMlTest : public RivalTest {
 protected:
  void compare(const char* op, int opset, std::vector<TestValue> inputs, Attributes attributes = {},
               size_t num_outputs = 1) {
    OpCall made = RivalTest::call(op, opset, std::move(inputs), std::move(attributes), num_outputs);
    made.domain = "ai.onnx.ml";
    RivalTest::compare(made);
  }
  int64_t below(int64_t end) {
    return static_cast<int64_t>(random_.below(static_cast<uint64_t>(end)));
  }
  Floats weights(size_t count, float low = -2, float high = 2) {
    Floats values(count);
    for (float& value : values) value = random_.uniform(low, high);
    return values;
  }

  // Full trees of a depth, by id; votes for `targets` things under the names of `prefix`.
  Attributes trees(const std::string& prefix, int64_t targets, const std::string& mode,
                   float low_weight, bool has_missing) {
    constexpr int64_t kTrees = 7, kDepth = 4, kInner = (1 << kDepth) - 1;
    Ints tree_ids, ids, features, if_true, if_false, missing, vote_trees, vote_nodes, vote_ids;
    Floats splits;
    Words modes;
    for (int64_t tree = 0; tree < kTrees; ++tree) {
      for (int64_t id = 0; id < 2 * kInner + 1; ++id) {
        const bool is_leaf = id >= kInner;
        tree_ids.push_back(tree);
        ids.push_back(id);
        features.push_back(is_leaf ? 0 : below(4));
        splits.push_back(is_leaf ? 0 : static_cast<float>(below(9)) / 4 - 1);
        modes.push_back(is_leaf ? "LEAF" : mode);
        if_true.push_back(is_leaf ? 0 : 2 * id + 1);
        if_false.push_back(is_leaf ? 0 : 2 * id + 2);
        missing.push_back(is_leaf ? 0 : below(2));
        for (int64_t target = 0; is_leaf && target < targets; ++target) {
          vote_trees.push_back(tree);
          vote_nodes.push_back(id);
          vote_ids.push_back(target);
        }
      }
    }
    Attributes made = {{"nodes_treeids", tree_ids},
                       {"nodes_nodeids", ids},
                       {"nodes_featureids", features},
                       {"nodes_values", splits},
                       {"nodes_modes", modes},
                       {"nodes_truenodeids", if_true},
                       {"nodes_falsenodeids", if_false},
                       {prefix + "_treeids", vote_trees},
                       {prefix + "_nodeids", vote_nodes},
                       {prefix + "_ids", vote_ids},
                       {prefix + "_weights", weights(vote_ids.size(), low_weight, 1)}};
    if (has_missing) made.set("nodes_missing_value_tracks_true", missing);
    return made;
  }
  // Values that often equal splits, and some that are missing.
  TestTensor rows(int64_t count, bool has_missing) {
    TestTensor x(ElementType::kFloat, {count, 4});
    for (int64_t i = 0; i < count * 4; ++i) {
      const bool is_missing = has_missing && below(6) == 0;
      x.view().mutable_as<float>()[i] = is_missing ? std::numeric_limits<float>::quiet_NaN()
                                                   : static_cast<float>(below(9)) / 4 - 1;
    }
    return x;
  }
};

TEST_F(RivalMlTest, Features) {
  const TestTensor x = floats({5, 3});
  compare("ArrayFeatureExtractor", 1, {x, ints({2, 0, 2})});
  compare("ArrayFeatureExtractor", 1, {floats({4}), ints({3, 1})});
  compare("Binarizer", 1, {x}, {{"threshold", 0.3f}});
  compare("FeatureVectorizer", 1, {x, floats({5, 2})}, {{"inputdimensions", Ints{3, 2}}});
  compare("Imputer", 1, {TestTensor::of<float>({2, 2}, {1, 2, 2, 1})},
          {{"imputed_value_floats", Floats{7, 8}}, {"replaced_value_float", 2.0f}});
  compare("Imputer", 1, {TestTensor::of<int64_t>({2, 2}, {1, 2, 2, 1})},
          {{"imputed_value_int64s", Ints{7}}, {"replaced_value_int64", int64_t{1}}});
  for (const char* norm : {"MAX", "L1", "L2"}) {
    compare("Normalizer", 1, {x}, {{"norm", norm}});
    compare("Normalizer", 1, {TestTensor::of<int64_t>({2, 2}, {0, 0, 3, -4})}, {{"norm", norm}});
  }
  compare("Scaler", 1, {x}, {{"offset", weights(3)}, {"scale", weights(3)}});
  compare("Scaler", 1, {TestTensor::of<double>({2, 2}, {1, 2, 3, 4})},
          {{"offset", weights(1)}, {"scale", weights(1)}});
  EXPECT_GE(num_compared_, 12);
}

TEST_F(RivalMlTest, Labels) {
  const TestTensor x = ints({3, -1, 7, 3, 9});
  const Attributes pairs = {
      {"keys_int64s", Ints{3, 7}}, {"values_floats", Floats{0.5f, 2}}, {"default_float", -4.0f}};
  for (const int opset : {2, 4}) {
    compare("LabelEncoder", opset, {x}, pairs);
    compare("LabelEncoder", opset, {x},
            {{"keys_int64s", Ints{9, -1}}, {"values_int64s", Ints{1, 2}}});
    compare("LabelEncoder", opset, {floats({6}, 0, 0)},
            {{"keys_floats", Floats{0, 1}}, {"values_int64s", Ints{4, 5}}});
  }
  const TestTensor keys = TestTensor::of<double>({2}, {0.1, 7}),
                   values = TestTensor::of<double>({2}, {1e100, -3}),
                   unknown = TestTensor::of<double>({1}, {0.25});
  const auto constant = [](const TestTensor& t) {
    return Constant{t.element(), t.dims(), t.view().data};
  };
  compare("LabelEncoder", 4, {TestTensor::of<double>({3}, {7, 0.1, 0.1f})},
          {{"keys_tensor", constant(keys)},
           {"values_tensor", constant(values)},
           {"default_tensor", constant(unknown)}});
  compare("OneHotEncoder", 1, {x}, {{"cats_int64s", Ints{3, 9, -1}}});
  compare("OneHotEncoder", 1, {TestTensor::of<float>({2, 2}, {3.7f, 9, -1.2f, 4})},
          {{"cats_int64s", Ints{3, 9, -1}}});
  // What is listed twice.
  const TestTensor words = TestTensor::of_strings({3}, {"cat", "dog", "cow"});
  compare("LabelEncoder", 1, {words}, {{"classes_strings", Words{"cat", "dog", "cat"}}});
  compare("CategoryMapper", 1, {words},
          {{"cats_strings", Words{"cat", "dog", "cat"}}, {"cats_int64s", Ints{5, 6, 7}}});
  compare("OneHotEncoder", 1, {x}, {{"cats_int64s", Ints{9, 3, 9}}});
  EXPECT_GE(num_compared_, 12);
}

TEST_F(RivalMlTest, LinearModels) {
  const TestTensor x = floats({6, 4});
  compare("LinearRegressor", 1, {x}, {{"coefficients", weights(4)}, {"intercepts", weights(1)}});
  for (const char* transform : kTransforms) {
    compare("LinearRegressor", 1, {x},
            {{"coefficients", weights(12)},
             {"intercepts", weights(3)},
             {"targets", int64_t{3}},
             {"post_transform", transform}});
    compare("LinearClassifier", 1, {x},
            {{"coefficients", weights(12)},
             {"intercepts", weights(3)},
             {"classlabels_ints", Ints{5, 6, 7}},
             {"post_transform", transform}},
            2);
    compare("LinearClassifier", 1, {x},
            {{"coefficients", weights(8)},
             {"intercepts", weights(2)},
             {"classlabels_ints", Ints{0, 1}},
             {"post_transform", transform}},
            2);
  }
  EXPECT_GE(num_compared_, 13);
}

TEST_F(RivalMlTest, VectorMachines) {
  const TestTensor x = floats({9, 4});
  for (const char* kernel : {"LINEAR", "POLY", "RBF", "SIGMOID"}) {
    const Attributes function = {{"kernel_type", kernel}, {"kernel_params", Floats{0.3f, 0.2f, 3}}};
    Attributes regressor = function;
    regressor.set("support_vectors", weights(20));
    regressor.set("coefficients", weights(5));
    regressor.set("n_supports", int64_t{5});
    regressor.set("rho", weights(1));
    compare("SVMRegressor", 1, {x}, regressor);
    regressor.set("one_class", int64_t{1});
    compare("SVMRegressor", 1, {x}, regressor);
    Attributes classifier = function;
    classifier.set("support_vectors", weights(24));
    classifier.set("vectors_per_class", Ints{3, 1, 2});
    classifier.set("coefficients", weights(12));
    classifier.set("rho", weights(3));
    classifier.set("classlabels_ints", Ints{4, 5, 6});
    compare("SVMClassifier", 1, {x}, classifier, 2);
    classifier.set("prob_a", weights(3, -2, -1));
    classifier.set("prob_b", weights(3, -0.1f, 0.1f));
    compare("SVMClassifier", 1, {x}, classifier, 2);
    Attributes pair = function;
    pair.set("support_vectors", weights(16));
    pair.set("vectors_per_class", Ints{2, 2});
    pair.set("coefficients", Floats{1, 0.5f, -0.5f, -1});
    pair.set("rho", weights(1));
    pair.set("classlabels_ints", Ints{0, 1});
    pair.set("prob_a", Floats{-1.5f});
    pair.set("prob_b", Floats{0.1f});
    compare("SVMClassifier", 1, {x}, pair, 2);
  }
  // Linear, which takes no parameters; ONNX Runtime wants to see some.
  const Floats unused = {0, 0, 0};
  compare("SVMRegressor", 1, {x},
          {{"coefficients", weights(4)}, {"rho", weights(1)}, {"kernel_params", unused}});
  compare("SVMClassifier", 1, {x},
          {{"coefficients", weights(12)},
           {"rho", weights(1)},
           {"kernel_params", unused},
           {"classlabels_ints", Ints{4, 5, 6}}},
          2);
  EXPECT_GE(num_compared_, 22);
}

TEST_F(RivalMlTest, TreeRegressors) {
  for (const char* mode : {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ"}) {
    for (const bool has_missing : {false, true}) {
      for (const int64_t targets : {1, 3}) {
        for (const char* aggregate : {"SUM", "AVERAGE", "MIN", "MAX"}) {
          Attributes made = trees("target", targets, mode, -1, has_missing);
          made.set("n_targets", targets);
          made.set("aggregate_function", aggregate);
          made.set("base_values", weights(static_cast<size_t>(targets)));
          compare("TreeEnsembleRegressor", 3, {rows(40, has_missing)}, made);
        }
      }
    }
  }
  EXPECT_GE(num_compared_, 80);
}

TEST_F(RivalMlTest, TreeClassifiers) {
  for (const char* transform : kTransforms) {
    for (const bool has_missing : {false, true}) {
      Attributes made = trees("class", 3, "BRANCH_LEQ", -1, has_missing);
      made.set("classlabels_int64s", Ints{5, 6, 7});
      made.set("post_transform", transform);
      compare("TreeEnsembleClassifier", 3, {rows(40, has_missing)}, made, 2);
    }
  }
  // One score for two classes: of weights that are no probabilities, as boosted trees have them,
  // and of probabilities.
  Attributes boosted = trees("class", 1, "BRANCH_LT", -1, true);
  boosted.set("classlabels_int64s", Ints{0, 1});
  boosted.set("post_transform", "LOGISTIC");
  compare("TreeEnsembleClassifier", 1, {rows(40, true)}, boosted, 2);
  boosted.set("post_transform", "NONE");
  compare("TreeEnsembleClassifier", 1, {rows(40, true)}, boosted, 2);
  Attributes forest = trees("class", 1, "BRANCH_LEQ", 0, false);
  forest.set("classlabels_int64s", Ints{0, 1});
  compare("TreeEnsembleClassifier", 1, {rows(40, false)}, forest, 2);
  EXPECT_GE(num_compared_, 11);
}

// As they stand, and through the transform that exporters ask for; ops/schema/ml/README.md says
// where the others differ.
TEST_F(RivalMlTest, TwoClassesOfOneScore) {
  const TestTensor x = floats({12, 4});
  for (const char* transform : {"NONE", "LOGISTIC"}) {
    for (const Ints& labels : {Ints{0, 1}, Ints{5, 9}}) {
      SCOPED_TRACE(transform);
      compare("LinearClassifier", 1, {x},
              {{"classlabels_ints", labels},
               {"post_transform", transform},
               {"coefficients", weights(4)},
               {"intercepts", weights(1)}},
              2);
      // Weights of both signs, or of one.
      for (const float low : {-1.0f, 0.1f}) {
        Attributes machine = {{"classlabels_ints", labels},
                              {"post_transform", transform},
                              {"kernel_type", "RBF"},
                              {"kernel_params", Floats{0.3f, 0.2f, 3}},
                              {"support_vectors", weights(16)},
                              {"vectors_per_class", Ints{2, 2}},
                              {"coefficients", weights(4, low, 1)},
                              {"rho", weights(1, -0.5f, 0.5f)}};
        compare("SVMClassifier", 1, {x}, machine, 2);
        machine.set("prob_a", Floats{-1.5f});
        machine.set("prob_b", Floats{0.1f});
        compare("SVMClassifier", 1, {x}, machine, 2);
        Attributes forest = trees("class", 1, "BRANCH_LEQ", low < 0 ? -1 : 0, false);
        forest.set("classlabels_int64s", labels);
        forest.set("post_transform", transform);
        compare("TreeEnsembleClassifier", 3, {rows(40, false)}, forest, 2);
        forest.set("base_values", weights(1));
        compare("TreeEnsembleClassifier", 3, {rows(40, false)}, forest, 2);
      }
    }
  }
  EXPECT_GE(num_compared_, 36);
}

TEST_F(RivalMlTest, TreeEnsembles) {
  // ONNX Runtime's members are small whole numbers.
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const TestTensor modes = TestTensor::of<uint8_t>({3}, {0, 6, 6}),
                   splits = TestTensor::of<float>({3}, {4, 0, 0}),
                   leaves = TestTensor::of<float>({4}, weights(4)),
                   members = TestTensor::of<float>({5}, {1, 2, kNan, 5, 7});
  TestTensor x(ElementType::kFloat, {40, 4});
  for (int64_t i = 0; i < 160; ++i) {
    x.view().mutable_as<float>()[i] = static_cast<float>(1 + below(8));
  }
  const auto constant = [](const TestTensor& t) {
    return Constant{t.element(), t.dims(), t.view().data};
  };
  compare("TreeEnsemble", 5, {x},
          {{"n_targets", int64_t{2}},
           {"tree_roots", Ints{0}},
           {"nodes_modes", constant(modes)},
           {"nodes_featureids", Ints{0, 1, 2}},
           {"nodes_splits", constant(splits)},
           {"membership_values", constant(members)},
           {"nodes_trueleafs", Ints{0, 1, 1}},
           {"nodes_truenodeids", Ints{1, 0, 1}},
           {"nodes_falseleafs", Ints{0, 1, 1}},
           {"nodes_falsenodeids", Ints{2, 2, 3}},
           {"leaf_targetids", Ints{0, 1, 0, 1}},
           {"leaf_weights", constant(leaves)}});
  EXPECT_GE(num_compared_, 1);
}

}  // namespace
}  // namespace eddy::testing
