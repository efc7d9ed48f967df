#include "examples/dynamic_models/language_model.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "examples/dynamic_models/parts.h"

namespace eddy::dynamic {
namespace {

constexpr int64_t kOpset = 24;
constexpr int64_t kStop = 0;
constexpr float kEpsilon = 1e-5f;

struct Layer {
  Array attention_gain, queries, keys, values, output;
  Array unit_gain, gate, up, down;
};

struct LanguageModel {
  LanguageModelSize size;
  Array embedding;  // [vocabulary, hidden]
  std::vector<Layer> layers;
  Array gain, scores;           // [hidden, vocabulary]
  Array cosines, sines;         // [limit, width / 2]
  std::vector<int64_t> prompt;  // [words, batch]

  int64_t hidden() const { return size.heads * size.width; }
};

Array around_one(Random& random, int64_t count) {
  return map(random_array(random, {count}, 0.2f), [](float x) { return 1 + x; });
}

LanguageModel draw(const LanguageModelSize& size) {
  Random random(size.seed);
  LanguageModel model{size, {}, {}, {}, {}, {}, {}, {}};
  const int64_t hidden = model.hidden(), shared = size.shared * size.width;
  const float range = 2 / std::sqrt(static_cast<float>(hidden));
  model.embedding = random_array(random, {size.vocabulary, hidden}, 1);
  for (int64_t i = 0; i < size.layers; ++i) {
    Layer& layer = model.layers.emplace_back();
    layer.attention_gain = around_one(random, hidden);
    layer.queries = random_array(random, {hidden, hidden}, range);
    layer.keys = random_array(random, {hidden, shared}, range);
    layer.values = random_array(random, {hidden, shared}, range);
    layer.output = random_array(random, {hidden, hidden}, range);
    layer.unit_gain = around_one(random, hidden);
    layer.gate = random_array(random, {hidden, size.inner}, range);
    layer.up = random_array(random, {hidden, size.inner}, range);
    layer.down =
        random_array(random, {size.inner, hidden}, 2 / std::sqrt(static_cast<float>(size.inner)));
  }
  model.gain = around_one(random, hidden);
  model.scores = random_array(random, {hidden, size.vocabulary}, range);
  model.cosines = zeros({size.limit, size.width / 2});
  model.sines = model.cosines;
  for (int64_t position = 0; position < size.limit; ++position) {
    for (int64_t i = 0; i < size.width / 2; ++i) {
      const double part = 2.0 * static_cast<double>(i) / static_cast<double>(size.width);
      const double angle = static_cast<double>(position) / std::pow(10'000.0, part);
      model.cosines.at(position, i) = static_cast<float>(std::cos(angle));
      model.sines.at(position, i) = static_cast<float>(std::sin(angle));
    }
  }
  for (int64_t i = 0; i < size.words * size.batch; ++i) {
    const auto others = static_cast<uint64_t>(size.vocabulary - 1);
    model.prompt.push_back(1 + static_cast<int64_t>(random.below(others)));
  }
  return model;
}

Value normalize(GraphBuilder& b, Value x, Value gain) {
  return b.op("RMSNormalization", {x, gain}, {{"axis", -1}, {"epsilon", kEpsilon}});
}

// A layer's weights, in a graph; the loop's body reads them from outside.
struct LayerValues {
  Value attention_gain, queries, keys, values, output;
  Value unit_gain, gate, up, down;

  LayerValues(GraphBuilder& b, const Layer& layer)
      : attention_gain(weight(b, layer.attention_gain, "attention_gain")),
        queries(weight(b, layer.queries, "queries")),
        keys(weight(b, layer.keys, "keys")),
        values(weight(b, layer.values, "values")),
        output(weight(b, layer.output, "output")),
        unit_gain(weight(b, layer.unit_gain, "unit_gain")),
        gate(weight(b, layer.gate, "gate")),
        up(weight(b, layer.up, "up")),
        down(weight(b, layer.down, "down")) {}
};

// Where the step stands: the same for each row.
struct Position {
  Value cosines, sines, ids;

  Value turn(GraphBuilder& b, Value x, int64_t heads) const {
    return b.op("RotaryEmbedding", {x, cosines, sines, ids}, {{"num_heads", heads}});
  }
};

struct StepResult {
  Value x, keys, values;
};

StepResult build_layer(GraphBuilder& b, const LanguageModelSize& size, const LayerValues& layer,
                       const Position& position, Value x, Value keys, Value values) {
  const Value normal = normalize(b, x, layer.attention_gain);
  const Value query = position.turn(b, b.op("MatMul", {normal, layer.queries}), size.heads);
  const Value key = position.turn(b, b.op("MatMul", {normal, layer.keys}), size.shared);
  const Value value = b.op("MatMul", {normal, layer.values});
  const Value inputs[] = {query, key, value, Value(), keys, values};
  const Values attended =
      b.ops("Attention", inputs, {{"q_num_heads", size.heads}, {"kv_num_heads", size.shared}},
            {.num_outputs = 3});
  if (attended.size() != 3) return {};
  x = b.op("Add", {x, b.op("MatMul", {attended[0], layer.output})});
  const Value again = normalize(b, x, layer.unit_gain);
  const Value gate = b.op("Swish", {b.op("MatMul", {again, layer.gate})});
  const Value units = b.op("Mul", {gate, b.op("MatMul", {again, layer.up})});
  return {b.op("Add", {x, b.op("MatMul", {units, layer.down})}), attended[1], attended[2]};
}

Result<Graph> build(const LanguageModel& model, const OpTable& ops) {
  const LanguageModelSize& size = model.size;
  GraphBuilder b(ops, "language_model");
  b.set_opset("", kOpset);
  const Value prompt =
      b.input("prompt", tensor_type(ElementType::kInt64, {size.words, size.batch}));
  const Value limit = b.input("limit", tensor_type(ElementType::kInt64, {}));
  const Value embedding = weight(b, model.embedding, "embedding");
  std::vector<LayerValues> layers;
  for (const Layer& layer : model.layers) layers.emplace_back(b, layer);
  const Value gain = weight(b, model.gain, "gain"), scores = weight(b, model.scores, "scores");
  const Value cosines = weight(b, model.cosines, "cosines"),
              sines = weight(b, model.sines, "sines");
  Array help = zeros({1, 1, size.vocabulary});
  help.values[kStop] = size.eagerness;
  const Value help_to_stop = weight(b, help, "help_to_stop");
  const Value empty = weight(b, zeros({size.batch, size.shared, 0, size.width}), "empty");
  const Value one = b.scalar<int64_t>(1), last = b.scalar<int64_t>(size.words - 1);
  const Value zeros_of_rows =
      b.constant(to_value({size.batch, 1}, std::vector<int64_t>(size.batch, 0)).view(), "zeros");
  const Value stop = b.scalar(kStop);
  Values initial = {row(b, prompt, b.scalar<int64_t>(0))};
  for (int64_t i = 0; i < 2 * size.layers; ++i) initial.push_back(empty);
  const Values results =
      while_true(b, "write", limit, initial, 1, [&](Value iteration, ValueSpan carried) {
        const Position position{cosines, sines, b.op("Add", {zeros_of_rows, iteration})};
        Value x = b.op("Unsqueeze", {row(b, embedding, carried[0]), b.int64s({1})});
        Values next(carried.size());
        for (size_t i = 0; i < layers.size(); ++i) {
          const StepResult step =
              build_layer(b, size, layers[i], position, x, carried[2 * i + 1], carried[2 * i + 2]);
          x = step.x;
          next[2 * i + 1] = step.keys;
          next[2 * i + 2] = step.values;
        }
        const Value eagerness = b.op("Mul", {help_to_stop, b.cast(iteration, ElementType::kFloat)});
        const Value all = b.op("Add", {b.op("MatMul", {normalize(b, x, gain), scores}), eagerness});
        const Value best = reshape(b, b.op("ArgMax", {all}, {{"axis", 2}}), {size.batch});
        const Value written = b.op("Where", {b.op("Equal", {carried[0], stop}), stop, best});
        const Value is_reading = b.op("Less", {iteration, last});
        const Value place = b.op("Min", {b.op("Add", {iteration, one}), last});
        next[0] = b.op("Where", {is_reading, row(b, prompt, place), written});
        const Value is_done = all_of(b, b.op("Equal", {next[0], stop}));
        Values made = {b.op("Not", {is_done})};
        made.insert(made.end(), next.begin(), next.end());
        made.push_back(next[0]);
        return made;
      });
  if (results.empty()) return b.finish();
  b.output("tokens", results.back());
  b.output("keys", results[results.size() - 3]);
  b.output("values", results[results.size() - 2]);
  return b.finish();
}

Array normalize(const Array& x, const Array& gain) {
  Array y = x;
  for (int64_t r = 0; r < x.rows(); ++r) {
    double squares = 0;
    for (int64_t i = 0; i < x.columns(); ++i) squares += std::pow(x.at(r, i), 2.0);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(x.columns()) + kEpsilon);
    for (int64_t i = 0; i < x.columns(); ++i) {
      y.at(r, i) = static_cast<float>(x.at(r, i) * scale) * gain.at(0, i);
    }
  }
  return y;
}

// Turns each head by the position's angles: element i with element i + width / 2.
Array turn(Array x, const LanguageModel& model, int64_t position) {
  const int64_t width = model.size.width, half = width / 2;
  for (int64_t r = 0; r < x.rows(); ++r) {
    for (int64_t first = 0; first < x.columns(); first += width) {
      for (int64_t i = 0; i < half; ++i) {
        const float cosine = model.cosines.at(position, i), sine = model.sines.at(position, i);
        const float a = x.at(r, first + i), c = x.at(r, first + half + i);
        x.at(r, first + i) = a * cosine - c * sine;
        x.at(r, first + half + i) = a * sine + c * cosine;
      }
    }
  }
  return x;
}

// A row a step: [batch, shared * width].
struct Cache {
  std::vector<Array> keys, values;
};

Array attend(const Array& query, const Cache& cache, const LanguageModelSize& size) {
  Array mixed = zeros({query.rows(), query.columns()});
  const float scale = 1 / std::sqrt(static_cast<float>(size.width));
  for (int64_t r = 0; r < query.rows(); ++r) {
    for (int64_t head = 0; head < size.heads; ++head) {
      const int64_t from = head * size.width, at = head / (size.heads / size.shared) * size.width;
      Array weights = zeros({1, static_cast<int64_t>(cache.keys.size())});
      for (size_t t = 0; t < cache.keys.size(); ++t) {
        for (int64_t i = 0; i < size.width; ++i) {
          weights.values[t] += query.at(r, from + i) * cache.keys[t].at(r, at + i);
        }
        weights.values[t] *= scale;
      }
      weights = softmax(weights);
      for (size_t t = 0; t < cache.values.size(); ++t) {
        for (int64_t i = 0; i < size.width; ++i) {
          mixed.at(r, from + i) += weights.values[t] * cache.values[t].at(r, at + i);
        }
      }
    }
  }
  return mixed;
}

float swish(float x) { return x * sigmoid(x); }
float product(float x, float y) { return x * y; }

Array run_layer(const LanguageModel& model, const Layer& layer, int64_t position, Array x,
                Cache& cache) {
  const Array normal = normalize(x, layer.attention_gain);
  const Array query = turn(multiply(normal, layer.queries), model, position);
  cache.keys.push_back(turn(multiply(normal, layer.keys), model, position));
  cache.values.push_back(multiply(normal, layer.values));
  x = add(x, multiply(attend(query, cache, model.size), layer.output));
  const Array again = normalize(x, layer.unit_gain);
  const Array gate = map(multiply(again, layer.gate), swish);
  return add(x, multiply(zip(gate, multiply(again, layer.up), product), layer.down));
}

// Rows of every step as [batch, shared heads, steps, width].
HostValue cache_value(const std::vector<Array>& rows, const LanguageModelSize& size) {
  Array all = {{size.batch, size.shared, static_cast<int64_t>(rows.size()), size.width}, {}};
  for (int64_t r = 0; r < size.batch; ++r) {
    for (int64_t head = 0; head < size.shared; ++head) {
      for (const Array& step : rows) {
        const auto start = step.values.begin() + (r * size.shared + head) * size.width;
        all.values.insert(all.values.end(), start, start + size.width);
      }
    }
  }
  return to_value(all);
}

PlainResult run_plainly(const LanguageModel& model) {
  const LanguageModelSize& size = model.size;
  std::vector<Cache> caches(model.layers.size());
  std::vector<int64_t> tokens(model.prompt.begin(), model.prompt.begin() + size.batch);
  std::vector<int64_t> written;
  int64_t steps = 0;
  for (bool is_going = true; is_going && steps < size.limit; ++steps) {
    Array x;
    for (const int64_t token : tokens) push_row(x, row(model.embedding, token));
    for (size_t i = 0; i < caches.size(); ++i) {
      x = run_layer(model, model.layers[i], steps, x, caches[i]);
    }
    Array scores = multiply(normalize(x, model.gain), model.scores);
    for (int64_t r = 0; r < size.batch; ++r) {
      scores.at(r, kStop) += size.eagerness * static_cast<float>(steps);
      int64_t& token = tokens[static_cast<size_t>(r)];
      const bool is_reading = steps < size.words - 1;
      if (is_reading) {
        token = model.prompt[static_cast<size_t>((steps + 1) * size.batch + r)];
      } else if (token != kStop) {
        token = argmax(scores, r);
      }
    }
    written.insert(written.end(), tokens.begin(), tokens.end());
    is_going = std::ranges::any_of(tokens, [](int64_t token) { return token != kStop; });
  }
  return {{to_value({steps, size.batch}, written), cache_value(caches.back().keys, size),
           cache_value(caches.back().values, size)},
          steps};
}

}  // namespace

Model make_language_model(const LanguageModelSize& size) {
  const auto model = std::make_shared<const LanguageModel>(draw(size));
  return {"language_model",
          std::to_string(size.layers) + " layers, " + std::to_string(size.heads) + " heads of " +
              std::to_string(size.width) + ", vocabulary " + std::to_string(size.vocabulary),
          size.batch,
          "write",
          {{"prompt", to_value({size.words, size.batch}, model->prompt)},
           {"limit", to_value({}, {size.limit})}},
          [model](const OpTable& ops) { return build(*model, ops); },
          [model] { return run_plainly(*model); }};
}

}  // namespace eddy::dynamic
