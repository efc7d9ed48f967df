#include "runtime/api/c/graph.h"

#include <span>

#include "graph/io/export.h"
#include "graph/io/import.h"
#include "graph/ir/opset.h"
#include "graph/ir/print.h"
#include "runtime/api/bound_memory.h"
#include "runtime/api/c/api_functions.h"
#include "runtime/api/c/convert.h"
#include "runtime/api/c/user_code.h"
#include "runtime/api/c/value.h"

namespace eddy::c {

Refusal GraphObject::finish() {
  if (finished) return {};
  EDDY_C_ASSIGN(Graph graph, builder->finish());
  finished = std::move(graph);
  is_finished.store(true, std::memory_order_release);
  builder.reset();
  return {};
}

Refusal GraphObject::check_building() const {
  if (builder) return {};
  return {EDDY_INVALID_STATE, "the graph is finished; make another one to add to"};
}

namespace {

// What the graph refuses now, or refused when an earlier call was made.
Refusal with_sequel(Status status, bool is_new) {
  if (is_new) return status;
  return status.append_message(
      "an earlier call was refused for this, and nothing is added behind it");
}

// A call that adds to a graph. `at`: where the caller says that it stands.
template <typename Body>
eddy_code build(eddy_graph handle, eddy_error* error, Body body) noexcept {
  std::optional<Location> at;
  try {
    Refusal why;
    const Pin<GraphObject, Use::kAlone> graph(handle, why);
    if (!graph) return report(why, nullptr, nullptr, error);
    at = graph->here;
    why = graph->check_building();
    if (!why.is_ok()) return report(why, nullptr, at ? &*at : nullptr, error);
    const bool was_ok = graph->builder->status().is_ok();
    why = body(*graph, at);
    if (why.is_ok()) why = with_sequel(graph->builder->status(), was_ok);
    if (why.is_ok()) return EDDY_OK;
    // What the graph refuses sticks: later calls then name the place of this one, not their own.
    if (was_ok && !graph->builder->status().is_ok()) graph->refused_at = at;
    if (!was_ok) at = graph->refused_at;
    if (at && was_ok && !graph->builder->status().is_ok()) {
      graph->locations->set(join_path(split_path(why.path())), *at);
    }
    return report(why, graph->locations.get(), at ? &*at : nullptr, error);
  } catch (...) {
    return report(caught(), nullptr, nullptr, error);
  }
}

Refusal read_value(const GraphBuilder& builder, eddy_value_id id, const char* what, Value& value) {
  if (id == 0) {
    value = {};
    return {};
  }
  if (!builder.has_value(id - 1)) {
    return {EDDY_INVALID_ARGUMENT, std::string(what) + " is value " + std::to_string(id) +
                                       ", which this graph has not given"};
  }
  value = Value{ValueId(id - 1)};
  return {};
}

Refusal read_values(const GraphBuilder& builder, const eddy_value_id* ids, size_t count,
                    const char* what, std::vector<Value>& values) {
  if (count > 0) EDDY_C_TRY(need(ids, what));
  values.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const std::string name = std::string(what) + " " + std::to_string(i);
    EDDY_C_TRY(read_value(builder, ids[i], name.c_str(), values[i]));
  }
  return {};
}

eddy_value_id id_of(Value value) { return value.is_none() ? 0 : value.id.index() + 1; }

void write_values(std::span<const Value> values, eddy_value_id* ids) {
  for (size_t i = 0; i < values.size(); ++i) ids[i] = id_of(values[i]);
}

std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

class BorrowedBlob : public Blob {
 public:
  BorrowedBlob(const TensorView& view, eddy_function release, void* user)
      : bytes_(static_cast<const std::byte*>(view.data), view.size_bytes()),
        release_(release),
        user_(user) {}
  ~BorrowedBlob() override {
    if (release_ != nullptr) call_and_forget([this] { release_(user_); });
  }
  std::span<const std::byte> bytes() const override { return bytes_; }

 private:
  const std::span<const std::byte> bytes_;
  const eddy_function release_;
  void* const user_;
};

}  // namespace

eddy_code graph_create(eddy_library library, const char* name, eddy_graph* graph,
                       eddy_error* error) {
  return enter_with<LibraryObject>(library, error, [&](const auto& l) -> Refusal {
    EDDY_C_TRY(need(graph, "place for the graph"));
    EDDY_C_TRY(check_name(name, "name of the graph"));
    *graph = make_handle<eddy_graph>(
        std::make_shared<GraphObject>(l.share(), name == nullptr ? "graph" : name));
    return {};
  });
}

