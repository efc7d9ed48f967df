// Claim: an operator that is a function of others refuses in the run, by its node's name and in the
// same words, what it refuses where sizes are known; a check stands in the graph only where sizes
// could break the rule, hands on what it gets, and goes once they are known.
#include <gtest/gtest.h>

#include <string>

#include "graph/compile/simplify.h"
#include "graph/ir/builder.h"
#include "graph/ir/checked_call.h"
#include "ops/schema/standard.h"
#include "tests/ops/testing/calls.h"

namespace eddy::testing {
namespace {

using Ints = std::vector<int64_t>;

TestTensor zeros(const Dims& dims, ElementType element = ElementType::kFloat) {
  TestTensor made(element, dims);
  if (made.view().size_bytes() > 0) std::memset(made.view().data, 0, made.view().size_bytes());
  return made;
}
TestTensor ids(const Dims& dims) { return zeros(dims, ElementType::kInt32); }
TestTensor bytes(const Dims& dims) { return zeros(dims, ElementType::kUint8); }

OpCall microsoft(const char* op, std::vector<TestValue> inputs, Attributes attributes = {}) {
  return make_of("com.microsoft", op, 1, std::move(inputs), std::move(attributes));
}

// `less`: the least that may be known, where the nodes need ranks.
void expect_refused(OpCall call, const std::string& rule, Known least = Known::kNothing) {
  for (const Known known : {Known::kShapes, Known::kRanks, Known::kNothing}) {
    if (known > least) continue;
    call.known = known;
    for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
      const auto result = run_op(call, kernels);
      EXPECT_EQ(result.is_ok() ? "accepted" : result.status().message(), rule) << call.op;
      EXPECT_EQ(result.status().path(), call.op);
    }
  }
}

TEST(CheckedCallsTest, BiasesThatWouldBroadcastAreRefused) {
  const TestTensor x = zeros({2, 3, 4});
  for (const char* op : {"BiasGelu", "FastGelu"}) {
    expect_refused(
        microsoft(op, {x, zeros({1})}),
        "the bias must hold one value for each place of the last axis of [2,3,4], not [1]");
  }
}

TEST(CheckedCallsTest, SkippedNormalizationsRefuseWhatWouldBroadcast) {
  const TestTensor x = zeros({2, 3, 4}), row = zeros({4});
  for (const char* op : {"SkipLayerNormalization", "SkipSimplifiedLayerNormalization"}) {
    expect_refused(
        microsoft(op, {x, zeros({2, 1, 4}), row}),
        "skip of shape [2,1,4] must be [2,3,4], or that without a batch or with one of 1");
    expect_refused(
        microsoft(op, {zeros({1, 3, 4}), x, row}),
        "skip of shape [2,3,4] must be [1,3,4], or that without a batch or with one of 1");
    expect_refused(microsoft(op, {x, x, zeros({1})}), "gamma of shape [1] must be [4]");
  }
  expect_refused(microsoft("SkipLayerNormalization", {x, x, row, zeros({1})}),
                 "beta of shape [1] must be [4]");
}

TEST(CheckedCallsTest, EmbeddingsRefuseIdsThatWouldBroadcast) {
  const auto call = [](const Dims& segments, const Dims& positions) {
    return microsoft("EmbedLayerNormalization",
                     {ids({2, 3}), ids(segments), zeros({5, 4}), zeros({6, 4}), zeros({2, 4}),
                      zeros({4}), zeros({4}), TestValue::omitted(), ids(positions)});
  };
  expect_refused(call({2, 1}, {2, 3}),
                 "segment_ids of shape [2,1] do not fit input_ids of shape [2,3]");
  expect_refused(call({2, 3}, {2, 1}),
                 "position_ids of shape [2,1] do not fit input_ids of shape [2,3]");
}

TEST(CheckedCallsTest, AttentionsRefuseSizesThatTheyLearnOfInTheRun) {
  const Attributes heads = {{"num_heads", int64_t{2}}};
  expect_refused(microsoft("Attention", {zeros({2, 4, 6}), zeros({6, 24}), zeros({1})}, heads),
                 "bias of shape [1] must be [24]");
  expect_refused(microsoft("MultiHeadAttention",
                           {zeros({2, 4, 8}), zeros({1, 4, 8}), zeros({2, 4, 8})}, heads),
                 "key of shape [1,4,8] has another batch than query", Known::kRanks);
  const TestTensor scale = TestTensor::scalar(0.1f);
  expect_refused(
      microsoft("QAttention", {bytes({2, 4, 6}), bytes({6, 24}), zeros({1}), scale, scale}, heads),
      "bias of shape [1] must be [24]");
}

TEST(CheckedCallsTest, WindowsRefuseANegativeSize) {
  for (const char* op : {"HannWindow", "HammingWindow", "BlackmanWindow"}) {
    OpCall call = make(op, 17, {TestTensor::scalar<int64_t>(-3)});
    expect_refused(call, "the size of a window can't be negative, but is -3");
    call.constant_inputs = 1;
    expect_refused(call, "the size of a window can't be negative, but is -3");
    call = make(op, 17, {TestTensor::scalar<int32_t>(0)});
    EXPECT_EQ(run_one(call, KernelSet::kCpu).dims(), Dims{0});
  }
}

// -1 is no place, and not the last one's.
TEST(CheckedCallsTest, MaxUnpoolNamesTheIndexThatIsNoPlace) {
  const TestTensor x = floats({1, 1, 2, 2}, {5, 6, 7, 8});
  for (const int64_t place : {int64_t{-1}, int64_t{-17}, int64_t{16}, INT64_MIN, INT64_MAX}) {
    OpCall call =
        make("MaxUnpool", 22, {x, TestTensor::of<int64_t>({1, 1, 2, 2}, {5, 7, place, 15})},
             {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
    const std::string rule = "element 2 of I is " + std::to_string(place) +
                             ", which is no place in the 16 elements of shape [1,1,4,4]";
    expect_refused(call, rule);
    call.constant_inputs = 2;
    expect_refused(call, rule);
  }
}

TEST(CheckedCallsTest, GroupedQueriesNameTheLengthThatDoesNotFit) {
  const TestTensor q = zeros({2, 3, 24}), kv = zeros({2, 3, 12}), past = zeros({2, 2, 5, 6});
  const auto call = [&](std::vector<int32_t> lengths, int32_t total, bool has_past = true) {
    std::vector<TestValue> inputs = {q,
                                     kv,
                                     kv,
                                     past,
                                     past,
                                     TestTensor::of<int32_t>({2}, std::move(lengths)),
                                     TestTensor::of<int32_t>({1}, {total})};
    if (!has_past) inputs[3] = inputs[4] = TestValue::omitted();
    return microsoft("GroupQueryAttention", std::move(inputs),
                     {{"num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}});
  };
  const auto refuse = [&](const OpCall& hostile, const std::string& rule) {
    expect_refused(hostile, rule, Known::kRanks);
    OpCall known = hostile;
    known.constant_inputs = 1 << 5 | 1 << 6;
    expect_refused(known, rule, Known::kRanks);
  };
  const std::string between = ", which is not between 2 and 7: the last of the sample's 8 keys, ";
  refuse(call({7, 8}, 8), "seqlens_k[1] is 8" + between + "3 of them new");
  refuse(call({INT32_MAX, 7}, 8), "seqlens_k[0] is 2147483647" + between + "3 of them new");
  refuse(call({7, 1}, 8), "seqlens_k[1] is 1" + between + "3 of them new");
  refuse(call({7, 7}, 2), "total_sequence_length is 2, but there are 3 new keys");
  refuse(call({7, 7}, -8), "total_sequence_length is -8, but there are 3 new keys");
  refuse(call({3, 2}, 3, false),
         "seqlens_k[0] is 3, which is not between 0 and 2: the last of the "
         "sample's 3 keys, 3 of them new");
  for (const OpCall& fine : {call({7, 2}, 8), call({0, 4}, 3), call({0, 2}, 3, false)}) {
    EXPECT_EQ(refusal(fine), "accepted");
  }
}

class ChecksTest : public ::testing::Test {
 protected:
  ChecksTest() { EXPECT_TRUE(add_standard_schemas(table_).is_ok()); }

  static size_t num_checks(const Graph& graph) {
    size_t count = 0;
    for (uint32_t n = 0; n < graph.num_nodes(); ++n)
      count += is_checked_call(graph.node(NodeId(n)));
    return count;
  }

  // y = BiasGelu(x, bias) of these types.
  Graph bias_gelu(const std::vector<std::string>& x, const std::vector<std::string>& bias) {
    GraphBuilder b(table_);
    const auto dims = [&](const std::vector<std::string>& names) {
      Dims made;
      for (const std::string& name : names) {
        const bool is_size = !name.empty() && std::isdigit(name[0]) != 0;
        made.push_back(is_size ? std::stoll(name) : name == "?" ? kUnknownDim : b.symbol(name));
      }
      return tensor_type(ElementType::kFloat, made);
    };
    const Value inputs[] = {b.input("x", dims(x)), b.input("bias", dims(bias))};
    b.output("y", b.op("BiasGelu", inputs, {}, {.name = "gelu", .domain = "com.microsoft"}));
    auto graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    return std::move(*graph);
  }

  OpTable table_;
};

TEST_F(ChecksTest, StandWhereSizesCouldBreakTheRuleOnly) {
  EXPECT_EQ(num_checks(bias_gelu({"2", "3", "4"}, {"4"})), 0u);
  EXPECT_EQ(num_checks(bias_gelu({"batch", "?", "4"}, {"4"})), 0u);
  EXPECT_EQ(num_checks(bias_gelu({"batch", "?", "size"}, {"size"})), 0u);
  EXPECT_EQ(num_checks(bias_gelu({"2", "3", "size"}, {"4"})), 1u);
  EXPECT_EQ(num_checks(bias_gelu({"2", "3", "size"}, {"other"})), 1u);
  EXPECT_EQ(num_checks(bias_gelu({"2", "3", "?"}, {"?"})), 1u);
}

TEST_F(ChecksTest, HaveTheNameOfTheNodeAndGoOnceSizesAreKnown) {
  Graph graph = bias_gelu({"2", "n"}, {"m"});
  ASSERT_EQ(num_checks(graph), 1u);
  EXPECT_EQ(graph.node(NodeId(0)).name, "gelu");
  const EvaluateFunction nothing = [](const Node&, std::span<const TensorView>) {
    return Result<std::vector<OwnedTensor>>(unsupported("not here"));
  };
  const auto simple =
      simplify(graph.copy(), table_, {.dims = {{"n", 4}, {"m", 4}}, .evaluate = nothing});
  ASSERT_TRUE(simple.is_ok()) << simple.status().to_string();
  EXPECT_EQ(num_checks(*simple), 0u);
  const auto refused = simplify(std::move(graph), table_, {.dims = {{"n", 4}, {"m", 1}}});
  EXPECT_EQ(refused.status().path(), "gelu");
  EXPECT_EQ(refused.status().message(),
            "the bias must hold one value for each place of the last axis of [2,4], not [1]");
}

}  // namespace
}  // namespace eddy::testing
