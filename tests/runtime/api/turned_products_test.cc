// Claim: a session that packs matrices or turns them over before its loops gives the values of one
// that does not, within rounding, on seeded random loops of products, nested and with turned
// matrices, of few terms and of many; the same bits for any number of threads; and neither packs
// nor turns anything in loops.
#include <gtest/gtest.h>

#include "graph/base/random.h"
#include "graph/ir/builder.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

using Floats = std::vector<float>;

class TurnedProductsTest : public ::testing::Test {
 protected:
  // h by a matrix of this width and its transpose, in any form.
  static Value product(GraphBuilder& b, Random& random, Value h, Value w, Value bias) {
    const bool is_turned = random.below(2) == 0;
    if (random.below(2) == 0) {
      const Attributes attributes = {{"transB", int64_t{is_turned}}};
      if (random.below(2) == 0) return b.op("Gemm", {h, w}, attributes);
      return b.op("Gemm", {h, w, bias}, attributes);
    }
    return b.op("MatMul", {h, is_turned ? b.op("Transpose", {w}) : w});
  }

  static Value loop(GraphBuilder& b, Random& random, Value h, Value w, Value bias, int depth) {
    return b.while_loop(
        {.name = "loop", .initial = {h}, .trip_limit = b.scalar(int64_t{2})},
        [&](Value, ValueSpan carried) {
          return WhileTest{b.scalar(true),
                           {b.op("Tanh", {product(b, random, carried[0], w, bias)})}};
        },
        [&](Value, ValueSpan v) {
          const Value made = b.op("Tanh", {product(b, random, v[0], w, bias)});
          if (depth == 0) return std::vector<Value>{made};
          return std::vector<Value>{loop(b, random, made, w, bias, depth - 1)};
        })[0];
  }

  static Graph graph(const Library& library, uint64_t seed) {
    Random random(seed);
    GraphBuilder b(library.ops());
    const auto width = static_cast<int64_t>(64 + random.below(seed % 3 == 0 ? 400 : 80));
    const int64_t batch = random.below(2) == 0 ? kUnknownDim : kBatch;
    const auto floats = [](const Dims& dims) { return tensor_type(ElementType::kFloat, dims); };
    const Value h = b.input("h", floats({batch, width})), w = b.input("w", floats({width, width}));
    b.output("y", loop(b, random, h, w, b.input("bias", floats({width})), random.below(2) == 0));
    Result<Graph> made = b.finish();
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    return std::move(*made);
  }

  Floats run(uint64_t seed, const SessionOptions& options) {
    Graph given = graph(library_, seed);
    NamedTensors inputs;
    Random random(seed + 1000);
    for (const ValueId id : given.inputs()) {
      Dims dims = given.value(id).type.tensor.dims;
      if (dims[0] < 0) dims[0] = kBatch;
      Floats values(static_cast<size_t>(*dims.count()));
      for (float& value : values) value = random.uniform(-0.2f, 0.2f);
      inputs.emplace_back(given.value(id).name,
                          Tensor::of<float>(dims, std::span<const float>(values)));
    }
    auto session = Session::create(library_, std::move(given), options);
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    if (!session.is_ok()) return {};
    if (options.blocks_channels) expect_turned_before((*session)->graph());
    const auto outputs = (*session)->run(inputs);
    EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    if (!outputs.is_ok()) return {};
    const std::span<const float> values = (*outputs)[0].second.values<float>();
    return Floats(values.begin(), values.end());
  }

  static void expect_turned_before(const Graph& graph) {
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
      const Node& node = graph.node(NodeId(n));
      if (node.kind != NodeKind::kExec) continue;
      const bool is_layout = node.op->name == "Transpose" || node.op->name == "PackMatrix";
      EXPECT_EQ(is_layout, node.region == Graph::kRoot) << node.op->name;
      EXPECT_EQ(node.attributes.get_int("transB", 0), 0);
    }
  }

  static constexpr int64_t kBatch = 37;
  const Library library_;
};

TEST_F(TurnedProductsTest, LoopsGiveTheValuesOfThoseThatTurnNothingBefore) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Floats expected = run(seed, {.num_threads = 1, .blocks_channels = false});
    const Floats found = run(seed, {.num_threads = 1});
    ASSERT_FALSE(expected.empty());
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 3e-5) << i;
  }
}

TEST_F(TurnedProductsTest, ThreadsChangeNoBit) {
  for (uint64_t seed = 31; seed <= 36; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Floats expected = run(seed, {.num_threads = 1});
    for (const int num_threads : {2, 3, 8})
      EXPECT_EQ(run(seed, {.num_threads = num_threads}), expected);
  }
}

}  // namespace
}  // namespace eddy
