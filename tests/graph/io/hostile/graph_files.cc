#include "tests/graph/io/hostile/hostile_files.h"
#include "tests/graph/io/model_writer.h"

namespace eddy::hostile {
namespace {

using namespace test;  // NOLINT: the vocabulary of model_writer.h

// Nodes on inputs x, z: float[2] and n: int64[]; output y.
std::string with_nodes(const Messages& nodes, const Messages& functions = {}) {
  return model(
      graph({.nodes = nodes,
             .inputs = {info("x", floats({2})), info("z", floats({2})), info("n", int64s({}))},
             .outputs = {untyped("y")}}),
      17, functions);
}

std::string with_opset(const std::vector<int64_t>& versions) {
  WireWriter proto;
  proto.integer(1, 8);
  proto.message(7, graph({.nodes = {node("Identity", {"x"}, {"y"})},
                          .inputs = {info("x", floats({2}))},
                          .outputs = {untyped("y")}}));
  for (int64_t version : versions) proto.message(8, opset_import("", version));
  return proto.data();
}

// A model that imports `count` unused domains beside ONNX's own.
std::string with_domains(int count) {
  WireWriter proto;
  for (int i = 0; i < count; ++i) {
    proto.message(8, opset_import("domain." + std::to_string(i), 1));
  }
  return with_opset({17}) + proto.data();
}

void add_names(HostileFiles& files) {
  files.push_back({"input_undefined", with_nodes({node("Neg", {"nowhere"}, {"y"}, {}, "n1")}),
                   "input 'nowhere' is defined nowhere"});
  files.push_back({"output_undefined", with_nodes({node("Neg", {"x"}, {"q"})}),
                   "graph output 'y' is defined nowhere"});
  files.push_back({"value_defined_twice",
                   with_nodes({node("Neg", {"x"}, {"y"}), node("Abs", {"x"}, {"y"})}), "'y'"});
  files.push_back({"input_redefined", with_nodes({node("Neg", {"x"}, {"x"})}), "'x'"});
  files.push_back({"inputs_of_one_name",
                   model(graph({.inputs = {info("x", floats({1})), info("x", floats({1}))},
                                .outputs = {untyped("x")}})),
                   "input 'x' is declared twice"});
  files.push_back(
      {"initializers_of_one_name",
       model(graph({.outputs = {untyped("w")},
                    .initializers = {tensor<float>("w", {1}, {1}), tensor<float>("w", {1}, {2})}})),
       "value 'w' is defined twice"});
  files.push_back({"input_without_name",
                   model(graph({.inputs = {info("", floats({1}))}, .outputs = {untyped("")}})),
                   "a graph input has no name"});
  files.push_back({"outputs_of_one_node_alike",
                   with_nodes({node("Split", {"x"}, {"y", "y"}, {}, "s")}), "'y'"});
}

void add_cycles(HostileFiles& files) {
  files.push_back({"cycle_of_two",
                   with_nodes({node("Add", {"x", "b"}, {"y"}, {}, "first"),
                               node("Neg", {"y"}, {"b"}, {}, "second")}),
                   "write it as a Loop"});
  files.push_back(
      {"cycle_of_one", with_nodes({node("Add", {"x", "y"}, {"y"}, {}, "self")}), "self"});
  Messages ring;
  for (int i = 0; i < 20000; ++i) {
    ring.push_back(node("Neg", {"v" + std::to_string(i)}, {"v" + std::to_string((i + 1) % 20000)}));
  }
  files.push_back({"cycle_of_20000", with_nodes(ring), "write it as a Loop"});
  const WireWriter branch =
      graph({.nodes = {node("Neg", {"y"}, {"b"})}, .outputs = {untyped("b")}});
  files.push_back({"cycle_through_a_branch",
                   with_nodes({node("Cast", {"n"}, {"c"}, {attribute("to", 9)}),
                               node("If", {"c"}, {"y"},
                                    {graph_attribute("then_branch", branch),
                                     graph_attribute("else_branch", branch)},
                                    "knot")}),
                   "knot"});
}

void add_opsets(HostileFiles& files) {
  files.push_back({"opset_99", with_opset({99}), "opset 99 is not supported"});
  files.push_back({"opset_29", with_opset({29}), "opset 29 is not supported, only 1 to 28"});
  files.push_back({"opset_negative", with_opset({-1}), "opset -1 is not supported"});
  files.push_back({"opset_int64_max", with_opset({INT64_MAX}), "opset 9223372036854775807"});
  files.push_back({"opset_zero", with_opset({0}), "imports opset 0 of domain ''"});
  files.push_back({"opset_twice", with_opset({13, 17}), "imports opsets 13 and 17 of domain ''"});
  files.push_back({"opsets_of_20000_domains", with_domains(20000),
                   "imports opsets of 20001 domains; at most 1024"});
}

void add_operators(HostileFiles& files) {
  files.push_back(
      {"operator_unknown", with_nodes({node("Frobnicate", {"x"}, {"y"}, {}, "f")}), "Frobnicate"});
  files.push_back({"operator_without_name", with_nodes({node("", {"x"}, {"y"}, {}, "f")}), "f"});
  files.push_back({"domain_unknown",
                   with_nodes({node("Neg", {"x"}, {"y"}, {}, "f", "evil.example")}),
                   "evil.example"});
  files.push_back(
      {"inputs_too_many", with_nodes({node("Neg", {"x", "x", "x"}, {"y"}, {}, "f")}), "Neg"});
  files.push_back({"inputs_too_few", with_nodes({node("Add", {"x"}, {"y"}, {}, "f")}), "Add"});
  files.push_back({"input_omitted", with_nodes({node("Add", {"x", ""}, {"y"}, {}, "f")}), "Add"});
  files.push_back(
      {"outputs_too_many", with_nodes({node("Neg", {"x"}, {"y", "b", "c"}, {}, "f")}), "Neg"});
  files.push_back({"outputs_none", with_nodes({node("Neg", {"x"}, {}, {}, "f")}), "no outputs"});
  files.push_back({"attribute_missing", with_nodes({node("Cast", {"x"}, {"y"}, {}, "f")}), "'to'"});
  files.push_back({"attribute_of_wrong_kind",
                   with_nodes({node("Cast", {"x"}, {"y"}, {float_attribute("to", 1)}, "f")}),
                   "'to'"});
  files.push_back({"attribute_unknown",
                   with_nodes({node("Neg", {"x"}, {"y"}, {attribute("bogus", 1)}, "f")}),
                   "'bogus'"});
  files.push_back(
      {"attribute_twice",
       with_nodes({node("Cast", {"x"}, {"y"}, {attribute("to", 1), attribute("to", 7)}, "f")}),
       "'to' is given twice"});
  files.push_back({"attribute_refers_outside",
                   with_nodes({node("Cast", {"x"}, {"y"}, {ref_attribute("to", "t", 2)}, "f")}),
                   "stands outside of any"});
  Messages many;
  for (int i = 0; i < 5000; ++i) many.push_back(attribute("a" + std::to_string(i), i));
  files.push_back({"attributes_5000", with_nodes({node("Neg", {"x"}, {"y"}, many, "f")}),
                   "has 5000 attributes"});
  Names inputs(200000, "x");
  files.push_back({"inputs_200000", with_nodes({node("Neg", inputs, {"y"}, {}, "f")}), "Neg"});
  files.push_back({"types_disagree", with_nodes({node("Add", {"x", "n"}, {"y"}, {}, "f")}),
                   "same element type"});
  files.push_back({"constant_without_value", with_nodes({node("Constant", {}, {"y"}, {}, "f")}),
                   "exactly one value"});
  files.push_back({"constant_of_two_values",
                   with_nodes({node("Constant", {}, {"y"},
                                    {attribute("value_int", 1), attribute("value_ints", 2)}, "f")}),
                   "exactly one value"});
}

WireWriter call(const std::string& name, const std::string& from, const std::string& to) {
  return node(name, {from}, {to}, {}, "", "local");
}

// Level i calls level i + 1 `width` times, one after the other.
Messages nest_of_functions(int depth, int width, const std::string& name_of_node = "") {
  Messages functions;
  for (int level = 0; level < depth; ++level) {
    FunctionParts parts{.name = "f" + std::to_string(level), .inputs = {"a"}, .outputs = {"z"}};
    for (int w = 0; w < width; ++w) {
      const std::string from = w == 0 ? "a" : "v" + std::to_string(w);
      const std::string to = w + 1 == width ? "z" : "v" + std::to_string(w + 1);
      const bool is_leaf = level + 1 == depth;
      parts.nodes.push_back(
          is_leaf ? node("Neg", {from}, {to})
                  : node("f" + std::to_string(level + 1), {from}, {to}, {}, name_of_node, "local"));
    }
    functions.push_back(function(parts));
  }
  return functions;
}

void add_functions(HostileFiles& files) {
  const auto f = [](const Messages& nodes, const std::string& name = "f") {
    return function({.name = name, .inputs = {"a"}, .outputs = {"z"}, .nodes = nodes});
  };
  files.push_back({"function_recursive",
                   with_nodes({call("f", "x", "y")}, {f({call("f", "a", "z")})}),
                   "functions can't be recursive"});
  files.push_back(
      {"functions_mutually_recursive",
       with_nodes({call("f", "x", "y")}, {f({call("g", "a", "z")}), f({call("f", "a", "z")}, "g")}),
       "functions can't be recursive"});
  files.push_back({"function_defined_twice",
                   with_nodes({call("f", "x", "y")},
                              {f({node("Neg", {"a"}, {"z"})}), f({node("Abs", {"a"}, {"z"})})}),
                   "function 'f' is defined twice"});
  files.push_back({"function_given_too_much",
                   with_nodes({node("f", {"x", "x"}, {"y"}, {}, "", "local")},
                              {f({node("Neg", {"a"}, {"z"})})}),
                   "which takes 1"});
  files.push_back({"function_output_undefined",
                   with_nodes({call("f", "x", "y")}, {f({node("Neg", {"a"}, {"q"})})}),
                   "is defined nowhere"});
  files.push_back({"function_sees_its_caller",
                   with_nodes({call("f", "x", "y")}, {f({node("Add", {"a", "z0"}, {"z"})})}),
                   "'z0' is defined nowhere"});
  files.push_back({"functions_billion_laughs",
                   with_nodes({call("f0", "x", "y")}, nest_of_functions(9, 10)),
                   "would take more than"});
  files.push_back({"functions_100_deep",
                   with_nodes({call("f0", "x", "y")}, nest_of_functions(100, 1)),
                   "nested more than 64 deep"});
  files.push_back(
      {"functions_with_long_names",
       with_nodes({call("f0", "x", "y")}, nest_of_functions(16, 2, std::string(16000, 'n'))),
       "name"});
}

}  // namespace

HostileFiles graph_files() {
  HostileFiles files;
  add_names(files);
  add_cycles(files);
  add_opsets(files);
  add_operators(files);
  add_functions(files);
  return files;
}

}  // namespace eddy::hostile
