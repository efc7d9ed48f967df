// Claim: loops that the GPU drives by itself (conditional nodes, executed by a fake driver) give
// the CPU's bits and its trip counts: nested, permuting their values, with branches inside, side by
// side beyond what devices may drive at once, beside other runs, inside loops that the host drives.
// They end within an iteration when they are stopped; a case without a branch, a lost device and
// whatever call fails end the run with node and iteration, and nothing is left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
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

const ValueType kEight = tensor_type(ElementType::kFloat, {8});
const ValueType kFloat = tensor_type(ElementType::kFloat, {});

Tensor eight(float first) {
  std::vector<float> values;
  for (int i = 0; i < 8; ++i) values.push_back(first + 0.125f * static_cast<float>(i));
  return Tensor::of<float>({8}, values);
}

class CudaDeviceLoopTest : public CudaSessionFixture {
 protected:
  std::unique_ptr<Session> make(const Build& build, Loops loops = Loops::kAuto) {
    use_fake();
    return make_or_null(graph(build), {.loops = loops, .measures_loops = measures_});
  }
  Graph graph(const Build& build) {
    GraphBuilder b(library_.ops());
    build(b);
    Result<Graph> made = b.finish();
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    return std::move(*made);
  }
  // Three runs on the GPU give what the CPU gives, as often around.
  void expect_cpus_bits(const Build& build, const NamedTensors& inputs, size_t num_driven,
                        Loops loops = Loops::kAuto) {
    auto cpu = std::move(*Session::create(library_, graph(build), {}));
    const auto expected = cpu->run(inputs);
    ASSERT_TRUE(expected.is_ok()) << expected.status().to_string();
    auto session = make(build, loops);
    ASSERT_NE(session, nullptr);
    for (int repeat = 0; repeat < 3; ++repeat) {
      const auto outputs = session->run(inputs);
      ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      EXPECT_EQ(check::difference(*expected, *outputs), "");
      size_t driven = 0;
      std::string reasons;
      for (size_t i = 0; i < session->loop_reports().size(); ++i) {
        const LoopReport report = session->loop_reports()[i];
        EXPECT_EQ(report.iterations, cpu->loop_reports()[i].iterations) << report.path;
        driven += report.driven == "device" ? 1 : 0;
        reasons += report.path + ": " + report.driven + ", " + report.reason + "\n";
      }
      EXPECT_EQ(driven, num_driven) << reasons;
    }
  }
  bool measures_ = false;  // else the device drives whatever it can
};

// x and y change places in each round; the loop ends by its values.
void permuting(GraphBuilder& b) {
  const Value x = b.input("x", kEight);
  const Value y = b.input("y", kEight);
  const auto results = b.while_loop(
      {.name = "permute", .initial = {x, y}, .trip_limit = b.scalar(int64_t{50})},
      [&](Value, ValueSpan v) {
        const Value low = b.op("ReduceMax", {v[0]}, {{"keepdims", int64_t{0}}});
        return WhileTest{b.op("Less", {low, b.scalar(9.0f)}), {v[1], v[0]}};
      },
      [&](Value, ValueSpan v) {
        return std::vector<Value>{b.op("Add", {v[0], b.scalar(0.5f)}), v[1]};
      });
  b.output("a", results[0]);
  b.output("b", results[1]);
}

TEST_P(CudaDeviceLoopTest, CarriedValuesMayChangePlaces) {
  expect_cpus_bits(permuting, {{"x", eight(1)}, {"y", eight(2)}}, 1);
  EXPECT_EQ(fake_->cuda().num_instantiations(), fake_->cuda().num_graph_launches() > 3 ? 2u : 1u);
}

