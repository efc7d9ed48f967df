// If, Loop, SequenceMap and eddy's CaseOf and While as case-of and while nodes.
#include <algorithm>
#include <charconv>
#include <climits>

#include "graph/base/check.h"
#include "graph/io/importer.h"
#include "graph/io/text.h"

namespace eddy {

const OnnxGraph* Importer::body_or_null(const NodeContext& at, std::string_view name) {
  const OnnxAttribute* attribute = at.find_or_null(name);
  if (attribute != nullptr && attribute->graphs.size() == 1) return &attribute->graphs[0];
  fail_at(at, "needs a graph as attribute " + quoted(name));
  return nullptr;
}

bool Importer::check_counts(const NodeContext& at, const OnnxGraph& body, std::string_view name,
                            size_t num_inputs, size_t num_outputs) {
  if (body.inputs.size() != num_inputs) {
    return fail_at(at, "its graph " + quoted(name) + " takes " +
                           std::to_string(body.inputs.size()) + " inputs, but " +
                           std::to_string(num_inputs) + " are passed; give it one for each");
  }
  if (body.outputs.size() < num_outputs) {
    return fail_at(at, "its graph " + quoted(name) + " gives " +
                           std::to_string(body.outputs.size()) + " outputs, but at least " +
                           std::to_string(num_outputs) + " are needed; add what is missing");
  }
  return true;
}

Value Importer::always_true() {
  if (always_true_.is_none()) always_true_ = builder_.scalar(true);
  return always_true_;
}

std::vector<Value> Importer::while_loop(const WhileOptions& options, const WhileBefore& before,
                                        const WhileAfter& after) {
  ++loop_depth_;
  std::vector<Value> results = builder_.while_loop(options, before, after);
  EDDY_CHECK(loop_depth_ > 0) << "a loop is left twice";
  --loop_depth_;
  return results;
}

// Declared types matter only where they are less specific than the initial values: files often
// declare shapes that hold for the first iteration alone, and most declare none where they could. A
// clash of element types is the builder's error.
std::vector<std::optional<ValueType>> Importer::wider_types(std::span<const OnnxValueInfo> declared,
                                                            std::span<const Value> initial,
                                                            bool trust_unranked) {
  std::vector<std::optional<ValueType>> types(initial.size());
  for (size_t i = 0; i < initial.size() && i < declared.size(); ++i) {
    const std::optional<ValueType> type = declared_type(declared[i]);
    if (!type) continue;
    const std::optional<ValueType> joined = join(builder_.type(initial[i]), *type);
    const bool is_wider = joined && *joined == *type;
    if (!joined || (is_wider && (type->tensor.is_ranked || trust_unranked))) types[i] = type;
  }
  return types;
}

bool Importer::is_used(const OnnxGraph& graph, std::string_view name) {
  const auto has = [&](const auto& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const OnnxNode& node : graph.nodes) {
    if (has(node.inputs)) return true;
    for (const OnnxAttribute& attribute : node.attributes) {
      for (const OnnxGraph& inner : attribute.graphs) {
        if (has(free_names_.of(inner))) return true;
      }
    }
  }
  return std::any_of(graph.outputs.begin(), graph.outputs.end(),
                     [&](const OnnxValueInfo& output) { return output.name == name; });
}

void Importer::name_parameters(const OnnxGraph& body, const Scope& scope,
                               std::span<const Value> values) {
  for (size_t i = 0; i < values.size() && i < body.inputs.size(); ++i) {
    const std::string name = value_name(scope, body.inputs[i].name);
    if (!name.empty()) builder_.set_name(values[i], name);
  }
}

bool Importer::import_if(const NodeContext& at) {
  std::vector<Value> inputs;
  if (!inputs_of(at, &inputs)) return false;
  if (inputs.size() != 1 || inputs[0].is_none()) return fail_at(at, "needs one condition");
  if (!check_condition(at, "the condition", inputs[0])) return false;
  const OnnxGraph* then_graph = body_or_null(at, "then_branch");
  const OnnxGraph* else_graph = body_or_null(at, "else_branch");
  if (then_graph == nullptr || else_graph == nullptr) return false;
  const size_t count = at.node.outputs.size();
  if (!check_counts(at, *then_graph, "then_branch", 0, count) ||
      !check_counts(at, *else_graph, "else_branch", 0, count)) {
    return false;
  }
  const std::vector<Value> outputs = builder_.if_else(
      marked(at, inputs[0]), [&] { return import_body(*then_graph, at.scope, {}); },
      [&] { return import_body(*else_graph, at.scope, {}); }, node_name(at));
  if (!is_ok()) return false;
  name_outputs(at, outputs);
  return bind_outputs(at, outputs);
}

// "all", "any", "root" or "root:2".
Value Importer::marked(const NodeContext& at, Value decision) {
  const std::string_view text = at.node.metadata_or_empty("eddy.agree");
  if (text.empty() || decision.is_none() || !is_ok()) return decision;
  const size_t colon = text.find(':');
  const std::string_view how = text.substr(0, colon);
  Attributes attributes = {{"how", std::string(how)}};
  bool is_right = how == "all" || how == "any" || how == "root";
  if (colon != std::string_view::npos) {
    uint32_t root = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, root);
    is_right = is_right && how == "root" && error == std::errc() && stop == end;
    attributes.set("root", int64_t{root});
  }
  if (!is_right) {
    fail_at(at, "its metadata 'eddy.agree' is " + quoted(text) +
                    "; it must be all, any, root or root:RANK");
    return decision;
  }
  const std::string name = node_name(at);
  return builder_.op("Agree", {decision}, std::move(attributes),
                     {.name = name.empty() ? name : name + "_agree", .domain = "eddy"});
}

