#include "graph/io/importer.h"

#include <algorithm>
#include <unordered_set>

#include "graph/base/check.h"
#include "graph/base/shortened.h"
#include "graph/io/check_operators.h"
#include "graph/io/onnx_types.h"
#include "graph/io/text.h"

namespace eddy {
namespace {

// Few attributes are found by looking at all.
constexpr size_t kIndexAttributesFrom = 16;

// Without the mark and number by which the exporter makes names unique.
std::string_view without_mark(std::string_view name) {
  const size_t mark = name.rfind('%');
  if (mark == std::string_view::npos || mark + 1 == name.size()) return name;
  const bool is_number = name.find_first_not_of("0123456789", mark + 1) == std::string_view::npos;
  return is_number ? name.substr(0, mark) : name;
}

}  // namespace

Importer::Importer(const OnnxModel& model, const FunctionTable& functions, GraphBuilder& builder,
                   ExternalData& external, MemoryBudget& budget, const ImportOptions& options,
                   std::function<void()> evict_files)
    : model_(model),
      functions_(functions),
      builder_(builder),
      external_(external),
      budget_(budget),
      options_(options),
      evict_files_(std::move(evict_files)),
      root_env_{OpsetTable(model.opsets), options.name_prefix, {}, false},
      loop_depth_(builder.current_path().empty() ? 0 : 1) {
  EDDY_CHECK(evict_files_) << "copied constants would stay in memory twice";
}

const OnnxAttribute* Importer::NodeContext::find_or_null(std::string_view name) const {
  if (!index.empty()) {
    const auto it = index.find(name);
    return it == index.end() ? nullptr : it->second;
  }
  for (const auto& [key, attribute] : attributes) {
    if (key == name) return attribute;
  }
  return nullptr;
}

bool Importer::fail(Status status) {
  EDDY_CHECK(!status.is_ok()) << "a failure needs a reason";
  builder_.fail(std::move(status));
  return false;
}

bool Importer::fail_at(const NodeContext& at, Status status) {
  const OnnxNode& node = at.node;
  const bool by_output = node.name.empty() && !node.outputs.empty();
  const std::string name =
      at.scope.env->prefix + std::string(by_output ? node.outputs[0] : node.name);
  status.prepend_message("node " + quoted(name) + " (" + shortened(node.op_type) + ")");
  return fail(std::move(status));
}

bool Importer::fail_at(const NodeContext& at, std::string message) {
  return fail_at(at, invalid_argument(std::move(message)));
}

bool Importer::enter_level() {
  ++level_;
  if (level_ <= options_.limits.max_nesting) return true;
  return fail(resource_exhausted("graphs and function calls are nested more than " +
                                 std::to_string(options_.limits.max_nesting) + " deep"));
}

bool Importer::define(Scope& scope, std::string_view name, Value value) {
  if (scope.values.emplace(name, value).second) return true;
  return fail(invalid_argument("value " + quoted(name) + " is defined twice in the same graph"));
}

std::optional<Value> Importer::find(const Scope& scope, std::string_view name) const {
  for (const Scope* s = &scope; s != nullptr; s = s->parent) {
    if (const Value* const value = s->values.find_or_null(name)) return *value;
  }
  return std::nullopt;
}

std::string Importer::value_name(const Scope& scope, std::string_view name) const {
  const std::string_view kept = without_mark(name);
  return kept.empty() ? std::string() : scope.env->prefix + std::string(kept);
}

std::string Importer::node_name(const NodeContext& at) const {
  const std::string_view name = at.node.name;
  return name.empty() ? std::string() : at.scope.env->prefix + std::string(name);
}

std::string Importer::device_of(const OnnxNode& node) const {
  const std::string_view device = node.metadata_or_empty("eddy.device");
  return is_clean_utf8(device) ? std::string(device) : std::string();
}

template <typename Initializer>
bool Importer::import_initializer(const Initializer& initializer, std::string_view name,
                                  Scope& scope) {
  const Value value = make_constant(decode(initializer), value_name(scope, name));
  const std::string& kept = scope.names.emplace_front(name);
  if (!is_ok() || !define(scope, kept, value)) return false;
  remember_if_true(value);
  return true;
}

bool Importer::import_initializers(const OnnxGraph& graph, Scope& scope) {
  scope.values.reserve(scope.values.size() + graph.initializers.size() + graph.nodes.size());
  // A value given from outside overrides the default.
  std::unordered_set<std::string_view> given;
  for (const OnnxValueInfo& input : graph.inputs) {
    if (scope.values.contains(input.name)) given.insert(input.name);
  }
  for (const OnnxTensor& tensor : graph.initializers) {
    if (given.contains(tensor.name)) continue;
    if (!import_initializer(tensor, tensor.name, scope)) return false;
  }
  for (const OnnxSparseTensor& sparse : graph.sparse_initializers) {
    if (given.contains(sparse.values.name)) continue;
    if (!import_initializer(sparse, sparse.values.name, scope)) return false;
  }
  return true;
}

void Importer::remember_if_true(Value value) {
  EDDY_CHECK(builder_.constant_or_null(value) != nullptr) << "an initializer is a constant";
  const TensorView view = builder_.constant_or_null(value)->view();
  const bool is_true =
      view.element == ElementType::kBool && view.rank == 0 && *view.as<uint8_t>() == 1;
  if (is_true && always_true_.is_none()) always_true_ = value;
}

bool Importer::import_nodes(const std::vector<OnnxNode>& nodes, Scope& scope) {
  Result<std::vector<uint32_t>> order = order_nodes(nodes, free_names_);
  if (!order.is_ok()) return fail(order.take_status());
  EDDY_CHECK(order->size() == nodes.size()) << order->size() << " of " << nodes.size() << " nodes";
  for (uint32_t index : *order) {
    if (!import_node(nodes[index], scope)) return false;
  }
  return true;
}

// What the builder will keep of it, names included.
bool Importer::charge_node(const OnnxNode& node, const Env& env) {
  constexpr size_t kNodeBytes = 640;
  constexpr size_t kValueBytes = 256;
  size_t bytes = kNodeBytes + node.name.size() + env.prefix.size();
  bytes +=
      node.inputs.size() * sizeof(ValueId) + node.attributes.size() * sizeof(Attributes::Entry);
  for (std::string_view output : node.outputs) {
    bytes += kValueBytes + output.size() + env.prefix.size();
  }
  return charge(bytes);
}

bool Importer::import_node(const OnnxNode& node, Scope& scope) {
  if (++num_nodes_ > options_.limits.max_nodes) {
    return fail(resource_exhausted("the model has more than " +
                                   std::to_string(options_.limits.max_nodes) +
                                   " nodes after inlining its functions"));
  }
  if (!charge_node(node, *scope.env)) return false;
  NodeContext at{node, scope, key_of(node, scope.env->opsets)};
  return resolve_attributes(at) && dispatch(at) && is_ok();
}

bool Importer::resolve_attributes(NodeContext& at) {
  for (const OnnxAttribute& attribute : at.node.attributes) {
    if (at.find_or_null(attribute.name) != nullptr) {
      return fail_at(at, "attribute " + quoted(attribute.name) + " is given twice");
    }
    const OnnxAttribute* meant = &attribute;
    if (!attribute.ref_name.empty()) {
      const Env& env = *at.scope.env;
      if (!env.is_function) {
        return fail_at(at, "attribute " + quoted(attribute.name) +
                               " refers to one of a function, but stands outside of any");
      }
      const auto it = env.attributes.find(attribute.ref_name);
      if (it == env.attributes.end()) continue;  // not given by the caller: left out
      meant = it->second;
      if (!meant->graphs.empty()) {
        return fail_at(at, unsupported("graphs as attributes of functions are not supported"));
      }
    }
    EDDY_DCHECK(meant != nullptr) << attribute.name << " refers to nothing";
    at.attributes.emplace_back(attribute.name, meant);
    if (at.node.attributes.size() > kIndexAttributesFrom) at.index[attribute.name] = meant;
  }
  return true;
}

bool Importer::dispatch(NodeContext& at) {
  if (const OnnxFunction* function = functions_.find_or_null(at.node)) {
    return import_call(at, *function);
  }
  const std::string_view op = at.key.name;
  if (at.key.domain == "eddy") {
    if (op == "CaseOf") return import_case_of(at);
    if (op == "While") return import_while(at);
  }
  if (at.key.domain == "ai.onnx.preview" && op == "FlexAttention") {
    return import_flex_attention(at);
  }
  if (!at.key.domain.empty()) return import_exec(at);
  if (op == "Constant") return import_constant(at);
  if (op == "If") return import_if(at);
  if (op == "Loop") return import_loop(at);
  if (op == "Scan") return import_scan(at);
  if (op == "SequenceMap") return import_sequence_map(at);
  return is_forward(at.node) ? import_forward(at) : import_exec(at);
}

bool Importer::import_forward(const NodeContext& at) {
  std::vector<Value> inputs;
  return inputs_of(at, &inputs) && bind_outputs(at, inputs);
}

bool Importer::inputs_of(const NodeContext& at, std::vector<Value>* values) {
  for (std::string_view name : at.node.inputs) {
    if (name.empty()) {
      values->push_back({});
      continue;
    }
    if (const std::optional<Value> value = find(at.scope, name)) {
      values->push_back(*value);
      continue;
    }
    const auto map = maps_.find(name);
    if (map == maps_.end()) return fail_at(at, "input " + quoted(name) + " is defined nowhere");
    values->push_back(map->second.first);
    values->push_back(map->second.second);
  }
  return true;
}

bool Importer::bind_outputs(const NodeContext& at, std::span<const Value> values) {
  if (!is_ok()) return false;
  const auto& names = at.node.outputs;
  if (names.size() > values.size()) {
    return fail_at(at, "has " + std::to_string(names.size()) + " outputs where only " +
                           std::to_string(values.size()) + " values come");
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (!names[i].empty() && !define(at.scope, names[i], values[i])) return false;
  }
  return true;
}

bool Importer::import_exec(const NodeContext& at) {
  OpOptions options;
  options.name = node_name(at);
  options.domain = std::string(at.key.domain);
  options.opset_version = at.key.version;
  options.device = device_of(at.node);
  size_t count = at.node.outputs.size();
  while (count > 1 && at.node.outputs[count - 1].empty()) --count;
  if (count == 0) return fail_at(at, "has no outputs");
  for (size_t i = 0; i < count; ++i) {
    options.output_names.push_back(value_name(at.scope, at.node.outputs[i]));
  }
  options.num_outputs = static_cast<int>(count);
  std::vector<Value> inputs;
  Attributes attributes;
  if (!inputs_of(at, &inputs) || !to_attributes(at, &attributes)) return false;
  const size_t num_before = builder_.num_nodes();
  std::vector<Value> outputs =
      builder_.ops(at.key.name, inputs, std::move(attributes), std::move(options));
  // A function's nodes but the one that has been charged.
  constexpr size_t kExpandedNodeBytes = 1024;
  const size_t num_made = builder_.num_nodes() - num_before;
  if (num_made > 1 && !charge((num_made - 1) * kExpandedNodeBytes)) return false;
  outputs.resize(at.node.outputs.size());
  return bind_outputs(at, outputs);
}

std::vector<Value> Importer::import_body(const OnnxGraph& graph, const Scope& outer,
                                         std::span<const Value> inputs) {
  const Level level(*this);
  if (!level.is_ok() || !is_ok()) return {};
  EDDY_CHECK(inputs.size() <= graph.inputs.size())
      << inputs.size() << " values for " << graph.inputs.size() << " inputs";
  Scope scope{&outer, outer.env};
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!define(scope, graph.inputs[i].name, inputs[i])) return {};
  }
  std::vector<Value> results;
  if (!import_initializers(graph, scope) || !import_nodes(graph.nodes, scope) ||
      !graph_results(graph, scope, &results)) {
    return {};
  }
  return results;
}

