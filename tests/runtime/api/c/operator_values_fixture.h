// Operators of values in tests of the C interface, from functions, and graphs and runs of them.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/runtime/api/c/fixture.h"

namespace eddy::c {

using Body = std::function<eddy_code(const eddy_value_call&)>;
using Shapes = std::function<void(const eddy_shapes&)>;

inline eddy_type unranked(eddy_element element) {
  eddy_type made = type(element, {});
  made.rank = EDDY_UNRANKED;
  return made;
}
inline eddy_type wrapped(eddy_type inner, uint8_t wrapper) {
  inner.wrappers[0] = wrapper;
  return inner;
}
inline eddy_type sequence_of(const eddy_type& inner) { return wrapped(inner, 1); }
inline eddy_type optional_of(const eddy_type& inner) { return wrapped(inner, 2); }

class COperatorValues : public CApi {
 protected:
  struct Functions {
    Body body;
    Shapes shapes;
  };

  // Operator `name` of up to `num_inputs` inputs: outputs of these types, made by `body`.
  void add_values(const char* name, uint32_t num_inputs, const std::vector<eddy_type>& outputs,
                  Body body) {
    add_values(name, num_inputs, static_cast<uint32_t>(outputs.size()), std::move(body),
               [outputs](const eddy_shapes& shapes) {
                 std::copy(outputs.begin(), outputs.end(), shapes.outputs);
               });
  }
  void add_values(const char* name, uint32_t num_inputs, uint32_t num_outputs, Body body,
                  Shapes shapes) {
    eddy_operator op = operator_of(name, new Functions{std::move(body), std::move(shapes)});
    op.min_inputs = 0;
    op.max_inputs = num_inputs;
    op.num_outputs = num_outputs;
    op.shapes = [](void* user, const eddy_shapes* asked) -> eddy_code {
      static_cast<Functions*>(user)->shapes(*asked);
      return EDDY_OK;
    };
    op.run_values = [](void* user, const eddy_value_call* call) -> eddy_code {
      return static_cast<Functions*>(user)->body(*call);
    };
    op.destroy = [](void* user) { delete static_cast<Functions*>(user); };
    add(op);
  }

  static std::vector<eddy_value_id> values_op(eddy_graph graph, const char* name,
                                              const std::vector<eddy_value_id>& inputs,
                                              uint32_t num_outputs = 1) {
    std::vector<eddy_value_id> made(num_outputs);
    eddy_node node = {};
    node.struct_size = sizeof(node);
    node.op = name;
    node.domain = "test";
    node.num_outputs = num_outputs;
    node.inputs = inputs.data();
    node.num_inputs = inputs.size();
    EXPECT_EQ(said([&](auto e) { return api().graph_node(graph, &node, made.data(), e); }), "ok");
    return made;
  }

  static eddy_value_id int_constant(eddy_graph graph, int64_t number) {
    const eddy_tensor of = {&number, nullptr, 0, EDDY_INT64, {}};
    eddy_value_id made = 0;
    EXPECT_EQ(said([&](auto e) { return api().graph_constant(graph, &of, "", &made, e); }), "ok");
    return made;
  }

  static eddy_value_id input_of(eddy_graph graph, const char* name, const eddy_type& of) {
    eddy_value_id value = 0;
    EXPECT_EQ(said([&](auto e) { return api().graph_input(graph, name, &of, &value, e); }), "ok");
    return value;
  }

  static Owned<eddy_value> text_value(const std::string& text) {
    const int64_t offsets[] = {0, static_cast<int64_t>(text.size())};
    Owned<eddy_value> made;
    EXPECT_EQ(api().value_from_strings(nullptr, 0, offsets, text.data(), made.out(), nullptr),
              EDDY_OK);
    return made;
  }
  static Owned<eddy_value> floats_value(const std::vector<float>& numbers) {
    const std::vector<int64_t> dims = {static_cast<int64_t>(numbers.size())};
    const eddy_tensor of = tensor(numbers.data(), dims);
    Owned<eddy_value> made;
    EXPECT_EQ(api().value_copy(&of, made.out(), nullptr), EDDY_OK);
    return made;
  }
  static std::vector<int64_t> ints(eddy_value value) {
    eddy_tensor view = {};
    EXPECT_EQ(said([&](auto e) { return api().value_tensor(value, &view, e); }), "ok");
    const auto* const data = static_cast<const int64_t*>(view.data);
    return {data, data + (view.rank == 0 ? 1 : view.dims[0])};
  }
  static std::string text_of(eddy_value value) {
    size_t size = 0;
    EXPECT_EQ(said([&](auto e) { return api().value_strings(value, nullptr, nullptr, &size, e); }),
              "ok");
    std::string bytes(size, '?');
    EXPECT_EQ(api().value_strings(value, nullptr, bytes.data(), nullptr, nullptr), EDDY_OK);
    return bytes;
  }
  static Owned<eddy_value> result(eddy_run run, size_t index = 0) {
    Owned<eddy_value> made;
    EXPECT_EQ(said([&](auto e) { return api().run_output(run, index, made.out(), e); }), "ok");
    return made;
  }
  static std::string execute(eddy_run run, const std::vector<eddy_value>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_EQ(said([&](auto e) { return api().run_bind_input(run, i, inputs[i], e); }), "ok");
    }
    return said([&](auto e) { return api().run_execute(run, nullptr, e); });
  }
  // What a run says in which an operator of one float[?] does this to its output of that type.
  std::string said_by(const eddy_type& output_type, const Body& body) {
    library.reset();  // what has sessions takes no more operators
    EXPECT_EQ(api().library_create(context.get(), library.out(), nullptr), EDDY_OK);
    add_values("Bad", 1, {output_type}, body);
    Owned<eddy_graph> graph = new_graph();
    const eddy_value_id x = input_of(graph.get(), "x", type(EDDY_FLOAT, {EDDY_UNKNOWN_DIM}));
    output(graph.get(), "y", values_op(graph.get(), "Bad", {x})[0]);
    const Owned<eddy_session> session = session_of(graph.get());
    const Owned<eddy_run> run = run_of(session.get());
    return execute(run.get(), {floats_value({1, 2}).get()});
  }
};

}  // namespace eddy::c
