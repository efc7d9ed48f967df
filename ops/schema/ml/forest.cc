#include "ops/schema/ml/forest.h"

#include <algorithm>

#include "graph/base/check.h"
#include "ops/schema/ml/forest_parts.h"

namespace eddy {
namespace {

std::string text(int64_t value) { return std::to_string(value); }

int64_t ints_in(const Attributes& attributes, std::string_view name) {
  return static_cast<int64_t>(attributes.get_ints(name).size());
}

// A choice that is a name, or TreeEnsemble's number.
Status read_aggregate(const Attributes& attributes, ForestKind kind, Aggregate& aggregate) {
  constexpr std::string_view kNames[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  if (kind == ForestKind::kTreeEnsemble) {
    const int64_t number = attributes.get_int("aggregate_function", 1);
    if (number < 0 || number > 3) {
      return invalid_argument("aggregate_function must be 0 to 3, not " + text(number));
    }
    aggregate = static_cast<Aggregate>(number);
    return Status::ok();
  }
  const std::string_view name = attributes.get_string("aggregate_function", "SUM");
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name != kNames[i]) continue;
    aggregate = static_cast<Aggregate>(i);
    return Status::ok();
  }
  return invalid_argument("aggregate_function must be AVERAGE, SUM, MIN or MAX, not '" +
                          std::string(name) + "'");
}

Status read_transform(const Attributes& attributes, ForestKind kind, PostTransform& transform) {
  if (kind != ForestKind::kTreeEnsemble) return read_post_transform(attributes, transform);
  const int64_t number = attributes.get_int("post_transform", 0);
  if (number < 0 || number > 4) {
    return invalid_argument("post_transform must be 0 to 4, not " + text(number));
  }
  transform = static_cast<PostTransform>(number);
  return Status::ok();
}

Status read_base_values(const Attributes& attributes, ForestKind kind, int64_t num_targets,
                        NumberList& values) {
  if (kind == ForestKind::kTreeEnsemble) return Status::ok();
  EDDY_RETURN_IF_ERROR(
      NumberList::read(attributes, "base_values", "base_values_as_tensor", values));
  if (values.size() <= 1 || values.size() == num_targets) return Status::ok();
  return invalid_argument("base_values holds " + text(values.size()) + " values for " +
                          text(num_targets) + " targets");
}

Status read_num_targets(const Attributes& attributes, ForestKind kind, int64_t& num_targets) {
  if (kind == ForestKind::kClassifier) {
    ClassLabels labels;
    EDDY_RETURN_IF_ERROR(read_class_labels(attributes, "classlabels_int64s", labels));
    num_targets = labels.count();
    if (num_targets >= 2) return Status::ok();
    return invalid_argument("a classifier needs two classes or more");
  }
  num_targets = attributes.get_int("n_targets", 0);
  if (num_targets >= 1 && num_targets <= INT32_MAX) return Status::ok();
  return invalid_argument("n_targets must lie in 1 to 2147483647, not " + text(num_targets));
}

// The lists of integers that must be as long as the nodes are many.
Status check_node_lists(const Attributes& attributes, std::span<const char* const> names,
                        std::string_view what, int64_t num_nodes) {
  for (const char* name : names) {
    EDDY_RETURN_IF_ERROR(check_equal_sizes(name, ints_in(attributes, name), what, num_nodes));
  }
  const int64_t missing = ints_in(attributes, "nodes_missing_value_tracks_true");
  if (missing > 0) {
    EDDY_RETURN_IF_ERROR(
        check_equal_sizes("nodes_missing_value_tracks_true", missing, what, num_nodes));
  }
  if (num_nodes > 0 && num_nodes <= INT32_MAX) return Status::ok();
  return invalid_argument("a tree ensemble needs nodes, and has " + text(num_nodes));
}

Status check_lists_by_id(const Attributes& attributes, ForestKind kind) {
  const int64_t num_nodes = ints_in(attributes, "nodes_treeids");
  constexpr const char* kLists[] = {"nodes_nodeids", "nodes_featureids", "nodes_truenodeids",
                                    "nodes_falsenodeids"};
  EDDY_RETURN_IF_ERROR(check_node_lists(attributes, kLists, "nodes_treeids", num_nodes));
  EDDY_RETURN_IF_ERROR(check_equal_sizes(
      "nodes_modes", static_cast<int64_t>(attributes.get_strings("nodes_modes").size()),
      "nodes_treeids", num_nodes));
  NumberList splits, weights;
  EDDY_RETURN_IF_ERROR(
      NumberList::read(attributes, "nodes_values", "nodes_values_as_tensor", splits));
  EDDY_RETURN_IF_ERROR(
      check_equal_sizes("nodes_values", splits.size(), "nodes_treeids", num_nodes));
  const VoteNames names = vote_names(kind);
  EDDY_RETURN_IF_ERROR(NumberList::read(attributes, names.weights, names.weights_tensor, weights));
  for (const char* name : {names.trees, names.nodes, names.ids}) {
    EDDY_RETURN_IF_ERROR(
        check_equal_sizes(name, ints_in(attributes, name), names.weights, weights.size()));
  }
  if (weights.size() <= INT32_MAX) return Status::ok();
  return invalid_argument(std::string(names.weights) + " holds too many values");
}

// A tensor of TreeEnsemble, which has the type of X.
Status check_tensor(const Attributes& attributes, const char* name, ElementType x,
                    NumberList& list) {
  EDDY_RETURN_IF_ERROR(NumberList::read(attributes, name, name, list));
  if (list.size() == 0 || x == ElementType::kUndefined || list.element() == x) {
    return Status::ok();
  }
  return invalid_argument(std::string(name) + " is " +
                          std::string(element_type_name(list.element())) + ", but X is " +
                          std::string(element_type_name(x)));
}

Status check_lists_by_place(const Attributes& attributes, ElementType x) {
  NumberList splits, weights, members;
  EDDY_RETURN_IF_ERROR(check_tensor(attributes, "nodes_splits", x, splits));
  EDDY_RETURN_IF_ERROR(check_tensor(attributes, "leaf_weights", x, weights));
  EDDY_RETURN_IF_ERROR(check_tensor(attributes, "membership_values", x, members));
  constexpr const char* kLists[] = {"nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids",
                                    "nodes_trueleafs", "nodes_falseleafs"};
  EDDY_RETURN_IF_ERROR(check_node_lists(attributes, kLists, "nodes_splits", splits.size()));
  const Constant* modes = attributes.get_tensor_or_null("nodes_modes");
  if (modes == nullptr || modes->element != ElementType::kUint8 || modes->dims.rank() != 1) {
    return invalid_argument("nodes_modes must be a list of uint8");
  }
  EDDY_RETURN_IF_ERROR(
      check_equal_sizes("nodes_modes", modes->dims[0], "nodes_splits", splits.size()));
  EDDY_RETURN_IF_ERROR(check_equal_sizes("leaf_targetids", ints_in(attributes, "leaf_targetids"),
                                         "leaf_weights", weights.size()));
  if (weights.size() == 0 || weights.size() > INT32_MAX || members.size() > INT32_MAX ||
      attributes.get_ints("tree_roots").empty()) {
    return invalid_argument("a tree ensemble needs leaf_weights and tree_roots");
  }
  return Status::ok();
}

}  // namespace

