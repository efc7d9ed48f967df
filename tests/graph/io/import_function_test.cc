// Claim: calls of model-local functions are replaced by their bodies, with attributes and names
// of their own, within bounds.
#include <gtest/gtest.h>

#include "tests/graph/io/test_import.h"

namespace eddy {
namespace {

using namespace test;  // NOLINT: a test's own vocabulary

std::string call_model(const Messages& calls, const Messages& functions) {
  return model(
      graph({.nodes = calls, .inputs = {info("x", floats({2}))}, .outputs = {untyped("y")}}), 17,
      functions);
}

WireWriter call(const std::string& name, const std::string& in, const std::string& out,
                const Messages& attributes = {}, const std::string& label = "") {
  return node(name, {in}, {out}, attributes, label, "local");
}

TEST(ImportFunction, ACallIsReplacedByTheBody) {
  const WireWriter twice = function({.name = "Twice",
                                     .inputs = {"a"},
                                     .outputs = {"b"},
                                     .nodes = {node("Add", {"a", "a"}, {"b"}, {}, "sum")}});
  const Graph g = must_import(call_model(
      {call("Twice", "x", "t", {}, "one"), call("Twice", "t", "y", {}, "two")}, {twice}));
  ASSERT_EQ(g.root().nodes.size(), 2u);
  EXPECT_EQ(g.node(g.root().nodes[0]).name, "one/sum");
  EXPECT_EQ(g.node(g.root().nodes[1]).name, "two/sum");
  EXPECT_EQ(g.value(g.outputs()[0]).name, "two/b");
}

TEST(ImportFunction, AttributesComeFromTheCallOrFromDefaults) {
  const WireWriter leaky =
      function({.name = "Leaky",
                .inputs = {"a"},
                .outputs = {"b"},
                .nodes = {node("Constant", {}, {"k"}, {ref_attribute("value_float", "slope", 1)}),
                          node("Mul", {"a", "k"}, {"b"})},
                .defaults = {float_attribute("slope", 0.5f)}});
  const auto slope = [&](const Messages& attributes) {
    const Graph g = must_import(call_model({call("Leaky", "x", "y", attributes)}, {leaky}));
    const ValueInfo& k = g.value(g.node(g.root().nodes[0]).inputs[1]);
    return *g.constant(k.constant).view().as<float>();
  };
  EXPECT_EQ(slope({}), 0.5f);
  EXPECT_EQ(slope({float_attribute("slope", 2.0f)}), 2.0f);
}

TEST(ImportFunction, AttributesPassThroughNestedCalls) {
  const WireWriter inner =
      function({.name = "Inner",
                .inputs = {"a"},
                .outputs = {"b"},
                .nodes = {node("Constant", {}, {"k"}, {ref_attribute("value_float", "q", 1)}),
                          node("Mul", {"a", "k"}, {"b"})},
                .attributes = {"q"}});
  const WireWriter outer =
      function({.name = "Outer",
                .inputs = {"a"},
                .outputs = {"b"},
                .nodes = {node("Inner", {"a"}, {"b"}, {ref_attribute("q", "p", 1)}, "", "local")},
                .attributes = {"p"}});
  const Graph g = must_import(
      call_model({call("Outer", "x", "y", {float_attribute("p", 3.0f)})}, {inner, outer}));
  const ValueInfo& k = g.value(g.node(g.root().nodes[0]).inputs[1]);
  EXPECT_EQ(*g.constant(k.constant).view().as<float>(), 3.0f);
}

TEST(ImportFunction, TheBodySeesOnlyItsInputs) {
  const WireWriter peeks = function({.name = "Peeks",
                                     .inputs = {"a"},
                                     .outputs = {"b"},
                                     .nodes = {node("Add", {"a", "x"}, {"b"}, {}, "peek")}});
  expect_import_error(call_model({call("Peeks", "x", "y")}, {peeks}), StatusCode::kInvalidArgument,
                      "node 'Peeks/peek' (Add): input 'x' is defined nowhere");
}

TEST(ImportFunction, RecursionIsRefused) {
  const WireWriter a =
      function({.name = "A", .inputs = {"a"}, .outputs = {"b"}, .nodes = {call("B", "a", "b")}});
  const WireWriter b = function({.name = "B",
                                 .inputs = {"a"},
                                 .outputs = {"b"},
                                 .nodes = {call("A", "a", "b", {}, "again")}});
  expect_import_error(call_model({call("A", "x", "y")}, {a, b}), StatusCode::kInvalidArgument,
                      "node 'A/B/again' (A): function 'A' calls itself");
}

// Each function calls the next one twice: 2^40 calls, none of which adds a node.
TEST(ImportFunction, BillionsOfCallsAreStoppedByTheNodeLimit) {
  Messages functions;
  constexpr int kLevels = 40;
  for (int i = 0; i < kLevels; ++i) {
    const std::string next = "F" + std::to_string(i + 1);
    functions.push_back(function({.name = "F" + std::to_string(i),
                                  .inputs = {"a"},
                                  .outputs = {"b"},
                                  .nodes = {call(next, "a", "t"), call(next, "t", "b")}}));
  }
  functions.push_back(
      function({.name = "F" + std::to_string(kLevels), .inputs = {"a"}, .outputs = {"a"}}));
  ImportOptions options;
  options.limits.max_nodes = 10000;
  expect_import_error(call_model({call("F0", "x", "y")}, functions), StatusCode::kResourceExhausted,
                      "more than 10000 nodes", options);
}

TEST(ImportFunction, DeepChainsOfCallsAreRefused) {
  Messages functions;
  constexpr int kLevels = 200;
  for (int i = 0; i < kLevels; ++i) {
    functions.push_back(function({.name = "F" + std::to_string(i),
                                  .inputs = {"a"},
                                  .outputs = {"b"},
                                  .nodes = {call("F" + std::to_string(i + 1), "a", "b")}}));
  }
  functions.push_back(
      function({.name = "F" + std::to_string(kLevels), .inputs = {"a"}, .outputs = {"a"}}));
  expect_import_error(call_model({call("F0", "x", "y")}, functions), StatusCode::kResourceExhausted,
                      "nested more than 64 deep");
}

TEST(ImportFunction, TooManyInputsAndDuplicateDefinitionsAreRefused) {
  const WireWriter one = function({.name = "One", .inputs = {"a"}, .outputs = {"a"}});
  expect_import_error(call_model({node("One", {"x", "x"}, {"y"}, {}, "c", "local")}, {one}),
                      StatusCode::kInvalidArgument, "passes 2 inputs to function 'One'");
  expect_import_error(call_model({call("One", "x", "y")}, {one, one}), StatusCode::kInvalidArgument,
                      "function 'One' is defined twice");
}

TEST(ImportFunction, UnknownOperatorsInBodiesAreReported) {
  const WireWriter odd = function({.name = "Odd",
                                   .inputs = {"a"},
                                   .outputs = {"b"},
                                   .nodes = {node("Strange", {"a"}, {"b"}, {}, "s")}});
  expect_import_error(call_model({call("Odd", "x", "y")}, {odd}), StatusCode::kUnsupported,
                      "at node 's' in 'function Odd'");
}

TEST(ImportFunction, AReferenceOutsideAFunctionIsRefused) {
  expect_import_error(
      call_model({node("Constant", {}, {"y"}, {ref_attribute("value_int", "p", 2)}, "k")}, {}),
      StatusCode::kInvalidArgument, "refers to one of a function, but stands outside of any");
}

}  // namespace
}  // namespace eddy
