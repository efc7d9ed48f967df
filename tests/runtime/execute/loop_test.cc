// Claim: a while gives the results of its definition, in every way of running it: predicate first,
// any split of work between its two regions, any wiring of carried values, stacks, and any nesting.
#include "tests/runtime/testing/ways.h"

namespace eddy {
namespace {

using testing::WaysTest;

const ValueType kFloat = tensor_type(ElementType::kFloat, {});
const ValueType kInt = tensor_type(ElementType::kInt64, {});

class LoopTest : public WaysTest {
 protected:
  // while (iteration < trips) carried := body(iteration, carried)
  using Body = std::function<std::vector<Value>(Value iteration, std::span<const Value>)>;
  static std::vector<Value> repeat(GraphBuilder& b, Value trips, std::vector<Value> initial,
                                   const Body& body, uint32_t num_scans = 0,
                                   std::string name = {}) {
    return b.while_loop(
        {.name = std::move(name), .initial = std::move(initial), .num_scan_outputs = num_scans},
        [&](Value iteration, std::span<const Value> carried) {
          return WhileTest{b.op("Less", {iteration, trips}), {carried.begin(), carried.end()}};
        },
        body);
  }
};

TEST_P(LoopTest, ZeroTripsGiveTheInitialValues) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", kFloat);
  const auto out = repeat(b, b.input("n", kInt), {x}, [&](Value, auto c) {
    return std::vector<Value>{b.op("Add", {c[0], c[0]})};
  });
  b.output("y", out[0]);
  auto y = run_twice(b, {{"x", Tensor::scalar(3.0f)}, {"n", Tensor::scalar<int64_t>(0)}});
  ASSERT_TRUE(y.is_ok()) << y.status().to_string();
  EXPECT_EQ(values<float>((*y)[0].second), std::vector<float>{3});
}

TEST_P(LoopTest, ADoWhileRunsItsBodyBeforeTheFirstTest) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", kFloat);
  const auto out = b.while_loop(
      {.initial = {x}},
      [&](Value, std::span<const Value> c) {
        const Value doubled = b.op("Add", {c[0], c[0]});
        return WhileTest{b.op("Less", {doubled, b.scalar(100.0f)}), {doubled}};
      },
      [&](Value, std::span<const Value> f) { return std::vector<Value>{f[0]}; });
  b.output("y", out[0]);
  auto y = run_twice(b, {{"x", Tensor::scalar(200.0f)}});
  ASSERT_TRUE(y.is_ok()) << y.status().to_string();
  EXPECT_EQ(values<float>((*y)[0].second), std::vector<float>{400});
  y = session_->run({{"x", Tensor::scalar(3.0f)}});
  EXPECT_EQ(values<float>((*y)[0].second), std::vector<float>{192});
}

TEST_P(LoopTest, WorkInBothRegionsLeavesInTheMiddle) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", kFloat);
  const auto out = b.while_loop(
      {.initial = {x}},
      [&](Value, std::span<const Value> c) {
        const Value doubled = b.op("Add", {c[0], c[0]});
        return WhileTest{b.op("Less", {doubled, b.scalar(100.0f)}), {doubled}};
      },
      [&](Value, std::span<const Value> f) {
        return std::vector<Value>{b.op("Add", {f[0], b.scalar(1.0f)})};
      });
  b.output("y", out[0]);
  auto y = run_twice(b, {{"x", Tensor::scalar(1.0f)}});
  ASSERT_TRUE(y.is_ok()) << y.status().to_string();
  float x0 = 1;
  for (x0 *= 2; x0 < 100; x0 *= 2) x0 += 1;
  EXPECT_EQ(values<float>((*y)[0].second), std::vector<float>{x0});
}

TEST_P(LoopTest, CarriedValuesMayPermuteRepeatAndBeCaptured) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", kFloat);
  const Value y = b.input("y", kFloat);
  // (p, q, r, s) := (q, p + x, q, x)
  const auto out = repeat(b, b.input("n", kInt), {x, y, x, y}, [&](Value, auto c) {
    return std::vector<Value>{c[1], b.op("Add", {c[0], x}), c[1], x};
  });
  for (size_t i = 0; i < 4; ++i) b.output("o" + std::to_string(i), out[i]);
  for (int64_t n : {1, 2, 3, 17}) {
    float p = 1, q = 10, r = 1, s = 10;
    for (int64_t i = 0; i < n; ++i) {
      const float old_p = p;
      p = q, r = q, q = old_p + 1, s = 1;
    }
    if (session_ == nullptr) session_ = make_session(b);
    auto o = session_->run(
        {{"x", Tensor::scalar(1.0f)}, {"y", Tensor::scalar(10.0f)}, {"n", Tensor::scalar(n)}});
    ASSERT_TRUE(o.is_ok()) << o.status().to_string();
    const float expected[] = {p, q, r, s};
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ((*o)[i].second.values<float>()[0], expected[i]) << i;
  }
}

