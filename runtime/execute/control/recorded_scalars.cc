#include "runtime/execute/control/recorded_scalars.h"

#include <algorithm>

#include "graph/ir/aliases.h"
#include "graph/ir/control_view.h"
#include "graph/loops/device_loops.h"
#include "runtime/execute/executable.h"

namespace eddy {
namespace {

// The exec nodes of a block, in the order of their launches.
std::vector<NodeId> launch_order(const Program& program, const Program::Block& block) {
  std::vector<NodeId> order;
  for (const Program::Step& step : block.steps) {
    if (step.op == Program::Op::kLaunch) order.push_back(node_of(program, step));
  }
  return order;
}

}  // namespace

RecordedScalars::RecordedScalars(const RunState& state, GraphCapture& capture,
                                 const std::vector<uint32_t>& uses, RegionId region)
    : state_(state), region_(region), steps_or_null_(dynamic_cast<ScalarSteps*>(&capture)) {
  const Graph& graph = state.graph();
  Readers readers(graph.num_values());
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    for (const ValueId value : graph.node(NodeId(n)).inputs) {
      if (!value.is_none()) readers[value.index()].push_back(NodeId(n));
    }
  }
  const bool has_steps = steps_or_null_ != nullptr && !state.executable().locates_faults();
  if (has_steps) find(uses, readers);
  if (role(graph, region) == RegionRole::kAfter) find_home_writers(uses, readers);
  // A part of the launch at the end is worth it only where no copy is left.
  std::erase_if(found_, [&](const auto& found) {
    const NodeId node(found.first);
    return !is_of_one_element(node) && written_home(graph.node(node).outputs[0]).is_none();
  });
}

// ---------------------------------------------------------------- steps of another launch

std::optional<Expression> RecordedScalars::expression_of(NodeId id) const {
  const Graph& graph = state_.graph();
  const Node& node = graph.node(id);
  const BoundKernel& kernel = state_.executable().kernel(id);
  if (node.op->is_view || kernel.may_fault) return std::nullopt;
  std::vector<ValueType> inputs;
  for (const ValueId value : node.inputs) {
    if (value.is_none()) return std::nullopt;
    inputs.push_back(graph.value(value).type);
  }
  std::vector<ValueType> outputs;
  for (const ValueId value : node.outputs) outputs.push_back(graph.value(value).type);
  const std::vector<TensorView> constants(inputs.size());
  std::optional<Expression> expression = steps_or_null_->scalar_of(
      {*node.op, node.attributes, node.opset_version, node.name, inputs, outputs, constants},
      kernel);
  const bool fits = expression && expression->num_results() == outputs.size();
  return fits ? std::move(expression) : std::nullopt;
}

bool RecordedScalars::is_of_one_element(NodeId id) const {
  const Graph& graph = state_.graph();
  const auto is_one = [&](ValueId value) {
    return value.is_none() || graph.value(value).type.tensor.dims.count() == 1;
  };
  const Node& node = graph.node(id);
  return std::ranges::all_of(node.inputs, is_one) && std::ranges::all_of(node.outputs, is_one);
}

// Few enough of them, and of each input as many or one.
bool RecordedScalars::is_of_equal_elements(NodeId id) const {
  const Graph& graph = state_.graph();
  const Node& node = graph.node(id);
  const Dims& dims = graph.value(node.outputs[0]).type.tensor.dims;
  const int64_t count = dims.count().value_or(0);
  if (count < 1 || static_cast<uint64_t>(count) > ScalarSteps::kMostElements) return false;
  return std::ranges::all_of(node.inputs, [&](ValueId value) {
    if (value.is_none()) return false;
    const Dims& other = graph.value(value).type.tensor.dims;
    return other == dims || other.count() == 1;
  });
}

// Whatever else reads one of them would do so before the end; and the first thread of a launch
// waits for none of the others, so what many make is read by no step of one.
void RecordedScalars::find(const std::vector<uint32_t>& uses, const Readers& readers) {
  const Graph& graph = state_.graph();
  const Region& region = graph.region(region_);
  // As a result of an inner region it would be read earlier, too.
  const auto are_results_late = [&](ValueId value) {
    const auto num_results = std::ranges::count(region.results, value);
    return readers[value.index()].size() + static_cast<size_t>(num_results) == uses[value.index()];
  };
  // The copy of a decision to the host is left out, so its readers are what counts: decisions.
  const auto is_late = [&](NodeId reader) {
    const Node& node = graph.node(reader);
    if (found_.contains(reader.index())) return is_of_one_element(reader);
    return node.kind == NodeKind::kExec &&
           copy_to_host_or_null(graph, node.outputs[0]) != nullptr &&
           readers[node.outputs[0].index()].empty() && are_results_late(node.outputs[0]);
  };
  for (auto at = region.nodes.rbegin(); at != region.nodes.rend(); ++at) {
    const Node& node = graph.node(*at);
    if (node.kind != NodeKind::kExec) continue;
    const bool is_one = is_of_one_element(*at);
    const bool is_map = !is_one && node.outputs.size() == 1 &&
                        readers[node.outputs[0].index()].empty() && is_of_equal_elements(*at);
    if (!is_one && !is_map) continue;
    const bool are_late = std::ranges::all_of(node.outputs, [&](ValueId made) {
      return std::ranges::all_of(readers[made.index()], is_late) && are_results_late(made);
    });
    if (!are_late) continue;
    std::optional<Expression> expression = expression_of(*at);
    if (!expression) continue;
    if (!is_one && expression->steps.size() > ScalarSteps::kMostSteps) continue;
    found_.emplace(at->index(), std::move(*expression));
  }
}

