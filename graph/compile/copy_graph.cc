#include "graph/compile/copy_graph.h"

#include <algorithm>

#include "graph/base/check.h"
#include "graph/ir/control_view.h"

namespace eddy {

GraphCopier::GraphCopier(const Graph& source, GraphBuilder& builder)
    : source_(source), builder_(builder), values_(source.num_values()) {}

void GraphCopier::run() {
  for (const ValueId id : source_.inputs()) {
    const ValueInfo& info = source_.value(id);
    define(id, builder_.input(info.name, input_type(info)));
  }
  nodes(Graph::kRoot);
  for (size_t i = 0; i < source_.outputs().size(); ++i) {
    builder_.output(source_.output_names()[i], read_by_host(source_.outputs()[i]));
  }
}

void GraphCopier::define(ValueId id, Value value) {
  EDDY_DCHECK(id.index() < values_.size()) << "value " << id.index() << " is not the source's";
  values_[id.index()] = value;
  if (!value.is_none()) defined(id, value);
}

Value GraphCopier::value(ValueId id) {
  if (id.is_none()) return {};
  const ValueInfo& info = source_.value(id);
  EDDY_DCHECK(id.index() < values_.size()) << "value " << id.index() << " of another graph";
  if (info.origin != ValueOrigin::kConstant) return values_[id.index()];
  return builder_.constant_in_blob(source_.constant(info.constant).view(), info.name);
}

std::vector<Value> GraphCopier::values(std::span<const ValueId> ids) {
  std::vector<Value> result;
  for (const ValueId id : ids) result.push_back(value(id));
  return result;
}

std::vector<Value> GraphCopier::handed_on(std::span<const ValueId> from,
                                          std::span<const ValueId> to) {
  std::vector<Value> result;
  EDDY_CHECK(from.size() <= to.size()) << from.size() << " values for " << to.size() << " names";
  for (size_t i = 0; i < from.size(); ++i) result.push_back(handed_on(from[i], to[i]));
  return result;
}

void GraphCopier::define_all(std::span<const ValueId> ids, std::span<const Value> made) {
  EDDY_CHECK(made.size() >= ids.size() || !builder_.status().is_ok())
      << made.size() << " values stand for " << ids.size();
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
    if (!may_go_on()) return;
    switch (source_.node(id).kind) {
      case NodeKind::kExec:
        exec(id);
        break;
      case NodeKind::kWhile:
        loop(id);
        break;
      case NodeKind::kCaseOf:
        branch(id);
        break;
    }
  }
}

void GraphCopier::region(RegionId region) {
  begin_region();
  nodes(region);
  end_region();
}

void GraphCopier::copy_exec(NodeId id) {
  copy_exec(id, values(source_.node(id).inputs), source_.node(id).device);
}

void GraphCopier::copy_exec(NodeId id, std::span<const Value> inputs, const std::string& device) {
  const Node& node = source_.node(id);
  EDDY_CHECK(node.kind == NodeKind::kExec && node.op != nullptr) << node.name << " is no exec node";
  EDDY_CHECK(inputs.size() == node.inputs.size())
      << inputs.size() << " inputs for the " << node.inputs.size() << " of " << node.name;
  copy_exec(id, inputs, device, attributes(node));
}

Attributes GraphCopier::attributes(const Node& node) {
  Attributes copy = node.attributes;
  for (const Attributes::Entry& entry : node.attributes.entries()) {
    const auto* const type = std::get_if<ValueType>(&entry.value);
    if (type != nullptr) copy.set(entry.name, attribute_type(*type));
  }
  return copy;
}

std::vector<Value> GraphCopier::copy_exec(NodeId id, std::span<const Value> inputs,
                                          const std::string& device, Attributes attributes) {
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
  const std::vector<Value> made =
      builder_.ops(node.op->name, inputs, std::move(attributes), std::move(options));
  define_all(node.outputs, made);
  return made;
}

std::vector<std::optional<ValueType>> GraphCopier::carried_types(NodeId id) {
  std::vector<std::optional<ValueType>> types;
  for (const ValueId carried : LoopView(source_, id).carried()) {
    types.push_back(with_symbols(source_.value(carried).type));
  }
  return types;
}

std::vector<Value> GraphCopier::initial_values(NodeId id) {
  const LoopView loop(source_, id);
  return handed_on(loop.initial(), loop.carried());
}

std::vector<Value> GraphCopier::copy_loop(NodeId id, const CarriedToo& more) {
  const LoopView loop(source_, id);
  WhileOptions options;
  options.name = loop.node().name;
  options.trip_limit = awaited_by_host(loop.trip_limit());
  options.initial = initial_values(id);
  options.carried_types = carried_types(id);
  EDDY_CHECK(options.carried_types.size() <= loop.num_carried() &&
             options.initial.size() == loop.num_carried())
      << loop.node().name << " carries " << loop.num_carried() << " values";
  options.num_scan_outputs = loop.node().num_scan_outputs;
  options.rebuild_on_widening = true;
  const auto append = [](std::vector<Value>& values, const std::vector<Value>& others) {
    values.insert(values.end(), others.begin(), others.end());
  };
  append(options.initial, more.initial);
  options.carried_types.resize(options.initial.size());
  const auto build = [&](RegionId body, std::span<const ValueId> own, ValueSpan given) {
    define_all(own, given);
    if (more.begin) more.begin(body, given.last(std::min(more.initial.size(), given.size())));
    region(body);
  };
  const auto made = builder_.while_loop(
      options,
      [&](Value iteration, ValueSpan carried) {
        define(loop.iteration(), iteration);
        build(loop.before_id(), loop.carried(), carried);
        const Value test = read_by_host(loop.predicate());
        std::vector<Value> forwarded = handed_on(loop.forwarded(), loop.received());
        if (more.end) append(forwarded, more.end(loop.before_id()));
        return WhileTest{test, forwarded};
      },
      [&](Value iteration, ValueSpan forwarded) {
        define(loop.after_iteration(), iteration);
        build(loop.after_id(), loop.received(), forwarded);
        std::vector<Value> results = handed_on(loop.next(), loop.carried());
        if (more.end) append(results, more.end(loop.after_id()));
        for (const ValueId row : loop.rows()) results.push_back(awaited_by_host(row));
        return results;
      });
  const size_t num_own = loop.num_forwarded(), num_more = more.initial.size();
  if (made.size() < num_own + num_more) return {};
  const ValueSpan all(made);
  define_all(loop.outputs(), all.first(num_own));
  define_all(loop.stacked(), all.subspan(num_own + num_more));
  const ValueSpan last = all.subspan(num_own, num_more);
  return {last.begin(), last.end()};
}

void GraphCopier::copy_branch(NodeId id, Value selector) {
  const CaseView choice(source_, id);
  CaseOptions options;
  options.name = choice.node().name;
  options.selector = selector;
  options.default_region = choice.node().default_region;
  options.pass_through = handed_on(choice.pass_through(), choice.outputs());
  EDDY_CHECK(!choice.has_pass_through() || options.pass_through.size() == choice.outputs().size())
      << "pass-through values of " << choice.node().name << " for some outputs only";
  std::vector<CaseBody> bodies;
  for (size_t branch = 0; branch < choice.num_branches(); ++branch) {
    bodies.push_back([this, branch, &choice] {
      region(choice.node().regions[branch]);
      return handed_on(choice.results(branch), choice.outputs());
    });
  }
  define_all(choice.outputs(), builder_.case_of(options, bodies));
}

}  // namespace eddy