void Importer::name_outputs(const NodeContext& at, std::span<const Value> values) {
  for (size_t i = 0; i < values.size() && i < at.node.outputs.size(); ++i) {
    builder_.set_name(values[i], value_name(at.scope, at.node.outputs[i]));
  }
}

// `what` names the condition.
bool Importer::check_condition(const NodeContext& at, const std::string& what, Value condition) {
  const ValueType& type = builder_.type(condition);
  const bool is_one = !type.tensor.is_ranked || type.tensor.dims.count().value_or(1) == 1;
  if (type.is_tensor() && type.tensor.element == ElementType::kBool && is_one) return true;
  return fail_at(at, what + " must be one bool, not " + to_string(type));
}

// Carried values of the while node: the condition, unless the file leaves it out, then the
// loop's own. The condition is checked before each iteration and not forwarded: inside the body
// it is known to be true.
bool Importer::import_loop(const NodeContext& at) {
  std::vector<Value> inputs;
  const OnnxGraph* body = body_or_null(at, "body");
  if (body == nullptr || !inputs_of(at, &inputs)) return false;
  if (inputs.size() < 2) inputs.resize(2);
  const bool has_condition = !inputs[1].is_none();
  if (has_condition && !check_condition(at, "the condition", inputs[1])) return false;
  const size_t num_carried = inputs.size() - 2;
  if (!check_counts(at, *body, "body", inputs.size(), 1 + num_carried)) return false;

  const size_t num_states = num_carried + (has_condition ? 1 : 0);
  WhileOptions options;
  options.name = node_name(at);
  options.trip_limit = inputs[0];
  options.initial.assign(inputs.end() - static_cast<ptrdiff_t>(num_states), inputs.end());
  options.num_scan_outputs = static_cast<uint32_t>(body->outputs.size() - 1 - num_carried);
  options.carried_types =
      wider_types(std::span(body->inputs).last(num_states), options.initial, false);
  std::vector<bool> is_wrapped(num_carried);
  std::vector<Value> outputs = while_loop(
      options,
      [&](Value, std::span<const Value> carried) {
        EDDY_DCHECK(carried.size() == num_states) << carried.size() << " of " << num_states;
        const auto own = carried.last(num_carried);
        const Value predicate = has_condition ? carried[0] : always_true();
        return WhileTest{marked(at, predicate), {own.begin(), own.end()}};
      },
      [&](Value iteration, std::span<const Value> forwarded) {
        const bool asks = is_used(*body, body->inputs[1].name);
        EDDY_DCHECK(forwarded.size() == num_carried && body->inputs.size() == 2 + num_carried)
            << forwarded.size() << " values for a body of " << body->inputs.size();
        std::vector<Value> values = {iteration, asks ? always_true() : Value{}};
        values.insert(values.end(), forwarded.begin(), forwarded.end());
        name_parameters(*body, at.scope, std::span(values).first(1));
        for (size_t i = 0; i < forwarded.size(); ++i) {
          builder_.set_name(forwarded[i], value_name(at.scope, body->inputs[2 + i].name));
        }
        std::vector<Value> results = import_body(*body, at.scope, values);
        if (!is_ok()) return results;
        EDDY_DCHECK(results.size() == num_carried + 1 + options.num_scan_outputs)
            << "the body of " << options.name << " gives " << results.size();
        const std::string next =
            "its body's condition, output " + quoted(body->outputs[0].name) + ",";
        if (has_condition && !check_condition(at, next, results[0])) return results;
        for (size_t i = 0; i < num_carried; ++i) {
          is_wrapped[i] = wrap_optional(at, forwarded[i], results[1 + i]);
        }
        if (!has_condition) results.erase(results.begin());
        return results;
      });
  EDDY_CHECK(!is_ok() || outputs.size() >= num_carried) << options.name << " lost a value";
  for (size_t i = 0; is_ok() && i < num_carried; ++i) {
    if (is_wrapped[i]) outputs[i] = helper(at, "OptionalGetElement", {outputs[i]});
  }
  if (!is_ok()) return false;
  name_outputs(at, outputs);
  return bind_outputs(at, outputs);
}

