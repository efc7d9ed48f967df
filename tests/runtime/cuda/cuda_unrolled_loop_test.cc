// Claim: loops of which a round of the WHILE node holds several iterations give the bits and the
// trip counts of loops driven by the host, for trips around the length of a round, by limit and by
// value, for random loops, too. They end in the iteration in which they are stopped, and a fault
// names its iteration. A loop that cannot be cancelled within a round reports why and is recorded
// without unrolling. The test notices a kernel that does not read its guard.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "graph/ir/builder.h"
#include "graph/loops/unrolling.h"
#include "ops/cuda/images/loop_control.h"
#include "tests/runtime/cuda/fake_accelerator.h"
#include "tests/runtime/cuda/fake_fusing_gpu.h"
#include "tests/runtime/cuda/loop_shapes.h"
#include "tests/runtime/cuda/random_loops.h"
#include "tools/check/oracle.h"

namespace eddy::testing {
namespace {

using ::testing::AnyOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Way = LoopChoice::Way;

const ValueType kIndex = tensor_type(ElementType::kInt64, {});
const ValueType kWide = tensor_type(ElementType::kFloat, {3, 11});

// No way: by the host. Null: there is a loop of which nothing is left on the device; random_loops.h
// makes a few.
std::unique_ptr<Session> make(FusingGpu& gpu, Graph graph, std::optional<Way> way,
                              bool fuses = false) {
  SessionOptions options = gpu.options(fuses, way);
  options.num_threads = 1;
  options.loops = way ? Loops::kDevice : Loops::kHost;
  auto session = Session::create(library(), std::move(graph), options);
  if (session.status().code() == StatusCode::kUnsupported) return nullptr;
  EXPECT_TRUE(session.is_ok()) << session.status().to_string();
  return session.is_ok() ? std::move(*session) : nullptr;
}

void expect_clean(FusingGpu& gpu) {
  EXPECT_THAT(gpu.cuda().violations(), IsEmpty());
  EXPECT_EQ(gpu.cuda().leaks(), "");
}

struct Outcome {
  NamedTensors outputs;  // copies
  std::vector<LoopReport> loops;
};

Outcome run(FusingGpu& gpu, Graph graph, const NamedTensors& inputs, std::optional<Way> way,
            bool fuses = false) {
  const auto session = make(gpu, std::move(graph), way, fuses);
  Outcome outcome;
  if (session == nullptr) return outcome;
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto outputs = session->run(inputs);
    EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    if (!outputs.is_ok()) return outcome;
    NamedTensors copies;
    for (const auto& [name, tensor] : *outputs) {
      copies.emplace_back(name, Tensor::copy_of(tensor.view()));
    }
    if (repeat > 0) {
      EXPECT_EQ(check::difference(outcome.outputs, copies), "");
    }
    outcome.outputs = std::move(copies);
  }
  outcome.loops = session->loop_reports();
  return outcome;
}

void expect_same(const Outcome& expected, const Outcome& found) {
  EXPECT_EQ(check::difference(expected.outputs, found.outputs), "");
  ASSERT_EQ(expected.loops.size(), found.loops.size());
  for (size_t i = 0; i < found.loops.size(); ++i) {
    EXPECT_EQ(found.loops[i].iterations, expected.loops[i].iterations) << found.loops[i].path;
  }
}

// From "…unrolled: up to 4 iterations a round"; 0: it is not unrolled.
int64_t iterations_a_round(const LoopReport& report) {
  const std::string before = "unrolled: up to ";
  const size_t at = report.reason.find(before);
  return at == std::string::npos ? 0 : std::stoll(report.reason.substr(at + before.size()));
}

Tensor wide(float first) {
  std::vector<float> values;
  for (int i = 0; i < 33; ++i) values.push_back(first + 0.0625f * static_cast<float>(i % 7));
  return Tensor::of<float>({3, 11}, values);
}

// x and y change places, a result is made by the test's region, the iteration is read.
Build mixing(int64_t limit, float last) {
  return [limit, last](GraphBuilder& b) {
    const Value x = b.input("x", kWide);
    const Value y = b.input("y", kWide);
    const Value n = b.input("n", kWide);
    const auto results = b.while_loop(
        {.name = "mix", .initial = {x, y, n}, .trip_limit = b.scalar(limit)},
        [&](Value, ValueSpan v) {
          const Value half = b.op("Mul", {v[0], b.scalar(0.5f)});
          const Value count = b.op("ReduceMin", {v[2]}, {{"keepdims", int64_t{0}}});
          return WhileTest{b.op("Less", {count, b.scalar(last)}), {v[1], half, v[2]}};
        },
        [&](Value i, ValueSpan v) {
          const Value number = b.op("Cast", {i}, {{"to", int64_t{1}}});
          const Value next = b.op("Add", {v[0], number});
          return std::vector<Value>{next, v[1], b.op("Add", {v[2], b.scalar(1.0f)})};
        });
    b.output("a", results[0]);
    b.output("b", results[1]);
    b.output("n", results[2]);
  };
}

Tensor zeros() { return Tensor::of<float>({3, 11}, std::vector<float>(33, 0.0f)); }

NamedTensors mixed() { return {{"x", wide(-1)}, {"y", wide(0.25f)}, {"n", zeros()}}; }

TEST(CudaUnrolledLoop, TripsAroundTheLengthOfARoundGiveTheHostsBits) {
  const NamedTensors inputs = mixed();
  int64_t length = 0;
  std::string reason;
  {
    FusingGpu gpu(1);
    const Outcome outcome = run(gpu, graph_of(mixing(5, 1e9f)), inputs, Way::kUnrolled);
    length = iterations_a_round(outcome.loops[0]);
    reason = outcome.loops[0].driven + ": " + outcome.loops[0].reason;
  }
  ASSERT_GE(length, 2) << reason;
  ASSERT_LE(length, Unrolling::kMostIterations);
  for (const int64_t trips : {int64_t{0}, int64_t{1}, int64_t{2}, length - 1, length, length + 1,
                              2 * length, 2 * length + 1, int64_t{17}}) {
    for (const bool by_limit : {true, false}) {
      SCOPED_TRACE(std::to_string(trips) + (by_limit ? " by limit" : " by value"));
      FusingGpu gpu(static_cast<uint64_t>(trips) + 3);
      const auto build = [&] {
        return graph_of(by_limit ? mixing(trips, 1e9f) : mixing(1000, static_cast<float>(trips)));
      };
      const Outcome host = run(gpu, build(), inputs, {});
      ASSERT_EQ(host.loops[0].iterations, trips);
      const Outcome plain = run(gpu, build(), inputs, Way::kRecording);
      expect_same(host, plain);
      EXPECT_EQ(iterations_a_round(plain.loops[0]), 0);
      EXPECT_EQ(gpu.cuda().num_called_off(), 0u);
      const Outcome unrolled = run(gpu, build(), inputs, Way::kUnrolled);
      expect_same(host, unrolled);
      EXPECT_EQ(unrolled.loops[0].driven, "device");
      EXPECT_EQ(iterations_a_round(unrolled.loops[0]), length);
      EXPECT_EQ(gpu.cuda().num_called_off() > 0, trips % length != 0)
          << "a round that is not full has iterations that do nothing";
      expect_clean(gpu);
    }
  }
}

TEST(CudaUnrolledLoop, RandomLoopsGiveTheHostsBits) {
  uint64_t num_unrolled = 0;
  uint64_t num_called_off = 0;
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    FusingGpu gpu(seed);
    const bool fuses = seed % 2 == 0;
    auto made = make_random_loops(library(), seed);
    ASSERT_TRUE(made.is_ok());
    const Outcome host = run(gpu, std::move(made->graph), made->inputs, {}, fuses);
    auto again = make_random_loops(library(), seed);
    const Outcome unrolled = run(gpu, std::move(again->graph), made->inputs, Way::kUnrolled, fuses);
    if (unrolled.loops.empty()) continue;
    expect_same(host, unrolled);
    for (const LoopReport& report : unrolled.loops) {
      num_unrolled += iterations_a_round(report) > 0 ? 1 : 0;
    }
    num_called_off += gpu.cuda().num_called_off();
    expect_clean(gpu);
  }
  EXPECT_GT(num_unrolled, 60u);
  EXPECT_GT(num_called_off, 1000u);
}

