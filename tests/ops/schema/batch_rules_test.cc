// Claim: where a batch rule says that samples lie along an axis of an operator's outputs, a run of
// joined samples has in that place, bit by bit, what runs of each alone have; for every operator,
// with samples along any axis of any input. Each operator of the standard table has a rule, or is
// listed here as one without.
//
// The oracle is the reference kernel, run on the joined inputs and on each request's part.
#include "ops/schema/rules/batch_rules.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "graph/compile/batch_axes.h"
#include "graph/ir/builder.h"
#include "ops/schema/standard.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy {
namespace {

using testing::KernelSet;
using testing::OpCall;
using testing::TestTensor;
using testing::TestValue;

const OpTable& table() {
  static const OpTable* const table = [] {
    auto* made = new OpTable();
    EXPECT_TRUE(add_standard_schemas(*made).is_ok());
    return made;
  }();
  return *table;
}

struct Input {
  ElementType element = ElementType::kFloat;
  Dims dims = {};
  double low = -2, high = 2;
  std::vector<int64_t> constant = {};  // where it is one
  bool is_omitted = false;
};

struct Case {
  std::string op;
  Attributes attributes = {};
  std::vector<Input> inputs = {};
  int num_accepted = 0;  // of all the ways to lay samples along axes of inputs
  int opset = 17;
  size_t num_outputs = 1;
  std::string domain = "";
};

constexpr ElementType kInt64 = ElementType::kInt64;
Input floats(Dims dims) { return {.dims = dims}; }
Input indices(Dims dims, double below) {
  return {.element = kInt64, .dims = dims, .low = 0, .high = below - 1};
}
Input list(std::vector<int64_t> values) {
  return {.element = kInt64, .dims = {static_cast<int64_t>(values.size())}, .constant = values};
}
Input number(int64_t value) { return {.element = kInt64, .constant = {value}}; }
Input omitted() { return {.is_omitted = true}; }

// Three requests share a run.
constexpr int64_t kSizes[] = {1, 2, 1};
constexpr int64_t kAll = 4;

// Entries [begin, begin + count) of an axis.
TestTensor part_of(const TestTensor& whole, int axis, int64_t begin, int64_t count) {
  Dims dims = whole.dims();
  int64_t outer = 1, inner = 1;
  for (int d = 0; d < axis; ++d) outer *= dims[d];
  for (int d = axis + 1; d < dims.rank(); ++d) inner *= dims[d];
  const int64_t size = dims[axis];
  dims[axis] = count;
  TestTensor part(whole.element(), dims);
  const size_t entry = element_size_bytes(whole.element()) * static_cast<size_t>(inner);
  const auto* from = static_cast<const std::byte*>(whole.view().data);
  auto* to = static_cast<std::byte*>(part.view().data);
  for (int64_t o = 0; o < outer; ++o) {
    std::memcpy(to + static_cast<size_t>(o * count) * entry,
                from + static_cast<size_t>(o * size + begin) * entry,
                static_cast<size_t>(count) * entry);
  }
  return part;
}

class Sweep {
 public:
  explicit Sweep(const Case& one, uint64_t seed) : case_(one), random_(seed) {}

  // Tries samples along each axis of each input, or none; returns how many ways are accepted.
  int run() {
    std::vector<int> axes(case_.inputs.size(), kNoSamples);
    int num_accepted = 0;
    do {
      num_accepted += try_axes(axes) ? 1 : 0;
    } while (advance(axes));
    return num_accepted;
  }

 private:
  bool advance(std::vector<int>& axes) const {
    for (size_t i = 0; i < axes.size(); ++i) {
      const Input& input = case_.inputs[i];
      const bool is_fixed = input.is_omitted || !input.constant.empty();
      if (!is_fixed && ++axes[i] < input.dims.rank()) return true;
      axes[i] = kNoSamples;
    }
    return false;
  }

