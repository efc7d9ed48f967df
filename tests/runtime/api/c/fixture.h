// What tests of the C interface share: the table, a context and a library, and small graphs.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/api/c/eddy.h"

namespace eddy::c {

inline const eddy_api& api() { return *eddy_get_api(EDDY_API_VERSION); }

// A handle of the test's.
template <typename T>
class Owned {
 public:
  Owned() = default;
  explicit Owned(T handle) : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    reset();
    handle_ = std::exchange(other.handle_, nullptr);
    return *this;
  }
  ~Owned() { reset(); }
  void reset() {
    if (handle_ == nullptr) return;
    EXPECT_EQ(api().release(std::exchange(handle_, nullptr)), EDDY_OK);
  }
  T get() const { return handle_; }
  T* out() { return &handle_; }

 private:
  T handle_ = nullptr;
};

// The code of a call, and what its error says: EXPECT_THAT(said([&](auto e) { return …; }), …).
template <typename Call>
std::string said(Call call) {
  Owned<eddy_error> error;
  const eddy_code code = call(error.out());
  if (code == EDDY_OK) return "ok";
  if (error.get() == nullptr) return api().code_name(code);
  EXPECT_EQ(api().error_code(error.get()), code);
  return std::string(api().code_name(code)) + ": " + api().error_message(error.get());
}

inline eddy_tensor tensor(const float* data, const std::vector<int64_t>& dims) {
  return {const_cast<float*>(data), dims.data(), static_cast<int32_t>(dims.size()), EDDY_FLOAT, {}};
}

inline eddy_type type(eddy_element element, const std::vector<int64_t>& dims) {
  eddy_type made = {};
  made.struct_size = sizeof(made);
  made.element = element;
  made.rank = static_cast<int32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), made.dims);
  return made;
}

class CApi : public testing::Test {
 protected:
  CApi() {
    EXPECT_EQ(api().context_create(nullptr, 0, context.out(), nullptr), EDDY_OK);
    EXPECT_EQ(api().library_create(context.get(), library.out(), nullptr), EDDY_OK);
  }

  Owned<eddy_graph> new_graph() {
    Owned<eddy_graph> graph;
    EXPECT_EQ(api().graph_create(library.get(), "test", graph.out(), nullptr), EDDY_OK);
    return graph;
  }

  static eddy_value_id input(eddy_graph graph, const char* name, const std::vector<int64_t>& dims,
                             eddy_element element = EDDY_FLOAT) {
    eddy_value_id value = 0;
    const eddy_type of = type(element, dims);
    EXPECT_EQ(said([&](auto e) { return api().graph_input(graph, name, &of, &value, e); }), "ok");
    return value;
  }

  static eddy_value_id scalar(eddy_graph graph, float number) {
    eddy_value_id value = 0;
    const eddy_tensor of = tensor(&number, {});
    EXPECT_EQ(said([&](auto e) { return api().graph_constant(graph, &of, "", &value, e); }), "ok");
    return value;
  }

  static eddy_value_id op(eddy_graph graph, const char* name,
                          const std::vector<eddy_value_id>& inputs,
                          const eddy_location* location = nullptr) {
    eddy_value_id value = 0;
    eddy_node node = {};
    node.struct_size = sizeof(node);
    node.op = name;
    node.num_outputs = 1;
    node.inputs = inputs.data();
    node.num_inputs = inputs.size();
    node.location = location;
    EXPECT_EQ(said([&](auto e) { return api().graph_node(graph, &node, &value, e); }), "ok");
    return value;
  }

  // An operator of one input and one output of its shape, in domain "test"; without its functions.
  static eddy_operator operator_of(const char* name, void* user) {
    eddy_operator op = {};
    op.struct_size = sizeof(op);
    op.name = name;
    op.domain = "test";
    op.since_version = 1;
    op.min_inputs = op.max_inputs = op.num_outputs = 1;
    op.user = user;
    op.shapes = [](void*, const eddy_shapes* shapes) -> eddy_code {
      shapes->outputs[0] = shapes->inputs[0];
      return EDDY_OK;
    };
    return op;
  }
  void add(const eddy_operator& op) {
    EXPECT_EQ(said([&](auto e) { return api().library_add_operator(library.get(), &op, e); }),
              "ok");
  }

  // Its node.
  static eddy_value_id own_op(eddy_graph graph, const char* op, eddy_value_id x,
                              const std::vector<eddy_attribute>& attributes = {},
                              const char* name = nullptr, const eddy_location* location = nullptr) {
    eddy_value_id value = 0;
    eddy_node node = {};
    node.struct_size = sizeof(node);
    node.op = op;
    node.domain = "test";
    node.name = name;
    node.num_outputs = 1;
    node.inputs = &x;
    node.num_inputs = 1;
    node.attributes = attributes.data();
    node.num_attributes = attributes.size();
    node.location = location;
    EXPECT_EQ(said([&](auto e) { return api().graph_node(graph, &node, &value, e); }), "ok");
    return value;
  }