// Adds up table[0], table[1], …, table[last - 1].
Build adding_up(int64_t size) {
  return [size](GraphBuilder& b) {
    const Value table = b.input("table", tensor_type(ElementType::kFloat, {size}));
    const Value first = b.input("first", kIndex);
    const Value last = b.input("last", kIndex);
    const auto results = b.while_loop(
        {.name = "walk", .initial = {first, b.scalar(0.0f)}},
        [&](Value, ValueSpan v) {
          return WhileTest{b.op("Less", {v[0], last}), {v[0], v[1]}};
        },
        [&](Value, ValueSpan v) {
          const Value entry = b.op("Gather", {table, v[0]}, {}, {.name = "embed"});
          return std::vector<Value>{b.op("Add", {v[0], b.scalar(int64_t{1})}),
                                    b.op("Add", {v[1], entry})};
        });
    b.output("sum", results[1]);
  };
}

NamedTensors table_of(int64_t size, int64_t last) {
  std::vector<float> values;
  for (int64_t i = 0; i < size; ++i) values.push_back(static_cast<float>(i) + 0.5f);
  return {{"table", Tensor::of<float>({size}, values)},
          {"first", Tensor::scalar(int64_t{0})},
          {"last", Tensor::scalar(last)}};
}

TEST(CudaUnrolledLoop, WhatIsWrongInAnyIterationOfARoundIsToldWithIt) {
  for (int64_t size = 1; size <= 10; ++size) {
    FusingGpu gpu(static_cast<uint64_t>(size));
    auto session = make(gpu, graph_of(adding_up(size)), Way::kUnrolled);
    ASSERT_NE(session, nullptr);
    ASSERT_TRUE(session->run(table_of(size, size)).is_ok());
    EXPECT_GE(iterations_a_round(session->loop_reports()[0]), 2);
    for (int repeat = 0; repeat < 2; ++repeat) {
      const auto outputs = session->run(table_of(size, 100));
      ASSERT_FALSE(outputs.is_ok());
      EXPECT_THAT(outputs.status().to_string(),
                  HasSubstr("walk[" + std::to_string(size) + "]/embed"));
      EXPECT_THAT(outputs.status().to_string(),
                  HasSubstr("index " + std::to_string(size) + " is out of range"));
    }
    session.reset();
    expect_clean(gpu);
  }
}