// The inner loop's rounds depend on the outer one's values, and some of its values go round both.
void nested(GraphBuilder& b) {
  const Value x = b.input("x", kEight);
  const Value bound = b.input("bound", kFloat);
  const auto least = [&](Value v) { return b.op("ReduceMin", {v}, {{"keepdims", int64_t{0}}}); };
  const auto outer = b.while_loop(
      {.name = "outer", .initial = {x, x}, .trip_limit = b.scalar(int64_t{5})},
      [&](Value, ValueSpan v) {
        return WhileTest{b.op("Less", {least(v[0]), bound}), {v[0], v[1]}};
      },
      [&](Value, ValueSpan v) {
        const auto inner = b.while_loop(
            {.name = "inner", .initial = {v[1], v[0]}, .trip_limit = b.scalar(int64_t{7})},
            [&](Value, ValueSpan w) {
              const Value left = b.op("Sub", {least(w[0]), least(v[0])});
              return WhileTest{b.op("Less", {left, b.scalar(1.0f)}), {w[0], w[1]}};
            },
            [&](Value, ValueSpan w) {
              return std::vector<Value>{b.op("Add", {w[0], b.scalar(0.25f)}),
                                        b.op("Mul", {w[1], b.scalar(1.5f)})};
            });
        return std::vector<Value>{b.op("Add", {inner[1], v[0]}), inner[0]};
      });
  b.output("a", outer[0]);
  b.output("b", outer[1]);
}

TEST_P(CudaDeviceLoopTest, AnInnerLoopRunsAnewInEachRoundOfTheOuterOne) {
  for (const float bound : {0.0f, 3.0f, 1000.0f}) {
    expect_cpus_bits(nested, {{"x", eight(0.5f)}, {"bound", Tensor::scalar(bound)}}, 2);
  }
}

// One of three branches, or the one of `rest`, by the whole part of the carried value.
enum class Rest { kDefault, kPassThrough, kFailure };
std::function<void(GraphBuilder&)> branching(Rest rest) {
  return [rest](GraphBuilder& b) {
    const Value x = b.input("x", kFloat);
    const auto results = b.while_loop(
        {.name = "walk", .initial = {x, x}, .trip_limit = b.scalar(int64_t{12})},
        [&](Value, ValueSpan v) {
          return WhileTest{b.op("Less", {v[0], b.scalar(100.0f)}), {v[0], v[1]}};
        },
        [&](Value, ValueSpan v) {
          const Value choice = b.op("Cast", {v[0]}, {{"to", int64_t{7}}});
          const auto add = [&](float step) {
            return CaseBody([&b, v, step] {
              return std::vector<Value>{b.op("Add", {v[0], b.scalar(step)}),
                                        b.op("Sub", {v[1], v[0]})};
            });
          };
          const std::vector<CaseBody> bodies = {
              add(0.5f), add(0.75f), [&] {
                return std::vector<Value>{b.op("Add", {v[0], v[0]}), v[0]};
              }};
          CaseOptions options{.name = "pick", .selector = choice};
          if (rest == Rest::kDefault) options.default_region = 1;
          if (rest == Rest::kPassThrough) options.pass_through = {v[1], v[0]};
          return b.case_of(options, bodies);
        });
    b.output("a", results[0]);
    b.output("b", results[1]);
  };
}

TEST_P(CudaDeviceLoopTest, BranchesAreChosenByTheDevice) {
  for (const float x : {0.0f, 1.5f, 2.25f, -3.0f}) {
    expect_cpus_bits(branching(Rest::kDefault), {{"x", Tensor::scalar(x)}}, 1);
    expect_cpus_bits(branching(Rest::kPassThrough), {{"x", Tensor::scalar(x)}}, 1);
  }
}

TEST_P(CudaDeviceLoopTest, ACaseWithoutABranchIsToldWithItsNodeAndIteration) {
  auto session = make(branching(Rest::kFailure));
  for (int repeat = 0; repeat < 2; ++repeat) {
    // 0 -> 0.5 -> 1 -> 1.75 -> 2.5 -> 5: no branch.
    const auto outputs = session->run({{"x", Tensor::scalar(0.0f)}});
    ASSERT_FALSE(outputs.is_ok());
    EXPECT_THAT(outputs.status().to_string(), HasSubstr("walk[5]/pick"));
    EXPECT_THAT(outputs.status().to_string(), HasSubstr("the selector is 5"));
  }
}