  Result<Graph> build(const std::vector<int>& axes) {
    GraphBuilder b(table());
    b.set_opset(case_.domain, case_.opset);
    const int64_t samples = b.symbol("N");
    std::vector<Value> values;
    for (size_t i = 0; i < axes.size(); ++i) {
      const Input& input = case_.inputs[i];
      if (input.is_omitted) {
        values.emplace_back();
      } else if (!input.constant.empty()) {
        values.push_back(b.constant(constant(input).view()));
      } else {
        Dims dims = input.dims;
        if (axes[i] != kNoSamples) dims[axes[i]] = samples;
        values.push_back(b.input("x" + std::to_string(i), TensorType(input.element, dims)));
      }
    }
    const auto outputs =
        b.ops(case_.op, values, case_.attributes,
              {.domain = case_.domain, .num_outputs = static_cast<int>(case_.num_outputs)});
    for (size_t o = 0; o < outputs.size(); ++o) b.output("y" + std::to_string(o), outputs[o]);
    return b.finish();
  }

  static TestTensor constant(const Input& input) {
    return TestTensor::of<int64_t>(input.dims, input.constant);
  }

  OpCall call_of(std::vector<TestValue> inputs) const {
    OpCall call;
    call.op = case_.op;
    call.domain = case_.domain;
    call.opset = case_.opset;
    call.attributes = case_.attributes;
    call.inputs = std::move(inputs);
    call.num_outputs = case_.num_outputs;
    return call;
  }

  bool try_axes(const std::vector<int>& axes) {
    const Result<Graph> graph = build(axes);
    if (!graph.is_ok()) return false;  // such shapes do not fit each other
    const Result<BatchAxes> found = find_batch_axes(*graph, "N");
    if (!found.is_ok()) {
      EXPECT_TRUE(found.status().code() == StatusCode::kUnsupported ||
                  found.status().code() == StatusCode::kInvalidArgument);
      return false;
    }
    std::vector<TestValue> joined;
    for (size_t i = 0; i < axes.size(); ++i) joined.push_back(value_of(case_.inputs[i], axes[i]));
    const auto all = run_op(call_of(joined), KernelSet::kReference);
    const std::string what = case_.op + " with samples along" + text(axes);
    EXPECT_TRUE(all.is_ok()) << what << ": " << all.status().to_string();
    if (all.is_ok()) compare(joined, axes, *found, *all, what);
    return true;
  }

  TestValue value_of(const Input& input, int axis) {
    if (input.is_omitted) return TestValue::omitted();
    if (!input.constant.empty()) return constant(input);
    Dims dims = input.dims;
    if (axis != kNoSamples) dims[axis] = kAll;
    return TestTensor::random(input.element, dims, random_, input.low, input.high);
  }

  void compare(const std::vector<TestValue>& joined, const std::vector<int>& axes,
               const BatchAxes& found, const std::vector<TestValue>& all,
               const std::string& what) const {
    int64_t begin = 0;
    for (const int64_t size : kSizes) {
      std::vector<TestValue> own = joined;
      for (size_t i = 0; i < axes.size(); ++i) {
        if (axes[i] != kNoSamples) own[i] = part_of(joined[i].tensor(), axes[i], begin, size);
      }
      const auto alone = run_op(call_of(own), KernelSet::kReference);
      ASSERT_TRUE(alone.is_ok()) << what << ": " << alone.status().to_string();
      for (size_t o = 0; o < all.size(); ++o) {
        TestTensor part = all[o].tensor();
        if (const int axis = found.outputs[o]; axis != kNoSamples) {
          const int64_t extent = part.dims()[axis];
          ASSERT_EQ(extent % kAll, 0) << what;
          part = part_of(part, axis, extent / kAll * begin, extent / kAll * size);
        }
        EXPECT_TRUE(is_same_bits(part, (*alone)[o].tensor())) << what << ", output " << o;
      }
      begin += size;
    }
  }

  static std::string text(const std::vector<int>& axes) {
    std::string text;
    for (const int axis : axes) text += axis == kNoSamples ? " -" : " " + std::to_string(axis);
    return text;
  }

