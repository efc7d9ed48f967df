// Claim: a session with a GPU beside the CPU gives the CPU's results bit for bit, wherever nodes
// are placed and in whatever order the GPU's streams run: loops, branches, changing shapes, stacked
// rows, sequences; random graphs against the oracle. Copies never touch pageable memory, nothing is
// read before it is there, nothing is left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <thread>

#include "graph/ir/builder.h"
#include "runtime/api/dlpack.h"
#include "runtime/api/session.h"
#include "tests/runtime/cuda/cuda_session_fixture.h"
#include "tools/check/differential_campaign.h"
#include "tools/check/hash_ops.h"
#include "tools/check/oracle.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const ValueType kDouble = tensor_type(ElementType::kDouble, {});

// newton.cc of the examples.
Result<Graph> newton(const Library& library) {
  GraphBuilder b(library.ops());
  const Value a = b.input("a", kDouble);
  const Value tolerance = b.input("tolerance", kDouble);
  const auto root = b.while_loop(
      {.name = "newton", .initial = {a}},
      [&](Value, ValueSpan x) {
        const Value error = b.op("Abs", {b.op("Sub", {b.op("Mul", {x[0], x[0]}), a})});
        return WhileTest{b.op("Greater", {error, tolerance}), {x[0]}};
      },
      [&](Value, ValueSpan x) {
        const Value sum = b.op("Add", {x[0], b.op("Div", {a, x[0]})});
        return std::vector<Value>{b.op("Mul", {sum, b.scalar(0.5)})};
      });
  b.output("root", root[0]);
  return b.finish();
}

class CudaSessionTest : public CudaSessionFixture {
 protected:
  std::unique_ptr<Session> make(Result<Graph> graph, double cpu_share = 0,
                                Loops loops = Loops::kAuto) {
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    use_fake({.cpu_share = cpu_share});
    return make_or_null(std::move(*graph), {.num_threads = 2, .loops = loops});
  }
};

TEST_P(CudaSessionTest, NewtonsMethodStopsWhereTheCpuStops) {
  for (const Loops loops : {Loops::kHost, Loops::kAuto}) {
    auto session = make(newton(library_), 0, loops);
    EXPECT_THAT(session->placement_text(), HasSubstr("7 nodes on cuda, 0 on the CPU"));
    for (int repeat = 0; repeat < 3; ++repeat) {
      auto outputs =
          session->run({{"a", Tensor::scalar(2.0)}, {"tolerance", Tensor::scalar(1e-6)}});
      ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      EXPECT_NEAR((*outputs)[0].second.values<double>()[0], 1.414214, 1e-6);
      EXPECT_EQ(session->loop_reports()[0].iterations, 4);
      EXPECT_EQ(session->loop_reports()[0].driven, loops == Loops::kHost ? "host" : "device");
    }
  }
}

// y = tanh(x) without end, until the run is stopped.
Result<Graph> endless(const Library& library) {
  GraphBuilder b(library.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {8}));
  const auto results = b.while_loop(
      {.name = "endless", .initial = {x}},
      [&](Value, ValueSpan carried) {
        const Value low = b.op("ReduceMin", {carried[0]}, {{"keepdims", int64_t{0}}});
        return WhileTest{b.op("Less", {low, b.scalar(2.0f)}), {carried[0]}};
      },
      [&](Value, ValueSpan carried) {
        return std::vector<Value>{b.op("Tanh", {carried[0]}, {}, {.name = "squash"})};
      });
  b.output("y", results[0]);
  return b.finish();
}

Tensor eight_ones() { return Tensor::of<float>({8}, {1, 1, 1, 1, 1, 1, 1, 1}); }

TEST_P(CudaSessionTest, ADeadlineEndsAnEndlessLoopAndTheNextRunToo) {
  auto session = make(endless(library_));
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto outputs =
        session->run({{"x", eight_ones()}}, {.timeout = std::chrono::milliseconds(20)});
    EXPECT_EQ(outputs.status().code(), StatusCode::kDeadlineExceeded);
  }
}

