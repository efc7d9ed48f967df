// Claim: the oracle gives the results of the language's definition, on graphs small enough to work
// out by hand, and names node and iteration when an operator fails.
#include "tools/check/oracle.h"

#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "tools/check/hash_ops.h"

namespace eddy::check {
namespace {

class OracleTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(add_hash_ops(library_).is_ok()); }

  OracleResult run(GraphBuilder& b, const NamedTensors& inputs = {}) {
    graph_ = b.finish();
    EXPECT_TRUE(graph_->is_ok()) << graph_->status().to_string();
    auto result = interpret(**graph_, library_, inputs);
    EXPECT_TRUE(result.is_ok()) << result.status().to_string();
    return result.is_ok() ? std::move(*result) : OracleResult{};
  }
  static std::vector<int64_t> ints(const Tensor& value) {
    const auto values = value.values<int64_t>();
    return {values.begin(), values.end()};
  }

  Library library_;
  std::optional<Result<Graph>> graph_;
};

TEST_F(OracleTest, CarriedValuesAreAssignedAtOnce) {
  GraphBuilder b(library_.ops());
  const auto made = b.while_loop(
      {.initial = {b.scalar<int64_t>(1), b.scalar<int64_t>(2)}, .trip_limit = b.scalar<int64_t>(3)},
      [&](Value, ValueSpan x) {
        return WhileTest{b.scalar(true), {x[0], x[1]}};
      },
      [&](Value, ValueSpan x) {
        return std::vector<Value>{x[1], x[0]};
      });
  b.output("a", made[0]);
  b.output("b", made[1]);
  const OracleResult result = run(b);
  EXPECT_EQ(ints(result.outputs[0].second), std::vector<int64_t>{2});
  EXPECT_EQ(ints(result.outputs[1].second), std::vector<int64_t>{1});
  ASSERT_EQ(result.trips.size(), 1u);
  EXPECT_EQ(result.trips[0].trips, 3);
}

TEST_F(OracleTest, OperatorsRunByTheKernelsThatAreGiven) {
  GraphBuilder b(library_.ops());
  b.output("sum", b.op("Add", {b.scalar(1.0f), b.scalar(2.0f)}));
  const auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  const KernelRegistry none;
  const auto result = interpret(*graph, library_, {}, {.kernels_or_null = &none});
  EXPECT_EQ(result.status().code(), StatusCode::kUnsupported) << result.status().to_string();
}

TEST_F(OracleTest, WorkBeforeTheTestRunsOnceMoreThanWorkAfterIt) {
  GraphBuilder b(library_.ops());
  const auto made = b.while_loop(
      {.initial = {b.scalar<int64_t>(0)}, .num_scan_outputs = 1},
      [&](Value iteration, ValueSpan x) {
        const Value next = b.op("Add", {x[0], b.scalar<int64_t>(10)});
        return WhileTest{b.op("Less", {iteration, b.scalar<int64_t>(2)}), {next}};
      },
      [&](Value, ValueSpan x) {
        const Value next = b.op("Add", {x[0], b.scalar<int64_t>(1)});
        return std::vector<Value>{next, next};
      });
  b.output("last", made[0]);
  b.output("rows", made[1]);
  const OracleResult result = run(b);
  EXPECT_EQ(ints(result.outputs[0].second), std::vector<int64_t>{32});
  EXPECT_EQ(ints(result.outputs[1].second), (std::vector<int64_t>{11, 22}));
  EXPECT_EQ(result.executions.size(), 3u * 2 + 2u);
}

TEST_F(OracleTest, ALoopThatNeverRunsStacksNoRowsOfTheInferredShape) {
  GraphBuilder b(library_.ops());
  const auto made = b.while_loop(
      {.initial = {}, .trip_limit = b.scalar<int64_t>(0), .num_scan_outputs = 1},
      [&](Value, ValueSpan) {
        return WhileTest{b.scalar(true), {}};
      },
      [&](Value, ValueSpan) {
        return std::vector<Value>{b.int64s({1, 2})};
      });
  b.output("rows", made[0]);
  EXPECT_EQ(run(b).outputs[0].second.dims(), (Dims{0, 2}));
}

