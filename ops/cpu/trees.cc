// Sums of trees, fast: TreeEnsembleRegressor, TreeEnsembleClassifier and TreeEnsemble of floats or
// doubles, whose nodes compare with numbers.
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

#include "graph/base/check.h"
#include "ops/cpu/families.h"
#include "ops/cpu/tiles.h"
#include "ops/reference/ml/trees.h"

namespace eddy {
namespace {

using namespace cpu;

constexpr int kLanes = 8;
constexpr int64_t kBlockRows = 64;
constexpr int64_t kBlockSums = 4096;
// Walks through trees in a tile: about a hundred microseconds.
constexpr int64_t kTileWalks = 8192;

// How a value compares with a split, as a number; a node's mask has the ways that lead to its child
// if true.
enum Way : uint32_t { kIsLess, kIsEqual, kIsGreater, kIsNan };
constexpr uint32_t kMaskShift = 28;
constexpr int64_t kMaxFeatures = int64_t{1} << kMaskShift;

template <typename Split>
struct FlatNode {
  Split split;
  uint32_t feature;  // with the mask above it
  uint32_t next[2];  // if false, if true
};
static_assert(sizeof(FlatNode<float>) == 16 && sizeof(FlatNode<double>) == 24);
static_assert(kLanes <= kBlockRows);

uint32_t mask_of(const Forest::Node& node) {
  constexpr uint32_t kWays[] = {
      1u << kIsLess | 1u << kIsEqual,     // kLessEqual
      1u << kIsLess,                      // kLess
      1u << kIsGreater | 1u << kIsEqual,  // kGreaterEqual
      1u << kIsGreater,                   // kGreater
      1u << kIsEqual,                     // kEqual
      1u << kIsLess | 1u << kIsGreater,   // kNotEqual
  };
  EDDY_DCHECK(static_cast<size_t>(node.branch) < std::size(kWays)) << "a set of members";
  EDDY_DCHECK(node.feature >= 0 && node.feature < kMaxFeatures) << "feature " << node.feature;
  const uint32_t ways = kWays[static_cast<size_t>(node.branch)];
  return (ways | (node.is_nan_true ? 1u << kIsNan : 0)) << kMaskShift;
}

template <typename Split>
struct FlatState : ForestState {
  std::vector<FlatNode<Split>> nodes;  // then the leaves
  uint32_t num_inner = 0;              // the first leaf
  std::vector<uint32_t> roots;
};

// What nodes have in common decides what a step costs: all compare in one way, some of them with
// missing values that go to the child if true, or each in its own way.
enum class Steps : uint8_t { kLessEqual, kLessEqualOrNan, kLess, kLessOrNan, kAny };

Steps steps_of(const Forest& forest) {
  EDDY_DCHECK(!forest.nodes.empty()) << "a forest of leaves";
  const Branch branch = forest.nodes[0].branch;
  bool has_nan_true = false;
  for (const Forest::Node& node : forest.nodes) {
    if (node.branch != branch) return Steps::kAny;
    has_nan_true = has_nan_true || node.is_nan_true;
  }
  if (branch == Branch::kLessEqual) {
    return has_nan_true ? Steps::kLessEqualOrNan : Steps::kLessEqual;
  }
  if (branch == Branch::kLess) return has_nan_true ? Steps::kLessOrNan : Steps::kLess;
  return Steps::kAny;
}

template <typename T, typename Split, Steps steps>
struct Walk {
  static bool is_true(Split x, Split split, uint32_t feature) {
    if constexpr (steps == Steps::kLessEqual) return x <= split;
    if constexpr (steps == Steps::kLess) return x < split;
    const uint32_t is_nan = x != x;
    if constexpr (steps == Steps::kLessEqualOrNan || steps == Steps::kLessOrNan) {
      const bool is_less = steps == Steps::kLessOrNan ? x < split : x <= split;
      return is_less | (is_nan & (feature >> (kMaskShift + kIsNan)));
    }
    const uint32_t way = uint32_t{x >= split} + uint32_t{x > split} + kIsNan * is_nan;
    return feature >> (kMaskShift + way) & 1;
  }

  static uint32_t step(const FlatNode<Split>* nodes, uint32_t at, const T* row) {
    const FlatNode<Split>& node = nodes[at];
    const auto x = static_cast<Split>(row[node.feature & (kMaxFeatures - 1)]);
    return node.next[is_true(x, node.split, node.feature)];
  }

  static void add_votes(const Forest& forest, uint32_t leaf, double* sums) {
    EDDY_DCHECK(leaf + 1 < forest.first_votes.size()) << "leaf " << leaf;
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
    EDDY_DCHECK(begin <= end && end <= RowsOf(x).rows) << "rows " << begin << " to " << end;
    EDDY_DCHECK(state.forest.num_targets > 0) << "a forest of no target";
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

template <typename T, typename Split>
void set_walk(BoundKernel& kernel, Steps steps) {
  switch (steps) {
    case Steps::kLessEqual:
      return Walk<T, Split, Steps::kLessEqual>::set(kernel);
    case Steps::kLessEqualOrNan:
      return Walk<T, Split, Steps::kLessEqualOrNan>::set(kernel);
    case Steps::kLess:
      return Walk<T, Split, Steps::kLess>::set(kernel);
    case Steps::kLessOrNan:
      return Walk<T, Split, Steps::kLessOrNan>::set(kernel);
    case Steps::kAny:
      return Walk<T, Split, Steps::kAny>::set(kernel);
  }
}

template <typename T, typename Split>
Result<BoundKernel> bind_flat(std::unique_ptr<ForestState> plain) {
  auto state = std::make_unique<FlatState<Split>>();
  static_cast<ForestState&>(*state) = std::move(*plain);
  const Forest& forest = state->forest;
  const auto num_inner = static_cast<uint32_t>(forest.nodes.size());
  const auto place_of = [&](int32_t at) {
    return at >= 0 ? static_cast<uint32_t>(at) : num_inner + static_cast<uint32_t>(~at);
  };
  for (const Forest::Node& node : forest.nodes) {
    state->nodes.push_back({static_cast<Split>(node.split),
                            static_cast<uint32_t>(node.feature) | mask_of(node),
                            {place_of(node.if_false), place_of(node.if_true)}});
  }
  for (int32_t leaf = 0; leaf < forest.num_leaves(); ++leaf) {
    state->nodes.push_back({0, 0, {place_of(~leaf), place_of(~leaf)}});
  }
  for (const int32_t root : forest.roots) state->roots.push_back(place_of(root));
  state->num_inner = num_inner;
  const Steps steps = steps_of(forest);
  state->forest.nodes = {};
  BoundKernel kernel;
  set_walk<T, Split>(kernel, steps);
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
  const bool fits = !forest.nodes.empty() && forest.num_features <= kMaxFeatures &&
                    std::all_of(forest.nodes.begin(), forest.nodes.end(), [](const auto& node) {
                      return node.branch != Branch::kMember && !std::isnan(node.split);
                    });
  if (!is_sum || !fits) {
    return unsupported("only sums of trees without sets of members have a CPU kernel");
  }
  const auto trees = static_cast<int64_t>(forest.roots.size());
  Result<BoundKernel> kernel = element == ElementType::kDouble
                                   ? bind_flat<double, double>(std::move(state))
                               : are_floats(forest) ? bind_flat<float, float>(std::move(state))
                                                    : bind_flat<float, double>(std::move(state));
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
