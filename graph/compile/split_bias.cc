#include "graph/compile/split_bias.h"

#include <algorithm>
#include <set>

#include "graph/base/check.h"
#include "graph/compile/only_readers.h"
#include "graph/compile/placed_copier.h"

namespace eddy {
namespace {

std::set<NodeId> find_convolutions(const Graph& graph, const SplitBiasOptions& options) {
  const std::vector<NodeId> readers = only_readers(graph);
  std::set<NodeId> found;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    if (node.kind != NodeKind::kExec || node.device != options.device || !node.op->domain.empty() ||
        node.op->name != "Conv" || node.inputs.size() < 3 || node.inputs[2].is_none() ||
        graph.value(node.inputs[2]).origin != ValueOrigin::kConstant) {
      continue;
    }
    const NodeId reader = readers[node.outputs[0].index()];
    if (reader.is_none()) continue;
    const Node& next = graph.node(reader);
    if (next.device != options.device || next.outputs.size() != 1) continue;
    const TensorType& made = graph.value(node.outputs[0]).type.tensor;
    const TensorType& read = graph.value(next.outputs[0]).type.tensor;
    const bool is_same = made.is_static() && read.is_static() && made.dims.rank() >= 3 &&
                         std::ranges::equal(made.dims.span(), read.dims.span());
    if (is_same && options.is_elementwise(graph, reader)) found.insert(NodeId(n));
  }
  return found;
}

class BiasSplitter : public PlacedCopier {
 public:
  BiasSplitter(const Graph& source, GraphBuilder& builder, const std::set<NodeId>& convolutions,
               const std::vector<uint32_t>& value_devices)
      : PlacedCopier(source, builder, value_devices), convolutions_(convolutions) {}

 private:
  void exec(NodeId id) override {
    if (!convolutions_.contains(id)) return copy_exec(id);
    const Node& node = source_.node(id);
    const ValueInfo& result = source_.value(node.outputs[0]);
    const Value sum =
        builder_.op("Conv", {value(node.inputs[0]), value(node.inputs[1])}, node.attributes,
                    {.name = node.name,
                     .opset_version = node.opset_version,
                     .device = node.device,
                     .output_names = {result.name + "_sum"}});
    set_as(node.outputs[0], sum);
    TensorView bias = source_.constant(source_.value(node.inputs[2]).constant).view();
    std::vector<int64_t> column(static_cast<size_t>(result.type.tensor.dims.rank() - 1), 1);
    EDDY_CHECK(bias.rank == 1) << "the bias of " << node.name << " has rank " << bias.rank;
    column[0] = bias.dims[0];
    bias.dims = column.data();
    bias.rank = static_cast<int32_t>(column.size());
    const Value addend =
        builder_.constant_in_blob(bias, source_.value(node.inputs[2]).name + "_column");
    define(node.outputs[0], builder_.op("Add", {sum, addend}, {},
                                        {.name = node.name + "_bias",
                                         .device = node.device,
                                         .output_names = {result.name}}));
  }

  const std::set<NodeId>& convolutions_;
};

}  // namespace

Result<SplitBiases> split_bias(Graph graph, const OpTable& ops, std::vector<uint32_t> value_devices,
                               const SplitBiasOptions& options) {
  const std::set<NodeId> convolutions = find_convolutions(graph, options);
  if (convolutions.empty()) return SplitBiases{std::move(graph), std::move(value_devices), 0};
  GraphBuilder builder(ops, graph.name());
  BiasSplitter splitter(graph, builder, convolutions, value_devices);
  EDDY_ASSIGN_OR_RETURN(PlacedCopy made, splitter.finish(std::move(graph)));
  return SplitBiases{std::move(made.graph), std::move(made.value_devices), convolutions.size()};
}

}  // namespace eddy