// A loop with a carried bool as its test, as in ONNX.
void carried_test(GraphBuilder& b) {
  const Value x = b.input("x", kFloat);
  const Value go = b.input("go", tensor_type(ElementType::kBool, {}));
  const auto results = b.while_loop(
      {.name = "onnx", .initial = {go, x}, .trip_limit = b.scalar(int64_t{40})},
      [&](Value, ValueSpan v) {
        return WhileTest{v[0], {v[0], v[1]}};
      },
      [&](Value, ValueSpan v) {
        const Value next = b.op("Mul", {v[1], b.scalar(1.25f)});
        return std::vector<Value>{b.op("Less", {next, b.scalar(50.0f)}), next};
      });
  b.output("x_out", results[1]);
}

TEST_P(CudaDeviceLoopTest, ATestMayBeCarried) {
  for (const bool go : {true, false}) {
    expect_cpus_bits(carried_test, {{"x", Tensor::scalar(1.0f)}, {"go", Tensor::scalar(go)}}, 1);
  }
}

// The body reads the number of its iteration.
void counting(GraphBuilder& b) {
  const Value x = b.input("x", kFloat);
  const auto results = b.while_loop(
      {.name = "count", .initial = {x}, .trip_limit = b.scalar(int64_t{20})},
      [&](Value, ValueSpan v) {
        return WhileTest{b.op("Less", {v[0], b.scalar(60.0f)}), {v[0]}};
      },
      [&](Value i, ValueSpan v) {
        const Value number = b.op("Cast", {i}, {{"to", int64_t{1}}});
        return std::vector<Value>{b.op("Add", {v[0], number})};
      });
  b.output("sum", results[0]);
}

TEST_P(CudaDeviceLoopTest, TheIterationIsCountedByTheDevice) {
  expect_cpus_bits(counting, {{"x", Tensor::scalar(1.0f)}}, 1, Loops::kDevice);
}

TEST_P(CudaDeviceLoopTest, NoMoreLoopsThanDevicesMayDriveAtOnceAreDrivenByThem) {
  expect_cpus_bits(side_by_side(9), {{"x", Tensor::scalar(0.0f)}}, DeviceControl::kMostAtOnce);
}

TEST_P(CudaDeviceLoopTest, RunsAtOnceHaveGraphsOfTheirOwn) {
  auto session = make(side_by_side(1));
  std::vector<RunHandle> handles;
  std::vector<float> sums(8);
  for (int i = 0; i < 8; ++i) {
    handles.push_back(
        session->run_async({{"x", Tensor::scalar(0.1f * static_cast<float>(i))}},
                           [&sum = sums[static_cast<size_t>(i)]](Result<NamedTensors> outputs) {
                             ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
                             sum = (*outputs)[0].second.values<float>()[0];
                           }));
  }
  for (RunHandle& handle : handles) EXPECT_TRUE(handle.wait().is_ok());
  for (int i = 0; i < 8; ++i) {
    float expected = 0.1f * static_cast<float>(i);
    while (expected < 4) expected += 0.75f;
    EXPECT_EQ(sums[static_cast<size_t>(i)], expected);
  }
}

TEST_P(CudaDeviceLoopTest, ManyRunsAtOnceNeverDriveMoreLoopsThanMayBe) {
  auto session = make(side_by_side(2));
  std::vector<RunHandle> handles;
  std::atomic<int> num_right{0};
  for (int i = 0; i < 64; ++i) {
    const float x = 0.05f * static_cast<float>(i);
    handles.push_back(
        session->run_async({{"x", Tensor::scalar(x)}}, [&, x](Result<NamedTensors> outputs) {
          ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
          for (size_t loop = 0; loop < 2; ++loop) {
            float expected = x;
            while (expected < static_cast<float>(4 + loop)) expected += 0.75f;
            num_right += (*outputs)[loop].second.values<float>()[0] == expected ? 1 : 0;
          }
        }));
  }
  // The fake loses its device with more than five loops unfinished.
  for (RunHandle& handle : handles) EXPECT_TRUE(handle.wait().is_ok());
  EXPECT_EQ(num_right.load(), 128);
  EXPECT_GT(fake_->cuda().num_graph_launches(), 0u);
}