// Loop 16 lets a value start as an optional and go on as its content; a carried value of the
// graph has one type, so the content is wrapped until the loop is over.
bool Importer::wrap_optional(const NodeContext& at, Value carried, Value& next) {
  const bool is_wrapped =
      builder_.type(carried).is_optional() && !builder_.type(next).is_optional();
  if (is_wrapped) next = helper(at, "Optional", {next});
  return is_wrapped;
}

// A while node that takes the sequences apart and puts its results into new ones.
bool Importer::import_sequence_map(const NodeContext& at) {
  std::vector<Value> inputs;
  const OnnxGraph* body = body_or_null(at, "body");
  if (body == nullptr || !inputs_of(at, &inputs)) return false;
  if (std::any_of(inputs.begin(), inputs.end(), [](Value v) { return v.is_none(); }) ||
      inputs.empty() || !builder_.type(inputs[0]).is_sequence()) {
    return fail_at(at, "its first input must be a sequence, and none may be left out");
  }
  if (!check_counts(at, *body, "body", inputs.size(), at.node.outputs.size())) return false;
  WhileOptions options;
  options.name = node_name(at);
  options.trip_limit = helper(at, "SequenceLength", {inputs[0]});
  for (const OnnxValueInfo& output : body->outputs) {
    const std::optional<ValueType> type = declared_type(output);
    if (!type || !type->is_tensor()) {
      return fail_at(at, "output " + quoted(output.name) +
                             " of its body must be declared with the type of a tensor");
    }
    const int64_t element = static_cast<int64_t>(type->tensor.element);
    options.initial.push_back(helper(at, "SequenceEmpty", {}, {{"dtype", element}}));
  }
  const std::vector<Value> outputs = while_loop(
      options,
      [&](Value, std::span<const Value> carried) {
        return WhileTest{always_true(), {carried.begin(), carried.end()}};
      },
      [&](Value iteration, std::span<const Value> carried) {
        std::vector<Value> elements;
        for (Value input : inputs) {
          const bool is_sequence = builder_.type(input).is_sequence();
          elements.push_back(is_sequence ? helper(at, "SequenceAt", {input, iteration}) : input);
        }
        std::vector<Value> results = import_body(*body, at.scope, elements);
        EDDY_DCHECK(!is_ok() || results.size() == carried.size())
            << results.size() << " elements for " << carried.size() << " sequences";
        for (size_t i = 0; is_ok() && i < results.size(); ++i) {
          results[i] = helper(at, "SequenceInsert", {carried[i], results[i]});
        }
        return results;
      });
  if (!is_ok()) return false;
  name_outputs(at, outputs);
  return bind_outputs(at, outputs);
}

