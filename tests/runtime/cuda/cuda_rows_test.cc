// Claim: a loop that a GPU drives by itself (a fake driver's) stacks its rows as the CPU does, bit
// for bit: rows that it makes, carries or tests, small ones and those of many blocks, of several
// iterations a round, none of them where it ends at once; with limits that change from run to run,
// results that are kept, and in a caller's memory; again and again inside another loop. Where it
// cannot, the host does, and the report says why. Stopped or lost it ends, and nothing is left
// behind; whatever call fails, the run is right or says why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "graph/ir/builder.h"
#include "runtime/api/session.h"
#include "runtime/execute/control/device_control.h"
#include "tests/runtime/cuda/cuda_session_fixture.h"
#include "tests/runtime/cuda/loop_shapes.h"
#include "tools/check/oracle.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;

Tensor ramp(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(0.125f * static_cast<float>(i % 50));
  return Tensor::of<float>({count}, values);
}

// Carries x and the sum of its rounds; rows: what x was, what it becomes, what the test has read.
// Ends by the limit or once x[0] has passed the bound.
struct Shape {
  int64_t width = 8;
  bool has_limit = true;
  bool reads_rows = true;  // the graph gives them
};
Build stacking(Shape shape) {
  return [=](GraphBuilder& b) {
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {shape.width}));
    const Value limit = b.input("limit", tensor_type(ElementType::kInt64, {}));
    const Value bound = b.input("bound", tensor_type(ElementType::kFloat, {}));
    const auto results = b.while_loop(
        {.name = "steps",
         .initial = {x, x},
         .trip_limit = shape.has_limit ? limit : Value(),
         .num_scan_outputs = 3},
        [&](Value, ValueSpan v) {
          const Value low = b.op("ReduceMin", {v[0]}, {{"keepdims", int64_t{0}}});
          return WhileTest{b.op("Less", {low, bound}), {v[0], v[1], low}};
        },
        [&](Value, ValueSpan v) {
          const Value next = b.op("Add", {b.op("Mul", {v[0], b.scalar(0.5f)}), b.scalar(0.75f)});
          return std::vector<Value>{next, b.op("Add", {v[1], next}), v[0], next, v[2]};
        });
    b.output("sum", results[1]);
    if (!shape.has_limit) b.output("limit_was", b.op("Identity", {limit}));
    if (!shape.reads_rows) return;
    b.output("was", results[3]);
    b.output("next", results[4]);
    b.output("low", results[5]);
  };
}

class CudaRowsTest : public CudaSessionFixture {
 protected:
  void make(const Build& build, Loops loops = Loops::kAuto) {
    cpu_ = std::move(*Session::create(library_, graph_of(build), {}));
    session_.reset();
    use_fake();
    session_ = make_or_null(graph_of(build), {.loops = loops});
  }
  static NamedTensors inputs(int64_t width, int64_t limit, float bound) {
    return {{"x", ramp(width)}, {"limit", Tensor::scalar(limit)}, {"bound", Tensor::scalar(bound)}};
  }
  // The CPU's bits and trips; what the loop was driven by.
  LoopReport expect_cpus_bits(const NamedTensors& inputs) {
    const auto expected = cpu_->run(inputs);
    EXPECT_TRUE(expected.is_ok()) << expected.status().to_string();
    const auto outputs = session_->run(inputs);
    EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    if (!expected.is_ok() || !outputs.is_ok()) return {};
    EXPECT_EQ(check::difference(*expected, *outputs), "");
    const LoopReport report = session_->loop_reports().at(0);
    EXPECT_EQ(report.iterations, cpu_->loop_reports().at(0).iterations);
    return report;
  }

  std::unique_ptr<Session> cpu_;
  std::unique_ptr<Session> session_;
};

