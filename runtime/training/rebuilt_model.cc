#include "runtime/training/rebuilt_model.h"

#include <utility>

#include "graph/base/check.h"
#include "graph/compile/copy_graph.h"

namespace eddy {
namespace {

class ModelCopier : public GraphCopier {
 public:
  ModelCopier(const Graph& source, GraphBuilder& builder, const ParameterViews& parameters)
      : GraphCopier(source, builder) {
    // Before any region, which the builder may make anew.
    for (const auto& [name, view] : parameters) made_[name] = builder.constant(view, name);
  }

  // Inputs and nodes, and as outputs what the root's nodes make.
  std::vector<std::string> run_with_probes() {
    for (const ValueId id : source_.inputs()) {
      define(id, builder_.input(source_.value(id).name, input_type(source_.value(id))));
    }
    nodes(Graph::kRoot);
    std::vector<std::string> makers;
    for (const NodeId node : source_.region(Graph::kRoot).nodes) {
      for (const ValueId output : source_.node(node).outputs) {
        const ValueInfo& info = source_.value(output);
        const bool is_float =
            info.type.is_tensor() && kFloatTypes.contains(info.type.tensor.element);
        if (!is_float || value(output).is_none()) continue;
        builder_.output("probe." + std::to_string(makers.size()), value(output));
        makers.push_back(source_.node(node).name);
      }
    }
    return makers;
  }

 private:
  Value value(ValueId id) override {
    if (id.is_none()) return {};
    const ValueInfo& info = source_.value(id);
    const auto made = info.origin == ValueOrigin::kConstant ? made_.find(info.name) : made_.end();
    return made == made_.end() ? GraphCopier::value(id) : made->second;
  }

  std::unordered_map<std::string, Value> made_;
};

}  // namespace

Result<Graph> with_parameters(const Graph& model, const OpTable& ops,
                              const ParameterViews& parameters) {
  GraphBuilder builder(ops, model.name());
  ModelCopier(model, builder, parameters).run();
  builder.adopt_blobs_of(model.copy());
  return builder.finish();
}

Result<ProbedModel> with_probes(const Graph& model, const OpTable& ops,
                                const ParameterViews& parameters) {
  GraphBuilder builder(ops, model.name());
  std::vector<std::string> makers = ModelCopier(model, builder, parameters).run_with_probes();
  builder.adopt_blobs_of(model.copy());
  EDDY_ASSIGN_OR_RETURN(Graph graph, builder.finish());
  EDDY_DCHECK(graph.outputs().size() == makers.size())
      << graph.outputs().size() << " outputs of " << makers.size() << " nodes";
  return ProbedModel{std::move(graph), std::move(makers)};
}

}  // namespace eddy
