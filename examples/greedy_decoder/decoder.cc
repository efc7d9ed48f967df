#include "examples/greedy_decoder/decoder.h"

#include <algorithm>
#include <cmath>

#include "graph/base/random.h"
#include "graph/ir/builder.h"

namespace eddy::decoder {
namespace {

using Values = std::vector<Value>;

std::vector<float> random_matrix(Random& random, int64_t rows, int64_t columns, float range) {
  std::vector<float> values(static_cast<size_t>(rows * columns));
  for (float& value : values) value = random.uniform(-range, range);
  return values;
}

Value matrix(GraphBuilder& b, const std::vector<float>& values, int64_t rows, const char* name) {
  const Value result = b.tensor<float>({rows, static_cast<int64_t>(values.size()) / rows}, values);
  b.set_name(result, name);
  return result;
}

// vector * matrix, added up from the first row on.
std::vector<float> multiply(const std::vector<float>& vector, const std::vector<float>& matrix) {
  std::vector<float> result(matrix.size() / vector.size());
  for (size_t row = 0; row < vector.size(); ++row) {
    for (size_t c = 0; c < result.size(); ++c) {
      result[c] += vector[row] * matrix[row * result.size() + c];
    }
  }
  return result;
}

}  // namespace

Weights make_weights(uint64_t seed, int64_t vocabulary, int64_t hidden) {
  Random random(seed);
  Weights weights{vocabulary, hidden, {}, {}, {}, {}};
  weights.embedding = random_matrix(random, vocabulary, hidden, 2.0f);
  weights.renew = random_matrix(random, 2 * hidden, hidden, 1.0f);
  weights.proposal = random_matrix(random, 2 * hidden, hidden, 1.0f);
  weights.output = random_matrix(random, hidden, vocabulary, 1.0f);
  return weights;
}

Result<Graph> build_decoder(const OpTable& ops, const Weights& weights) {
  const int64_t hidden = weights.hidden;
  GraphBuilder b(ops, "greedy_decoder");
  const Value first = b.input("first", tensor_type(ElementType::kInt64, {1}));
  const Value limit = b.input("limit", tensor_type(ElementType::kInt64, {}));
  const Value embedding = matrix(b, weights.embedding, weights.vocabulary, "embedding");
  const Value renew = matrix(b, weights.renew, 2 * hidden, "renew");
  const Value proposal = matrix(b, weights.proposal, 2 * hidden, "proposal");
  const Value output = matrix(b, weights.output, hidden, "output");
  const Value start = b.op("ConstantOfShape", {b.int64s({1, hidden})});
  const auto results = b.while_loop(
      {.name = "decode", .initial = {first, start}, .trip_limit = limit, .num_scan_outputs = 1},
      [&](Value, ValueSpan carried) {
        const Value h = carried[1];
        const Value embedded = b.op("Gather", {embedding, carried[0]}, {}, {.name = "embed"});
        const Value both = b.op("Concat", {embedded, h}, {{"axis", 1}}, {.name = "both"});
        const Value to_renew = b.op("MatMul", {both, renew}, {}, {.name = "to_renew"});
        const Value z = b.op("Sigmoid", {to_renew}, {}, {.name = "renewal"});
        const Value to_propose = b.op("MatMul", {both, proposal}, {}, {.name = "to_propose"});
        const Value n = b.op("Tanh", {to_propose}, {}, {.name = "proposal"});
        const Value change = b.op("Sub", {n, h}, {}, {.name = "change"});
        const Value renewed = b.op("Mul", {z, change}, {}, {.name = "renewed"});
        const Value next = b.op("Add", {h, renewed}, {}, {.name = "next"});
        const Value scores = b.op("MatMul", {next, output}, {}, {.name = "scores"});
        const Value token =
            b.op("ArgMax", {scores}, {{"axis", 1}, {"keepdims", 0}}, {.name = "token"});
        const Value is_stop = b.op("Equal", {token, b.scalar(kStop)}, {}, {.name = "is_stop"});
        const Value goes_on = b.op("Not", {is_stop}, {}, {.name = "goes_on"});
        return WhileTest{goes_on, {token, next}};
      },
      [&](Value, ValueSpan forwarded) {
        return Values{forwarded[0], forwarded[1], forwarded[0]};
      });
  b.output("tokens", results[2]);
  return b.finish();
}

std::vector<int64_t> decode_plainly(const Weights& weights, int64_t first, int64_t limit) {
  const size_t hidden = static_cast<size_t>(weights.hidden);
  std::vector<int64_t> tokens;
  std::vector<float> h(hidden);
  for (int64_t token = first; static_cast<int64_t>(tokens.size()) < limit;) {
    const auto row = weights.embedding.begin() + token * weights.hidden;
    std::vector<float> both(row, row + weights.hidden);
    both.insert(both.end(), h.begin(), h.end());
    const std::vector<float> z = multiply(both, weights.renew);
    const std::vector<float> n = multiply(both, weights.proposal);
    for (size_t i = 0; i < hidden; ++i) {
      h[i] += (std::tanh(n[i]) - h[i]) / (1 + std::exp(-z[i]));
    }
    const std::vector<float> scores = multiply(h, weights.output);
    token = std::ranges::max_element(scores) - scores.begin();
    if (token == kStop) break;
    tokens.push_back(token);
  }
  return tokens;
}

}  // namespace eddy::decoder
