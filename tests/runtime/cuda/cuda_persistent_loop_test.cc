// Claim: loops that are small enough run as one kernel on a GPU (a fake driver's, with a fake
// compiler): the bits and trip counts of a kernel a node and conditional nodes, for random loops,
// too; any number side by side, inside loops that the host drives, results kept by callers. They
// end within an iteration when they are stopped; a lost device is reported with node and iteration;
// what is no such loop says why, and a compiler that refuses costs speed alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "graph/ir/builder.h"
#include "runtime/execute/loop_choice.h"
#include "tests/runtime/cuda/fake_fusing_gpu.h"
#include "tests/runtime/cuda/loop_shapes.h"
#include "tests/runtime/cuda/random_loops.h"
#include "tools/check/oracle.h"

namespace eddy::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const ValueType kFloat = tensor_type(ElementType::kFloat, {});
const ValueType kWide = tensor_type(ElementType::kFloat, {3, 11});

Result<std::unique_ptr<Session>> create(FusingGpu& gpu, Graph graph, bool fuses,
                                        Loops loops = Loops::kDevice) {
  SessionOptions options = gpu.options(fuses);
  options.num_threads = 1;
  options.loops = loops;
  options.measure_loops = false;
  return Session::create(library(), std::move(graph), options);
}

std::unique_ptr<Session> make(FusingGpu& gpu, const Build& build, bool fuses = true,
                              Loops loops = Loops::kDevice) {
  auto session = create(gpu, graph_of(build), fuses, loops);
  EXPECT_TRUE(session.is_ok()) << session.status().to_string();
  return session.is_ok() ? std::move(*session) : nullptr;
}

void expect_clean(FusingGpu& gpu) {
  EXPECT_THAT(gpu.cuda().violations(), IsEmpty());
  EXPECT_THAT(gpu.nvrtc().violations(), IsEmpty());
  EXPECT_EQ(gpu.cuda().leaks(), "");
}

// Copies, so that the session's memory can go.
NamedTensors copies(const NamedTensors& outputs) {
  NamedTensors made;
  for (const auto& [name, tensor] : outputs)
    made.emplace_back(name, Tensor::copy_of(tensor.view()));
  return made;
}

Tensor wide(float first) {
  std::vector<float> values;
  for (int i = 0; i < 33; ++i) values.push_back(first + 0.0625f * static_cast<float>(i % 7));
  return Tensor::of<float>({3, 11}, values);
}

// x and y change places, a row of sums is added, a count is read; so often around.
Build mixing(int64_t limit) {
  return [limit](GraphBuilder& b) {
    const Value x = b.input("x", kWide);
    const Value y = b.input("y", kWide);
    const Value bound = b.input("bound", kFloat);
    const auto results = b.while_loop(
        {.name = "mix", .initial = {x, y, x}, .trip_limit = b.scalar(limit)},
        [&](Value, ValueSpan v) {
          const Value most = b.op("ReduceMax", {v[0]}, {{"keepdims", int64_t{0}}});
          return WhileTest{b.op("Less", {most, bound}), {v[1], v[0], v[2]}};
        },
        [&](Value i, ValueSpan v) {
          int64_t axis = 1;
          const int64_t dims[] = {1};
          const Value axes = b.constant({&axis, dims, 1, ElementType::kInt64});
          const Value rows = b.op("ReduceSum", {v[0], axes}, {{"keepdims", int64_t{1}}});
          const Value number = b.op("Cast", {i}, {{"to", int64_t{1}}});
          const Value sum = b.op("Add", {b.op("Mul", {rows, b.scalar(0.03125f)}), v[1]});
          return std::vector<Value>{b.op("Tanh", {b.op("Add", {sum, number})}), v[2], v[1]};
        });
    b.output("a", results[0]);
    b.output("b", results[1]);
  };
}

