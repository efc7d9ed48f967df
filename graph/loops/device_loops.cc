#include "graph/loops/device_loops.h"

#include <algorithm>

#include "graph/base/check.h"
#include "graph/ir/aliases.h"
#include "graph/ir/node_facts.h"
#include "graph/ir/region_tree.h"

namespace eddy {
namespace {

bool is_op(const Node& node, std::string_view name) {
  return node.kind == NodeKind::kExec && node.op->domain == "eddy" && node.op->name == name;
}

class DriveRules {
 public:
  DriveRules(const Graph& graph, const ControlDriveFacts& facts, const std::vector<uint32_t>& uses,
             NodeId outermost, uint32_t device)
      : graph_(graph), facts_(facts), uses_(uses), outermost_(outermost), device_(device) {}

  // Empty: the device can drive it.
  std::string loop(const Node& node) {
    const LoopView loop(graph_, node);
    if (!loop.rows().empty()) {
      std::string reason = rows(loop);
      if (!reason.empty()) return reason;
    }
    for (size_t k = 0; k < loop.num_carried(); ++k) {
      std::string reason = carried(loop, k);
      if (!reason.empty()) return reason;
    }
    if (!is_known_before(loop.trip_limit())) return "the limit of " + node.name + " is made inside";
    if (!is_made_here(loop.predicate()) && !is_kept(loop.predicate())) {
      return "the predicate of " + node.name + " is made on the CPU";
    }
    for (size_t k = 0; k < loop.num_forwarded(); ++k) {
      if (is_unread_bool(loop.forwarded()[k])) continue;
      std::string reason = passed(loop.forwarded()[k], loop.outputs()[k], node);
      if (!reason.empty()) return reason;
    }
    std::string reason = region(loop.before_id());
    return reason.empty() ? region(loop.after_id()) : reason;
  }

  // The same for a branch that is in nothing that the device drives.
  std::string branch_alone(const Node& node) {
    const ValueId root = resolve_forwarded(graph_, node.inputs[0]);
    const TensorType& type = graph_.value(root).type.tensor;
    const Node* const copy = copy_to_host_or_null(graph_, root);
    if (copy == nullptr || !is_value_here(copy->inputs[0])) {
      return "the host knows the selector of " + node.name;
    }
    if (!type.is_static() || type.dims.count() != int64_t{1}) {
      return "the selector of " + node.name + " changes its shape";
    }
    return branches(node);
  }

 private:
  std::string carried(const LoopView& loop, size_t k) {
    const Node& node = loop.node();
    const ValueId parameter = loop.carried()[k];
    const ValueId next = loop.next()[k];
    if (!is_value_here(parameter)) {
      if (is_carried_idly(loop, k, uses_)) return "";
      if (!is_decision_only(graph_, loop, k, uses_)) {
        return "the host carries a value of " + node.name;
      }
      const bool is_fine =
          is_made_here(next) || is_kept(next) || resolve_forwarded(graph_, next) == parameter;
      if (!is_fine) return "the predicate of " + node.name + " is made on the CPU";
      kept_.push_back(parameter);
      return "";
    }
    std::string reason = passed(loop.initial()[k], parameter, node);
    return reason.empty() ? passed(next, parameter, node) : reason;
  }

  // Room for them is made before the loop runs, and their number is known once it has ended.
  std::string rows(const LoopView& loop) const {
    const std::string& name = loop.node().name;
    if (&loop.node() != &graph_.node(outermost_)) return "the host stacks the rows of " + name;
    if (loop.trip_limit().is_none()) return "the rows of " + name + " have no limit";
    for (const ValueId row : loop.rows()) {
      const Node* const copy = row_copy_or_null(graph_, row);
      if (copy == nullptr || !is_inside(copy->region) || !is_value_here(copy->inputs[0])) {
        return "the host makes a row of " + name;
      }
      if (!graph_.value(copy->inputs[0]).type.is_static_tensor()) {
        return "a row of " + name + " changes its shape";
      }
    }
    return "";
  }

