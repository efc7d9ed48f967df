#include "graph/strategy/files/cost_reader.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "graph/base/check.h"
#include "graph/ir/control_view.h"
#include "graph/strategy/files/entry_order.h"
#include "graph/strategy/scenarios/graph_reads.h"

namespace eddy {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

// By operator of a list: the one that owns its weights, at the end of its weights_of. An operator
// of another list that this one reads owns none.
Result<std::vector<uint32_t>> weight_owners(const std::vector<const FileOperator*>& operators) {
  OperatorNumbers numbers;
  std::set<std::string_view> read;
  for (const FileOperator* const entry : operators) {
    numbers.emplace(entry->op.name, static_cast<uint32_t>(numbers.size()));
    read.insert(entry->inputs.begin(), entry->inputs.end());
  }
  for (const FileOperator* const entry : operators) {
    const std::string& owner = entry->weights_of;
    if (owner.empty() || numbers.contains(owner) || read.contains(owner)) continue;
    return invalid_argument("operator '" + entry->op.name +
                            "': no operator of its list is called '" + owner + "', its weights_of");
  }
  std::vector<uint32_t> owners(operators.size(), kNone);
  std::vector<uint32_t> path;
  for (uint32_t i = 0; i < operators.size(); ++i) {
    uint32_t at = i;
    for (path.clear(); owners[at] == kNone;) {
      const auto owner = numbers.find(operators[at]->weights_of);
      if (owner == numbers.end()) break;
      if (path.size() == operators.size()) {
        return invalid_argument("operator '" + operators[i]->op.name +
                                "': its weights_of go in a circle");
      }
      path.push_back(at);
      at = owner->second;
    }
    if (owners[at] == kNone) owners[at] = at;
    for (const uint32_t user : path) owners[user] = owners[at];
  }
  return owners;
}

// `place`: by operator of the file's list, where it is in the graph.
Status set_weight_groups(const std::vector<uint32_t>& owners, const std::vector<uint32_t>& place,
                         OperatorGraph& graph) {
  EDDY_CHECK(place.size() == owners.size() && place.size() == graph.operators.size())
      << owners.size() << " owners of " << graph.operators.size() << " operators";
  std::vector<uint32_t> group(owners.size(), kNone);
  for (uint32_t i = 0; i < owners.size(); ++i) {
    EDDY_CHECK(owners[i] < owners.size() && owners[owners[i]] == owners[i])
        << "the owner of operator " << i << " owns nothing";
    Operator& op = graph.operators[place[i]];
    const Operator& owning = graph.operators[place[owners[i]]];
    if (op.weight_elements != owning.weight_elements) {
      return invalid_argument("operator '" + op.name + "': has " +
                              std::to_string(op.weight_elements) + " weights, '" + owning.name +
                              "', whose it shares, has " + std::to_string(owning.weight_elements));
    }
    if (group[owners[i]] == kNone) group[owners[i]] = graph.num_weight_groups++;
    op.weight_group = group[owners[i]];
  }
  return Status::ok();
}

class CostReader {
 public:
  CostReader(const Graph& graph, const OpTable* ops_or_null)
      : graph_(graph), ops_or_null_(ops_or_null), costs_(graph) {}

  Result<GraphCosts> read(const std::vector<FileNodes>& lists) {
    for (const FileNodes& list : lists) add_controls(list);
    const GraphReads reads(graph_, costs_);
    reads_or_null_ = &reads;
    for (const FileNodes& list : lists) {
      Status status = add_operators(list, true);
      if (!status.is_ok()) status = add_operators(list, false);
      EDDY_RETURN_IF_ERROR(status);
    }
    return std::move(costs_);
  }

 private:
  NodeId node_of(const FileNode& node) const { return graph_.value(node.value).producer; }
  bool is_operator(ValueId source) const {
    const NodeId node = graph_.value(source).producer;
    return !node.is_none() && graph_.node(node).kind == NodeKind::kExec;
  }

  void add_controls(const FileNodes& list);
  Dims shape_of(ValueId source);
  Dims carried_shape(ValueId parameter);
  Dims result_shape(const Node& control);
  Status add_operators(const FileNodes& list, bool guesses);
  Status add_operator(const FileOperator& entry, NodeId node, bool guesses,
                      std::vector<ValueId>& whole);

