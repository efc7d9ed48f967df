// Claim: each operator of ai.onnx.ml has a definition in the versions that the standard lists and
// not before; output types follow from inputs with known, symbolic and unknown dimensions; and an
// attribute that is hostile or disagrees with another is refused by name, when the rule or, where
// it takes a look at every node of a tree, when the kernel is bound.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "ops/schema/standard.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

using Words = std::vector<std::string>;
using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

constexpr int64_t kRows = -2;  // a symbol
constexpr ElementType kFloat = ElementType::kFloat, kInt64 = ElementType::kInt64,
                      kString = ElementType::kString;

// "float[2,3], int64[2]": the outputs' types, or the message.
std::string infer(const char* op, const std::vector<ValueType>& inputs, Attributes attributes,
                  int opset = 1, size_t num_outputs = 1) {
  OpCall call;
  call.op = op;
  call.domain = "ai.onnx.ml";
  call.opset = opset;
  call.num_outputs = num_outputs;
  call.attributes = std::move(attributes);
  const auto types = infer_op_types(call, inputs);
  if (!types.is_ok()) return types.status().message();
  std::string text;
  for (const ValueType& type : *types) text += (text.empty() ? "" : ", ") + to_string(type);
  return text;
}
ValueType floats(Dims dims) { return tensor_type(kFloat, dims); }
std::string types(std::vector<ValueType> all) {
  std::string text;
  for (const ValueType& type : all) text += (text.empty() ? "" : ", ") + to_string(type);
  return text;
}

TEST(MlSchemaTest, OperatorsHaveTheStandardsVersions) {
  struct Row {
    const char* op;
    Ints versions;  // with a definition of their own
  };
  const Row rows[] = {{"ArrayFeatureExtractor", {1}},
                      {"Binarizer", {1}},
                      {"CastMap", {1}},
                      {"CategoryMapper", {1}},
                      {"DictVectorizer", {1}},
                      {"FeatureVectorizer", {1}},
                      {"Imputer", {1}},
                      {"LabelEncoder", {1, 2, 4}},
                      {"LinearClassifier", {1}},
                      {"LinearRegressor", {1}},
                      {"Normalizer", {1}},
                      {"OneHotEncoder", {1}},
                      {"SVMClassifier", {1}},
                      {"SVMRegressor", {1}},
                      {"Scaler", {1}},
                      {"TreeEnsemble", {5}},
                      {"TreeEnsembleClassifier", {1}},
                      {"TreeEnsembleRegressor", {1}},
                      {"ZipMap", {1}}};
  OpTable table;
  ASSERT_TRUE(add_standard_schemas(table).is_ok());
  size_t num_definitions = 0;
  for (const auto& def : table.all()) num_definitions += def->domain == "ai.onnx.ml" ? 1 : 0;
  for (const Row& row : rows) {
    num_definitions -= row.versions.size();
    for (int opset = 1; opset <= 5; ++opset) {
      const OpDef* def = table.find_or_null("ai.onnx.ml", row.op, opset);
      if (opset < row.versions[0]) {
        EXPECT_EQ(def, nullptr) << row.op << " of version " << opset;
        continue;
      }
      ASSERT_NE(def, nullptr) << row.op << " of version " << opset;
      int64_t expected = 0;
      for (const int64_t version : row.versions) expected = version <= opset ? version : expected;
      EXPECT_EQ(def->since_version, expected) << row.op << " of version " << opset;
    }
  }
  EXPECT_EQ(num_definitions, 0u);
}

