#include "graph/differentiate/expand_active.h"

#include "graph/base/check.h"
#include "graph/differentiate/copy_parameters.h"

namespace eddy {
namespace {

// Null where the node stays.
GradientExpansion expansion_or_null(const Node& node, const GradientTable& rules,
                                    const Activity& activity) {
  if (node.kind != NodeKind::kExec || !activity.is_active(node)) return nullptr;
  const auto* rule = rules.find_or_null(node.op->domain, node.op->name, node.opset_version);
  if (rule == nullptr || (rule->build != nullptr && !rule->lacks_output(node))) return nullptr;
  return rule->expand;
}

class ExpandActive : public ParameterCopier {
 public:
  ExpandActive(const Graph& source, GraphBuilder& builder, const GradientTable& rules,
               const Activity& activity)
      : ParameterCopier(source, builder), rules_(rules), activity_(activity) {}

 protected:
  void exec(NodeId id) override {
    const Node& node = source_.node(id);
    const GradientExpansion expand = expansion_or_null(node, rules_, activity_);
    if (expand == nullptr) return copy_exec(id);
    const std::vector<Value> made = expand(builder_, node, values(node.inputs));
    if (!builder_.status().is_ok()) return;
    EDDY_CHECK(made.size() >= node.outputs.size())
        << node.name << " expands to " << made.size() << " of " << node.outputs.size() << " values";
    replace(id, made);
  }

 private:
  const GradientTable& rules_;
  const Activity& activity_;
};

}  // namespace

bool has_active_expansion(const Graph& graph, const GradientTable& rules,
                          const Activity& activity) {
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (expansion_or_null(graph.node(NodeId(n)), rules, activity) != nullptr) return true;
  }
  return false;
}

Result<Graph> expand_active(Graph graph, const OpTable& ops, const GradientTable& rules,
                            const Activity& activity) {
  GraphBuilder builder(ops, graph.name());
  ExpandActive copier(graph, builder, rules, activity);
  copier.run();
  EDDY_RETURN_IF_ERROR(builder.status());
  builder.adopt_blobs_of(std::move(graph));
  return builder.finish();
}

}  // namespace eddy