  const Graph& graph_;
  const OpTable* ops_or_null_;
  GraphCosts costs_;
  const GraphReads* reads_or_null_ = nullptr;
  std::unordered_map<ValueId, Dims> shapes_;  // by source, as far as asked for
};

void CostReader::add_controls(const FileNodes& list) {
  for (const FileNode& entry : list) {
    if (entry.op_or_none) continue;
    ControlCosts costs = entry.control;
    for (ValueId& input : costs.inputs) input = source_of(graph_, input);
    costs_.add_control(graph_, node_of(entry), std::move(costs));
  }
}

// Of rank 0 where it is not known.
Dims CostReader::shape_of(ValueId source) {
  const ValueInfo& info = graph_.value(source);
  if (is_operator(source)) return info.type.tensor.dims;
  const auto known = shapes_.find(source);
  if (known != shapes_.end()) return known->second;
  const Dims shape =
      info.producer.is_none() ? carried_shape(source) : result_shape(graph_.node(info.producer));
  return shapes_[source] = shape;
}

Dims CostReader::carried_shape(ValueId parameter) {
  const ValueInfo& info = graph_.value(parameter);
  EDDY_CHECK(info.origin == ValueOrigin::kParameter && info.index > 0)
      << "'" << info.name << "' is not carried";
  const LoopView loop(graph_, graph_.region(info.region).owner);
  const ValueId next = source_of(graph_, loop.next()[info.index - 1]);
  const bool is_own = is_carried(graph_, next) && graph_.value(next).region == info.region;
  const Dims shape = is_own ? Dims() : shape_of(next);
  const ValueId initial = source_of(graph_, loop.initial()[info.index - 1]);
  return shape.rank() > 0 || initial.is_none() ? shape : shape_of(initial);
}

Dims CostReader::result_shape(const Node& control) {
  const auto is_empty = [&](RegionId id) { return graph_.region(id).nodes.empty(); };
  RegionId result = control.regions.back();
  if (control.kind == NodeKind::kCaseOf || is_empty(result)) {
    const auto found = std::ranges::find_if_not(control.regions, is_empty);
    if (found == control.regions.end()) return {};
    result = *found;
  }
  EDDY_CHECK(reads_or_null_ != nullptr) << "reads are found before shapes";
  NodeId only;
  for (const NodeId node : graph_.region(result).nodes) {
    if (reads_or_null_->is_read(node)) continue;
    if (!only.is_none()) return {};
    only = node;
  }
  return only.is_none() ? Dims() : shape_of(graph_.node(only).outputs[0]);
}

Status CostReader::add_operator(const FileOperator& entry, NodeId node, bool guesses,
                                std::vector<ValueId>& whole) {
  Operator op = entry.op;
  std::vector<ValueId> sources;
  std::vector<Dims> shapes;
  for (const ValueId source : sources_of(graph_, graph_.node(node))) {
    const Dims shape = is_operator(source) || guesses ? shape_of(source) : Dims();
    if (shape.rank() == 0) {
      whole.push_back(source);
      continue;
    }
    sources.push_back(source);
    shapes.push_back(shape);
  }
  op.inputs.resize(shapes.size());
  EDDY_RETURN_IF_ERROR(set_regions(op, entry.attributes, shapes, ops_or_null_));
  if (entry.op.flops >= 0) op.flops = entry.op.flops;
  costs_.add_operator(graph_, node, std::move(op), sources, shapes);
  return Status::ok();
}

// `guesses`: the shapes of what loops and branches make are believed.
Status CostReader::add_operators(const FileNodes& list, bool guesses) {
  EDDY_CHECK(!list.empty()) << "a list of nothing has no region";
  std::vector<const FileOperator*> operators;
  std::vector<NodeId> nodes;
  std::unordered_map<ValueId, uint32_t> number;
  for (const FileNode& entry : list) {
    if (!entry.op_or_none) continue;
    number.emplace(entry.value, static_cast<uint32_t>(nodes.size()));
    operators.push_back(&*entry.op_or_none);
    nodes.push_back(node_of(entry));
  }
  EntryEdges edges(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const ValueId source : sources_of(graph_, graph_.node(nodes[i]))) {
      const auto found = number.find(source);
      if (found != number.end()) edges[i].push_back(found->second);
    }
  }
  const auto name = [&](uint32_t i) { return operators[i]->op.name; };
  EDDY_ASSIGN_OR_RETURN(const std::vector<uint32_t> order, entry_order(edges, name));
  EDDY_ASSIGN_OR_RETURN(const std::vector<uint32_t> owners, weight_owners(operators));
  RegionCosts& region = costs_.regions[graph_.value(list[0].value).region.index()];
  region.operators = {};
  region.outer_inputs.clear();
  region.nodes.clear();
  std::vector<uint32_t> place(nodes.size());
  std::vector<std::vector<ValueId>> whole(nodes.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    const uint32_t at = order[i];
    place[at] = i;
    EDDY_RETURN_IF_ERROR(add_operator(*operators[at], nodes[at], guesses, whole[at]));
  }
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const ValueId source : whole[i]) {
      region.outer_inputs.push_back({.op = place[i], .source = source});
    }
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Operator& op = region.operators.operators[place[i]];
    const std::string& owner = operators[owners[i]]->weights_of;
    if (owner.empty() || op.weight_elements == 0) continue;
    return invalid_argument("operator '" + op.name + "': its weights_of, '" + owner +
                            "', is in another list");
  }
  return set_weight_groups(owners, place, region.operators);
}

}  // namespace

Result<GraphCosts> read_costs(const Graph& graph, const std::vector<FileNodes>& lists,
                              const OpTable* ops_or_null) {
  return CostReader(graph, ops_or_null).read(lists);
}

}  // namespace eddy
