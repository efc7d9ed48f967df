// Claim: a case-of runs exactly the region that its selector picks, in every way of running it.
#include "tests/runtime/testing/ways.h"

namespace eddy {
namespace {

using testing::WaysTest;

const ValueType kFloat = tensor_type(ElementType::kFloat, {});

class CaseTest : public WaysTest {};

TEST_P(CaseTest, ASelectorPicksOneOfThreeRegions) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", kFloat);
  const CaseBody bodies[] = {
      [&] { return std::vector<Value>{b.op("Neg", {x})}; },
      [&] { return std::vector<Value>{x}; },
      [&] {
        return std::vector<Value>{b.op("Mul", {x, x})};
      },
  };
  const auto out = b.case_of(
      {.name = "pick", .selector = b.input("s", tensor_type(ElementType::kInt32, {1}))}, bodies);
  b.output("y", out[0]);
  session_ = make_session(b);
  const float expected[] = {-3, 3, 9};
  for (int32_t s = 0; s < 3; ++s) {
    auto o = session_->run({{"x", Tensor::scalar(3.0f)}, {"s", Tensor::of<int32_t>({1}, {s})}});
    ASSERT_TRUE(o.is_ok()) << o.status().to_string();
    EXPECT_EQ((*o)[0].second.values<float>()[0], expected[s]);
  }
  const auto o = session_->run({{"x", Tensor::scalar(3.0f)}, {"s", Tensor::of<int32_t>({1}, {3})}});
  ASSERT_FALSE(o.is_ok());
  EXPECT_EQ(o.status().code(), StatusCode::kRunFailed);
  EXPECT_EQ(o.status().path(), "pick");
}

TEST_P(CaseTest, OutOfRangeTakesTheDefaultRegionOrPassesThrough) {
  for (const int default_region : {1, -1}) {
    GraphBuilder b(library_.ops());
    const Value x = b.input("x", kFloat);
    const CaseBody bodies[] = {[&] { return std::vector<Value>{b.op("Neg", {x})}; },
                               [&] {
                                 return std::vector<Value>{b.op("Mul", {x, x})};
                               }};
    CaseOptions case_options{.selector = b.input("s", tensor_type(ElementType::kInt64, {}))};
    case_options.default_region = default_region;
    if (default_region < 0) case_options.pass_through = {x};
    b.output("y", b.case_of(case_options, bodies)[0]);
    session_ = make_session(b);
    for (int64_t s : {-1, 2, 100}) {
      auto o = session_->run({{"x", Tensor::scalar(3.0f)}, {"s", Tensor::scalar(s)}});
      ASSERT_TRUE(o.is_ok()) << o.status().to_string();
      EXPECT_EQ((*o)[0].second.values<float>()[0], default_region < 0 ? 3.0f : 9.0f);
    }
  }
}

TEST_P(CaseTest, BranchesMayRepeatSwapAndCaptureInsideALoop) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", kFloat);
  const Value y = b.input("y", kFloat);
  const auto out = b.while_loop(
      {.initial = {x, y}},
      [&](Value iteration, std::span<const Value> c) {
        return WhileTest{b.op("Less", {iteration, b.scalar<int64_t>(10)}), {c[0], c[1]}};
      },
      [&](Value iteration, std::span<const Value> f) {
        const Value is_odd =
            b.op("Equal", {b.op("Mod", {iteration, b.scalar<int64_t>(2)}), b.scalar<int64_t>(1)});
        const Value p = f[0];
        const Value q = f[1];
        return b.if_else(
            is_odd,
            [&] {
              return std::vector<Value>{q, p};
            },
            [&] {
              return std::vector<Value>{b.op("Add", {p, b.scalar(1.0f)}), q};
            });
      });
  b.output("p", out[0]);
  b.output("q", out[1]);
  auto o = run_twice(b, {{"x", Tensor::scalar(1.0f)}, {"y", Tensor::scalar(100.0f)}});
  ASSERT_TRUE(o.is_ok()) << o.status().to_string();
  float p = 1, q = 100;
  for (int i = 0; i < 10; ++i) {
    if (i % 2 == 1) {
      std::swap(p, q);
    } else {
      p += 1;
    }
  }
  EXPECT_EQ((*o)[0].second.values<float>()[0], p);
  EXPECT_EQ((*o)[1].second.values<float>()[0], q);
}

