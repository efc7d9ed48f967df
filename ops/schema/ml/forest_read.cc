// Nodes, leaves and votes of a Forest, in both ways of writing trees.
#include <algorithm>
#include <cmath>
#include <optional>

#include "graph/base/check.h"
#include "ops/schema/ml/forest_parts.h"

namespace eddy {
namespace {

std::string text(int64_t value) { return std::to_string(value); }

constexpr int32_t kLeaf = -1;

// A comparison, kLeaf, or nothing.
std::optional<int32_t> parse_mode(std::string_view name) {
  if (name == "LEAF") return kLeaf;
  constexpr std::string_view kNames[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                         "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) return static_cast<int32_t>(i);
  }
  return std::nullopt;
}

// Where the node of a tree and an id of its own stands in the lists.
class NodePlaces {
 public:
  NodePlaces(std::span<const int64_t> trees, std::span<const int64_t> ids)
      : trees_(trees), ids_(ids), order_(trees.size()) {
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<int32_t>(i);
    std::sort(order_.begin(), order_.end(),
              [this](int32_t a, int32_t b) { return key(a) != key(b) ? key(a) < key(b) : a < b; });
  }

  Status check_unique() const {
    for (size_t i = 1; i < order_.size(); ++i) {
      if (key(order_[i]) != key(order_[i - 1])) continue;
      return invalid_argument("node " + text(key(order_[i]).second) + " of tree " +
                              text(key(order_[i]).first) + " appears twice");
    }
    return Status::ok();
  }
  std::optional<int32_t> find(int64_t tree, int64_t id) const {
    const auto wanted = std::pair(tree, id);
    const auto it = std::lower_bound(order_.begin(), order_.end(), wanted,
                                     [this](int32_t at, const auto& w) { return key(at) < w; });
    if (it == order_.end() || key(*it) != wanted) return std::nullopt;
    return *it;
  }

 private:
  std::pair<int64_t, int64_t> key(int32_t at) const {
    return {trees_[static_cast<size_t>(at)], ids_[static_cast<size_t>(at)]};
  }
  std::span<const int64_t> trees_, ids_;
  std::vector<int32_t> order_;  // by tree and id
};

class TreesById {
 public:
  TreesById(const Attributes& attributes, ForestKind kind, Forest& forest)
      : attributes_(attributes),
        names_(vote_names(kind)),
        forest_(forest),
        trees_(attributes.get_ints("nodes_treeids")),
        ids_(attributes.get_ints("nodes_nodeids")),
        places_(trees_, ids_) {}

  Status read() {
    EDDY_RETURN_IF_ERROR(places_.check_unique());
    EDDY_RETURN_IF_ERROR(number_nodes());
    EDDY_RETURN_IF_ERROR(read_nodes());
    read_roots();
    return read_votes();
  }

 private:
  // Entry i of the lists becomes node or leaf: at_[i].
  Status number_nodes() {
    const std::span<const std::string> modes = attributes_.get_strings("nodes_modes");
    int32_t num_nodes = 0;
    for (const std::string& name : modes) {
      const std::optional<int32_t> mode = parse_mode(name);
      if (!mode) {
        return invalid_argument("nodes_modes holds '" + name +
                                "', which is no BRANCH_LEQ, _LT, _GTE, _GT, _EQ, _NEQ or LEAF");
      }
      at_.push_back(*mode == kLeaf ? ~num_leaves_++ : num_nodes++);
      modes_.push_back(*mode);
    }
    return Status::ok();
  }

  Status child_of(size_t i, std::string_view list, int32_t& child) const {
    const int64_t id = attributes_.get_ints(list)[i];
    const std::optional<int32_t> place = places_.find(trees_[i], id);
    if (!place) {
      return invalid_argument(std::string(list) + " leads from node " + text(ids_[i]) +
                              " of tree " + text(trees_[i]) + " to node " + text(id) +
                              ", which the tree does not have");
    }
    child = at_[static_cast<size_t>(*place)];
    return Status::ok();
  }

