#include "graph/compile/allow_winograd.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "graph/compile/copy_graph.h"

namespace eddy {
namespace {

// There are transforms for windows of such sides.
bool has_side(const Dims& w) { return w.rank() == 4 && w[2] == w[3] && (w[2] == 3 || w[2] == 5); }

bool is_for_winograd(const Graph& graph, const Node& node) {
  if (node.kind != NodeKind::kExec || !node.device.empty() || !node.op->domain.empty() ||
      node.op->name != "Conv") {
    return false;
  }
  const ValueInfo& weights = graph.value(node.inputs[1]);
  const TensorType& w = weights.type.tensor;
  if (weights.origin == ValueOrigin::kConstant || w.element != ElementType::kFloat) return false;
  if (!has_side(w.dims)) return false;
  const auto is_one = [&](std::string_view name) {
    return std::ranges::all_of(node.attributes.get_ints(name), [](int64_t n) { return n == 1; });
  };
  return node.attributes.get_int("group", 1) == 1 && is_one("strides") && is_one("dilations");
}

class WinogradAllower : public GraphCopier {
 public:
  using GraphCopier::GraphCopier;

 private:
  void exec(NodeId id) override {
    const Node& node = source_.node(id);
    if (!is_for_winograd(source_, node)) return copy_exec(id);
    const ValueId made = node.outputs[0];
    define(made, builder_.op("WinogradConv", values(node.inputs), node.attributes,
                             {.name = name_of(id),
                              .domain = "eddy",
                              .output_names = {source_.value(made).name}}));
  }
};

}  // namespace

Result<WinogradGraph> allow_winograd(Graph graph, const OpTable& ops) {
  size_t count = 0;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    count += is_for_winograd(graph, graph.node(NodeId(n))) ? 1 : 0;
  }
  if (count == 0) return WinogradGraph{std::move(graph), 0};
  GraphBuilder builder(ops, graph.name());
  WinogradAllower(graph, builder).run();
  builder.adopt_blobs_of(std::move(graph));
  EDDY_ASSIGN_OR_RETURN(Graph made, builder.finish());
  return WinogradGraph{std::move(made), count};
}

}  // namespace eddy
