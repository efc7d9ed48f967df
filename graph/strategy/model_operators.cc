#include "graph/strategy/model_operators.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "graph/base/check.h"
#include "graph/ir/control_view.h"
#include "graph/strategy/regions.h"

namespace eddy {
namespace {

std::vector<int64_t> integers(const Attributes& attributes, const char* list, const char* single) {
  const std::span<const int64_t> given = attributes.get_ints(list);
  if (!given.empty()) return {given.begin(), given.end()};
  if (single != nullptr && attributes.has(single)) return {attributes.get_int(single, 0)};
  return {};
}

class Converter {
 public:
  Converter(const Graph& graph, const OpTable& ops, const CostTable* costs_or_null,
            std::string_view device)
      : graph_(graph), ops_(ops), costs_or_null_(costs_or_null), device_(device) {}

  Result<ModelOperators> run() {
    EDDY_RETURN_IF_ERROR(convert(Graph::kRoot, num_recorded_runs(), made_.root));
    if (made_.num_operators == 0) return invalid_argument("the model has no nodes");
    return std::move(made_);
  }

 private:
  // How often something ran in what was recorded; nothing where that is not known.
  using Executions = std::optional<uint64_t>;
  // Who makes a value.
  struct Maker {
    RegionId region;
    uint32_t op = 0;  // in its list
    bool is_control = false;
    std::string name;
    Dims shape;  // of an operator
  };

  Status convert(RegionId region, Executions executions, OperatorList& list) {
    for (const NodeId id : graph_.region(region).nodes) {
      const Node& node = graph_.node(id);
      Status status = node.kind == NodeKind::kExec ? add(id, node, list)
                                                   : add_control(id, node, executions, list);
      if (!status.is_ok()) {
        return node.kind == NodeKind::kExec ? status.prepend_path(graph_.path(id)) : status;
      }
    }
    return Status::ok();
  }

  Status add(NodeId id, const Node& node, OperatorList& list) {
    EDDY_RETURN_IF_ERROR(check_types(node));
    Operator op;
    op.name = unique_name(graph_.path(id));
    op.type = node.op->name;
    op.shape = node_shape(node);
    std::vector<Dims> shapes;
    std::vector<const Maker*> makers;
    for (const ValueId value : node.inputs) {
      const auto maker = maker_.find(value);
      if (value.is_none() || maker == maker_.end()) continue;
      makers.push_back(&maker->second);
      shapes.push_back(maker->second.is_control ? value_shape(value) : maker->second.shape);
    }
    op.inputs.resize(makers.size());
    EDDY_RETURN_IF_ERROR(set_rule(node, shapes, op));
    set_work(node, op);
    op.weight_group = list.graph.num_weight_groups++;
    const auto number = static_cast<uint32_t>(list.graph.operators.size());
    for (const ValueId value : node.outputs) {
      maker_[value] = {node.region, number, false, op.name, op.shape};
    }
    sort_inputs(node.region, number, makers, shapes, op, list);
    list.graph.operators.push_back(std::move(op));
    ++made_.num_operators;
    return Status::ok();
  }

  // Those of the list stay with the operator.
  static void sort_inputs(RegionId region, uint32_t number, const std::vector<const Maker*>& makers,
                          const std::vector<Dims>& shapes, Operator& op, OperatorList& list) {
    std::vector<OperatorInput> inner;
    for (size_t i = 0; i < makers.size(); ++i) {
      if (makers[i]->region == region && !makers[i]->is_control) {
        inner.push_back({makers[i]->op, op.inputs[i].dims});
      } else {
        list.outer_inputs.push_back({number, makers[i]->name, shapes[i], op.inputs[i].dims});
      }
    }
    op.inputs = std::move(inner);
  }

  Status add_control(NodeId id, const Node& node, Executions executions, OperatorList& list) {
    ControlOperator control;
    control.name = unique_name(graph_.path(id));
    control.kind =
        node.kind == NodeKind::kWhile ? ScenarioEntry::Kind::kLoop : ScenarioEntry::Kind::kCase;
    EDDY_ASSIGN_OR_RETURN(control.decision, decision_of(id, node, executions));
    for (const ValueId value : node.inputs) {
      const auto maker = maker_.find(value);
      if (!value.is_none() && maker != maker_.end()) control.inputs.push_back(maker->second.name);
    }
    for (const ValueId value : node.outputs) {
      maker_[value] = {node.region, 0, true, control.name, {}};
    }
    if (node.kind == NodeKind::kWhile) carry_in({graph_, node}, control);
    control.lists.resize(num_lists(node));
    for (size_t r = 0; r < node.regions.size(); ++r) {
      if (node.kind == NodeKind::kWhile && r == 1) forward({graph_, node});
      EDDY_RETURN_IF_ERROR(convert(node.regions[r], executions_of(control, r), control.lists[r]));
    }
    if (node.kind == NodeKind::kWhile) carry_on({graph_, node}, control);
    list.controls.push_back(std::move(control));
    return Status::ok();
  }

