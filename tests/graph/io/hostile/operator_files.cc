#include "tests/graph/io/hostile/hostile_files.h"
#include "tests/graph/io/model_writer.h"

namespace eddy::hostile {
namespace {

using namespace test;  // NOLINT: the vocabulary of model_writer.h

constexpr int64_t kHuge = int64_t{1} << 40;

WireWriter ints(const std::string& name, const std::vector<int64_t>& values) {
  return tensor<int64_t>(name, {static_cast<int64_t>(values.size())}, values);
}

// One operator on x: float[2, 3] and constants; output y. No fixed shapes are known of x where
// `is_open`, so that what it makes is known only when it runs.
std::string one(const WireWriter& op, const Messages& constants = {}, bool is_open = false) {
  const ValueType x = is_open ? floats({-2, -3}) : floats({2, 3});
  return model(graph({.nodes = {op},
                      .inputs = {info("x", x), info("n", int64s({})), info("r", int64s({1}))},
                      .outputs = {untyped("y")},
                      .initializers = constants}));
}

void add_nonsense(HostileFiles& files) {
  const auto add = [&](const char* name, const WireWriter& op, const char* says,
                       const Messages& constants = {}) {
    files.push_back({name, one(op, constants), says});
  };
  add("reshape_to_minus_two", node("Reshape", {"x", "s"}, {"y"}), "-2", {ints("s", {-2})});
  add("reshape_two_unknowns", node("Reshape", {"x", "s"}, {"y"}), "-1", {ints("s", {-1, -1})});
  add("reshape_other_count", node("Reshape", {"x", "s"}, {"y"}), "Reshape", {ints("s", {7})});
  add("reshape_overflow", node("Reshape", {"x", "s"}, {"y"}), "Reshape",
      {ints("s", {kHuge, kHuge})});
  add("reshape_rank_100", node("Reshape", {"x", "s"}, {"y"}), "Reshape",
      {ints("s", std::vector<int64_t>(100, 1))});
  add("transpose_twice_the_same",
      node("Transpose", {"x"}, {"y"}, {attribute("perm", std::vector<int64_t>{1, 1})}),
      "Transpose");
  add("transpose_out_of_range",
      node("Transpose", {"x"}, {"y"}, {attribute("perm", std::vector<int64_t>{0, 7})}),
      "Transpose");
  add("concat_axis_9", node("Concat", {"x", "x"}, {"y"}, {attribute("axis", 9)}), "axis");
  add("concat_axis_int64_min", node("Concat", {"x", "x"}, {"y"}, {attribute("axis", INT64_MIN)}),
      "axis");
  add("gather_axis_minus_9", node("Gather", {"x", "n"}, {"y"}, {attribute("axis", -9)}), "axis");
  add("gather_out_of_range", node("Gather", {"x", "i"}, {"y"}), "out of range", {ints("i", {99})});
  add("split_sum_wrong", node("Split", {"x", "s"}, {"y", "b"}), "Split", {ints("s", {1, 9})});
  add("split_sum_overflow", node("Split", {"x", "s"}, {"y", "b"}), "Split",
      {ints("s", {INT64_MAX, INT64_MAX})});
  add("slice_step_zero", node("Slice", {"x", "a", "b", "a", "z"}, {"y"}), "step",
      {ints("a", {0}), ints("b", {1}), ints("z", {0})});
  add("slice_axis_7", node("Slice", {"x", "a", "b", "c"}, {"y"}), "axis",
      {ints("a", {0}), ints("b", {1}), ints("c", {7})});
  add("squeeze_of_two", node("Squeeze", {"x", "a"}, {"y"}), "Squeeze", {ints("a", {0})});
  add("unsqueeze_twice", node("Unsqueeze", {"x", "a"}, {"y"}), "Unsqueeze", {ints("a", {0, 0})});
  add("cast_to_99", node("Cast", {"x"}, {"y"}, {attribute("to", 99)}), "Cast");
  add("cast_to_nothing", node("Cast", {"x"}, {"y"}, {attribute("to", 0)}), "Cast");
  add("matmul_mismatch", node("MatMul", {"x", "x"}, {"y"}), "MatMul");
  add("conv_of_rank_2", node("Conv", {"x", "x"}, {"y"}), "Conv");
  add("topk_too_many", node("TopK", {"x", "k"}, {"y", "i"}), "TopK", {ints("k", {99})});
  add("topk_negative", node("TopK", {"x", "k"}, {"y", "i"}), "TopK", {ints("k", {-1})});
  add("range_delta_zero", node("Range", {"n", "m", "z"}, {"y"}), "delta",
      {tensor<int64_t>("m", {}, {5}), tensor<int64_t>("z", {}, {0})});
  add("onehot_depth_negative", node("OneHot", {"r", "d", "v"}, {"y"}), "depth",
      {tensor<int64_t>("d", {}, {-5}), tensor<float>("v", {2}, {0, 1})});
  add("pad_below_nothing", node("Pad", {"x", "p"}, {"y"}), "Pad", {ints("p", {-9, 0, 0, 0})});
  add("tile_negative", node("Tile", {"x", "t"}, {"y"}), "Tile", {ints("t", {-1, 1})});
  add("expand_negative", node("Expand", {"x", "s"}, {"y"}), "Expand", {ints("s", {-5, 3})});
  add("fill_negative", node("ConstantOfShape", {"s"}, {"y"}), "ConstantOfShape", {ints("s", {-5})});
  add("sequence_at_99", node("SequenceAt", {"q", "n9"}, {"y"}), "q",
      {tensor<int64_t>("n9", {}, {99})});
}

// Small files that require large memory or time. Some are detected when the file is read, others
// when they run.
void add_bombs(HostileFiles& files) {
  const auto add = [&](const char* name, const WireWriter& op, const char* says,
                       const Messages& constants = {}) {
    files.push_back({name, one(op, constants), says});
  };
  const char* const memory = "resource exhausted";
  add("bomb_fill", node("ConstantOfShape", {"s"}, {"y"}), memory, {ints("s", {kHuge})});
  add("bomb_fill_overflow", node("ConstantOfShape", {"s"}, {"y"}), "overflow",
      {ints("s", {kHuge, kHuge})});
  add("bomb_fill_one_gigabyte", node("ConstantOfShape", {"s"}, {"y"}), memory,
      {ints("s", {1 << 28})});
  add("bomb_expand", node("Expand", {"x", "s"}, {"y"}), memory, {ints("s", {kHuge, 1, 1})});
  add("bomb_tile", node("Tile", {"x", "t"}, {"y"}), memory, {ints("t", {1 << 20, 1 << 20})});
  add("bomb_tile_overflow", node("Tile", {"x", "t"}, {"y"}), "overflow",
      {ints("t", {INT64_MAX, INT64_MAX})});
  add("bomb_pad", node("Pad", {"x", "p"}, {"y"}), memory, {ints("p", {0, 0, kHuge, 0})});
  add("bomb_pad_overflow", node("Pad", {"x", "p"}, {"y"}), "overflow",
      {ints("p", {INT64_MAX, 0, INT64_MAX, 0})});
  add("bomb_range", node("Range", {"a", "m", "b"}, {"y"}), memory,
      {tensor<int64_t>("a", {}, {0}), tensor<int64_t>("m", {}, {kHuge}),
       tensor<int64_t>("b", {}, {1})});
  add("bomb_onehot", node("OneHot", {"r", "d", "v"}, {"y"}), memory,
      {tensor<int64_t>("d", {}, {kHuge}), tensor<float>("v", {2}, {0, 1})});
  add("bomb_random",
      node("RandomNormal", {}, {"y"}, {attribute("shape", std::vector<int64_t>{kHuge})}),
      "RandomNormal");
  add("bomb_product", node("MatMul", {"a", "b"}, {"y"}), memory,
      {tensor<float>("a", {20000, 1}, std::vector<float>(20000, 1)),
       tensor<float>("b", {1, 20000}, std::vector<float>(20000, 1))});
}

// Tensors without elements but with other dimensions to step through, made while reading or, from a
// shape that is multiplied by an input's ones, while running.
void add_empty_bombs(HostileFiles& files) {
  const auto add = [&](const std::string& name, const std::vector<int64_t>& shape,
                       const Messages& rest, const char* says) {
    const Messages constants = {ints("s", shape), ints("big", {0, kHuge, 1 << 20}),
                                tensor<int64_t>("axis", {}, {1})};
    for (const bool is_open : {false, true}) {
      Messages nodes = {node("Cast", {"x"}, {"n"}, {attribute("to", 7)}),
                        node("Mul", {"s", "n"}, {"t"}),
                        node("ConstantOfShape", {is_open ? "t" : "s"}, {"e"})};
      nodes.insert(nodes.end(), rest.begin(), rest.end());
      files.push_back({"bomb_of_nothing_" + name + (is_open ? "_open" : "_folded"),
                       model(graph({.nodes = nodes,
                                    .inputs = {info("x", floats({1}))},
                                    .outputs = {untyped("y")},
                                    .initializers = constants})),
                       says});
    }
  };
  constexpr int64_t kMany = 1 << 27;
  add("fill", {0, kHuge, 1 << 20}, {node("Identity", {"e"}, {"y"})}, "too large");
  add("reshape", {0, kMany}, {node("Reshape", {"e", "big"}, {"y"})}, "too large");
  add("expand", {0, 1, 1}, {node("Expand", {"e", "big"}, {"y"})}, "too large");
  add("cumsum", {1 << 14, 0, 1 << 14},
      {node("CumSum", {"e", "axis"}, {"c"}), node("Gather", {"c", "big"}, {"y"})}, "out of range");
  add("unique", {kMany, 0}, {node("Unique", {"e"}, {"y"}, {attribute("axis", 0)})},
      "resource exhausted");
  add("split", {kMany, 0},
      {node("SplitToSequence", {"e"}, {"q"}), node("SequenceLength", {"q"}, {"y"})},
      "more than 400000 tensors");
}

// Names as a writer of unnamed nodes would make them, so that each must be tried.
void add_taken_names(HostileFiles& files) {
  constexpr int kCount = 10000;
  Messages nodes;
  std::string from = "x";
  for (int i = 0; i < 2 * kCount; ++i) {
    const std::string to = i + 1 == 2 * kCount ? "y" : "v" + std::to_string(i);
    const std::string name = i < kCount ? "Abs_" + std::to_string(kCount + i) : "";
    nodes.push_back(node("Abs", {from}, {to}, {}, name));
    from = to;
  }
  nodes.push_back(node("Gather", {"y", "i"}, {"z"}));
  files.push_back({"names_taken",
                   model(graph({.nodes = nodes,
                                .inputs = {info("x", floats({2}))},
                                .outputs = {untyped("z")},
                                .initializers = {ints("i", {99})}})),
                   "out of range"});
}

// Sixty nodes, each twice as large as the one before.
void add_doubling(HostileFiles& files) {
  Messages nodes;
  for (int i = 0; i < 60; ++i) {
    const std::string from = i == 0 ? "x" : "v" + std::to_string(i);
    const std::string to = i == 59 ? "y" : "v" + std::to_string(i + 1);
    nodes.push_back(node("Concat", {from, from}, {to}, {attribute("axis", 0)}));
  }
  const auto doubling = [&](const ValueType& x) {
    return model(graph({.nodes = nodes, .inputs = {info("x", x)}, .outputs = {untyped("y")}}));
  };
  files.push_back({"bomb_of_doublings", doubling(floats({2, 3})), ""});
  files.push_back({"bomb_of_doublings_unknown", doubling(floats({-2, -3})), "resource exhausted"});
}

// Constants that fold to 48 MiB each, a hundred of them.
void add_folding(HostileFiles& files) {
  Messages nodes;
  Messages constants;
  std::string sum = "f0";
  for (int i = 0; i < 100; ++i) {
    const std::string k = std::to_string(i);
    constants.push_back(ints("s" + k, {(12 << 20) + i}));
    nodes.push_back(node("ConstantOfShape", {"s" + k}, {"f" + k}));
    nodes.push_back(node("ReduceMax", {"f" + k}, {"m" + k}, {attribute("keepdims", 0)}));
  }
  nodes.push_back(node("Gather", {"f0", "n"}, {"y"}));
  files.push_back({"bomb_of_folding",
                   model(graph({.nodes = nodes,
                                .inputs = {info("n", int64s({}))},
                                .outputs = {untyped("y"), untyped("f1"), untyped("f2"),
                                            untyped("f3"), untyped("f4"), untyped("f5")},
                                .initializers = constants})),
                   "resource exhausted"});
}

}  // namespace

HostileFiles operator_files() {
  HostileFiles files;
  add_nonsense(files);
  add_bombs(files);
  add_empty_bombs(files);
  add_taken_names(files);
  add_doubling(files);
  add_folding(files);
  return files;
}

}  // namespace eddy::hostile
