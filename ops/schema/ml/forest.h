// Forest: the trees of TreeEnsembleRegressor, TreeEnsembleClassifier and TreeEnsemble as flat
// arrays, read from attributes and checked, so that a walk from any root ends at a leaf.
//
//   node 0: x[2] <= 0.5 ? node 1 : leaf 0          roots  0
//   node 1: x[0] <  7   ? leaf 1 : leaf 2          leaf 1 votes 0.25 for target 0, 3 for target 1
//
// A rule checks sizes and names alone (check_forest), as it runs again with shapes that change;
// what takes a look at every node, binding a kernel does (read_forest).
// Errors: invalid_argument that names the attribute, the tree and the node. A leaf that nothing
// votes at is allowed; a vote at a node that is no leaf counts for nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/attributes.h"
#include "ops/schema/ml/ml.h"

namespace eddy {

enum class ForestKind : uint8_t { kRegressor, kClassifier, kTreeEnsemble };
// The numbers are TreeEnsemble's.
enum class Aggregate : uint8_t { kAverage, kSum, kMin, kMax };
enum class Branch : uint8_t {
  kLessEqual,
  kLess,
  kGreaterEqual,
  kGreater,
  kEqual,
  kNotEqual,
  kMember
};

struct Forest {
  struct Node {
    Branch branch = Branch::kLessEqual;
    bool is_nan_true = false;  // where a missing value goes
    int32_t feature = 0;
    double split = 0;                   // kMember: none, but members
    int32_t if_true = 0, if_false = 0;  // node i, or leaf ~i
    int32_t first_member = 0, end_member = 0;
  };
  struct Vote {
    int32_t target = 0;
    double weight = 0;
  };

  std::vector<Node> nodes;
  std::vector<int32_t> roots;        // node i, or leaf ~i, tree by tree
  std::vector<int32_t> first_votes;  // of leaf i; those of the next end them
  std::vector<Vote> votes;
  std::vector<double> members;
  std::vector<double> base_values;  // none, one for all or one for each target
  int64_t num_targets = 0;          // or classes
  int64_t num_features = 0;         // that X must have at least
  Aggregate aggregate = Aggregate::kSum;
  PostTransform transform = PostTransform::kNone;

  int32_t num_leaves() const { return static_cast<int32_t>(first_votes.size()) - 1; }
};

// Targets or classes, where the sizes of all lists agree and the names mean something.
Status check_forest(const Attributes& attributes, ForestKind kind, ElementType x,
                    int64_t& num_targets);
Status read_forest(const Attributes& attributes, ForestKind kind, Forest& forest);

}  // namespace eddy
