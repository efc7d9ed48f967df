#include "graph/differentiate/differentiate.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>

#include "graph/base/check.h"
#include "graph/differentiate/activity.h"
#include "graph/differentiate/expand_active.h"
#include "graph/differentiate/expand_gradients.h"
#include "graph/differentiate/forward.h"
#include "graph/differentiate/kept_values.h"
#include "graph/differentiate/reverse.h"
#include "graph/ir/expansion.h"

namespace eddy {
namespace {

bool is_float_tensor(const ValueInfo& info) {
  return info.type.is_tensor() && kFloatTypes.contains(info.type.tensor.element);
}

// An output by its name, or another value of the root.
Result<ValueId> find_loss(const Graph& graph, const std::string& name) {
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    if (graph.output_names()[i] == name) return graph.outputs()[i];
  }
  for (uint32_t v = 0; v < graph.num_values() && !name.empty(); ++v) {
    const ValueInfo& info = graph.value(ValueId(v));
    if (info.name == name && info.region == Graph::kRoot) return ValueId(v);
  }
  return not_found("there is no value '" + name + "' to take as the loss; name an output");
}

Status check_loss(const Graph& graph, ValueId loss, const DifferentiateOptions& options) {
  const ValueInfo& info = graph.value(loss);
  const std::string quoted = "the loss '" + options.loss + "'";
  if (!is_float_tensor(info)) {
    return invalid_argument(quoted + " is " + to_string(info.type) +
                            ", which has no derivative; name a floating-point tensor");
  }
  const auto count = info.type.tensor.is_ranked ? info.type.tensor.dims.count() : std::nullopt;
  if (count == 1 || !options.seed.empty()) return Status::ok();
  // A training step has no seed.
  const char* const advice = options.initializers_become_inputs ? "" : "give a seed, or ";
  return invalid_argument(quoted + " is " + to_string(info.type) + ", not one element: " + advice +
                          "reduce it");
}

bool is_parameter(const Graph& graph, ValueId id) {
  const ValueInfo& info = graph.value(id);
  return info.origin == ValueOrigin::kConstant ||
         (info.origin == ValueOrigin::kParameter && info.region == Graph::kRoot);
}

Result<ValueId> find_parameter(const Graph& graph, const std::string& name) {
  for (uint32_t v = 0; v < graph.num_values(); ++v) {
    const ValueInfo& info = graph.value(ValueId(v));
    if (info.name != name || name.empty() || !is_parameter(graph, ValueId(v))) continue;
    if (is_float_tensor(info)) return ValueId(v);
    return invalid_argument("'" + name + "' is " + to_string(info.type) +
                            ", which has no derivative; leave it out of wrt");
  }
  return not_found("there is no input or initializer '" + name + "' for a gradient");
}

Result<std::vector<ValueId>> find_parameters(const Graph& graph,
                                             const DifferentiateOptions& options) {
  std::vector<ValueId> found;
  for (const std::string& name : options.wrt) {
    EDDY_ASSIGN_OR_RETURN(const ValueId id, find_parameter(graph, name));
    if (std::ranges::count(found, id) > 0) {
      return invalid_argument("'" + name + "' stands twice in wrt; name it once");
    }
    found.push_back(id);
  }
  if (!options.wrt.empty()) return found;
  for (uint32_t v = 0; v < graph.num_values(); ++v) {
    const ValueInfo& info = graph.value(ValueId(v));
    if (!is_parameter(graph, ValueId(v)) || !is_float_tensor(info) || info.name.empty()) continue;
    if (info.name != options.seed) found.push_back(ValueId(v));
  }
  return found;
}

Result<std::vector<ValueId>> find_stops(const Graph& graph, const DifferentiateOptions& options) {
  std::vector<ValueId> found;
  for (const std::string& name : options.stop) {
    const size_t before = found.size();
    for (uint32_t v = 0; v < graph.num_values(); ++v) {
      if (!name.empty() && graph.value(ValueId(v)).name == name) found.push_back(ValueId(v));
    }
    if (found.size() == before) return not_found("there is no value '" + name + "' to stop at");
  }
  return found;
}

// Of all nodes, so that files need one; never older than what rules are written in.
int newest_opset(const Graph& graph) {
  int newest = 0;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    if (node.kind == NodeKind::kExec && node.op->domain.empty()) {
      newest = std::max(newest, node.opset_version);
    }
  }
  return newest == 0 ? kDefaultOpset : std::max(newest, Expansion::kOldestInner);
}

