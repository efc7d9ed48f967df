#include "graph/compile/place.h"

#include <algorithm>
#include <map>

#include "graph/compile/copy_graph.h"

namespace eddy {
namespace {

constexpr const char* kCpu = "cpu";

class Placer : public GraphCopier {
 public:
  Placer(const Graph& source, GraphBuilder& builder, const PlaceOptions& options)
      : GraphCopier(source, builder),
        options_(options),
        choice_(choose_devices(source, with_name(options))),
        on_device_(source.num_values()),
        on_host_(source.num_values()),
        awaited_(source.num_values()) {}

  static DeviceChoiceOptions with_name(const PlaceOptions& options) {
    DeviceChoiceOptions choice = options.choice;
    choice.device = options.device;
    return choice;
  }

  PlacementReport report() const {
    PlacementReport report;
    report.device = options_.device;
    for (uint32_t n = 0; n < source_.num_nodes(); ++n) {
      if (source_.node(NodeId(n)).kind != NodeKind::kExec) continue;
      ++(choice_.is_on_device[n] ? report.num_device_nodes : report.num_cpu_nodes);
      if (choice_.reasons[n].empty()) continue;
      report.cpu_reasons.emplace_back(source_.path(NodeId(n)), choice_.reasons[n]);
    }
    return report;
  }
  std::vector<uint32_t> take_value_devices() { return std::move(device_of_value_); }

 private:
  void note(Value value, bool is_on_device) {
    if (value.is_none()) return;
    const uint32_t index = value.id.index();
    if (device_of_value_.size() <= index) device_of_value_.resize(index + 1, 0);
    device_of_value_[index] = is_on_device ? 1 : 0;
  }

  // The copies that are wanted of it follow.
  void defined(ValueId id, Value made) override {
    const ValueWants& wants = choice_.values[id.index()];
    const uint32_t v = id.index();
    note(made, wants.is_on_device);
    on_device_[v] = wants.is_on_device ? made : Value();
    on_host_[v] = wants.is_on_device ? Value() : made;
    awaited_[v] = Value();
    const std::string& name = source_.value(id).name;
    if (wants.is_on_device && (wants.wants_host || wants.wants_await)) {
      on_host_[v] = copy("ToHost", made, options_.device, name);
      note(on_host_[v], false);
    }
    if (!wants.is_on_device && wants.wants_device) {
      on_device_[v] = copy("ToDevice", made, options_.device, name);
      note(on_device_[v], true);
    }
    if (wants.wants_await) {
      awaited_[v] = copy("Await", on_host_[v], kCpu, name);
      note(awaited_[v], false);
    }
  }

  Value copy(const char* op, Value of, std::string device, const std::string& name) {
    return builder_.op(op, {of}, {},
                       {.name = name.empty() ? std::string() : std::string(op) + "_" + name,
                        .domain = "eddy",
                        .opset_version = 1,
                        .device = std::move(device),
                        .output_names = {}});
  }

  bool is_constant(ValueId id) const { return source_.value(id).origin == ValueOrigin::kConstant; }
  Value home(ValueId id) {
    const Value made = value(id);
    if (!id.is_none() && is_constant(id)) note(made, false);
    return made;
  }
  Value one_of(const std::vector<Value>& versions, ValueId id) {
    return id.is_none() || is_constant(id) ? home(id) : versions[id.index()];
  }
  Value on_host(ValueId id) { return one_of(on_host_, id); }
  Value on_device(ValueId id) { return one_of(on_device_, id); }
  Value awaited(ValueId id) {
    const Value value = one_of(awaited_, id);
    return value.is_none() ? on_host(id) : value;
  }
  Value read_by_host(ValueId id) override { return on_host(id); }
  Value awaited_by_host(ValueId id) override { return awaited(id); }
  // Where `to` is at home.
  Value handed_on(ValueId from, ValueId to) override {
    return choice_.values[to.index()].is_on_device ? on_device(from) : on_host(from);
  }

  void exec(NodeId id) override {
    const Node& node = source_.node(id);
    const bool is_on_device = choice_.is_on_device[id.index()];
    std::vector<Value> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const InputFlag flags = node.op->input_flags(i);
      if (has_flag(flags, InputFlag::kShapeOnly)) {
        inputs.push_back(home(node.inputs[i]));
      } else if (!is_on_device) {
        inputs.push_back(on_host(node.inputs[i]));
      } else if (has_flag(flags, InputFlag::kHostValue)) {
        inputs.push_back(awaited(node.inputs[i]));
      } else {
        inputs.push_back(on_device(node.inputs[i]));
      }
    }
    copy_exec(id, inputs, is_on_device ? options_.device : kCpu);
  }

  const PlaceOptions& options_;
  DeviceChoice choice_;
  // The values that stand for a source value on either side, by its ValueId.
  std::vector<Value> on_device_;
  std::vector<Value> on_host_;
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
  std::string text = counted(num_device_nodes, "node") + " on " + device + ", " +
                     std::to_string(num_cpu_nodes) + " on the CPU, " +
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