// 100 rounds of 100 rounds.
void hundred_by_hundred(GraphBuilder& b) {
  const Value x = b.input("x", kFloat);
  const auto rounds = [&](const char* name, Value from, const auto& body) {
    return b.while_loop(
        {.name = name, .initial = {from, b.scalar(0.0f)}, .trip_limit = b.scalar(int64_t{100})},
        [&](Value, ValueSpan v) {
          return WhileTest{b.op("Less", {v[1], b.scalar(1000.0f)}), {v[0], v[1]}};
        },
        [&](Value, ValueSpan v) {
          return std::vector<Value>{body(v[0]), b.op("Add", {v[1], b.scalar(1.0f)})};
        })[0];
  };
  b.output("y", rounds("outer", x, [&](Value v) {
             return rounds("inner", v, [&](Value w) { return b.op("Add", {w, b.scalar(1.0f)}); });
           }));
}

TEST_P(CudaDeviceLoopTest, TenThousandInnerRoundsAreOneLaunch) {
  auto session = make(hundred_by_hundred, Loops::kDevice);
  for (int repeat = 1; repeat <= 2; ++repeat) {
    const auto outputs = session->run({{"x", Tensor::scalar(5.0f)}});
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    EXPECT_EQ((*outputs)[0].second.values<float>()[0], 10'005.0f);
    for (const LoopReport& report : session->loop_reports()) EXPECT_EQ(report.iterations, 100);
    EXPECT_EQ(fake_->cuda().num_graph_launches(), static_cast<uint64_t>(repeat));
  }
}

TEST_P(CudaDeviceLoopTest, MeasuredLoopsAreDrivenBothWaysAndThenByOne) {
  measures_ = true;
  auto session = make(permuting);
  std::vector<std::string> driven;
  for (int i = 0; i < 2 * LoopChoice::kTries + 4; ++i) {
    const auto outputs = session->run({{"x", eight(1)}, {"y", eight(2)}});
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    driven.push_back(session->loop_reports()[0].driven);
  }
  const auto tries = driven.begin() + 2 * LoopChoice::kTries;
  EXPECT_EQ(std::count(driven.begin(), tries, "device"), LoopChoice::kTries);
  EXPECT_EQ(std::count(driven.begin(), tries, "host"), LoopChoice::kTries);
  EXPECT_EQ(std::count(tries, driven.end(), *tries), 4) << "one way, once it is settled";
  EXPECT_THAT(session->loop_reports()[0].reason, HasSubstr("measured, µs an iteration: "));
}

// A loop that the host drives, because it makes a row, around one that it does not.
void inside_a_host_loop(GraphBuilder& b) {
  const Value x = b.input("x", kEight);
  const auto outer = b.while_loop(
      {.name = "outer",
       .initial = {x, x},
       .trip_limit = b.scalar(int64_t{6}),
       .num_scan_outputs = 2},
      [&](Value, ValueSpan v) {
        return WhileTest{b.scalar(true), {v[0], v[1]}};
      },
      [&](Value turn, ValueSpan v) {
        const auto inner = b.while_loop(
            {.name = "inner", .initial = {v[1], v[0]}, .trip_limit = b.scalar(int64_t{9})},
            [&](Value, ValueSpan w) {
              const Value low = b.op("ReduceMin", {w[0]}, {{"keepdims", int64_t{0}}});
              return WhileTest{b.op("Less", {low, b.scalar(30.0f)}), {w[1], w[0]}};
            },
            [&](Value, ValueSpan w) {
              return std::vector<Value>{b.op("Add", {w[0], b.scalar(1.5f)}), w[1]};
            });
        return std::vector<Value>{inner[0], inner[1], b.op("Add", {inner[0], v[0]}), turn};
      });
  b.output("a", outer[0]);
  b.output("b", outer[1]);
  b.output("rows", outer[2]);
  b.output("turns", outer[3]);
}

TEST_P(CudaDeviceLoopTest, TheHostMayDriveALoopAroundIt) {
  expect_cpus_bits(inside_a_host_loop, {{"x", eight(0)}}, 1);
  // Its results live on where the outer loop carries them, so several recordings take turns.
  EXPECT_LE(fake_->cuda().num_instantiations(), 12u);
}

// A loop that the host drives, around one that captures each of so many values in turn.
Build turning(size_t num_values, int64_t num_turns) {
  return [=](GraphBuilder& b) {
    std::vector<Value> initial;
    for (size_t i = 0; i < num_values; ++i)
      initial.push_back(b.input("x" + std::to_string(i), kEight));
    const auto outer = b.while_loop(
        {.name = "outer",
         .initial = initial,
         .trip_limit = b.scalar(num_turns),
         .num_scan_outputs = 2},
        [&](Value, ValueSpan v) {
          return WhileTest{b.scalar(true), {v.begin(), v.end()}};
        },
        [&](Value turn, ValueSpan v) {
          const auto inner = b.while_loop(
              {.name = "inner", .initial = {v[1]}, .trip_limit = b.scalar(int64_t{5})},
              [&](Value, ValueSpan w) {
                const Value low = b.op("ReduceMin", {w[0]}, {{"keepdims", int64_t{0}}});
                return WhileTest{b.op("Less", {low, b.scalar(60.0f)}), {w[0]}};
              },
              [&](Value, ValueSpan w) {
                return std::vector<Value>{
                    b.op("Add", {b.op("Mul", {w[0], b.scalar(0.75f)}), v[0]})};
              });
          std::vector<Value> next(v.begin() + 1, v.end());
          next.push_back(v[0]);
          next.push_back(inner[0]);
          next.push_back(turn);  // which the host makes
          return next;
        });
    for (size_t i = 0; i < num_values; ++i) b.output("y" + std::to_string(i), outer[i]);
    b.output("rows", outer[num_values]);
    b.output("turns", outer[num_values + 1]);
  };
}

NamedTensors turned(size_t num_values) {
  NamedTensors inputs;
  for (size_t i = 0; i < num_values; ++i) {
    inputs.emplace_back("x" + std::to_string(i), eight(static_cast<float>(i)));
  }
  return inputs;
}

TEST_P(CudaDeviceLoopTest, ForOtherAddressesAnOldRecordingIsGivenUp) {
  expect_cpus_bits(turning(7, 21), turned(7), 1);
  EXPECT_GT(fake_->cuda().num_loop_instantiations(), DeviceControl::kMostLaunches)
      << "too few addresses to show anything";
}

// By recordings alone, so that what is measured does not depend on the clock.
TEST_P(CudaDeviceLoopTest, WhereTheWayIsMeasuredARecordingIsGivenUpOnceItIsStale) {
  constexpr uint64_t kMost = DeviceControl::kMostLaunches;
  const auto num_recorded = [&](size_t num_values, uint64_t num_turns) {
    use_fake();
    SessionOptions options;
    options.num_threads = 1;
    options.assignment = Assignment::kRank;
    options.only_loop_way = LoopChoice::Way::kRecording;
    options.make_devices = {fake_->maker()};
    const Build build = turning(num_values, static_cast<int64_t>(num_turns));
    auto cpu = std::move(*Session::create(library_, graph(build), {}));
    auto session = std::move(*Session::create(library_, graph(build), options));
    const auto outputs = session->run(turned(num_values));
    EXPECT_EQ(check::difference(*cpu->run(turned(num_values)), *outputs), "");
    return fake_->cuda().num_loop_instantiations();
  };
  // Seven addresses that take turns are none of them stale; each of twenty is, once it comes again.
  EXPECT_EQ(num_recorded(7, 40), kMost);
  EXPECT_EQ(num_recorded(20, DeviceControl::kStaleAfter), kMost);
  EXPECT_EQ(num_recorded(20, DeviceControl::kStaleAfter + 1), kMost + 1);
  EXPECT_EQ(num_recorded(20, DeviceControl::kStaleAfter + kMost), 2 * kMost);
  EXPECT_EQ(num_recorded(20, 2 * DeviceControl::kStaleAfter), 2 * kMost);
}

TEST_P(CudaDeviceLoopTest, WhatCannotBeForcedIsRefusedWithItsReason) {
  use_fake();
  const auto session = create(graph(inside_a_host_loop), {.loops = Loops::kDevice});
  ASSERT_FALSE(session.is_ok());
  EXPECT_THAT(session.status().to_string(), HasSubstr("loop outer can't be driven by the device"));
  EXPECT_THAT(session.status().to_string(), HasSubstr("the host makes a row of outer"));
}

TEST_P(CudaDeviceLoopTest, ADeadlineEndsItAndTheNextRunIsItsOwn) {
  auto session = make(endless(kEight));
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto outputs =
        session->run({{"x", eight(1)}}, {.timeout = std::chrono::milliseconds(20)});
    EXPECT_EQ(outputs.status().code(), StatusCode::kDeadlineExceeded);
    EXPECT_GT(session->loop_reports().size(), 0u);
  }
  EXPECT_GT(fake_->cuda().num_graph_launches(), 0u);
}

