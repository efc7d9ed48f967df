#include "graph/differentiate/kept_values.h"

#include <algorithm>

#include "graph/base/check.h"
#include "graph/ir/region_tree.h"

namespace eddy {
namespace {

bool has_bit(uint64_t bits, size_t i) { return (bits >> std::min<size_t>(i, 63)) & 1; }

}  // namespace

std::vector<ValueId> active_captures(const Graph& graph, const Activity& activity, NodeId node) {
  const RegionTree tree(graph);
  std::vector<ValueId> found;
  for_each_use_inside(graph, graph.node(node), [&](ValueId value) {
    if (!activity.is_active(value)) return;
    if (!tree.is_inside(graph.value(value).region, node)) found.push_back(value);
  });
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

KeptValues::KeptValues(const Graph& graph, const GradientTable& rules, const Activity& activity,
                       const SavePolicies& policies)
    : graph_(graph),
      rules_(rules),
      activity_(activity),
      needed_(graph.num_regions()),
      kept_(graph.num_regions()),
      derived_(graph.num_regions()),
      again_(graph.num_regions()),
      tapes_(graph.num_regions()),
      reads_iteration_(graph.num_regions(), false),
      is_derived_(graph.num_values(), false),
      uses_rows_(graph.num_nodes(), false),
      policies_(graph.num_nodes()),
      states_(graph.num_nodes()),
      why_all_(graph.num_nodes()) {
  choose_policies(policies);
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    if (!activity.is_active(node)) continue;
    if (node.kind == NodeKind::kExec) add_exec(node, rules);
    if (node.kind == NodeKind::kWhile) add_loop(NodeId(n));
    if (node.kind == NodeKind::kCaseOf) add_case(node);
  }
  // Inner regions have larger ids, so what they hand on is known before the regions around them.
  for (uint32_t r = static_cast<uint32_t>(graph.num_regions()); r-- > 0;) {
    const RegionId region(r);
    collect(region);
    const NodeId owner = graph.region(region).owner;
    const RegionRole role_of = role(graph, region);
    if (role_of == RegionRole::kBefore) choose_form(owner);
    if (role_of == RegionRole::kBranch || role_of == RegionRole::kRoot) push_all(region);
  }
}

void KeptValues::collect(RegionId region) {
  std::set<Kept> items;
  for (const Kept& item : needed_[region.index()]) {
    const bool has_value = needed_[region.index()].contains({Kept::What::kValue, item.index});
    if (item.what == Kept::What::kShape && item.form == Kept::Form::kItself && has_value) continue;
    items.insert(item);
  }
  const NodeId owner = graph_.region(region).owner;
  const bool is_made_again =
      !owner.is_none() && policy(owner).kind == SavePolicy::Kind::kCarried;  // all of it
  if (!is_made_again) derive(region, items);
  EDDY_DCHECK(kept_[region.index()].empty())
      << "region " << region.index() << " is collected twice";
  kept_[region.index()].assign(items.begin(), items.end());
}

// Takes out what can be made again of the rest.
void KeptValues::derive(RegionId region, std::set<Kept>& items) {
  const auto item_of = [](ValueId value) { return Kept{Kept::What::kValue, value.index()}; };
  if (role(graph_, region) == RegionRole::kBefore || role(graph_, region) == RegionRole::kAfter) {
    const ValueId iteration = graph_.region(region).parameters[0];
    reads_iteration_[region.index()] = items.erase(item_of(iteration)) > 0;
    is_derived_[iteration.index()] = reads_iteration(region);
  }
  for (const NodeId id : graph_.region(region).nodes) {
    const Node& node = graph_.node(id);
    if (node.kind != NodeKind::kExec || !rules_.is_cheap(*node.op)) continue;
    const bool is_needed = std::ranges::any_of(
        node.outputs, [&](ValueId output) { return items.contains(item_of(output)); });
    const bool can_be_made =
        std::ranges::all_of(node.inputs, [&](ValueId input) { return is_at_hand(input, region); });
    if (!is_needed || !can_be_made) continue;
    for (const ValueId output : node.outputs) {
      items.erase(item_of(output));
      is_derived_[output.index()] = true;
    }
    derived_[region.index()].push_back(id);
  }
}

// In the reversed region, whatever is derived.
bool KeptValues::is_at_hand(ValueId value, RegionId region) const {
  if (value.is_none()) return true;
  const ValueInfo& info = graph_.value(value);
  if (info.origin == ValueOrigin::kConstant || info.region == Graph::kRoot) return true;
  if (is_iteration(graph_, value) && info.region == region) {
    return reads_iteration_[region.index()];
  }
  return needed_[info.region.index()].contains({Kept::What::kValue, value.index()});
}

void KeptValues::push_all(RegionId region) {
  auto& tapes = tapes_[region.index()];
  for (const Kept& item : of(region)) tapes.insert(element(item));
  const NodeId owner = graph_.region(region).owner;
  if (owner.is_none()) return;
  auto& outer = tapes_[graph_.node(owner).region.index()];
  outer.insert(tapes.begin(), tapes.end());
}

bool KeptValues::may_be_row(const Kept& item) const {
  if (item.what == Kept::What::kTrips || item.form != Kept::Form::kItself) return false;
  const ValueType& type = graph_.value(ValueId(item.index)).type;
  if (!type.is_tensor() || !type.tensor.is_ranked || type.tensor.dims.rank() >= kMaxRank) {
    return false;
  }
  if (item.what == Kept::What::kShape) return true;
  const auto is_fixed = [](int64_t dim) { return dim != kUnknownDim; };
  return type.tensor.element != ElementType::kString &&
         std::ranges::all_of(type.tensor.dims.span(), is_fixed);
}

bool KeptValues::fit_rows(const LoopView& loop) const {
  const auto is_plain = [&](const Region& region) {
    return std::ranges::all_of(
        region.nodes, [&](NodeId node) { return graph_.node(node).kind == NodeKind::kExec; });
  };
  const auto fits = [&](RegionId region) {
    return is_plain(graph_.region(region)) &&
           std::ranges::all_of(of(region), [&](const Kept& item) { return may_be_row(item); });
  };
  return fits(loop.before_id()) && fits(loop.after_id());
}

// Both regions of the loop are collected.
void KeptValues::choose_form(NodeId id) {
  const LoopView loop(graph_, id);
  if (policy(id).kind != SavePolicy::Kind::kAll) return choose_state(id);
  uses_rows_[id.index()] = fit_rows(loop);
  if (!uses_rows(id)) {
    push_all(loop.before_id());
    push_all(loop.after_id());
    return;
  }
  const RegionId outer = loop.node().region;
  for (const Kept& item : of(loop.before_id())) {
    need(item.as(Kept::Form::kRows), outer);
    need(item.as(Kept::Form::kLast), outer);
  }
  for (const Kept& item : of(loop.after_id())) need(item.as(Kept::Form::kRows), outer);
}

ElementType KeptValues::element(const Kept& item) const {
  if (item.what != Kept::What::kValue) return ElementType::kInt64;
  return graph_.value(ValueId(item.index)).type.tensor.element;
}

std::set<ElementType> KeptValues::tapes(const Node& node) const {
  EDDY_DCHECK(!node.regions.empty()) << node.name << " takes no tapes";
  std::set<ElementType> all;
  const NodeId id = graph_.region(node.regions[0]).owner;
  if (policy(id).kind == SavePolicy::Kind::kAll) {
    for (const RegionId region : node.regions) {
      all.insert(tapes(region).begin(), tapes(region).end());
    }
    return all;
  }
  if (policy(id).has_segments()) all.insert(ElementType::kInt64);  // where they begin
  if (has_state_rows(id)) return all;
  for (const Kept& item : state(id)) all.insert(element(item));
  return all;
}

void KeptValues::need(Kept item, RegionId region) {
  if (region != Graph::kRoot) needed_[region.index()].insert(item);
}

void KeptValues::need_value(ValueId value, RegionId reader) {
  if (value.is_none()) return;
  const ValueInfo& info = graph_.value(value);
  // Sequences don't fit on tapes: rules read those of the root only.
  if (!info.type.is_tensor()) return;
  const bool is_constant = info.origin == ValueOrigin::kConstant;
  if (reader != Graph::kRoot && (is_constant || info.region == Graph::kRoot)) {
    captured_.insert({reader, value});
  }
  if (is_constant) return;
  need({Kept::What::kValue, value.index()}, info.region);
}

void KeptValues::need_shape(ValueId value) {
  if (value.is_none()) return;
  const ValueInfo& info = graph_.value(value);
  if (info.origin == ValueOrigin::kConstant || info.type.is_static_tensor() ||
      info.type.is_optional()) {
    return;
  }
  need({Kept::What::kShape, value.index()}, info.region);
}

void KeptValues::add_exec(const Node& node, const GradientTable& rules) {
  const GradientRule* rule = rules.find_or_null(node.op->domain, node.op->name, node.opset_version);
  EDDY_CHECK(rule != nullptr) << node.op->name << " is active without a rule";
  const std::vector<bool> wanted = activity_.wanted_inputs(node, *rule);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    const GradientReads& reads = *rule->reads_of(i);
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (has_bit(reads.inputs, k)) need_value(node.inputs[k], node.region);
      if (has_bit(reads.input_shapes, k)) need_shape(node.inputs[k]);
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (has_bit(reads.outputs, k)) need_value(node.outputs[k], node.region);
      if (has_bit(reads.output_shapes, k)) need_shape(node.outputs[k]);
    }
  }
}

void KeptValues::add_loop(NodeId id) {
  const LoopView loop(graph_, id);
  need({Kept::What::kTrips, id.index()}, loop.node().region);
  const auto need_active = [&](LoopView::Values values) {
    for (const ValueId value : values) {
      if (activity_.is_active(value)) need_shape(value);
    }
  };
  need_active(loop.carried());
  need_active(loop.received());
  for (size_t k = 0; k < loop.num_forwarded(); ++k) {
    if (activity_.is_active(loop.forwarded()[k])) need_shape(loop.outputs()[k]);
    if (activity_.is_active(loop.forwarded()[k])) need_shape(loop.received()[k]);
  }
  for (const ValueId value : active_captures(graph_, activity_, id)) need_shape(value);
}

void KeptValues::add_case(const Node& node) {
  need_value(node.inputs[0], node.region);
  const NodeId id = graph_.region(node.regions[0]).owner;
  for (const ValueId value : active_captures(graph_, activity_, id)) need_shape(value);
  for (const ValueId value : CaseView(graph_, node).pass_through()) {
    if (activity_.is_active(value)) need_shape(value);
  }
}

}  // namespace eddy