  // A value that becomes another one of known type and shape, in the device's memory.
  std::string passed(ValueId from, ValueId to, const Node& by) const {
    if (is_iteration(graph_, resolve_forwarded(graph_, from))) {
      return by.name + " passes on its iteration number";
    }
    if (uses_[to.index()] == 0 && graph_.value(to).origin == ValueOrigin::kNodeOutput) return "";
    if (!is_static_pair(graph_, from, to)) return "a value of " + by.name + " changes its shape";
    if (!is_value_here(to)) return "the host reads a value of " + by.name;
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
    const uint32_t device = facts_.device_of(id);
    if (device == 0 && is_only_row(node)) return "";
    if (device == 0) return node.name + " runs on the CPU";
    if (device != device_) return node.name + " runs on another device";
    if (is_op(node, "ToHost")) {
      const bool is_needless = count_needless(node.outputs[0]) == uses_[node.outputs[0].index()];
      return is_needless ? "" : "the host reads what " + node.name + " copies";
    }
    if (is_op(node, "ToDevice")) {
      const bool is_counter =
          is_iteration(graph_, node.inputs[0]) && is_inside(graph_.value(node.inputs[0]).region);
      return is_counter ? "" : node.name + " copies what the host has made";
    }
    if (!is_static_node(graph_, node)) return "shapes of " + node.name + " change";
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
    for (const ValueId output : node.outputs) {
      for (const AliasSource& source : alias_sources(graph_, output)) {
        std::string reason = passed(source.value, output, node);
        if (!reason.empty()) return reason;
      }
    }
    for (RegionId inner : node.regions) {
      std::string reason = region(inner);
      if (!reason.empty()) return reason;
    }
    return "";
  }

  bool is_value_here(ValueId value) const {
    const uint32_t device = facts_.value_device(value);
    return device != 0 && (device_ == 0 || device == device_);
  }
  bool is_inside(RegionId region) const { return RegionTree(graph_).is_inside(region, outermost_); }
  // A copy, inside, of what the device has made.
  bool is_made_here(ValueId value) const {
    const Node* copy = copy_to_host_or_null(graph_, resolve_forwarded(graph_, value));
    return copy != nullptr && is_inside(copy->region);
  }
  // A constant, or a bool that a loop here carries for itself.
  bool is_kept(ValueId value) const {
    const ValueId root = resolve_forwarded(graph_, value);
    return graph_.value(root).origin == ValueOrigin::kConstant ||
           std::ranges::find(kept_, root) != kept_.end();
  }
  bool is_unread_bool(ValueId forwarded) const {
    const ValueId root = resolve_forwarded(graph_, forwarded);
    return std::ranges::find(kept_, root) != kept_.end();
  }
  bool is_known_before(ValueId limit) const {
    if (limit.is_none()) return true;
    const ValueId root = resolve_forwarded(graph_, limit);
    return graph_.value(root).origin == ValueOrigin::kConstant ||
           !is_inside(graph_.value(root).region);
  }

  // It awaits what becomes a row of the outermost loop, and nothing else.
  bool is_only_row(const Node& node) const {
    if (!is_op(node, "Await") || graph_.node(outermost_).kind != NodeKind::kWhile) return false;
    const LoopView loop(graph_, outermost_);
    const auto is_row_only = [&](ValueId name, uint32_t others) {
      const auto rows = static_cast<uint32_t>(std::ranges::count(loop.rows(), name));
      return rows + others == uses_[name.index()];
    };
    uint32_t forwarded = 0;
    for (size_t f = 0; f < loop.num_forwarded(); ++f) {
      if (loop.forwarded()[f] != node.outputs[0]) continue;
      if (!is_row_only(loop.received()[f], 0) || uses_[loop.outputs()[f].index()] != 0)
        return false;
      ++forwarded;
    }
    return is_row_only(node.outputs[0], forwarded);
  }

  // Readers that are decisions in here, carry it for one, or make rows of it.
  uint32_t count_needless(ValueId value) const {
    uint32_t decisions = 0;
    const auto look = [&](ValueId read) { decisions += read == value ? 1 : 0; };
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      const Node& node = graph_.node(NodeId(n));
      if (node.kind == NodeKind::kCaseOf) look(node.inputs[0]);
      if (node.kind == NodeKind::kExec && is_only_row(node)) look(node.inputs[0]);
      if (node.kind != NodeKind::kWhile) continue;
      const LoopView loop(graph_, node);
      look(loop.predicate());
      for (size_t k = 0; k < loop.num_carried(); ++k) {
        if (!is_decision_only(graph_, loop, k, uses_)) continue;
        look(loop.initial()[k]);
        look(loop.next()[k]);
      }
    }
    return decisions;
  }

  const Graph& graph_;
  const ControlDriveFacts& facts_;
  const std::vector<uint32_t>& uses_;
  const NodeId outermost_;
  const uint32_t device_;
  std::vector<ValueId> kept_;  // parameters
};

}  // namespace

const Node* row_copy_or_null(const Graph& graph, ValueId row) {
  const ValueInfo& info = graph.value(resolve_forwarded(graph, row));
  if (info.origin != ValueOrigin::kNodeOutput) return nullptr;
  const Node& awaits = graph.node(info.producer);
  return is_op(awaits, "Await") ? copy_to_host_or_null(graph, awaits.inputs[0]) : nullptr;
}

