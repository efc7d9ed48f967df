// Sums of trees, fast: TreeEnsembleRegressor, TreeEnsembleClassifier and TreeEnsemble of floats or
// doubles, where all nodes compare in one way.
//
//   node  {split, feature, next: if false, if true}  16 or 24 bytes, all trees in one array
//   leaf  a node that leads to itself                so that rows at a leaf need no branch
//
// A block of rows goes through tree after tree: a tree's nodes stay in the cache. Rows step
// together, kLanes at once, until none moves: their loads overlap, and only the end is a branch.
//
// The sums are those of the plain kernel, in double and in the same order, so bits are the same.
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/base/check.h"
#include "ops/cpu/families.h"
#include "ops/cpu/tiles.h"
#include "ops/reference/ml_trees.h"

namespace eddy {
namespace {

using namespace cpu;

constexpr int kLanes = 8;
constexpr int64_t kBlockRows = 64;
constexpr int64_t kBlockSums = 4096;
// Walks through trees in a tile: about a hundred microseconds.
constexpr int64_t kTileWalks = 8192;

template <typename Split>
struct FlatNode {
  Split split;
  uint32_t feature;  // kNanIsTrue is set where a missing value goes to if_true
  uint32_t next[2];  // by what the comparison gives, without a branch
};
constexpr uint32_t kNanIsTrue = 1u << 31;

template <typename Split>
struct FlatState : ForestState {
  std::vector<FlatNode<Split>> nodes;  // then the leaves
  uint32_t num_inner = 0;              // the first leaf
  std::vector<uint32_t> roots;
};

template <Branch branch, typename Split>
bool compare(Split x, Split split) {
  if constexpr (branch == Branch::kLessEqual) return x <= split;
  if constexpr (branch == Branch::kLess) return x < split;
  if constexpr (branch == Branch::kGreaterEqual) return x >= split;
  return x > split;
}

// What the instances of a walk differ in.
template <typename T, typename Split, Branch branch, bool has_nan_true>
struct Walk {
  static uint32_t step(const FlatNode<Split>* nodes, uint32_t at, const T* row) {
    const FlatNode<Split>& node = nodes[at];
    const uint32_t feature = has_nan_true ? node.feature & ~kNanIsTrue : node.feature;
    const auto x = static_cast<Split>(row[feature]);
    bool is_true = compare<branch>(x, node.split);
    if constexpr (has_nan_true) is_true |= (x != x) & ((node.feature & kNanIsTrue) != 0);
    return node.next[is_true];
  }

  static void add_votes(const Forest& forest, uint32_t leaf, double* sums) {
    const int32_t end = forest.first_votes[leaf + 1];
    for (int32_t i = forest.first_votes[leaf]; i < end; ++i) {
      const Forest::Vote& vote = forest.votes[static_cast<size_t>(i)];
      sums[vote.target] += vote.weight;
    }
  }

  // Rows [first, end) through one tree, into their sums.
  static void run_tree(const FlatState<Split>& state, uint32_t root, const T* x, int64_t features,
                       int64_t rows, double* sums) {
    const FlatNode<Split>* const nodes = state.nodes.data();
    for (int64_t first = 0; first < rows; first += kLanes) {
      const auto lanes = static_cast<int>(std::min<int64_t>(kLanes, rows - first));
      uint32_t at[kLanes];
      const T* row[kLanes];
      for (int lane = 0; lane < kLanes; ++lane) {
        at[lane] = root;
        row[lane] = x + (first + std::min(lane, lanes - 1)) * features;
      }
      uint32_t moved;
      do {
        moved = 0;
#pragma GCC unroll 8
        for (int lane = 0; lane < kLanes; ++lane) {
          const uint32_t next = step(nodes, at[lane], row[lane]);
          moved |= next ^ at[lane];
          at[lane] = next;
        }
      } while (moved != 0);
      for (int lane = 0; lane < lanes; ++lane) {
        add_votes(state.forest, at[lane] - state.num_inner,
                  sums + (first + lane) * state.forest.num_targets);
      }
    }
  }

  static bool run_rows(const KernelArgs& args, int64_t begin, int64_t end) {
    const auto& state = static_cast<const FlatState<Split>&>(*args.state);
    const TensorView& x = args.inputs[0];
    if (Status status = state.check_features(x); !status.is_ok()) {
      return args.fail(std::move(status));
    }
    const int64_t features = RowsOf(x).features, targets = state.forest.num_targets;
    const int64_t block =
        std::min(std::clamp<int64_t>(kBlockSums / targets, kLanes, kBlockRows), end - begin);
    const auto count = static_cast<size_t>(block * targets);
    auto* const sums = static_cast<double*>(args.scratch->reserve(count * sizeof(double)));
    if (sums == nullptr && count > 0) {
      return args.fail(resource_exhausted("no memory for " + std::to_string(targets) + " targets"));
    }
    for (int64_t row = begin; row < end; row += block) {
      const int64_t rows = std::min(block, end - row);
      std::fill_n(sums, rows * targets, 0.0);
      for (const uint32_t root : state.roots) {
        run_tree(state, root, x.as<T>() + row * features, features, rows, sums);
      }
      for (int64_t i = 0; i < rows; ++i) {
        state.finish_row(args, row + i, {sums + i * targets, static_cast<size_t>(targets)});
      }
    }
    return true;
  }

