// Claim: import_onnx() makes the graph a file describes, and returns an error of one line for a
// file that describes none.
#include "graph/io/import.h"

#include <gtest/gtest.h>

#include "tests/graph/io/test_import.h"

namespace eddy {
namespace {

using namespace test;  // NOLINT: a test's own vocabulary

std::string add_model(const Messages& nodes, const std::string& output = "z") {
  return model(graph({.nodes = nodes,
                      .inputs = {info("x", floats({2})), info("y", floats({2}))},
                      .outputs = {untyped(output)}}));
}

TEST(Import, NodesInputsAndOutputsKeepTheirNames) {
  const Graph g = must_import(add_model({node("Add", {"x", "y"}, {"z"}, {}, "sum")}));
  ASSERT_EQ(g.root().nodes.size(), 1u);
  const Node& sum = g.node(g.root().nodes[0]);
  EXPECT_EQ(sum.name, "sum");
  EXPECT_EQ(sum.op->name, "Add");
  EXPECT_EQ(sum.opset_version, 17);
  EXPECT_EQ(g.value(sum.outputs[0]).name, "z");
  EXPECT_EQ(g.value(g.inputs()[1]).name, "y");
  EXPECT_EQ(g.output_names(), std::vector<std::string>{"z"});
}

TEST(Import, SymbolicDimensionsAreSharedAndUnnamedOnesUnknown) {
  const Graph g = must_import(
      model(graph({.nodes = {node("Add", {"x", "y"}, {"z"})},
                   .inputs = {info("x", floats({-2, kUnknownDim})), info("y", floats({-2, 1}))},
                   .outputs = {untyped("z")}})));
  const Dims& x = g.value(g.inputs()[0]).type.tensor.dims;
  EXPECT_EQ(g.symbol(x[0]), "s2");
  EXPECT_EQ(x[1], kUnknownDim);
  EXPECT_EQ(g.value(g.inputs()[1]).type.tensor.dims[0], x[0]);
}

TEST(Import, NodesOutOfOrderAreSorted) {
  const Graph g = must_import(add_model(
      {node("Mul", {"t", "y"}, {"z"}, {}, "second"), node("Add", {"x", "y"}, {"t"}, {}, "first")}));
  EXPECT_EQ(g.node(g.root().nodes[0]).name, "first");
}

TEST(Import, ACycleNamesItsNodes) {
  expect_import_error(add_model({node("Add", {"x", "b"}, {"a"}, {}, "one"),
                                 node("Mul", {"a", "y"}, {"b"}, {}, "two"),
                                 node("Neg", {"b"}, {"z"}, {}, "three")}),
                      StatusCode::kInvalidArgument, "'one' (Add) needs 'two' (Mul)");
}

TEST(Import, ANodeThatReadsItselfIsACycle) {
  expect_import_error(add_model({node("Add", {"x", "z"}, {"z"}, {}, "loop")}),
                      StatusCode::kInvalidArgument, "'loop' (Add) needs 'loop' (Add)");
}

TEST(Import, AnUndefinedInputIsNamed) {
  expect_import_error(add_model({node("Add", {"x", "w"}, {"z"}, {}, "sum")}),
                      StatusCode::kInvalidArgument,
                      "node 'sum' (Add): input 'w' is defined nowhere");
}

TEST(Import, AnUndefinedOutputIsNamed) {
  expect_import_error(add_model({node("Add", {"x", "y"}, {"t"})}), StatusCode::kInvalidArgument,
                      "graph output 'z' is defined nowhere");
}

TEST(Import, AValueDefinedTwiceIsNamed) {
  expect_import_error(add_model({node("Add", {"x", "y"}, {"z"}), node("Mul", {"x", "y"}, {"z"})}),
                      StatusCode::kInvalidArgument, "value 'z' is defined twice");
}

TEST(Import, UnknownOperatorsAreListedTogether) {
  Messages nodes;
  for (int i = 0; i < 7; ++i) {
    const std::string k = std::to_string(i);
    nodes.push_back(node("Strange" + k, {"x"}, {"o" + k}, {}, "n" + k));
  }
  nodes.push_back(node("Add", {"x", "y"}, {"z"}));
  expect_import_error(add_model(nodes), StatusCode::kUnsupported,
                      "operator 'Strange0' (domain 'ai.onnx', opset 17) at node 'n0'; ");
  expect_import_error(add_model(nodes), StatusCode::kUnsupported, "; and 2 more");
}

TEST(Import, AnUnknownOperatorInABranchIsPlaced) {
  const WireWriter branch = graph(
      {.nodes = {node("Odd", {"x"}, {"r"}, {}, "deep", "far.away")}, .outputs = {untyped("r")}});
  const WireWriter choice = node(
      "If", {"c"}, {"z"},
      {graph_attribute("then_branch", branch), graph_attribute("else_branch", branch)}, "choice");
  expect_import_error(
      model(graph({.nodes = {choice},
                   .inputs = {info("c", bools({})), info("x", floats({}))},
                   .outputs = {untyped("z")}})),
      StatusCode::kUnsupported,
      "operator 'Odd' (domain 'far.away', opset 1) at node 'deep' in 'choice/then_branch'");
}

TEST(Import, OperatorsThatHideALoopAreRefusedWithAdvice) {
  const WireWriter decoder = graph({.nodes = {node("Neg", {"x"}, {"y"})},
                                    .inputs = {info("x", floats({}))},
                                    .outputs = {untyped("y")}});
  for (const char* op : {"BeamSearch", "GreedySearch"}) {
    const WireWriter search =
        node(op, {"x"}, {"z"}, {graph_attribute("decoder", decoder)}, "search", "com.microsoft");
    expect_import_error(
        model(graph(
            {.nodes = {search}, .inputs = {info("x", floats({}))}, .outputs = {untyped("z")}})),
        StatusCode::kUnsupported,
        "operator '" + std::string(op) +
            "' (domain 'com.microsoft', opset 1) at node 'search', which hides a loop: export the "
            "decoder by itself, and around it a Loop whose body runs it on the last tokens, "
            "chooses the next ones by ArgMax or TopK and carries them with the caches");
  }
}

TEST(Import, OperatorsOfMicrosoftBecomeTheStandardOnesTheyStandFor) {
  const Graph g = must_import(model(graph(
      {.nodes = {node("SkipLayerNormalization", {"x", "s", "g"}, {"z", "", "", "sum"}, {}, "skip",
                      "com.microsoft")},
       .inputs = {info("x", floats({2, 3, 4})), info("s", floats({3, 4})), info("g", floats({4}))},
       .outputs = {untyped("z"), untyped("sum")}})));
  ASSERT_EQ(g.root().nodes.size(), 2u);
  EXPECT_EQ(g.node(g.root().nodes[0]).name, "skip/Add");
  EXPECT_EQ(g.node(g.root().nodes[1]).name, "skip/LayerNormalization");
  EXPECT_EQ(to_string(g.value(g.outputs()[0]).type), "float[2,3,4]");
}

TEST(Import, OpsetsOutsideTheRangeAreRefused) {
  const WireWriter g = graph({.nodes = {node("Neg", {"x"}, {"z"})},
                              .inputs = {info("x", floats({}))},
                              .outputs = {untyped("z")}});
  expect_import_error(model(g, 29), StatusCode::kUnsupported,
                      "opset 29 is not supported, only 1 to 28; convert the model");
}

TEST(Import, AModelFromBeforeOpsetsIsOfOpsetOne) {
  WireWriter to;
  to.bytes(1, "to");
  to.bytes(4, "INT64");
  to.integer(20, 3);
  WireWriter file;
  file.integer(1, 2);  // IR version
  file.message(7, graph({.nodes = {node("Cast", {"x"}, {"z"}, {to}, "old")},
                         .inputs = {info("x", floats({2}))},
                         .outputs = {untyped("z")}}));
  const Graph g = must_import(file.data());
  ASSERT_EQ(g.root().nodes.size(), 1u);
  EXPECT_EQ(g.node(g.root().nodes[0]).name, "old/Cast");
  EXPECT_EQ(to_string(g.value(g.outputs()[0]).type), "int64[2]");
}

TEST(Import, AnInitializerIsAConstantAlsoWhenItIsAnInput) {
  const Graph g =
      must_import(model(graph({.nodes = {node("Add", {"x", "w"}, {"z"})},
                               .inputs = {info("x", floats({2})), info("w", floats({2}))},
                               .outputs = {untyped("z")},
                               .initializers = {tensor<float>("w", {2}, {1, 2})}})));
  EXPECT_EQ(g.inputs().size(), 1u);
  const ValueInfo& w = g.value(g.node(g.root().nodes[0]).inputs[1]);
  ASSERT_EQ(w.origin, ValueOrigin::kConstant);
  EXPECT_EQ(g.constant(w.constant).view().as<float>()[1], 2.0f);
}

TEST(Import, ConstantNodesOfEveryFormBecomeConstants) {
  const WireWriter text = [] {
    WireWriter a;
    a.bytes(1, "value_string");
    a.bytes(4, "hello");
    a.integer(20, 3);
    return a;
  }();
  const Messages forms = {attribute("value_int", 7),
                          attribute("value_ints", std::vector<int64_t>{1, 2}),
                          float_attribute("value_float", 2.5f), text,
                          tensor_attribute("value", tensor<float>("", {1}, {3}))};
  Messages nodes, outputs;
  for (size_t i = 0; i < forms.size(); ++i) {
    const std::string name = "c" + std::to_string(i);
    nodes.push_back(node("Constant", {}, {name}, {forms[i]}));
    outputs.push_back(untyped(name));
  }
  const Graph g = must_import(model(graph({.nodes = nodes, .outputs = outputs})));
  EXPECT_EQ(g.num_nodes(), 0u);
  const char* types[] = {"int64[]", "int64[2]", "float[]", "string[]", "float[1]"};
  for (size_t i = 0; i < forms.size(); ++i) {
    const ValueInfo& info = g.value(g.outputs()[i]);
    EXPECT_EQ(info.origin, ValueOrigin::kConstant);
    EXPECT_EQ(to_string(info.type), types[i]);
  }
}

TEST(Import, AnOutputMayBeAnInputOrAConstant) {
  const Graph g = must_import(model(graph({.inputs = {info("x", floats({}))},
                                           .outputs = {untyped("x"), untyped("w")},
                                           .initializers = {tensor<float>("w", {}, {1})}})));
  EXPECT_EQ(g.outputs()[0], g.inputs()[0]);
  EXPECT_EQ(g.value(g.outputs()[1]).origin, ValueOrigin::kConstant);
}

TEST(Import, ADeclaredOutputTypeMustFit) {
  expect_import_error(model(graph({.nodes = {node("Neg", {"x"}, {"z"})},
                                   .inputs = {info("x", floats({}))},
                                   .outputs = {info("z", int64s({}))}})),
                      StatusCode::kInvalidArgument,
                      "graph output 'z' is declared int64[] but is float[]");
}

TEST(Import, ADeclaredOutputShapeThatIsNotSoIsAWarning) {
  std::vector<std::string> warnings;
  ImportOptions options;
  options.warn = [&](std::string_view line) { warnings.emplace_back(line); };
  const auto import = [&](std::initializer_list<int64_t> declared) {
    const auto g = import_text(model(graph({.nodes = {node("Neg", {"x"}, {"z"})},
                                            .inputs = {info("x", floats({2}))},
                                            .outputs = {info("z", floats(declared))}})),
                               options);
    ASSERT_TRUE(g.is_ok()) << g.status().to_string();
    EXPECT_EQ(to_string(g->value(g->outputs()[0]).type), "float[2]");
  };
  import({2});
  import({kUnknownDim});
  import({-2});
  EXPECT_TRUE(warnings.empty()) << warnings[0];
  import({7});
  EXPECT_EQ(warnings, std::vector<std::string>{
                          "graph output 'z' is declared float[7] but its nodes make it float[2]; "
                          "the declaration is ignored, so correct it in the model"});
  import({2, 1});
  EXPECT_EQ(warnings.size(), 2u);
}

TEST(Import, BadInputTypesAreNamed) {
  expect_import_error(model(graph({.inputs = {untyped("x")}, .outputs = {untyped("x")}})),
                      StatusCode::kInvalidArgument, "graph input 'x'");
  expect_import_error(
      model(graph({.inputs = {info("x", floats({-1}))}, .outputs = {untyped("q")}})),
      StatusCode::kInvalidArgument, "'q'");
  WireWriter dim, shape, tensor_type, type, input;
  dim.integer(1, -5);
  shape.message(1, dim);
  tensor_type.integer(1, 1);
  tensor_type.message(2, shape);
  type.message(1, tensor_type);
  input.bytes(1, "x");
  input.message(2, type);
  expect_import_error(model(graph({.inputs = {input}, .outputs = {untyped("x")}})),
                      StatusCode::kInvalidArgument, "a dimension has size -5");
}

TEST(Import, AWrongInitializerIsNamedWithItsOffset) {
  WireWriter bad;
  bad.integer(1, 3);
  bad.integer(2, 1);
  bad.bytes(8, "w");
  bad.bytes(9, "abcd");
  expect_import_error(model(graph({.outputs = {untyped("w")}, .initializers = {bad}})),
                      StatusCode::kInvalidArgument, "the data has 4 bytes, but float[3] takes 12");
}

TEST(Import, ShapeErrorsNameTheNode) {
  expect_import_error(model(graph({.nodes = {node("Add", {"x", "y"}, {"z"}, {}, "sum")},
                                   .inputs = {info("x", floats({2})), info("y", floats({3}))},
                                   .outputs = {untyped("z")}})),
                      StatusCode::kInvalidArgument, "sum");
}

TEST(Import, TooManyNodesAreRefused) {
  Messages nodes;
  for (int i = 0; i < 12; ++i) {
    nodes.push_back(node("Neg", {"x"}, {"o" + std::to_string(i)}));
  }
  ImportOptions options;
  options.limits.max_nodes = 10;
  expect_import_error(
      model(graph({.nodes = nodes, .inputs = {info("x", floats({}))}, .outputs = {untyped("o0")}})),
      StatusCode::kResourceExhausted, "more than 10 nodes", options);
}

TEST(ImportInto, AModelBecomesPartOfALoop) {
  const std::string path = ::testing::TempDir() + "/into.onnx";
  const std::string content =
      model(graph({.nodes = {node("Add", {"x", "w"}, {"z"}, {}, "sum")},
                   .inputs = {info("x", floats({2})), info("w", floats({2}))},
                   .outputs = {untyped("z")},
                   .initializers = {tensor<float>("w", {2}, {1, 1})}}));
  std::FILE* file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  std::fwrite(content.data(), 1, content.size(), file);
  std::fclose(file);

  GraphBuilder b(standard_ops());
  const Value x = b.input("x", floats({2}));
  const Value trips = b.scalar(int64_t{3});
  const auto outputs = b.while_loop(
      {.name = "again", .initial = {x}, .trip_limit = trips},
      [&](Value, std::span<const Value> carried) {
        return WhileTest{b.scalar(true), {carried[0]}};
      },
      [&](Value, std::span<const Value> carried) -> std::vector<Value> {
        auto results = import_onnx_into(b, path, standard_ops(), {{{"x", carried[0]}}});
        if (!results.is_ok()) return {};
        return {(*results)[0].value};
      });
  b.output("y", outputs[0]);
  const Result<Graph> g = b.finish();
  ASSERT_TRUE(g.is_ok()) << g.status().to_string();
  EXPECT_EQ(count_ops(*g, "Add"), 1u);
}

TEST(ImportInto, MissingUnknownAndMistypedInputsAreNamed) {
  const std::string path = ::testing::TempDir() + "/into_errors.onnx";
  const std::string content = model(graph({.nodes = {node("Neg", {"x"}, {"z"})},
                                           .inputs = {info("x", floats({2}))},
                                           .outputs = {untyped("z")}}));
  std::FILE* file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  std::fwrite(content.data(), 1, content.size(), file);
  std::fclose(file);
  const auto status_with = [&](const std::string& name, ElementType element) {
    GraphBuilder b(standard_ops());
    const Value v = b.input("v", tensor_type(element, {2}));
    std::vector<NamedValue> inputs;
    if (!name.empty()) inputs.push_back({name, v});
    const Status status = import_onnx_into(b, path, standard_ops(), inputs).status();
    EXPECT_EQ(b.status().to_string(), status.to_string());
    EXPECT_NE(status.message().find(path), std::string::npos) << status.to_string();
    return status.to_string();
  };
  EXPECT_NE(status_with("", ElementType::kFloat).find("input 'x' of the model is not given"),
            std::string::npos);
  EXPECT_NE(status_with("q", ElementType::kFloat).find("no input 'q'"), std::string::npos);
  EXPECT_NE(status_with("x", ElementType::kInt64).find("must be float[2], not int64[2]"),
            std::string::npos);
}

TEST(ImportInto, AFileThatCannotBeReadFailsTheBuilder) {
  GraphBuilder b(standard_ops());
  const Status status = import_onnx_into(b, "/nowhere/at/all.onnx", standard_ops(), {}).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(b.status().to_string(), status.to_string());
}

TEST(ImportFile, AMissingFileAndAFolderAreNamed) {
  const Status missing = import_onnx("/nowhere/at/all.onnx", standard_ops()).status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_NE(missing.message().find("/nowhere/at/all.onnx"), std::string::npos);
  const Status folder = import_onnx(::testing::TempDir(), standard_ops()).status();
  EXPECT_EQ(folder.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(folder.message().find("not a regular file"), std::string::npos) << folder.message();
}

// SwiGLU is one: Swish and Mul in its place, under its name, for its output.
TEST(Import, AnOperatorThatIsAFunctionOfTheStandardBecomesItsNodes) {
  const std::string file = model(graph({
                                     .nodes = {node("SwiGLU", {"a", "b"}, {"y"}, {}, "gate")},
                                     .inputs = {info("a", floats({2})), info("b", floats({2}))},
                                     .outputs = {info("y", floats({2}))},
                                 }),
                                 28);
  const Graph graph = must_import(file);
  ASSERT_EQ(graph.num_nodes(), 2u);
  EXPECT_EQ(graph.node(NodeId(0)).name, "gate/Swish");
  EXPECT_EQ(graph.node(NodeId(1)).name, "gate/Mul");
  EXPECT_EQ(graph.value(graph.outputs()[0]).name, "y");
  EXPECT_EQ(to_string(graph.value(graph.outputs()[0]).type), "float[2]");
}

TEST(Import, TypesOfTheNewestOpsetsAreRead) {
  const auto identity_of = [](int element) {
    return model(graph({
                     .nodes = {node("Identity", {"x"}, {"y"})},
                     .inputs = {info("x", tensor_type(static_cast<ElementType>(element), {2}))},
                     .outputs = {untyped("y")},
                 }),
                 28);
  };
  for (const auto& [element, text] :
       {std::pair(24, "float8e8m0[2]"), std::pair(25, "uint2[2]"), std::pair(26, "int2[2]")}) {
    const Graph graph = must_import(identity_of(element));
    EXPECT_EQ(to_string(graph.value(graph.outputs()[0]).type), text);
  }
  expect_import_error(identity_of(27), StatusCode::kInvalidArgument, "element type 27");
}

}  // namespace
}  // namespace eddy