TEST(MlSchemaTest, FeaturesKeepWhatIsKnownOfRows) {
  const ValueType unranked = TensorType(kFloat);
  EXPECT_EQ(infer("ArrayFeatureExtractor", {floats({kRows, 5}), tensor_type(kInt64, {2, 3})}, {}),
            types({floats({kRows, 6})}));
  EXPECT_EQ(infer("ArrayFeatureExtractor", {floats({5}), tensor_type(kInt64, {1, -3})}, {}),
            types({floats({1, -3})}));
  EXPECT_EQ(infer("ArrayFeatureExtractor", {unranked, tensor_type(kInt64, {2})}, {}),
            types({unranked}));
  EXPECT_EQ(infer("FeatureVectorizer", {floats({kRows, 2}), floats({-1, 3})}, {}),
            types({floats({kRows, 5})}));
  EXPECT_EQ(infer("FeatureVectorizer", {floats({kRows, -1}), unranked},
                  {{"inputdimensions", Ints{4, 5}}}),
            types({floats({kRows, 9})}));
  EXPECT_EQ(infer("Scaler", {tensor_type(kInt64, {kRows, 2})}, {{"offset", Floats{1, 2}}}),
            types({floats({kRows, 2})}));
  EXPECT_EQ(infer("Normalizer", {tensor_type(kInt64, {kRows, -1})}, {}),
            types({floats({kRows, -1})}));
  EXPECT_EQ(
      infer("OneHotEncoder", {tensor_type(kString, {kRows})}, {{"cats_strings", Words{"a", "b"}}}),
      types({floats({kRows, 2})}));
  EXPECT_EQ(infer("LabelEncoder", {tensor_type(kString, {kRows, 2})},
                  {{"keys_strings", Words{"a"}}, {"values_floats", Floats{1}}}, 2),
            types({floats({kRows, 2})}));
}

TEST(MlSchemaTest, ModelsMakeARowOfScoresForEachRow) {
  EXPECT_EQ(infer("LinearRegressor", {floats({kRows, 2})},
                  {{"coefficients", Floats{1, 2, 3, 4}}, {"targets", int64_t{2}}}),
            types({floats({kRows, 2})}));
  EXPECT_EQ(infer("LinearClassifier", {floats({kRows, -1})},
                  {{"coefficients", Floats{1, 2}}, {"classlabels_strings", Words{"a", "b"}}}, 1, 2),
            types({tensor_type(kString, {kRows}), floats({kRows, 2})}));
  EXPECT_EQ(
      infer("SVMRegressor", {floats({3})}, {{"coefficients", Floats{1, 2, 3}}, {"rho", Floats{0}}}),
      types({floats({1, 1})}));
  EXPECT_EQ(
      infer("SVMClassifier", {TensorType(kFloat)},
            {{"coefficients", Floats{1, 2}}, {"rho", Floats{0}}, {"classlabels_ints", Ints{4, 5}}},
            1, 2),
      types({tensor_type(kInt64, {-1}), floats({-1, 2})}));
}

struct Refusal {
  const char* op;
  std::vector<ValueType> inputs;
  Attributes attributes;
  const char* message;
  int opset = 1;
};