  Status read_nodes() {
    NumberList splits;
    EDDY_RETURN_IF_ERROR(
        NumberList::read(attributes_, "nodes_values", "nodes_values_as_tensor", splits));
    const std::span<const int64_t> features = attributes_.get_ints("nodes_featureids");
    const std::span<const int64_t> missing =
        attributes_.get_ints("nodes_missing_value_tracks_true");
    for (size_t i = 0; i < at_.size(); ++i) {
      if (at_[i] < 0) continue;
      Forest::Node node;
      node.branch = static_cast<Branch>(modes_[i]);
      node.is_nan_true = !missing.empty() && missing[i] != 0;
      node.split = splits[static_cast<int64_t>(i)];
      EDDY_RETURN_IF_ERROR(read_index("nodes_featureids", features[i], INT32_MAX, node.feature));
      EDDY_RETURN_IF_ERROR(child_of(i, "nodes_truenodeids", node.if_true));
      EDDY_RETURN_IF_ERROR(child_of(i, "nodes_falsenodeids", node.if_false));
      forest_.nodes.push_back(node);
    }
    return Status::ok();
  }

  // A tree begins with its root. Trees stand in the order of their roots.
  void read_roots() {
    std::vector<int64_t> seen;
    for (size_t i = 0; i < trees_.size(); ++i) {
      if (i > 0 && trees_[i] == trees_[i - 1]) continue;
      seen.push_back(static_cast<int64_t>(i));
    }
    // Of the runs of one tree, the first.
    std::stable_sort(seen.begin(), seen.end(), [this](int64_t a, int64_t b) {
      return trees_[static_cast<size_t>(a)] < trees_[static_cast<size_t>(b)];
    });
    std::vector<int64_t> firsts;
    for (const int64_t i : seen) {
      const bool is_first = firsts.empty() || trees_[static_cast<size_t>(firsts.back())] !=
                                                  trees_[static_cast<size_t>(i)];
      if (is_first) firsts.push_back(i);
    }
    std::sort(firsts.begin(), firsts.end());
    for (const int64_t i : firsts) forest_.roots.push_back(at_[static_cast<size_t>(i)]);
  }

  Status read_votes() {
    NumberList weights;
    EDDY_RETURN_IF_ERROR(
        NumberList::read(attributes_, names_.weights, names_.weights_tensor, weights));
    const std::span<const int64_t> trees = attributes_.get_ints(names_.trees);
    const std::span<const int64_t> nodes = attributes_.get_ints(names_.nodes);
    const std::span<const int64_t> ids = attributes_.get_ints(names_.ids);
    struct Found {
      int32_t leaf;
      Forest::Vote vote;
    };
    std::vector<Found> found;
    for (size_t i = 0; i < trees.size(); ++i) {
      const std::optional<int32_t> place = places_.find(trees[i], nodes[i]);
      if (!place) {
        return invalid_argument(std::string(names_.nodes) + " names node " + text(nodes[i]) +
                                " of tree " + text(trees[i]) + ", which there is not");
      }
      Found each{~at_[static_cast<size_t>(*place)], {0, weights[static_cast<int64_t>(i)]}};
      EDDY_RETURN_IF_ERROR(read_index(names_.ids, ids[i], forest_.num_targets, each.vote.target));
      if (each.leaf >= 0) found.push_back(each);
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Found& a, const Found& b) { return a.leaf < b.leaf; });
    forest_.first_votes.assign(static_cast<size_t>(num_leaves_) + 1, 0);
    for (const Found& each : found) {
      ++forest_.first_votes[static_cast<size_t>(each.leaf) + 1];
      forest_.votes.push_back(each.vote);
    }
    for (size_t leaf = 0; leaf < static_cast<size_t>(num_leaves_); ++leaf) {
      forest_.first_votes[leaf + 1] += forest_.first_votes[leaf];
    }
    return Status::ok();
  }