TEST(CudaPersistentLoop, GivesTheBitsOfAKernelANodeAndConditionalNodes) {
  for (const int64_t limit : {0, 1, 2, 17}) {
    for (const float bound : {-100.0f, 1e9f}) {
      FusingGpu gpu(static_cast<uint64_t>(limit) + 3);
      const NamedTensors inputs = {
          {"x", wide(-1)}, {"y", wide(0.25f)}, {"bound", Tensor::scalar(bound)}};
      auto apart = make(gpu, mixing(limit), false);
      ASSERT_NE(apart, nullptr);
      NamedTensors expected;
      {
        const auto outputs = apart->run(inputs);
        ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
        expected = copies(*outputs);
      }
      EXPECT_EQ(gpu.num_loops(), 0u);
      auto session = make(gpu, mixing(limit));
      ASSERT_NE(session, nullptr);
      for (uint64_t repeat = 1; repeat <= 3; ++repeat) {
        const auto outputs = session->run(inputs);
        ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
        EXPECT_EQ(check::difference(expected, *outputs), "");
        const LoopReport report = session->loop_reports()[0];
        EXPECT_EQ(report.iterations, bound < 0 ? 0 : limit);
        EXPECT_EQ(report.iterations, apart->loop_reports()[0].iterations);
        EXPECT_EQ(report.driven, "device");
        EXPECT_THAT(report.reason, HasSubstr("persistent: "));
        EXPECT_EQ(gpu.num_loops(), repeat);
      }
      apart.reset();
      session.reset();
      expect_clean(gpu);
    }
  }
}

TEST(CudaPersistentLoop, RandomLoopsGiveTheBitsOfConditionalNodes) {
  uint64_t num_loops = 0;
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    FusingGpu gpu(seed);
    NamedTensors expected;
    for (const bool fuses : {false, true}) {
      auto made = make_random_loops(library(), seed);
      ASSERT_TRUE(made.is_ok());
      auto session = create(gpu, std::move(made->graph), fuses);
      // A loop of which nothing is left on the device; random_loops.h makes a few.
      if (session.status().code() == StatusCode::kUnsupported) continue;
      ASSERT_TRUE(session.is_ok()) << session.status().to_string();
      for (int repeat = 0; repeat < 2; ++repeat) {
        const auto outputs = (*session)->run(made->inputs);
        ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
        if (!fuses) {
          expected = copies(*outputs);
        } else {
          ASSERT_EQ(check::difference(expected, *outputs), "");
        }
      }
    }
    num_loops += gpu.num_loops();
    expect_clean(gpu);
  }
  EXPECT_GT(num_loops, 60u);
}

TEST(CudaPersistentLoop, AnyNumberRunsAtOnce) {
  FusingGpu gpu(5);
  auto session = make(gpu, side_by_side(9));
  ASSERT_NE(session, nullptr);
  std::vector<NamedTensors> kept;  // results held while the next run makes its own
  for (int repeat = 0; repeat < 6; ++repeat) {
    const float x = 0.125f * static_cast<float>(repeat);
    const auto outputs = session->run({{"x", Tensor::scalar(x)}});
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    kept.push_back(*outputs);
    for (const LoopReport& report : session->loop_reports()) {
      EXPECT_EQ(report.driven, "device") << report.reason;
    }
  }
  for (size_t repeat = 0; repeat < kept.size(); ++repeat) {
    for (size_t i = 0; i < 9; ++i) {
      float expected = 0.125f * static_cast<float>(repeat);
      while (expected < static_cast<float>(4 + i)) expected += 0.75f;
      EXPECT_EQ(kept[repeat][i].second.values<float>()[0], expected) << repeat << ", " << i;
    }
  }
  EXPECT_EQ(gpu.num_loops(), 54u);
  kept.clear();
  session.reset();
  expect_clean(gpu);
}

// A loop that stacks rows, which the host drives, around one that goes round with a carried test.
void inside_a_host_loop(GraphBuilder& b) {
  const Value x = b.input("x", kWide);
  const Value go = b.input("go", tensor_type(ElementType::kBool, {}));
  const auto outer = b.while_loop(
      {.name = "outer", .initial = {x}, .trip_limit = b.scalar(int64_t{5}), .num_scan_outputs = 1},
      [&](Value, ValueSpan v) {
        return WhileTest{b.scalar(true), {v[0]}};
      },
      [&](Value, ValueSpan v) {
        const auto inner = b.while_loop(
            {.name = "inner", .initial = {go, v[0]}, .trip_limit = b.scalar(int64_t{9})},
            [&](Value, ValueSpan w) {
              return WhileTest{w[0], {w[0], w[1]}};
            },
            [&](Value, ValueSpan w) {
              const Value next = b.op("Mul", {w[1], b.scalar(1.25f)});
              const Value most = b.op("ReduceMax", {next}, {{"keepdims", int64_t{0}}});
              return std::vector<Value>{b.op("Less", {most, b.scalar(9.0f)}), next};
            });
        return std::vector<Value>{b.op("Sub", {inner[1], b.scalar(0.5f)}), inner[1]};
      });
  b.output("last", outer[0]);
  b.output("rows", outer[1]);
}