  const Case& case_;
  Random random_;
};

void expect_all(const std::vector<Case>& cases) {
  for (size_t i = 0; i < cases.size(); ++i) {
    const uint64_t seed = 1000 + i;
    SCOPED_TRACE(cases[i].op + ", case " + std::to_string(i) + ", seed " + std::to_string(seed));
    EXPECT_EQ(Sweep(cases[i], seed).run(), cases[i].num_accepted);
  }
}

TEST(BatchRulesTest, Elementwise) {
  expect_all({
      {"Neg", {}, {floats({2, 3})}, 2},
      {"Add", {}, {floats({2, 3}), floats({2, 3})}, 2},
      {"Add", {}, {floats({2, 3}), floats({3})}, 2},
      {"Mul", {}, {floats({2, 3}), floats({2, 1})}, 3},
      {"Sub", {}, {floats({3, 1}), floats({4})}, 3},
      {"Add",
       {{"broadcast", int64_t{1}}, {"axis", int64_t{1}}},
       {floats({2, 3, 4}), floats({3})},
       3,
       6},
      {"Max", {}, {floats({2, 3}), floats({3}), floats({1})}, 3},
      {"Less", {}, {floats({2, 3}), floats({})}, 2},
      {"Where",
       {},
       {{.element = ElementType::kBool, .dims = {2, 1}}, floats({2, 3}), floats({3})},
       3},
      {"Cast", {{"to", int64_t{7}}}, {floats({2, 3})}, 2},
      {"CastLike", {}, {floats({2, 3}), {.element = kInt64, .dims = {2}}}, 5},
      {"Clip", {}, {floats({2, 3}), floats({}), floats({})}, 2},
      {"PRelu", {}, {floats({2, 3}), floats({3})}, 2},
      {"PRelu", {}, {floats({2, 3, 4}), floats({3})}, 3, 6},
      {"IsNaN", {}, {floats({2, 3})}, 2},
      {"Dropout", {}, {floats({2, 3})}, 2, 17, 2},
      {"QuantizeLinear",
       {},
       {floats({2, 3, 4}), {.dims = {3}, .low = 0.5, .high = 1}, omitted()},
       2},
      {"DynamicQuantizeLinear", {}, {floats({2, 3})}, 0, 17, 3},
  });
}

TEST(BatchRulesTest, AlongOtherAxes) {
  const std::vector<int64_t> axis1 = {1};
  expect_all({
      {"ReduceSum", {{"keepdims", int64_t{0}}}, {floats({2, 3, 4}), list({1})}, 2},
      {"ReduceMean", {{"axes", axis1}}, {floats({2, 3, 4})}, 2},
      {"ReduceMax", {}, {floats({2, 3})}, 0},
      {"ReduceSum", {{"noop_with_empty_axes", int64_t{1}}}, {floats({2, 3})}, 2},
      {"ArgMax", {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}}, {floats({2, 3, 4})}, 2},
      {"Softmax", {}, {floats({2, 3, 4})}, 2},
      {"Softmax", {{"axis", int64_t{2}}}, {floats({2, 3, 4})}, 2, 11},
      {"LogSoftmax", {{"axis", int64_t{0}}}, {floats({2, 3})}, 1},
      {"LayerNormalization", {}, {floats({2, 3, 4}), floats({4}), floats({4})}, 2, 17, 3},
      {"LayerNormalization", {{"axis", int64_t{1}}}, {floats({2, 3, 4}), floats({3, 4})}, 1},
      {"BatchNormalization",
       {},
       {floats({2, 3, 4}), floats({3}), floats({3}), floats({3}), {.dims = {3}, .low = 0.5}},
       2},
      {"InstanceNormalization", {}, {floats({2, 3, 4}), floats({3}), floats({3})}, 1},
      {"LRN", {{"size", int64_t{3}}}, {floats({2, 3, 4, 4})}, 3},
      {"TopK", {}, {floats({2, 5}), list({2})}, 1, 17, 2},
      {"CumSum", {}, {floats({2, 3, 4}), number(1)}, 2},
      {"Trilu", {}, {floats({2, 3, 4})}, 1},
  });
}

