// Claim: the next iteration of a loop begins while the tail of the last one still runs, and only
// the time differs: results, rows, messages, cancelling and repeating are the same as without
// overlap, for every driver.
#include <map>

#include "runtime/execute/run_state.h"
#include "runtime/execute/step_observer.h"
#include "runtime/virtual/virtual_device.h"
#include "tests/runtime/testing/ways.h"

namespace eddy {
namespace {

using testing::Way;
using testing::WaysTest;

const ValueType kFloat = tensor_type(ElementType::kFloat, {});
const ValueType kInt = tensor_type(ElementType::kInt64, {});
constexpr int kTailNodes = 6;

// c' = c + 1 in two steps; row = c - 6 in as many steps, which nothing carried needs.
std::vector<Value> add_loop(GraphBuilder& b, Value initial, Value limit, std::string name) {
  return b.while_loop(
      {.name = name, .initial = {initial}, .num_scan_outputs = 1},
      [&](Value i, ValueSpan c) {
        return WhileTest{b.op("Less", {i, limit}), {c[0]}};
      },
      [&](Value, ValueSpan f) {
        const Value half = b.scalar(0.5f);
        const Value one = b.scalar(1.0f);
        const Value middle = b.op("Add", {f[0], half}, {}, {.name = "carried1"});
        const Value next = b.op("Add", {middle, half}, {}, {.name = "carried2"});
        Value row = f[0];
        for (int t = 0; t < kTailNodes; ++t) {
          row = b.op("Sub", {row, one}, {}, {.name = "tail" + std::to_string(t)});
        }
        return std::vector<Value>{next, row};
      });
}

std::vector<float> expected_rows(int64_t n, float x) {
  std::vector<float> rows;
  for (int64_t i = 0; i < n; ++i) rows.push_back(x + static_cast<float>(i) - kTailNodes);
  return rows;
}

Graph make_graph(const Library& library) {
  GraphBuilder b(library.ops());
  const auto out = add_loop(b, b.input("x", kFloat), b.input("n", kInt), "loop");
  b.output("y", out[0]);
  b.output("rows", out[1]);
  auto graph = b.finish();
  EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
  return std::move(*graph);
}

uint32_t count_open(const Session& session) {
  uint32_t count = 0;
  for (const Program::Loop& loop : session.plan().program.loops) count += loop.is_pipelined;
  return count;
}

// Tails move only when nothing else can: lanes are numbered in the order of their strands.
class MainFirst : public Chooser {
 public:
  size_t choose(std::span<const LaneNumber> ready) override {
    return static_cast<size_t>(std::ranges::min_element(ready) - ready.begin());
  }
};

// Which node has run how often, step by step.
class Order : public StepObserver {
 public:
  Status before(RunState& state, const Step& step) override {
    if (step.kind != StepKind::kExec) return Status::ok();
    const std::string& name = state.graph().node(step.node).name;
    began_[{name, num_begun_[name]++}] = time_++;
    return Status::ok();
  }
  void after(RunState&, const Step&, int32_t) override {}
  // Steps before the node's run in iteration i.
  int time(const std::string& name, int i) const { return began_.at({name, i}); }

