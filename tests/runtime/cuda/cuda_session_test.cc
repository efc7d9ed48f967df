// Claim: a session with a GPU beside the CPU gives the CPU's results bit for bit, wherever nodes
// are placed and in whatever order the GPU's streams run: loops, branches, changing shapes, stacked
// rows, sequences; random graphs against the oracle. Copies never touch pageable memory, nothing is
// read before it is there, nothing is left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "graph/ir/builder.h"
#include "runtime/api/session.h"
#include "tests/runtime/cuda/fake_accelerator.h"
#include "tools/check/differential_campaign.h"
#include "tools/check/mixing_ops.h"

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

class CudaSessionTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  std::unique_ptr<Session> make(Result<Graph> graph, double cpu_share = 0) {
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    fake_ = std::make_unique<FakeAccelerator>(
        library_, FakeAcceleratorOptions{.seed = GetParam(), .cpu_share = cpu_share});
    SessionOptions options;
    options.num_threads = 2;
    options.assignment = Assignment::kRank;
    options.make_accelerator = fake_->maker();
    auto session = Session::create(library_, std::move(*graph), options);
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    return std::move(*session);
  }
  ~CudaSessionTest() override {
    if (fake_ == nullptr) return;
    EXPECT_THAT(fake_->problems(), IsEmpty());
    EXPECT_EQ(fake_->cuda().leaks(), "");
  }
  Library library_;
  std::unique_ptr<FakeAccelerator> fake_;
};

TEST_P(CudaSessionTest, NewtonsMethodStopsWhereTheCpuStops) {
  auto session = make(newton(library_));
  EXPECT_THAT(session->placement_text(), HasSubstr("7 nodes on cuda, 0 on the CPU"));
  for (int repeat = 0; repeat < 3; ++repeat) {
    auto outputs = session->run({{"a", Tensor::scalar(2.0)}, {"tolerance", Tensor::scalar(1e-6)}});
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    EXPECT_NEAR((*outputs)[0].second.values<double>()[0], 1.414214, 1e-6);
    EXPECT_EQ(session->loop_reports()[0].iterations, 4);
    EXPECT_EQ(session->loop_reports()[0].driven, "host");
  }
}

// y = tanh(x) again and again, for as long as nobody stops it.
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
  while (!(*stream)->is_idle()) std::this_thread::yield();
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaSessionTest, ::testing::Range(uint64_t{1}, uint64_t{7}));

// Random graphs against the oracle, the devices mixed at random.
TEST(CudaSessionCampaign, RandomGraphsGiveWhatTheOracleSays) {
  Library library;
  ASSERT_TRUE(check::add_mixing_ops(library).is_ok());
  uint64_t num_kernels = 0;
  for (const double cpu_share : {0.0, 0.3, 0.7}) {
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      FakeAccelerator fake(library, {.seed = seed, .cpu_share = cpu_share});
      check::GenerateOptions generate;
      generate.has_floats = true;
      const auto contestant = check::session_contestant("cuda", [&](const check::Recipe&) {
        SessionOptions options;
        options.num_threads = 1;
        options.simplify = seed % 2 == 0;
        options.assignment = seed % 3 == 0 ? Assignment::kSerial : Assignment::kRank;
        options.make_accelerator = fake.maker();
        return options;
      });
      check::Subject subject(library, check::make_recipe(seed, generate));
      EXPECT_EQ(contestant.difference(subject), "")
          << "seed " << seed << ", share of the CPU " << cpu_share;
      EXPECT_THAT(fake.problems(), IsEmpty()) << "seed " << seed;
      EXPECT_EQ(fake.cuda().leaks(), "") << "seed " << seed;
      num_kernels += fake.num_kernels();
      if (::testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(num_kernels, 1'000u) << "too few to show anything";
}

}  // namespace
}  // namespace eddy::testing