TEST(BatchRulesTest, Products) {
  expect_all({
      {"MatMul", {}, {floats({2, 3}), floats({3, 4})}, 2},
      {"MatMul", {}, {floats({2, 5, 3}), floats({3, 4})}, 3},
      {"MatMul", {}, {floats({2, 5, 3}), floats({2, 3, 4})}, 3},
      {"MatMul", {}, {floats({5, 3}), floats({2, 3, 4})}, 3},
      {"MatMul", {}, {floats({3}), floats({2, 3, 4})}, 2},
      {"MatMul", {}, {floats({2, 5, 3}), floats({3})}, 2},
      {"Gemm", {}, {floats({2, 3}), floats({3, 4}), floats({4})}, 2},
      {"Gemm",
       {{"transA", int64_t{1}}, {"transB", int64_t{1}}},
       {floats({3, 2}), floats({4, 3}), floats({2, 1})},
       3},
      {"MatMulInteger",
       {},
       {{.element = ElementType::kUint8, .dims = {2, 3}, .low = 0, .high = 9},
        {.element = ElementType::kUint8, .dims = {3, 4}, .low = 0, .high = 9},
        {.element = ElementType::kUint8, .dims = {2}, .low = 0, .high = 9}},
       1},
      {"DequantizeMatMul",
       {},
       {floats({2, 5, 3}), {.element = ElementType::kInt8, .dims = {3, 4}}, floats({4})},
       2,
       17,
       1,
       "eddy"},
      {"MatMulNBits",
       {{"K", int64_t{16}}, {"N", int64_t{4}}, {"block_size", int64_t{16}}},
       {floats({2, 5, 16}), {.element = ElementType::kUint8, .dims = {4, 1, 8}}, floats({4, 1})},
       2,
       1,
       1,
       "com.microsoft"},
      {"Conv", {}, {floats({2, 3, 6}), floats({4, 3, 3}), floats({4})}, 1},
      {"ConvTranspose", {}, {floats({2, 3, 6}), floats({3, 4, 3})}, 1},
      {"MaxPool", {{"kernel_shape", std::vector<int64_t>{2}}}, {floats({2, 3, 6})}, 1},
      {"MaxPool", {{"kernel_shape", std::vector<int64_t>{2}}}, {floats({2, 3, 6})}, 0, 17, 2},
      {"GlobalAveragePool", {}, {floats({2, 3, 6})}, 1},
      {"DepthToSpace", {{"blocksize", int64_t{2}}}, {floats({2, 4, 3, 3})}, 1},
  });
}

TEST(BatchRulesTest, Movement) {
  const std::vector<int64_t> perm = {2, 0, 1};
  expect_all({
      {"Concat", {{"axis", int64_t{1}}}, {floats({2, 3}), floats({2, 4})}, 1},
      {"Split", {{"axis", int64_t{1}}}, {floats({2, 4})}, 1, 17, 2},
      {"Slice", {}, {floats({2, 4, 3}), list({1}), list({3}), list({1})}, 2},
      {"Slice", {}, {floats({2, 4}), list({0, 1}), list({INT64_MAX, 3})}, 1},
      {"Gather", {{"axis", int64_t{1}}}, {floats({2, 4, 3}), indices({2, 2}, 4)}, 4},
      {"Gather", {}, {floats({5}), indices({}, 5)}, 0},
      {"Transpose", {{"perm", perm}}, {floats({2, 3, 4})}, 3},
      {"Transpose", {}, {floats({2, 3, 4})}, 3},
      {"Pad", {}, {floats({2, 3}), list({0, 1, 0, 1})}, 1},
      {"Expand", {}, {floats({3, 1}), list({2, 1, 4})}, 1},
      {"Tile", {}, {floats({2, 3}), list({1, 2})}, 1},
      {"OneHot", {{"axis", int64_t{0}}}, {indices({2, 3}, 4), number(4), floats({2})}, 2},
      {"Reshape", {}, {floats({2, 6}), list({0, 3, 2})}, 1},
      {"Reshape", {}, {floats({2, 6}), list({-1, 3, 2})}, 1},
      {"Reshape", {}, {floats({2, 6}), list({-1, 2})}, 1},
      {"Reshape", {}, {floats({2, 6}), list({-1, 4})}, 0},
      {"Reshape", {}, {floats({2, 3, 4}), list({2, -1, 2})}, 1},
      {"Reshape", {}, {floats({2, 3, 4}), list({2, 0, 4})}, 1},
      {"Reshape", {}, {floats({2, 3, 4}), list({-1})}, 1},
      {"Squeeze", {}, {floats({2, 1, 3}), list({1})}, 2},
      {"Unsqueeze", {}, {floats({2, 3}), list({0, 2})}, 2},
      {"Flatten", {}, {floats({2, 3, 4})}, 2},
      {"Flatten", {{"axis", int64_t{2}}}, {floats({2, 3, 4})}, 2},
      {"Flatten", {{"axis", int64_t{0}}}, {floats({2, 3})}, 1},
      {"Identity", {}, {floats({2, 3})}, 2},
  });
}