VoteNames vote_names(ForestKind kind) {
  if (kind == ForestKind::kClassifier) {
    return {"class_treeids", "class_nodeids", "class_ids", "class_weights",
            "class_weights_as_tensor"};
  }
  return {"target_treeids", "target_nodeids", "target_ids", "target_weights",
          "target_weights_as_tensor"};
}

Status read_index(const char* name, int64_t value, int64_t end, int32_t& index) {
  EDDY_DCHECK(end <= int64_t{INT32_MAX} + 1) << end;
  if (value < 0 || value >= end) {
    return invalid_argument(std::string(name) + " holds " + text(value) + ", which is not in 0.." +
                            text(end - 1));
  }
  index = static_cast<int32_t>(value);
  return Status::ok();
}

Status check_forest(const Attributes& attributes, ForestKind kind, ElementType x,
                    int64_t& num_targets) {
  Aggregate aggregate;
  PostTransform transform;
  NumberList base_values;
  EDDY_RETURN_IF_ERROR(read_num_targets(attributes, kind, num_targets));
  EDDY_RETURN_IF_ERROR(read_aggregate(attributes, kind, aggregate));
  EDDY_RETURN_IF_ERROR(read_transform(attributes, kind, transform));
  EDDY_RETURN_IF_ERROR(read_base_values(attributes, kind, num_targets, base_values));
  if (kind == ForestKind::kTreeEnsemble) return check_lists_by_place(attributes, x);
  return check_lists_by_id(attributes, kind);
}

Status read_forest(const Attributes& attributes, ForestKind kind, Forest& forest) {
  forest = {};
  EDDY_RETURN_IF_ERROR(check_forest(attributes, kind, ElementType::kUndefined, forest.num_targets));
  EDDY_RETURN_IF_ERROR(read_aggregate(attributes, kind, forest.aggregate));
  EDDY_RETURN_IF_ERROR(read_transform(attributes, kind, forest.transform));
  NumberList base_values;
  EDDY_RETURN_IF_ERROR(read_base_values(attributes, kind, forest.num_targets, base_values));
  for (int64_t i = 0; i < base_values.size(); ++i) forest.base_values.push_back(base_values[i]);
  if (kind == ForestKind::kTreeEnsemble) {
    EDDY_RETURN_IF_ERROR(read_trees_by_place(attributes, forest));
  } else {
    EDDY_RETURN_IF_ERROR(read_trees_by_id(attributes, kind, forest));
  }
  for (const Forest::Node& node : forest.nodes) {
    forest.num_features = std::max<int64_t>(forest.num_features, int64_t{node.feature} + 1);
  }
  return check_no_cycles(forest);
}

Status check_no_cycles(const Forest& forest) {
  enum class Mark : uint8_t { kNew, kOpen, kDone };
  std::vector<Mark> marks(forest.nodes.size(), Mark::kNew);
  std::vector<int32_t> path;  // nodes to leave; a node is open from its first sight to its second
  for (size_t tree = 0; tree < forest.roots.size(); ++tree) {
    if (forest.roots[tree] >= 0) path.push_back(forest.roots[tree]);
    while (!path.empty()) {
      const int32_t at = path.back();
      Mark& mark = marks[static_cast<size_t>(at)];
      if (mark != Mark::kNew) {
        mark = Mark::kDone;
        path.pop_back();
        continue;
      }
      mark = Mark::kOpen;
      const Forest::Node& node = forest.nodes[static_cast<size_t>(at)];
      for (const int32_t child : {node.if_true, node.if_false}) {
        if (child < 0 || marks[static_cast<size_t>(child)] == Mark::kDone) continue;
        if (marks[static_cast<size_t>(child)] == Mark::kOpen) {
          return invalid_argument("the nodes of tree " + text(static_cast<int64_t>(tree)) +
                                  " form a cycle, so a walk through it never ends");
        }
        path.push_back(child);
      }
    }
  }
  return Status::ok();
}

}  // namespace eddy