 private:
  int time_ = 0;
  std::map<std::string, int> num_begun_;
  std::map<std::pair<std::string, int>, int> began_;
};

SessionOptions main_first(MainFirst& chooser, Order& order,
                          std::shared_ptr<VirtualDevice>* device_or_null = nullptr) {
  SessionOptions options;
  options.assignment = Assignment::kRank;
  options.loops = Loops::kDevice;
  options.simplify = false;
  options.observer_or_null = &order;
  options.make_device = [&chooser, device_or_null]() -> Result<std::shared_ptr<Device>> {
    VirtualDeviceOptions device_options;
    device_options.engine.chooser_or_null = &chooser;
    auto device = std::make_shared<VirtualDevice>(device_options);
    if (device_or_null != nullptr) *device_or_null = device;
    return std::shared_ptr<Device>(device);
  };
  return options;
}

TEST(OpenLoopTest, TheNextIterationBeginsBeforeTheTailHasEnded) {
  const Library library;
  MainFirst chooser;
  Order order;
  std::shared_ptr<VirtualDevice> device;
  const SessionOptions options = main_first(chooser, order, &device);
  auto session = Session::create(library, make_graph(library), options);
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  ASSERT_EQ(count_open(**session), 1u);
  constexpr int kTrips = 6;
  const auto outputs =
      (*session)->run({{"x", Tensor::scalar(1.0f)}, {"n", Tensor::scalar(int64_t{kTrips})}});
  ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
  EXPECT_EQ((*outputs)[0].second.values<float>()[0], 1.0f + kTrips);
  const std::string last = "tail" + std::to_string(kTailNodes - 1);
  for (int i = 0; i + 1 < kTrips; ++i) {
    // Even its first node, which reads the carried value, may run later, but not two iterations.
    EXPECT_LT(order.time("carried2", i + 1), order.time("tail0", i)) << "iteration " << i;
    if (i + 2 < kTrips) {
      EXPECT_LT(order.time(last, i), order.time("carried1", i + 2));
    }
  }
  EXPECT_TRUE(device->violations().empty());
}

// Three rows, each of which reads at its end what moves on with the iteration: the carried value,
// what it becomes, and the iteration's number.
std::vector<Value> late_reading_loop(GraphBuilder& b, Value initial, Value limit,
                                     uint32_t num_rows = 3) {
  return b.while_loop(
      {.name = "loop", .initial = {initial}, .num_scan_outputs = num_rows},
      [&](Value i, ValueSpan c) {
        return WhileTest{b.op("Less", {i, limit}), {c[0]}};
      },
      [&](Value i, ValueSpan f) {
        const Value one = b.scalar(1.0f);
        const auto step = [&](const char* op, Value x, Value y, std::string name) {
          return b.op(op, {x, y}, {}, {.name = std::move(name)});
        };
        const Value middle = step("Add", f[0], b.scalar(0.5f), "carried1");
        const Value next = step("Add", middle, b.scalar(0.5f), "carried2");
        std::vector<Value> results = {next};
        std::vector<Value> reads = {f[0]};
        if (num_rows > 1) reads = {f[0], next, b.cast(i, ElementType::kFloat)};
        for (const Value read : reads) {
          const std::string name = "row" + std::to_string(results.size());
          Value row = f[0];
          for (int t = 0; t < 3; ++t) row = step("Sub", row, one, name + std::to_string(t));
          results.push_back(step("Mul", row, read, name));
        }
        return results;
      });
}

TEST(OpenLoopTest, ATailThatReadsACarriedValueAtItsEndDoesNotHoldItUp) {
  const Library library;
  for (const bool has_block : {false, true}) {
    MainFirst chooser;
    Order order;
    GraphBuilder b(library.ops());
    const auto out = late_reading_loop(b, b.input("x", kFloat), b.input("n", kInt), 1);
    b.output("y", has_block ? b.op("Neg", {out[0]}) : out[0]);  // what leaves has no block
    b.output("rows", out[1]);
    auto graph = b.finish();
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    auto session = Session::create(library, std::move(*graph), main_first(chooser, order));
    ASSERT_TRUE(session.is_ok()) << session.status().to_string();
    ASSERT_EQ(count_open(**session), 1u);
    const auto outputs =
        (*session)->run({{"x", Tensor::scalar(1.0f)}, {"n", Tensor::scalar(int64_t{6})}});
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    for (int i = 0; i + 1 < 6; ++i) {
      SCOPED_TRACE(::testing::Message() << "iteration " << i);
      EXPECT_LT(order.time("carried1", i + 1), order.time("row1", i));
      // It reads the block that is written next; a reference of its own does not make another.
      EXPECT_EQ(order.time("row1", i) < order.time("carried2", i + 1), has_block);
    }
  }
}

class OpenLoopWays : public WaysTest {
 protected:
  SessionOptions options() const {
    SessionOptions options = WaysTest::options();
    options.simplify = false;
    return options;
  }
};

TEST_P(OpenLoopWays, GivesWhatAClosedLoopGives) {
  auto session = Session::create(library_, make_graph(library_), options());
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  EXPECT_EQ(count_open(**session), GetParam().assignment == Assignment::kRank ? 1u : 0u);
  for (int64_t n : {0, 1, 2, 3, 1000, 7, 0}) {
    const auto outputs = (*session)->run({{"x", Tensor::scalar(2.0f)}, {"n", Tensor::scalar(n)}});
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    EXPECT_EQ((*outputs)[0].second.values<float>()[0], 2.0f + static_cast<float>(n));
    EXPECT_EQ(values<float>((*outputs)[1].second), expected_rows(n, 2.0f));
    EXPECT_EQ((*session)->loop_reports()[0].iterations, n);
  }
}

TEST_P(OpenLoopWays, ALoopInALoopIsEnteredAgain) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", kFloat);
  const Value n = b.input("n", kInt);
  const Value one = b.scalar(int64_t{1});
  const auto out = b.while_loop(
      {.name = "outer", .initial = {x, b.scalar(int64_t{0})}, .trip_limit = b.scalar(int64_t{5})},
      [&](Value, ValueSpan c) {
        return WhileTest{b.scalar(true), {c[0], c[1]}};
      },
      [&](Value, ValueSpan f) {  // 0, 1, 2, … trips of the inner loop
        const auto inner = add_loop(b, f[0], b.op("Min", {f[1], n}), "inner");
        const Value sum = b.op("ReduceSum", {inner[1]}, {{"keepdims", int64_t{0}}});
        return std::vector<Value>{b.op("Add", {inner[0], sum}), b.op("Add", {f[1], one})};
      });
  b.output("y", out[0]);
  session_ = make_session(b);
  for (int64_t limit : {0, 2, 100}) {
    float expected = 1.0f;
    for (int64_t trips = 0; trips < 5; ++trips) {
      float next = expected + static_cast<float>(std::min(trips, limit));
      for (const float row : expected_rows(std::min(trips, limit), expected)) next += row;
      expected = next;
    }
    const auto outputs = session_->run({{"x", Tensor::scalar(1.0f)}, {"n", Tensor::scalar(limit)}});
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    EXPECT_EQ((*outputs)[0].second.values<float>()[0], expected);
  }
}

TEST_P(OpenLoopWays, ATailMayReadCarriedValuesThatHaveMovedOn) {
  GraphBuilder b(library_.ops());
  const auto out = late_reading_loop(b, b.input("x", kFloat), b.input("n", kInt));
  for (size_t k = 0; k < out.size(); ++k) b.output("y" + std::to_string(k), out[k]);
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  auto session = Session::create(library_, std::move(*graph), options());
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  EXPECT_EQ(count_open(**session), GetParam().assignment == Assignment::kRank ? 1u : 0u);
  for (int64_t n : {0, 1, 2, 3, 500, 7}) {
    const auto outputs = (*session)->run({{"x", Tensor::scalar(5.0f)}, {"n", Tensor::scalar(n)}});
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    std::vector<float> rows[3];
    for (int64_t i = 0; i < n; ++i) {
      const float x = 5.0f + static_cast<float>(i);
      rows[0].push_back((x - 3) * x);
      rows[1].push_back((x - 3) * (x + 1));
      rows[2].push_back((x - 3) * static_cast<float>(i));
    }
    for (size_t k = 0; k < 3; ++k) {
      EXPECT_EQ(values<float>((*outputs)[k + 1].second), rows[k]) << "row " << k;
    }
  }
}

// The length changes with each iteration, so nothing is laid out and references keep memory alive.
TEST_P(OpenLoopWays, ATailMayReadAGrowingValueThatHasMovedOn) {
  GraphBuilder b(library_.ops());
  const Value n = b.input("n", kInt);
  const Value one = b.tensor<float>({1}, {1});
  const auto out = b.while_loop(
      {.name = "loop",
       .initial = {b.input("x", tensor_type(ElementType::kFloat, {kUnknownDim}))},
       .num_scan_outputs = 1},
      [&](Value i, ValueSpan c) {
        return WhileTest{b.op("Less", {i, n}), {c[0]}};
      },
      [&](Value, ValueSpan f) {
        const Value doubled = b.op("Add", {f[0], f[0]});
        const Value next =
            b.op("Concat", {b.op("Sub", {doubled, f[0]}), one}, {{"axis", int64_t{0}}});
        Value sum = b.op("ReduceSum", {f[0]}, {{"keepdims", int64_t{0}}});
        for (int t = 0; t < 3; ++t) sum = b.op("Neg", {sum});
        const Value all = b.op("ReduceSum", {b.op("Mul", {f[0], sum})}, {{"keepdims", int64_t{0}}});
        return std::vector<Value>{next, all};
      });
  b.output("y", out[0]);
  b.output("rows", out[1]);
  session_ = make_session(b);
  for (int64_t trips : {4, 0, 1, 60, 3}) {
    const auto outputs =
        session_->run({{"x", Tensor::of<float>({2}, {1, 1})}, {"n", Tensor::scalar(trips)}});
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    std::vector<float> rows;
    for (int64_t i = 0; i < trips; ++i) rows.push_back(-static_cast<float>((i + 2) * (i + 2)));
    EXPECT_EQ(values<float>((*outputs)[1].second), rows);
    EXPECT_EQ(values<float>((*outputs)[0].second),
              std::vector<float>(static_cast<size_t>(trips) + 2, 1.0f));
  }
}

// One stands in the stream that goes on with the next iteration, one in the tail.
TEST_P(OpenLoopWays, OpenLoopsInAnOpenLoopGiveWhatClosedOnesGive) {
  GraphBuilder b(library_.ops());
  const Value n = b.input("n", kInt);
  const Value one = b.scalar(1.0f);
  const auto out = b.while_loop(
      {.name = "outer", .initial = {b.input("x", kFloat)}, .trip_limit = n, .num_scan_outputs = 2},
      [&](Value, ValueSpan c) {
        return WhileTest{b.scalar(true), {c[0]}};
      },
      [&](Value, ValueSpan f) {
        const auto main = add_loop(b, b.op("Add", {f[0], one}), n, "main");
        const auto tail = add_loop(b, b.op("Sub", {f[0], one}), n, "tail");
        const Value next = b.op("Add", {b.op("Add", {main[0], one}), one});
        const Value row = b.op("Neg", {b.op("Neg", {tail[0]})});
        return std::vector<Value>{next, row, tail[1]};
      });
  for (size_t k = 0; k < out.size(); ++k) b.output("y" + std::to_string(k), out[k]);
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  auto session = Session::create(library_, std::move(*graph), options());
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  EXPECT_EQ(count_open(**session), GetParam().assignment == Assignment::kRank ? 3u : 0u);
  for (int64_t trips : {3, 0, 1, 2, 9}) {
    const auto outputs =
        (*session)->run({{"x", Tensor::scalar(4.0f)}, {"n", Tensor::scalar(trips)}});
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    float x = 4.0f;
    std::vector<float> last, all;
    for (int64_t i = 0; i < trips; ++i) {
      last.push_back(x - 1 + static_cast<float>(trips));
      for (const float row : expected_rows(trips, x - 1)) all.push_back(row);
      x += 3 + static_cast<float>(trips);
    }
    EXPECT_EQ((*outputs)[0].second.values<float>()[0], x);
    EXPECT_EQ(values<float>((*outputs)[1].second), last);
    EXPECT_EQ(values<float>((*outputs)[2].second), all);
  }
}

TEST_P(OpenLoopWays, AFailureInATailNamesItsIteration) {
  GraphBuilder b(library_.ops());
  const Value data = b.tensor<float>({3}, {1, 2, 3});
  const Value n = b.input("n", kInt);
  const auto out = b.while_loop(
      {.name = "loop", .initial = {b.scalar(int64_t{0})}, .num_scan_outputs = 1},
      [&](Value, ValueSpan c) {
        return WhileTest{b.op("Less", {c[0], n}), {c[0]}};
      },
      [&](Value, ValueSpan f) {
        const Value half = b.op("Add", {f[0], b.scalar(int64_t{1})});
        const Value next = b.op("Mul", {half, b.scalar(int64_t{1})});
        Value at = f[0];
        for (int t = 0; t < 4; ++t) at = b.op("Mul", {at, b.scalar(int64_t{1})});
        return std::vector<Value>{next, b.op("Gather", {data, at}, {}, {.name = "pick"})};
      });
  b.output("rows", out[1]);
  session_ = make_session(b);
  for (int repeat = 0; repeat < 20; ++repeat) {
    const auto failed = session_->run({{"n", Tensor::scalar(int64_t{100})}});
    ASSERT_FALSE(failed.is_ok());
    EXPECT_EQ(failed.status().path(), "loop[3]/pick") << failed.status().to_string();
    const auto fine = session_->run({{"n", Tensor::scalar(int64_t{3})}});
    ASSERT_TRUE(fine.is_ok()) << fine.status().to_string();
    EXPECT_EQ(values<float>((*fine)[0].second), (std::vector<float>{1, 2, 3}));
  }
}

TEST_P(OpenLoopWays, AnEndlessLoopIsCancelled) {
  auto session = Session::create(library_, make_graph(library_), options());
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  for (int repeat = 0; repeat < 3; ++repeat) {
    RunOptions run_options;
    run_options.timeout = std::chrono::milliseconds(20);
    const auto outputs = (*session)->run(
        {{"x", Tensor::scalar(2.0f)}, {"n", Tensor::scalar(INT64_MAX)}}, run_options);
    EXPECT_EQ(outputs.status().code(), StatusCode::kDeadlineExceeded);
  }
  const auto outputs =
      (*session)->run({{"x", Tensor::scalar(2.0f)}, {"n", Tensor::scalar(int64_t{4})}});
  ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
  EXPECT_EQ(values<float>((*outputs)[1].second), expected_rows(4, 2.0f));
}

EDDY_IN_ALL_WAYS(OpenLoopWays);

}  // namespace
}  // namespace eddy
