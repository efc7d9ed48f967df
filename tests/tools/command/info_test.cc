// Claim: eddy info MODEL lists what an ONNX file holds, also of a model that Eddy refuses: ports,
// opsets, operators with counts, parameters, loops and branches with their nesting, the verdict.
#include <gtest/gtest.h>

#include "tests/graph/io/model_writer.h"
#include "tests/tools/command/command_runner.h"

namespace eddy::test {
namespace {

using nlohmann::json;

json info_json(const std::string& path) {
  const Finished info = run_eddy({"info", path, "--json"});
  EXPECT_EQ(info.exit_code, 0) << info.err;
  return info.exit_code == 0 ? info.json() : json();
}

json operator_named(const json& info, const std::string& name) {
  for (const json& op : info["operators"]) {
    if (op["name"] == name) return op;
  }
  return nullptr;
}

// y = x * w + 2: w an initializer of six floats that is also an input, 2 a Constant node.
std::string plain_model() {
  const WireWriter two = tensor<float>("", {}, {2});
  return model(graph({.nodes = {node("Constant", {}, {"two"}, {tensor_attribute("value", two)}),
                                node("Mul", {"x", "w"}, {"xw"}), node("Add", {"xw", "two"}, {"y"}),
                                node("Add", {"y", "two"}, {"z"})},
                      .inputs = {info("x", floats({-7, 3})), info("w", floats({2, 3}))},
                      .outputs = {info("z", floats({2, 3}))},
                      .initializers = {tensor<float>("w", {2, 3}, {1, 2, 3, 4, 5, 6})}}));
}

// A loop "outer" whose body is the branch "choose", each side with one Identity.
std::string nested_model() {
  const auto side = [](const std::string& from) {
    return graph(
        {.nodes = {node("Identity", {from}, {"side"})}, .outputs = {info("side", floats({2}))}});
  };
  const WireWriter body =
      graph({.nodes = {node("Identity", {"c"}, {"c_out"}),
                       node("If", {"c"}, {"x_out"},
                            {graph_attribute("then_branch", side("x_in")),
                             graph_attribute("else_branch", side("x_in"))},
                            "choose")},
             .inputs = {info("i", int64s({})), info("c", bools({})), info("x_in", floats({2}))},
             .outputs = {info("c_out", bools({})), info("x_out", floats({2}))},
             .name = "body"});
  return model(
      graph({.nodes = {node("Loop", {"trip", "go", "x"}, {"y"}, {graph_attribute("body", body)},
                            "outer")},
             .inputs = {info("trip", int64s({})), info("go", bools({})), info("x", floats({2}))},
             .outputs = {info("y", floats({2}))}}));
}

std::string unknown_model() {
  return model(graph({.nodes = {node("Frobnicate", {"x"}, {"a"}), node("Abs", {"a"}, {"y"})},
                      .inputs = {info("x", floats({2}))},
                      .outputs = {info("y", floats({2}))}}));
}

TEST(Info, PortsOperatorsAndParametersOfAModel) {
  const std::string bytes = plain_model();
  const json info = info_json(write_test_file("plain.onnx", bytes));
  EXPECT_EQ(info["file_bytes"], bytes.size());
  EXPECT_EQ(info["opsets"][0], json({{"domain", "ai.onnx"}, {"version", 17}}));
  ASSERT_EQ(info["inputs"].size(), 1u) << info["inputs"];
  EXPECT_EQ(info["inputs"][0], json({{"name", "x"}, {"type", "float"}, {"shape", {"s7", 3}}}));
  EXPECT_EQ(info["inputs_with_default"], 1);
  EXPECT_EQ(info["outputs"][0], json({{"name", "z"}, {"type", "float"}, {"shape", {2, 3}}}));
  EXPECT_EQ(info["nodes"], 4);
  EXPECT_EQ(operator_named(info, "Add")["nodes"], 2);
  EXPECT_EQ(operator_named(info, "Add")["is_supported"], true);
  const json& initializers = info["parameters"]["initializers"];
  EXPECT_EQ(initializers["tensors"], 1);
  EXPECT_EQ(initializers["elements"], 6);
  EXPECT_EQ(initializers["bytes"], 24);
  EXPECT_EQ(info["parameters"]["constants"]["elements"], 1);
  EXPECT_EQ(info["parameters"]["elements"], 7);
  EXPECT_EQ(info["parameters"]["bytes"], 28);
  EXPECT_EQ(info["control_flow"]["depth"], 0);
  EXPECT_EQ(info["import"]["is_ok"], true);
}

// Large constants of a plan stand beside the model in it.
TEST(Info, ASavedPlanIsAModelToo) {
  const std::vector<float> ones(4096, 1.0f);
  const std::string path = write_test_file(
      "large.onnx", model(graph({.nodes = {node("Add", {"x", "w"}, {"y"})},
                                 .inputs = {info("x", floats({4096}))},
                                 .outputs = {info("y", floats({4096}))},
                                 .initializers = {tensor<float>("w", {4096}, ones)}})));
  const std::string plan = path + ".plan";
  const Finished saved = run_eddy({"plan", path, "--save", plan});
  ASSERT_EQ(saved.exit_code, 0) << saved.err;
  const Finished of_plan = run_eddy({"info", plan});
  EXPECT_EQ(of_plan.exit_code, 0) << of_plan.err;
  EXPECT_NE(of_plan.out.find("Eddy imports the model"), std::string::npos) << of_plan.out;
  const Finished measured = run_eddy({"measure", plan, "--repeat", "3"});
  EXPECT_EQ(measured.exit_code, 0) << measured.err;
}

TEST(Info, LoopsAndBranchesAreListedByNesting) {
  const std::string path = write_test_file("nested.onnx", nested_model());
  const json control = info_json(path)["control_flow"];
  EXPECT_EQ(control["loops"], 1);
  EXPECT_EQ(control["branches"], 1);
  EXPECT_EQ(control["depth"], 2);
  ASSERT_EQ(control["list"].size(), 2u) << control;
  EXPECT_EQ(control["list"][0]["name"], "outer");
  EXPECT_EQ(control["list"][0]["nodes"], 4);
  EXPECT_EQ(control["list"][1]["kind"], "branch");
  EXPECT_EQ(control["list"][1]["depth"], 2);
  EXPECT_EQ(control["list"][1]["nodes"], 2);
  const Finished text = run_eddy({"info", path});
  EXPECT_NE(text.out.find("1 loop, 1 branch, nested 2 deep\n  Loop outer: 4 nodes\n"
                          "    If choose: 2 nodes\n"),
            std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("Eddy imports the model\n"), std::string::npos) << text.out;
}

TEST(Info, AnOperatorThatBecomesOthersIsSupported) {
  const std::string path = write_test_file(
      "function.onnx", model(graph({.nodes = {node("MeanVarianceNormalization", {"x"}, {"y"})},
                                    .inputs = {info("x", floats({1, 2, 2, 2}))},
                                    .outputs = {info("y", floats({1, 2, 2, 2}))}})));
  EXPECT_EQ(operator_named(info_json(path), "MeanVarianceNormalization")["is_supported"], true);
  EXPECT_EQ(run_eddy({"info", path}).out.find("NOT SUPPORTED"), std::string::npos);
}

TEST(Info, AnUnknownOperatorIsListedAndEndsNothing) {
  const std::string path = write_test_file("unknown.onnx", unknown_model());
  const json info = info_json(path);
  EXPECT_EQ(operator_named(info, "Frobnicate")["is_supported"], false);
  EXPECT_EQ(operator_named(info, "Abs")["is_supported"], true);
  EXPECT_EQ(info["outputs"].size(), 1u);
  EXPECT_EQ(info["import"]["is_ok"], false);
  const Finished text = run_eddy({"info", path});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("Frobnicate  NOT SUPPORTED (opset 17): no such operator"),
            std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("Eddy refuses the model: "), std::string::npos) << text.out;
}

// y = Abs(x).
std::string abs_model(int64_t opset) {
  return model(graph({.nodes = {node("Abs", {"x"}, {"y"})},
                      .inputs = {info("x", floats({2}))},
                      .outputs = {info("y", floats({2}))}}),
               opset);
}

TEST(Info, AnOpsetBeyondTheImportersRangeEndsNothing) {
  const json listed = info_json(write_test_file("late.onnx", abs_model(99)));
  EXPECT_EQ(listed["opsets"][0]["version"], 99);
  EXPECT_EQ(listed["import"]["is_ok"], false);
  const std::string reason = listed["import"]["reason"];
  EXPECT_NE(reason.find("opset 99"), std::string::npos) << reason;
}

// Two calls of one function, and another one that nothing calls.
std::string calling_model() {
  const WireWriter twice = function({.name = "Twice",
                                     .inputs = {"a"},
                                     .outputs = {"b"},
                                     .nodes = {node("Add", {"a", "a"}, {"b"})}});
  const WireWriter unused = function(
      {.name = "Unused", .inputs = {"a"}, .outputs = {"b"}, .nodes = {node("Abs", {"a"}, {"b"})}});
  return model(graph({.nodes = {node("Twice", {"x"}, {"t"}, {}, "", "local"),
                                node("Twice", {"t"}, {"y"}, {}, "", "local")},
                      .inputs = {info("x", floats({2}))},
                      .outputs = {info("y", floats({2}))}}),
               17, {twice, unused});
}

TEST(Info, NodesOfACalledFunctionCountOnce) {
  const json listed = info_json(write_test_file("calls.onnx", calling_model()));
  EXPECT_EQ(listed["functions"], 2);
  EXPECT_EQ(listed["nodes"], 3);
  EXPECT_EQ(operator_named(listed, "Twice")["nodes"], 2);
  EXPECT_EQ(operator_named(listed, "Twice")["is_function"], true);
  EXPECT_EQ(operator_named(listed, "Add")["nodes"], 1);
  EXPECT_TRUE(operator_named(listed, "Abs").is_null());
}

TEST(Info, WhatIsNoModelIsBadInput) {
  for (const std::string& path :
       {write_test_file("text.onnx", "no model at all"), write_test_file("empty.onnx", ""),
        fresh_folder("folder"), std::string("/nonexistent.onnx")}) {
    const Finished info = run_eddy({"info", path});
    EXPECT_EQ(info.exit_code, 3) << path;
    EXPECT_TRUE(is_one_line(info.err)) << info.err;
    EXPECT_TRUE(info.out.empty()) << info.out;
  }
}

}  // namespace
}  // namespace eddy::test
