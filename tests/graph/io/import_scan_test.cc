// Claim: Scan becomes a while node that reads one slice of each scanned input an iteration, in the
// given direction and along the given axis, and stacks outputs likewise.
#include <gtest/gtest.h>

#include "tests/graph/io/test_import.h"

namespace eddy {
namespace {

using namespace test;  // NOLINT: a test's own vocabulary

struct ScanParts {
  Messages attributes = {};
  ValueType scanned = floats({5, 3});
  ValueType also_scanned = floats({5, 3});
  int64_t opset = 17;
  Names inputs = {"h", "x", "z"};
  ValueType state = floats({3});
};

// Sums two scanned inputs into a state; stacks the sums.
std::string scan_model(ScanParts parts) {
  const WireWriter body =
      graph({.nodes = {node("Add", {"a", "b"}, {"ab"}), node("Add", {"s", "ab"}, {"s2"})},
             .inputs = {untyped("s"), untyped("a"), untyped("b")},
             .outputs = {untyped("s2"), untyped("ab")}});
  parts.attributes.push_back(graph_attribute("body", body));
  parts.attributes.push_back(attribute("num_scan_inputs", 2));
  return model(graph({.nodes = {node("Scan", parts.inputs, {"y", "sums"}, parts.attributes, "S")},
                      .inputs = {info("h", parts.state), info("x", parts.scanned),
                                 info("z", parts.also_scanned), info("lens", int64s({2}))},
                      .outputs = {untyped("y"), untyped("sums")}}),
               parts.opset);
}

TEST(ImportScan, OneIterationForEachSlice) {
  const Graph g = must_import(scan_model({}));
  EXPECT_EQ(count_ops(g, "Gather"), 2u);
  EXPECT_EQ(count_ops(g, "Shape"), 0u);  // the length is known
  const Node& loop = g.node(g.root().nodes[0]);
  ASSERT_EQ(loop.kind, NodeKind::kWhile);
  const Constant* trips = &g.constant(g.value(loop.inputs[0]).constant);
  EXPECT_EQ(*trips->view().as<int64_t>(), 5);
  EXPECT_EQ(to_string(g.value(g.outputs()[0]).type), "float[3]");
  EXPECT_EQ(to_string(g.value(g.outputs()[1]).type), "float[?,3]");
}

TEST(ImportScan, UnknownLengthsAreComputedAndTheLongestCounts) {
  const Graph g =
      must_import(scan_model({.scanned = floats({-2, 3}), .also_scanned = floats({-1, 3})}));
  EXPECT_EQ(count_ops(g, "Shape"), 2u);
  EXPECT_EQ(count_ops(g, "Max"), 1u);
}

TEST(ImportScan, BackwardsReadingCountsDown) {
  const Graph g = must_import(
      scan_model({.attributes = {attribute("scan_input_directions", std::vector<int64_t>{1, 0})}}));
  EXPECT_EQ(count_ops(g, "Sub"), 2u);  // length - 1, and that minus the iteration
}

TEST(ImportScan, AxesSelectWhatIsScannedAndWhereOutputsStack) {
  const Graph g = must_import(
      scan_model({.attributes = {attribute("scan_input_axes", std::vector<int64_t>{1, -1}),
                                 attribute("scan_output_axes", std::vector<int64_t>{-1})},
                  .scanned = floats({3, 5}),
                  .also_scanned = floats({3, 5})}));
  EXPECT_EQ(count_ops(g, "Transpose"), 1u);
  EXPECT_EQ(to_string(g.value(g.outputs()[1]).type), "float[3,?]");
}

TEST(ImportScan, ReversedOutputsAreTurnedRound) {
  const Graph g = must_import(
      scan_model({.attributes = {attribute("scan_output_directions", std::vector<int64_t>{1})}}));
  EXPECT_EQ(count_ops(g, "Slice"), 1u);
}

TEST(ImportScan, KnownLengthsThatDifferAreRefused) {
  expect_import_error(scan_model({.also_scanned = floats({4, 3})}), StatusCode::kInvalidArgument,
                      "scanned inputs have lengths 5 and 4");
}

TEST(ImportScan, BadAttributesAreRefused) {
  expect_import_error(
      scan_model({.attributes = {attribute("scan_input_directions", std::vector<int64_t>{2, 0})}}),
      StatusCode::kInvalidArgument, "direction 2 is neither 0 nor 1");
  expect_import_error(
      scan_model({.attributes = {attribute("scan_input_axes", std::vector<int64_t>{0})}}),
      StatusCode::kInvalidArgument, "axes and directions must be given for each");
  expect_import_error(
      scan_model({.attributes = {attribute("scan_input_axes", std::vector<int64_t>{2, 0})}}),
      StatusCode::kInvalidArgument, "axis 2 does not exist in float[5,3]");
  expect_import_error(
      scan_model({.attributes = {attribute("scan_output_axes", std::vector<int64_t>{99})}}),
      StatusCode::kInvalidArgument, "axis 99 is outside of any shape");
}

TEST(ImportScan, ABodyOfWrongArityIsRefused) {
  expect_import_error(scan_model({.inputs = {"h", "h", "x", "z"}}), StatusCode::kInvalidArgument,
                      "its graph 'body' takes 3 inputs, but 4 are passed");
  expect_import_error(scan_model({.inputs = {"h"}}), StatusCode::kInvalidArgument,
                      "num_scan_inputs must be between 1 and the number of inputs");
}

TEST(ImportScan8, BatchesAreALoopAroundTheLoop) {
  const Graph g = must_import(scan_model({.scanned = floats({2, 5, 3}),
                                          .also_scanned = floats({2, 5, 3}),
                                          .opset = 8,
                                          .inputs = {"", "h", "x", "z"},
                                          .state = floats({2, 3})}));
  const Node& outer = g.node(g.root().nodes[0]);
  ASSERT_EQ(outer.kind, NodeKind::kWhile);
  EXPECT_EQ(*g.constant(g.value(outer.inputs[0]).constant).view().as<int64_t>(), 2);
  EXPECT_EQ(outer.num_scan_outputs, 2u);
  EXPECT_EQ(to_string(g.value(g.outputs()[0]).type), "float[?,3]");
  EXPECT_EQ(to_string(g.value(g.outputs()[1]).type), "float[?,?,3]");
}

TEST(ImportScan8, SequenceLengthsAreUnsupportedByName) {
  expect_import_error(scan_model({.scanned = floats({2, 5, 3}),
                                  .also_scanned = floats({2, 5, 3}),
                                  .opset = 8,
                                  .inputs = {"lens", "h", "x", "z"},
                                  .state = floats({2, 3})}),
                      StatusCode::kUnsupported, "sequence_lens of Scan 8 is not supported");
}

}  // namespace
}  // namespace eddy
