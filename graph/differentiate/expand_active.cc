#include "graph/differentiate/expand_active.h"

#include <unordered_map>

#include "graph/base/check.h"
#include "graph/compile/copy_graph.h"

namespace eddy {
namespace {

// Null where the node stays.
GradientExpansion expansion_or_null(const Node& node, const GradientTable& rules,
                                    const Activity& activity) {
  if (node.kind != NodeKind::kExec || !activity.is_active(node)) return nullptr;
  const auto* rule = rules.find_or_null(node.op->domain, node.op->name, node.opset_version);
  return rule == nullptr ? nullptr : rule->expand;
}

class ExpandActive : public GraphCopier {
 public:
  ExpandActive(const Graph& source, GraphBuilder& builder, const GradientTable& rules,
               const Activity& activity)
      : GraphCopier(source, builder), rules_(rules), activity_(activity) {}

  // One constant for each that has a name: it may be a parameter.
  void add_constants() {
    for (uint32_t v = 0; v < source_.num_values(); ++v) {
      const ValueInfo& info = source_.value(ValueId(v));
      const bool is_named = info.origin == ValueOrigin::kConstant && !info.name.empty();
      if (is_named) constants_[ValueId(v)] = GraphCopier::value(ValueId(v));
    }
  }

 protected:
  Value value(ValueId id) override {
    const auto at = constants_.find(id);
    return at != constants_.end() ? at->second : GraphCopier::value(id);
  }

  void exec(NodeId id) override {
    const Node& node = source_.node(id);
    const GradientExpansion expand = expansion_or_null(node, rules_, activity_);
    if (expand == nullptr) return copy_exec(id);
    const std::vector<Value> made = expand(builder_, node, values(node.inputs));
    if (!builder_.status().is_ok()) return;
    EDDY_CHECK(made.size() >= node.outputs.size())
        << node.name << " expands to " << made.size() << " of " << node.outputs.size() << " values";
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      const std::string& name = source_.value(node.outputs[o]).name;
      if (!name.empty()) builder_.set_name(made[o], name);
    }
    define_all(node.outputs, made);
  }

 private:
  const GradientTable& rules_;
  const Activity& activity_;
  std::unordered_map<ValueId, Value> constants_;
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
  copier.add_constants();
  copier.run();
  EDDY_RETURN_IF_ERROR(builder.status());
  builder.adopt_blobs_of(std::move(graph));
  return builder.finish();
}

}  // namespace eddy