TEST_P(LoopTest, TheIterationNumberMayBeCarriedStackedAndReturned) {
  GraphBuilder b(library_.ops());
  const auto out = repeat(
      b, b.input("n", kInt), {b.scalar<int64_t>(-1)},
      [&](Value iteration, auto) {
        return std::vector<Value>{iteration, iteration};
      },
      1);
  b.output("last", out[0]);
  b.output("all", out[1]);
  auto o = run_twice(b, {{"n", Tensor::scalar<int64_t>(5)}});
  ASSERT_TRUE(o.is_ok()) << o.status().to_string();
  EXPECT_EQ(values<int64_t>((*o)[0].second), std::vector<int64_t>{4});
  EXPECT_EQ(values<int64_t>((*o)[1].second), (std::vector<int64_t>{0, 1, 2, 3, 4}));
}

TEST_P(LoopTest, StacksOfZeroRowsHaveTheInferredShape) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {2, 3}));
  const auto out = repeat(
      b, b.input("n", kInt), {x},
      [&](Value, auto c) {
        return std::vector<Value>{c[0], b.op("Neg", {c[0]})};
      },
      1);
  b.output("rows", out[1]);
  auto o = run_twice(
      b, {{"x", Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6})}, {"n", Tensor::scalar<int64_t>(0)}});
  ASSERT_TRUE(o.is_ok()) << o.status().to_string();
  EXPECT_EQ((*o)[0].second.dims(), (Dims{0, 2, 3}));
  o = session_->run(
      {{"x", Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6})}, {"n", Tensor::scalar<int64_t>(2)}});
  EXPECT_EQ((*o)[0].second.dims(), (Dims{2, 2, 3}));
  EXPECT_EQ((*o)[0].second.values<float>()[11], -6.0f);
}

TEST_P(LoopTest, RowsOfUnequalShapeAreAnErrorThatNamesTheIteration) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {b.symbol("n")}));
  const auto out = repeat(
      b, b.scalar<int64_t>(5), {x},
      [&](Value, auto c) {
        const Value longer = b.op("Concat", {c[0], x}, {{"axis", int64_t{0}}});
        return std::vector<Value>{longer, longer};
      },
      1, "grow");
  b.output("rows", out[1]);
  const auto o = run_twice(b, {{"x", Tensor::of<float>({1}, {1})}});
  ASSERT_FALSE(o.is_ok());
  EXPECT_EQ(o.status().code(), StatusCode::kRunFailed);
  EXPECT_NE(o.status().message().find("iteration 1"), std::string::npos) << o.status().to_string();
}

TEST_P(LoopTest, CarriedShapesMayGrowAndShrink) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {1, 2}));
  const auto grown = repeat(b, b.input("n", kInt), {x}, [&](Value, auto c) {
    return std::vector<Value>{b.op("Concat", {c[0], x}, {{"axis", int64_t{0}}})};
  });
  const auto shrunk = repeat(b, b.input("m", kInt), {grown[0]}, [&](Value, auto c) {
    return std::vector<Value>{
        b.op("Slice", {c[0], b.int64s({1}), b.int64s({INT64_MAX}), b.int64s({0})})};
  });
  b.output("grown", grown[0]);
  b.output("shrunk", shrunk[0]);
  auto o = run_twice(b, {{"x", Tensor::of<float>({1, 2}, {1, 2})},
                         {"n", Tensor::scalar<int64_t>(100)},
                         {"m", Tensor::scalar<int64_t>(99)}});
  ASSERT_TRUE(o.is_ok()) << o.status().to_string();
  EXPECT_EQ((*o)[0].second.dims(), (Dims{101, 2}));
  EXPECT_EQ((*o)[1].second.dims(), (Dims{2, 2}));
  for (size_t i = 0; i < 202; ++i) EXPECT_EQ((*o)[0].second.values<float>()[i], i % 2 == 0 ? 1 : 2);
}