// A gradient for one of several would be a part of what was meant.
Status check_parameters(const Graph& graph, const std::vector<ValueId>& wrt) {
  std::unordered_map<std::string_view, size_t> times;
  for (uint32_t v = 0; v < graph.num_values(); ++v) {
    const ValueInfo& info = graph.value(ValueId(v));
    if (is_parameter(graph, ValueId(v)) && is_float_tensor(info)) ++times[info.name];
  }
  for (const ValueId id : wrt) {
    if (times[graph.value(id).name] == 1) continue;
    return invalid_argument("several initializers or inputs are named " + quoted_name(graph, id) +
                            "; give each a name of its own, or differentiate the model as it was "
                            "read");
  }
  return Status::ok();
}

// Leaves out what the loss does not depend on; an error where it was named.
Result<std::vector<ValueId>> keep_active(const Graph& graph, const Activity& activity,
                                         std::vector<ValueId> wrt,
                                         const DifferentiateOptions& options) {
  std::vector<ValueId> active;
  for (const ValueId id : wrt) {
    if (activity.is_active(id)) {
      active.push_back(id);
    } else if (!options.wrt.empty()) {
      return invalid_argument("the loss '" + options.loss + "' does not depend on " +
                              quoted_name(graph, id) + "; leave it out of wrt");
    }
  }
  if (!active.empty()) return active;
  return invalid_argument("the loss '" + options.loss +
                          "' depends on no input or initializer of floating-point type");
}

// A gradient has the shape of what it is of, where that is known and the rules have lost it.
Value typed_as(const ValueType& type, GraphBuilder& builder, Value gradient, int opset) {
  const bool has_empty = std::ranges::count(type.tensor.dims.span(), 0) > 0;
  if (!type.is_static_tensor() || has_empty || builder.type(gradient).is_static_tensor()) {
    return gradient;
  }
  return builder.op("Reshape", {gradient, builder.vector(type.tensor.dims.span())}, {},
                    {.name = "grad/shaped", .opset_version = opset});
}

// The loss's adjoint: an input, or one.
Result<Value> make_seed(const Graph& graph, ValueId loss, const DifferentiateOptions& options,
                        ForwardCopy& forward, GraphBuilder& builder, int opset) {
  const TensorType& type = graph.value(loss).type.tensor;
  if (options.seed.empty()) {
    const Value one = builder.scalar(1.0);
    const OpOptions named = {.name = "grad/seed", .opset_version = opset};
    const Value cast =
        type.element == ElementType::kDouble
            ? one
            : builder.op("Cast", {one}, {{"to", static_cast<int64_t>(type.element)}}, named);
    return type.dims.rank() == 0
               ? cast
               : builder.op("Reshape", {cast, builder.vector(type.dims.span())}, {}, named);
  }
  for (const ValueId input : graph.inputs()) {
    const ValueInfo& info = graph.value(input);
    if (info.name != options.seed) continue;
    if (is_compatible(info.type, graph.value(loss).type)) return forward.of(input);
    return invalid_argument("the seed '" + options.seed + "' is " + to_string(info.type) +
                            ", but the loss '" + options.loss + "' is " +
                            to_string(graph.value(loss).type));
  }
  return builder.input(options.seed, forward.type_of(loss));
}

// An input that says how long segments are is one whole number.
Status check_length(const Graph& graph, const SavePolicy& policy) {
  for (const ValueId id : graph.inputs()) {
    const ValueInfo& info = graph.value(id);
    if (policy.every_input.empty() || info.name != policy.every_input) continue;
    if (is_compatible(info.type, tensor_type(ElementType::kInt64, {}))) return Status::ok();
    return invalid_argument("to save " + to_string(policy) + ", input '" + info.name +
                            "' must be int64[], not " + to_string(info.type));
  }
  return Status::ok();
}

// Each path is a loop's.
Status check_policies(const Graph& graph, const SavePolicies& policies) {
  EDDY_RETURN_IF_ERROR(check_length(graph, policies.others));
  for (const auto& [path, policy] : policies.loops) {
    EDDY_RETURN_IF_ERROR(check_length(graph, policy));
  }
  if (policies.loops.empty()) return Status::ok();
  std::set<std::string> paths;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (graph.node(NodeId(n)).kind == NodeKind::kWhile) paths.insert(graph.path(NodeId(n)));
  }
  for (const auto& [path, policy] : policies.loops) {
    if (paths.contains(path)) continue;
    std::string known;
    for (const std::string& each : paths) known += (known.empty() ? "'" : ", '") + each + "'";
    return not_found("there is no loop '" + path + "' to save " + to_string(policy) + " of" +
                     (known.empty() ? "" : "; there are " + known));
  }
  return Status::ok();
}

