#include "graph/compile/device_choice.h"

#include <algorithm>
#include <span>

#include "graph/base/check.h"
#include "graph/ir/aliases.h"
#include "graph/ir/control_view.h"
#include "graph/ir/node_facts.h"
#include "graph/ir/region_tree.h"

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
  Chooser(const Graph& graph, const std::vector<std::string>& devices,
          const DeviceChoiceOptions& options)
      : graph_(graph), devices_(devices), options_(options) {
    EDDY_CHECK(devices.size() <= kMaxDevices) << devices.size() << " devices";
    EDDY_CHECK(!devices.empty()) << "the host is a device too";
    EDDY_CHECK(devices.size() == 1 || options.can_run) << "devices without a capability table";
    choice_.devices.resize(graph.num_nodes(), 0);
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
    EDDY_DCHECK(agrees_with_itself()) << "a node and what it makes are on different devices";
    return std::move(choice_);
  }

 private:
  // What an exec node makes is at home where it runs, and only one on the CPU has a reason for it.
  bool agrees_with_itself() const {
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      if (choice_.devices[n] >= devices_.size()) return false;
      if (choice_.devices[n] != 0 && !choice_.reasons[n].empty()) return false;
      if (node(n).kind != NodeKind::kExec) continue;
      for (const ValueId output : node(n).outputs) {
        if (home(output) != choice_.devices[n]) return false;
      }
    }
    return true;
  }

  const Node& node(uint32_t n) const { return graph_.node(NodeId(n)); }
  bool is_constant(ValueId value) const {
    return graph_.value(value).origin == ValueOrigin::kConstant;
  }
  uint32_t home(ValueId value) const { return choice_.values[value.index()].device; }
  // 0: it names none.
  uint32_t named_device(const Node& node) const {
    const auto found = std::ranges::find(devices_, node.device);
    return found == devices_.end() ? 0 : static_cast<uint32_t>(found - devices_.begin());
  }

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
        EDDY_DCHECK(k < loop.received().size() && k < loop.outputs().size())
            << loop.node().name << " forwards more than it receives";
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

  // The largest set that agrees with itself: all are taken for small until something is against it.
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
    const bool is_named = named_device(node) != 0;
    bool is_small =
        node.kind != NodeKind::kExec || (!is_named && !is_off_host(node) && reads_small_only(node));
    if (node.kind == NodeKind::kWhile) is_small = true;  // its outputs are passed on
    bool has_changed = false;
    for (ValueId output : node.outputs) {
      if (is_small || !is_small_[output.index()]) continue;
      is_small_[output.index()] = false;
      has_changed = true;
    }
    return has_changed;
  }

  bool is_off_host(const Node& node) const {
    return std::ranges::any_of(options_.loops_off_host, [&](NodeId loop) {
      return RegionTree(graph_).is_inside(node.region, loop);
    });
  }

  bool reads_small_only(const Node& node) const {
    EDDY_DCHECK(node.kind == NodeKind::kExec && node.op != nullptr)
        << node.name << " has no operator";
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
    can_run_.resize(graph_.num_nodes(), 0);
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      if (node(n).kind != NodeKind::kExec) continue;
      if (!node(n).outputs.empty() && is_small_[node(n).outputs[0].index()]) continue;
      Status status = fits(node(n)) ? find_kernel(NodeId(n))
                                    : unsupported("it makes or reads what only the host can hold");
      if (!status.is_ok()) choice_.reasons[n] = status.message();
    }
  }

  // Of the device that the node names, else of the first one that has any; else why the first has
  // none.
  Status find_kernel(NodeId id) {
    const uint32_t named = named_device(graph_.node(id));
    Status first;
    for (uint32_t d = named == 0 ? 1 : named; d < devices_.size() && can_run_[id.index()] == 0;
         ++d) {
      Status status = options_.can_run(graph_, id, d);
      if (status.is_ok()) can_run_[id.index()] = d;
      if (first.is_ok()) first = std::move(status);
      if (named != 0) break;
    }
    return can_run_[id.index()] != 0 ? Status::ok() : first;
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
        if (choice_.devices[id.index()] != 0) return;
        EDDY_DCHECK(inner > id) << "a node in " << control.name << " was made before it";
        choice_.devices[id.index()] = choice_.devices[inner.index()];
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
        if (can_run_[n] == 0 || has_flag(flags, InputFlag::kHostValue)) read(at.inputs[i]);
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
      if (home(one) == home(two)) continue;
      const uint32_t device = home(one) != 0 ? home(one) : home(two);
      choice_.values[one.index()].device = choice_.values[two.index()].device = device;
      has_changed = true;
    }
    return has_changed;
  }

  bool choose_node(NodeId id) {
    uint32_t device = can_run_[id.index()];
    if (device == 0 || choice_.devices[id.index()] != 0) return false;
    const Node& node = graph_.node(id);
    EDDY_DCHECK(node.kind == NodeKind::kExec && device < devices_.size())
        << node.name << " has no kernel on device " << device;
    if (node.op->is_view && !is_constant(node.inputs[0])) {
      const uint32_t input = home(node.inputs[0]);
      if (input == 0) return false;  // it waits for its input
      const bool may_follow = named_device(node) == 0 && input != device;
      if (may_follow && options_.can_run(graph_, id, input).is_ok()) device = input;
    }
    choice_.devices[id.index()] = device;
    for (ValueId output : node.outputs) choice_.values[output.index()].device = device;
    return true;
  }

  // What reads which value, as far as is known by now.
  void mark_device_reads() {
    reading_device_.assign(graph_.num_values(), 0);
    const auto mark = [&](ValueId value, uint32_t device) {
      uint32_t& first = reading_device_[value.index()];
      if (first == 0) first = device;
    };
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      if (node(n).kind != NodeKind::kExec) continue;
      for (size_t i = 0; i < node(n).inputs.size(); ++i) {
        if (node(n).inputs[i].is_none() || is_host_input(node(n), i)) continue;
        mark(node(n).inputs[i], choice_.devices[n]);
      }
    }
    for (const Passed& passed : passed_) {
      for (ValueId from : passed.from) mark(from, home(passed.to));
    }
  }

  bool choose_passed(const Passed& passed) {
    EDDY_DCHECK(!passed.from.empty()) << "nothing goes into value " << passed.to.index();
    ValueWants& value = choice_.values[passed.to.index()];
    if (value.device != 0 || !is_dense(graph_.value(passed.to).type)) return false;
    if (is_small_[passed.to.index()]) return false;
    const auto source = std::ranges::find_if(passed.from, [&](ValueId v) { return home(v) != 0; });
    const uint32_t made_by = source == passed.from.end() ? 0 : home(*source);
    if (const uint32_t reader = reading_device_[passed.to.index()]; reader != 0) {
      value.device = reader;
    } else if (!is_read_by_host_[passed.to.index()] ||
               (passed.is_of_branch && is_made_by_devices(passed))) {
      value.device = made_by;
    }
    return value.device != 0;
  }

  // One copy behind the branch is no more than one in it.
  bool is_made_by_devices(const Passed& passed) const {
    return std::all_of(passed.from.begin(), passed.from.end(),
                       [&](ValueId from) { return is_constant(from) || home(from) != 0; });
  }

  // ---- wants

  void want(ValueId value, uint32_t device) {
    if (value.is_none() || is_constant(value)) return;
    EDDY_DCHECK(device < devices_.size()) << "device " << device << " of " << devices_.size();
    choice_.values[value.index()].wanted_by |= uint64_t{1} << device;
  }
  // The host reads the bytes while it issues: what a CPU node has made by then is there.
  void want_await(ValueId value) {
    if (value.is_none() || is_constant(value)) return;
    const ValueInfo& info = graph_.value(value);
    const bool is_made_by_cpu = info.origin == ValueOrigin::kNodeOutput &&
                                graph_.node(info.producer).kind == NodeKind::kExec &&
                                choice_.devices[info.producer.index()] == 0;
    const bool is_given =
        info.origin == ValueOrigin::kParameter && (info.region == Graph::kRoot || info.index == 0);
    if (is_made_by_cpu || is_given) return want(value, 0);
    choice_.values[value.index()].wants_await = true;
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
          want(node(n).inputs[0], 0);
          break;
      }
    }
    for (const Passed& passed : passed_) {
      for (ValueId from : passed.from) want(from, home(passed.to));
    }
    for (ValueId value : graph_.outputs()) want(value, 0);
  }

  void want_exec(uint32_t n) {
    for (size_t i = 0; i < node(n).inputs.size(); ++i) {
      const ValueId value = node(n).inputs[i];
      if (has_flag(node(n).op->input_flags(i), InputFlag::kShapeOnly)) continue;
      const bool is_host_value = has_flag(node(n).op->input_flags(i), InputFlag::kHostValue);
      if (choice_.devices[n] != 0 && is_host_value) {
        want_await(value);
      } else {
        want(value, choice_.devices[n]);
      }
    }
  }

  void want_loop(const LoopView& loop) {
    want_await(loop.trip_limit());
    want(loop.predicate(), 0);
    for (const ValueId row : loop.rows()) want_await(row);
  }

  const Graph& graph_;
  const std::vector<std::string>& devices_;
  const DeviceChoiceOptions& options_;
  DeviceChoice choice_;
  std::vector<Passed> passed_;
  // Two names of a forwarded value's one memory: one home for both.
  std::vector<std::pair<ValueId, ValueId>> twins_;
  std::vector<bool> is_small_;            // by ValueId
  std::vector<uint32_t> can_run_;         // by NodeId: a device that has its kernel; 0: none
  std::vector<bool> is_read_by_host_;     // by ValueId
  std::vector<uint32_t> reading_device_;  // by ValueId: one that reads it; 0: none
};

}  // namespace

DeviceChoice choose_devices(const Graph& graph, const std::vector<std::string>& devices,
                            const DeviceChoiceOptions& options) {
  return Chooser(graph, devices, options).run();
}

}  // namespace eddy
