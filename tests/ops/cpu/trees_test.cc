// Claim: random tree ensembles give, by the fast and the plain kernel, in tiles or not, what
// walking the trees as they were made gives: sums and averages, floats and doubles, each
// comparison, missing values, several votes at a leaf, nodes in any order; bit by bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "ops/cpu/cpu_kernels.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

using Words = std::vector<std::string>;
using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

struct Node {
  int64_t id = 0;
  bool is_leaf = true, is_nan_true = false;
  int64_t feature = 0;
  std::string mode;
  double split = 0;
  std::unique_ptr<Node> if_true, if_false;
  std::vector<std::pair<int64_t, float>> votes;
};
struct Ensemble {
  std::string mode = "BRANCH_LEQ", aggregate = "SUM";
  int64_t targets = 1, features = 1;
  bool has_missing = false;
  bool is_mixed = false;           // each node compares in its own way
  bool has_double_splits = false;  // beside the floats that features are
  std::vector<std::unique_ptr<Node>> trees;
};

class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(seed) {}
  int64_t below(int64_t end) {
    return static_cast<int64_t>(random_.below(static_cast<uint64_t>(end)));
  }
  // Few values, so that features often equal splits.
  float value() { return static_cast<float>(below(9)) / 4 - 1; }

  std::unique_ptr<Node> tree(const Ensemble& e, int depth, int64_t& next_id) {
    auto node = std::make_unique<Node>();
    node->id = next_id++;
    node->is_leaf = depth == 0 || below(5) == 0;
    if (node->is_leaf) {
      for (int64_t i = below(3); i >= 0; --i) node->votes.emplace_back(below(e.targets), value());
      return node;
    }
    node->feature = below(e.features);
    node->mode = e.is_mixed ? mode() : e.mode;
    node->split = value();
    if (e.has_double_splits && below(3) > 0) {
      node->split = std::nextafter(node->split, below(2) == 0 ? -9.0 : 9.0);
    }
    node->is_nan_true = e.has_missing && below(2) == 0;
    node->if_true = tree(e, depth - 1, next_id);
    node->if_false = tree(e, depth - 1, next_id);
    return node;
  }

  // Most ensembles compare in one of the first two.
  std::string mode() {
    constexpr const char* kModes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                      "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
    return kModes[below(2) == 0 ? below(2) : below(6)];
  }

  Ensemble ensemble() {
    Ensemble e;
    e.mode = mode();
    e.is_mixed = below(4) == 0;
    e.has_double_splits = below(3) == 0;
    e.aggregate = below(3) == 0 ? "AVERAGE" : "SUM";
    e.targets = 1 + below(3);
    e.features = 1 + below(6);
    e.has_missing = below(2) == 0;
    for (int64_t i = 1 + below(12); i > 0; --i) {
      int64_t next_id = below(3) * 10;
      e.trees.push_back(tree(e, static_cast<int>(1 + below(6)), next_id));
    }
    return e;
  }

  TestTensor rows(ElementType element, int64_t count, int64_t features) {
    TestTensor x(element, {count, features});
    for (int64_t i = 0; i < count * features; ++i) {
      const float each = below(8) == 0 ? std::numeric_limits<float>::quiet_NaN() : value();
      if (element == ElementType::kFloat) {
        x.view().mutable_as<float>()[i] = each;
      } else {
        x.view().mutable_as<double>()[i] = each;
      }
    }
    return x;
  }

 private:
  Random random_;
};

bool goes_true(const Node& node, double x) {
  if (std::isnan(x)) return node.is_nan_true;
  if (node.mode == "BRANCH_LEQ") return x <= node.split;
  if (node.mode == "BRANCH_LT") return x < node.split;
  if (node.mode == "BRANCH_GTE") return x >= node.split;
  if (node.mode == "BRANCH_GT") return x > node.split;
  return (x == node.split) == (node.mode == "BRANCH_EQ");
}