TEST(BatchRulesTest, Indices) {
  const std::vector<int64_t> first = {0};
  expect_all({
      {"GatherElements", {{"axis", int64_t{1}}}, {floats({2, 4}), indices({2, 3}, 4)}, 1},
      {"ScatterElements",
       {{"axis", int64_t{1}}},
       {floats({2, 4}), indices({2, 1}, 4), floats({2, 1})},
       1},
      {"GatherND", {}, {floats({4, 3}), indices({5, 2}, 3)}, 1},
      {"GatherND", {{"batch_dims", int64_t{1}}}, {floats({2, 4}), indices({2, 1}, 4)}, 1},
      {"ScatterND", {}, {floats({4, 3}), indices({2, 1}, 4), floats({2, 3})}, 0},
      {"ReverseSequence",
       {},
       {floats({3, 2, 4}), {.element = kInt64, .dims = {2}, .low = 1, .high = 3}},
       2},
      {"NonZero", {}, {floats({2, 3})}, 0},
      {"Resize", {}, {floats({2, 3, 4}), omitted(), omitted(), list({2, 3, 8})}, 0},
  });
}

TEST(BatchRulesTest, Recurrent) {
  const Attributes hidden = {{"hidden_size", int64_t{3}}};
  Attributes first = hidden;
  first.set("layout", int64_t{1});
  const Input x = floats({5, 2, 4}), w = floats({1, 12, 4}), r = floats({1, 12, 3});
  const Input state = floats({1, 2, 3}), turned = floats({2, 1, 3});
  expect_all({
      {"LSTM", hidden, {x, w, r}, 1, 17, 3},
      {"LSTM", hidden, {x, w, r, omitted(), omitted(), state, state}, 1, 17, 3},
      {"LSTM", first, {floats({2, 5, 4}), w, r, omitted(), omitted(), turned, turned}, 1, 17, 3},
      {"RNN", hidden, {x, floats({1, 3, 4}), floats({1, 3, 3})}, 1, 17, 2},
  });
}

TEST(BatchRulesTest, RowsOfFeatures) {
  using Ints = std::vector<int64_t>;
  using Floats = std::vector<float>;
  const char* const ml = "ai.onnx.ml";
  const Attributes linear = {{"coefficients", Floats{1, 2, 3, -1, 0, 1}}, {"targets", int64_t{2}}};
  const Attributes classes = {{"coefficients", Floats{1, 2, 3, -1, 0, 1}},
                              {"classlabels_ints", Ints{4, 5}}};
  const Attributes machine = {{"support_vectors", Floats{1, 2, 3, -1, 0, 1}},
                              {"coefficients", Floats{1, -1}},
                              {"vectors_per_class", Ints{1, 1}},
                              {"rho", Floats{0.5f}},
                              {"classlabels_ints", Ints{4, 5}}};
  const Attributes trees = {{"nodes_treeids", Ints{0, 0, 0}},
                            {"nodes_nodeids", Ints{0, 1, 2}},
                            {"nodes_featureids", Ints{1, 0, 0}},
                            {"nodes_values", Floats{0, 0, 0}},
                            {"nodes_modes", std::vector<std::string>{"BRANCH_LT", "LEAF", "LEAF"}},
                            {"nodes_truenodeids", Ints{1, 0, 0}},
                            {"nodes_falsenodeids", Ints{2, 0, 0}},
                            {"target_treeids", Ints{0, 0}},
                            {"target_nodeids", Ints{1, 2}},
                            {"target_ids", Ints{0, 0}},
                            {"target_weights", Floats{1, 2}},
                            {"n_targets", int64_t{1}}};
  const Attributes labels = {{"keys_int64s", Ints{0, 2}}, {"values_int64s", Ints{5, 6}}};
  expect_all({
      {"Scaler", {{"scale", Floats{1, 2, 3}}}, {floats({2, 3})}, 1, 1, 1, ml},
      {"Normalizer", {}, {floats({2, 3})}, 1, 1, 1, ml},
      {"Imputer", {{"imputed_value_floats", Floats{7}}}, {floats({2, 3, 2})}, 2, 1, 1, ml},
      {"Binarizer", {}, {floats({2, 3})}, 2, 1, 1, ml},
      {"OneHotEncoder", {{"cats_int64s", Ints{0, 2}}}, {indices({2, 3}, 4)}, 2, 1, 1, ml},
      {"LabelEncoder", labels, {indices({2, 3}, 4)}, 2, 2, 1, ml},
      {"FeatureVectorizer", {}, {floats({2, 3}), floats({2, 1})}, 1, 1, 1, ml},
      {"ArrayFeatureExtractor", {}, {floats({2, 4}), indices({2}, 4)}, 1, 1, 1, ml},
      {"ArrayFeatureExtractor", {}, {floats({4}), indices({2}, 4)}, 0, 1, 1, ml},
      {"LinearRegressor", linear, {floats({2, 3})}, 1, 1, 1, ml},
      {"LinearClassifier", classes, {floats({2, 3})}, 1, 1, 2, ml},
      {"SVMClassifier", machine, {floats({2, 3})}, 1, 1, 2, ml},
      {"TreeEnsembleRegressor", trees, {floats({2, 2})}, 1, 1, 1, ml},
  });
}

