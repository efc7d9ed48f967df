// The parts in which a Forest is read. Internal to the forest's files.
#pragma once

#include "ops/schema/ml/forest.h"

namespace eddy {

// Names of the attributes with votes: class_* or target_*.
struct VoteNames {
  const char *trees, *nodes, *ids, *weights, *weights_tensor;
};
VoteNames vote_names(ForestKind kind);

// Nodes, leaves and votes of TreeEnsembleRegressor and TreeEnsembleClassifier, in which leaves are
// nodes and children are known by tree and node id.
Status read_trees_by_id(const Attributes& attributes, ForestKind kind, Forest& forest);
// Those of TreeEnsemble, in which children are places in the lists of nodes or of leaves.
Status read_trees_by_place(const Attributes& attributes, Forest& forest);

// Fails where a walk from a root could come back to a node.
Status check_no_cycles(const Forest& forest);

// A list's value as an index below `end`: "nodes_featureids holds -1".
Status read_index(const char* name, int64_t value, int64_t end, int32_t& index);

}  // namespace eddy