// long: a table
TEST(MlSchemaTest, AttributesThatDisagreeAreRefusedByName) {
  const ValueType x = floats({kRows, 3}), text = tensor_type(kString, {2});
  const Refusal refusals[] = {
      {"Imputer",
       {x},
       {{"imputed_value_floats", Floats{1, 2}}},
       "imputed_value_floats holds 2 values, but X has 3 features"},
      {"Imputer",
       {x},
       {{"imputed_value_int64s", Ints{1}}},
       "X of float needs the attribute imputed_value_floats, and it alone"},
      {"Scaler",
       {x},
       {{"offset", Floats{1, 2, 3}}, {"scale", Floats{1}}},
       "offset holds 3 values, but scale 1"},
      {"Scaler", {x}, {{"scale", Floats{1, 2}}}, "scale holds 2 values, but X has 3 features"},
      {"Normalizer", {x}, {{"norm", "L3"}}, "norm must be MAX, L1 or L2, not 'L3'"},
      {"Normalizer", {floats({1, 2, 3})}, {}, "X must be [features] or [rows, features]"},
      {"FeatureVectorizer",
       {x, x},
       {{"inputdimensions", Ints{3, 4}}},
       "input 1 has 3 features, but inputdimensions says 4"},
      {"FeatureVectorizer",
       {x, x},
       {{"inputdimensions", Ints{3}}},
       "inputdimensions holds 1 values, but X 2"},
      {"FeatureVectorizer",
       {floats({2, 1}), floats({3, 1})},
       {},
       "input 1 has 3 rows, but others have 2"},
      {"OneHotEncoder",
       {text},
       {{"cats_int64s", Ints{1}}},
       "X of string needs the attribute cats_strings"},
      {"OneHotEncoder", {x}, {}, "exactly one of cats_strings and cats_int64s"},
      {"CategoryMapper",
       {text},
       {{"cats_int64s", Ints{1}}},
       "cats_strings holds 0 values, but cats_int64s 1"},
      {"LabelEncoder",
       {text},
       {{"keys_strings", Words{"a", "b"}}, {"values_int64s", Ints{1}}},
       "keys_* holds 2 values, but values_* 1",
       2},
      {"LabelEncoder", {text}, {{"keys_strings", Words{"a"}}}, "one of the attributes values_*", 2},
      {"LabelEncoder",
       {text},
       {{"keys_strings", Words{"a"}}, {"keys_int64s", Ints{1}}, {"values_int64s", Ints{1}}},
       "only one of the attributes keys_* can be set",
       2},
      {"LabelEncoder",
       {x},
       {{"keys_strings", Words{"a"}}, {"values_int64s", Ints{1}}},
       "X is float, but the keys are string",
       2},
      {"LinearRegressor",
       {x},
       {{"coefficients", Floats{1, 2}}},
       "coefficients holds 2 values, which are not 1 rows of 3 features"},
      {"LinearRegressor",
       {x},
       {{"coefficients", Floats{1, 2, 3}}, {"targets", INT64_MAX}},
       "coefficients holds 3 values"},
      {"LinearRegressor",
       {x},
       {{"coefficients", Floats{1, 2, 3}}, {"targets", int64_t{0}}},
       "targets must be at least 1, not 0"},
      {"LinearClassifier",
       {x},
       {{"coefficients", Floats{1, 2, 3}}},
       "exactly one of classlabels_strings and classlabels_ints must name the classes"},
      {"LinearClassifier",
       {x},
       {{"coefficients", Floats{1, 2, 3}}, {"classlabels_ints", Ints{1, 2, 3}}},
       "coefficients make 1 scores for 3 classes"},
      {"LinearClassifier",
       {x},
       {{"coefficients", Floats{1, 2, 3}},
        {"classlabels_ints", Ints{1, 2}},
        {"post_transform", "TANH"}},
       "post_transform must be NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT, not 'TANH'"},
      {"SVMRegressor",
       {x},
       {{"coefficients", Floats{1}}, {"n_supports", int64_t{2}}, {"rho", Floats{0}}},
       "coefficients holds 1 values, but n_supports 2"},
      {"SVMRegressor",
       {x},
       {{"coefficients", Floats{1, 2, 3}}, {"kernel_params", Floats{1}}, {"rho", Floats{0}}},
       "kernel_params must hold gamma, coef0 and degree"},
      {"SVMRegressor", {x}, {{"coefficients", Floats{1, 2, 3}}}, "rho must hold one value, not 0"},
      {"SVMClassifier",
       {x},
       {{"support_vectors", Floats{1, 2, 3}},
        {"vectors_per_class", Ints{INT64_MAX, INT64_MAX}},
        {"classlabels_ints", Ints{0, 1}}},
       "vectors_per_class holds 9223372036854775807, but support_vectors only 3 values"},
      {"SVMClassifier",
       {x},
       {{"support_vectors", Floats{1, 2, 3}},
        {"vectors_per_class", Ints{1, 0}},
        {"coefficients", Floats{1}},
        {"rho", Floats{0, 1}},
        {"classlabels_ints", Ints{0, 1}}},
       "rho holds 2 values, but the pairs of classes 1"},
      {"SVMClassifier",
       {x},
       {{"support_vectors", Floats{1, 2}},
        {"vectors_per_class", Ints{1, 0}},
        {"coefficients", Floats{1}},
        {"rho", Floats{0}},
        {"classlabels_ints", Ints{0, 1}}},
       "X has 3 features, but the model 2"},
      {"ZipMap",
       {x},
       {{"classlabels_int64s", Ints{1, 2}}},
       "X must have a column for each of the 2 labels, not the shape [s0,3]"},
      {"ZipMap", {x}, {}, "exactly one of classlabels_int64s and classlabels_strings must hold"},
      {"DictVectorizer",
       {tensor_type(ElementType::kInt64, {2}), floats({3})},
       {{"int64_vocabulary", Ints{1}}},
       "keys and values of a map must be lists of one length, not [2] and [3]"},
      {"DictVectorizer",
       {tensor_type(ElementType::kInt64, {2}), floats({2})},
       {{"string_vocabulary", Words{"a"}}},
       "the keys are int64, but the vocabulary is string"},
      {"CastMap",
       {tensor_type(ElementType::kInt64, {2}), floats({2})},
       {{"map_form", "SPARSE"}, {"max_map", int64_t{0}}},
       "max_map must be from 1 to 1048576, not 0"},
  };
  for (const Refusal& each : refusals) {
    const std::string said = infer(each.op, each.inputs, each.attributes, each.opset);
    EXPECT_NE(said.find(each.message), std::string::npos) << each.op << ": " << said;
  }
}

