// Claim: a session whose products read transposed operands where they lie gives the bits of one
// that transposes them, on seeded random attentions of unknown batch and length, alone and in a
// loop's body, for any number of threads; and transposes nothing.
#include <gtest/gtest.h>

#include "graph/base/random.h"
#include "graph/ir/builder.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

constexpr int64_t kWidth = 8;  // of a head

class PermutedProductsTest : public ::testing::Test {
 protected:
  Value turned(GraphBuilder& b, Value x, Ints perm) {
    return b.op("Transpose", {x}, {{"perm", std::move(perm)}});
  }

  // Attention of x by itself, [batch, length, heads, width].
  Value attention(GraphBuilder& b, Value x) {
    const auto projected = [&](float by) { return b.op("Mul", {x, b.scalar(by)}); };
    const Value q = turned(b, projected(0.5f), {0, 2, 1, 3});
    const Value k = turned(b, projected(1.5f), {0, 2, 3, 1});
    const Value v = turned(b, projected(-2.0f), {0, 2, 1, 3});
    const Value weights = b.op("Softmax", {b.op("MatMul", {q, k})}, {{"axis", int64_t{-1}}});
    return turned(b, b.op("MatMul", {weights, v}), {0, 2, 1, 3});
  }

  Graph graph(uint64_t seed) {
    Random random(seed);
    GraphBuilder b(library_.ops());
    const auto heads = static_cast<int64_t>(1 + random.below(5));
    const Value x =
        b.input("x", tensor_type(ElementType::kFloat, {kUnknownDim, kUnknownDim, heads, kWidth}));
    Value y = attention(b, x);
    if (random.below(2) == 0) {
      y = b.while_loop(
          {.name = "loop", .initial = {y}, .trip_limit = b.scalar(int64_t{3})},
          [&](Value, ValueSpan v) {
            return WhileTest{b.scalar(true), {v[0]}};
          },
          [&](Value, ValueSpan v) { return std::vector<Value>{attention(b, v[0])}; })[0];
    }
    b.output("y", y);
    Result<Graph> made = b.finish();
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    return std::move(*made);
  }

  Floats run(uint64_t seed, const SessionOptions& options, int64_t length) {
    Graph given = graph(seed);
    Dims dims = given.value(given.inputs()[0]).type.tensor.dims;
    dims[0] = 2, dims[1] = length;
    auto session = Session::create(library_, std::move(given), options);
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    if (!session.is_ok()) return {};
    if (options.simplify) expect_no_transposition((*session)->graph());
    Random random(seed + 1000);
    Floats x(static_cast<size_t>(*dims.count()));
    for (float& value : x) value = random.uniform(-1.0f, 1.0f);
    const auto outputs =
        (*session)->run({{"x", Tensor::of<float>(dims, std::span<const float>(x))}});
    EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    if (!outputs.is_ok()) return {};
    const std::span<const float> values = (*outputs)[0].second.values<float>();
    return Floats(values.begin(), values.end());
  }

  static void expect_no_transposition(const Graph& graph) {
    int num_products = 0;
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
      const Node& node = graph.node(NodeId(n));
      if (node.kind != NodeKind::kExec) continue;
      EXPECT_NE(node.op->name, "Transpose");
      num_products += node.op->name == "PermutedMatMul" ? 1 : 0;
    }
    EXPECT_GE(num_products, 2);
  }

  const Library library_;
};

TEST_F(PermutedProductsTest, AttentionsGiveTheSameBits) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    for (const int64_t length : {1, 7, 90}) {
      const Floats expected = run(seed, {.num_threads = 1, .simplify = false}, length);
      ASSERT_FALSE(expected.empty());
      EXPECT_EQ(run(seed, {.num_threads = 1}, length), expected) << "length " << length;
    }
  }
}

TEST_F(PermutedProductsTest, ThreadsChangeNoBit) {
  for (uint64_t seed = 21; seed <= 24; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Floats expected = run(seed, {.num_threads = 1}, 300);
    for (const int num_threads : {2, 3, 8}) {
      EXPECT_EQ(run(seed, {.num_threads = num_threads}, 300), expected);
    }
  }
}

}  // namespace
}  // namespace eddy
