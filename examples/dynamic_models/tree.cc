#include "examples/dynamic_models/tree.h"

#include <cmath>
#include <memory>

#include "examples/dynamic_models/parts.h"

namespace eddy::dynamic {
namespace {

constexpr int64_t kFold = -1;

struct Tree {
  TreeSize size;
  Array encode, encode_bias;  // [2 * hidden, hidden]
  Array decode, decode_bias;  // [hidden, 2 * hidden]
  Array leaves;
  std::vector<int64_t> program;
};

// A tree over leaves [first, first + count), split anywhere.
void draw_program(Random& random, int64_t first, int64_t count, std::vector<int64_t>& program) {
  if (count == 1) {
    program.push_back(first);
    return;
  }
  const int64_t left = 1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(count - 1)));
  draw_program(random, first, left, program);
  draw_program(random, first + left, count - left, program);
  program.push_back(kFold);
}

Tree draw(const TreeSize& size) {
  Random random(size.seed);
  const float range = 1 / std::sqrt(static_cast<float>(size.hidden));
  Tree tree{size,
            random_array(random, {2 * size.hidden, size.hidden}, range),
            random_array(random, {size.hidden}, range),
            random_array(random, {size.hidden, 2 * size.hidden}, range),
            random_array(random, {2 * size.hidden}, range),
            random_array(random, {size.leaves, size.batch, size.hidden}, 1),
            {}};
  draw_program(random, 0, size.leaves, tree.program);
  return tree;
}

// The captured values that an iteration needs.
struct Known {
  Value leaves, encode, encode_bias, decode, decode_bias;
};

Values fold(GraphBuilder& b, const Known& known, const TreeSize& size, Value stack, Value top,
            Value loss) {
  const Value two = b.op("Unsqueeze", {b.op("Sub", {top, b.scalar<int64_t>(2)}), b.int64s({0})});
  Value children = b.op("Slice", {stack, two, b.op("Unsqueeze", {top, b.int64s({0})})});
  if (size.batch > 1) {  // each tree's two side by side
    children = b.op("Transpose", {children}, {{"perm", std::vector<int64_t>{1, 0, 2}}});
  }
  const Value both = reshape(b, children, {size.batch, 2 * size.hidden});
  const Value parent = b.op("Tanh", {linear(b, both, known.encode, known.encode_bias)});
  const Value again = b.op("Tanh", {linear(b, parent, known.decode, known.decode_bias)});
  const Value wrong = b.op("Sub", {again, both});
  const Value square =
      b.op("ReduceSum", {b.op("Mul", {wrong, wrong}), b.int64s({1})}, {{"keepdims", 0}});
  const Value pushed = reshape(b, parent, {1, size.batch, size.hidden});
  return {pushed, b.op("Sub", {top, b.scalar<int64_t>(2)}), b.op("Add", {loss, square}),
          b.scalar<int64_t>(1)};
}

Result<Graph> build(const Tree& tree, const OpTable& ops) {
  GraphBuilder b(ops, "tree");
  const TreeSize& size = tree.size;
  const int64_t num_nodes = static_cast<int64_t>(tree.program.size());
  Known known;
  known.leaves = float_input(b, "leaves", tree.leaves);
  const Value program = b.input("program", tensor_type(ElementType::kInt64, {num_nodes}));
  const Value nodes = b.input("nodes", tensor_type(ElementType::kInt64, {}));
  known.encode = weight(b, tree.encode, "encode");
  known.encode_bias = weight(b, tree.encode_bias, "encode_bias");
  known.decode = weight(b, tree.decode, "decode");
  known.decode_bias = weight(b, tree.decode_bias, "decode_bias");
  const Value stack = weight(b, zeros({size.leaves, size.batch, size.hidden}), "stack");
  const Value no_loss = weight(b, zeros({size.batch}), "no_loss");
  const Value zero = b.scalar<int64_t>(0);
  const Values results = for_loop(
      b, "nodes", nodes, {stack, zero, no_loss, zero}, 1, [&](Value iteration, ValueSpan carried) {
        const Value code = row(b, program, iteration);
        const Values made = b.if_else(
            b.op("Less", {code, zero}),
            [&] { return fold(b, known, size, carried[0], carried[1], carried[2]); },
            [&]() -> Values {
              const Value leaf = b.op("Unsqueeze", {code, b.int64s({0})});
              return {row(b, known.leaves, leaf), carried[1], carried[2], zero};
            });
        if (made.size() != 4) return Values{};
        const Value place = reshape(b, made[1], {1, 1});
        const Value pushed = b.op("ScatterND", {carried[0], place, made[0]});
        return Values{pushed, b.op("Add", {made[1], b.scalar<int64_t>(1)}), made[2],
                      b.op("Add", {carried[3], made[3]}), made[0]};
      });
  if (results.empty()) return b.finish();
  b.output("rows", results[4]);
  b.output("loss", results[2]);
  b.output("folds", results[3]);
  return b.finish();
}

// A node's vectors [batch, hidden] of its children's; what it adds to each tree's loss.
Array fold_plainly(const Tree& tree, const Array& left, const Array& right, Array& loss) {
  const Array both = join_columns(left, right);
  const Array made = map(linear(both, tree.encode, tree.encode_bias), hyperbolic);
  const Array again = map(linear(made, tree.decode, tree.decode_bias), hyperbolic);
  for (int64_t r = 0; r < both.rows(); ++r) {
    float square = 0;
    for (int64_t i = 0; i < both.columns(); ++i) {
      const float wrong = again.at(r, i) - both.at(r, i);
      square += wrong * wrong;
    }
    loss.values[static_cast<size_t>(r)] += square;
  }
  return made;
}

PlainResult run_plainly(const Tree& tree) {
  std::vector<Array> stack;
  Array rows;
  Array loss = zeros({tree.size.batch});
  int64_t folds = 0;
  for (const int64_t code : tree.program) {
    Array made;
    if (code == kFold) {
      made = fold_plainly(tree, stack[stack.size() - 2], stack.back(), loss);
      stack.resize(stack.size() - 2);
      ++folds;
    } else {
      made = row(tree.leaves, code);
    }
    stack.push_back(made);
    made.dims.insert(made.dims.begin(), 1);
    push_row(rows, made);
  }
  return {{to_value(rows), to_value(loss), to_value({}, {folds})},
          static_cast<int64_t>(tree.program.size())};
}

}  // namespace

Model make_tree(const TreeSize& size) {
  const auto tree = std::make_shared<const Tree>(draw(size));
  const int64_t num_nodes = static_cast<int64_t>(tree->program.size());
  return {"tree",
          std::to_string(num_nodes) + " nodes, hidden " + std::to_string(size.hidden),
          size.batch,
          "nodes",
          {{"leaves", to_value(tree->leaves)},
           {"program", to_value({num_nodes}, tree->program)},
           {"nodes", to_value({}, {num_nodes})}},
          [tree](const OpTable& ops) { return build(*tree, ops); },
          [tree] { return run_plainly(*tree); }};
}

}  // namespace eddy::dynamic