// x[1] <= 2 ? leaf 1 : (x[0] <= 5 ? leaf 3 : leaf 4), every leaf with a vote.
Attributes tree() {
  return {{"nodes_treeids", Ints{0, 0, 0, 0, 0}},
          {"nodes_nodeids", Ints{0, 1, 2, 3, 4}},
          {"nodes_featureids", Ints{1, 0, 0, 0, 0}},
          {"nodes_values", Floats{2, 0, 5, 0, 0}},
          {"nodes_modes", Words{"BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"}},
          {"nodes_truenodeids", Ints{1, 0, 3, 0, 0}},
          {"nodes_falsenodeids", Ints{2, 0, 4, 0, 0}},
          {"target_treeids", Ints{0, 0, 0}},
          {"target_nodeids", Ints{1, 3, 4}},
          {"target_ids", Ints{0, 0, 0}},
          {"target_weights", Floats{1, 2, 3}},
          {"n_targets", int64_t{1}}};
}

// The message of running a tree with one attribute that is another.
std::string run_tree(const char* name, AttributeValue value) {
  OpCall call;
  call.op = "TreeEnsembleRegressor";
  call.domain = "ai.onnx.ml";
  call.opset = 3;
  call.inputs = {TestTensor::of<float>({1, 2}, {6, 3})};
  call.attributes = tree();
  call.attributes.set(name, std::move(value));
  const auto y = run_op(call, KernelSet::kCpu);
  return y.is_ok() ? "accepted" : y.status().message();
}

TEST(MlSchemaTest, TreesThatLeadNowhereOrForeverAreRefusedByName) {
  EXPECT_EQ(run_tree("n_targets", int64_t{1}), "accepted");
  const struct {
    const char* name;
    AttributeValue value;
    const char* message;
  } rows[] = {
      {"nodes_truenodeids", Ints{0, 0, 3, 0, 0}, "the nodes of tree 0 form a cycle"},
      {"nodes_falsenodeids", Ints{2, 0, 0, 0, 0}, "the nodes of tree 0 form a cycle"},
      {"nodes_falsenodeids", Ints{2, 0, 2, 0, 0}, "the nodes of tree 0 form a cycle"},
      {"nodes_truenodeids", Ints{9, 0, 3, 0, 0},
       "nodes_truenodeids leads from node 0 of tree 0 to node 9, which the tree does not have"},
      {"nodes_falsenodeids", Ints{-1, 0, 4, 0, 0}, "to node -1, which the tree does not have"},
      {"nodes_nodeids", Ints{0, 1, 2, 3, 3}, "node 3 of tree 0 appears twice"},
      {"nodes_treeids", Ints{0, 0, 0, 0, 1}, "to node 4, which the tree does not have"},
      {"nodes_modes", Words{"BRANCH_LEQ", "LEAF", "BRANCH_MEMBER", "LEAF", "LEAF"},
       "nodes_modes holds 'BRANCH_MEMBER'"},
      {"nodes_featureids", Ints{-1, 0, 0, 0, 0}, "nodes_featureids holds -1"},
      {"nodes_featureids", Ints{INT64_MAX, 0, 0, 0, 0},
       "nodes_featureids holds 9223372036854775807"},
      {"nodes_featureids", Ints{2, 0, 0, 0, 0}, "nodes_featureids holds 2, but X has only 2"},
      {"nodes_featureids", Ints{0}, "nodes_featureids holds 1 values, but nodes_treeids 5"},
      {"nodes_values", Floats{1}, "nodes_values holds 1 values, but nodes_treeids 5"},
      {"nodes_missing_value_tracks_true", Ints{1},
       "nodes_missing_value_tracks_true holds 1 values, but nodes_treeids 5"},
      {"target_ids", Ints{0, 1, 0}, "target_ids holds 1, which is not in 0..0"},
      {"target_ids", Ints{0, INT64_MIN, 0}, "target_ids holds -9223372036854775808"},
      {"target_nodeids", Ints{1, 3, 7},
       "target_nodeids names node 7 of tree 0, which there is not"},
      {"target_nodeids", Ints{1, 3}, "target_nodeids holds 2 values, but target_weights 3"},
      {"n_targets", int64_t{0}, "n_targets must lie in 1 to 2147483647, not 0"},
      {"n_targets", int64_t{1} << 40, "n_targets must lie in 1 to 2147483647, not 1099511627776"},
      {"base_values", Floats{1, 2}, "base_values holds 2 values for 1 targets"},
      {"aggregate_function", "MEDIAN", "aggregate_function must be AVERAGE, SUM, MIN or MAX"},
      {"post_transform", "TANH", "post_transform must be NONE"},
  };
  for (const auto& row : rows) {
    const std::string said = run_tree(row.name, row.value);
    EXPECT_NE(said.find(row.message), std::string::npos) << row.name << ": " << said;
  }
}

