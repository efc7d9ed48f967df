#include "graph/compile/device_choice.h"

#include <algorithm>
#include <span>

#include "graph/ir/aliases.h"
#include "graph/ir/control_view.h"
#include "graph/ir/node_facts.h"

namespace eddy {
namespace {

bool is_dense(const ValueType& type) {
  return type.is_tensor() && type.tensor.element != ElementType::kString &&
         type.tensor.element != ElementType::kUndefined;
}

// A value that control nodes pass on, and all that goes into it.
struct Passed {
  ValueId to;
  std::vector<ValueId> from;
  bool is_of_branch = false;
};

class Chooser {
 public:
  Chooser(const Graph& graph, const DeviceChoiceOptions& options)
      : graph_(graph), options_(options) {
    choice_.is_on_device.resize(graph.num_nodes(), false);
    choice_.values.resize(graph.num_values());
    choice_.reasons.resize(graph.num_nodes());
  }

  DeviceChoice run() {
    find_passed();
    find_small();
    ask_table();
    find_host_reads();
    while (choose_round()) {
    }
    for (uint32_t n = static_cast<uint32_t>(graph_.num_nodes()); n-- > 0;) place_control(NodeId(n));
    find_wants();
    return std::move(choice_);
  }

 private:
  const Node& node(uint32_t n) const { return graph_.node(NodeId(n)); }
  bool is_constant(ValueId value) const {
    return graph_.value(value).origin == ValueOrigin::kConstant;
  }
  bool is_home_device(ValueId value) const { return choice_.values[value.index()].is_on_device; }

  // ---- what control nodes pass on

  void find_passed() {
    for (uint32_t v = 0; v < graph_.num_values(); ++v) {
      Passed passed{ValueId(v), {}};
      for (const AliasSource& source : alias_sources(graph_, ValueId(v))) {
        if (source.kind == AliasKind::kView) continue;
        passed.from.push_back(source.value);
        passed.is_of_branch |= source.kind == AliasKind::kBranch;
      }
      if (!passed.from.empty()) passed_.push_back(std::move(passed));
    }
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      if (node(n).kind != NodeKind::kWhile) continue;
      const LoopView loop(graph_, node(n));
      for (size_t k = 0; k < loop.num_forwarded(); ++k) {
        twins_.emplace_back(loop.received()[k], loop.outputs()[k]);
      }
    }
  }

  // ---- scalar and shape arithmetic

  bool is_small_type(const ValueType& type) const {
    if (!type.is_tensor()) return false;
    const ElementType element = type.tensor.element;
    const bool is_integer = element == ElementType::kInt64 || element == ElementType::kInt32 ||
                            element == ElementType::kBool;
    const auto count = type.tensor.is_static() ? type.tensor.dims.count() : std::nullopt;
    return is_integer && count && *count <= options_.max_host_elements;
  }

  // The largest set that agrees with itself: all are taken for small until something speaks
  // against it.
  void find_small() {
    is_small_.resize(graph_.num_values());
    for (uint32_t v = 0; v < graph_.num_values(); ++v) {
      const ValueInfo& info = graph_.value(ValueId(v));
      is_small_[v] = info.origin == ValueOrigin::kConstant || is_small_type(info.type);
    }
    for (bool has_changed = true; has_changed;) {
      has_changed = false;
      for (uint32_t n = 0; n < graph_.num_nodes(); ++n) has_changed |= shrink_small(node(n));
      for (const Passed& passed : passed_) {
        if (!is_small_[passed.to.index()]) continue;
        if (std::all_of(passed.from.begin(), passed.from.end(),
                        [&](ValueId from) { return is_small_[from.index()]; })) {
          continue;
        }
        is_small_[passed.to.index()] = false;
        has_changed = true;
      }
    }
  }

  bool shrink_small(const Node& node) {
    const bool is_named = !node.device.empty() && node.device == options_.device;
    bool is_small = node.kind != NodeKind::kExec || (!is_named && reads_small_only(node));
    if (node.kind == NodeKind::kWhile) is_small = true;  // its outputs are passed on
    bool has_changed = false;
    for (ValueId output : node.outputs) {
      if (is_small || !is_small_[output.index()]) continue;
      is_small_[output.index()] = false;
      has_changed = true;
    }
    return has_changed;
  }

