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
  Array start;   // [batch, hidden]
};

BeamSearch draw(const BeamSearchSize& size) {
  Random random(size.seed);
  const float range = 2 / std::sqrt(static_cast<float>(size.hidden));
  return {size,
          random_array(random, {size.vocabulary, size.hidden}, 2),
          random_array(random, {2 * size.hidden, 4 * size.hidden}, range),
          random_array(random, {4 * size.hidden}, range),
          random_array(random, {size.hidden, size.vocabulary}, 1),
          random_array(random, {size.batch, size.hidden}, 1)};
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

// All beams of a row start alike, so only the first may grow at first.
Array first_scores(int64_t batch, int64_t beams) {
  Array scores = zeros({batch, beams});
  for (int64_t row = 0; row < batch; ++row) {
    for (int64_t beam = 1; beam < beams; ++beam) scores.at(row, beam) = kNever;
  }
  return scores;
}

// By line, of batch * beams: the row it belongs to, times `factor`.
std::vector<int64_t> rows_of_lines(const BeamSearchSize& size, int64_t factor) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < size.batch * size.beams; ++i) rows.push_back(i / size.beams * factor);
  return rows;
}

Result<Graph> build(const BeamSearch& model, const OpTable& ops) {
  const BeamSearchSize& size = model.size;
  GraphBuilder b(ops, "beam_search");
  const Value limit = b.input("limit", tensor_type(ElementType::kInt64, {}));
  const Value start = float_input(b, "start", model.start);
  const Value embedding = weight(b, model.embedding, "embedding");
  const Value cell = weight(b, model.cell, "cell");
  const Value bias = weight(b, model.bias, "bias");
  const Value output = weight(b, model.output, "output");
  const Value finished = weight(b, finished_row(size), "finished");
  const Value eager = weight(b, stop_row(size), "eager");
  const int64_t lines = size.batch * size.beams;
  const Value zero = weight(b, zeros({lines, size.hidden}), "zero");
  const std::vector<int64_t> starts(static_cast<size_t>(lines), kStart);
  const Value vocabulary = b.scalar(size.vocabulary);
  const Value scores = weight(b, first_scores(size.batch, size.beams), "first_scores");
  const std::vector<int64_t> rows = rows_of_lines(size, 1);
  const std::vector<int64_t> first_lines = rows_of_lines(size, size.beams);
  const Value first_line = b.vector(std::span(first_lines));
  const Value first_h = row(b, start, b.vector(std::span(rows)));
  const Values results = while_true(
      b, "search", limit, {b.vector(std::span(starts)), scores, first_h, zero}, 3,
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
        const Value sums = b.op("Add", {words, reshape(b, carried[1], {lines, 1})});
        OpOptions two;
        two.num_outputs = 2;
        const Value flat[] = {reshape(b, sums, {size.batch, size.beams * size.vocabulary}),
                              b.int64s({size.beams})};
        const Values best = b.ops("TopK", flat, {}, two);
        if (best.size() != 2) return Values{};
        const Value parents = b.op("Div", {best[1], vocabulary});
        const Value tokens = b.op("Sub", {best[1], b.op("Mul", {parents, vocabulary})});
        const Value is_over = all_of(b, b.op("Equal", {tokens, b.scalar(kStop)}));
        const Value from = b.op("Add", {reshape(b, parents, {lines}), first_line});
        return Values{b.op("Not", {is_over}),
                      reshape(b, tokens, {lines}),
                      best[0],
                      row(b, next.h, from),
                      row(b, next.c, from),
                      tokens,
                      parents,
                      best[0]};
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

// One step of one row: best continuations first.
struct Line {
  int64_t token = 0, parent = 0;
  float score = 0;
};
using Step = std::vector<Line>;

// Every step of a row that is alone.
std::vector<Step> search_plainly(const BeamSearch& model, const Array& start) {
  const BeamSearchSize& size = model.size;
  PlainLstmState state{{}, zeros({size.beams, size.hidden})};
  for (int64_t beam = 0; beam < size.beams; ++beam) push_row(state.h, start);
  std::vector<int64_t> tokens(static_cast<size_t>(size.beams), kStart);
  Array scores = first_scores(1, size.beams);
  std::vector<Step> steps;
  const auto is_over = [](const Step& step) {
    return std::ranges::all_of(step, [](const Line& line) { return line.token == kStop; });
  };
  while (std::ssize(steps) < size.limit && (steps.empty() || !is_over(steps.back()))) {
    Array x;
    for (const int64_t token : tokens) push_row(x, row(model.embedding, token));
    const PlainLstmState next = lstm_step(x, state, model.cell, model.bias);
    const Array sums = continue_plainly(model, next.h, tokens, scores, std::ssize(steps));
    std::vector<size_t> order(sums.values.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order,
                             [&](size_t a, size_t b) { return sums.values[a] > sums.values[b]; });
    state = {};
    Step step;
    for (size_t beam = 0; beam < tokens.size(); ++beam) {
      const auto place = static_cast<int64_t>(order[beam]);
      step.push_back({place % size.vocabulary, place / size.vocabulary, sums.values[order[beam]]});
      tokens[beam] = step.back().token;
      scores.values[beam] = step.back().score;
      push_row(state.h, row(next.h, step.back().parent));
      push_row(state.c, row(next.c, step.back().parent));
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

// Each row alone; one that has stopped stays as it is while others search.
PlainResult run_plainly(const BeamSearch& model) {
  const BeamSearchSize& size = model.size;
  std::vector<std::vector<Step>> rows;
  size_t num_steps = 0;
  for (int64_t i = 0; i < size.batch; ++i) {
    rows.push_back(search_plainly(model, row(model.start, i)));
    num_steps = std::max(num_steps, rows.back().size());
  }
  const std::vector<int64_t> dims = {static_cast<int64_t>(num_steps), size.batch, size.beams};
  std::vector<int64_t> tokens, parents;
  Array scores{dims, {}};
  for (size_t i = 0; i < num_steps; ++i) {
    for (const std::vector<Step>& steps : rows) {
      const bool has_stopped = i >= steps.size();
      const Step& step = has_stopped ? steps.back() : steps[i];
      for (size_t beam = 0; beam < step.size(); ++beam) {
        tokens.push_back(step[beam].token);
        parents.push_back(has_stopped ? static_cast<int64_t>(beam) : step[beam].parent);
        scores.values.push_back(step[beam].score);
      }
    }
  }
  return {{to_value(dims, tokens), to_value(dims, parents), to_value(scores)}, dims[0]};
}

}  // namespace

Model make_beam_search(const BeamSearchSize& size) {
  const auto model = std::make_shared<const BeamSearch>(draw(size));
  return {"beam_search",
          std::to_string(size.beams) + " beams, LSTM " + std::to_string(size.hidden) +
              ", vocabulary " + std::to_string(size.vocabulary),
          size.batch,
          "search",
          {{"limit", to_value({}, {size.limit})}, {"start", to_value(model->start)}},
          [model](const OpTable& ops) { return build(*model, ops); },
          [model] { return run_plainly(*model); }};
}

}  // namespace eddy::dynamic
