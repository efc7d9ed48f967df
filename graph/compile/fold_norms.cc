#include "graph/compile/fold_norms.h"

#include <map>

#include "graph/base/check.h"
#include "graph/compile/copy_graph.h"
#include "graph/ir/node_facts.h"

namespace eddy {
namespace {

bool is_constant(const Graph& graph, ValueId value) {
  return !value.is_none() && graph.value(value).origin == ValueOrigin::kConstant;
}

bool is_onnx(const Node& node, std::string_view op) {
  return node.kind == NodeKind::kExec && node.op->domain.empty() && node.op->name == op;
}

bool is_convolution(const Graph& graph, const Node& conv) {
  if (!is_onnx(conv, "Conv") || !is_constant(graph, conv.inputs[1])) return false;
  const bool has_bias = conv.inputs.size() > 2 && !conv.inputs[2].is_none();
  const ElementType element = graph.value(conv.inputs[1]).type.tensor.element;
  return (element == ElementType::kFloat || element == ElementType::kDouble) &&
         (!has_bias || is_constant(graph, conv.inputs[2])) &&
         graph.value(conv.inputs[1]).type.tensor.dims.rank() >= 3;
}

// A normalization with given moments of one for each of `num_filters`.
bool is_foldable_norm(const Graph& graph, const Node& norm, ElementType element,
                      int64_t num_filters) {
  if (!is_onnx(norm, "BatchNormalization") || norm.inputs.size() != 5) return false;
  if (norm.opset_version < 9 || norm.outputs.size() != 1 ||
      norm.attributes.get_int("training_mode", 0) != 0) {
    return false;
  }
  for (size_t i = 1; i < norm.inputs.size(); ++i) {
    if (!is_constant(graph, norm.inputs[i])) return false;
    const TensorType& type = graph.value(norm.inputs[i]).type.tensor;
    if (type.element != element || !(type.dims == Dims{num_filters})) return false;
  }
  return true;
}

// Maps a convolution's id to its normalization.
std::map<NodeId, NodeId> find_pairs(const Graph& graph) {
  std::map<NodeId, NodeId> pairs;
  const std::vector<uint32_t> readers = count_uses(graph);
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& norm = graph.node(NodeId(n));
    if (!is_onnx(norm, "BatchNormalization")) continue;
    const ValueInfo& input = graph.value(norm.inputs[0]);
    if (input.origin != ValueOrigin::kNodeOutput || readers[norm.inputs[0].index()] != 1) continue;
    const Node& conv = graph.node(input.producer);
    if (conv.region != norm.region || !is_convolution(graph, conv)) continue;
    const TensorType& weights = graph.value(conv.inputs[1]).type.tensor;
    if (!is_foldable_norm(graph, norm, weights.element, weights.dims[0])) continue;
    const bool is_new = pairs.emplace(input.producer, NodeId(n)).second;
    EDDY_CHECK(is_new) << conv.name << " has one reader, but two normalizations";
  }
  return pairs;
}

class NormFolder : public GraphCopier {
 public:
  NormFolder(const Graph& source, GraphBuilder& builder, const std::map<NodeId, NodeId>& pairs)
      : GraphCopier(source, builder), pairs_(pairs) {
    for (const auto& [conv, norm] : pairs) conv_of_[norm] = conv;
    EDDY_CHECK(conv_of_.size() == pairs.size()) << "two convolutions share a normalization";
  }

 private:
  void exec(NodeId id) override {
    if (pairs_.contains(id)) return;  // stands where its normalization stood
    const auto conv = conv_of_.find(id);
    if (conv == conv_of_.end()) return copy_exec(id);
    emit(source_.node(conv->second), source_.node(id));
  }

  Value scalar_like(ElementType element, double number) {
    if (element == ElementType::kDouble) return builder_.scalar(number);
    return builder_.scalar(static_cast<float>(number));
  }

  void emit(const Node& conv, const Node& norm) {
    EDDY_CHECK(norm.inputs.size() == 5 && norm.outputs.size() == 1 && conv.region == norm.region)
        << norm.name << " can't be folded into " << conv.name;
    const Value weights = value(conv.inputs[1]);
    const TensorType type = source_.value(conv.inputs[1]).type.tensor;
    const Value epsilon =
        scalar_like(type.element, static_cast<double>(norm.attributes.get_float("epsilon", 1e-5f)));
    const Value deviation =
        builder_.op("Sqrt", {builder_.op("Add", {value(norm.inputs[4]), epsilon})});
    const Value factor = builder_.op("Div", {value(norm.inputs[1]), deviation});
    EDDY_CHECK(type.dims.rank() >= 3) << "filters of " << conv.name << " without a window";
    std::vector<int64_t> column(static_cast<size_t>(type.dims.rank()), 1);
    column[0] = type.dims[0];
    const Value by_filter =
        builder_.op("Reshape", {factor, builder_.vector(std::span<const int64_t>(column))});
    const bool has_bias = conv.inputs.size() > 2 && !conv.inputs[2].is_none();
    const Value mean = value(norm.inputs[3]);
    const Value shift =
        has_bias ? builder_.op("Sub", {value(conv.inputs[2]), mean}) : builder_.op("Neg", {mean});
    const Value bias =
        builder_.op("Add", {builder_.op("Mul", {shift, factor}), value(norm.inputs[2])});
    define(
        norm.outputs[0],
        builder_.op("Conv", {value(conv.inputs[0]), builder_.op("Mul", {weights, by_filter}), bias},
                    conv.attributes,
                    {.name = conv.name,
                     .opset_version = conv.opset_version,
                     .device = conv.device,
                     .output_names = {source_.value(norm.outputs[0]).name}}));
  }

  const std::map<NodeId, NodeId>& pairs_;
  std::map<NodeId, NodeId> conv_of_;
};

}  // namespace

Result<FoldedNorms> fold_norms(Graph graph, const OpTable& ops) {
  const std::map<NodeId, NodeId> pairs = find_pairs(graph);
  if (pairs.empty()) return FoldedNorms{std::move(graph), 0};
  GraphBuilder builder(ops, graph.name());
  NormFolder(graph, builder, pairs).run();
  builder.adopt_blobs_of(std::move(graph));
  EDDY_ASSIGN_OR_RETURN(Graph folded, builder.finish());
  return FoldedNorms{std::move(folded), pairs.size()};
}

}  // namespace eddy