// The first branch's result has a known shape, what it becomes has not: their memory is exchanged,
// and the next run must find the branch's own shape again.
TEST_P(CaseTest, ABranchOfKnownShapeMayStartAGrowingValue) {
  constexpr int64_t kRow = 100;
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {1, kRow}));
  const auto out = b.while_loop(
      {.initial = {b.op("ConstantOfShape", {b.int64s({0, kRow})})},
       .trip_limit = b.scalar<int64_t>(3)},
      [&](Value, std::span<const Value> c) {
        return WhileTest{b.scalar(true), {c[0]}};
      },
      [&](Value iteration, std::span<const Value> f) {
        const Value grown = f[0];
        return b.if_else(
            b.op("Equal", {iteration, b.scalar<int64_t>(0)}),
            [&] { return std::vector<Value>{b.op("Neg", {x})}; },
            [&] {
              return std::vector<Value>{b.op("Concat", {grown, x}, {{"axis", 0}})};
            });
      });
  b.output("rows", out[0]);
  session_ = make_session(b);
  std::vector<float> row(kRow);
  for (int64_t i = 0; i < kRow; ++i) row[static_cast<size_t>(i)] = static_cast<float>(i + 1);
  const Dims dims{1, kRow};
  const Tensor given = Tensor::borrow({row.data(), dims.data(), 2, ElementType::kFloat});
  for (int run = 0; run < 3; ++run) {
    const auto o = session_->run({{"x", given}});
    ASSERT_TRUE(o.is_ok()) << o.status().to_string();
    const Tensor& rows = (*o)[0].second;
    ASSERT_EQ(rows.dims(), (Dims{3, kRow})) << "run " << run;
    for (int64_t i = 0; i < 3 * kRow; ++i) {
      const float expected = row[static_cast<size_t>(i % kRow)] * (i < kRow ? -1.0f : 1.0f);
      ASSERT_EQ(rows.values<float>()[static_cast<size_t>(i)], expected) << i << " of run " << run;
    }
  }
}

TEST_P(CaseTest, ALoopInABranchInALoopRuns) {
  GraphBuilder b(library_.ops());
  const Value n = b.input("n", tensor_type(ElementType::kInt64, {}));
  const auto less = [&](Value a, Value limit) { return b.op("Less", {a, limit}); };
  const auto out = b.while_loop(
      {.name = "outer", .initial = {b.scalar(0.0f)}},
      [&](Value i, std::span<const Value> c) {
        return WhileTest{less(i, n), {c[0]}};
      },
      [&](Value i, std::span<const Value> f) {
        const Value sum = f[0];
        return b.if_else(
            less(i, b.scalar<int64_t>(3)),
            [&] {
              return b.while_loop(
                  {.name = "inner", .initial = {sum}},
                  [&](Value j, std::span<const Value> c) {
                    return WhileTest{less(j, i), {c[0]}};
                  },
                  [&](Value, std::span<const Value> g) {
                    return std::vector<Value>{b.op("Add", {g[0], b.scalar(1.0f)})};
                  });
            },
            [&] {
              return std::vector<Value>{b.op("Add", {sum, b.scalar(100.0f)})};
            });
      });
  b.output("y", out[0]);
  auto o = run_twice(b, {{"n", Tensor::scalar<int64_t>(5)}});
  ASSERT_TRUE(o.is_ok()) << o.status().to_string();
  EXPECT_EQ((*o)[0].second.values<float>()[0], 203.0f);
}

EDDY_IN_ALL_WAYS(CaseTest);

}  // namespace
}  // namespace eddy
