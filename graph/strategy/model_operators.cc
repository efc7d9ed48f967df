#include "graph/strategy/model_operators.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "graph/base/check.h"
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
    for (const NodeId id : graph_.root().nodes) {
      Status status = add(id, graph_.node(id));
      if (!status.is_ok()) return status.prepend_path(graph_.path(id));
    }
    if (made_.graph.operators.empty()) return invalid_argument("the model has no nodes");
    return std::move(made_);
  }

 private:
  Status add(NodeId id, const Node& node) {
    if (node.kind != NodeKind::kExec) {
      return unsupported(
          "the model does not say how often this loop runs or which branch it takes; describe it "
          "in an operator-graph file with a while or case entry");
    }
    EDDY_RETURN_IF_ERROR(check_types(node));
    Operator op;
    op.name = unique_name(graph_.path(id));
    op.type = node.op->name;
    op.shape = node_shape(node);
    std::vector<Dims> shapes;
    for (const ValueId value : node.inputs) add_input(value, op, shapes);
    EDDY_RETURN_IF_ERROR(set_rule(node, shapes, op));
    set_work(node, op);
    op.weight_group = made_.graph.num_weight_groups++;
    for (const ValueId value : node.outputs) {
      maker_[value] = static_cast<uint32_t>(made_.graph.operators.size());
    }
    made_.graph.operators.push_back(std::move(op));
    return Status::ok();
  }

  Status check_types(const Node& node) const {
    for (const auto* values : {&node.inputs, &node.outputs}) {
      for (const ValueId value : *values) {
        if (value.is_none()) continue;
        const ValueType& type = graph_.value(value).type;
        if (type.is_tensor() && type.tensor.is_static()) continue;
        return invalid_argument(
            "the shape of '" + graph_.value(value).name + "' is " + to_string(type) +
            "; simulating needs known shapes, so fix them with --dim or --shape");
      }
    }
    return Status::ok();
  }

  // Scalars have one dimension here, and empty ones one element.
  Dims node_shape(const Node& node) const {
    Dims dims = graph_.value(node.outputs[0]).type.tensor.dims;
    if (dims.rank() == 0) dims.push_back(1);
    for (int d = 0; d < dims.rank(); ++d) dims[d] = std::max<int64_t>(dims[d], 1);
    return dims;
  }

  std::string unique_name(std::string name) {
    while (!names_.insert(name).second) name += "'";
    return name;
  }

  void add_input(ValueId value, Operator& op, std::vector<Dims>& shapes) const {
    if (value.is_none()) return;
    const auto maker = maker_.find(value);
    if (maker == maker_.end()) return;
    op.inputs.push_back({.producer = maker->second});
    shapes.push_back(made_.graph.operators[maker->second].shape);
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
  std::unordered_map<ValueId, uint32_t> maker_;
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
