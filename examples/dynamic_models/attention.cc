#include "examples/dynamic_models/attention.h"

#include <cmath>
#include <memory>

#include "examples/dynamic_models/parts.h"

namespace eddy::dynamic {
namespace {

struct Attention {
  AttentionSize size;
  Array project;  // [all, 3 * all]: queries, keys, values
  Array output;   // [all, all]
  Array x;        // [batch, all]
};

Attention draw(const AttentionSize& size) {
  Random random(size.seed);
  const int64_t all = size.heads * size.width;
  const float range = 2 / std::sqrt(static_cast<float>(all));
  return {size, random_array(random, {all, 3 * all}, range),
          random_array(random, {all, all}, range), random_array(random, {size.batch, all}, 1)};
}

Result<Graph> build(const Attention& attention, const OpTable& ops) {
  const int64_t heads = attention.size.heads;
  const int64_t width = attention.size.width;
  const int64_t batch = attention.size.batch;
  GraphBuilder b(ops, "attention");
  const Value x = float_input(b, "x", attention.x);
  const Value steps = b.input("steps", tensor_type(ElementType::kInt64, {}));
  const Value project = weight(b, attention.project, "project");
  const Value output = weight(b, attention.output, "output");
  const Value empty = weight(b, zeros({batch, heads, 0, width}), "empty");
  const Value scale = b.scalar(1 / std::sqrt(static_cast<float>(width)));
  const Values results =
      for_loop(b, "steps", steps, {x, empty, empty}, 1, [&](Value, ValueSpan carried) {
        const Value projected = b.op("MatMul", {carried[0], project});
        const Values parts = split(b, projected, 3, heads * width);
        if (parts.size() != 3) return Values{};
        const Value query = reshape(b, parts[0], {batch, heads, width, 1});
        const Value keys = join(b, carried[1], reshape(b, parts[1], {batch, heads, 1, width}), 2);
        const Value values = join(b, carried[2], reshape(b, parts[2], {batch, heads, 1, width}), 2);
        const Value scores = b.op("Mul", {b.op("MatMul", {keys, query}), scale});
        const Value shares = b.op("Transpose", {b.op("Softmax", {scores}, {{"axis", 2}})},
                                  {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
        const Value mixed = reshape(b, b.op("MatMul", {shares, values}), {batch, heads * width});
        const Value next = b.op("Tanh", {b.op("MatMul", {mixed, output})});
        return Values{next, keys, values, next};
      });
  if (results.empty()) return b.finish();
  b.output("rows", results[3]);
  b.output("keys", results[1]);
  b.output("values", results[2]);
  return b.finish();
}

// What one head makes of one query; `first` is its first column in the rows of the caches.
void attend(const Array& query, const std::vector<Array>& keys, const std::vector<Array>& values,
            int64_t batch_row, int64_t first, int64_t width, Array& mixed) {
  Array scores = zeros({1, static_cast<int64_t>(keys.size())});
  for (size_t t = 0; t < keys.size(); ++t) {
    for (int64_t i = first; i < first + width; ++i) {
      scores.values[t] += keys[t].at(batch_row, i) * query.at(batch_row, i);
    }
    scores.values[t] /= std::sqrt(static_cast<float>(width));
  }
  const Array shares = softmax(scores);
  for (int64_t i = first; i < first + width; ++i) {
    float sum = 0;
    for (size_t t = 0; t < values.size(); ++t) sum += shares.values[t] * values[t].at(batch_row, i);
    mixed.at(batch_row, i) = sum;
  }
}

// Rows of every step as [batch, heads, steps, width].
HostValue cache_value(const std::vector<Array>& cache, const AttentionSize& size) {
  Array all = {{size.batch, size.heads, size.steps, size.width}, {}};
  for (int64_t r = 0; r < size.batch; ++r) {
    for (int64_t head = 0; head < size.heads; ++head) {
      for (const Array& step : cache) {
        const auto start = step.values.begin() + (r * size.heads + head) * size.width;
        all.values.insert(all.values.end(), start, start + size.width);
      }
    }
  }
  return to_value(all);
}

PlainResult run_plainly(const Attention& attention) {
  const AttentionSize& size = attention.size;
  const int64_t all = size.heads * size.width;
  Array x = attention.x;
  Array rows;
  std::vector<Array> keys, values;
  for (int64_t step = 0; step < size.steps; ++step) {
    const Array parts = multiply(x, attention.project);
    const Array query = columns(parts, 0, all);
    keys.push_back(columns(parts, all, all));
    values.push_back(columns(parts, 2 * all, all));
    Array mixed = zeros({size.batch, all});
    for (int64_t r = 0; r < size.batch; ++r) {
      for (int64_t head = 0; head < size.heads; ++head) {
        attend(query, keys, values, r, head * size.width, size.width, mixed);
      }
    }
    x = map(multiply(mixed, attention.output), hyperbolic);
    push_row(rows, x);
  }
  return {{to_value(rows), cache_value(keys, size), cache_value(values, size)}, size.steps};
}

}  // namespace

Model make_attention(const AttentionSize& size) {
  const auto attention = std::make_shared<const Attention>(draw(size));
  return {"attention",
          std::to_string(size.heads) + " heads of " + std::to_string(size.width) + ", " +
              std::to_string(size.steps) + " steps",
          size.batch,
          "steps",
          {{"x", to_value(attention->x)}, {"steps", to_value({}, {size.steps})}},
          [attention](const OpTable& ops) { return build(*attention, ops); },
          [attention] { return run_plainly(*attention); }};
}

}  // namespace eddy::dynamic
