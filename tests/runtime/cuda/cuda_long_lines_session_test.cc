// Claim: sessions give long lines to CUB, issued or in recordings, with the CPU's values, and
// without it the same; a failure of the library fails the run by node; a loop that holds a call of
// the library is driven by the device, but not unrolled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

#include "graph/base/random.h"
#include "graph/ir/builder.h"
#include "runtime/api/session.h"
#include "tests/runtime/cuda/fake_library_gpu.h"
#include "tools/check/oracle.h"

namespace eddy::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Library& library() {
  static const Library* const library = new Library();
  return *library;
}

constexpr int64_t kLength = 40000;  // long enough for all
constexpr uint64_t kSeed = 31;

Graph lines_graph() {
  GraphBuilder b(library().ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {kLength}));
  const Value n = b.input("n", tensor_type(ElementType::kInt64, {2, kLength}));
  const Value squares = b.op("Mul", {x, x});
  b.output("mean", b.op("ReduceMean", {squares}, {}, {.name = "average"}));
  b.output("most", b.op("ArgMax", {x}));
  b.output("sums", b.op("CumSum", {n, b.scalar(int64_t{1})}));
  const Value inputs[] = {x, b.int64s({40})};
  const std::vector<Value> top = b.ops("TopK", inputs, {}, {.num_outputs = 2});
  b.output("top", top[0]);
  b.output("places", top[1]);
  return std::move(*b.finish());
}

// Small whole numbers with sums that are exact in any order.
NamedTensors lines() {
  Random random(kSeed);
  std::vector<float> x(kLength);
  std::vector<int64_t> n(2 * kLength);
  for (float& one : x) one = static_cast<float>(random.below(9)) - 4;
  for (int64_t& one : n) one = static_cast<int64_t>(random.below(1000));
  return {{"x", Tensor::of<float>({kLength}, std::span<const float>(x))},
          {"n", Tensor::of<int64_t>({2, kLength}, std::span<const int64_t>(n))}};
}

NamedTensors copies(const NamedTensors& tensors) {
  NamedTensors copied;
  for (const auto& [name, tensor] : tensors) {
    copied.emplace_back(name, Tensor::copy_of(tensor.view()));
  }
  return copied;
}

NamedTensors on_cpu(Graph graph, const NamedTensors& inputs) {
  const auto session = std::move(*Session::create(library(), std::move(graph), {.num_threads = 1}));
  const auto outputs = session->run(inputs);
  EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
  return copies(*outputs);
}

void expect_clean(FakeLibraryGpu& gpu) {
  EXPECT_THAT(gpu.cuda().violations(), IsEmpty());
  EXPECT_THAT(gpu.cub().violations(), IsEmpty());
  EXPECT_EQ(gpu.leaks(), "");
}

TEST(CudaLongLinesSession, LongLinesHaveTheCpusValuesWithCubAndWithoutInEveryRun) {
  const NamedTensors inputs = lines();
  const NamedTensors expected = on_cpu(lines_graph(), inputs);
  for (const bool has_libraries : {true, false}) {
    FakeLibraryGpu gpu(kSeed, has_libraries);
    {
      const auto session = std::move(*Session::create(library(), lines_graph(), gpu.options()));
      for (int run = 0; run < 4; ++run) {  // issued, recorded, replayed
        const auto outputs = session->run(inputs);
        ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
        EXPECT_EQ(check::difference(expected, *outputs), "") << "run " << run;
      }
    }
    EXPECT_GE(gpu.cub().num_runs(), has_libraries ? 5 : 0);
    EXPECT_LE(gpu.cub().num_runs(), has_libraries ? 4 * 5 : 0);
    expect_clean(gpu);
  }
}

// A failure in a recording costs the recording; the work is issued instead.
TEST(CudaLongLinesSession, AFailureOfTheLibraryFailsTheRunAndTheNextOneIsFine) {
  const NamedTensors inputs = lines();
  const NamedTensors expected = on_cpu(lines_graph(), inputs);
  for (int k = 1; k <= 9; ++k) {
    FakeLibraryGpu gpu(kSeed, true);
    {
      const auto session = std::move(*Session::create(library(), lines_graph(), gpu.options()));
      for (int run = 0; run < 3; ++run) {
        gpu.cub().fail_call(k);
        const auto outputs = session->run(inputs);
        EXPECT_TRUE(run > 0 || !outputs.is_ok()) << "call " << k;
        if (outputs.is_ok()) {
          EXPECT_EQ(check::difference(expected, *outputs), "") << "call " << k << ", run " << run;
          continue;
        }
        EXPECT_THAT(outputs.status().to_string(),
                    AllOf(HasSubstr("CUB's Device"), HasSubstr("a failure that was asked for")));
      }
      gpu.cub().fail_call(0);
      const auto outputs = session->run(inputs);
      ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      EXPECT_EQ(check::difference(expected, *outputs), "");
    }
    expect_clean(gpu);
  }
}

// Takes the maximum of a long line, five times.
Graph loop_graph() {
  GraphBuilder b(library().ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {kLength}));
  const auto result = b.while_loop(
      {.name = "drift", .initial = {x}, .trip_limit = b.scalar(int64_t{5})},
      [&](Value, ValueSpan v) {
        const Value most = b.op("ReduceMax", {v[0]}, {{"keepdims", int64_t{0}}});
        return WhileTest{b.op("Less", {most, b.scalar(1e9f)}), {v[0]}};
      },
      [&](Value, ValueSpan v) {
        return std::vector<Value>{b.op("Add", {v[0], b.scalar(1.0f)})};
      });
  b.output("y", result[0]);
  return std::move(*b.finish());
}

TEST(CudaLongLinesSession, ALoopThatCallsTheLibraryIsNotUnrolled) {
  const NamedTensors inputs = {lines()[0]};
  const NamedTensors expected = on_cpu(loop_graph(), inputs);
  for (const bool has_libraries : {true, false}) {
    FakeLibraryGpu gpu(kSeed, has_libraries);
    SessionOptions options = gpu.options();
    options.loops = Loops::kDevice;
    options.only_loop_way = LoopChoice::Way::kUnrolled;
    {
      const auto session = std::move(*Session::create(library(), loop_graph(), options));
      for (int run = 0; run < 3; ++run) {
        const auto outputs = session->run(inputs);
        ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
        EXPECT_EQ(check::difference(expected, *outputs), "") << "run " << run;
      }
      const LoopReport report = session->loop_reports()[0];
      EXPECT_EQ(report.driven, "device");
      EXPECT_EQ(report.iterations, 5);
      EXPECT_THAT(report.reason,
                  HasSubstr(has_libraries ? "others are a library's" : "unrolled: up to"));
    }
    EXPECT_EQ(gpu.cub().num_runs() > 0, has_libraries);
    expect_clean(gpu);
  }
}

}  // namespace
}  // namespace eddy::testing