TEST_P(CudaRowsTest, RowsOfEverySizeAreTheCpus) {
  // One element; a block; some blocks that one does the work of; many. Rows of 7 and 1001 do not
  // all begin at a word, so other threads copy them than what they are made of.
  for (const int64_t width : {1, 7, 8, 1000, 1001, 3000, 40'000}) {
    SCOPED_TRACE(width);
    make(stacking({.width = width}));
    EXPECT_EQ(expect_cpus_bits(inputs(width, 9, 100.0f)).driven, "device");
    EXPECT_EQ(expect_cpus_bits(inputs(width, 9, 100.0f)).driven, "device");
  }
}

// Of one byte and two an element and an odd number of these, without elements, one value as two
// rows; and the predicate itself, which the host has.
Build many_rows(bool has_predicate) {
  return [=](GraphBuilder& b) {
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {7}));
    const Value limit = b.input("limit", tensor_type(ElementType::kInt64, {}));
    const Value bound = b.input("bound", tensor_type(ElementType::kFloat, {}));
    const auto results = b.while_loop(
        {.name = "steps",
         .initial = {x},
         .trip_limit = limit,
         .num_scan_outputs = has_predicate ? 8u : 7u},
        [&](Value, ValueSpan v) {
          const Value low = b.op("ReduceMin", {v[0]}, {{"keepdims", int64_t{0}}});
          const Value goes_on = b.op("Less", {low, bound});
          return has_predicate ? WhileTest{goes_on, {v[0], goes_on}} : WhileTest{goes_on, {v[0]}};
        },
        [&](Value, ValueSpan v) {
          const Value next = b.op("Add", {b.op("Mul", {v[0], b.scalar(0.5f)}), b.scalar(0.75f)});
          const Value large = b.op("Greater", {next, b.scalar(1.0f)});
          const Value half = b.op("Cast", {next}, {{"to", int64_t{10}}});
          const Value byte = b.op("Cast", {next}, {{"to", int64_t{3}}});
          const Value none = b.op("Slice", {next, b.int64s({0}), b.int64s({0})});
          std::vector<Value> made = {next,  large, half, byte,
                                     large, next,  none, b.op("Neg", {next})};
          if (has_predicate) made.push_back(v[1]);
          return made;
        });
    for (size_t i = 0; i < results.size(); ++i) b.output("y" + std::to_string(i), results[i]);
  };
}

TEST_P(CudaRowsTest, RowsOfAnyTypeAreTheCpus) {
  for (const bool has_predicate : {false, true}) {
    make(many_rows(has_predicate));
    for (const int64_t limit : {5, 1, 0, -3, 6}) {
      SCOPED_TRACE(limit);
      const LoopReport report = expect_cpus_bits(inputs(7, limit, 100.0f));
      EXPECT_EQ(report.driven, has_predicate ? "host" : "device") << report.reason;
    }
    expect_cpus_bits(inputs(7, 20, 1.25f));
  }
}

TEST_P(CudaRowsTest, RowsWithoutElementsHaveRoomForAnyLimit) {
  make([](GraphBuilder& b) {
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {8}));
    const Value limit = b.input("limit", tensor_type(ElementType::kInt64, {}));
    const Value bound = b.input("bound", tensor_type(ElementType::kFloat, {}));
    const auto results = b.while_loop(
        {.name = "steps", .initial = {x}, .trip_limit = limit, .num_scan_outputs = 1},
        [&](Value, ValueSpan v) {
          const Value low = b.op("ReduceMin", {v[0]}, {{"keepdims", int64_t{0}}});
          return WhileTest{b.op("Less", {low, bound}), {v[0]}};
        },
        [&](Value, ValueSpan v) {
          const Value next = b.op("Add", {v[0], b.scalar(0.75f)});
          return std::vector<Value>{next, b.op("Slice", {next, b.int64s({0}), b.int64s({0})})};
        });
    b.output("x_last", results[0]);
    b.output("none", results[1]);
  });
  for (const int64_t limit : {int64_t{4}, int64_t{1} << 40, std::numeric_limits<int64_t>::max()}) {
    SCOPED_TRACE(limit);
    expect_cpus_bits(inputs(8, limit, 4.0f));
  }
}

TEST_P(CudaRowsTest, RunsAtOnceStackRowsOfTheirOwn) {
  make(stacking({}));
  std::vector<NamedTensors> given, expected;
  for (int64_t i = 0; i < 4; ++i) {
    given.push_back(inputs(8, 3 + 4 * i, 100.0f));
    expected.push_back(std::move(*cpu_->run(given.back())));
  }
  std::vector<std::string> wrong(given.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < given.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int repeat = 0; repeat < 5; ++repeat) {
        const auto outputs = session_->run(given[i]);
        wrong[i] += outputs.is_ok() ? check::difference(expected[i], *outputs)
                                    : outputs.status().to_string();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, ::testing::Each(""));
}

TEST_P(CudaRowsTest, ItsNumberIsWhatTheLoopHasMade) {
  make(stacking({}));
  // Ended by the limit and by the values, at once, for ever longer limits and shorter ones.
  for (const auto& [limit, bound] : std::initializer_list<std::pair<int64_t, float>>{{3, 100.0f},
                                                                                     {5, 100.0f},
                                                                                     {0, 100.0f},
                                                                                     {50, 1.25f},
                                                                                     {7, -1.0f},
                                                                                     {200, 100.0f},
                                                                                     {2, 100.0f}}) {
    SCOPED_TRACE(limit);
    EXPECT_EQ(expect_cpus_bits(inputs(8, limit, bound)).driven, "device");
  }
  EXPECT_LE(fake_->cuda().num_loop_instantiations(), DeviceControl::kMostLaunches)
      << "what has room for more rows serves for fewer";
}