// After the last iteration the index is out of range.
TEST(CudaUnrolledLoop, AKernelThatForgetsItsGuardIsNoticed) {
  for (const bool forgets : {false, true}) {
    FusingGpu gpu(3);
    for (const auto& [name, kernel] : host_kernels()) {
      if (forgets && name.starts_with("eddy_Gather")) gpu.cuda().ignore_guard(name);
    }
    auto session = make(gpu, graph_of(adding_up(6)), Way::kUnrolled);
    ASSERT_NE(session, nullptr);
    const auto outputs = session->run(table_of(6, 6));
    EXPECT_EQ(outputs.is_ok(), !forgets) << outputs.status().to_string();
    if (outputs.is_ok()) {
      EXPECT_EQ((*outputs)[0].second.values<float>()[0], 18.0f);
      EXPECT_GE(iterations_a_round(session->loop_reports()[0]), 2);
    }
  }
}

// The mutant is the kernel that moves the carried values and counts after it: either half.
TEST(CudaUnrolledLoop, AControlKernelThatForgetsItIsNoticed) {
  const NamedTensors inputs = mixed();
  FusingGpu right(4);
  const Outcome host = run(right, graph_of(mixing(3, 1e9f)), inputs, {});
  (void)run(right, graph_of(mixing(3, 1e9f)), mixed(), Way::kUnrolled);
  ASSERT_GT(right.cuda().num_called_off(), 0u) << "a round that is full shows nothing";
  FusingGpu copies(4);
  copies.cuda().define_kernel(
      "eddy_loop_copy", sizeof(cuda::LoopCopyParams), [](const FakeKernelCall& call) {
        cuda::LoopCopyParams params = call.params_as<cuda::LoopCopyParams>();
        params.flags = 0;
        run_loop_copy(call, params);
      });
  const Outcome moved = run(copies, graph_of(mixing(3, 1e9f)), inputs, Way::kUnrolled);
  EXPECT_NE(check::difference(host.outputs, moved.outputs), "");
  FusingGpu steps(4);
  steps.cuda().define_kernel("eddy_loop_copy", sizeof(cuda::LoopCopyParams),
                             [](const FakeKernelCall& call) {
                               cuda::LoopCopyParams params = call.params_as<cuda::LoopCopyParams>();
                               if (cuda::is_called_off(params.flags, params.go_on))
                                 params.num_pieces = 0;
                               params.flags = 0;
                               params.step.flags &= ~uint32_t{cuda::LoopStepParams::kGuarded};
                               run_loop_copy(call, params);
                             });
  const Outcome counted = run(steps, graph_of(mixing(3, 1e9f)), inputs, Way::kUnrolled);
  EXPECT_NE(counted.loops[0].iterations, host.loops[0].iterations);
}