const Node* copy_to_host_or_null(const Graph& graph, ValueId value) {
  const ValueInfo& info = graph.value(value);
  if (info.origin != ValueOrigin::kNodeOutput) return nullptr;
  const Node& node = graph.node(info.producer);
  return is_op(node, "ToHost") ? &node : nullptr;
}

bool is_decision_only(const Graph& graph, const LoopView& loop, size_t k,
                      const std::vector<uint32_t>& uses) {
  EDDY_CHECK(k < loop.num_carried() && uses.size() == graph.num_values())
      << "carried value " << k << " of " << loop.num_carried();
  const ValueId carried = loop.carried()[k];
  const ValueType& type = graph.value(carried).type;
  const bool is_bool = type.is_static_tensor() && type.tensor.element == ElementType::kBool &&
                       type.tensor.dims.count() == int64_t{1};
  if (!is_bool) return false;
  uint32_t fine = loop.predicate() == carried ? 1 : 0;
  for (size_t f = 0; f < loop.num_forwarded(); ++f) {
    if (loop.forwarded()[f] != carried) continue;
    // Forwarded, to nothing but the next iteration's parameter.
    const ValueId name = loop.received()[f];
    const uint32_t kept = loop.next()[k] == name ? 1 : 0;
    if (uses[name.index()] != kept || uses[loop.outputs()[f].index()] != 0) return false;
    ++fine;
  }
  return uses[carried.index()] == fine;
}

namespace {

// Whether what is carried is only passed on: to outputs that are not read, and round to values of
// which the same is assumed.
bool is_passed_idly(const LoopView& loop, ValueId carried, const std::vector<uint32_t>& uses,
                    const std::vector<bool>& is_idle) {
  uint32_t forwarded = 0;
  for (size_t f = 0; f < loop.num_forwarded(); ++f) {
    if (loop.forwarded()[f] != carried) continue;
    ++forwarded;
    const ValueId name = loop.received()[f];
    uint32_t round = 0;
    for (size_t k = 0; k < is_idle.size(); ++k) {
      round += is_idle[k] && loop.next()[k] == name ? 1 : 0;
    }
    if (uses[name.index()] != round || uses[loop.outputs()[f].index()] != 0) return false;
  }
  return uses[carried.index()] == forwarded;
}

}  // namespace

bool is_carried_idly(const LoopView& loop, size_t k, const std::vector<uint32_t>& uses) {
  EDDY_CHECK(k < loop.num_carried()) << "carried value " << k << " of " << loop.num_carried();
  std::vector<bool> is_idle(loop.num_carried(), true);
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (size_t i = 0; i < is_idle.size(); ++i) {
      if (!is_idle[i] || is_passed_idly(loop, loop.carried()[i], uses, is_idle)) continue;
      is_idle[i] = false;
      has_changed = true;
    }
  }
  return is_idle[k];
}

// Of the first node inside that runs on one, so that the loop stands in a stream of it; 0: none.
static uint32_t device_of_loop(const Graph& graph, const ControlDriveFacts& facts, NodeId loop) {
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    if (node.kind != NodeKind::kExec || !RegionTree(graph).is_inside(node.region, loop)) continue;
    if (const uint32_t device = facts.device_of(NodeId(n)); device != 0) return device;
  }
  return 0;
}

std::vector<ControlVerdict> find_device_loops(const Graph& graph, const ControlDriveFacts& facts) {
  std::vector<ControlVerdict> verdicts(graph.num_nodes());
  const std::vector<uint32_t> uses = count_uses(graph);
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    if (node.kind == NodeKind::kExec) continue;
    const uint32_t device = device_of_loop(graph, facts, NodeId(n));
    DriveRules rules(graph, facts, uses, NodeId(n), device);
    std::string reason =
        node.kind == NodeKind::kWhile ? rules.loop(node) : rules.branch_alone(node);
    if (reason.empty() && device == 0) reason = "nothing of " + node.name + " runs on the device";
    verdicts[n].device = device;
    verdicts[n].is_driven_by_device = reason.empty();
    verdicts[n].reason = reason.empty() ? "all of it can be decided by the device" : reason;
  }
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (graph.node(NodeId(n)).kind == NodeKind::kExec) continue;
    verdicts[n].is_outermost = verdicts[n].is_driven_by_device;
    for (NodeId owner = graph.region(graph.node(NodeId(n)).region).owner; !owner.is_none();
         owner = graph.region(graph.node(owner).region).owner) {
      if (!verdicts[owner.index()].is_driven_by_device) continue;
      verdicts[n] = {true, false, "it goes with " + graph.node(owner).name, verdicts[n].device};
      break;
    }
  }
  return verdicts;
}

}  // namespace eddy
