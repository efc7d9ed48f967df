// ParameterCopier: a GraphCopier (graph/compile/copy_graph.h) that adds each constant with a name
// once, where the plain one adds it at each use. So what may be a parameter stays one value, and
// gradients for it are whole. Internal to passes before differentiate().
#pragma once

#include <unordered_map>

#include "graph/base/check.h"
#include "graph/compile/copy_graph.h"

namespace eddy {

class ParameterCopier : public GraphCopier {
 public:
  ParameterCopier(const Graph& source, GraphBuilder& builder) : GraphCopier(source, builder) {
    for (uint32_t v = 0; v < source.num_values(); ++v) {
      const ValueInfo& info = source.value(ValueId(v));
      const bool is_named = info.origin == ValueOrigin::kConstant && !info.name.empty();
      if (is_named) constants_[ValueId(v)] = GraphCopier::value(ValueId(v));
    }
  }

 protected:
  Value value(ValueId id) override {
    const auto at = constants_.find(id);
    return at != constants_.end() ? at->second : GraphCopier::value(id);
  }
  // `made` stand for the node's outputs, under their names.
  void replace(NodeId id, std::span<const Value> made) {
    const Node& node = source_.node(id);
    EDDY_DCHECK(made.size() >= node.outputs.size() || !builder_.status().is_ok())
        << made.size() << " values stand for the " << node.outputs.size() << " of " << node.name;
    for (size_t o = 0; o < node.outputs.size() && builder_.status().is_ok(); ++o) {
      const std::string& name = source_.value(node.outputs[o]).name;
      if (!name.empty()) builder_.set_name(made[o], name);
    }
    define_all(node.outputs, made);
  }

 private:
  std::unordered_map<ValueId, Value> constants_;
};

}  // namespace eddy