// At the n-th run of the body's kernel the run is cancelled: it is the last kernel that runs, where
// it takes longer than a test may leave the cancel unseen.
TEST(CudaUnrolledLoop, ACancelEndsItWithinTheIteration) {
  for (uint64_t at = 1; at <= 10; ++at) {
    SCOPED_TRACE("cancelled in round " + std::to_string(at));
    FusingGpu gpu(at);
    std::atomic<uint64_t> num_runs{0};
    std::atomic<bool> is_cancelled{false};
    for (const auto& [name, kernel] : host_kernels()) {
      if (!name.starts_with("eddy_Sin_")) continue;
      gpu.cuda().define_kernel(
          name, kernel.params_bytes, [&, kernel = kernel](const FakeKernelCall& call) {
            Random random(1);
            run_host_kernel(kernel, call.grid[0], call.params, random);
            if (++num_runs != at) return;
            while (!is_cancelled && call.let_others_in()) std::this_thread::yield();
            std::this_thread::sleep_for(std::chrono::nanoseconds(2 * cuda::kMostUnaskedNs));
          });
    }
    auto session = make(
        gpu, graph_of([](GraphBuilder& b) {
          const Value x = b.input("x", kWide);
          b.output(
              "y",
              b.while_loop(
                  {.name = "endless", .initial = {x}},
                  [&](Value, ValueSpan v) {
                    const Value most = b.op("ReduceMax", {v[0]}, {{"keepdims", int64_t{0}}});
                    return WhileTest{b.op("Less", {most, b.scalar(2.0f)}), {v[0]}};
                  },
                  [&](Value, ValueSpan v) { return std::vector<Value>{b.op("Sin", {v[0]})}; })[0]);
        }),
        Way::kUnrolled);
    ASSERT_NE(session, nullptr);
    RunHandle handle = session->run_async({{"x", wide(0)}}, {});
    while (num_runs < at) std::this_thread::yield();
    handle.cancel();
    is_cancelled = true;
    EXPECT_EQ(handle.wait().code(), StatusCode::kCancelled);
    EXPECT_EQ(num_runs, at) << "an iteration began that was stopped";
    session.reset();
    expect_clean(gpu);
  }
}

// A loop around one that counts, or one of many kernels.
Build chain(int num_kernels) {
  return [num_kernels](GraphBuilder& b) {
    const Value x = b.input("x", kWide);
    b.output("y", b.while_loop(
                      {.name = "chain", .initial = {x}, .trip_limit = b.scalar(int64_t{3})},
                      [&](Value, ValueSpan v) {
                        return WhileTest{b.scalar(true), {v[0]}};
                      },
                      [&](Value, ValueSpan v) {
                        Value value = v[0];
                        for (int i = 0; i < num_kernels; ++i) value = b.op("Tanh", {value});
                        return std::vector<Value>{value};
                      })[0]);
  };
}

TEST(CudaUnrolledLoop, WhatCannotBeUnrolledSaysWhy) {
  FusingGpu gpu(6);
  const Outcome many = run(gpu, graph_of(chain(13)), {{"x", wide(0)}}, Way::kUnrolled);
  EXPECT_THAT(many.loops[0].reason, HasSubstr("not unrolled: an iteration of chain has 13 kernels, "
                                              "up to 12 are few"));
  EXPECT_EQ(many.loops[0].driven, "device");
  EXPECT_EQ(gpu.cuda().num_called_off(), 0u);
  const Outcome few = run(gpu, graph_of(chain(2)), {{"x", wide(0)}}, Way::kUnrolled);
  EXPECT_THAT(few.loops[0].reason, EndsWith("unrolled: up to 8 iterations a round"));
  EXPECT_THAT(few.loops[0].reason, Not(HasSubstr("not unrolled")));
  expect_clean(gpu);
}

