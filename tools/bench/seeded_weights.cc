#include "tools/bench/seeded_weights.h"

#include <cmath>
#include <vector>

#include "graph/base/random.h"
#include "graph/compile/copy_graph.h"

namespace eddy {
namespace {

bool is_weight(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.kind != NodeKind::kExec || node.op->name != "ConstantOfShape") return false;
  const ValueType& type = graph.value(node.outputs[0]).type;
  return node.region == Graph::kRoot && type.is_static_tensor() &&
         type.tensor.element == ElementType::kFloat && type.tensor.dims.rank() >= 2 &&
         type.tensor.dims.count().value_or(0) > 0;
}

class Seeder : public GraphCopier {
 public:
  Seeder(const Graph& source, GraphBuilder& builder, uint64_t seed)
      : GraphCopier(source, builder), seed_(seed) {}

 protected:
  void exec(NodeId id) override {
    if (!is_weight(source_, id)) return copy_exec(id);
    const ValueInfo& made = source_.value(source_.node(id).outputs[0]);
    const Dims& dims = made.type.tensor.dims;
    const auto count = static_cast<size_t>(*dims.count());
    const float bound = std::sqrt(6.0f * static_cast<float>(dims[0]) / static_cast<float>(count));
    Random random(seed_ + id.index());
    std::vector<float> weights(count);
    for (float& weight : weights) weight = random.uniform(-bound, bound);
    define(source_.node(id).outputs[0],
           builder_.constant({weights.data(), dims.data(), dims.rank(), ElementType::kFloat},
                             made.name));
  }

 private:
  const uint64_t seed_;
};

}  // namespace

Result<std::optional<Graph>> seeded_weights(const OpTable& ops, Graph graph, uint64_t seed) {
  bool has_weights = false;
  for (const NodeId id : graph.root().nodes) has_weights |= is_weight(graph, id);
  if (!has_weights) return std::optional<Graph>();
  GraphBuilder builder(ops, graph.name());
  Seeder(graph, builder, seed).run();
  builder.adopt_blobs_of(std::move(graph));
  EDDY_ASSIGN_OR_RETURN(Graph made, builder.finish());
  return std::optional<Graph>(std::move(made));
}

}  // namespace eddy
