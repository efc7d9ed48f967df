// Calls of model-local functions, inlined.
#include <algorithm>

#include "graph/base/check.h"
#include "graph/io/importer.h"
#include "graph/io/text.h"

namespace eddy {

// The body is imported in a scope of its own that sees only the call's inputs; attributes that
// refer to the function's stand for what this call gives, or for their defaults.
bool Importer::import_call(const NodeContext& at, const OnnxFunction& function) {
  if (std::find(calls_.begin(), calls_.end(), &function) != calls_.end()) {
    return fail_at(
        at, "function " + quoted(function.name) + " calls itself; functions can't be recursive");
  }
  const Level level(*this);
  if (!level.is_ok()) return false;
  std::vector<Value> inputs;
  if (!inputs_of(at, &inputs)) return false;
  if (inputs.size() > function.inputs.size()) {
    return fail_at(at, "passes " + std::to_string(inputs.size()) + " inputs to function " +
                           quoted(function.name) + ", which takes " +
                           std::to_string(function.inputs.size()));
  }
  Env env{function.opsets.empty() ? root_env_.opsets : OpsetTable(function.opsets), {}, {}, true};
  const std::string name = node_name(at);
  env.prefix = (name.empty() ? at.scope.env->prefix + std::string(function.name) : name) + "/";
  if (env.prefix.size() > options_.limits.max_name_bytes) {
    return fail_at(at, resource_exhausted("names inside the call would have more than " +
                                          std::to_string(options_.limits.max_name_bytes) +
                                          " bytes; shorten the names of nodes"));
  }
  for (const OnnxAttribute& attribute : function.default_attributes) {
    env.attributes[attribute.name] = &attribute;
  }
  for (const auto& [key, attribute] : at.attributes) env.attributes[key] = attribute;

  Scope scope{nullptr, &env};
  inputs.resize(function.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!define(scope, function.inputs[i], inputs[i])) return false;
  }
  calls_.push_back(&function);
  const bool is_imported = import_nodes(function.nodes, scope);
  EDDY_CHECK(calls_.back() == &function) << "a call inside was not left";
  calls_.pop_back();
  if (!is_imported) return false;

  std::vector<Value> outputs;
  for (std::string_view output : function.outputs) {
    outputs.push_back(find(scope, output).value_or(Value{}));
  }
  for (size_t i = 0; i < at.node.outputs.size() && i < outputs.size(); ++i) {
    if (!at.node.outputs[i].empty() && outputs[i].is_none()) {
      return fail_at(at, "output " + quoted(function.outputs[i]) + " of function " +
                             quoted(function.name) + " is defined nowhere");
    }
  }
  return bind_outputs(at, outputs);
}

}  // namespace eddy