// The fake accelerator launches by itself, as a library does.
TEST(CudaUnrolledLoop, ABodyInWhichALibraryLaunchesIsRecordedPlainly) {
  FakeAccelerator fake(library(), {.seed = 7});
  SessionOptions options;
  options.num_threads = 1;
  options.only_loop_way = Way::kUnrolled;
  options.make_devices = {fake.maker()};
  {
    auto session = std::move(*Session::create(library(), graph_of(chain(2)), options));
    for (int repeat = 0; repeat < 2; ++repeat) {
      const auto outputs = session->run({{"x", wide(0)}});
      ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    }
    const LoopReport report = session->loop_reports()[0];
    EXPECT_EQ(report.driven, "device");
    EXPECT_EQ(report.iterations, 3);
    EXPECT_THAT(report.reason, HasSubstr("it could not be unrolled: chain: of the 3 pieces of work "
                                         "in its body only 1 can be called off"));
  }
  EXPECT_THAT(fake.problems(), IsEmpty());
  EXPECT_EQ(fake.cuda().leaks(), "");
}

TEST(CudaUnrolledLoop, WhateverCallFailsTheRunIsRightOrSaysWhy) {
  const NamedTensors inputs = mixed();
  FusingGpu right(15);
  const Outcome expected = run(right, graph_of(mixing(7, 1e9f)), inputs, {});
  int num_failed = 0;
  for (uint64_t k = 1; k < 400; ++k) {
    FusingGpu gpu(15);
    auto session = make(gpu, graph_of(mixing(7, 1e9f)), Way::kUnrolled);
    ASSERT_NE(session, nullptr);
    gpu.cuda().fail_call(k, k % 3 == 0 ? CuResult::kOutOfMemory : CuResult::kInvalidValue);
    Status status;
    {
      const auto outputs = session->run(inputs);
      status = outputs.status();
      if (outputs.is_ok()) {
        EXPECT_EQ(check::difference(expected.outputs, *outputs), "");
      }
    }
    const std::string call = gpu.cuda().failed_call();
    gpu.cuda().fail_call(0, CuResult::kSuccess);
    SCOPED_TRACE("call " + std::to_string(k) + ", " + call);
    num_failed += status.is_ok() ? 0 : 1;
    if (!status.is_ok()) {
      EXPECT_THAT(status.to_string(), AnyOf(HasSubstr("answered CUDA_ERROR_"), HasSubstr("lost")));
    }
    session.reset();
    if (call != "context_push") {  // nothing can be freed then
      EXPECT_EQ(gpu.cuda().leaks(), "");
    }
    if (call.empty()) break;
  }
  EXPECT_GT(num_failed, 5);
}

TEST(UnrolledLoops, LaunchesThatCannotBeCompiledAreInterpretedAndTheReportSaysWhy) {
  for (const Way way : {Way::kRecording, Way::kUnrolled}) {
    FusingGpu gpu(16);
    const NamedTensors inputs = {{"x", Tensor::scalar(0.0f)}};
    const Outcome expected = run(gpu, graph_of(side_by_side(1)), inputs, {});
    const Outcome compiled = run(gpu, graph_of(side_by_side(1)), inputs, way, true);
    expect_same(expected, compiled);
    EXPECT_THAT(compiled.loops.at(0).reason, Not(HasSubstr("interpreted")));
    {
      const auto session = make(gpu, graph_of(side_by_side(1)), way, true);
      ASSERT_NE(session, nullptr);
      gpu.nvrtc().refuse(100, "copy.cu(3): error: out of order");
      const auto outputs = session->run(inputs);
      ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      EXPECT_EQ(check::difference(expected.outputs, *outputs), "");
      EXPECT_THAT(session->loop_reports().at(0).reason,
                  HasSubstr("its own launches are interpreted: nvrtcCompileProgram refuses a "
                            "kernel: NVRTC_ERROR_COMPILATION: copy.cu(3): error: out of order"));
      EXPECT_EQ(gpu.nvrtc().num_refusals_left(), 99) << "one refusal is enough";
      gpu.nvrtc().refuse(0, "");
    }
    expect_clean(gpu);
  }
}

}  // namespace
}  // namespace eddy::testing
