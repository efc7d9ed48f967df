#include "runtime/execute/control_drive.h"

#include <algorithm>

#include "runtime/execute/fixed_nodes.h"
#include "runtime/execute/temporaries.h"

namespace eddy {
namespace {

bool is_op(const Node& node, std::string_view name) {
  return node.kind == NodeKind::kExec && node.op->domain == "eddy" && node.op->name == name;
}

class Judge {
 public:
  Judge(const Graph& graph, const ControlDriveFacts& facts, const std::vector<uint32_t>& uses,
        NodeId outermost)
      : graph_(graph), facts_(facts), uses_(uses), outermost_(outermost) {}

  // Empty: the device can drive it.
  std::string loop(const Node& node) {
    const Region& before = graph_.region(node.regions[0]);
    const Region& after = graph_.region(node.regions[1]);
    if (node.num_scan_outputs > 0) return "the host stacks the rows of " + node.name;
    for (size_t k = 1; k < before.parameters.size(); ++k) {
      std::string reason = carried(node, before, after, k);
      if (!reason.empty()) return reason;
    }
    if (!is_known_before(node.inputs[0])) return "the limit of " + node.name + " is made inside";
    if (!is_made_here(before.results[0]) && !is_kept(before.results[0])) {
      return "the predicate of " + node.name + " is made on the CPU";
    }
    for (size_t k = 1; k < before.results.size(); ++k) {
      const ValueId output = node.outputs[k - 1];
      if (is_unread_bool(node, k)) continue;
      std::string reason = passed(before.results[k], output, node);
      if (!reason.empty()) return reason;
    }
    std::string reason = region(node.regions[0]);
    return reason.empty() ? region(node.regions[1]) : reason;
  }

  // Likewise, of a branch that is in nothing that the device drives.
  std::string branch_alone(const Node& node) {
    const ValueId root = resolve_forwarded(graph_, node.inputs[0]);
    const TensorType& type = graph_.value(root).type.tensor;
    const Node* const copy = copy_to_host_or_null(graph_, root);
    if (copy == nullptr || !facts_.is_value_on_device(copy->inputs[0])) {
      return "the host knows the selector of " + node.name;
    }
    if (!type.is_static() || type.dims.count() != int64_t{1}) {
      return "the selector of " + node.name + " changes its shape";
    }
    return branches(node);
  }

 private:
  std::string carried(const Node& node, const Region& before, const Region& after, size_t k) {
    const ValueId parameter = before.parameters[k];
    const ValueId next = after.results[k - 1];
    if (!facts_.is_value_on_device(parameter)) {
      if (is_carried_idly(graph_, node, k, uses_)) return "";
      if (!is_decision_only(graph_, node, k, uses_)) {
        return "the host carries a value of " + node.name;
      }
      const bool is_fine =
          is_made_here(next) || is_kept(next) || resolve_forwarded(graph_, next) == parameter;
      if (!is_fine) return "the predicate of " + node.name + " is made on the CPU";
      kept_.push_back(parameter);
      return "";
    }
    std::string reason = passed(node.inputs[k], parameter, node);
    return reason.empty() ? passed(next, parameter, node) : reason;
  }

  // A value that becomes another one of known type and shape, in the device's memory.
  std::string passed(ValueId from, ValueId to, const Node& by) const {
    if (is_iteration(graph_, resolve_forwarded(graph_, from))) {
      return by.name + " passes on its iteration number";
    }
    if (uses_[to.index()] == 0 && graph_.value(to).origin == ValueOrigin::kNodeOutput) return "";
    if (!is_fixed_pair(graph_, from, to)) return "a value of " + by.name + " changes its shape";
    if (!facts_.is_value_on_device(to)) return "the host reads a value of " + by.name;
    return "";
  }

  std::string region(RegionId id) {
    for (NodeId inner : graph_.region(id).nodes) {
      const Node& node = graph_.node(inner);
      std::string reason = node.kind == NodeKind::kExec    ? exec(inner, node)
                           : node.kind == NodeKind::kWhile ? loop(node)
                                                           : branch(node);
      if (!reason.empty()) return reason;
    }
    return "";
  }

  std::string exec(NodeId id, const Node& node) const {
    if (!facts_.is_on_device(id)) return node.name + " runs on the CPU";
    if (is_op(node, "ToHost")) {
      return only_decides(node.outputs[0]) ? "" : "the host reads what " + node.name + " copies";
    }
    if (is_op(node, "ToDevice")) {
      const bool is_counter = is_iteration(graph_, node.inputs[0]) &&
                              is_inside(graph_, graph_.value(node.inputs[0]).region, outermost_);
      return is_counter ? "" : node.name + " copies what the host has made";
    }
    if (!is_fixed_node(graph_, node)) return "shapes of " + node.name + " change";
    if (has_host_values(graph_, node)) return node.name + " reads values on the host";
    return "";
  }