  // What the host function of that name decides of x.
  static eddy_value_id decided(eddy_graph graph, const char* function, eddy_value_id x) {
    eddy_attribute name = {};
    name.struct_size = sizeof(name);
    name.name = "name";
    name.kind = EDDY_ATTRIBUTE_STRING;
    name.s = function;
    eddy_value_id value = 0;
    eddy_node node = {};
    node.struct_size = sizeof(node);
    node.op = "HostPredicate";
    node.domain = "eddy";
    node.num_outputs = 1;
    node.inputs = &x;
    node.num_inputs = 1;
    node.attributes = &name;
    node.num_attributes = 1;
    EXPECT_EQ(said([&](auto e) { return api().graph_node(graph, &node, &value, e); }), "ok");
    return value;
  }

  static void output(eddy_graph graph, const char* name, eddy_value_id value) {
    EXPECT_EQ(said([&](auto e) { return api().graph_output(graph, name, value, e); }), "ok");
  }

  // Outputs y, which is x doubled while `more`(x), and rows, each x before it is doubled.
  template <typename More>
  static void double_while(eddy_graph g, eddy_value_id x, const char* name, const More& more) {
    eddy_while loop = {};
    loop.struct_size = sizeof(loop);
    loop.name = name;
    loop.initial = &x;
    loop.num_carried = 1;
    loop.num_rows = 1;
    eddy_value_id before[2] = {};
    EXPECT_EQ(said([&](auto e) { return api().graph_begin_while(g, &loop, before, e); }), "ok");
    const eddy_value_id goes_on = more(before[1]);
    eddy_value_id after[2] = {};
    EXPECT_EQ(
        said([&](auto e) { return api().graph_begin_after(g, goes_on, &before[1], 1, after, e); }),
        "ok");
    const eddy_value_id next[2] = {op(g, "Add", {after[1], after[1]}), after[1]};
    eddy_value_id outputs[2] = {};
    EXPECT_EQ(said([&](auto e) { return api().graph_end_while(g, next, 2, outputs, 2, e); }), "ok");
    output(g, "y", outputs[0]);
    output(g, "rows", outputs[1]);
  }

  // While function(x).
  Owned<eddy_graph> doubling_while(const char* function) {
    Owned<eddy_graph> graph = new_graph();
    eddy_graph g = graph.get();
    double_while(g, input(g, "x", {}), nullptr,
                 [&](eddy_value_id x) { return decided(g, function, x); });
    return graph;
  }

  // While x < limit.
  Owned<eddy_graph> doubling() {
    Owned<eddy_graph> graph = new_graph();
    eddy_graph g = graph.get();
    const eddy_value_id x = input(g, "x", {});
    const eddy_value_id limit = input(g, "limit", {});
    double_while(g, x, "double", [&](eddy_value_id now) { return op(g, "Less", {now, limit}); });
    return graph;
  }

  static Owned<eddy_session> session_of(eddy_graph graph,
                                        const std::vector<eddy_option>& options = {}) {
    Owned<eddy_session> session;
    EXPECT_EQ(said([&](auto e) {
                return api().session_create(graph, options.data(), options.size(), session.out(),
                                            e);
              }),
              "ok");
    return session;
  }

  static Owned<eddy_run> run_of(eddy_session session) {
    Owned<eddy_run> run;
    EXPECT_EQ(said([&](auto e) { return api().run_create(session, run.out(), e); }), "ok");
    return run;
  }

  // Borrowed by the run.
  static void bind(eddy_run run, size_t index, const float* number) {
    const eddy_tensor of = tensor(number, {});
    EXPECT_EQ(said([&](auto e) { return api().run_bind_input_memory(run, index, &of, e); }), "ok");
  }

  static std::vector<float> floats(eddy_value value) {
    eddy_tensor view = {};
    EXPECT_EQ(said([&](auto e) { return api().value_tensor(value, &view, e); }), "ok");
    size_t count = 1;
    for (int32_t i = 0; i < view.rank; ++i) count *= static_cast<size_t>(view.dims[i]);
    const auto* data = static_cast<const float*>(view.data);
    return {data, data + count};
  }

  static std::vector<float> output_of(eddy_run run, size_t index) {
    Owned<eddy_value> value;
    EXPECT_EQ(said([&](auto e) { return api().run_output(run, index, value.out(), e); }), "ok");
    return value.get() == nullptr ? std::vector<float>() : floats(value.get());
  }

  Owned<eddy_context> context;
  Owned<eddy_library> library;
};

}  // namespace eddy::c
