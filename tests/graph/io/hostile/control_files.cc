#include "tests/graph/io/hostile/hostile_files.h"
#include "tests/graph/io/model_writer.h"

namespace eddy::hostile {
namespace {

using namespace test;  // NOLINT: the vocabulary of model_writer.h

WireWriter branch(const Messages& nodes, const Messages& outputs = {untyped("b")}) {
  return graph({.nodes = nodes, .outputs = outputs, .name = "branch"});
}

// A control node on x: float[2], c: bool, n: int64; output y.
std::string with_node(const WireWriter& control, const Messages& initializers = {}) {
  return model(
      graph({.nodes = {control},
             .inputs = {info("x", floats({2})), info("c", bools({})), info("n", int64s({}))},
             .outputs = {untyped("y")},
             .initializers = initializers}));
}

WireWriter if_node(const WireWriter& then_branch, const WireWriter& else_branch,
                   const std::string& condition = "c", const Names& outputs = {"y"}) {
  return node(
      "If", {condition}, outputs,
      {graph_attribute("then_branch", then_branch), graph_attribute("else_branch", else_branch)},
      "choice");
}

void add_ifs(HostileFiles& files) {
  const WireWriter one = branch({node("Neg", {"x"}, {"b"})});
  const WireWriter whole = branch({node("Cast", {"x"}, {"b"}, {attribute("to", 7)})});
  const WireWriter sequence = branch({node("SequenceConstruct", {"x"}, {"b"})});
  const auto add = [&](const char* name, const WireWriter& control, const char* says) {
    files.push_back({name, with_node(control), says});
  };
  add("if_types_differ", if_node(one, whole), "in one branch");
  add("if_tensor_or_sequence", if_node(one, sequence), "in one branch");
  add("if_condition_is_float", if_node(one, one, "x"), "one bool");
  add("if_condition_undefined", if_node(one, one, "q"), "'q'");
  add("if_branch_gives_nothing", if_node(one, branch({}, {})), "gives 0 outputs");
  add("if_branch_output_undefined", if_node(one, branch({}, {untyped("zz")})), "'zz'");
  add("if_branch_takes_inputs",
      if_node(one, graph({.nodes = {node("Neg", {"q"}, {"b"})},
                          .inputs = {info("q", floats({2}))},
                          .outputs = {untyped("b")}})),
      "takes 1 inputs");
  add("if_without_else", node("If", {"c"}, {"y"}, {graph_attribute("then_branch", one)}, "choice"),
      "'else_branch'");
  add("if_branch_is_a_number",
      node("If", {"c"}, {"y"}, {graph_attribute("then_branch", one), attribute("else_branch", 1)},
           "choice"),
      "'else_branch'");
  add("if_more_outputs_than_branches", if_node(one, one, "c", {"y", "q"}), "gives 1 outputs");
  add("if_branch_value_used_outside",
      if_node(branch({node("Neg", {"x"}, {"inner"}), node("Neg", {"inner"}, {"b"})}),
              branch({node("Neg", {"inner"}, {"b"})})),
      "'inner'");
}

struct LoopParts {
  Messages nodes = {};
  Messages outputs = {untyped("go"), untyped("v")};
  Messages inputs = {info("i", int64s({})), info("go_in", bools({})), info("v_in", floats({2}))};
};

WireWriter loop_body(const LoopParts& parts) {
  return graph(
      {.nodes = parts.nodes, .inputs = parts.inputs, .outputs = parts.outputs, .name = "body"});
}

WireWriter loop_node(const WireWriter& body, const Names& inputs = {"n", "c", "x"},
                     const Names& outputs = {"y"}) {
  return node("Loop", inputs, outputs, {graph_attribute("body", body)}, "round");
}

// v := -v for ever.
LoopParts endless() {
  return {.nodes = {node("Identity", {"go_in"}, {"go"}), node("Neg", {"v_in"}, {"v"})}};
}

WireWriter trip_limit() { return tensor<int64_t>("max", {}, {INT64_MAX}); }
WireWriter yes() {
  const bool value = true;
  return tensor_proto({const_cast<bool*>(&value), nullptr, 0, ElementType::kBool}, "yes");
}

void add_loop_bodies(HostileFiles& files) {
  const auto add = [&](const char* name, const WireWriter& control, const char* says) {
    files.push_back({name, with_node(control), says});
  };
  LoopParts parts = endless();
  parts.outputs = {untyped("go")};
  add("loop_body_gives_too_little", loop_node(loop_body(parts)), "gives 1 outputs");
  parts = endless();
  parts.inputs.pop_back();
  parts.nodes[1] = node("Neg", {"x"}, {"v"});
  add("loop_body_takes_too_little", loop_node(loop_body(parts)), "takes 2 inputs");
  parts = endless();
  parts.nodes[0] = node("Identity", {"v_in"}, {"go"});
  add("loop_condition_is_float", loop_node(loop_body(parts)), "must be one bool");
  parts = endless();
  parts.nodes[0] = node("Greater", {"v_in", "v_in"}, {"go"});
  add("loop_condition_is_two_bools", loop_node(loop_body(parts)), "one bool");
  parts = endless();
  parts.nodes[1] = node("Cast", {"v_in"}, {"v"}, {attribute("to", 7)});
  add("loop_value_changes_type", loop_node(loop_body(parts)), "becomes");
  parts = endless();
  parts.nodes[1] = node("SequenceConstruct", {"v_in"}, {"v"});
  add("loop_value_becomes_sequence", loop_node(loop_body(parts)), "becomes");
  parts = endless();
  parts.nodes[1] = node("Add", {"v_in", "v"}, {"v"});
  add("loop_body_cyclic", loop_node(loop_body(parts)), "v");
  parts = endless();
  parts.nodes.push_back(node("Neg", {"v"}, {"go"}));
  add("loop_body_defines_twice", loop_node(loop_body(parts)), "'go'");
  parts = endless();
  parts.nodes[1] = node("Neg", {"y"}, {"v"});
  add("loop_body_reads_its_own_result", loop_node(loop_body(parts)), "y");
  add("loop_without_body", node("Loop", {"n", "c", "x"}, {"y"}, {}, "round"), "'body'");
  add("loop_trip_limit_is_float", loop_node(loop_body(endless()), {"x", "c", "x"}), "int64");
  add("loop_start_is_float", loop_node(loop_body(endless()), {"n", "x", "x"}), "one bool");
  add("loop_outputs_too_many", loop_node(loop_body(endless()), {"n", "c", "x"}, {"y", "a", "b"}),
      "round");
  parts = endless();
  parts.nodes.push_back(node("SequenceConstruct", {"v"}, {"rows"}));
  parts.outputs.push_back(untyped("rows"));
  add("loop_stacks_sequences", loop_node(loop_body(parts), {"n", "c", "x"}, {"y", "r"}),
      "must be a tensor");
}

// What only a deadline, or the limit of memory, ends.
void add_endless(HostileFiles& files) {
  const auto add = [&](const char* name, const LoopParts& parts, const char* says,
                       const Names& outputs = {"y"}) {
    files.push_back({name,
                     with_node(loop_node(loop_body(parts), {"max", "yes", "x"}, outputs),
                               {trip_limit(), yes()}),
                     says});
  };
  add("loop_trip_int64_max", endless(), "deadline exceeded");
  LoopParts parts = endless();
  parts.nodes[1] = node("Concat", {"v_in", "v_in"}, {"v"}, {attribute("axis", 0)});
  add("loop_doubles_its_value", parts, "resource exhausted");
  parts = endless();
  parts.nodes.push_back(node("Concat", {"v", "v", "v", "v"}, {"row"}, {attribute("axis", 0)}));
  parts.nodes.push_back(node("Expand", {"row", "wide"}, {"rows"}));
  parts.outputs.push_back(untyped("rows"));
  files.push_back({"loop_stacks_for_ever",
                   with_node(loop_node(loop_body(parts), {"max", "yes", "x"}, {"y", "r"}),
                             {trip_limit(), yes(), tensor<int64_t>("wide", {2}, {10000, 8})}),
                   "resource exhausted"});
  parts = endless();
  parts.nodes[1] = node("Concat", {"v_in", "x"}, {"v"}, {attribute("axis", 0)});
  parts.nodes.push_back(node("Identity", {"v"}, {"row"}));
  parts.outputs.push_back(untyped("row"));
  add("loop_rows_of_unequal_shape", parts, "scan row of iteration 1", {"y", "r"});
  parts = endless();
  parts.nodes[1] = node("SequenceInsert", {"v_in", "x"}, {"v"});
  parts.inputs[2] = info("v_in", ValueType::sequence_of(floats({2})));
  WireWriter empty = node("SequenceEmpty", {}, {"none"});
  files.push_back(
      {"loop_grows_a_sequence",
       model(graph({.nodes = {empty, loop_node(loop_body(parts), {"max", "yes", "none"})},
                    .inputs = {info("x", floats({2}))},
                    .outputs = {untyped("y")},
                    .initializers = {trip_limit(), yes()}})),
       "no memory for a tensor"});
  const WireWriter inner = loop_node(loop_body(endless()), {"max", "yes", "v_in"}, {"v"});
  parts = endless();
  parts.nodes[1] = inner;
  add("loop_in_loop_trip_int64_max", parts, "deadline exceeded");
}

// Loops in loops, each of which carries a value that widens: no step may take twice the time for
// each level.
WireWriter widening_nest(int depth) {
  const std::string d = std::to_string(depth);
  const Messages inputs = {info("i" + d, int64s({})), info("g" + d, bools({})), untyped("a" + d),
                           untyped("b" + d)};
  Messages nodes = {node("Identity", {"g" + d}, {"go" + d}),
                    node("Concat", {"a" + d, "b" + d}, {"n" + d}, {attribute("axis", 0)})};
  std::string second = "a" + d;
  if (depth > 0) {
    nodes.push_back(node("Loop", {"n", "c", "a" + d, "b" + d}, {"p" + d, "q" + d},
                         {graph_attribute("body", widening_nest(depth - 1))}));
    second = "p" + d;
  }
  return graph({.nodes = nodes,
                .inputs = inputs,
                .outputs = {untyped("go" + d), untyped("n" + d), untyped(second)},
                .name = "body" + d});
}

// The same, each starting from the same narrow value whenever the loop around it is looked at.
WireWriter afresh_nest(int depth) {
  const std::string d = std::to_string(depth);
  Messages nodes = {node("Concat", {"a" + d, "a" + d}, {"n" + d}, {attribute("axis", 0)})};
  if (depth > 0) {
    nodes.push_back(node("Loop", {"one", "c", "x"}, {"p" + d},
                         {graph_attribute("body", afresh_nest(depth - 1))}));
  }
  return graph({.nodes = nodes,
                .inputs = {info("i" + d, int64s({})), info("g" + d, bools({})), untyped("a" + d)},
                .outputs = {untyped("g" + d), untyped("n" + d)},
                .name = "body" + d});
}

// Carried values that hand their types on, one place each round.
WireWriter rotating_body(int count) {
  Messages inputs = {info("i", int64s({})), info("go_in", bools({}))};
  Messages outputs = {untyped("go_in")};
  for (int k = 0; k < count; ++k) inputs.push_back(untyped("v" + std::to_string(k)));
  for (int k = 1; k < count; ++k) outputs.push_back(untyped("v" + std::to_string(k)));
  outputs.push_back(untyped("grown"));
  return graph({.nodes = {node("Concat", {"v0", "v0"}, {"grown"}, {attribute("axis", 0)})},
                .inputs = inputs,
                .outputs = outputs,
                .name = "body"});
}

void add_deep(HostileFiles& files) {
  WireWriter deep = branch({node("Neg", {"x"}, {"b"})});
  for (int d = 0; d < 70; ++d)
    deep = branch({if_node(
        deep, deep.data().size() > 4000 ? branch({node("Neg", {"x"}, {"b"})}) : deep, "c", {"b"})});
  files.push_back({"ifs_70_deep", with_node(if_node(deep, deep)), "more than 64 deep"});
  // Valid but for the requested type of its result.
  files.push_back({"loops_widening_afresh_50_deep",
                   model(graph({.nodes = {node("Loop", {"one", "c", "x"}, {"p"},
                                               {graph_attribute("body", afresh_nest(50))}),
                                          node("Gather", {"p", "far"}, {"y"})},
                                .inputs = {info("x", floats({2})), info("c", bools({}))},
                                .outputs = {untyped("y")},
                                .initializers = {tensor<int64_t>("far", {}, {1 << 20}),
                                                 tensor<int64_t>("one", {}, {1})}})),
                   "out of range"});
  // Valid, and three rounds in three rounds in …
  files.push_back(
      {"loops_widening_50_deep",
       model(graph({.nodes = {node("Loop", {"n", "c", "x", "x"}, {"p", "q"},
                                   {graph_attribute("body", widening_nest(50))}),
                              node("Gather", {"p", "far"}, {"y"})},
                    .inputs = {info("x", floats({2})), info("c", bools({})), info("n", int64s({}))},
                    .outputs = {untyped("y")},
                    .initializers = {tensor<int64_t>("far", {}, {1 << 20})}})),
       "no memory for a tensor"});
  Names inputs = {"n", "c"};
  Names outputs;
  for (int k = 0; k < 4000; ++k) {
    inputs.push_back("x");
    outputs.push_back("r" + std::to_string(k));
  }
  files.push_back(
      {"loop_rotates_4000_types",
       model(graph({.nodes = {loop_node(rotating_body(4000), inputs, outputs),
                              node("Gather", {"r0", "far"}, {"y"})},
                    .inputs = {info("x", floats({2})), info("c", bools({})), info("n", int64s({}))},
                    .outputs = {untyped("y")},
                    .initializers = {tensor<int64_t>("far", {}, {1 << 20})}})),
       "out of range"});
}

void add_scans(HostileFiles& files) {
  const WireWriter body = graph({.nodes = {node("Neg", {"e"}, {"o"})},
                                 .inputs = {info("e", floats({}))},
                                 .outputs = {untyped("o")}});
  const auto add = [&](const char* name, const Messages& attributes, const char* says) {
    Messages all = attributes;
    all.push_back(graph_attribute("body", body));
    files.push_back({name, with_node(node("Scan", {"x"}, {"y"}, all, "sweep")), says});
  };
  const std::vector<int64_t> seven = {7};
  add("scan_without_count", {}, "num_scan_inputs");
  add("scan_count_zero", {attribute("num_scan_inputs", 0)}, "sweep");
  add("scan_count_negative", {attribute("num_scan_inputs", -3)}, "sweep");
  add("scan_count_int64_max", {attribute("num_scan_inputs", INT64_MAX)}, "sweep");
  add("scan_axis_7", {attribute("num_scan_inputs", 1), attribute("scan_input_axes", seven)},
      "axis");
  add("scan_direction_7",
      {attribute("num_scan_inputs", 1), attribute("scan_input_directions", seven)}, "direction");
  add("scan_axes_too_many",
      {attribute("num_scan_inputs", 1), attribute("scan_input_axes", std::vector<int64_t>{0, 0})},
      "sweep");
}

void add_eddys_own(HostileFiles& files) {
  const WireWriter one = branch({node("Neg", {"x"}, {"b"})});
  const auto add = [&](const char* name, const WireWriter& control, const char* says) {
    files.push_back({name, with_node(control), says});
  };
  add("case_of_without_branches", node("CaseOf", {"n"}, {"y"}, {}, "which", "eddy"), "which");
  add("case_of_gap_in_branches",
      node("CaseOf", {"n"}, {"y"},
           {graph_attribute("branch_0", one), graph_attribute("branch_2", one)}, "which", "eddy"),
      "number its branches without gaps");
  add("case_of_default_9",
      node("CaseOf", {"n"}, {"y"}, {graph_attribute("branch_0", one), attribute("default", 9)},
           "which", "eddy"),
      "default");
  add("case_of_selector_is_float",
      node("CaseOf", {"x"}, {"y"}, {graph_attribute("branch_0", one)}, "which", "eddy"),
      "selector");
  add("case_of_out_of_range",
      node("CaseOf", {"n"}, {"y"},
           {graph_attribute("branch_0", branch({node("Neg", {"nothing"}, {"b"})}))}, "which",
           "eddy"),
      "'nothing'");
  add("while_without_after",
      node("While", {"n", "x"}, {"y"},
           {graph_attribute("before",
                            graph({.inputs = {info("i", int64s({})), info("v", floats({2}))},
                                   .outputs = {untyped("c"), untyped("v")}}))},
           "round", "eddy"),
      "'after'");
  add("host_predicate_unnamed", node("HostPredicate", {"x"}, {"y"}, {}, "ask", "eddy"), "'name'");
  WireWriter name;
  name.bytes(1, "name");
  name.bytes(4, "launch_missiles");
  name.integer(20, 3);
  add("host_predicate_unknown", node("HostPredicate", {"x"}, {"y"}, {name}, "ask", "eddy"),
      "launch_missiles");
}

}  // namespace

HostileFiles control_files() {
  HostileFiles files;
  add_ifs(files);
  add_loop_bodies(files);
  add_endless(files);
  add_deep(files);
  add_scans(files);
  add_eddys_own(files);
  return files;
}

}  // namespace eddy::hostile
