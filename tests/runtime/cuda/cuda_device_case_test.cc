// Claim: a GPU takes the branches of selectors that it computes, and the host issues what follows
// them before they are taken: the host waits for nothing until the run ends. They give the CPU's
// bits whatever is selected, one behind the other, with a loop inside, inside a loop that the host
// drives, with results that are passed through. A selector without a branch, a lost device and a
// cancelled run end with the branch's name. Loops that begin on values that a GPU still computes
// wait only for the numbers that they need, not for the values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "graph/base/random.h"
#include "tests/runtime/cuda/cuda_session_fixture.h"
#include "tests/runtime/cuda/loop_shapes.h"
#include "tools/check/oracle.h"

namespace eddy::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

const ValueType kFloat = tensor_type(ElementType::kFloat, {});
const ValueType kEight = tensor_type(ElementType::kFloat, {8});

enum class Rest { kDefault, kPassThrough, kFailure };

class CudaDeviceCaseTest : public CudaSessionFixture {
 protected:
  void make(const Build& build, Loops loops = Loops::kAuto, bool measures_loops = false) {
    session_.reset();
    use_fake();
    cpu_ = std::move(*Session::create(library(), graph_of(build), {}));
    session_ = make_or_null(graph_of(build), {.loops = loops, .measures_loops = measures_loops});
  }
  void TearDown() override { session_.reset(); }
  size_t num_decided_by_device() const {
    return static_cast<size_t>(
        std::ranges::count(session_->branch_reports(), "device", &LoopReport::driven));
  }

  void expect_cpus_bits(const NamedTensors& inputs) {
    const auto expected = cpu_->run(inputs);
    ASSERT_TRUE(expected.is_ok()) << expected.status().to_string();
    const auto outputs = session_->run(inputs);
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    EXPECT_EQ(check::difference(*expected, *outputs), "");
  }
  // Starts a run while the GPU does nothing, and lets it go on once this many graphs are launched.
  // How many they were.
  uint64_t launched_while_held(const NamedTensors& inputs, uint64_t wanted) {
    const auto expected = cpu_->run(inputs);
    fake_->cuda().hold(true);
    const uint64_t before = fake_->cuda().num_graph_launches();
    Result<NamedTensors> outputs = internal_error("not called back");
    RunHandle handle =
        session_->run_async(inputs, [&](Result<NamedTensors> made) { outputs = std::move(made); });
    const auto launched = [&] { return fake_->cuda().num_graph_launches() - before; };
    for (int i = 0; i < 300 && launched() < wanted; ++i) std::this_thread::sleep_for(1ms);
    const uint64_t num_launched = launched();
    EXPECT_FALSE(handle.is_done());
    fake_->cuda().hold(false);
    EXPECT_TRUE(handle.wait().is_ok());
    EXPECT_EQ(check::difference(*expected, *outputs), "");
    return num_launched;
  }

  std::unique_ptr<Session> cpu_;
  std::unique_ptr<Session> session_;
};

// Gates one behind the other, each decided by what the last one has made.
Build gates(int n, Rest rest) {
  return [n, rest](GraphBuilder& b) {
    Value x = b.op("Abs", {b.input("x", kEight)});
    for (int i = 0; i < n; ++i) {
      const Value least = b.op("ReduceMin", {x}, {{"keepdims", int64_t{0}}});
      CaseOptions options{.name = "gate" + std::to_string(i),
                          .selector = b.op("Cast", {least}, {{"to", int64_t{i % 2 == 0 ? 6 : 7}}})};
      if (rest == Rest::kDefault) options.default_region = 1;
      if (rest == Rest::kPassThrough) options.pass_through = {x};
      const std::vector<CaseBody> bodies = {
          [&] {
            return std::vector<Value>{b.op("Add", {x, b.scalar(0.75f)})};
          },
          [&] {
            return std::vector<Value>{b.op("Mul", {b.op("Neg", {x}), b.scalar(-1.25f)})};
          },
          [&] { return std::vector<Value>{x}; }};
      x = b.case_of(options, bodies)[0];
    }
    b.output("y", x);
  };
}

NamedTensors eight(float first) {
  std::vector<float> values;
  for (int i = 0; i < 8; ++i) values.push_back(first + 0.125f * static_cast<float>(i));
  return {{"x", Tensor::of<float>({8}, values)}};
}

TEST_P(CudaDeviceCaseTest, EveryBranchGivesTheCpusBits) {
  for (const Rest rest : {Rest::kDefault, Rest::kPassThrough}) {
    make(gates(5, rest));
    ASSERT_NE(session_, nullptr);
    for (const LoopReport& gate : session_->branch_reports()) {
      EXPECT_EQ(gate.driven, "device") << gate.path << ": " << gate.reason;
    }
    for (const float x : {0.0f, 1.5f, 2.25f, 0.0f, 1.0f, 4.0f}) expect_cpus_bits(eight(x));
    const uint64_t num_recorded = fake_->cuda().num_instantiations();
    for (const float x : {-3.0f, 0.25f, 7.0f, -0.5f}) expect_cpus_bits(eight(x));
    EXPECT_EQ(fake_->cuda().num_instantiations(), num_recorded) << "recorded again";
  }
}

