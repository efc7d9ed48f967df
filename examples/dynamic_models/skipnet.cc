#include "examples/dynamic_models/skipnet.h"

#include <cmath>
#include <memory>

#include "examples/dynamic_models/parts.h"

namespace eddy::dynamic {
namespace {

constexpr int64_t kGate = 10;      // hidden size of the gates' cell
constexpr int64_t kExpansion = 4;  // of a bottleneck

struct Filter {
  Array weights, bias;
};

struct Block {
  size_t stage = 0;
  int64_t stride = 1;
  Filter narrow, middle, wide;  // 1 x 1, 3 x 3, 1 x 1
  Filter shortcut;              // 1 x 1 where the shape changes, else empty

  bool has_shortcut() const { return !shortcut.weights.dims.empty(); }
};

struct SkipNet {
  SkipNetSize size;
  Filter stem;  // 7 x 7
  std::vector<Block> blocks;
  std::vector<Array> looks;  // of each stage: [channels, kGate]
  Array gate, gate_bias;     // LSTM cell
  Array verdict;             // [kGate, 1]
  Array output;
  Array x;
};

Filter draw_filter(Random& random, int64_t to, int64_t from, int64_t k) {
  const float range = 1.5f / std::sqrt(static_cast<float>(from * k * k));
  return {random_array(random, {to, from, k, k}, range), random_array(random, {to}, 0.1f)};
}

SkipNet draw(const SkipNetSize& size) {
  Random random(size.seed);
  SkipNet model;
  model.size = size;
  model.stem = draw_filter(random, size.width, 3, 7);
  int64_t from = size.width;
  int64_t width = size.width;
  for (size_t stage = 0; stage < size.blocks.size(); ++stage, width *= 2) {
    const int64_t to = kExpansion * width;
    for (int64_t i = 0; i < size.blocks[stage]; ++i) {
      const int64_t stride = i == 0 && stage > 0 ? 2 : 1;
      Block block{stage,
                  stride,
                  draw_filter(random, width, from, 1),
                  draw_filter(random, width, width, 3),
                  draw_filter(random, to, width, 1),
                  {}};
      if (i == 0) block.shortcut = draw_filter(random, to, from, 1);
      model.blocks.push_back(std::move(block));
      from = to;
    }
    model.looks.push_back(random_array(random, {to, kGate}, 8 / std::sqrt(static_cast<float>(to))));
  }
  model.gate = random_array(random, {2 * kGate, 4 * kGate}, 2);
  model.gate_bias = random_array(random, {4 * kGate}, 1);
  model.verdict = random_array(random, {kGate, 1}, 1);
  model.output = random_array(random, {from, size.classes}, 1);
  // Images of different contrast: else all would be judged alike.
  for (int64_t i = 0; i < size.batch; ++i) {
    push_row(model.x, random_array(random, {3, size.image, size.image}, random.uniform(0.1f, 3)));
  }
  return model;
}

Value convolve(GraphBuilder& b, Value x, const Filter& filter, int64_t stride) {
  return convolve(b, x, filter.weights, filter.bias, stride);
}

// True for a batch when any image's gate is open.
Value is_any_open(GraphBuilder& b, Value is_open, int64_t batch) {
  if (batch == 1) return is_open;
  const Value numbers = b.cast(is_open, ElementType::kInt32);
  return b.cast(b.op("ReduceMax", {numbers}, {{"keepdims", 0}}), ElementType::kBool);
}

// {x, taken} after the block, computed or not.
Values build_block(GraphBuilder& b, const Block& block, int64_t batch, Value score, Value x,
                   Value shortcut, Value taken) {
  const Value is_open = b.op("Greater", {score, b.scalar(0.0f)});
  return b.if_else(
      is_any_open(b, is_open, batch),
      [&]() -> Values {
        Value inner = b.op("Relu", {convolve(b, x, block.narrow, 1)});
        inner = b.op("Relu", {convolve(b, inner, block.middle, block.stride)});
        const Value sum = b.op("Add", {shortcut, convolve(b, inner, block.wide, 1)});
        const Value made = b.op("Relu", {sum});
        if (batch == 1) return {made, b.op("Add", {taken, b.scalar<int64_t>(1)})};
        const Value mine = reshape(b, is_open, {batch, 1, 1, 1});
        const Value count =
            b.op("ReduceSum", {b.cast(is_open, ElementType::kInt64)}, {{"keepdims", 0}});
        return {b.op("Where", {mine, made, shortcut}), b.op("Add", {taken, count})};
      },
      [&]() -> Values {
        return {shortcut, taken};
      });
}

Result<Graph> build(const SkipNet& model, const OpTable& ops) {
  GraphBuilder b(ops, "skipnet");
  const int64_t batch = model.size.batch;
  Value x = float_input(b, "x", model.x);
  x = max_pool(b, b.op("Relu", {convolve(b, x, model.stem, 2)}));
  Values looks;
  for (const Array& look : model.looks) looks.push_back(weight(b, look, "look"));
  const Value gate = weight(b, model.gate, "gate");
  const Value gate_bias = weight(b, model.gate_bias, "gate_bias");
  const Value verdict = weight(b, model.verdict, "verdict");
  const Value zero = weight(b, zeros({batch, kGate}), "zero");
  LstmState state{zero, zero};
  Value taken = b.scalar<int64_t>(0);
  Values scores;
  for (const Block& block : model.blocks) {
    const Value shortcut = block.has_shortcut() ? convolve(b, x, block.shortcut, block.stride) : x;
    const Value look = b.op("MatMul", {pool(b, shortcut), looks[block.stage]});
    state = lstm_step(b, look, state, gate, gate_bias, kGate);
    scores.push_back(b.op("MatMul", {state.h, verdict}));
    const Values next = build_block(b, block, batch, scores.back(), x, shortcut, taken);
    if (next.size() != 2) return b.finish();
    x = next[0];
    taken = next[1];
  }
  b.output("gates", b.op("Concat", scores, {{"axis", 1}}));
  b.output("logits", b.op("MatMul", {pool(b, x), weight(b, model.output, "output")}));
  b.output("taken", taken);
  return b.finish();
}

Array convolve(const Array& x, const Filter& filter, int64_t stride) {
  return add_bias(convolve(x, filter.weights, stride), filter.bias);
}

struct Classified {
  Array scores, logits;
  int64_t taken = 0;
};

Classified classify_plainly(const SkipNet& model, const Array& image) {
  Array x = max_pool(map(convolve(image, model.stem, 2), relu));
  PlainLstmState state{zeros({1, kGate}), zeros({1, kGate})};
  Classified result{{{1, static_cast<int64_t>(model.blocks.size())}, {}}, {}, 0};
  for (const Block& block : model.blocks) {
    const Array shortcut = block.has_shortcut() ? convolve(x, block.shortcut, block.stride) : x;
    state = lstm_step(multiply(pool(shortcut), model.looks[block.stage]), state, model.gate,
                      model.gate_bias);
    result.scores.values.push_back(multiply(state.h, model.verdict).values[0]);
    if (result.scores.values.back() > 0) {
      Array inner = map(convolve(x, block.narrow, 1), relu);
      inner = map(convolve(inner, block.middle, block.stride), relu);
      x = map(add(shortcut, convolve(inner, block.wide, 1)), relu);
      ++result.taken;
    } else {
      x = shortcut;
    }
  }
  result.logits = multiply(pool(x), model.output);
  return result;
}

// Each image alone.
PlainResult run_plainly(const SkipNet& model) {
  Array scores, logits;
  int64_t taken = 0;
  for (int64_t i = 0; i < model.size.batch; ++i) {
    Array image = row(model.x, i);
    image.dims.insert(image.dims.begin(), 1);
    const Classified one = classify_plainly(model, image);
    push_row(scores, row(one.scores, 0));
    push_row(logits, row(one.logits, 0));
    taken += one.taken;
  }
  return {{to_value(scores), to_value(logits), to_value({}, {taken})}, taken};
}

}  // namespace

Model make_skipnet(const SkipNetSize& size) {
  const auto model = std::make_shared<const SkipNet>(draw(size));
  return {"skipnet",
          std::to_string(model->blocks.size()) + " blocks, width " + std::to_string(size.width) +
              ", image " + std::to_string(size.image),
          size.batch,
          "",
          {{"x", to_value(model->x)}},
          [model](const OpTable& ops) { return build(*model, ops); },
          [model] { return run_plainly(*model); }};
}

}  // namespace eddy::dynamic