TEST_P(CudaDeviceLoopTest, ACancelEndsItWithinAnIteration) {
  auto session = make(endless(kEight), Loops::kDevice);
  for (int repeat = 0; repeat < 3; ++repeat) {
    RunHandle handle = session->run_async({{"x", eight(1)}}, {});
    const uint64_t begun = fake_->num_kernels() + 50;
    while (fake_->num_kernels() < begun) std::this_thread::yield();
    handle.cancel();
    const uint64_t cancelled = fake_->num_kernels();
    EXPECT_EQ(handle.wait().code(), StatusCode::kCancelled);
    EXPECT_LE(fake_->num_kernels() - cancelled, 3u) << "the kernels of one iteration";
  }
}

TEST_P(CudaDeviceLoopTest, ALostDeviceIsToldWithTheLoopAndItsIteration) {
  // Four kernels before the first round; then five a round, the second of which counts it.
  for (const uint64_t k : {6, 11, 23}) {
    auto session = make(endless(kEight));
    fake_->cuda().fault_kernel(k, CuResult::kIllegalAddress);
    const auto outputs = session->run({{"x", eight(1)}});
    ASSERT_FALSE(outputs.is_ok());
    EXPECT_EQ(outputs.status().code(), StatusCode::kDeviceLost) << outputs.status().to_string();
    EXPECT_THAT(outputs.status().to_string(),
                HasSubstr("endless[" + std::to_string((k - 2) / 5) + "]"));
    session.reset();
  }
}