eddy_code graph_set_location(eddy_graph graph, const eddy_location* location, eddy_error* error) {
  return build(graph, error, [&](GraphObject& g, auto& at) -> Refusal {
    at.reset();
    EDDY_C_TRY(read_location(location, at));
    g.here = at;
    return {};
  });
}

eddy_code graph_symbol(eddy_graph graph, const char* name, int64_t* dim, eddy_error* error) {
  return build(graph, error, [&](GraphObject& g, auto&) -> Refusal {
    EDDY_C_TRY(check_given_name(name, "name of the symbol"));
    EDDY_C_TRY(need(dim, "place for the dimension"));
    *dim = g.builder->symbol(name);
    return {};
  });
}

eddy_code graph_input(eddy_graph graph, const char* name, const eddy_type* type,
                      eddy_value_id* value, eddy_error* error) {
  return build(graph, error, [&](GraphObject& g, auto&) -> Refusal {
    EDDY_C_TRY(check_given_name(name, "name of the input"));
    EDDY_C_TRY(need(value, "place for the value"));
    ValueType read;
    EDDY_C_TRY(read_type(type, "the input's type", g.builder->num_symbols(), read));
    const Value made = g.builder->input(name, read);
    if (g.builder->status().is_ok()) *value = id_of(made);
    return {};
  });
}

eddy_code graph_output(eddy_graph graph, const char* name, eddy_value_id value, eddy_error* error) {
  return build(graph, error, [&](GraphObject& g, auto&) -> Refusal {
    EDDY_C_TRY(check_given_name(name, "name of the output"));
    Value read;
    EDDY_C_TRY(read_value(*g.builder, value, "the output", read));
    g.builder->output(name, read);
    return {};
  });
}

eddy_code graph_constant(eddy_graph graph, const eddy_tensor* tensor, const char* name,
                         eddy_value_id* value, eddy_error* error) {
  return build(graph, error, [&](GraphObject& g, auto&) -> Refusal {
    EDDY_C_TRY(need(value, "place for the value"));
    TensorView view;
    EDDY_C_TRY(read_tensor(tensor, "the constant", view));
    EDDY_C_TRY(check_name(name, "name of the constant"));
    const Value made = g.builder->constant(view, text_or_empty(name));
    if (g.builder->status().is_ok()) *value = id_of(made);
    return {};
  });
}

eddy_code graph_borrow_constant(eddy_graph graph, const eddy_tensor* tensor, const char* name,
                                eddy_function release, void* user, eddy_value_id* value,
                                eddy_error* error) {
  bool is_taken = false;
  const eddy_code code = build(graph, error, [&](GraphObject& g, auto&) -> Refusal {
    EDDY_C_TRY(need(value, "place for the value"));
    TensorView view;
    EDDY_C_TRY(read_tensor(tensor, "the constant", view));
    if (!is_aligned(view.data, view.element)) {
      return {EDDY_INVALID_ARGUMENT, "the constant's data is not aligned to its element; copy it"};
    }
    EDDY_C_TRY(check_name(name, "name of the constant"));
    auto blob = std::make_shared<BorrowedBlob>(view, release, user);
    is_taken = true;
    g.builder->adopt(std::move(blob));
    const Value made = g.builder->constant_in_blob(view, text_or_empty(name));
    if (g.builder->status().is_ok()) *value = id_of(made);
    return {};
  });
  if (!is_taken && release != nullptr) call_and_forget([&] { release(user); });
  return code;
}

eddy_code graph_node(eddy_graph graph, const eddy_node* node, eddy_value_id* outputs,
                     eddy_error* error) {
  return build(graph, error, [&](GraphObject& g, auto& at) -> Refusal {
    eddy_node read;
    EDDY_C_TRY(read_struct(node, EDDY_C_UPTO(eddy_node, num_inputs), "the node", read));
    if (read.location != nullptr) EDDY_C_TRY(read_location(read.location, at));
    EDDY_C_TRY(need(read.op, "operator of the node"));
    if (read.num_outputs == 0 || read.num_outputs > 1u << 16) {
      return {EDDY_INVALID_ARGUMENT,
              "a node has 1 to 65536 outputs, not " + std::to_string(read.num_outputs)};
    }
    EDDY_C_TRY(need(outputs, "place for the node's outputs"));
    std::vector<Value> inputs;
    EDDY_C_TRY(read_values(*g.builder, read.inputs, read.num_inputs, "input", inputs));
    Attributes attributes;
    EDDY_C_TRY(read_attributes(read.attributes, read.num_attributes, attributes,
                               [&](const TensorView& v) { return g.builder->make_constant(v); }));
    EDDY_C_TRY(check_name(read.name, "name of the node"));
    const std::vector<Value> made =
        g.builder->ops(read.op, inputs, std::move(attributes),
                       {.name = text_or_empty(read.name),
                        .domain = text_or_empty(read.domain),
                        .opset_version = read.opset,
                        .num_outputs = static_cast<int>(read.num_outputs)});
    if (!g.builder->status().is_ok()) return {};
    write_values(made, outputs);
    if (at) g.locations->set(g.builder->path(made[0]), *at);
    return {};
  });
}