Status check_outputs(const Graph& graph, const GradientReport& report) {
  for (const GradientOutput& gradient : report.gradients) {
    if (std::ranges::count(graph.output_names(), gradient.output) == 0) continue;
    return invalid_argument("the graph has an output '" + gradient.output +
                            "' already; choose another suffix for gradients");
  }
  return Status::ok();
}

}  // namespace

Result<std::vector<std::string>> initializers_behind(const Graph& graph, const GradientTable& rules,
                                                     const DifferentiateOptions& options) {
  EDDY_ASSIGN_OR_RETURN(const ValueId loss, find_loss(graph, options.loss));
  EDDY_RETURN_IF_ERROR(check_loss(graph, loss, options));
  ActivityRequest request{loss, {}, {}};
  EDDY_ASSIGN_OR_RETURN(request.wrt, find_parameters(graph, options));
  EDDY_ASSIGN_OR_RETURN(request.stops, find_stops(graph, options));
  std::erase_if(request.wrt,
                [&](ValueId id) { return graph.value(id).origin != ValueOrigin::kConstant; });
  EDDY_ASSIGN_OR_RETURN(const Activity activity, find_activity(graph, rules, request));
  std::vector<std::string> names;
  for (const ValueId id : request.wrt) {
    if (activity.is_active(id)) names.push_back(graph.value(id).name);
  }
  if (!names.empty()) return names;
  return invalid_argument("the loss '" + options.loss +
                          "' depends on no initializer of floating-point type to train");
}

Result<GradientGraph> differentiate(Graph graph, const OpTable& ops, const GradientTable& rules,
                                    const DifferentiateOptions& options) {
  EDDY_ASSIGN_OR_RETURN(graph, expand_gradients(std::move(graph), ops, rules));
  EDDY_ASSIGN_OR_RETURN(const ValueId loss, find_loss(graph, options.loss));
  EDDY_RETURN_IF_ERROR(check_loss(graph, loss, options));
  ActivityRequest request{loss, {}, {}};
  EDDY_ASSIGN_OR_RETURN(request.wrt, find_parameters(graph, options));
  EDDY_ASSIGN_OR_RETURN(request.stops, find_stops(graph, options));
  EDDY_ASSIGN_OR_RETURN(const Activity activity, find_activity(graph, rules, request));
  EDDY_ASSIGN_OR_RETURN(const std::vector<ValueId> wrt,
                        keep_active(graph, activity, request.wrt, options));
  EDDY_RETURN_IF_ERROR(check_parameters(graph, wrt));
  if (has_active_expansion(graph, rules, activity)) {
    EDDY_ASSIGN_OR_RETURN(Graph expanded, expand_active(std::move(graph), ops, rules, activity));
    return differentiate(std::move(expanded), ops, rules, options);
  }
  EDDY_RETURN_IF_ERROR(check_policies(graph, options.save));
  const KeptValues kept(graph, rules, activity, options.save);
  std::vector<ValueId> become_inputs;
  for (const ValueId id : wrt) {
    const bool is_constant = graph.value(id).origin == ValueOrigin::kConstant;
    if (options.initializers_become_inputs && is_constant) become_inputs.push_back(id);
  }

  GraphBuilder builder(ops, graph.name());
  const int opset = newest_opset(graph);
  ForwardCopy forward(graph, builder, activity, kept, become_inputs);
  forward.run();
  EDDY_RETURN_IF_ERROR(builder.status());
  GradientReport report = make_gradient_report(graph, kept, activity, wrt, options.suffix);
  EDDY_RETURN_IF_ERROR(check_outputs(graph, report));
  EDDY_DCHECK(report.gradients.size() == wrt.size())
      << report.gradients.size() << " names for " << wrt.size() << " gradients";
  report.num_forward_nodes = builder.num_nodes();
  EDDY_ASSIGN_OR_RETURN(const Value seed, make_seed(graph, loss, options, forward, builder, opset));
  Reverse reverse(graph, rules, activity, kept, forward, builder,
                  {.opset = opset, .exact = options.exact});
  reverse.run(loss, seed);
  for (size_t i = 0; i < wrt.size(); ++i) {
    builder.output(report.gradients[i].output,
                   typed_as(graph.value(wrt[i]).type, builder, reverse.adjoint(wrt[i]), opset));
  }
  EDDY_RETURN_IF_ERROR(builder.status());
  EDDY_DCHECK(builder.num_nodes() >= report.num_forward_nodes) << "the way back took nodes away";
  report.num_backward_nodes = builder.num_nodes() - report.num_forward_nodes;
  builder.adopt_blobs_of(std::move(graph));
  EDDY_ASSIGN_OR_RETURN(Graph made, builder.finish());
  return GradientGraph{std::move(made), std::move(report)};
}

}  // namespace eddy