bool Importer::import_case_of(const NodeContext& at) {
  std::vector<Value> inputs;
  if (!inputs_of(at, &inputs)) return false;
  if (inputs.empty() || inputs[0].is_none()) return fail_at(at, "needs a selector");
  CaseOptions options;
  options.name = node_name(at);
  options.selector = marked(at, inputs[0]);
  options.pass_through.assign(inputs.begin() + 1, inputs.end());
  if (const OnnxAttribute* attribute = at.find_or_null("default")) {
    if (attribute->i < -1 || attribute->i > INT_MAX) return fail_at(at, "has a bad default");
    options.default_region = static_cast<int>(attribute->i);
  }
  std::vector<const OnnxGraph*> graphs;
  while (at.find_or_null("branch_" + std::to_string(graphs.size())) != nullptr || graphs.empty()) {
    const std::string name = "branch_" + std::to_string(graphs.size());
    const OnnxGraph* graph = body_or_null(at, name);
    if (graph == nullptr || !check_counts(at, *graph, name, 0, at.node.outputs.size())) {
      return false;
    }
    graphs.push_back(graph);
  }
  const size_t num_known = graphs.size() + (at.find_or_null("default") != nullptr ? 1 : 0);
  if (at.attributes.size() != num_known) {
    return fail_at(at, "has other attributes than 'default' and 'branch_0' to 'branch_" +
                           std::to_string(graphs.size() - 1) +
                           "'; number its branches without gaps");
  }
  std::vector<CaseBody> bodies;
  bodies.reserve(graphs.size());
  for (const OnnxGraph* graph : graphs) {
    bodies.push_back([this, graph, &at] { return import_body(*graph, at.scope, {}); });
  }
  const std::vector<Value> outputs = builder_.case_of(options, bodies);
  if (!is_ok()) return false;
  name_outputs(at, outputs);
  return bind_outputs(at, outputs);
}

bool Importer::import_while(const NodeContext& at) {
  std::vector<Value> inputs;
  const OnnxGraph* before = body_or_null(at, "before");
  if (before == nullptr || !inputs_of(at, &inputs)) return false;
  const OnnxGraph* after = body_or_null(at, "after");
  if (after == nullptr) return false;
  if (inputs.empty()) inputs.resize(1);
  const size_t num_carried = inputs.size() - 1;
  if (!check_counts(at, *before, "before", 1 + num_carried, 1) ||
      !check_counts(at, *after, "after", before->outputs.size(), num_carried)) {
    return false;
  }
  WhileOptions options;
  options.name = node_name(at);
  options.trip_limit = inputs[0];
  options.initial.assign(inputs.begin() + 1, inputs.end());
  options.num_scan_outputs = static_cast<uint32_t>(after->outputs.size() - num_carried);
  options.carried_types = wider_types(std::span(before->inputs).subspan(1), options.initial, true);
  const auto region = [&](const OnnxGraph& graph, Value iteration,
                          std::span<const Value> parameters) {
    std::vector<Value> values = {iteration};
    values.insert(values.end(), parameters.begin(), parameters.end());
    name_parameters(graph, at.scope, values);
    return import_body(graph, at.scope, values);
  };
  const std::vector<Value> outputs = while_loop(
      options,
      [&](Value iteration, std::span<const Value> carried) {
        const std::vector<Value> results = region(*before, iteration, carried);
        if (!is_ok()) return WhileTest{};
        EDDY_DCHECK(results.size() == before->outputs.size() && !results.empty())
            << options.name << " has no predicate";
        return WhileTest{marked(at, results[0]), {results.begin() + 1, results.end()}};
      },
      [&](Value iteration, std::span<const Value> forwarded) {
        return region(*after, iteration, forwarded);
      });
  if (!is_ok()) return false;
  name_outputs(at, outputs);
  return bind_outputs(at, outputs);
}

}  // namespace eddy
