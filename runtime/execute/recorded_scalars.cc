#include "runtime/execute/recorded_scalars.h"

#include <algorithm>

#include "graph/loops/device_loops.h"
#include "runtime/execute/executable.h"

namespace eddy {

RecordedScalars::RecordedScalars(const RunState& state, GraphCapture& capture,
                                 const std::vector<uint32_t>& uses, RegionId region)
    : state_(state), steps_or_null_(dynamic_cast<ScalarSteps*>(&capture)) {
  if (steps_or_null_ == nullptr || state.executable().locates_faults()) return;
  find(state.graph().region(region), uses);
}

std::optional<Expression> RecordedScalars::scalar_of(NodeId id) const {
  const Graph& graph = state_.graph();
  const Node& node = graph.node(id);
  const BoundKernel& kernel = state_.executable().kernel(id);
  if (node.op->is_view || kernel.may_fault) return std::nullopt;
  std::vector<ValueType> inputs;
  for (const ValueId value : node.inputs) {
    if (value.is_none()) return std::nullopt;
    inputs.push_back(graph.value(value).type);
  }
  const std::vector<ValueType> outputs = {graph.value(node.outputs[0]).type};
  const auto is_one = [](const ValueType& type) { return type.tensor.dims.count() == 1; };
  if (!std::ranges::all_of(inputs, is_one) || !is_one(outputs[0])) return std::nullopt;
  const std::vector<TensorView> constants(inputs.size());
  return steps_or_null_->scalar_of(
      {*node.op, node.attributes, node.opset_version, node.name, inputs, outputs, constants},
      kernel);
}

// Whatever else reads one of them would do so before the end.
void RecordedScalars::find(const Region& region, const std::vector<uint32_t>& uses) {
  const Graph& graph = state_.graph();
  std::vector<std::vector<NodeId>> readers(graph.num_values());
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    for (const ValueId value : graph.node(NodeId(n)).inputs) {
      if (!value.is_none()) readers[value.index()].push_back(NodeId(n));
    }
  }
  // As a result of an inner region it would be read earlier, too.
  const auto are_results_late = [&](ValueId value) {
    const auto num_results = std::ranges::count(region.results, value);
    return readers[value.index()].size() + static_cast<size_t>(num_results) == uses[value.index()];
  };
  // The copy of a decision to the host is left out, so its readers are what counts: decisions.
  const auto is_late = [&](NodeId reader) {
    const Node& node = graph.node(reader);
    if (found_.contains(reader.index())) return true;
    return node.kind == NodeKind::kExec &&
           copy_to_host_or_null(graph, node.outputs[0]) != nullptr &&
           readers[node.outputs[0].index()].empty() && are_results_late(node.outputs[0]);
  };
  for (auto at = region.nodes.rbegin(); at != region.nodes.rend(); ++at) {
    const Node& node = graph.node(*at);
    if (node.kind != NodeKind::kExec || node.outputs.size() != 1) continue;
    const ValueId made = node.outputs[0];
    if (!std::ranges::all_of(readers[made.index()], is_late) || !are_results_late(made)) continue;
    if (auto expression = scalar_of(*at)) found_.emplace(at->index(), std::move(*expression));
  }
}

}  // namespace eddy