TEST_P(LoopTest, LoopsNestAndABodyMayEndInALoop) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", kFloat);
  const Value n = b.input("n", kInt);
  const Value m = b.input("m", kInt);
  const auto out = repeat(b, n, {x}, [&](Value, auto outer) {
    return repeat(b, m, {outer[0]}, [&](Value, auto inner) {
      return std::vector<Value>{b.op("Add", {inner[0], b.scalar(1.0f)})};
    });
  });
  b.output("y", out[0]);
  auto o = run_twice(b, {{"x", Tensor::scalar(0.0f)},
                         {"n", Tensor::scalar<int64_t>(13)},
                         {"m", Tensor::scalar<int64_t>(7)}});
  ASSERT_TRUE(o.is_ok()) << o.status().to_string();
  EXPECT_EQ(values<float>((*o)[0].second), std::vector<float>{91});
}

TEST_P(LoopTest, ManyLoopsStandSideBySideAndJoin) {
  GraphBuilder b(library_.ops());
  Value sum = b.scalar(0.0f);
  std::vector<Value> results;
  NamedTensors inputs;
  for (int64_t i = 0; i < 9; ++i) {
    const std::string name = "n" + std::to_string(i);
    const auto out = repeat(b, b.input(name, kInt), {b.scalar(0.0f)}, [&](Value, auto c) {
      return std::vector<Value>{b.op("Add", {c[0], b.scalar(1.0f)})};
    });
    results.push_back(out[0]);
    inputs.emplace_back(name, Tensor::scalar<int64_t>(i * 50));
  }
  for (Value result : results) sum = b.op("Add", {sum, result});
  b.output("sum", sum);
  auto o = run_twice(b, inputs);
  ASSERT_TRUE(o.is_ok()) << o.status().to_string();
  EXPECT_EQ(values<float>((*o)[0].second), std::vector<float>{36 * 50});
}

TEST_P(LoopTest, ABodyOfParallelChainsIsJoinedEachIteration) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", kFloat);
  const auto out = repeat(b, b.scalar<int64_t>(200), {x, x, x}, [&](Value, auto c) {
    const Value one = b.scalar(1.0f);
    const Value p = b.op("Add", {b.op("Mul", {c[0], one}), one});
    const Value q = b.op("Add", {b.op("Mul", {c[1], one}), one});
    const Value r = b.op("Sub", {b.op("Add", {p, q}), b.op("Add", {c[0], c[1]})});
    return std::vector<Value>{q, p, b.op("Add", {c[2], r})};
  });
  for (size_t i = 0; i < 3; ++i) b.output("o" + std::to_string(i), out[i]);
  auto o = run_twice(b, {{"x", Tensor::scalar(0.0f)}});
  ASSERT_TRUE(o.is_ok()) << o.status().to_string();
  EXPECT_EQ((*o)[0].second.values<float>()[0], 200.0f);
  EXPECT_EQ((*o)[1].second.values<float>()[0], 200.0f);
  EXPECT_EQ((*o)[2].second.values<float>()[0], 400.0f);
}

TEST_P(LoopTest, AnEmptyBodyWithATripLimitEnds) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", kFloat);
  const Value yes = b.scalar(true);
  const auto out = b.while_loop(
      {.initial = {x}, .trip_limit = b.input("n", kInt)},
      [&](Value, std::span<const Value> c) {
        return WhileTest{yes, {c[0]}};
      },
      [&](Value, std::span<const Value> f) { return std::vector<Value>{f[0]}; });
  b.output("y", out[0]);
  for (int64_t n : {-3, 0, 1, 1000}) {
    if (session_ == nullptr) session_ = make_session(b);
    auto o = session_->run({{"x", Tensor::scalar(5.0f)}, {"n", Tensor::scalar(n)}});
    ASSERT_TRUE(o.is_ok()) << o.status().to_string();
    EXPECT_EQ((*o)[0].second.values<float>()[0], 5.0f);
    EXPECT_EQ(session_->loop_reports()[0].iterations, std::max<int64_t>(n, 0));
  }
}