std::vector<double> walk(const Ensemble& e, const TestTensor& x, int64_t row) {
  std::vector<double> sums(static_cast<size_t>(e.targets), 0);
  for (const auto& tree : e.trees) {
    const Node* node = tree.get();
    while (!node->is_leaf) {
      const double value = number_at(x.view(), row * e.features + node->feature);
      node = goes_true(*node, value) ? node->if_true.get() : node->if_false.get();
    }
    for (const auto& [target, weight] : node->votes) sums[static_cast<size_t>(target)] += weight;
  }
  if (e.aggregate == "AVERAGE") {
    for (double& sum : sums) sum /= static_cast<double>(e.trees.size());
  }
  return sums;
}

// Lists of one entry a node. The root comes first of its tree; the others are in any order.
struct Lists {
  Ints trees, ids, features, if_true, if_false, missing, vote_trees, vote_nodes, vote_ids;
  std::vector<double> splits;
  Floats weights;
  Words modes;

  void add(int64_t tree, const Node& node) {
    trees.push_back(tree);
    ids.push_back(node.id);
    features.push_back(node.feature);
    splits.push_back(node.split);
    missing.push_back(node.is_nan_true);
    modes.push_back(node.is_leaf ? "LEAF" : node.mode);
    if_true.push_back(node.is_leaf ? 0 : node.if_true->id);
    if_false.push_back(node.is_leaf ? 0 : node.if_false->id);
    for (const auto& [target, weight] : node.votes) {
      vote_trees.push_back(tree);
      vote_nodes.push_back(node.id);
      vote_ids.push_back(target);
      weights.push_back(weight);
    }
    if (node.is_leaf) return;
    const Node* children[] = {node.if_true.get(), node.if_false.get()};
    if (node.id % 3 == 0) std::swap(children[0], children[1]);
    for (const Node* child : children) add(tree, *child);
  }
};

// The call, which borrows `splits`.
OpCall call_of(const Ensemble& e, const TestTensor& x, TestTensor& splits) {
  Lists lists;
  // Trees are known by any number.
  for (size_t i = 0; i < e.trees.size(); ++i) {
    lists.add(1000 - 7 * static_cast<int64_t>(i), *e.trees[i]);
  }
  OpCall call;
  call.op = "TreeEnsembleRegressor";
  call.domain = "ai.onnx.ml";
  call.opset = 3;
  call.inputs = {x};
  call.attributes = {{"nodes_treeids", lists.trees},
                     {"nodes_nodeids", lists.ids},
                     {"nodes_featureids", lists.features},
                     {"nodes_truenodeids", lists.if_true},
                     {"nodes_falsenodeids", lists.if_false},
                     {"nodes_modes", lists.modes},
                     {"target_treeids", lists.vote_trees},
                     {"target_nodeids", lists.vote_nodes},
                     {"target_ids", lists.vote_ids},
                     {"target_weights", lists.weights},
                     {"n_targets", e.targets},
                     {"aggregate_function", e.aggregate}};
  if (e.has_double_splits) {
    splits = TestTensor::of({static_cast<int64_t>(lists.splits.size())}, lists.splits);
    call.attributes.set("nodes_values_as_tensor",
                        Constant{ElementType::kDouble, splits.dims(), splits.view().data});
  } else {
    call.attributes.set("nodes_values", Floats(lists.splits.begin(), lists.splits.end()));
  }
  if (e.has_missing) call.attributes.set("nodes_missing_value_tracks_true", lists.missing);
  return call;
}

void expect_walks(const Ensemble& e, const TestTensor& x, const TestTensor& y) {
  ASSERT_EQ(y.dims(), (Dims{x.dims()[0], e.targets}));
  const Floats values = y.values<float>();
  for (int64_t row = 0; row < x.dims()[0]; ++row) {
    const std::vector<double> sums = walk(e, x, row);
    for (int64_t i = 0; i < e.targets; ++i) {
      ASSERT_EQ(values[static_cast<size_t>(row * e.targets + i)],
                static_cast<float>(sums[static_cast<size_t>(i)]))
          << "row " << row << ", target " << i;
    }
  }
}