  bool reads_small_only(const Node& node) const {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i].is_none() || has_flag(node.op->input_flags(i), InputFlag::kShapeOnly)) {
        continue;
      }
      if (!is_small_[node.inputs[i].index()]) return false;
    }
    return true;
  }

  // ---- nodes

  void ask_table() {
    can_run_.resize(graph_.num_nodes(), false);
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      if (node(n).kind != NodeKind::kExec) continue;
      if (!node(n).outputs.empty() && is_small_[node(n).outputs[0].index()]) continue;
      Status status = fits(node(n)) ? options_.can_run(graph_, NodeId(n))
                                    : unsupported("it makes or reads what only the host can hold");
      can_run_[n] = status.is_ok();
      if (!can_run_[n]) choice_.reasons[n] = status.message();
    }
  }

  bool fits(const Node& node) const {
    if (node.op->is_value_op || node.outputs.empty()) return false;
    const auto is_fine = [&](ValueId value) {
      return value.is_none() || is_dense(graph_.value(value).type);
    };
    return std::all_of(node.inputs.begin(), node.inputs.end(), is_fine) &&
           std::all_of(node.outputs.begin(), node.outputs.end(), is_fine);
  }

  void place_control(NodeId id) {
    const Node& control = graph_.node(id);
    for (RegionId region : control.regions) {
      for (NodeId inner : graph_.region(region).nodes) {
        if (choice_.is_on_device[inner.index()]) choice_.is_on_device[id.index()] = true;
      }
    }
  }

  // ---- the fixed point: everything starts on the host and only ever moves to the device

  void find_host_reads() {
    is_read_by_host_.resize(graph_.num_values(), false);
    const auto read = [&](ValueId value) {
      if (!value.is_none()) is_read_by_host_[value.index()] = true;
    };
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      const Node& at = node(n);
      if (at.kind != NodeKind::kExec) {
        if (!at.inputs.empty()) read(at.inputs[0]);  // trip limit or selector
      }
      if (at.kind == NodeKind::kWhile) {
        const LoopView loop(graph_, at);
        read(loop.predicate());
        for (const ValueId row : loop.rows()) read(row);
      }
      for (size_t i = 0; at.kind == NodeKind::kExec && i < at.inputs.size(); ++i) {
        const InputFlag flags = at.op->input_flags(i);
        if (has_flag(flags, InputFlag::kShapeOnly)) continue;
        if (!can_run_[n] || has_flag(flags, InputFlag::kHostValue)) read(at.inputs[i]);
      }
    }
    for (ValueId value : graph_.outputs()) read(value);
  }

  bool choose_round() {
    bool has_changed = false;
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) has_changed |= choose_node(NodeId(n));
    mark_device_reads();
    for (const Passed& passed : passed_) has_changed |= choose_passed(passed);
    for (const auto& [one, two] : twins_) {
      if (is_home_device(one) == is_home_device(two)) continue;
      choice_.values[one.index()].is_on_device = true;
      choice_.values[two.index()].is_on_device = true;
      has_changed = true;
    }
    return has_changed;
  }

  bool choose_node(NodeId id) {
    if (!can_run_[id.index()] || choice_.is_on_device[id.index()]) return false;
    const Node& node = graph_.node(id);
    const bool waits_for_input =
        node.op->is_view && !is_constant(node.inputs[0]) && !is_home_device(node.inputs[0]);
    if (waits_for_input) return false;
    choice_.is_on_device[id.index()] = true;
    for (ValueId output : node.outputs) choice_.values[output.index()].is_on_device = true;
    return true;
  }

  // The readers of each value, as far as they are known by now.
  void mark_device_reads() {
    is_read_by_device_.assign(graph_.num_values(), false);
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      if (!choice_.is_on_device[n] || node(n).kind != NodeKind::kExec) continue;
      for (size_t i = 0; i < node(n).inputs.size(); ++i) {
        if (node(n).inputs[i].is_none() || is_host_input(node(n), i)) continue;
        is_read_by_device_[node(n).inputs[i].index()] = true;
      }
    }
    for (const Passed& passed : passed_) {
      if (!is_home_device(passed.to)) continue;
      for (ValueId from : passed.from) is_read_by_device_[from.index()] = true;
    }
  }

  bool choose_passed(const Passed& passed) {
    ValueWants& value = choice_.values[passed.to.index()];
    if (value.is_on_device || !is_dense(graph_.value(passed.to).type)) return false;
    if (is_small_[passed.to.index()]) return false;
    const bool has_device_source = std::any_of(passed.from.begin(), passed.from.end(),
                                               [&](ValueId from) { return is_home_device(from); });
    const bool is_wanted = is_read_by_device_[passed.to.index()] ||
                           (has_device_source && !is_read_by_host_[passed.to.index()]) ||
                           (has_device_source && passed.is_of_branch && is_made_by_device(passed));
    if (!is_wanted) return false;
    value.is_on_device = true;
    return true;
  }

  // Whichever device is chosen, one copy behind the branch is no more than one in it.
  bool is_made_by_device(const Passed& passed) const {
    return std::all_of(passed.from.begin(), passed.from.end(),
                       [&](ValueId from) { return is_constant(from) || is_home_device(from); });
  }

  // ---- wants

  void want_host(ValueId value) {
    if (value.is_none() || is_constant(value)) return;
    choice_.values[value.index()].wants_host = true;
  }
  // The host reads the bytes while it issues: what a CPU node has made by then is there.
  void want_await(ValueId value) {
    if (value.is_none() || is_constant(value)) return;
    const ValueInfo& info = graph_.value(value);
    const bool is_made_by_cpu = info.origin == ValueOrigin::kNodeOutput &&
                                graph_.node(info.producer).kind == NodeKind::kExec &&
                                !choice_.is_on_device[info.producer.index()];
    const bool is_given =
        info.origin == ValueOrigin::kParameter && (info.region == Graph::kRoot || info.index == 0);
    if (is_made_by_cpu || is_given) return want_host(value);
    choice_.values[value.index()].wants_await = true;
  }
  void want_device(ValueId value) {
    if (value.is_none() || is_constant(value)) return;
    choice_.values[value.index()].wants_device = true;
  }

  void find_wants() {
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      switch (node(n).kind) {
        case NodeKind::kExec:
          want_exec(n);
          break;
        case NodeKind::kWhile:
          want_loop({graph_, node(n)});
          break;
        case NodeKind::kCaseOf:
          want_host(node(n).inputs[0]);
          break;
      }
    }
    for (const Passed& passed : passed_) {
      for (ValueId from : passed.from) {
        is_home_device(passed.to) ? want_device(from) : want_host(from);
      }
    }
    for (ValueId value : graph_.outputs()) want_host(value);
  }

  void want_exec(uint32_t n) {
    for (size_t i = 0; i < node(n).inputs.size(); ++i) {
      const ValueId value = node(n).inputs[i];
      if (has_flag(node(n).op->input_flags(i), InputFlag::kShapeOnly)) continue;
      if (!choice_.is_on_device[n]) {
        want_host(value);
      } else if (has_flag(node(n).op->input_flags(i), InputFlag::kHostValue)) {
        want_await(value);
      } else {
        want_device(value);
      }
    }
  }

  void want_loop(const LoopView& loop) {
    want_await(loop.trip_limit());
    want_host(loop.predicate());
    for (const ValueId row : loop.rows()) want_await(row);
  }

  const Graph& graph_;
  const DeviceChoiceOptions& options_;
  DeviceChoice choice_;
  std::vector<Passed> passed_;
  // Two names of a forwarded value's one memory: one home for both.
  std::vector<std::pair<ValueId, ValueId>> twins_;
  std::vector<bool> is_small_;           // by ValueId
  std::vector<bool> can_run_;            // by NodeId
  std::vector<bool> is_read_by_host_;    // by ValueId
  std::vector<bool> is_read_by_device_;  // by ValueId
};

}  // namespace

DeviceChoice choose_devices(const Graph& graph, const DeviceChoiceOptions& options) {
  return Chooser(graph, options).run();
}

}  // namespace eddy