TEST_P(CudaSessionTest, ALostDeviceEndsTheRunWithItsReasonAndRefusesTheNext) {
  auto session = make(endless(library_));
  fake_->cuda().fault_kernel(40, CuResult::kIllegalAddress);
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto outputs = session->run({{"x", eight_ones()}});
    ASSERT_FALSE(outputs.is_ok());
    EXPECT_EQ(outputs.status().code(), StatusCode::kDeviceLost) << outputs.status().to_string();
    EXPECT_THAT(outputs.status().message(), HasSubstr("CUDA device 0"));
  }
}

// Branch "yes" of a case: a loop "spin" of ten rounds, two kernels in its test and "squash" in its
// body.
Result<Graph> loop_in_a_case(const Library& library) {
  GraphBuilder b(library.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {8}));
  const Value choice = b.input("choice", tensor_type(ElementType::kBool, {}));
  const auto spin = [&] {
    return std::vector<Value>{b.while_loop(
        {.name = "spin", .initial = {x}, .trip_limit = b.scalar(int64_t{10})},
        [&](Value, ValueSpan carried) {
          const Value low = b.op("ReduceMin", {carried[0]}, {{"keepdims", int64_t{0}}});
          return WhileTest{b.op("Less", {low, b.scalar(2.0f)}), {carried[0]}};
        },
        [&](Value, ValueSpan carried) {
          return std::vector<Value>{b.op("Tanh", {carried[0]}, {}, {.name = "squash"})};
        })[0]};
  };
  const std::vector<CaseBody> branches = {[&] { return std::vector<Value>{x}; }, spin};
  const auto results = b.case_of({.name = "pick", .selector = choice}, branches);
  b.output("y", results[0]);
  return b.finish();
}