TEST(CudaPersistentLoop, TheHostMayDriveALoopAroundItAndATestMayBeCarried) {
  for (const bool go : {true, false}) {
    FusingGpu gpu(7);
    const NamedTensors inputs = {{"x", wide(0.5f)}, {"go", Tensor::scalar(go)}};
    auto cpu = std::move(*Session::create(library(), graph_of(inside_a_host_loop), {}));
    const auto expected = cpu->run(inputs);
    ASSERT_TRUE(expected.is_ok()) << expected.status().to_string();
    auto session = make(gpu, inside_a_host_loop, true, Loops::kAuto);
    ASSERT_NE(session, nullptr);
    for (int repeat = 0; repeat < 2; ++repeat) {
      const auto outputs = session->run(inputs);
      ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      EXPECT_EQ(check::difference(*expected, *outputs), "");
    }
    session.reset();
    expect_clean(gpu);
  }
}

TEST(CudaPersistentLoop, AMeasuredLoopIsTriedInFourWaysWithTheSameBits) {
  FusingGpu gpu(8);
  const NamedTensors inputs = {
      {"x", wide(-1)}, {"y", wide(0.25f)}, {"bound", Tensor::scalar(1e9f)}};
  auto cpu = std::move(*Session::create(library(), graph_of(mixing(10)), {}));
  const auto expected = cpu->run(inputs);
  ASSERT_TRUE(expected.is_ok()) << expected.status().to_string();
  SessionOptions options = gpu.options(true);
  options.num_threads = 1;
  auto session = std::move(*Session::create(library(), graph_of(mixing(10)), options));
  std::map<std::string, int> tries;
  for (int run = 0; run < 4 * LoopChoice::kTries; ++run) {
    const uint64_t num_kernels = gpu.num_loops();
    const uint64_t num_called_off = gpu.cuda().num_called_off();
    const auto outputs = session->run(inputs);
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    EXPECT_EQ(check::difference(*expected, *outputs), "") << "run " << run;
    const LoopReport report = session->loop_reports()[0];
    EXPECT_EQ(report.iterations, 10);
    const bool is_kernel = gpu.num_loops() > num_kernels;
    EXPECT_TRUE(!is_kernel || report.driven == "device") << report.reason;
    const bool is_unrolled = gpu.cuda().num_called_off() > num_called_off;
    // Rounds of ten iterations are not all full.
    ++tries[is_kernel                   ? "kernel"
            : is_unrolled               ? "unrolled"
            : report.driven == "device" ? "recording"
                                        : "host"];
  }
  const std::map<std::string, int> each = {{"host", LoopChoice::kTries},
                                           {"kernel", LoopChoice::kTries},
                                           {"recording", LoopChoice::kTries},
                                           {"unrolled", LoopChoice::kTries}};
  EXPECT_EQ(tries, each);
  ASSERT_TRUE(session->run(inputs).is_ok());
  EXPECT_THAT(session->loop_reports()[0].reason,
              AllOf(HasSubstr(" as one kernel, "), HasSubstr(" by a recording, "),
                    HasSubstr(" unrolled, ")));
  EXPECT_GT(gpu.cuda().num_programmatic(), 6u) << "kernels of a body follow each other";
  // At most one of the graphs that were made to be tried is left.
  EXPECT_GE(gpu.cuda().num_loop_instantiations(), 2u);
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(check::difference(*expected, *session->run(inputs)), "");
  }
  EXPECT_LE(gpu.cuda().num_loop_executables(), 1u);
  session.reset();
  expect_clean(gpu);
}