bool Importer::graph_results(const OnnxGraph& graph, Scope& scope, std::vector<Value>* values) {
  for (const OnnxValueInfo& output : graph.outputs) {
    const std::optional<Value> value = find(scope, output.name);
    if (!value || value->is_none()) {
      return fail(invalid_argument("graph output " + quoted(output.name) +
                                   " is defined nowhere in graph " + quoted(graph.name)));
    }
    values->push_back(*value);
  }
  return true;
}

std::optional<ValueType> Importer::declared_type(const OnnxValueInfo& info) {
  if (!info.has_type) return std::nullopt;
  Result<ValueType> type =
      to_value_type(info.type, [&](std::string_view name) { return builder_.symbol(name); });
  if (!type.is_ok()) return std::nullopt;
  return *type;
}

bool Importer::declare_inputs(Scope& scope) {
  const OnnxGraph& graph = model_.graph;
  std::unordered_set<std::string_view> defaults;
  for (const OnnxTensor& tensor : graph.initializers) defaults.insert(tensor.name);
  for (const OnnxSparseTensor& sparse : graph.sparse_initializers) {
    defaults.insert(sparse.values.name);
  }
  for (const OnnxValueInfo& input : graph.inputs) {
    if (defaults.contains(input.name)) continue;
    if (input.name.empty()) return fail(invalid_argument("a graph input has no name"));
    if (input.type.layers.empty() && input.type.map_value != 0) {
      if (!declare_map(input)) return false;
      continue;
    }
    Result<ValueType> type =
        to_value_type(input.type, [&](std::string_view name) { return builder_.symbol(name); });
    if (!type.is_ok()) {
      Status status = type.take_status();
      return fail(std::move(status.prepend_message("graph input " + quoted(input.name))));
    }
    const Value value = builder_.input(std::string(input.name), *type);
    if (!is_ok() || !define(scope, input.name, value)) return false;
  }
  return true;
}

