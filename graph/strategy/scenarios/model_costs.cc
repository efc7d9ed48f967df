#include "graph/strategy/scenarios/model_costs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "graph/base/check.h"
#include "graph/strategy/operators/regions.h"

namespace eddy {
namespace {

std::vector<int64_t> integers(const Attributes& attributes, const char* list, const char* single) {
  const std::span<const int64_t> given = attributes.get_ints(list);
  if (!given.empty()) return {given.begin(), given.end()};
  if (single != nullptr && attributes.has(single)) return {attributes.get_int(single, 0)};
  return {};
}

class ModelReader {
 public:
  ModelReader(const Graph& graph, const OpTable& ops, const CostTable* costs_or_null,
              std::string_view device)
      : graph_(graph),
        ops_(ops),
        costs_or_null_(costs_or_null),
        device_(device),
        made_{.costs = GraphCosts(graph)} {}

  Result<ModelCosts> run() {
    EDDY_RETURN_IF_ERROR(read(Graph::kRoot, num_recorded_runs()));
    if (made_.num_operators == 0) return invalid_argument("the model has no nodes");
    return std::move(made_);
  }

 private:
  // How often something ran in what was recorded; nothing where that is not known.
  using Executions = std::optional<uint64_t>;

  Status read(RegionId region, Executions executions) {
    for (const NodeId id : graph_.region(region).nodes) {
      const Node& node = graph_.node(id);
      if (node.kind != NodeKind::kExec) {
        EDDY_RETURN_IF_ERROR(add_control(id, node, executions));
      } else if (Status status = add_operator(id, node); !status.is_ok()) {
        return status.prepend_path(graph_.path(id));
      }
    }
    return Status::ok();
  }

  Status add_operator(NodeId id, const Node& node) {
    EDDY_RETURN_IF_ERROR(check_types(node));
    Operator op;
    op.name = unique_name(graph_.path(id));
    op.type = node.op->name;
    EDDY_CHECK(!node.outputs.empty()) << op.name << " makes nothing";
    op.shape = value_shape(node.outputs[0]);
    std::vector<Dims> shapes;
    for (const ValueId value : node.inputs) {
      const ValueId source = source_of(graph_, value);
      if (source.is_none()) continue;
      const NodeId maker = graph_.value(source).producer;
      const bool is_operator = !maker.is_none() && graph_.node(maker).kind == NodeKind::kExec;
      shapes.push_back(value_shape(is_operator ? source : value));
    }
    op.inputs.resize(shapes.size());
    EDDY_RETURN_IF_ERROR(set_rule(node, shapes, op));
    set_work(node, op);
    OperatorGraph& operators = made_.costs.regions[node.region.index()].operators;
    op.weight_group = operators.num_weight_groups++;
    made_.costs.add_operator(graph_, id, std::move(op), sources_of(graph_, node), shapes);
    ++made_.num_operators;
    return Status::ok();
  }

  Status add_control(NodeId id, const Node& node, Executions executions) {
    ControlCosts control{.name = unique_name(graph_.path(id)), .decision = {}};
    EDDY_ASSIGN_OR_RETURN(control.decision, decision_of(id, node, executions));
    control.inputs = sources_of(graph_, node);
    made_.costs.add_control(graph_, id, std::move(control));
    for (size_t r = 0; r < node.regions.size(); ++r) {
      EDDY_RETURN_IF_ERROR(read(node.regions[r], executions_of(id, r)));
    }
    return Status::ok();
  }

  // In the record of a loop or case: nothing where it has a distribution.
  Executions executions_of(NodeId control, size_t region) const {
    const std::vector<int64_t>& trace = made_.costs.controls.at(control).decision.trace;
    if (trace.empty()) return std::nullopt;
    uint64_t count = 0;
    for (const int64_t value : trace) {
      count += graph_.node(control).kind == NodeKind::kCaseOf
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
  ModelCosts made_;
  std::set<std::string> names_;
};

}  // namespace

Result<ModelCosts> model_costs(const Graph& graph, const OpTable& ops,
                               const CostTable* costs_or_null, std::string_view device) {
  return ModelReader(graph, ops, costs_or_null, device).run();
}

Topology cpu_topology() {
  auto topology = Topology::create(
      {.devices = {{.name = "cpu", .flops = 2e10, .memory_rate = 8e9, .launch = 2e-8}},
       .links = {}});
  EDDY_CHECK(topology.is_ok()) << topology.status().to_string();
  return std::move(topology).value();
}

}  // namespace eddy
