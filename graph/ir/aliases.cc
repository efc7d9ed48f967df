#include "graph/ir/aliases.h"

#include "graph/base/check.h"
#include "graph/ir/control_view.h"

namespace eddy {
namespace {

std::vector<AliasSource> sources_of_parameter(const Graph& graph, const ValueInfo& info) {
  if (info.index == 0 || info.region == Graph::kRoot) return {};
  const LoopView loop(graph, graph.region(info.region).owner);
  const size_t k = info.index - size_t{1};
  EDDY_DCHECK(k < (info.region == loop.after_id() ? loop.num_forwarded() : loop.num_carried()))
      << "parameter " << info.index << " of " << loop.node().name;
  if (info.region == loop.after_id()) {
    return {{loop.forwarded()[k], AliasKind::kForwarded, loop.before_id()}};
  }
  return {{loop.initial()[k], AliasKind::kInitial, loop.node().region},
          {loop.next()[k], AliasKind::kNext, loop.after_id()}};
}

std::vector<AliasSource> sources_of_choice(const CaseView& choice, size_t k) {
  EDDY_DCHECK(k < choice.outputs().size()) << "output " << k << " of " << choice.node().name;
  std::vector<AliasSource> sources;
  for (size_t branch = 0; branch < choice.num_branches(); ++branch) {
    sources.push_back(
        {choice.results(branch)[k], AliasKind::kBranch, choice.node().regions[branch]});
  }
  if (choice.has_pass_through()) {
    sources.push_back({choice.pass_through()[k], AliasKind::kPassThrough, choice.node().region});
  }
  return sources;
}

}  // namespace

std::vector<AliasSource> alias_sources(const Graph& graph, ValueId value) {
  const ValueInfo& info = graph.value(value);
  if (info.origin == ValueOrigin::kConstant) return {};
  if (info.origin == ValueOrigin::kParameter) return sources_of_parameter(graph, info);
  const Node& node = graph.node(info.producer);
  if (node.kind == NodeKind::kCaseOf) return sources_of_choice({graph, node}, info.index);
  if (node.kind == NodeKind::kWhile) {
    const LoopView loop(graph, node);
    if (info.index >= loop.num_forwarded()) return {};
    return {{loop.forwarded()[info.index], AliasKind::kLeft, loop.before_id()}};
  }
  const ValueId shown = viewed(graph, value);
  if (shown.is_none()) return {};
  return {{shown, AliasKind::kView, node.region}};
}

ValueId resolve_forwarded(const Graph& graph, ValueId value) {
  for (;;) {
    const ValueInfo& info = graph.value(value);
    const bool is_forwarded = info.origin == ValueOrigin::kParameter && info.index > 0 &&
                              role(graph, info.region) == RegionRole::kAfter;
    if (!is_forwarded) return value;
    EDDY_DCHECK(info.index <= LoopView(graph, graph.region(info.region).owner).num_forwarded())
        << "parameter " << info.index << " is received, but not forwarded";
    value = LoopView(graph, graph.region(info.region).owner).before().results[info.index];
  }
}

ValueId viewed(const Graph& graph, ValueId value) {
  const ValueInfo& info = graph.value(value);
  if (info.origin != ValueOrigin::kNodeOutput || info.index != 0) return {};
  const Node& node = graph.node(info.producer);
  const bool is_view = node.kind == NodeKind::kExec && node.op->is_view && !node.inputs.empty();
  return is_view ? node.inputs[0] : ValueId();
}

ValueId resolve_views(const Graph& graph, ValueId value) {
  for (;;) {
    value = resolve_forwarded(graph, value);
    const ValueId source = viewed(graph, value);
    if (source.is_none()) return value;
    value = source;
  }
}

bool is_region_local(const Graph& graph, ValueId result, RegionId region) {
  const ValueInfo& info = graph.value(resolve_forwarded(graph, result));
  return info.origin == ValueOrigin::kNodeOutput &&
         are_in_one_iteration(graph, info.region, region);
}

}  // namespace eddy
