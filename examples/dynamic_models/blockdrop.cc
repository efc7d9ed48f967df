#include "examples/dynamic_models/blockdrop.h"

#include <cmath>
#include <memory>

#include "examples/dynamic_models/parts.h"

namespace eddy::dynamic {
namespace {

constexpr int64_t kStages = 3;
constexpr int64_t kClasses = 10;

struct Block {
  int64_t stride = 1;
  Array first, second;  // 3 x 3 filters
  Array shortcut;       // 1 x 1 filter where the shape changes, else empty
};

struct BlockDrop {
  BlockDropSize size;
  Array stem;
  std::vector<Block> blocks;
  Array output;
  Array x;
  std::vector<int64_t> gates;
};

Array draw_filter(Random& random, int64_t to, int64_t from, int64_t k) {
  return random_array(random, {to, from, k, k}, 1.5f / std::sqrt(static_cast<float>(from * k * k)));
}

BlockDrop draw(const BlockDropSize& size) {
  Random random(size.seed);
  BlockDrop model{size, draw_filter(random, size.channels, 3, 3), {}, {}, {}, {}};
  int64_t from = size.channels;
  for (int64_t i = 0; i < kStages * size.blocks_per_stage; ++i) {
    const bool is_next_stage = i > 0 && i % size.blocks_per_stage == 0;
    const int64_t to = is_next_stage ? 2 * from : from;
    Block block{is_next_stage ? 2 : 1,
                draw_filter(random, to, from, 3),
                draw_filter(random, to, to, 3),
                {}};
    if (is_next_stage) block.shortcut = draw_filter(random, to, from, 1);
    model.blocks.push_back(std::move(block));
    from = to;
  }
  model.output = random_array(random, {from, kClasses}, 1);
  model.x = random_array(random, {size.batch, 3, size.image, size.image}, 1);
  // As many open gates as requested, anywhere.
  model.gates.assign(model.blocks.size(), 0);
  for (int64_t open = 0; open < size.open;) {
    int64_t& gate = model.gates[random.below(model.gates.size())];
    open += gate == 0;
    gate = 1;
  }
  return model;
}

Values build_block(GraphBuilder& b, const Block& block, Value gate, Value x, Value taken) {
  const Value shortcut =
      block.shortcut.dims.empty() ? x : convolve(b, x, block.shortcut, block.stride);
  return b.if_else(
      b.cast(gate, ElementType::kBool),
      [&]() -> Values {
        const Value inner = b.op("Relu", {convolve(b, x, block.first, block.stride)});
        const Value sum = b.op("Add", {shortcut, convolve(b, inner, block.second, 1)});
        return {b.op("Relu", {sum}), b.op("Add", {taken, b.scalar<int64_t>(1)})};
      },
      [&]() -> Values {
        return {shortcut, taken};
      });
}

Result<Graph> build(const BlockDrop& model, const OpTable& ops) {
  GraphBuilder b(ops, "blockdrop");
  Value x = float_input(b, "x", model.x);
  const int64_t num_blocks = static_cast<int64_t>(model.blocks.size());
  const Value gates = b.input("gates", tensor_type(ElementType::kInt64, {num_blocks}));
  x = b.op("Relu", {convolve(b, x, model.stem, 1)});
  Value taken = b.scalar<int64_t>(0);
  Values means;
  for (int64_t i = 0; i < num_blocks; ++i) {
    const Values next =
        build_block(b, model.blocks[static_cast<size_t>(i)], row(b, gates, b.scalar(i)), x, taken);
    if (next.size() != 2) return b.finish();
    x = next[0];
    taken = next[1];
    means.push_back(pool(b, x));
  }
  b.output("means", b.op("Concat", means, {{"axis", 1}}));
  b.output("logits", b.op("MatMul", {means.back(), weight(b, model.output, "output")}));
  b.output("taken", taken);
  return b.finish();
}

PlainResult run_plainly(const BlockDrop& model) {
  Array x = map(convolve(model.x, model.stem, 1), relu);
  Array means;
  Array mean;
  int64_t taken = 0;
  for (size_t i = 0; i < model.blocks.size(); ++i) {
    const Block& block = model.blocks[i];
    const Array shortcut =
        block.shortcut.dims.empty() ? x : convolve(x, block.shortcut, block.stride);
    if (model.gates[i] != 0) {
      const Array inner = map(convolve(x, block.first, block.stride), relu);
      x = map(add(shortcut, convolve(inner, block.second, 1)), relu);
      ++taken;
    } else {
      x = shortcut;
    }
    mean = pool(x);
    means = i == 0 ? mean : join_columns(means, mean);
  }
  return {{to_value(means), to_value(multiply(mean, model.output)), to_value({}, {taken})}, taken};
}

}  // namespace

Model make_blockdrop(const BlockDropSize& size) {
  const auto model = std::make_shared<const BlockDrop>(draw(size));
  const int64_t num_blocks = static_cast<int64_t>(model->blocks.size());
  return {"blockdrop",
          std::to_string(size.open) + " of " + std::to_string(num_blocks) + " blocks, image " +
              std::to_string(size.image),
          size.batch,
          "",
          {{"x", to_value(model->x)}, {"gates", to_value({num_blocks}, model->gates)}},
          [model](const OpTable& ops) { return build(*model, ops); },
          [model] { return run_plainly(*model); }};
}

}  // namespace eddy::dynamic