bool Importer::declare_map(const OnnxValueInfo& input) {
  const std::string name(input.name);
  const auto list = [&](const char* part, int32_t data_type, int64_t size) {
    Result<ElementType> element = to_element_type(data_type);
    if (element.is_ok()) return builder_.input(name + part, TensorType(*element, {size}));
    fail(std::move(element.take_status().prepend_message("graph input " + quoted(name))));
    return Value{};
  };
  const int64_t size = builder_.symbol(name + ".size");
  const Value keys = list(".keys", input.type.map_key, size);
  if (!is_ok()) return false;
  const Value values = list(".values", input.type.map_value, size);
  if (!is_ok()) return false;
  if (maps_.emplace(input.name, std::pair(keys, values)).second) return true;
  return fail(invalid_argument("graph input " + quoted(name) + " is declared twice"));
}

bool Importer::declare_outputs(Scope& scope) {
  std::vector<Value> results;
  if (!graph_results(model_.graph, scope, &results)) return false;
  for (size_t i = 0; i < results.size(); ++i) {
    const OnnxValueInfo& info = model_.graph.outputs[i];
    const std::optional<ValueType> declared = declared_type(info);
    const ValueType& found = builder_.type(results[i]);
    if (declared && !join(*declared, found)) {
      return fail(invalid_argument("graph output " + quoted(info.name) + " is declared " +
                                   to_string(*declared) + " but is " + to_string(found)));
    }
    if (declared && options_.warn && !is_compatible(found, *declared)) {
      options_.warn("graph output " + quoted(info.name) + " is declared " + to_string(*declared) +
                    " but its nodes make it " + to_string(found) +
                    "; the declaration is ignored, so correct it in the model");
    }
    builder_.output(std::string(info.name), results[i]);
  }
  return is_ok();
}