TEST_P(CudaRowsTest, SeveralIterationsARoundStackOneEach) {
  for (const int64_t width : {1, 8, 3000}) {
    SCOPED_TRACE(width);
    cpu_ = std::move(*Session::create(library_, graph_of(stacking({.width = width})), {}));
    session_.reset();
    use_fake();
    SessionOptions options;
    options.only_loop_way = LoopChoice::Way::kUnrolled;
    options.make_devices = {fake_->maker()};
    session_ = std::move(*Session::create(library_, graph_of(stacking({.width = width})), options));
    for (const int64_t limit : {1, 6, 17}) expect_cpus_bits(inputs(width, limit, 100.0f));
  }
}

TEST_P(CudaRowsTest, WhatARunHasGivenStaysWhatItWas) {
  make(stacking({}));
  std::vector<std::pair<NamedTensors, NamedTensors>> kept;
  for (int64_t limit = 1; limit <= 6; ++limit) {
    const NamedTensors given = inputs(8, limit, 100.0f);
    kept.emplace_back(std::move(*cpu_->run(given)), std::move(*session_->run(given)));
  }
  for (const auto& [expected, outputs] : kept) {
    EXPECT_EQ(check::difference(expected, outputs), "");
  }
}

TEST_P(CudaRowsTest, ACallersMemoryGetsThem) {
  make(stacking({}));
  const auto call = std::move(*session_->prepare());
  const NamedTensors given = inputs(8, 5, 100.0f);
  for (size_t i = 0; i < given.size(); ++i) {
    ASSERT_TRUE(call->bind_input(i, given[i].second.view()).is_ok());
  }
  std::vector<float> was(5 * 8), next(5 * 8);
  const int64_t dims[] = {5, 8};
  ASSERT_TRUE(call->bind_output(1, TensorView{was.data(), dims, 2, ElementType::kFloat}).is_ok());
  ASSERT_TRUE(call->bind_output(2, TensorView{next.data(), dims, 2, ElementType::kFloat}).is_ok());
  for (int repeat = 0; repeat < 2; ++repeat) {
    std::ranges::fill(was, -1.0f);
    std::ranges::fill(next, -1.0f);
    const Status status = call->run();
    ASSERT_TRUE(status.is_ok()) << status.to_string();
    const NamedTensors expected = std::move(*cpu_->run(given));
    EXPECT_TRUE(std::ranges::equal(was, expected[1].second.values<float>()));
    EXPECT_TRUE(std::ranges::equal(next, expected[2].second.values<float>()));
  }
}

TEST_P(CudaRowsTest, WhereItCannotTheHostDoesAndSaysWhy) {
  make(stacking({.has_limit = false}));
  EXPECT_THAT(expect_cpus_bits(inputs(8, 0, 1.25f)).reason,
              HasSubstr("the rows of steps have no limit"));
  make(stacking({.width = 8}));
  const LoopReport report = expect_cpus_bits(inputs(8, int64_t{1} << 40, 1.25f));
  EXPECT_EQ(report.driven, "host");
  EXPECT_THAT(report.reason, HasSubstr("take more than 256 MiB"));
  EXPECT_EQ(expect_cpus_bits(inputs(8, 5, 1.25f)).driven, "device") << "the next run may";
}

TEST_P(CudaRowsTest, RowsThatAreTakenAsTheyComeAreTheHosts) {
  make(stacking({}));
  const NamedTensors given = inputs(8, 6, 100.0f);
  const NamedTensors expected = std::move(*cpu_->run(given));
  for (const bool streams : {false, true, false}) {
    const auto rows = std::make_shared<OutputStream>(100);
    RunOptions options;
    if (streams) options.streams = {{"next", rows}};
    const auto outputs = session_->run(given, options);
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    EXPECT_EQ(check::difference(expected, *outputs), "");
    const LoopReport report = session_->loop_reports().at(0);
    EXPECT_EQ(report.driven, streams ? "host" : "device") << report.reason;
    if (!streams) continue;
    EXPECT_THAT(report.reason, HasSubstr("its rows are taken as they come"));
    int num_rows = 0;
    while (rows->next()) ++num_rows;
    EXPECT_EQ(num_rows, 6);
  }
}