  static Tiles tiles(const KernelArgs& args) {
    const auto& state = static_cast<const FlatState<Split>&>(*args.state);
    const int64_t trees = static_cast<int64_t>(state.roots.size());
    return Tiles::of(RowsOf(args.inputs[0]).rows, trees, kTileWalks);
  }

  static void set(BoundKernel& kernel) { set_tiles<tiles, run_rows>(kernel); }
};

template <typename T, typename Split, Branch branch>
void set_walk(BoundKernel& kernel, bool has_nan_true) {
  has_nan_true ? Walk<T, Split, branch, true>::set(kernel)
               : Walk<T, Split, branch, false>::set(kernel);
}

template <typename T, typename Split>
Result<BoundKernel> bind_flat(std::unique_ptr<ForestState> plain, Branch branch) {
  auto state = std::make_unique<FlatState<Split>>();
  static_cast<ForestState&>(*state) = std::move(*plain);
  const Forest& forest = state->forest;
  const auto num_inner = static_cast<uint32_t>(forest.nodes.size());
  const auto place_of = [&](int32_t at) {
    return at >= 0 ? static_cast<uint32_t>(at) : num_inner + static_cast<uint32_t>(~at);
  };
  bool has_nan_true = false;
  for (const Forest::Node& node : forest.nodes) {
    has_nan_true = has_nan_true || node.is_nan_true;
    state->nodes.push_back(
        {static_cast<Split>(node.split),
         static_cast<uint32_t>(node.feature) | (node.is_nan_true ? kNanIsTrue : 0),
         {place_of(node.if_false), place_of(node.if_true)}});
  }
  for (int32_t leaf = 0; leaf < forest.num_leaves(); ++leaf) {
    state->nodes.push_back({0, 0, {place_of(~leaf), place_of(~leaf)}});
  }
  for (const int32_t root : forest.roots) state->roots.push_back(place_of(root));
  state->num_inner = num_inner;
  state->forest.nodes = {};
  BoundKernel kernel;
  switch (branch) {
    case Branch::kLessEqual:
      set_walk<T, Split, Branch::kLessEqual>(kernel, has_nan_true);
      break;
    case Branch::kLess:
      set_walk<T, Split, Branch::kLess>(kernel, has_nan_true);
      break;
    case Branch::kGreaterEqual:
      set_walk<T, Split, Branch::kGreaterEqual>(kernel, has_nan_true);
      break;
    default:
      set_walk<T, Split, Branch::kGreater>(kernel, has_nan_true);
      break;
  }
  kernel.state = std::move(state);
  return kernel;
}

// Whether comparing floats with the splits as floats gives what comparing as doubles does.
bool are_floats(const Forest& forest) {
  return std::all_of(forest.nodes.begin(), forest.nodes.end(), [](const Forest::Node& node) {
    return double{static_cast<float>(node.split)} == node.split;
  });
}

Result<BoundKernel> bind(const KernelInit& init) {
  const ElementType element = init.inputs[0].tensor.element;
  if (element != ElementType::kFloat && element != ElementType::kDouble) {
    return unsupported(std::string(element_type_name(element)) +
                       " is not supported by the CPU kernel of " + init.op.name);
  }
  EDDY_ASSIGN_OR_RETURN(auto state, make_forest_state(init));
  const Forest& forest = state->forest;
  const bool is_sum =
      forest.aggregate == Aggregate::kSum || forest.aggregate == Aggregate::kAverage;
  const bool is_one_way =
      !forest.nodes.empty() && forest.nodes[0].branch <= Branch::kGreater &&
      std::all_of(forest.nodes.begin(), forest.nodes.end(),
                  [&](const Forest::Node& node) { return node.branch == forest.nodes[0].branch; });
  if (!is_sum || !is_one_way) {
    return unsupported("only sums of trees that compare in one way have a CPU kernel");
  }
  const Branch branch = forest.nodes[0].branch;
  const auto trees = static_cast<int64_t>(forest.roots.size());
  Result<BoundKernel> kernel =
      element == ElementType::kDouble ? bind_flat<double, double>(std::move(state), branch)
      : are_floats(forest)            ? bind_flat<float, float>(std::move(state), branch)
                                      : bind_flat<float, double>(std::move(state), branch);
  const TensorType& x = init.inputs[0].tensor;
  const bool is_small = x.is_static() && (x.dims.rank() == 1 || x.dims[0] <= kTileWalks / trees);
  if (is_small) {
    kernel->count_tiles = nullptr;
    kernel->run_tile = nullptr;
  }
  return kernel;
}

}  // namespace

void add_trees_cpu(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, int since_version) {
    registry.add({.op = op,
                  .since_version = since_version,
                  .bind = bind,
                  .domain = kMlDomain,
                  .has_tiles = true});
  };
  add("TreeEnsembleRegressor", 1);
  add("TreeEnsembleClassifier", 1);
  add("TreeEnsemble", 5);
}

}  // namespace eddy
