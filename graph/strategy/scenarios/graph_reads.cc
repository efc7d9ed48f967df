#include "graph/strategy/scenarios/graph_reads.h"

#include <algorithm>

#include "graph/base/check.h"
#include "graph/ir/region_tree.h"

namespace eddy {

GraphReads::GraphReads(const Graph& graph, const GraphCosts& costs)
    : graph_(graph),
      costs_(costs),
      is_read_(graph.num_nodes(), false),
      known_(graph.num_regions()),
      sends_(graph.num_regions()) {
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    if (node.kind == NodeKind::kWhile) add_origins({graph, node});
  }
  for (const NodeId node : graph.root().nodes) reads_of(node);
  add_sends(Graph::kRoot);
}

void GraphReads::add_origins(const LoopView& loop) {
  const size_t count = loop.num_carried();
  std::vector<ValueId> next;
  for (const ValueId value : loop.next()) next.push_back(source_of(graph_, value));
  const auto is_own = [&](ValueId value) {
    return !value.is_none() && is_carried(graph_, value) &&
           graph_.value(value).region == loop.before_id();
  };
  std::vector<bool> is_settled(count, false);
  for (size_t k = 0; k < count; ++k) {
    std::vector<size_t> path;
    ValueId at = loop.carried()[k];
    while (is_own(at)) {
      const size_t index = graph_.value(at).index - 1;
      at = is_settled[index] && is_own(next[index]) ? ValueId() : next[index];  // a circle
      if (is_settled[index]) break;
      EDDY_DCHECK(index < count) << "carried value " << index << " of " << count;
      is_settled[index] = true;
      path.push_back(index);
    }
    for (const size_t index : path) next[index] = at;
  }
  for (size_t k = 0; k < count; ++k) {
    origins_[loop.carried()[k]] = {source_of(graph_, loop.initial()[k]), next[k]};
  }
}

std::vector<ValueId> GraphReads::origins(NodeId loop, ValueId source) const {
  if (graph_.value(source).origin == ValueOrigin::kNodeOutput ||
      graph_.region(graph_.value(source).region).owner != loop) {
    return {source};
  }
  const Origins& found = origins_.at(source);
  std::vector<ValueId> origins;
  if (!found.initial.is_none()) origins.push_back(found.initial);
  if (!found.next.is_none() && found.next != found.initial) origins.push_back(found.next);
  return origins;
}

GraphReads::Reads GraphReads::reads_of(NodeId id) {
  const Node& node = graph_.node(id);
  Reads reads;
  const auto add = [&](ValueId value) {
    if (!value.is_none()) reads.all.insert(value);
  };
  if (node.kind == NodeKind::kExec) {
    for (const ValueId source : sources_of(graph_, node)) add(source);
    reads.by_operators = reads.all;
  } else {
    for (const ValueId source : costs_.controls.at(id).inputs) add(source);
  }
  if (node.kind == NodeKind::kWhile) {
    const LoopView loop(graph_, node);
    for (const ValueId value : loop.initial()) add(source_of(graph_, value));
    for (const ValueId value : loop.next()) add(source_of(graph_, value));
  }
  for (const RegionId region : node.regions) {
    for (const NodeId inner : graph_.region(region).nodes) {
      Reads own = reads_of(inner);
      reads.all.merge(own.all);
      for (const ValueId source : own.by_operators) {
        for (const ValueId origin : origins(id, source)) reads.by_operators.insert(origin);
      }
    }
  }
  const RegionTree tree(graph_);
  const auto is_inside = [&](ValueId source) {
    return tree.is_inside(graph_.value(source).region, id);
  };
  std::erase_if(reads.all, is_inside);
  std::erase_if(reads.by_operators, is_inside);
  for (const ValueId source : reads.all) {
    const ValueInfo& info = graph_.value(source);
    if (info.region == node.region && !info.producer.is_none()) {
      is_read_[info.producer.index()] = true;
    }
  }
  if (node.kind != NodeKind::kExec) reads_[id] = reads;
  return reads;
}