  void carry_in(const LoopView& loop, ControlOperator& control) {
    for (size_t k = 0; k < loop.num_carried(); ++k) {
      CarriedValue value;
      value.name = unique_name(fmt::format("{}/carried {}", control.name, k));
      value.initial = maker_name(loop.initial()[k]);
      maker_[loop.carried()[k]] = {loop.node().region, 0, true, value.name, {}};
      control.carried.push_back(std::move(value));
    }
  }
  void forward(const LoopView& loop) {
    for (size_t k = 0; k < loop.num_forwarded(); ++k) {
      const auto maker = maker_.find(loop.forwarded()[k]);
      if (maker != maker_.end()) maker_[loop.received()[k]] = Maker(maker->second);
    }
  }
  void carry_on(const LoopView& loop, ControlOperator& control) {
    for (size_t k = 0; k < loop.num_carried(); ++k) {
      control.carried[k].next = maker_name(loop.next()[k]);
    }
  }
  // Empty: it is there from the start.
  std::string maker_name(ValueId value) const {
    const auto maker = value.is_none() ? maker_.end() : maker_.find(value);
    return maker == maker_.end() ? "" : maker->second.name;
  }

  // One more than there are where a selector out of range passes values through.
  static size_t num_lists(const Node& node) {
    const bool may_pass = node.kind == NodeKind::kCaseOf && node.default_region < 0;
    return node.regions.size() + (may_pass ? 1 : 0);
  }

  // In the record of a control: nothing where it has a distribution.
  static Executions executions_of(const ControlOperator& control, size_t region) {
    const std::vector<int64_t>& trace = control.decision.trace;
    if (trace.empty()) return std::nullopt;
    uint64_t count = 0;
    for (const int64_t value : trace) {
      count += control.kind == ScenarioEntry::Kind::kCase
                   ? value == static_cast<int64_t>(region)
                   : static_cast<uint64_t>(value) + (region == 0 ? 1 : 0);
    }
    return count;
  }

  // The root runs once for each decision of what stands in it.
  uint64_t num_recorded_runs() const {
    uint64_t runs = 1;
    for (const NodeId id : graph_.root().nodes) {
      if (graph_.node(id).kind == NodeKind::kExec || costs_or_null_ == nullptr) continue;
      const auto seen = costs_or_null_->decisions.find(graph_.path(id));
      if (seen != costs_or_null_->decisions.end()) {
        runs = std::max<uint64_t>(runs, seen->second.size());
      }
    }
    return runs;
  }

  static int64_t decided(const Node& node, int64_t value) {
    if (node.kind == NodeKind::kWhile) return std::max<int64_t>(value, 0);
    if (value >= 0 && static_cast<size_t>(value) < node.regions.size()) return value;
    return node.default_region >= 0 ? node.default_region
                                    : static_cast<int64_t>(node.regions.size());
  }

  Result<Decision> decision_of(NodeId id, const Node& node, Executions executions) const {
    Decision decision;
    decision.device = kAnyDevice;
    const std::string path = graph_.path(id);
    if (costs_or_null_ != nullptr) {
      const auto likely = costs_or_null_->distributions.find(path);
      if (likely != costs_or_null_->distributions.end()) {
        for (const auto& [value, probability] : likely->second) {
          decision.distribution.push_back({decided(node, value), probability});
        }
        return decision;
      }
      const auto seen = costs_or_null_->decisions.find(path);
      if (seen != costs_or_null_->decisions.end()) {
        set_record(node, seen->second, executions, decision);
        return decision;
      }
    }
    if (executions == 0u) {
      decision.distribution = {{decided(node, 0), 1}};
      return decision;
    }
    return unsupported(
               "the model does not say how often this loop runs or which branch it takes; give "
               "--costs "
               "with what eddy measure --whole saw of it, or describe it in an operator-graph file "
               "with a "
               "while or case entry")
        .prepend_path(path);
  }

  // One value stands for any number of them (kept by eddy measure where all are equal).
  static void set_record(const Node& node, const std::vector<int64_t>& seen, Executions executions,
                         Decision& decision) {
    constexpr uint64_t kLongest = 1 << 20;
    if (executions && *executions > 0 && *executions <= kLongest &&
        (seen.size() == 1 || seen.size() == *executions)) {
      for (uint64_t i = 0; i < *executions; ++i) {
        decision.trace.push_back(decided(node, seen.size() == 1 ? seen[0] : seen[i]));
      }
      return;
    }
    std::map<int64_t, double> counts;
    for (const int64_t value : seen) counts[decided(node, value)] += 1;
    for (const auto& [value, count] : counts) {
      decision.distribution.push_back({value, count / static_cast<double>(seen.size())});
    }
  }