TEST(CudaPersistentLoop, ADeadlineAndACancelEndIt) {
  FusingGpu gpu(9);
  auto session = make(gpu, endless(kWide));
  ASSERT_NE(session, nullptr);
  const NamedTensors inputs = {{"x", wide(1)}};
  const auto outputs = session->run(inputs, {.timeout = std::chrono::milliseconds(20)});
  EXPECT_EQ(outputs.status().code(), StatusCode::kDeadlineExceeded);
  for (int repeat = 0; repeat < 3; ++repeat) {
    const uint64_t num_before = gpu.num_loops();  // the deadline may come before the loop does
    RunHandle handle = session->run_async(inputs, {});
    while (gpu.num_loops() == num_before) std::this_thread::yield();
    handle.cancel();
    EXPECT_EQ(handle.wait().code(), StatusCode::kCancelled);
  }
  session.reset();
  expect_clean(gpu);
}

TEST(CudaPersistentLoop, ALostDeviceIsToldWithTheLoopAndItsIteration) {
  for (const bool is_at_once : {true, false}) {
    FusingGpu gpu(11);
    auto session = make(gpu, endless(kWide));
    ASSERT_NE(session, nullptr);
    if (is_at_once) gpu.cuda().fault_kernel(1, CuResult::kIllegalAddress);
    RunHandle handle = session->run_async({{"x", wide(1)}}, {});
    while (!is_at_once && gpu.num_loops() == 0) std::this_thread::yield();
    if (!is_at_once) gpu.cuda().lose_device(0, CuResult::kIllegalAddress);
    const Status status = handle.wait();
    EXPECT_EQ(status.code(), StatusCode::kDeviceLost) << status.to_string();
    EXPECT_THAT(status.to_string(), HasSubstr(is_at_once ? "endless[0]" : "endless["));
    session.reset();
    EXPECT_EQ(gpu.cuda().leaks(), "");
  }
}

TEST(CudaPersistentLoop, WhereFaultsAreLocatedItIsNoKernelAndItsNodesAreNamed) {
  std::set<std::string> named;
  for (const auto way : {LoopChoice::Way::kKernel, LoopChoice::Way::kUnrolled}) {
    for (uint64_t k = 20; k < 44; ++k) {
      FusingGpu gpu(11);
      SessionOptions options = gpu.options(true, way);
      options.num_threads = 1;
      options.loops = Loops::kDevice;
      options.locate_faults = true;
      auto session = std::move(*Session::create(library(), graph_of(endless(kWide)), options));
      gpu.cuda().fault_kernel(k, CuResult::kIllegalAddress);
      const Status status =
          session->run({{"x", wide(1)}}, {.timeout = std::chrono::seconds(20)}).status();
      EXPECT_EQ(status.code(), StatusCode::kDeviceLost) << status.to_string();
      EXPECT_EQ(gpu.num_loops(), 0u);
      EXPECT_THAT(status.to_string(), HasSubstr("at endless["));
      const size_t node = status.path().find("]/");
      named.insert(node == std::string::npos ? "" : status.path().substr(node + 2));
      session.reset();
      EXPECT_EQ(gpu.cuda().leaks(), "");
    }
  }
  EXPECT_THAT(named, ::testing::UnorderedElementsAre("", "ReduceMin_0", "Less_1", "Tanh_0"))
      << "between nodes, or at one of them";
}

