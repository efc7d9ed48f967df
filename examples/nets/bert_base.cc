#include <numeric>

#include "examples/dynamic_models/parts.h"
#include "examples/nets/net.h"
#include "examples/nets/transformer.h"

namespace eddy::nets {
namespace {

constexpr float kEpsilon = 1e-12f;
constexpr int64_t kSegments = 2;

struct Shape {
  int64_t layers, inner, tokens, vocabulary, positions;
  Heads heads;
};

Shape shape_of(Scale scale) {
  if (scale == Scale::kSmall) return {2, 64, 8, 50, 16, {4, 8}};
  return {12, 3072, 128, 30522, 512, {12, 64}};
}

class Encoder {
 public:
  Encoder(GraphBuilder& builder, Random& random, const Shape& shape)
      : b_(builder), parts_(builder, random), shape_(shape) {}

  Value embed(Value tokens, Value segments) {
    const int64_t hidden = shape_.heads.hidden();
    std::vector<int64_t> positions(static_cast<size_t>(shape_.tokens));
    std::iota(positions.begin(), positions.end(), 0);
    const Value of_tokens =
        b_.op("Gather", {parts_.table(shape_.vocabulary, hidden, "words"), tokens});
    const Value of_segments =
        b_.op("Gather", {parts_.table(kSegments, hidden, "segments"), segments});
    const Value of_positions =
        b_.op("Gather", {parts_.table(shape_.positions, hidden, "positions"),
                         b_.tensor<int64_t>({1, shape_.tokens}, std::span(positions))});
    const Value sum = b_.op("Add", {b_.op("Add", {of_tokens, of_segments}), of_positions});
    return parts_.norm(sum, hidden, kEpsilon);
  }

  // What is added to scores: 0 where the mask is 1, very little where it is 0.
  Value bias_of(Value mask) {
    const Value row =
        b_.cast(dynamic::reshape(b_, mask, {1, 1, 1, shape_.tokens}), ElementType::kFloat);
    return b_.op("Mul", {b_.op("Sub", {b_.scalar(1.0f), row}), b_.scalar(-10000.0f)});
  }

  Value layer(Value x, Value bias) {
    const int64_t hidden = shape_.heads.hidden();
    const Value queries = heads_of(x), keys = heads_of(x), values = heads_of(x);
    const Value attended = parts_.attend(queries, keys, values, shape_.heads, bias);
    const Value merged = parts_.merge_heads(attended, shape_.tokens, shape_.heads);
    x = normed_sum(x, parts_.dense(merged, hidden, hidden));
    return normed_sum(x, parts_.feed_forward(x, hidden, shape_.inner));
  }

  // Of the first token.
  Value pool(Value x) {
    const Value first = b_.op("Gather", {x, b_.scalar<int64_t>(0)}, {{"axis", 1}});
    return b_.op("Tanh", {parts_.dense(first, shape_.heads.hidden(), shape_.heads.hidden())});
  }

 private:
  Value heads_of(Value x) {
    const int64_t hidden = shape_.heads.hidden();
    return parts_.split_heads(parts_.dense(x, hidden, hidden), shape_.tokens, shape_.heads);
  }
  Value normed_sum(Value x, Value y) {
    return parts_.norm(b_.op("Add", {x, y}), shape_.heads.hidden(), kEpsilon);
  }

  GraphBuilder& b_;
  TransformerParts parts_;
  const Shape shape_;
};

// A sentence of two parts that fills seven eighths.
std::vector<std::pair<std::string, HostValue>> inputs_of(Random& random, const Shape& shape) {
  std::vector<int64_t> tokens, segments, mask;
  for (int64_t i = 0; i < shape.tokens; ++i) {
    const bool is_padding = i >= shape.tokens / 8 * 7;
    const auto token = static_cast<int64_t>(random.below(static_cast<uint64_t>(shape.vocabulary)));
    tokens.push_back(is_padding ? 0 : token);
    segments.push_back(!is_padding && i >= shape.tokens / 2 ? 1 : 0);
    mask.push_back(is_padding ? 0 : 1);
  }
  const std::vector<int64_t> dims = {1, shape.tokens};
  return {{"tokens", dynamic::to_value(dims, tokens)},
          {"segments", dynamic::to_value(dims, segments)},
          {"mask", dynamic::to_value(dims, mask)}};
}

}  // namespace

Result<Net> bert_base(const OpTable& ops, Scale scale, uint64_t seed) {
  const Shape shape = shape_of(scale);
  Random random(seed);
  GraphBuilder b(ops, "bert_base");
  Encoder encoder(b, random, shape);
  const ValueType numbers = tensor_type(ElementType::kInt64, {1, shape.tokens});
  const Value tokens = b.input("tokens", numbers);
  const Value segments = b.input("segments", numbers);
  const Value bias = encoder.bias_of(b.input("mask", numbers));
  Value x = encoder.embed(tokens, segments);
  for (int64_t i = 0; i < shape.layers; ++i) x = encoder.layer(x, bias);
  b.output("states", x);
  b.output("pooled", encoder.pool(x));
  EDDY_ASSIGN_OR_RETURN(Graph graph, b.finish());
  return Net{std::move(graph), inputs_of(random, shape)};
}

}  // namespace eddy::nets
