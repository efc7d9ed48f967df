#include "graph/compile/place.h"

#include <algorithm>
#include <map>

#include "graph/ir/builder.h"

namespace eddy {
namespace {

constexpr const char* kCpu = "cpu";

class Placer {
 public:
  Placer(const Graph& source, GraphBuilder& builder, const PlaceOptions& options)
      : source_(source),
        builder_(builder),
        options_(options),
        choice_(choose_devices(source, options.choice)) {
    homes_.resize(source.num_values());
    on_device_.resize(source.num_values());
    on_host_.resize(source.num_values());
    awaited_.resize(source.num_values());
  }

  void run() {
    for (ValueId id : source_.inputs()) {
      const ValueInfo& info = source_.value(id);
      define(id, builder_.input(info.name, with_symbols(info.type)));
    }
    nodes(Graph::kRoot);
    for (size_t i = 0; i < source_.outputs().size(); ++i) {
      builder_.output(source_.output_names()[i], on_host(source_.outputs()[i]));
    }
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
  // ---- values

  void note(Value value, bool is_on_device) {
    if (value.is_none()) return;
    const uint32_t index = value.id.index();
    if (device_of_value_.size() <= index) device_of_value_.resize(index + 1, 0);
    device_of_value_[index] = is_on_device ? 1 : 0;
  }

  // `made` stands for `id` from here on; the copies that are wanted of it follow.
  void define(ValueId id, Value made) {
    if (made.is_none()) return;
    const ValueWants& wants = choice_.values[id.index()];
    const uint32_t v = id.index();
    homes_[v] = made;
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

  Value constant(ValueId id) {
    const ValueInfo& info = source_.value(id);
    const Value made = builder_.constant_in_blob(source_.constant(info.constant).view(), info.name);
    note(made, false);
    return made;
  }
  bool is_constant(ValueId id) const { return source_.value(id).origin == ValueOrigin::kConstant; }
  Value one_of(const std::vector<Value>& versions, ValueId id) {
    if (id.is_none()) return {};
    return is_constant(id) ? constant(id) : versions[id.index()];
  }
  Value home(ValueId id) { return one_of(homes_, id); }
  Value on_host(ValueId id) { return one_of(on_host_, id); }
  Value on_device(ValueId id) { return one_of(on_device_, id); }
  Value awaited(ValueId id) {
    const Value value = one_of(awaited_, id);
    return value.is_none() ? on_host(id) : value;
  }
  // Where `to`, which a control node makes of it, is at home.
  Value for_value(ValueId from, ValueId to) {
    return choice_.values[to.index()].is_on_device ? on_device(from) : on_host(from);
  }

  ValueType with_symbols(ValueType type) {
    for (int axis = 0; axis < type.tensor.dims.rank(); ++axis) {
      const int64_t dim = type.tensor.dims[axis];
      if (dim < kUnknownDim) type.tensor.dims[axis] = builder_.symbol(source_.symbol(dim));
    }
    return type;
  }

  // ---- nodes

  void nodes(RegionId region) {
    for (NodeId id : source_.region(region).nodes) {
      if (!builder_.status().is_ok()) return;
      switch (source_.node(id).kind) {
        case NodeKind::kExec:
          exec(id);
          break;
        case NodeKind::kWhile:
          loop(source_.node(id));
          break;
        case NodeKind::kCaseOf:
          branch(source_.node(id));
          break;
      }
    }
  }

  void define_outputs(const Node& node, const std::vector<Value>& made) {
    for (size_t i = 0; i < node.outputs.size() && i < made.size(); ++i) {
      define(node.outputs[i], made[i]);
    }
  }

  void exec(NodeId id) {
    const Node& node = source_.node(id);
    const bool is_on_device = choice_.is_on_device[id.index()];
    std::vector<Value> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto& formals = node.op->inputs;
      const InputFlag flags =
          formals.empty() ? InputFlag::kNone : formals[std::min(i, formals.size() - 1)].flags;
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
    OpOptions op_options{.name = node.name,
                         .domain = node.op->domain,
                         .opset_version = node.opset_version,
                         .num_outputs = static_cast<int>(node.outputs.size()),
                         .device = is_on_device ? options_.device : kCpu,
                         .output_names = {}};
    for (ValueId output : node.outputs) {
      op_options.output_names.push_back(source_.value(output).name);
    }
    define_outputs(node,
                   builder_.ops(node.op->name, inputs, node.attributes, std::move(op_options)));
  }

  void loop(const Node& node) {
    const Region& before = source_.region(node.regions[0]);
    const Region& after = source_.region(node.regions[1]);
    const size_t num_carried = before.parameters.size() - 1;
    WhileOptions while_options;
    while_options.name = node.name;
    while_options.trip_limit = awaited(node.inputs[0]);
    for (size_t k = 0; k < num_carried; ++k) {
      while_options.initial.push_back(for_value(node.inputs[k + 1], before.parameters[k + 1]));
      while_options.carried_types.push_back(
          with_symbols(source_.value(before.parameters[k + 1]).type));
    }
    while_options.num_scan_outputs = node.num_scan_outputs;
    while_options.rebuild_on_widening = true;
    const auto enter = [&](const Region& region, Value iteration, std::span<const Value> given) {
      define(region.parameters[0], iteration);
      for (size_t k = 0; k < given.size(); ++k) define(region.parameters[k + 1], given[k]);
    };
    define_outputs(
        node, builder_.while_loop(
                  while_options,
                  [&](Value iteration, std::span<const Value> carried) {
                    enter(before, iteration, carried);
                    nodes(node.regions[0]);
                    WhileTest test{on_host(before.results[0]), {}};
                    for (size_t k = 1; k < before.results.size(); ++k) {
                      test.forwarded.push_back(for_value(before.results[k], after.parameters[k]));
                    }
                    return test;
                  },
                  [&](Value iteration, std::span<const Value> forwarded) {
                    enter(after, iteration, forwarded);
                    nodes(node.regions[1]);
                    std::vector<Value> results;
                    for (size_t k = 0; k < after.results.size(); ++k) {
                      results.push_back(k < num_carried
                                            ? for_value(after.results[k], before.parameters[k + 1])
                                            : awaited(after.results[k]));
                    }
                    return results;
                  }));
  }

  void branch(const Node& node) {
    CaseOptions case_options;
    case_options.name = node.name;
    case_options.selector = on_host(node.inputs[0]);
    case_options.default_region = node.default_region;
    for (size_t k = 1; k < node.inputs.size(); ++k) {
      case_options.pass_through.push_back(for_value(node.inputs[k], node.outputs[k - 1]));
    }
    std::vector<CaseBody> bodies;
    for (RegionId region : node.regions) {
      bodies.push_back([this, region, &node] {
        nodes(region);
        std::vector<Value> results;
        for (size_t k = 0; k < node.outputs.size(); ++k) {
          results.push_back(for_value(source_.region(region).results[k], node.outputs[k]));
        }
        return results;
      });
    }
    define_outputs(node, builder_.case_of(case_options, bodies));
  }

  const Graph& source_;
  GraphBuilder& builder_;
  const PlaceOptions& options_;
  DeviceChoice choice_;
  // By the source's ValueId: what stands for it where it is at home, and its copies.
  std::vector<Value> homes_;
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
