#include "runtime/api/describe_session.h"

#include "graph/base/check.h"
#include "runtime/execute/executable.h"

namespace eddy {
namespace {

std::string type_text(const Graph& graph, const ValueType& type) {
  std::string text(element_type_name(type.tensor.element));
  if (!type.tensor.is_ranked) {
    text += "[...]";
  } else {
    text += "[";
    for (int axis = 0; axis < type.tensor.dims.rank(); ++axis) {
      const int64_t dim = type.tensor.dims[axis];
      text += axis > 0 ? "," : "";
      text += dim >= 0 ? std::to_string(dim) : (dim == kUnknownDim ? "?" : graph.symbol(dim));
    }
    text += "]";
  }
  for (int i = type.num_wrappers - 1; i >= 0; --i) {
    const bool is_sequence = type.wrappers[static_cast<size_t>(i)] == Wrapper::kSequence;
    text.insert(0, is_sequence ? "sequence(" : "optional(");
    text += ")";
  }
  return text;
}

// Which inputs are read on the host, and by which node.
void find_host_readers(SessionCore& core) {
  const Graph& graph = core.graph();
  core.host_readers.resize(graph.inputs().size());
  if (core.has_one_device()) return;
  std::vector<std::vector<size_t>> inputs_of(graph.num_values());
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    inputs_of[graph.inputs()[i].index()].push_back(i);
  }
  const auto read = [&](ValueId value, const std::string& reader) {
    for (const size_t i : inputs_of[value.index()]) core.host_readers[i] = reader;
  };
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    const bool is_copy =
        node.kind == NodeKind::kExec && node.op->domain == "eddy" && node.op->name == "ToDevice";
    for (size_t i = 0; i < node.inputs.size() && !is_copy; ++i) {
      const bool is_shape =
          node.kind == NodeKind::kExec && has_flag(node.op->input_flags(i), InputFlag::kShapeOnly);
      if (!node.inputs[i].is_none() && !is_shape) read(node.inputs[i], "node " + node.name);
    }
  }
  for (uint32_t r = 0; r < graph.num_regions(); ++r) {
    for (ValueId value : graph.region(RegionId(r)).results) read(value, "the graph's results");
  }
  for (ValueId value : graph.outputs()) read(value, "the graph's results");
}

// How a loop is driven, and why.
LoopReport describe_loop(const SessionCore& core, NodeId loop) {
  LoopReport report{core.graph().path(loop), 0, "host", "forced by the session's options"};
  if (core.has_one_device()) {
    if (core.is_host_driven()) return report;
    report.driven = "device";
    report.reason = "all of its nodes run on CPU streams";
  } else if (core.executable->has_device_control()) {
    const ControlVerdict& verdict = core.executable->control_verdict(loop);
    report.driven = verdict.is_driven_by_device ? "device" : "host";
    report.reason = verdict.reason;
  } else if (core.options.loops != Loops::kHost) {
    report.reason = "no device can decide loops by itself";
  }
  return report;
}

// Beside a device that decides, only.
void describe_branches(SessionCore& core) {
  if (!core.executable->has_device_control()) return;
  for (uint32_t n = 0; n < core.graph().num_nodes(); ++n) {
    if (core.graph().node(NodeId(n)).kind != NodeKind::kCaseOf) continue;
    const ControlVerdict& verdict = core.executable->control_verdict(NodeId(n));
    core.branches.push_back({core.graph().path(NodeId(n)), 0,
                             verdict.is_driven_by_device ? "device" : "host", verdict.reason});
  }
}

}  // namespace

void describe_values(SessionCore& core) {
  const Graph& graph = core.graph();
  EDDY_DCHECK(core.inputs.empty() && core.outputs.empty()) << "values are described twice";
  EDDY_DCHECK(graph.output_names().size() == graph.outputs().size()) << "a name for each output";
  for (ValueId value : graph.inputs()) {
    const ValueInfo& info = graph.value(value);
    core.inputs.push_back({info.name, info.type, type_text(graph, info.type)});
  }
  for (size_t i = 0; i < core.inputs.size(); ++i) core.input_places[core.inputs[i].name] = i;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const ValueInfo& info = graph.value(graph.outputs()[i]);
    core.outputs.push_back({graph.output_names()[i], info.type, type_text(graph, info.type)});
  }
  find_host_readers(core);
}

Status describe_loops(SessionCore& core) {
  for (uint32_t n = 0; n < core.graph().num_nodes(); ++n) {
    if (core.graph().node(NodeId(n)).kind != NodeKind::kWhile) continue;
    const LoopReport report = describe_loop(core, NodeId(n));
    core.loop_reports.add(NodeId(n), report);
    if (core.options.loops != Loops::kDevice || report.driven == "device") continue;
    return unsupported("loop " + report.path + " can't be driven by the device: " + report.reason +
                       "; leave loops auto");
  }
  describe_branches(core);
  return Status::ok();
}

}  // namespace eddy