// Inside a loop that the host drives, because it makes a row: each time other rows, of another
// number, over which the sum goes on.
TEST_P(CudaRowsTest, ALoopThatRunsAgainAndAgainStacksAnew) {
  make([](GraphBuilder& b) {
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {8}));
    const auto outer = b.while_loop(
        {.name = "outer",
         .initial = {x},
         .trip_limit = b.scalar(int64_t{7}),
         .num_scan_outputs = 1},
        [&](Value, ValueSpan v) {
          return WhileTest{b.scalar(true), {v[0]}};
        },
        [&](Value turn, ValueSpan v) {
          const auto inner = b.while_loop(
              {.name = "inner", .initial = {v[0]}, .trip_limit = turn, .num_scan_outputs = 1},
              [&](Value, ValueSpan w) {
                const Value low = b.op("ReduceMin", {w[0]}, {{"keepdims", int64_t{0}}});
                return WhileTest{b.op("Less", {low, b.scalar(4.0f)}), {w[0]}};
              },
              [&](Value, ValueSpan w) {
                const Value next = b.op("Add", {w[0], b.scalar(0.75f)});
                return std::vector<Value>{next, next};
              });
          const Value sum =
              b.op("ReduceSum", {inner[1], b.int64s({0})}, {{"keepdims", int64_t{0}}});
          const Value next = b.op("Add", {v[0], b.op("Mul", {sum, b.scalar(0.125f)})});
          return std::vector<Value>{next, turn};
        });
    b.output("y", outer[0]);
    b.output("turns", outer[1]);
  });
  const NamedTensors given = {{"x", ramp(8)}};
  for (int repeat = 0; repeat < 3; ++repeat) {
    const auto outputs = session_->run(given);
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    EXPECT_EQ(check::difference(*cpu_->run(given), *outputs), "");
    EXPECT_EQ(session_->loop_reports().at(1).driven, "device")
        << session_->loop_reports().at(1).reason;
  }
}

TEST_P(CudaRowsTest, AStopEndsItAndTheNextRunIsItsOwn) {
  make(stacking({}));
  const NamedTensors endless = inputs(8, 4'000'000, 100.0f);
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto stopped = session_->run(endless, {.timeout = std::chrono::milliseconds(20)});
    EXPECT_EQ(stopped.status().code(), StatusCode::kDeadlineExceeded);
    EXPECT_EQ(expect_cpus_bits(inputs(8, 5, 100.0f)).driven, "device");
  }
}

TEST_P(CudaRowsTest, ALostDeviceIsToldWithTheLoop) {
  make(stacking({}));
  fake_->cuda().fault_kernel(20, CuResult::kIllegalAddress);
  const auto outputs = session_->run(inputs(8, 4000, 100.0f));
  EXPECT_EQ(outputs.status().code(), StatusCode::kDeviceLost) << outputs.status().to_string();
  EXPECT_THAT(outputs.status().to_string(), HasSubstr("steps["));
  session_.reset();
}

TEST_P(CudaRowsTest, RowsThatNobodyReadsCostNothing) {
  make(stacking({.reads_rows = false}));
  EXPECT_EQ(expect_cpus_bits(inputs(8, 5, 100.0f)).driven, "device");
}

TEST_P(CudaRowsTest, WhateverCallFailsTheRunIsRightOrSaysWhy) {
  const NamedTensors given = inputs(8, 5, 100.0f);
  make(stacking({}));
  const NamedTensors expected = std::move(*cpu_->run(given));
  int num_failed = 0;
  for (uint64_t k = 1; k < 300; k += 2) {
    make(stacking({}));
    fake_->cuda().fail_call(k, k % 3 == 0 ? CuResult::kOutOfMemory : CuResult::kInvalidValue);
    const auto outputs = session_->run(given);
    const std::string call = fake_->cuda().failed_call();
    fake_->cuda().fail_call(0, CuResult::kSuccess);
    SCOPED_TRACE("call " + std::to_string(k) + ", " + call);
    if (outputs.is_ok()) {
      EXPECT_EQ(check::difference(expected, *outputs), "");
    } else {
      EXPECT_THAT(outputs.status().to_string(), HasSubstr("answered CUDA_ERROR_"));
    }
    session_.reset();
    if (call == "context_push") fake_.reset();  // nothing can be freed then
    if (call.empty()) break;
    ++num_failed;
  }
  EXPECT_GT(num_failed, 20) << "too few calls have failed to show anything";
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaRowsTest, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace eddy::testing