// ---------------------------------------------------------------- homes

// Values are distinguished by the memory that they name. Where a loop or branch inside could
// hand on another name, nothing is written early.
void RecordedScalars::find_home_writers(const std::vector<uint32_t>& uses, const Readers& readers) {
  const Graph& graph = state_.graph();
  const Region& after = graph.region(region_);
  const auto is_exec = [&](NodeId id) { return graph.node(id).kind == NodeKind::kExec; };
  if (!std::ranges::all_of(after.nodes, is_exec)) return;
  const Executable& executable = state_.executable();
  const Program& program = executable.plan().program;
  const std::vector<NodeId> order = launch_order(program, program.blocks[region_.index()]);
  const LoopView loop(graph, after.owner);
  for (size_t k = 0; k < loop.num_carried(); ++k) {
    const ValueId parameter = loop.carried()[k], made = loop.next()[k];
    const ValueInfo& info = graph.value(made);
    if (is_carried_idly(loop, k, uses) || executable.value_device(parameter) == 0) continue;
    if (info.origin != ValueOrigin::kNodeOutput || info.region != region_) continue;
    const Node& writer = graph.node(info.producer);
    if (writer.op->is_view || std::ranges::count(after.results, made) != 1) continue;
    // A view of what is made is a result, too.
    const auto is_shown = [&](ValueId result) {
      const ValueId root = resolve_views(graph, result);
      return root == parameter || (root == made && result != made);
    };
    if (std::ranges::any_of(after.results, is_shown)) continue;
    if (info.type.tensor.element != graph.value(parameter).type.tensor.element) continue;
    if (executable.value_device(made) != executable.value_device(parameter)) continue;
    if (readers[made.index()].size() + 1 != uses[made.index()]) continue;
    if (may_write_home(made, parameter, order)) written_homes_[made.index()] = parameter;
  }
}

// Whether a later step of the node that makes it reads the parameter.
bool RecordedScalars::is_read_after(ValueId made, ValueId parameter) const {
  const Graph& graph = state_.graph();
  const NodeId writer = graph.value(made).producer;
  const std::vector<ValueId>& inputs = graph.node(writer).inputs;
  const Expression& expression = *expression_or_null(writer);
  const uint32_t element = expression.result(graph.value(made).index);
  for (size_t i = element - expression.num_inputs + 1; i < expression.steps.size(); ++i) {
    for (const uint32_t argument : expression.steps[i].arguments) {
      if (argument < inputs.size() && resolve_views(graph, inputs[argument]) == parameter) {
        return true;
      }
    }
  }
  return false;
}

// Whether all others that read the parameter have done so: what is a part of the launch at the end
// comes last, in this order; each of the steps there has its own element of what it overwrites.
bool RecordedScalars::may_write_home(ValueId made, ValueId parameter,
                                     const std::vector<NodeId>& order) const {
  const Graph& graph = state_.graph();
  const NodeId writer = graph.value(made).producer;
  const Program& program = state_.executable().plan().program;
  const bool is_at_end = expression_or_null(writer) != nullptr;
  if (is_at_end && is_read_after(made, parameter)) return false;
  if (!is_at_end && program.blocks[region_.index()].streams.size() != 1) return false;
  const auto at = std::ranges::find(order, writer);
  if (at == order.end()) return false;
  const auto reads = [&](NodeId id) {
    return std::ranges::any_of(graph.node(id).inputs, [&](ValueId input) {
      return !input.is_none() && resolve_views(graph, input) == parameter;
    });
  };
  const auto is_too_late = [&](NodeId id) {
    const bool is_later = std::ranges::find(at, order.end(), id) != order.end();
    const bool ends_too = expression_or_null(id) != nullptr;
    if (id == writer) return !is_at_end;
    if (!is_at_end) return is_later || ends_too;
    return ends_too && is_later;
  };
  return std::ranges::none_of(order, [&](NodeId id) { return reads(id) && is_too_late(id); });
}

}  // namespace eddy