// Whoever adds an operator decides: a rule, or a place in this list.
TEST(BatchRulesTest, EachOperatorHasARuleOrIsListed) {
  const std::set<std::string> without = {
      // Sequences and optionals.
      "SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SequenceAt",
      "SequenceLength", "SplitToSequence", "ConcatFromSequence", "Optional", "OptionalGetElement",
      "OptionalHasElement",
      // Positions and shapes as values.
      "Constant", "Range", "EyeLike",
      // Made by passes behind the analysis; or a host function.
      "BlockChannels", "UnblockChannels", "BlockedConv", "ExpandedConv", "BlockedPool", "Fused",
      "FusedParts", "ToDevice", "ToHost", "Await", "HostPredicate", "PermutedMatMul", "PackMatrix",
      "PackedMatMul", "SplitMatMul", "ConvRelu", "WinogradConv", "SwappedConv", "ChannelsLastConv",
      "ChannelsLastMaxPool", "ChannelsLastAveragePool",
      // Between ranks, which would see one operation for several requests.
      "AllReduce", "AllGather", "ReduceScatter", "Broadcast", "AllToAll", "Exchange", "Send",
      "Recv", "Barrier", "Rank", "Agree",
      // Replaced by what computes it before plans are made.
      "Gradient",
      // Steps of training.
      "UpdateParameter",
      // Random numbers and tables; what they are drawn by is of training.
      "FoldKey", "KeyedUniform", "Bernoulli", "MelWeightMatrix", "Multinomial", "RandomNormal",
      "RandomNormalLike", "RandomUniform", "RandomUniformLike",
      // Several inputs with samples, regions, text: not decided yet.
      "Attention", "Col2Im", "DFT", "DeformConv", "Det", "GridSample", "ImageDecoder",
      "LinearAttention", "LpPool", "MaxRoiPool", "NonMaxSuppression", "RegexFullMatch", "RoiAlign",
      "RotaryEmbedding", "STFT", "StringConcat", "StringNormalizer", "StringSplit", "TensorScatter",
      "TfIdfVectorizer"};
  std::set<std::string> found;
  for (const auto& def : table().all()) {
    // Functions of others leave no node behind.
    if (def->batch == nullptr && def->expand == nullptr) found.insert(def->name);
  }
  for (const std::string& name : found) {
    EXPECT_TRUE(without.contains(name)) << name << " has no rule, and is not listed";
  }
  for (const std::string& name : without) {
    EXPECT_TRUE(found.contains(name)) << name << " is listed, but has a rule, or is no operator";
  }
}

}  // namespace
}  // namespace eddy