void Importer::import_root() {
  Scope scope{nullptr, &root_env_};
  if (!declare_inputs(scope) || !import_initializers(model_.graph, scope) ||
      !import_nodes(model_.graph.nodes, scope)) {
    return;
  }
  declare_outputs(scope);
  EDDY_CHECK(level_ == 0 && calls_.empty()) << "level " << level_ << " was not left";
}

std::vector<NamedValue> Importer::import_inline(std::span<const NamedValue> inputs) {
  const OnnxGraph& graph = model_.graph;
  Scope scope{nullptr, &root_env_};
  for (const NamedValue& given : inputs) {
    const auto formal = std::find_if(graph.inputs.begin(), graph.inputs.end(),
                                     [&](const auto& input) { return input.name == given.name; });
    if (formal == graph.inputs.end()) {
      fail(invalid_argument("the model has no input " + quoted(given.name)));
      return {};
    }
    const std::optional<ValueType> declared = declared_type(*formal);
    if (declared && !join(*declared, builder_.type(given.value))) {
      fail(invalid_argument("input " + quoted(given.name) + " must be " + to_string(*declared) +
                            ", not " + to_string(builder_.type(given.value))));
      return {};
    }
    if (!define(scope, formal->name, given.value)) return {};
  }
  if (!import_initializers(graph, scope)) return {};
  for (const OnnxValueInfo& input : graph.inputs) {
    if (!scope.values.contains(input.name)) {
      fail(invalid_argument("input " + quoted(input.name) + " of the model is not given"));
      return {};
    }
  }
  std::vector<Value> results;
  if (!import_nodes(graph.nodes, scope) || !graph_results(graph, scope, &results)) return {};
  EDDY_CHECK(level_ == 0 && results.size() == graph.outputs.size())
      << results.size() << " results of level " << level_;
  std::vector<NamedValue> named;
  for (size_t i = 0; i < results.size(); ++i) {
    named.push_back({std::string(graph.outputs[i].name), results[i]});
  }
  return named;
}

}  // namespace eddy