TEST(CudaPersistentLoop, WhatIsNoSuchLoopSaysWhyAndIsDrivenByTheDeviceAllTheSame) {
  const Build nested = [](GraphBuilder& b) {
    const Value x = b.input("x", kFloat);
    const auto rounds = [&](const char* name, Value from, const auto& body) {
      return b.while_loop(
          {.name = name, .initial = {from}, .trip_limit = b.scalar(int64_t{3})},
          [&](Value, ValueSpan v) {
            return WhileTest{b.op("Less", {v[0], b.scalar(1000.0f)}), {v[0]}};
          },
          [&](Value, ValueSpan v) { return std::vector<Value>{body(v[0])}; })[0];
    };
    b.output("y", rounds("outer", x, [&](Value v) {
               return rounds("inner", v, [&](Value w) { return b.op("Add", {w, b.scalar(1.0f)}); });
             }));
  };
  const Build product = [](GraphBuilder& b) {
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {4, 4}));
    b.output("y",
             b.while_loop(
                 {.name = "power", .initial = {x}, .trip_limit = b.scalar(int64_t{3})},
                 [&](Value, ValueSpan v) {
                   const Value most = b.op("ReduceMax", {v[0]}, {{"keepdims", int64_t{0}}});
                   return WhileTest{b.op("Less", {most, b.scalar(1e9f)}), {v[0]}};
                 },
                 [&](Value, ValueSpan v) {
                   return std::vector<Value>{b.op("MatMul", {v[0], x}, {}, {.name = "square"})};
                 })[0]);
  };
  const Build large = [](GraphBuilder& b) {
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {10000}));
    b.output("y",
             b.while_loop(
                 {.name = "many", .initial = {x}, .trip_limit = b.scalar(int64_t{3})},
                 [&](Value, ValueSpan v) {
                   const Value most = b.op("ReduceMax", {v[0]}, {{"keepdims", int64_t{0}}});
                   return WhileTest{b.op("Less", {most, b.scalar(1e9f)}), {v[0]}};
                 },
                 [&](Value, ValueSpan v) { return std::vector<Value>{b.op("Neg", {v[0]})}; })[0]);
  };
  FusingGpu gpu(13);
  for (const auto& [build, why] :
       {std::pair<Build, const char*>{nested, "not persistent: there is inner inside"},
        {product, "not persistent: square (MatMul) is neither elementwise nor a reduction"},
        {large, "not persistent: a value has 10000 elements, a block takes 8192"}}) {
    auto session = make(gpu, build);
    ASSERT_NE(session, nullptr);
    EXPECT_THAT(session->loop_reports()[0].reason, HasSubstr(why));
    EXPECT_EQ(session->loop_reports()[0].driven, "device");
  }
  gpu.nvrtc().refuse(1, "loop.cu(3): error: out of order\nand more");
  auto session = make(gpu, side_by_side(1));
  ASSERT_NE(session, nullptr);
  EXPECT_THAT(session->loop_reports()[0].reason,
              HasSubstr("not persistent: nvrtcCompileProgram refuses a kernel"));
  const auto outputs = session->run({{"x", Tensor::scalar(0.5f)}});
  ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
  EXPECT_EQ((*outputs)[0].second.values<float>()[0], 4.25f);
  EXPECT_EQ(session->loop_reports()[0].driven, "device");
  EXPECT_EQ(gpu.num_loops(), 0u);
}

TEST(CudaPersistentLoop, WhateverCallFailsTheRunIsRightOrSaysWhy) {
  const NamedTensors inputs = {
      {"x", wide(-1)}, {"y", wide(0.25f)}, {"bound", Tensor::scalar(1e9f)}};
  NamedTensors expected;
  for (uint64_t k = 0; k < 120; ++k) {
    FusingGpu gpu(15);
    auto session = make(gpu, mixing(5));
    ASSERT_NE(session, nullptr);
    if (k > 0) {
      gpu.cuda().fail_call(k, k % 3 == 0 ? CuResult::kOutOfMemory : CuResult::kInvalidValue);
    }
    const auto [status, outputs] = [&]() -> std::pair<Status, NamedTensors> {
      const auto made = session->run(inputs);
      return {made.status(), made.is_ok() ? copies(*made) : NamedTensors()};
    }();
    const std::string call = gpu.cuda().failed_call();
    gpu.cuda().fail_call(0, CuResult::kSuccess);
    SCOPED_TRACE("call " + std::to_string(k) + ", " + call);
    if (k == 0) {
      ASSERT_TRUE(status.is_ok()) << status.to_string();
      expected = outputs;
    } else if (status.is_ok()) {
      EXPECT_EQ(check::difference(expected, outputs), "");
    } else {
      EXPECT_THAT(status.to_string(), HasSubstr("answered CUDA_ERROR_"));
    }
    session.reset();
    if (call != "context_push") {  // nothing can be given back then
      EXPECT_EQ(gpu.cuda().leaks(), "");
    }
    if (k > 0 && call.empty()) break;
  }
}

}  // namespace
}  // namespace eddy::testing
