#include "graph/compile/place.h"

#include <algorithm>
#include <map>

#include "graph/base/check.h"
#include "graph/compile/copy_graph.h"

namespace eddy {
namespace {

class Placer : public GraphCopier {
 public:
  Placer(const Graph& source, GraphBuilder& builder, const PlaceOptions& options)
      : GraphCopier(source, builder),
        options_(options),
        choice_(choose_devices(source, options.devices, options.choice)),
        on_(options.devices.size(), std::vector<Value>(source.num_values())),
        awaited_(source.num_values()) {}

  PlacementReport report() const {
    EDDY_CHECK(choice_.devices.size() == source_.num_nodes() &&
               choice_.reasons.size() == source_.num_nodes())
        << "the choice is of another graph";
    PlacementReport report;
    report.devices = options_.devices;
    report.num_nodes.resize(options_.devices.size(), 0);
    for (uint32_t n = 0; n < source_.num_nodes(); ++n) {
      if (source_.node(NodeId(n)).kind != NodeKind::kExec) continue;
      ++report.num_nodes[choice_.devices[n]];
      if (choice_.reasons[n].empty()) continue;
      report.cpu_reasons.emplace_back(source_.path(NodeId(n)), choice_.reasons[n]);
    }
    return report;
  }
  std::vector<uint32_t> take_value_devices() { return std::move(device_of_value_); }

 private:
  void note(Value value, uint32_t device) {
    if (value.is_none()) return;
    const uint32_t index = value.id.index();
    if (device_of_value_.size() <= index) device_of_value_.resize(index + 1, 0);
    device_of_value_[index] = device;
  }

  // The copies that are wanted of it follow.
  void defined(ValueId id, Value made) override {
    const ValueWants& wants = choice_.values[id.index()];
    const uint32_t v = id.index();
    EDDY_DCHECK(wants.device < on_.size()) << "value " << v << " is on no device";
    note(made, wants.device);
    for (std::vector<Value>& versions : on_) versions[v] = Value();
    on_[wants.device][v] = made;
    awaited_[v] = Value();
    const std::string& name = source_.value(id).name;
    const uint64_t elsewhere = wants.wanted_by & ~(uint64_t{1} << wants.device);
    if (wants.device != 0 && (elsewhere != 0 || wants.wants_await)) {
      on_[0][v] = copy("ToHost", made, wants.device, name);
      note(on_[0][v], 0);
    }
    for (uint32_t d = 1; d < on_.size(); ++d) {
      if (d == wants.device || !wants.is_wanted_by(d)) continue;
      EDDY_DCHECK(!on_[0][v].is_none() || !builder_.status().is_ok())
          << name << " goes to a device by way of the host";
      on_[d][v] = copy("ToDevice", on_[0][v], d, name);
      note(on_[d][v], d);
    }
    if (wants.wants_await) {
      EDDY_DCHECK(!on_[0][v].is_none() || !builder_.status().is_ok())
          << "the host awaits " << name << ", which it has no copy of";
      awaited_[v] = copy("Await", on_[0][v], 0, name);
      note(awaited_[v], 0);
    }
  }

  // Names tell devices apart but for the first.
  Value copy(const char* op, Value of, uint32_t device, const std::string& name) {
    EDDY_DCHECK(device < options_.devices.size()) << op << " of device " << device;
    const std::string suffix = device > 1 ? "_" + options_.devices[device] : "";
    return builder_.op(
        op, {of}, {},
        {.name = name.empty() ? std::string() : std::string(op) + "_" + name + suffix,
         .domain = "eddy",
         .opset_version = 1,
         .device = options_.devices[device],
         .output_names = {}});
  }