TEST(TreesTest, EqualWalksThroughTheTrees) {
  size_t num_votes = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Maker maker(seed);
    const Ensemble e = maker.ensemble();
    const ElementType element = seed % 3 == 0 ? ElementType::kDouble : ElementType::kFloat;
    const TestTensor x = maker.rows(element, maker.below(70), e.features);
    TestTensor splits;
    const OpCall call = call_of(e, x, splits);
    compare_with_reference(call);
    for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
      expect_walks(e, x, run_one(call, kernels));
    }
    num_votes += call.attributes.get_floats("target_weights").size();
  }
  EXPECT_GT(num_votes, 1000u);
}

TEST(TreesTest, ABigCallRunsInTilesWithTheSameBits) {
  class OwnScratch : public Scratch {
   public:
    void* reserve(size_t size_bytes) override {
      bytes_.resize(size_bytes / sizeof(double) + 1);
      return bytes_.data();
    }

   private:
    std::vector<double> bytes_;
  };
  Maker maker(7);
  Ensemble e;
  e.features = 4;
  for (int i = 0; i < 50; ++i) {
    int64_t next_id = 0;
    e.trees.push_back(maker.tree(e, 5, next_id));
  }
  const TestTensor x = maker.rows(ElementType::kFloat, 1000, e.features);
  TestTensor splits;
  const OpCall call = call_of(e, x, splits);
  KernelRegistry cpu;
  add_cpu_kernels(cpu);
  const auto outputs = infer_op(call);
  ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
  const std::vector<ValueType> inputs = {ValueType(x.type())};
  const std::vector<TensorView> constants(1);
  const auto kernel =
      cpu.bind({*find_op(call), call.attributes, call.opset, call.op, inputs, *outputs, constants});
  ASSERT_TRUE(kernel.is_ok()) << kernel.status().to_string();
  EXPECT_EQ(kernel->provider, "cpu");
  ASSERT_NE(kernel->run_tile, nullptr);
  const TestTensor y(ElementType::kFloat, {1000, 1});
  const TensorView input = x.view();
  TensorView output = y.view();
  OwnScratch scratch;
  Status error;
  const KernelArgs args{.inputs = &input,
                        .outputs = &output,
                        .state = kernel->state.get(),
                        .scratch = &scratch,
                        .error = &error,
                        .num_inputs = 1,
                        .num_outputs = 1};
  const uint32_t tiles = kernel->count_tiles(args);
  EXPECT_GT(tiles, 4u);
  for (uint32_t tile = tiles; tile > 0; --tile) {
    ASSERT_TRUE(kernel->run_tile(args, tile - 1)) << error.to_string();
  }
  expect_walks(e, x, y);
}

TEST(TreesTest, TooFewFeaturesFailTheRun) {
  Maker maker(3);
  Ensemble e;
  e.features = 9;
  int64_t next_id = 0;
  auto root = std::make_unique<Node>();
  root->is_leaf = false;
  root->id = 100;
  root->feature = 8;
  root->mode = e.mode;
  root->if_true = maker.tree(e, 2, next_id);
  root->if_false = maker.tree(e, 2, next_id);
  e.trees.push_back(std::move(root));
  TestTensor splits;
  const OpCall call = call_of(e, maker.rows(ElementType::kFloat, 2, 8), splits);
  for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
    const auto y = run_op(call, kernels);
    ASSERT_FALSE(y.is_ok());
    EXPECT_NE(y.status().message().find("nodes_featureids holds 8, but X has only 8 features"),
              std::string::npos)
        << y.status().message();
  }
}

}  // namespace
}  // namespace eddy::testing