  std::string branch(const Node& node) {
    if (!is_made_here(node.inputs[0]) && !is_kept(node.inputs[0])) {
      return "the selector of " + node.name + " is made on the CPU";
    }
    return branches(node);
  }

  // What a branch runs, and what becomes of it.
  std::string branches(const Node& node) {
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      for (RegionId region : node.regions) {
        std::string reason = passed(graph_.region(region).results[k], node.outputs[k], node);
        if (!reason.empty()) return reason;
      }
      if (node.inputs.size() == 1) continue;
      std::string reason = passed(node.inputs[k + 1], node.outputs[k], node);
      if (!reason.empty()) return reason;
    }
    for (RegionId inner : node.regions) {
      std::string reason = region(inner);
      if (!reason.empty()) return reason;
    }
    return "";
  }

  // A copy, inside, of what the device has made.
  bool is_made_here(ValueId value) const {
    const Node* copy = copy_to_host_or_null(graph_, resolve_forwarded(graph_, value));
    return copy != nullptr && is_inside(graph_, copy->region, outermost_);
  }
  // A constant, or a bool that a loop here carries for itself.
  bool is_kept(ValueId value) const {
    const ValueId root = resolve_forwarded(graph_, value);
    return graph_.value(root).origin == ValueOrigin::kConstant ||
           std::ranges::find(kept_, root) != kept_.end();
  }
  bool is_unread_bool(const Node& loop, size_t k) const {
    const ValueId root = resolve_forwarded(graph_, graph_.region(loop.regions[0]).results[k]);
    return std::ranges::find(kept_, root) != kept_.end();
  }
  bool is_known_before(ValueId limit) const {
    if (limit.is_none()) return true;
    const ValueId root = resolve_forwarded(graph_, limit);
    return graph_.value(root).origin == ValueOrigin::kConstant ||
           !is_inside(graph_, graph_.value(root).region, outermost_);
  }

  // Every reader is a decision in here, or carries it for one.
  bool only_decides(ValueId value) const {
    uint32_t decisions = 0;
    const auto look = [&](ValueId read) { decisions += read == value ? 1 : 0; };
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      const Node& node = graph_.node(NodeId(n));
      if (node.kind == NodeKind::kCaseOf) look(node.inputs[0]);
      if (node.kind != NodeKind::kWhile) continue;
      const Region& before = graph_.region(node.regions[0]);
      const Region& after = graph_.region(node.regions[1]);
      look(before.results[0]);
      for (size_t k = 1; k < before.parameters.size(); ++k) {
        if (!is_decision_only(graph_, node, k, uses_)) continue;
        look(node.inputs[k]);
        look(after.results[k - 1]);
      }
    }
    return decisions == uses_[value.index()];
  }

  const Graph& graph_;
  const ControlDriveFacts& facts_;
  const std::vector<uint32_t>& uses_;
  const NodeId outermost_;
  std::vector<ValueId> kept_;  // parameters
};

}  // namespace

std::vector<uint32_t> count_uses(const Graph& graph) {
  std::vector<uint32_t> uses(graph.num_values(), 0);
  const auto use = [&](ValueId value) {
    if (!value.is_none()) ++uses[value.index()];
  };
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    for (ValueId value : graph.node(NodeId(n)).inputs) use(value);
  }
  for (uint32_t r = 0; r < graph.num_regions(); ++r) {
    for (ValueId value : graph.region(RegionId(r)).results) use(value);
  }
  for (ValueId value : graph.outputs()) use(value);
  return uses;
}

const Node* copy_to_host_or_null(const Graph& graph, ValueId value) {
  const ValueInfo& info = graph.value(value);
  if (info.origin != ValueOrigin::kNodeOutput) return nullptr;
  const Node& node = graph.node(info.producer);
  return is_op(node, "ToHost") ? &node : nullptr;
}

bool is_iteration(const Graph& graph, ValueId value) {
  const ValueInfo& info = graph.value(value);
  return info.origin == ValueOrigin::kParameter && info.index == 0 &&
         !graph.region(info.region).owner.is_none();
}