TEST_F(OracleTest, ASelectorOutOfRangePassesThroughOrTakesTheDefault) {
  for (const int default_region : {-1, 1}) {
    GraphBuilder b(library_.ops());
    CaseOptions options{.selector = b.scalar<int64_t>(7)};
    if (default_region < 0) options.pass_through = {b.scalar<int64_t>(70)};
    options.default_region = default_region;
    const std::vector<CaseBody> bodies = {
        [&] { return std::vector<Value>{b.op("Identity", {b.scalar<int64_t>(50)})}; },
        [&] { return std::vector<Value>{b.op("Identity", {b.scalar<int64_t>(60)})}; }};
    b.output("x", b.case_of(options, bodies)[0]);
    EXPECT_EQ(ints(run(b).outputs[0].second), std::vector<int64_t>{default_region < 0 ? 70 : 60});
  }
}

TEST_F(OracleTest, AFailureNamesNodeAndIteration) {
  GraphBuilder b(library_.ops());
  b.while_loop(
      {.name = "decode", .initial = {}, .trip_limit = b.scalar<int64_t>(9)},
      [&](Value, ValueSpan) {
        return WhileTest{b.scalar(true), {}};
      },
      [&](Value iteration, ValueSpan) {
        b.op("Gather", {b.int64s({1, 2, 3}), iteration}, {}, {.name = "pick"});
        return std::vector<Value>{};
      });
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  const auto result = interpret(*graph, library_, {});
  ASSERT_FALSE(result.is_ok());
  EXPECT_EQ(result.status().path(), "decode[3]/pick");
}

TEST_F(OracleTest, EndlessLoopsEndAtTheLimitOfExecutions) {
  GraphBuilder b(library_.ops());
  b.output("x",
           b.while_loop(
               {.initial = {b.scalar<int64_t>(0)}},
               [&](Value, ValueSpan x) {
                 return WhileTest{b.scalar(true), {x[0]}};
               },
               [&](Value, ValueSpan x) { return std::vector<Value>{b.op("Neg", {x[0]})}; })[0]);
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok());
  const auto result = interpret(*graph, library_, {}, {.max_executions = 1000});
  EXPECT_EQ(result.status().code(), StatusCode::kResourceExhausted);
}

TEST_F(OracleTest, DigestsTellShapesTypesAndOrderApart) {
  const std::vector<uint64_t> digests = {digest(Tensor::of<int64_t>({2}, {1, 2})),
                                         digest(Tensor::of<int64_t>({2}, {2, 1})),
                                         digest(Tensor::of<int64_t>({2, 1}, {1, 2})),
                                         digest(Tensor::of<double>({2}, {1, 2})),
                                         digest(Tensor::of<int64_t>({0}, {})),
                                         digest(Tensor()),
                                         digest(Tensor::sequence(ElementType::kInt64, {}))};
  for (size_t i = 0; i < digests.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(digests[i], digests[j]) << i << " " << j;
  }
  EXPECT_NE(combine_digests(std::vector<uint64_t>{1, 2}),
            combine_digests(std::vector<uint64_t>{2, 1}));
}

TEST_F(OracleTest, DifferencesAreNamed) {
  const NamedTensors a = {{"x", Tensor::of<int64_t>({2}, {1, 2})}};
  EXPECT_EQ(difference(a, a), "");
  EXPECT_EQ(difference(a, {{"x", Tensor::of<int64_t>({2}, {1, 3})}}),
            "output 'x' (int64[2]) has 0000000000000003 at 1 and should have 0000000000000002");
  EXPECT_EQ(difference(a, {{"x", Tensor::of<int64_t>({1}, {1})}}),
            "output 'x' is int64[1] and should be int64[2]");
}

}  // namespace
}  // namespace eddy::check