  const Attributes& attributes_;
  const VoteNames names_;
  Forest& forest_;
  std::span<const int64_t> trees_, ids_;
  NodePlaces places_;
  std::vector<int32_t> at_;  // by entry: node i, or leaf ~i
  std::vector<int32_t> modes_;
  int32_t num_leaves_ = 0;
};

// The next set of members, behind which stands a NaN or the end.
Status read_members(const NumberList& values, int64_t& at, size_t i, Forest& forest,
                    Forest::Node& node) {
  if (at >= values.size()) {
    return invalid_argument("membership_values has no set for node " + std::to_string(i));
  }
  node.first_member = static_cast<int32_t>(forest.members.size());
  while (at < values.size() && !std::isnan(values[at])) forest.members.push_back(values[at++]);
  node.end_member = static_cast<int32_t>(forest.members.size());
  ++at;
  return Status::ok();
}

Status child_at(const Attributes& attributes, const char* ids, const char* leaves, size_t i,
                const Forest& forest, int64_t num_nodes, int32_t& child) {
  const int64_t flag = attributes.get_ints(leaves)[i];
  if (flag != 0 && flag != 1) {
    return invalid_argument(std::string(leaves) + " holds " + text(flag) +
                            ", which is neither 0 nor 1");
  }
  EDDY_RETURN_IF_ERROR(read_index(ids, attributes.get_ints(ids)[i],
                                  flag == 1 ? forest.num_leaves() : num_nodes, child));
  if (flag == 1) child = ~child;
  return Status::ok();
}

}  // namespace

Status read_trees_by_id(const Attributes& attributes, ForestKind kind, Forest& forest) {
  return TreesById(attributes, kind, forest).read();
}

Status read_trees_by_place(const Attributes& attributes, Forest& forest) {
  NumberList splits, weights, members;
  EDDY_RETURN_IF_ERROR(NumberList::read(attributes, "nodes_splits", "nodes_splits", splits));
  EDDY_RETURN_IF_ERROR(NumberList::read(attributes, "leaf_weights", "leaf_weights", weights));
  EDDY_RETURN_IF_ERROR(
      NumberList::read(attributes, "membership_values", "membership_values", members));
  const std::span<const int64_t> targets = attributes.get_ints("leaf_targetids");
  for (int64_t i = 0; i < weights.size(); ++i) {
    Forest::Vote vote{0, weights[i]};
    EDDY_RETURN_IF_ERROR(read_index("leaf_targetids", targets[static_cast<size_t>(i)],
                                    forest.num_targets, vote.target));
    forest.first_votes.push_back(static_cast<int32_t>(i));
    forest.votes.push_back(vote);
  }
  forest.first_votes.push_back(static_cast<int32_t>(weights.size()));

  const auto* modes =
      static_cast<const uint8_t*>(attributes.get_tensor_or_null("nodes_modes")->data);
  const std::span<const int64_t> features = attributes.get_ints("nodes_featureids");
  const std::span<const int64_t> missing = attributes.get_ints("nodes_missing_value_tracks_true");
  int64_t at = 0;
  for (size_t i = 0; i < features.size(); ++i) {
    Forest::Node node;
    int32_t mode = 0;
    EDDY_RETURN_IF_ERROR(read_index("nodes_modes", modes[i], 7, mode));
    node.branch = static_cast<Branch>(mode);
    node.is_nan_true = !missing.empty() && missing[i] != 0;
    node.split = splits[static_cast<int64_t>(i)];
    EDDY_RETURN_IF_ERROR(read_index("nodes_featureids", features[i], INT32_MAX, node.feature));
    EDDY_RETURN_IF_ERROR(child_at(attributes, "nodes_truenodeids", "nodes_trueleafs", i, forest,
                                  splits.size(), node.if_true));
    EDDY_RETURN_IF_ERROR(child_at(attributes, "nodes_falsenodeids", "nodes_falseleafs", i, forest,
                                  splits.size(), node.if_false));
    if (node.branch == Branch::kMember) {
      EDDY_RETURN_IF_ERROR(read_members(members, at, i, forest, node));
    }
    forest.nodes.push_back(node);
  }
  if (at < members.size()) {
    return invalid_argument("membership_values holds more sets than nodes test membership");
  }
  for (const int64_t root : attributes.get_ints("tree_roots")) {
    int32_t index = 0;
    EDDY_RETURN_IF_ERROR(read_index("tree_roots", root, splits.size(), index));
    forest.roots.push_back(index);
  }
  return Status::ok();
}

}  // namespace eddy