// Operators first, then what stands in each loop and case, then what these read themselves.
void GraphReads::add_sends(RegionId region) {
  const RegionCosts& costs = costs_.regions[region.index()];
  for (const OuterInput& input : costs.outer_inputs) {
    send_outwards({input.source, costs.nodes[input.op], &input}, region);
  }
  for (const NodeId control : costs.controls) {
    for (const RegionId inner : graph_.node(control).regions) add_sends(inner);
    send_carried(control);
    for (const ValueId source : costs_.controls.at(control).inputs) {
      if (reads_.at(control).by_operators.contains(source)) continue;
      send_outwards({source, control}, region);
    }
  }
}

bool GraphReads::is_made_in(ValueId source, NodeId loop) const {
  return graph_.region(graph_.value(source).region).owner == loop;
}

void GraphReads::send_outwards(RegionSend send, RegionId region) {
  const ValueInfo& source = graph_.value(send.source);
  while (add_known(region, send)) {
    if (!source.producer.is_none() &&
        (source.region == region || is_served_inside(region, source.region))) {
      return sends_[region.index()].push_back(send);
    }
    const NodeId owner = graph_.region(region).owner;
    EDDY_CHECK(!owner.is_none()) << "'" << source.name << "' is made in no region around";
    region = graph_.node(owner).region;
    if (graph_.node(owner).kind == NodeKind::kCaseOf) continue;
    for (const ValueId origin : origins(owner, send.source)) {
      send.source = origin;
      if (is_made_in(origin, owner)) {
        carried_[owner].push_back(send);
      } else {
        send_outwards(send, region);
      }
    }
    return;
  }
}

// At the end of each turn, after all that is sent in it.
void GraphReads::send_carried(NodeId loop) {
  const auto found = carried_.find(loop);
  if (found == carried_.end()) return;
  const LoopView view(graph_, loop);
  for (RegionSend& send : found->second) {
    if (reads_within(loop, send) || !add_known(view.before_id(), send) ||
        !add_known(view.after_id(), send)) {
      continue;
    }
    send.is_carried = true;
    sends_[view.after_id().index()].push_back(send);
  }
}

// False where an equal one is known.
bool GraphReads::add_known(RegionId region, const RegionSend& send) {
  EDDY_DCHECK(!send.source.is_none() && !send.reader.is_none()) << "nothing is sent to nobody";
  std::vector<const OuterInput*>& alike = known_[region.index()][{send.source, send.reader}];
  const OuterInput* const input = send.input_or_null;
  const auto is_equal = [&](const OuterInput* other) {
    return input == other || (input != nullptr && other != nullptr &&
                              input->shape == other->shape && input->dims == other->dims);
  };
  if (std::ranges::any_of(alike, is_equal)) return false;
  alike.push_back(input);
  return true;
}

// Whether what stands in `maker`, around the region, is sent inside the region: no loop begins
// between them.
bool GraphReads::is_served_inside(RegionId region, RegionId maker) const {
  const RegionTree tree(graph_);
  while (role(graph_, region) == RegionRole::kBranch) {
    region = tree.parent(region);
    if (region == maker) return true;
  }
  return role(graph_, region) == RegionRole::kAfter &&
         LoopView(graph_, tree.owner(region)).before_id() == maker;
}

// Whether an operator of the loop's regions reads the same of its own region by its maker, too.
bool GraphReads::reads_within(NodeId loop, const RegionSend& send) const {
  const ValueInfo& source = graph_.value(send.source);
  const RegionId region = graph_.node(send.reader).region;
  if (send.input_or_null == nullptr || graph_.region(region).owner != loop ||
      source.region != region || graph_.node(source.producer).kind != NodeKind::kExec) {
    return false;
  }
  const std::vector<Operator>& operators = costs_.regions[region.index()].operators.operators;
  const uint32_t producer = costs_.numbers[source.producer.index()];
  const Operator& reader = operators[costs_.numbers[send.reader.index()]];
  return operators[producer].shape == send.input_or_null->shape &&
         std::ranges::any_of(reader.inputs, [&](const OperatorInput& input) {
           return input.producer == producer && input.dims == send.input_or_null->dims;
         });
}

}  // namespace eddy
