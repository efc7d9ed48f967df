#include "examples/dynamic_models/beam_search.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "examples/dynamic_models/parts.h"

namespace eddy::dynamic {
namespace {

constexpr int64_t kStop = 0;
constexpr int64_t kStart = 1;
constexpr float kNever = -1e9f;  // a log probability

struct BeamSearch {
  BeamSearchSize size;
  Array embedding;  // [vocabulary, hidden]
  Array cell, bias;
  Array output;  // [hidden, vocabulary]
};

BeamSearch draw(const BeamSearchSize& size) {
  Random random(size.seed);
  const float range = 2 / std::sqrt(static_cast<float>(size.hidden));
  return {size, random_array(random, {size.vocabulary, size.hidden}, 2),
          random_array(random, {2 * size.hidden, 4 * size.hidden}, range),
          random_array(random, {4 * size.hidden}, range),
          random_array(random, {size.hidden, size.vocabulary}, 1)};
}

// What a finished beam may write: the stop token, for nothing.
Array finished_row(const BeamSearchSize& size) {
  Array row = zeros({1, size.vocabulary});
  std::ranges::fill(row.values, kNever);
  row.values[kStop] = 0;
  return row;
}

Array stop_row(const BeamSearchSize& size) {
  Array row = zeros({1, size.vocabulary});
  row.values[kStop] = size.eagerness;
  return row;
}

// All beams start alike, so only the first may grow at first.
Array first_scores(const BeamSearchSize& size) {
  Array scores = zeros({size.beams});
  std::fill(scores.values.begin() + 1, scores.values.end(), kNever);
  return scores;
}

Result<Graph> build(const BeamSearch& model, const OpTable& ops) {
  const BeamSearchSize& size = model.size;
  GraphBuilder b(ops, "beam_search");
  const Value limit = b.input("limit", tensor_type(ElementType::kInt64, {}));
  const Value embedding = weight(b, model.embedding, "embedding");
  const Value cell = weight(b, model.cell, "cell");
  const Value bias = weight(b, model.bias, "bias");
  const Value output = weight(b, model.output, "output");
  const Value finished = weight(b, finished_row(size), "finished");
  const Value eager = weight(b, stop_row(size), "eager");
  const Value zero = weight(b, zeros({size.beams, size.hidden}), "zero");
  const std::vector<int64_t> starts(static_cast<size_t>(size.beams), kStart);
  const Value vocabulary = b.scalar(size.vocabulary);
  const Value scores = weight(b, first_scores(size), "first_scores");
  const Values results = while_true(
      b, "search", limit, {b.vector(std::span(starts)), scores, zero, zero}, 3,
      [&](Value iteration, ValueSpan carried) {
        const LstmState next = lstm_step(b, row(b, embedding, carried[0]), {carried[2], carried[3]},
                                         cell, bias, size.hidden);
        const Value step = b.cast(iteration, ElementType::kFloat);
        const Value logits =
            b.op("Add", {b.op("MatMul", {next.h, output}), b.op("Mul", {eager, step})});
        const Value is_finished =
            b.op("Unsqueeze", {b.op("Equal", {carried[0], b.scalar(kStop)}), b.int64s({1})});
        const Value words =
            b.op("Where", {is_finished, finished, b.op("LogSoftmax", {logits}, {{"axis", -1}})});
        const Value sums = b.op("Add", {words, b.op("Unsqueeze", {carried[1], b.int64s({1})})});
        OpOptions two;
        two.num_outputs = 2;
        const Value flat[] = {reshape(b, sums, {-1}), b.int64s({size.beams})};
        const Values best = b.ops("TopK", flat, {}, two);
        if (best.size() != 2) return Values{};
        const Value parent = b.op("Div", {best[1], vocabulary});
        const Value token = b.op("Sub", {best[1], b.op("Mul", {parent, vocabulary})});
        const Value is_over = all_of(b, b.op("Equal", {token, b.scalar(kStop)}));
        return Values{b.op("Not", {is_over}), token, best[0], row(b, next.h, parent),
                      row(b, next.c, parent), token, parent,  best[0]};
      });
  if (results.empty()) return b.finish();
  b.output("tokens", results[4]);
  b.output("parents", results[5]);
  b.output("scores", results[6]);
  return b.finish();
}

// The log probability of every beam's every continuation.
Array continue_plainly(const BeamSearch& model, const Array& h, const std::vector<int64_t>& tokens,
                       const Array& scores, int64_t step) {
  Array sums = multiply(h, model.output);
  for (int64_t beam = 0; beam < sums.rows(); ++beam) {
    const float score = scores.values[static_cast<size_t>(beam)];
    if (tokens[static_cast<size_t>(beam)] == kStop) {
      for (int64_t i = 0; i < sums.columns(); ++i) sums.at(beam, i) = score + kNever;
      sums.at(beam, kStop) = score;
      continue;
    }
    sums.at(beam, kStop) += model.size.eagerness * static_cast<float>(step);
    double sum = 0;
    const float largest = sums.at(beam, argmax(sums, beam));
    for (int64_t i = 0; i < sums.columns(); ++i) sum += std::exp(sums.at(beam, i) - largest);
    const float normal = largest + static_cast<float>(std::log(sum));
    for (int64_t i = 0; i < sums.columns(); ++i) sums.at(beam, i) += score - normal;
  }
  return sums;
}

PlainResult run_plainly(const BeamSearch& model) {
  const BeamSearchSize& size = model.size;
  const size_t beams = static_cast<size_t>(size.beams);
  PlainLstmState state{zeros({size.beams, size.hidden}), zeros({size.beams, size.hidden})};
  std::vector<int64_t> tokens(beams, kStart), all_tokens, all_parents;
  Array scores = first_scores(size);
  Array all_scores;
  int64_t steps = 0;
  for (bool is_going = true; is_going && steps < size.limit; ++steps) {
    Array x;
    for (const int64_t token : tokens) push_row(x, row(model.embedding, token));
    const PlainLstmState next = lstm_step(x, state, model.cell, model.bias);
    const Array sums = continue_plainly(model, next.h, tokens, scores, steps);
    std::vector<size_t> order(sums.values.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order,
                             [&](size_t a, size_t b) { return sums.values[a] > sums.values[b]; });
    Array h, c;
    for (size_t beam = 0; beam < beams; ++beam) {
      const int64_t parent = static_cast<int64_t>(order[beam]) / size.vocabulary;
      tokens[beam] = static_cast<int64_t>(order[beam]) % size.vocabulary;
      scores.values[beam] = sums.values[order[beam]];
      all_tokens.push_back(tokens[beam]);
      all_parents.push_back(parent);
      push_row(h, row(next.h, parent));
      push_row(c, row(next.c, parent));
    }
    state = {h, c};
    push_row(all_scores, scores);
    is_going = std::ranges::any_of(tokens, [](int64_t token) { return token != kStop; });
  }
  return {{to_value({steps, size.beams}, all_tokens), to_value({steps, size.beams}, all_parents),
           to_value(all_scores)},
          steps};
}

}  // namespace

Model make_beam_search(const BeamSearchSize& size) {
  const auto model = std::make_shared<const BeamSearch>(draw(size));
  return {"beam_search",
          std::to_string(size.beams) + " beams, LSTM " + std::to_string(size.hidden) +
              ", vocabulary " + std::to_string(size.vocabulary),
          1,
          "search",
          {{"limit", to_value({}, {size.limit})}},
          [model](const OpTable& ops) { return build(*model, ops); },
          [model] { return run_plainly(*model); }};
}

}  // namespace eddy::dynamic