eddy_code graph_begin_while(eddy_graph graph, const eddy_while* loop, eddy_value_id* parameters,
                            eddy_error* error) {
  return build(graph, error, [&](GraphObject& g, auto& at) -> Refusal {
    eddy_while read;
    EDDY_C_TRY(read_struct(loop, EDDY_C_UPTO(eddy_while, num_carried), "the loop", read));
    if (read.location != nullptr) EDDY_C_TRY(read_location(read.location, at));
    EDDY_C_TRY(need(parameters, "place for the loop's parameters"));
    EDDY_C_TRY(check_name(read.name, "name of the loop"));
    WhileOptions options;
    options.name = text_or_empty(read.name);
    options.num_scan_outputs = read.num_rows;
    EDDY_C_TRY(
        read_values(*g.builder, read.initial, read.num_carried, "initial value", options.initial));
    EDDY_C_TRY(read_value(*g.builder, read.trip_limit, "the trip limit", options.trip_limit));
    for (size_t k = 0; read.types != nullptr && k < read.num_carried; ++k) {
      ValueType type;
      const std::string what = "the type of carried value " + std::to_string(k);
      EDDY_C_TRY(read_type(&read.types[k], what.c_str(), g.builder->num_symbols(), type));
      options.carried_types.push_back(type);
    }
    const std::vector<Value> made = g.builder->begin_while(options);
    if (!g.builder->status().is_ok()) return {};
    write_values(made, parameters);
    if (at) g.locations->set(g.builder->open_path(), *at);
    return {};
  });
}

eddy_code graph_begin_after(eddy_graph graph, eddy_value_id predicate,
                            const eddy_value_id* forwarded, size_t num_forwarded,
                            eddy_value_id* parameters, eddy_error* error) {
  return build(graph, error, [&](GraphObject& g, auto&) -> Refusal {
    EDDY_C_TRY(need(parameters, "place for the parameters"));
    WhileTest test;
    EDDY_C_TRY(read_value(*g.builder, predicate, "the predicate", test.predicate));
    EDDY_C_TRY(
        read_values(*g.builder, forwarded, num_forwarded, "forwarded value", test.forwarded));
    write_values(g.builder->begin_after(test), parameters);
    return {};
  });
}

namespace {

// The outputs of a loop or branch, where there is room for all of them.
Refusal write_outputs(const GraphBuilder& builder, const std::vector<Value>& made,
                      eddy_value_id* outputs, size_t num_outputs) {
  if (!builder.status().is_ok()) return {};
  if (made.size() != num_outputs) {
    return {EDDY_INVALID_ARGUMENT, "there is room for " + std::to_string(num_outputs) +
                                       " outputs, but there are " + std::to_string(made.size())};
  }
  if (num_outputs > 0) EDDY_C_TRY(need(outputs, "place for the outputs"));
  write_values(made, outputs);
  return {};
}

}  // namespace

eddy_code graph_end_while(eddy_graph graph, const eddy_value_id* next, size_t num_next,
                          eddy_value_id* outputs, size_t num_outputs, eddy_error* error) {
  return build(graph, error, [&](GraphObject& g, auto&) -> Refusal {
    std::vector<Value> results;
    EDDY_C_TRY(read_values(*g.builder, next, num_next, "result", results));
    return write_outputs(*g.builder, g.builder->end_while(results), outputs, num_outputs);
  });
}

eddy_code graph_begin_case(eddy_graph graph, const eddy_case* choice, eddy_error* error) {
  return build(graph, error, [&](GraphObject& g, auto& at) -> Refusal {
    eddy_case read;
    EDDY_C_TRY(read_struct(choice, EDDY_C_UPTO(eddy_case, num_branches), "the case", read));
    if (read.location != nullptr) EDDY_C_TRY(read_location(read.location, at));
    EDDY_C_TRY(check_name(read.name, "name of the case"));
    CaseOptions options;
    options.name = text_or_empty(read.name);
    const bool has_default = choice->struct_size >= EDDY_C_UPTO(eddy_case, default_branch);
    options.default_region = has_default ? read.default_branch : -1;
    EDDY_C_TRY(read_value(*g.builder, read.selector, "the selector", options.selector));
    EDDY_C_TRY(read_values(*g.builder, read.pass_through, read.num_pass_through,
                           "pass-through value", options.pass_through));
    g.builder->begin_case(options, read.num_branches);
    if (at && g.builder->status().is_ok()) g.locations->set(g.builder->open_path(), *at);
    return {};
  });
}