TEST_P(CudaSessionTest, AFaultInALoopInACaseIsToldWithItsNodeAndIteration) {
  // Four kernels a round: two in the test, one that notifies the host and one in the body. The host
  // observes a fault when it waits for the next test.
  for (const uint64_t k : {1, 5, 12, 30}) {
    SCOPED_TRACE("kernel " + std::to_string(k));
    auto session = make(loop_in_a_case(library_), 0, Loops::kHost);
    ASSERT_THAT(session->placement_text(), HasSubstr("3 nodes on cuda"));
    fake_->cuda().fault_kernel(k, CuResult::kIllegalAddress);
    const auto outputs = session->run({{"x", eight_ones()}, {"choice", Tensor::scalar(true)}});
    ASSERT_FALSE(outputs.is_ok());
    EXPECT_EQ(outputs.status().code(), StatusCode::kDeviceLost) << outputs.status().to_string();
    EXPECT_THAT(outputs.status().to_string(), HasSubstr("/spin[" + std::to_string(k / 4) + "]/"));
    EXPECT_THAT(outputs.status().to_string(), HasSubstr("pick/"));
    EXPECT_THAT(outputs.status().message(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
    session.reset();
    EXPECT_THAT(fake_->problems(), IsEmpty());
    EXPECT_EQ(fake_->cuda().leaks(), "");
  }
}

TEST_P(CudaSessionTest, ACallThatLosesTheDeviceInALoopInACaseIsToldWithItsNodeAndIteration) {
  const NamedTensors inputs = {{"x", eight_ones()}, {"choice", Tensor::scalar(true)}};
  auto alone = Session::create(library_, std::move(*loop_in_a_case(library_)), {});
  ASSERT_TRUE(alone.is_ok()) << alone.status().to_string();
  const auto expected = (*alone)->run(inputs);
  ASSERT_TRUE(expected.is_ok()) << expected.status().to_string();

  std::set<std::string> iterations;
  // Looks at what has ended are calls, too: on a busy machine there are many to an iteration.
  for (uint64_t k = 20; k < 800; k += 7) {
    const bool is_lost = k % 2 == 0;
    auto session = make(loop_in_a_case(library_), 0, Loops::kHost);
    fake_->cuda().fail_call(k, is_lost ? CuResult::kIllegalAddress : CuResult::kOutOfMemory);
    const auto outputs = session->run(inputs);
    fake_->cuda().fail_call(0, CuResult::kIllegalAddress);
    if (outputs.is_ok()) {  // it had ended by then, or what failed was not needed
      EXPECT_TRUE(std::ranges::equal((*outputs)[0].second.values<float>(),
                                     (*expected)[0].second.values<float>()))
          << "call " << k;
      continue;
    }
    const std::string text = outputs.status().to_string();
    EXPECT_NE(outputs.status().code(), StatusCode::kInternal) << text;
    if (is_lost) {
      EXPECT_EQ(outputs.status().code(), StatusCode::kDeviceLost) << text;
    }
    const size_t at = text.find("/spin[");
    if (at != std::string::npos) iterations.insert(text.substr(at, text.find(']', at) - at));
    session.reset();
  }
  // Without a context nothing could be freed.
  if (fake_->cuda().failed_call() == "context_push") fake_.reset();
  EXPECT_GT(iterations.size(), 5u) << "too few failures fell into the loop to show anything";
}

TEST_P(CudaSessionTest, RunsAtOnceKeepTheirValuesApart) {
  auto session = make(newton(library_), 0.4);
  std::vector<RunHandle> handles;
  std::vector<double> roots(6);
  for (int i = 0; i < 6; ++i) {
    handles.push_back(
        session->run_async({{"a", Tensor::scalar(1.0 + i)}, {"tolerance", Tensor::scalar(1e-9)}},
                           [&root = roots[static_cast<size_t>(i)]](Result<NamedTensors> outputs) {
                             ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
                             root = (*outputs)[0].second.values<double>()[0];
                           }));
  }
  for (RunHandle& handle : handles) EXPECT_TRUE(handle.wait().is_ok());
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(roots[static_cast<size_t>(i)], std::sqrt(1.0 + i), 1e-8);
}

TEST_P(CudaSessionTest, ARunOnTheCallersStreamWaitsItsTurnThere) {
  auto session = make(newton(library_));
  auto stream = session->create_stream();
  ASSERT_TRUE(stream.is_ok()) << stream.status().to_string();
  double root = 0;
  RunHandle handle =
      session->run_on(**stream, {{"a", Tensor::scalar(2.0)}, {"tolerance", Tensor::scalar(1e-9)}},
                      [&](Result<NamedTensors> outputs) {
                        ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
                        root = (*outputs)[0].second.values<double>()[0];
                      });
  EXPECT_TRUE(handle.wait().is_ok());
  EXPECT_NEAR(root, std::sqrt(2.0), 1e-8);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaSessionTest, ::testing::Range(uint64_t{1}, uint64_t{7}));

// left = tanh(x * w) beside right = sigmoid(y + w); x = (left + right) * left, y = (left + right) -
// right.
Result<Graph> long_loop(const Library& library, int64_t rounds) {
  GraphBuilder b(library.ops());
  const ValueType eight = tensor_type(ElementType::kFloat, {8});
  const Value x = b.input("x", eight);
  const Value w = b.input("w", eight);
  const auto results = b.while_loop(
      {.name = "long", .initial = {x, x}, .trip_limit = b.scalar(rounds)},
      [&](Value, ValueSpan v) {
        const Value low = b.op("ReduceMin", {v[0]}, {{"keepdims", int64_t{0}}});
        return WhileTest{b.op("Less", {low, b.scalar(2.0f)}), {v[0], v[1]}};
      },
      [&](Value, ValueSpan v) {
        const Value left = b.op("Tanh", {b.op("Mul", {v[0], w})});
        const Value right = b.op("Sigmoid", {b.op("Add", {v[1], w})});
        const Value both = b.op("Add", {left, right});
        return std::vector<Value>{b.op("Mul", {both, left}), b.op("Sub", {both, right})};
      });
  b.output("a", results[0]);
  b.output("b", results[1]);
  return b.finish();
}

NamedTensors long_inputs() {
  return {{"x", eight_ones()}, {"w", Tensor::of<float>({8}, {1, 2, 3, 4, 5, 6, 7, 8})}};
}

TEST_P(CudaSessionTest, ALoopsBodyIsRecordedOnceForEachPlaceOfItsCarriedValues) {
  constexpr int64_t kRounds = 24;
  SessionOptions options;
  auto expected =
      std::move(*Session::create(library_, std::move(*long_loop(library_, kRounds)), options))
          ->run(long_inputs());
  ASSERT_TRUE(expected.is_ok()) << expected.status().to_string();
  auto session = make(long_loop(library_, kRounds), 0, Loops::kHost);
  for (int repeat = 0; repeat < 2; ++repeat) {
    auto outputs = session->run(long_inputs());
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    EXPECT_EQ(check::difference(*expected, *outputs), "");
  }
  EXPECT_GE(fake_->cuda().num_graph_launches(), 2 * (kRounds - 8));
  EXPECT_LE(fake_->cuda().num_instantiations(), 8u);
}

// x = tanh(x * w), and rows of each round that take longer to make than the next x. There is work
// right before the loop and in each test, so that recordings meet the loop's own commands.
Result<Graph> loop_with_rows(const Library& library) {
  GraphBuilder b(library.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {8}));
  const Value w = b.input("w", tensor_type(ElementType::kFloat, {8}));
  const auto results = b.while_loop(
      {.name = "rows",
       .initial = {b.op("Abs", {b.op("Neg", {x})})},
       .trip_limit = b.scalar(int64_t{7}),
       .num_scan_outputs = 2},
      [&](Value, ValueSpan v) {
        const Value low = b.op("ReduceMin", {b.op("Abs", {v[0]})}, {{"keepdims", int64_t{0}}});
        return WhileTest{b.op("Less", {low, b.scalar(2.0f)}), {v[0]}};
      },
      [&](Value, ValueSpan v) {
        const Value next = b.op("Tanh", {b.op("Mul", {v[0], w})}, {}, {.name = "next"});
        Value left = next;
        Value right = b.op("Reshape", {v[0], b.constant(Tensor::of<int64_t>({2}, {2, 4}).view())});
        for (int i = 0; i < 3; ++i) {
          left = b.op("Sigmoid", {b.op("Add", {left, w})});
          right = b.op("Sigmoid", {b.op("Mul", {right, right})});
        }
        return std::vector<Value>{next, left, right};
      });
  b.output("last", results[0]);
  b.output("left", results[1]);
  b.output("right", results[2]);
  return b.finish();
}

// Iterations overlap on the GPU's streams and the CPU's, also where values have memory of their own
// and the host releases its references before the GPU has read it.
TEST_P(CudaSessionTest, OpenLoopsGiveWhatTheCpuGives) {
  auto expected = std::move(*Session::create(library_, std::move(*loop_with_rows(library_)), {}))
                      ->run(long_inputs());
  ASSERT_TRUE(expected.is_ok()) << expected.status().to_string();
  uint32_t num_open = 0;
  for (const double cpu_share : {0.0, 0.4}) {
    for (const bool use_arenas : {true, false}) {
      FakeAccelerator fake(library_, {.seed = GetParam(), .cpu_share = cpu_share});
      SessionOptions options;
      options.num_threads = 2;
      options.assignment = GetParam() % 2 == 0 ? Assignment::kMatching : Assignment::kRank;
      options.use_arenas = use_arenas;
      options.merges_loops = false;
      options.make_devices = {fake.maker()};
      auto session = Session::create(library_, std::move(*loop_with_rows(library_)), options);
      ASSERT_TRUE(session.is_ok()) << session.status().to_string();
      for (const Program::Loop& loop : (*session)->plan().program.loops) {
        num_open += loop.is_pipelined ? 1 : 0;
      }
      for (int repeat = 0; repeat < 2; ++repeat) {
        auto outputs = (*session)->run(long_inputs());
        ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
        EXPECT_EQ(check::difference(*expected, *outputs), "") << "share " << cpu_share;
      }
      session->reset();
      EXPECT_THAT(fake.problems(), IsEmpty());
      EXPECT_EQ(fake.cuda().leaks(), "");
    }
  }
  EXPECT_GT(num_open, 1u);
}

TEST_P(CudaSessionTest, WhateverCallFailsWhileBodiesAreRecordedTheRunIsRightOrSaysWhy) {
  SessionOptions options;
  auto cpu = std::move(*Session::create(library_, std::move(*long_loop(library_, 8)), options));
  const auto expected = cpu->run(long_inputs());
  std::set<std::string> failed;
  for (uint64_t k = 1; k < 400; k += k < 80 ? 1 : 5) {  // the first ones are of all kinds
    auto session = make(long_loop(library_, 8), 0, Loops::kHost);
    fake_->cuda().fail_call(k, k % 2 == 0 ? CuResult::kOutOfMemory : CuResult::kInvalidValue);
    const auto outputs = session->run(long_inputs());
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
  EXPECT_GT(failed.size(), 6u) << "too few kinds of calls have failed to show anything";
}

TEST_P(CudaSessionTest, WhatARecordingIsRefusedIsDoneWithoutItOrTold) {
  const auto expected =
      std::move(*Session::create(library_, std::move(*long_loop(library_, 8)), {}))
          ->run(long_inputs());
  for (const char* entry : {"stream_begin_capture", "stream_end_capture", "graph_create",
                            "graph_instantiate", "graph_launch"}) {
    for (const Loops loops : {Loops::kHost, Loops::kDevice}) {
      SCOPED_TRACE(entry);
      auto session = make(long_loop(library_, 8), 0, loops);
      fake_->cuda().fail_next(entry, CuResult::kOutOfMemory);
      bool has_failed = false;
      for (int repeat = 0; repeat < 3; ++repeat) {
        const auto outputs = session->run(long_inputs());
        if (outputs.is_ok()) {
          EXPECT_EQ(check::difference(*expected, *outputs), "");
        } else {
          EXPECT_FALSE(has_failed) << "once is enough";
          EXPECT_THAT(outputs.status().to_string(), HasSubstr("answered CUDA_ERROR_"));
          has_failed = true;
        }
      }
      EXPECT_EQ(fake_->cuda().failed_call(), entry);
      session.reset();
      EXPECT_THAT(fake_->problems(), IsEmpty());
      EXPECT_EQ(fake_->cuda().leaks(), "");
    }
  }
}

// A caller's array on the GPU, by DLPack.
TEST_P(CudaSessionTest, CallersMemoryOnTheGpuIsReadAndWrittenWhereItIs) {
  auto session = make(long_loop(library_, 5));
  const auto expected = session->run(long_inputs());
  ASSERT_TRUE(expected.is_ok()) << expected.status().to_string();
  auto device = std::move(*CudaDevice::create(fake_->cuda().api(), {}));
  {
    const BufferRef x = std::move(*device->allocator().allocate(32));
    const BufferRef y = std::move(*device->allocator().allocate(32));
    const Tensor ones = eight_ones();
    ASSERT_TRUE(device->write(x.data(), ones.view().data, 32).is_ok());
    std::vector<int64_t> shape = {8};
    DLManagedTensor managed{};
    managed.dl_tensor.data = x.data();
    managed.dl_tensor.device = {kDLCUDA, 0};
    managed.dl_tensor.ndim = 1;
    managed.dl_tensor.dtype = {kDLFloat, 32, 1};
    managed.dl_tensor.shape = shape.data();
    const auto given = tensor_from_dlpack(&managed);
    ASSERT_TRUE(given.is_ok()) << given.status().to_string();
    auto call = std::move(*session->prepare());
    ASSERT_TRUE(call->bind_input(0, *given).is_ok());
    const Tensor w = long_inputs()[1].second;
    ASSERT_TRUE(call->bind_input(1, w.view()).is_ok());
    const Tensor shaped = eight_ones();
    TensorView to = shaped.view();
    to.data = y.data();
    ASSERT_TRUE(call->bind_device_output(0, to).is_ok());
    for (int repeat = 0; repeat < 3; ++repeat) {
      const Status status = call->run();
      ASSERT_TRUE(status.is_ok()) << status.to_string();
      EXPECT_EQ(call->output(0).data, y.data());
      EXPECT_FALSE(call->value(0).is_tensor());
    }
    // Read back by the next run, as an input.
    managed.dl_tensor.data = y.data();
    const auto made = tensor_from_dlpack(&managed);
    const auto again = session->run({{"x", *made}, {"w", w}});
    ASSERT_TRUE(again.is_ok()) << again.status().to_string();
    const auto wanted = session->run({{"x", (*expected)[0].second}, {"w", w}});
    EXPECT_EQ(check::difference(*wanted, *again), "");
  }
}

TEST_P(CudaSessionTest, ARunTakesItsTurnOnADriversStreamOfTheCallers) {
  auto session = make(newton(library_));
  EXPECT_THAT(session->adopt_stream(nullptr).status().message(), HasSubstr("null stream"));
  auto device = std::move(*CudaDevice::create(fake_->cuda().api(), {}));
  auto theirs = std::move(*device->create_stream());
  auto stream = session->adopt_stream(theirs->native());
  ASSERT_TRUE(stream.is_ok()) << stream.status().to_string();
  double root = 0;
  RunHandle handle =
      session->run_on(**stream, {{"a", Tensor::scalar(2.0)}, {"tolerance", Tensor::scalar(1e-9)}},
                      [&](Result<NamedTensors> outputs) {
                        ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
                        root = (*outputs)[0].second.values<double>()[0];
                      });
  EXPECT_TRUE(handle.wait().is_ok());
  EXPECT_NEAR(root, std::sqrt(2.0), 1e-8);
  stream->reset();
}

// Random graphs against the oracle, the devices mixed at random.
TEST(CudaSessionCampaign, RandomGraphsGiveWhatTheOracleSays) {
  Library library;
  ASSERT_TRUE(check::add_hash_ops(library).is_ok());
  uint64_t num_kernels = 0;
  uint64_t num_graph_launches = 0;
  for (const double cpu_share : {0.0, 0.3, 0.7}) {
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      FakeAccelerator fake(library,
                           {.seed = seed, .cpu_share = cpu_share, .can_capture = seed % 4 != 0});
      check::GenerateOptions generate;
      generate.has_floats = true;
      const auto contestant = check::session_contestant("cuda", [&](const check::Recipe&) {
        SessionOptions options;
        options.num_threads = 1;
        options.simplify = seed % 2 == 0;
        options.assignment = seed % 3 == 0 ? Assignment::kSerial : Assignment::kRank;
        options.merges_loops = false;
        options.make_devices = {fake.maker()};
        return options;
      });
      check::Subject subject(library, check::make_recipe(seed, generate));
      EXPECT_EQ(contestant.difference(subject), "")
          << "seed " << seed << ", share of the CPU " << cpu_share;
      EXPECT_THAT(fake.problems(), IsEmpty()) << "seed " << seed;
      EXPECT_EQ(fake.cuda().leaks(), "") << "seed " << seed;
      num_kernels += fake.num_kernels();
      num_graph_launches += fake.cuda().num_graph_launches();
      if (::testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(num_kernels, 1'000u) << "too few to show anything";
  EXPECT_GT(num_graph_launches, 50u) << "too few recordings to show anything";
}

}  // namespace
}  // namespace eddy::testing
