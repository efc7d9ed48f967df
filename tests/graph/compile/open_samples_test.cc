// Claim: inputs of one and the same first size get a name for it, which reaches what follows from
// it, also in loops; inputs that differ, and nodes that take the one size alone, are refused.
#include "graph/compile/open_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/compile/batch_axes.h"
#include "graph/ir/builder.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

using ::testing::HasSubstr;

class OpenSamplesTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(add_standard_schemas(table_).is_ok()); }

  Result<Graph> opened(GraphBuilder& b) {
    EDDY_ASSIGN_OR_RETURN(Graph graph, b.finish());
    return open_samples(std::move(graph), table_, "batch");
  }
  static ValueType floats(std::initializer_list<int64_t> dims) {
    return tensor_type(ElementType::kFloat, dims);
  }

  OpTable table_;
};

TEST_F(OpenSamplesTest, TheNameReachesOutputs) {
  GraphBuilder b(table_);
  const Value x = b.input("x", floats({4, 3}));
  const Value rounds = b.input("rounds", tensor_type(ElementType::kInt64, {}));
  const auto last = b.while_loop(
      {.name = "loop", .initial = {x}, .trip_limit = rounds},
      [&](Value, ValueSpan carried) {
        return WhileTest{b.scalar(true), {carried[0]}};
      },
      [&](Value, ValueSpan forwarded) { return std::vector<Value>{b.op("Tanh", {forwarded[0]})}; });
  b.output("y", last[0]);
  const Result<Graph> graph = opened(b);
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  const TensorType& x_type = graph->value(graph->inputs()[0]).type.tensor;
  const TensorType& y_type = graph->value(graph->outputs()[0]).type.tensor;
  ASSERT_LT(x_type.dims[0], kUnknownDim);
  EXPECT_EQ(graph->symbol(x_type.dims[0]), "batch");
  EXPECT_EQ(y_type.dims, x_type.dims);
  EXPECT_EQ(graph->value(graph->inputs()[1]).type.tensor.dims.rank(), 0);
  const Result<BatchAxes> axes = find_batch_axes(*graph, "batch");
  ASSERT_TRUE(axes.is_ok()) << axes.status().to_string();
  EXPECT_EQ(axes->inputs, (std::vector<int>{0, kNoSamples}));
  EXPECT_EQ(axes->outputs, std::vector<int>{0});
}

TEST_F(OpenSamplesTest, InputsThatDifferAreNamed) {
  GraphBuilder b(table_);
  const Value x = b.input("x", floats({4, 3})), w = b.input("w", floats({3, 2}));
  b.output("y", b.op("MatMul", {x, w}));
  const Result<Graph> graph = opened(b);
  ASSERT_FALSE(graph.is_ok());
  EXPECT_EQ(graph.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(graph.status().message(), HasSubstr("x: float[4,3], w: float[3,2]"));
}

TEST_F(OpenSamplesTest, NoSamplesAreNoNumberOfThem) {
  GraphBuilder none(table_);
  none.output("y", none.op("Tanh", {none.input("x", floats({}))}));
  EXPECT_THAT(opened(none).status().message(), HasSubstr("no input has a dimension"));
  GraphBuilder empty(table_);
  empty.output("y", empty.op("Tanh", {empty.input("x", floats({0, 3}))}));
  EXPECT_THAT(opened(empty).status().message(), HasSubstr("not one number"));
}

// Of any number of samples, this one is not proved to keep them apart.
TEST_F(OpenSamplesTest, ANodeForOneNumberAloneIsNoWayToShareIt) {
  GraphBuilder b(table_);
  const Value x = b.input("x", floats({4, 3}));
  b.output("y", b.op("Add", {x, b.tensor<float>({4, 3}, std::vector<float>(12, 1.0f))}));
  const Result<Graph> graph = opened(b);
  const Status status = graph.is_ok() ? find_batch_axes(*graph, "batch").status() : graph.status();
  EXPECT_FALSE(status.is_ok());
}

}  // namespace
}  // namespace eddy