  Status check_types(const Node& node) const {
    for (const auto* values : {&node.inputs, &node.outputs}) {
      for (const ValueId value : *values) {
        if (value.is_none()) continue;
        const ValueType& type = graph_.value(value).type;
        if (type.is_static_tensor()) continue;
        return invalid_argument(
            "the shape of '" + graph_.value(value).name + "' is " + to_string(type) +
            "; simulating needs known shapes, so fix them with --dim or --shape");
      }
    }
    return Status::ok();
  }

  Dims node_shape(const Node& node) const { return value_shape(node.outputs[0]); }
  // Scalars have one dimension here, and empty ones one element.
  Dims value_shape(ValueId value) const {
    Dims dims = graph_.value(value).type.tensor.dims;
    if (dims.rank() == 0) dims.push_back(1);
    for (int d = 0; d < dims.rank(); ++d) dims[d] = std::max<int64_t>(dims[d], 1);
    return dims;
  }

  std::string unique_name(std::string name) {
    while (!names_.insert(name).second) name += "'";
    return name;
  }

  Status set_rule(const Node& node, const std::vector<Dims>& shapes, Operator& op) const {
    OperatorAttributes attributes;
    attributes.kernel = integers(node.attributes, "kernel_shape", nullptr);
    attributes.stride = integers(node.attributes, "strides", nullptr);
    attributes.axes = integers(node.attributes, "axes", "axis");
    attributes.perm = integers(node.attributes, "perm", nullptr);
    attributes.groups = node.attributes.get_int("group", 1);
    const auto dims_of = [&](size_t i) {
      return i < node.inputs.size() && !node.inputs[i].is_none()
                 ? graph_.value(node.inputs[i]).type.tensor.dims
                 : Dims();
    };
    const Dims first = dims_of(0);
    if (op.type == "Conv" && attributes.kernel.empty()) {
      const Dims weights = dims_of(1);
      for (int d = 2; d < weights.rank(); ++d) attributes.kernel.push_back(weights[d]);
    }
    if (op.type == "Conv" && first.rank() > 1) attributes.in_channels = first[1];
    if (first.rank() > 0) {
      const bool is_transposed = node.attributes.get_int("transA", 0) != 0;
      attributes.in_features = first[is_transposed ? 0 : first.rank() - 1];
    }
    const Operator before = op;
    if (set_regions(op, attributes, shapes, &ops_).is_ok()) return Status::ok();
    op = before;
    op.type = "all of its inputs";
    return set_regions(op, {}, shapes, nullptr);
  }

  void set_work(const Node& node, Operator& op) {
    op.type = node.op->name;
    op.weight_elements = 0;
    std::vector<const ValueType*> inputs;
    for (const ValueId value : node.inputs) {
      inputs.push_back(value.is_none() ? nullptr : &graph_.value(value).type);
      if (value.is_none() || graph_.value(value).origin != ValueOrigin::kConstant) continue;
      op.weight_elements += graph_.value(value).type.tensor.dims.count().value_or(0);
    }
    std::vector<ValueType> outputs;
    for (const ValueId value : node.outputs) outputs.push_back(graph_.value(value).type);
    if (node.op->flops != nullptr) {
      const std::vector<const TensorView*> values(inputs.size(), nullptr);
      std::vector<ValueType> unused(outputs.size());
      op.flops = node.op->flops(
          InferContext(node.attributes, inputs, values, unused, node.opset_version), outputs);
    }
    if (node.op->is_view) op.measured = 0;
    if (costs_or_null_ == nullptr) return;
    const MeasuredCost* cost =
        costs_or_null_->find_or_null(cost_op_name(*node.op), cost_key(graph_, node), device_);
    if (cost == nullptr) return;
    op.measured = cost->ns * 1e-9;
    ++made_.num_measured;
  }

  const Graph& graph_;
  const OpTable& ops_;
  const CostTable* costs_or_null_;
  std::string_view device_;
  ModelOperators made_;
  std::unordered_map<ValueId, Maker> maker_;
  std::set<std::string> names_;
};

}  // namespace

Result<ModelOperators> model_operators(const Graph& graph, const OpTable& ops,
                                       const CostTable* costs_or_null, std::string_view device) {
  return Converter(graph, ops, costs_or_null, device).run();
}

Topology cpu_topology() {
  auto topology = Topology::create(
      {.devices = {{.name = "cpu", .flops = 2e10, .memory_rate = 8e9, .launch = 2e-8}},
       .links = {}});
  EDDY_CHECK(topology.is_ok()) << topology.status().to_string();
  return std::move(topology).value();
}

}  // namespace eddy