TEST_P(LoopTest, AFailureNamesItsNodeAndIterations) {
  GraphBuilder b(library_.ops());
  const Value table = b.input("table", tensor_type(ElementType::kFloat, {4}));
  const auto out = repeat(
      b, b.scalar<int64_t>(3), {b.scalar(0.0f)},
      [&](Value i, auto outer) {
        return repeat(
            b, b.scalar<int64_t>(3), {outer[0]},
            [&](Value j, auto inner) {
              const Value at = b.op("Add", {i, j});
              const Value next = b.op("Gather", {table, at}, {}, {.name = "look_up"});
              return std::vector<Value>{b.op("Add", {inner[0], next})};
            },
            0, "inner");
      },
      0, "outer");
  b.output("y", out[0]);
  const auto o = run_twice(b, {{"table", Tensor::of<float>({4}, {1, 2, 3, 4})}});
  ASSERT_FALSE(o.is_ok());
  EXPECT_EQ(o.status().path(), "outer[2]/inner[2]/look_up") << o.status().to_string();
}

TEST_P(LoopTest, CallersInputsAreNeverWritten) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {2}));
  const auto out = repeat(b, b.scalar<int64_t>(10), {x}, [&](Value, auto c) {
    return std::vector<Value>{b.op("Add", {c[0], c[0]})};
  });
  b.output("y", out[0]);
  const Tensor input = Tensor::of<float>({2}, {1, 2});
  auto o = run_twice(b, {{"x", input}});
  ASSERT_TRUE(o.is_ok()) << o.status().to_string();
  EXPECT_EQ(values<float>(input), (std::vector<float>{1, 2}));
  EXPECT_EQ(values<float>((*o)[0].second), (std::vector<float>{1024, 2048}));
}

// Where a loop knows how often it runs when it is entered, again and again, more often or less.
TEST(LoopRows, StacksOfAKnownNumberOfRowsTakeTheirBytesAndNoMore) {
  constexpr int64_t kWidth = 16;
  const Library library;
  GraphBuilder b(library.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {kWidth}));
  const auto out = b.while_loop(
      {.initial = {x}, .trip_limit = b.input("n", kInt), .num_scan_outputs = 1},
      [&](Value, std::span<const Value> c) {
        return WhileTest{b.scalar(true), {c[0]}};
      },
      [&](Value, std::span<const Value> f) {
        return std::vector<Value>{b.op("Add", {f[0], b.scalar(1.0f)}), f[0]};
      });
  b.output("rows", out[1]);
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  auto session = Session::create(library, std::move(*graph), {.num_threads = 1});
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  for (const int64_t trips : {1, 1000, 300, 0, 1100, 3, 20'000, 40'000}) {
    const auto made = (*session)->run(
        {{"x", Tensor::zeros(ElementType::kFloat, {kWidth})}, {"n", Tensor::scalar(trips)}});
    ASSERT_TRUE(made.is_ok()) << made.status().to_string();
    const auto rows = (*made)[0].second.values<float>();
    ASSERT_EQ(rows.size(), static_cast<size_t>(trips * kWidth));
    for (size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(rows[i], static_cast<float>(i / kWidth));
    const size_t bytes = static_cast<size_t>(trips * kWidth) * sizeof(float);
    const size_t peak = (*session)->memory().peak_bytes;
    printf("%ld rows: %zu bytes, %zu at the peak\n", static_cast<long>(trips), bytes, peak);
    if (trips == 1000 || trips == 40'000) {
      EXPECT_LE(peak, bytes * 5 / 4 + 1024);
    }
  }
}

// Rows to come, of which the loop makes four before a node fails, do not fit into the limit.
TEST(LoopRows, MemoryForRowsThatNeverComeIsNotRequired) {
  const Library library;
  GraphBuilder b(library.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {4}));
  const auto out = b.while_loop(
      {.name = "rows",
       .initial = {x},
       .trip_limit = b.scalar(int64_t{1} << 40),
       .num_scan_outputs = 1},
      [&](Value, std::span<const Value> c) {
        return WhileTest{b.scalar(true), {c[0]}};
      },
      [&](Value iteration, std::span<const Value> f) {
        return std::vector<Value>{f[0], b.op("Gather", {f[0], iteration}, {}, {.name = "look_up"})};
      });
  b.output("rows", out[1]);
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  auto session = Session::create(library, std::move(*graph),
                                 {.num_threads = 1, .memory_limit_bytes = size_t{900} << 10});
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  const Status failed = (*session)->run({{"x", Tensor::of<float>({4}, {1, 2, 3, 4})}}).status();
  EXPECT_EQ(failed.path(), "rows[4]/look_up") << failed.to_string();
}

EDDY_IN_ALL_WAYS(LoopTest);

}  // namespace
}  // namespace eddy