eddy_code graph_begin_branch(eddy_graph graph, eddy_error* error) {
  return build(graph, error, [&](GraphObject& g, auto&) -> Refusal {
    g.builder->begin_branch();
    return {};
  });
}

eddy_code graph_end_branch(eddy_graph graph, const eddy_value_id* results, size_t num_results,
                           eddy_error* error) {
  return build(graph, error, [&](GraphObject& g, auto&) -> Refusal {
    std::vector<Value> read;
    EDDY_C_TRY(read_values(*g.builder, results, num_results, "result", read));
    g.builder->end_branch(read);
    return {};
  });
}

eddy_code graph_end_case(eddy_graph graph, eddy_value_id* outputs, size_t num_outputs,
                         eddy_error* error) {
  return build(graph, error, [&](GraphObject& g, auto&) -> Refusal {
    return write_outputs(*g.builder, g.builder->end_case(), outputs, num_outputs);
  });
}

eddy_code graph_type(eddy_graph graph, eddy_value_id value, eddy_type* type, eddy_error* error) {
  const auto read = [&](const auto& g) -> Refusal {
    const bool is_known =
        g->finished ? value <= g->finished->num_values() : g->builder->has_value(value - 1);
    if (value == 0 || !is_known) {
      return {EDDY_INVALID_ARGUMENT, "the graph has given no value " + std::to_string(value)};
    }
    const ValueId id(value - 1);
    const ValueType& known = g->finished ? g->finished->value(id).type : g->builder->type({id});
    return write_struct(as_c(known, true), "the type", type);
  };
  bool is_finished = false;
  const eddy_code code = look_if_finished(graph, error, is_finished);
  if (code != EDDY_OK) return code;
  return is_finished ? enter_with<GraphObject>(graph, error, read)
                     : enter_with<GraphObject, Use::kAlone>(graph, error, read);
}

namespace {

template <typename Body>
eddy_code read_graph(eddy_graph graph, eddy_error* error, Body body) {
  return with_finished(graph, error, [&](const auto& g) -> Refusal { return body(*g->finished); });
}

ImportOptions import_options(const ContextObject& context) {
  ImportOptions options;
  options.warn = [&context](std::string_view line) { context.log(line); };
  return options;
}

}  // namespace

eddy_code graph_finish(eddy_graph graph, eddy_error* error) {
  return read_graph(graph, error, [](const Graph&) { return Refusal(); });
}

eddy_code graph_import_file(eddy_library library, const char* path, eddy_graph* graph,
                            eddy_error* error) {
  return enter_with<LibraryObject>(library, error, [&](const auto& l) -> Refusal {
    EDDY_C_TRY(need(path, "path of the model"));
    EDDY_C_TRY(need(graph, "place for the graph"));
    EDDY_C_ASSIGN(Graph made, import_onnx(path, l->use().ops(), import_options(*l->context)));
    *graph = make_handle<eddy_graph>(std::make_shared<GraphObject>(l.share(), std::move(made)));
    return {};
  });
}

eddy_code graph_import_bytes(eddy_library library, const void* bytes, size_t num_bytes,
                             eddy_graph* graph, eddy_error* error) {
  return enter_with<LibraryObject>(library, error, [&](const auto& l) -> Refusal {
    EDDY_C_TRY(need(bytes, "model"));
    EDDY_C_TRY(need(graph, "place for the graph"));
    EDDY_C_ASSIGN(Graph made, import_onnx_bytes({static_cast<const std::byte*>(bytes), num_bytes},
                                                l->use().ops(), import_options(*l->context)));
    *graph = make_handle<eddy_graph>(std::make_shared<GraphObject>(l.share(), std::move(made)));
    return {};
  });
}

eddy_code graph_export_file(eddy_graph graph, const char* path, eddy_error* error) {
  return read_graph(graph, error, [&](const Graph& g) -> Refusal {
    EDDY_C_TRY(need(path, "path of the file"));
    return export_onnx(g, path);
  });
}

eddy_code graph_export_bytes(eddy_graph graph, eddy_value* bytes, eddy_error* error) {
  return read_graph(graph, error, [&](const Graph& g) -> Refusal {
    EDDY_C_ASSIGN(const std::string file, format_onnx(g));
    return give_text(file, bytes);
  });
}

eddy_code graph_print(eddy_graph graph, eddy_value* text, eddy_error* error) {
  return read_graph(graph, error,
                    [&](const Graph& g) -> Refusal { return give_text(print_text(g), text); });
}

}  // namespace eddy::c