bool is_inside(const Graph& graph, RegionId region, NodeId node) {
  for (NodeId owner = graph.region(region).owner; !owner.is_none();
       owner = graph.region(graph.node(owner).region).owner) {
    if (owner == node) return true;
  }
  return false;
}

bool is_decision_only(const Graph& graph, const Node& loop, size_t carried,
                      const std::vector<uint32_t>& uses) {
  const Region& before = graph.region(loop.regions[0]);
  const Region& after = graph.region(loop.regions[1]);
  const ValueId parameter = before.parameters[carried];
  const ValueType& type = graph.value(parameter).type;
  const bool is_bool = type.is_tensor() && type.tensor.is_static() &&
                       type.tensor.element == ElementType::kBool &&
                       type.tensor.dims.count() == int64_t{1};
  if (!is_bool) return false;
  uint32_t fine = before.results[0] == parameter ? 1 : 0;
  for (size_t k = 1; k < before.results.size(); ++k) {
    if (before.results[k] != parameter) continue;
    // Forwarded, to nobody but the next iteration's parameter.
    const ValueId name = after.parameters[k];
    const uint32_t kept = after.results[carried - 1] == name ? 1 : 0;
    if (uses[name.index()] != kept || uses[loop.outputs[k - 1].index()] != 0) return false;
    ++fine;
  }
  return uses[parameter.index()] == fine;
}

namespace {

// Whether what is carried is only passed on: to outputs that nobody reads, and round to values of
// which the same is assumed.
bool is_passed_idly(const Graph& graph, const Node& loop, size_t carried,
                    const std::vector<uint32_t>& uses, const std::vector<bool>& is_idle) {
  const Region& before = graph.region(loop.regions[0]);
  const Region& after = graph.region(loop.regions[1]);
  const ValueId parameter = before.parameters[carried];
  uint32_t forwarded = 0;
  for (size_t k = 1; k < before.results.size(); ++k) {
    if (before.results[k] != parameter) continue;
    ++forwarded;
    uint32_t round = 0;
    for (size_t next = 1; next < is_idle.size(); ++next) {
      round += is_idle[next] && after.results[next - 1] == after.parameters[k] ? 1 : 0;
    }
    const bool is_read = uses[after.parameters[k].index()] != round;
    if (is_read || uses[loop.outputs[k - 1].index()] != 0) return false;
  }
  return uses[parameter.index()] == forwarded;
}

}  // namespace

bool is_carried_idly(const Graph& graph, const Node& loop, size_t carried,
                     const std::vector<uint32_t>& uses) {
  std::vector<bool> is_idle(graph.region(loop.regions[0]).parameters.size(), true);
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (size_t k = 1; k < is_idle.size(); ++k) {
      if (!is_idle[k] || is_passed_idly(graph, loop, k, uses, is_idle)) continue;
      is_idle[k] = false;
      has_changed = true;
    }
  }
  return is_idle[carried];
}

// Whether a node inside runs on the device, so that the loop stands in a stream of it.
static bool has_work(const Graph& graph, const ControlDriveFacts& facts, NodeId loop) {
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    if (node.kind != NodeKind::kExec || !is_inside(graph, node.region, loop)) continue;
    if (facts.is_on_device(NodeId(n))) return true;
  }
  return false;
}

std::vector<ControlVerdict> judge_control(const Graph& graph, const ControlDriveFacts& facts) {
  std::vector<ControlVerdict> verdicts(graph.num_nodes());
  const std::vector<uint32_t> uses = count_uses(graph);
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    if (node.kind == NodeKind::kExec) continue;
    Judge judge(graph, facts, uses, NodeId(n));
    std::string reason =
        node.kind == NodeKind::kWhile ? judge.loop(node) : judge.branch_alone(node);
    if (reason.empty() && !has_work(graph, facts, NodeId(n))) {
      reason = "nothing of " + node.name + " runs on the device";
    }
    verdicts[n].is_driven_by_device = reason.empty();
    verdicts[n].reason = reason.empty() ? "all of it can be decided by the device" : reason;
  }
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (graph.node(NodeId(n)).kind == NodeKind::kExec) continue;
    verdicts[n].is_outermost = verdicts[n].is_driven_by_device;
    for (NodeId owner = graph.region(graph.node(NodeId(n)).region).owner; !owner.is_none();
         owner = graph.region(graph.node(owner).region).owner) {
      if (!verdicts[owner.index()].is_driven_by_device) continue;
      verdicts[n] = {true, false, "it goes with " + graph.node(owner).name};
      break;
    }
  }
  return verdicts;
}

}  // namespace eddy
