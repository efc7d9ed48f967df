#include "graph/compile/copy_graph.h"

#include <algorithm>

namespace eddy {

GraphCopier::GraphCopier(const Graph& source, GraphBuilder& builder)
    : source_(source), builder_(builder), values_(source.num_values()) {}

void GraphCopier::run() {
  for (const ValueId id : source_.inputs()) {
    const ValueInfo& info = source_.value(id);
    define(id, builder_.input(info.name, with_symbols(info.type)));
  }
  nodes(Graph::kRoot);
  for (size_t i = 0; i < source_.outputs().size(); ++i) {
    builder_.output(source_.output_names()[i], read_by_host(source_.outputs()[i]));
  }
}

void GraphCopier::define(ValueId id, Value value) {
  values_[id.index()] = value;
  if (!value.is_none()) defined(id, value);
}

Value GraphCopier::value(ValueId id) {
  if (id.is_none()) return {};
  const ValueInfo& info = source_.value(id);
  if (info.origin != ValueOrigin::kConstant) return values_[id.index()];
  return builder_.constant_in_blob(source_.constant(info.constant).view(), info.name);
}

std::vector<Value> GraphCopier::handed_on(std::span<const ValueId> from,
                                          std::span<const ValueId> to) {
  std::vector<Value> result;
  for (size_t i = 0; i < from.size(); ++i) result.push_back(handed_on(from[i], to[i]));
  return result;
}

void GraphCopier::define_all(std::span<const ValueId> ids, std::span<const Value> made) {
  for (size_t i = 0; i < std::min(ids.size(), made.size()); ++i) define(ids[i], made[i]);
}

ValueType GraphCopier::with_symbols(ValueType type) {
  for (int axis = 0; axis < type.tensor.dims.rank(); ++axis) {
    const int64_t dim = type.tensor.dims[axis];
    if (dim < kUnknownDim) type.tensor.dims[axis] = builder_.symbol(source_.symbol(dim));
  }
  return type;
}

void GraphCopier::nodes(RegionId region) {
  for (const NodeId id : order(region)) {
    if (!builder_.status().is_ok()) return;
    switch (source_.node(id).kind) {
      case NodeKind::kExec:
        exec(id);
        break;
      case NodeKind::kWhile:
        loop(id);
        break;
      case NodeKind::kCaseOf:
        branch(source_.node(id));
        break;
    }
  }
}

void GraphCopier::copy_exec(NodeId id) {
  const Node& node = source_.node(id);
  std::vector<Value> inputs;
  for (const ValueId input : node.inputs) inputs.push_back(value(input));
  copy_exec(id, inputs, node.device);
}

void GraphCopier::copy_exec(NodeId id, std::span<const Value> inputs, const std::string& device) {
  const Node& node = source_.node(id);
  OpOptions options{.name = name_of(id),
                    .domain = node.op->domain,
                    .opset_version = node.opset_version,
                    .num_outputs = static_cast<int>(node.outputs.size()),
                    .device = device,
                    .output_names = {}};
  for (const ValueId output : node.outputs) {
    options.output_names.push_back(source_.value(output).name);
  }
  define_all(node.outputs,
             builder_.ops(node.op->name, inputs, node.attributes, std::move(options)));
}

void GraphCopier::copy_loop(NodeId id) {
  const Node& node = source_.node(id);
  const Region& before = source_.region(node.regions[0]);
  const Region& after = source_.region(node.regions[1]);
  WhileOptions options;
  options.name = node.name;
  options.trip_limit = awaited_by_host(node.inputs[0]);
  for (size_t k = 1; k < before.parameters.size(); ++k) {
    options.initial.push_back(handed_on(node.inputs[k], before.parameters[k]));
    options.carried_types.push_back(with_symbols(source_.value(before.parameters[k]).type));
  }
  options.num_scan_outputs = node.num_scan_outputs;
  options.rebuild_on_widening = true;
  const auto enter = [&](const Region& region, Value iteration, ValueSpan given) {
    define(region.parameters[0], iteration);
    define_all(std::span(region.parameters).subspan(1), given);
  };
  const auto made = builder_.while_loop(
      options,
      [&](Value iteration, ValueSpan carried) {
        enter(before, iteration, carried);
        nodes(node.regions[0]);
        const Value test = read_by_host(before.results[0]);
        return WhileTest{test, handed_on(std::span(before.results).subspan(1),
                                         std::span(after.parameters).subspan(1))};
      },
      [&](Value iteration, ValueSpan forwarded) {
        enter(after, iteration, forwarded);
        nodes(node.regions[1]);
        std::vector<Value> results =
            handed_on(std::span(after.results).first(before.parameters.size() - 1),
                      std::span(before.parameters).subspan(1));
        for (size_t k = results.size(); k < after.results.size(); ++k) {
          results.push_back(awaited_by_host(after.results[k]));
        }
        return results;
      });
  define_all(node.outputs, made);
}

void GraphCopier::branch(const Node& node) {
  CaseOptions options;
  options.name = node.name;
  options.selector = read_by_host(node.inputs[0]);
  options.default_region = node.default_region;
  options.pass_through = handed_on(std::span(node.inputs).subspan(1), node.outputs);
  std::vector<CaseBody> bodies;
  for (const RegionId region : node.regions) {
    bodies.push_back([this, region, &node] {
      nodes(region);
      return handed_on(source_.region(region).results, node.outputs);
    });
  }
  define_all(node.outputs, builder_.case_of(options, bodies));
}

}  // namespace eddy