TEST_P(CudaDeviceCaseTest, TheHostWaitsForNoGate) {
  make(gates(5, Rest::kPassThrough));
  ASSERT_NE(session_, nullptr);
  expect_cpus_bits(eight(0.0f));
  EXPECT_GE(launched_while_held(eight(1.0f), 5), 5u);
}

TEST_P(CudaDeviceCaseTest, ByTheHostEachGateWaits) {
  make(gates(5, Rest::kPassThrough), Loops::kHost);
  ASSERT_NE(session_, nullptr);
  expect_cpus_bits(eight(0.0f));
  EXPECT_LT(launched_while_held(eight(1.0f), 5), 5u);
}

TEST_P(CudaDeviceCaseTest, ASelectorWithoutABranchIsToldOnce) {
  make(gates(3, Rest::kFailure));
  ASSERT_NE(session_, nullptr);
  for (int repeat = 0; repeat < 2; ++repeat) {
    // 1 -> -1.25 · -1 = 1.25 -> 1.5625 -> 1.95: fine.
    expect_cpus_bits(eight(1.0f));
    // 1.75 -> 2.1875: unchanged ever after; 4 has no branch.
    const auto outputs = session_->run(eight(4.0f));
    ASSERT_FALSE(outputs.is_ok());
    EXPECT_THAT(outputs.status().to_string(), HasSubstr("gate0"));
    EXPECT_THAT(outputs.status().to_string(),
                HasSubstr("the selector is 4, but there are branches"));
  }
}

// The plan keeps the copy of a selector until its gate, and not what was copied.
TEST_P(CudaDeviceCaseTest, ASelectorMadeLongBeforeItsGateIsStillThere) {
  make([](GraphBuilder& b) {
    const Value x = b.op("Abs", {b.input("x", kEight)});
    const Value least = b.op("ReduceMin", {x}, {{"keepdims", int64_t{0}}});
    const Value choice = b.op("Cast", {least}, {{"to", int64_t{6}}});
    Value between = b.op("ReduceMax", {x}, {{"keepdims", int64_t{0}}});
    for (int i = 0; i < 8; ++i) between = b.op("Sub", {b.scalar(100.0f), between});
    const std::vector<CaseBody> bodies = {[&] {
                                            return std::vector<Value>{b.op("Add", {x, between})};
                                          },
                                          [&] {
                                            return std::vector<Value>{b.op("Mul", {x, between})};
                                          }};
    const CaseOptions options{.name = "late", .selector = choice, .pass_through = {x}};
    b.output("y", b.case_of(options, bodies)[0]);
  });
  ASSERT_NE(session_, nullptr);
  EXPECT_EQ(num_decided_by_device(), 1u);
  for (const float x : {0.5f, 1.5f, 2.5f, 0.25f}) expect_cpus_bits(eight(x));
}

// A selector in the host's memory needs no wait.
TEST_P(CudaDeviceCaseTest, ASelectorThatTheHostIsGivenIsTheHosts) {
  make([](GraphBuilder& b) {
    const Value x = b.input("x", kEight);
    const std::vector<CaseBody> bodies = {[&] { return std::vector<Value>{b.op("Tanh", {x})}; },
                                          [&] { return std::vector<Value>{b.op("Neg", {x})}; }};
    const CaseOptions options{.name = "given",
                              .selector = b.input("which", tensor_type(ElementType::kBool, {}))};
    b.output("y", b.case_of(options, bodies)[0]);
  });
  ASSERT_NE(session_, nullptr);
  for (const bool which : {false, true, false}) {
    NamedTensors inputs = eight(0.5f);
    inputs.emplace_back("which", Tensor::scalar(which));
    expect_cpus_bits(inputs);
  }
  ASSERT_EQ(session_->branch_reports().size(), 1u);
  EXPECT_THAT(session_->branch_reports()[0].reason, HasSubstr("the host knows the selector"));
}