TEST_P(CudaDeviceLoopTest, WhateverCallFailsTheRunIsRightOrSaysWhy) {
  const NamedTensors inputs = {{"x", eight(0.5f)}, {"bound", Tensor::scalar(3.0f)}};
  auto cpu = std::move(*Session::create(library_, graph(nested), {}));
  const auto expected = cpu->run(inputs);
  std::set<std::string> failed;
  for (uint64_t k = 1; k < 300; k += 2) {
    auto session = make(nested);
    fake_->cuda().fail_call(k, k % 3 == 0 ? CuResult::kOutOfMemory : CuResult::kInvalidValue);
    const auto outputs = session->run(inputs);
    const std::string call = fake_->cuda().failed_call();
    failed.insert(call);
    fake_->cuda().fail_call(0, CuResult::kSuccess);
    SCOPED_TRACE("call " + std::to_string(k) + ", " + call);
    if (outputs.is_ok()) {
      EXPECT_EQ(check::difference(*expected, *outputs), "");
    } else {
      EXPECT_THAT(outputs.status().to_string(), HasSubstr("answered CUDA_ERROR_"));
    }
    session.reset();
    if (call == "context_push") fake_.reset();  // nothing can be freed then
    if (call.empty()) break;
  }
  EXPECT_GT(failed.size(), 8u) << "too few kinds of calls have failed to show anything";
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaDeviceLoopTest, ::testing::Range(uint64_t{1}, uint64_t{4}));

}  // namespace
}  // namespace eddy::testing
