#include "examples/dynamic_models/parts.h"
#include "examples/nets/net.h"
#include "examples/nets/transformer.h"

namespace eddy::nets {
namespace {

using dynamic::Values;

constexpr float kEpsilon = 1e-5f;
constexpr int64_t kEnd = 0;  // the token

struct Shape {
  int64_t layers, inner, steps, vocabulary;
  Heads heads;
};

Shape shape_of(Scale scale) {
  if (scale == Scale::kSmall) return {2, 32, 12, 20, {2, 8}};
  return {4, 2048, 64, 8192, {8, 64}};
}

// One layer for one token; keys and values, [1, heads, tokens so far, width], grow by it.
struct Step {
  Value x, keys, values;
};

Step layer(GraphBuilder& b, TransformerParts& parts, const Shape& shape, const Step& before) {
  const Heads& heads = shape.heads;
  const int64_t hidden = heads.hidden();
  const Value x = parts.norm(before.x, hidden, kEpsilon);
  const auto heads_of = [&] { return parts.split_heads(parts.dense(x, hidden, hidden), 1, heads); };
  const Value queries = heads_of();
  const Value keys = dynamic::join(b, before.keys, heads_of(), 2);
  const Value values = dynamic::join(b, before.values, heads_of(), 2);
  const Value attended = parts.attend(queries, keys, values, heads, {});
  const Value merged = parts.merge_heads(attended, 1, heads);
  const Value sum = b.op("Add", {before.x, parts.dense(merged, hidden, hidden)});
  const Value inner = parts.norm(sum, hidden, kEpsilon);
  return {b.op("Add", {sum, parts.feed_forward(inner, hidden, shape.inner)}), keys, values};
}

}  // namespace

Result<Net> decoder(const OpTable& ops, Scale scale, uint64_t seed) {
  const Shape shape = shape_of(scale);
  const int64_t hidden = shape.heads.hidden();
  Random random(seed);
  GraphBuilder b(ops, "decoder");
  TransformerParts parts(b, random);
  const Value start = b.input("start", tensor_type(ElementType::kInt64, {1}));
  const Value words = parts.table(shape.vocabulary, hidden, "words");
  const Value positions = parts.table(shape.steps, hidden, "positions");
  const size_t layers = static_cast<size_t>(shape.layers);
  Values carried(2 * layers, b.tensor<float>({1, shape.heads.count, 0, shape.heads.width}, {}));
  carried.insert(carried.begin(), start);
  const Values results = dynamic::while_true(
      b, "decode", b.scalar(shape.steps), std::move(carried), 2,
      [&](Value iteration, ValueSpan state) -> Values {
        const Value place = dynamic::reshape(b, iteration, {1});
        const Value word = b.op("Gather", {words, state[0]});
        const Value x = b.op("Add", {word, b.op("Gather", {positions, place})});
        Step step{dynamic::reshape(b, x, {1, 1, hidden}), {}, {}};
        Values next;
        for (size_t i = 0; i < layers; ++i) {
          step = layer(b, parts, shape, {step.x, state[1 + 2 * i], state[2 + 2 * i]});
          next.insert(next.end(), {step.keys, step.values});
        }
        const Value last = parts.norm(step.x, hidden, kEpsilon);
        const Value scores =
            dynamic::reshape(b, parts.dense(last, hidden, shape.vocabulary), {shape.vocabulary});
        const Value token = b.op("ArgMax", {scores}, {{"axis", 0}});  // [1]
        const Value is_end = b.op("Equal", {token, b.vector<int64_t>({kEnd})});
        const Value goes_on = dynamic::reshape(b, b.op("Not", {is_end}), {});
        next.insert(next.begin(), {goes_on, token});
        next.insert(next.end(), {token, b.op("ReduceMax", {scores})});
        return next;
      });
  if (results.empty()) return b.finish().take_status();
  b.output("tokens", results[results.size() - 2]);
  b.output("scores", results.back());
  EDDY_ASSIGN_OR_RETURN(Graph graph, b.finish());
  const auto first = static_cast<int64_t>(random.below(static_cast<uint64_t>(shape.vocabulary)));
  return Net{std::move(graph), {{"start", dynamic::to_value({1}, {first})}}};
}

}  // namespace eddy::nets