// A gate with a loop in one branch and another gate in the other; the host drives the loop around
// it, because it stacks rows.
void inside_and_around(GraphBuilder& b) {
  const Value x = b.input("x", kFloat);
  const auto results = b.while_loop(
      {.name = "outer", .initial = {x}, .trip_limit = b.scalar(int64_t{6}), .num_scan_outputs = 2},
      [&](Value, ValueSpan v) {
        return WhileTest{b.op("Less", {v[0], b.scalar(60.0f)}), {v[0]}};
      },
      [&](Value round, ValueSpan v) {
        const Value few = b.op("Less", {v[0], b.scalar(5.0f)});
        const std::vector<CaseBody> bodies = {
            [&] {
              const Value odd = b.op("Less", {b.op("Cos", {v[0]}), b.scalar(0.5f)});
              const std::vector<CaseBody> inner = {
                  [&] {
                    return std::vector<Value>{b.op("Add", {v[0], b.scalar(7.0f)})};
                  },
                  [&] {
                    return std::vector<Value>{b.op("Mul", {v[0], b.scalar(1.5f)})};
                  }};
              return b.case_of({.name = "inner", .selector = odd}, inner);
            },
            [&] {
              return b.while_loop(
                  {.name = "count", .initial = {v[0]}, .trip_limit = b.scalar(int64_t{9})},
                  [&](Value, ValueSpan w) {
                    return WhileTest{b.op("Less", {w[0], b.scalar(4.0f)}), {w[0]}};
                  },
                  [&](Value, ValueSpan w) {
                    return std::vector<Value>{b.op("Add", {w[0], b.scalar(1.0f)})};
                  });
            }};
        const Value next = b.case_of({.name = "gate", .selector = few}, bodies)[0];
        const Value more = b.op("Add", {next, b.scalar(1.0f)});
        return std::vector<Value>{more, next, round};  // which the host makes
      });
  b.output("y", results[0]);
  b.output("rows", results[1]);
  b.output("rounds", results[2]);
}

TEST_P(CudaDeviceCaseTest, InsideALoopOfTheHostsEachRoundLaunchesIt) {
  make(inside_and_around);
  ASSERT_NE(session_, nullptr);
  EXPECT_EQ(num_decided_by_device(), 2u) << "one goes with the other";
  for (const float x : {0.0f, 3.5f, 20.0f, -9.0f, 59.5f}) {
    expect_cpus_bits({{"x", Tensor::scalar(x)}});
    const auto reports = session_->loop_reports();
    ASSERT_EQ(reports.size(), 2u);
    EXPECT_EQ(reports[0].driven, "host") << reports[0].reason;
    EXPECT_EQ(reports[1].iterations, cpu_->loop_reports()[1].iterations) << x;
  }
}

TEST_P(CudaDeviceCaseTest, ALostDeviceIsToldWithTheGateOrWhatComesAfter) {
  Random random(GetParam());
  for (int repeat = 0; repeat < 12; ++repeat) {
    make(gates(4, Rest::kPassThrough));
    ASSERT_NE(session_, nullptr);
    expect_cpus_bits(eight(0.0f));
    fake_->cuda().fault_kernel(1 + random.below(16));
    const auto outputs = session_->run(eight(0.5f));
    if (outputs.is_ok()) continue;  // fewer kernels than that
    EXPECT_EQ(outputs.status().code(), StatusCode::kDeviceLost) << outputs.status().to_string();
    session_.reset();
  }
}

TEST_P(CudaDeviceCaseTest, ACancelledRunEndsAndTheNextOneIsRight) {
  make(gates(6, Rest::kDefault));
  ASSERT_NE(session_, nullptr);
  for (int repeat = 0; repeat < 10; ++repeat) {
    RunHandle handle = session_->run_async(eight(0.25f), [](Result<NamedTensors>) {});
    std::this_thread::sleep_for(std::chrono::microseconds(100 * repeat));
    handle.cancel();
    const Status status = handle.wait();
    EXPECT_TRUE(status.is_ok() || status.code() == StatusCode::kCancelled) << status.to_string();
    expect_cpus_bits(eight(1.0f));
  }
}

// A loop behind work of its stream; with `told` its limit comes from that work.
Build loop_behind(bool told) {
  return [told](GraphBuilder& b) {
    const Value x = b.input("x", kFloat);
    const Value begun = b.op("Tanh", {x});
    const Value limit =
        told ? b.op("Cast", {b.op("Abs", {x})}, {{"to", int64_t{7}}}) : b.scalar(int64_t{5});
    const auto results = b.while_loop(
        {.name = "loop", .initial = {begun}, .trip_limit = limit},
        [&](Value, ValueSpan v) {
          return WhileTest{b.op("Less", {v[0], b.scalar(100.0f)}), {v[0]}};
        },
        [&](Value, ValueSpan v) {
          return std::vector<Value>{b.op("Add", {v[0], b.scalar(1.0f)})};
        });
    b.output("y", b.op("Neg", {results[0]}));
  };
}

TEST_P(CudaDeviceCaseTest, ALoopIsLaunchedBehindWorkThatHasNotEnded) {
  for (const bool told : {false, true}) {
    make(loop_behind(told));
    ASSERT_NE(session_, nullptr);
    expect_cpus_bits({{"x", Tensor::scalar(3.5f)}});
    expect_cpus_bits({{"x", Tensor::scalar(2.5f)}});
    const uint64_t num_launched = launched_while_held({{"x", Tensor::scalar(4.5f)}}, 2);
    EXPECT_EQ(num_launched, told ? 1u : 2u) << "what is before it is a graph, too";
    for (const LoopReport& loop : session_->loop_reports()) EXPECT_EQ(loop.driven, "device");
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaDeviceCaseTest, ::testing::Range(uint64_t{1}, uint64_t{9}));

}  // namespace
}  // namespace eddy::testing