TEST(MlSchemaTest, PlacesOfTreeEnsembleAreRefusedByName) {
  const TestTensor modes = TestTensor::of<uint8_t>({2}, {0, 6}),
                   wrong = TestTensor::of<uint8_t>({2}, {7, 0}),
                   splits = TestTensor::of<float>({2}, {1, 2}),
                   weights = TestTensor::of<float>({3}, {1, 2, 3}),
                   doubles = TestTensor::of<double>({2}, {1, 2}),
                   members = TestTensor::of<float>({2}, {3, 4});
  const auto constant = [](const TestTensor& t) {
    return Constant{t.element(), t.dims(), t.view().data};
  };
  // x[0] <= 1 ? leaf 0 : (x[0] in {3, 4} ? leaf 1 : leaf 2).
  const Attributes fine = {
      {"n_targets", int64_t{1}},          {"tree_roots", Ints{0}},
      {"nodes_modes", constant(modes)},   {"nodes_featureids", Ints{0, 0}},
      {"nodes_splits", constant(splits)}, {"membership_values", constant(members)},
      {"nodes_trueleafs", Ints{1, 1}},    {"nodes_truenodeids", Ints{0, 1}},
      {"nodes_falseleafs", Ints{0, 1}},   {"nodes_falsenodeids", Ints{1, 2}},
      {"leaf_targetids", Ints{0, 0, 0}},  {"leaf_weights", constant(weights)}};
  const auto run = [&](const char* name, AttributeValue value) {
    OpCall call;
    call.op = "TreeEnsemble";
    call.domain = "ai.onnx.ml";
    call.opset = 5;
    call.inputs = {TestTensor::of<float>({1, 1}, {4})};
    call.attributes = fine;
    call.attributes.set(name, std::move(value));
    const auto y = run_op(call, KernelSet::kCpu);
    return y.is_ok() ? "accepted" : y.status().message();
  };
  const std::function<void(const char*, AttributeValue, const char*)> expect =
      [&](const char* name, AttributeValue value, const char* message) {
        const std::string said = run(name, std::move(value));
        EXPECT_NE(said.find(message), std::string::npos) << name << ": " << said;
      };
  expect("n_targets", int64_t{1}, "accepted");
  expect("tree_roots", Ints{2}, "tree_roots holds 2, which is not in 0..1");
  expect("tree_roots", Ints{}, "a tree ensemble needs leaf_weights and tree_roots");
  expect("nodes_modes", constant(wrong), "nodes_modes holds 7, which is not in 0..6");
  expect("nodes_modes", constant(splits), "nodes_modes must be a list of uint8");
  expect("nodes_splits", constant(doubles), "nodes_splits is double, but X is float");
  expect("nodes_splits", constant(weights), "nodes_featureids holds 2 values, but nodes_splits 3");
  expect("nodes_falsenodeids", Ints{0, 2}, "the nodes of tree 0 form a cycle");
  expect("nodes_falsenodeids", Ints{2, 2}, "nodes_falsenodeids holds 2, which is not in 0..1");
  expect("nodes_truenodeids", Ints{3, 1}, "nodes_truenodeids holds 3, which is not in 0..2");
  expect("nodes_falseleafs", Ints{5, 1}, "nodes_falseleafs holds 5, which is neither 0 nor 1");
  expect("leaf_targetids", Ints{0, 0}, "leaf_targetids holds 2 values, but leaf_weights 3");
  expect("leaf_targetids", Ints{0, 0, -1}, "leaf_targetids holds -1, which is not in 0..0");
  expect("aggregate_function", int64_t{4}, "aggregate_function must be 0 to 3, not 4");
  expect("post_transform", int64_t{-1}, "post_transform must be 0 to 4, not -1");
}

}  // namespace
}  // namespace eddy::testing