  bool is_constant(ValueId id) const { return source_.value(id).origin == ValueOrigin::kConstant; }
  Value home(ValueId id) {
    const Value made = value(id);
    if (!id.is_none() && is_constant(id)) note(made, 0);
    return made;
  }
  Value one_of(const std::vector<Value>& versions, ValueId id) {
    return id.is_none() || is_constant(id) ? home(id) : versions[id.index()];
  }
  Value on(uint32_t device, ValueId id) { return one_of(on_[device], id); }
  Value awaited(ValueId id) {
    const Value value = one_of(awaited_, id);
    return value.is_none() ? on(0, id) : value;
  }
  Value read_by_host(ValueId id) override { return on(0, id); }
  Value awaited_by_host(ValueId id) override { return awaited(id); }
  // Where `to` is at home.
  Value handed_on(ValueId from, ValueId to) override {
    return on(choice_.values[to.index()].device, from);
  }

  void exec(NodeId id) override {
    const Node& node = source_.node(id);
    const uint32_t device = choice_.devices[id.index()];
    std::vector<Value> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const InputFlag flags = node.op->input_flags(i);
      if (has_flag(flags, InputFlag::kShapeOnly)) {
        inputs.push_back(home(node.inputs[i]));
      } else if (device != 0 && has_flag(flags, InputFlag::kHostValue)) {
        inputs.push_back(awaited(node.inputs[i]));
      } else {
        inputs.push_back(on(device, node.inputs[i]));
      }
      EDDY_DCHECK(inputs.back().is_none() == node.inputs[i].is_none() || !may_go_on())
          << "input " << i << " of " << node.name << " has no copy on device " << device;
    }
    copy_exec(id, inputs, options_.devices[device]);
  }

  const PlaceOptions& options_;
  DeviceChoice choice_;
  // By the source's ValueId: what stands for it, on each device.
  std::vector<std::vector<Value>> on_;
  std::vector<Value> awaited_;
  std::vector<uint32_t> device_of_value_;  // by the new graph's ValueId
};

}  // namespace

namespace {

bool is_copy(const Node& node) {
  return node.kind == NodeKind::kExec && node.op->domain == "eddy" &&
         (node.op->name == "ToDevice" || node.op->name == "ToHost");
}

std::string counted(size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace

std::string PlacementReport::text() const {
  EDDY_CHECK(!devices.empty() && num_nodes.size() == devices.size())
      << num_nodes.size() << " counts for " << devices.size() << " devices";
  std::string text;
  for (size_t d = 1; d < devices.size(); ++d) {
    text += counted(num_nodes[d], "node") + " on " + devices[d] + ", ";
  }
  text += std::to_string(num_nodes[0]) + " on the CPU, " +
          (num_copies == 1 ? "1 copy" : std::to_string(num_copies) + " copies") + "\n";
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const auto& [path, reason] : cpu_reasons) by_reason[reason].push_back(path);
  for (const auto& [reason, paths] : by_reason) {
    constexpr size_t kMostNames = 4;
    text += "  on the CPU: ";
    for (size_t i = 0; i < std::min(paths.size(), kMostNames); ++i) {
      text += (i > 0 ? ", " : "") + paths[i];
    }
    if (paths.size() > kMostNames) {
      text += " and " + std::to_string(paths.size() - kMostNames) + " more";
    }
    text += ": " + reason + "\n";
  }
  return text;
}

Result<PlacedGraph> place(Graph graph, const OpTable& ops, const PlaceOptions& options) {
  GraphBuilder builder(ops, graph.name());
  Placer placer(graph, builder, options);
  placer.run();
  PlacementReport report = placer.report();
  std::vector<uint32_t> value_devices = placer.take_value_devices();
  builder.adopt_blobs_of(std::move(graph));
  EDDY_ASSIGN_OR_RETURN(Graph placed, builder.finish());
  value_devices.resize(placed.num_values(), 0);
  for (uint32_t n = 0; n < placed.num_nodes(); ++n) {
    if (is_copy(placed.node(NodeId(n)))) ++report.num_copies;
  }
  return PlacedGraph{std::move(placed), std::move(value_devices), std::move(report)};
}

}  // namespace eddy
