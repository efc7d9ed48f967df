#include "graph/compile/open_samples.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "graph/compile/copy_graph.h"
#include "graph/ir/builder.h"

namespace eddy {
namespace {

bool has_dims(const ValueType& type) {
  return type.is_tensor() && type.tensor.is_ranked && type.tensor.dims.rank() > 0;
}

class OpenSamples final : public GraphCopier {
 public:
  OpenSamples(const Graph& source, GraphBuilder& builder, const std::string& name)
      : GraphCopier(source, builder), name_(name) {}

 private:
  ValueType input_type(const ValueInfo& input) override {
    ValueType type = GraphCopier::input_type(input);
    if (has_dims(type)) type.tensor.dims[0] = builder_.symbol(name_);
    return type;
  }
  // Inferred anew: the source's are of its one number of samples.
  std::vector<std::optional<ValueType>> carried_types(NodeId /*loop*/) override { return {}; }

  const std::string& name_;
};

Status check_first_dims(const Graph& graph) {
  std::set<int64_t> sizes;
  std::string text;
  for (const ValueId id : graph.inputs()) {
    const ValueInfo& input = graph.value(id);
    if (!has_dims(input.type)) continue;
    sizes.insert(std::max(input.type.tensor.dims[0], kUnknownDim));
    text += (text.empty() ? "" : ", ") + input.name + ": " + to_string(input.type);
  }
  if (sizes.size() == 1 && *sizes.begin() > 0) return Status::ok();
  return unsupported(text.empty()
                         ? "no input has a dimension of samples"
                         : "the first sizes of the inputs are not one number of samples: " + text);
}

}  // namespace

Result<Graph> open_samples(Graph graph, const OpTable& ops, const std::string& name) {
  EDDY_RETURN_IF_ERROR(check_first_dims(graph));
  GraphBuilder builder(ops, graph.name());
  OpenSamples(graph, builder, name).run();
  builder.adopt_blobs_of(std::move(graph));
  return builder.finish();
}

}  // namespace eddy
