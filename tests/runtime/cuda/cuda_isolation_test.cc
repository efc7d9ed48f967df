// Claim: sessions on one GPU do not spoil each other's recordings: what synchronizes the device
// waits until none is open, the libraries' handles outlive whoever used them, and a recording that
// holds a library's work finds its handles made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "graph/ir/builder.h"
#include "runtime/cuda/capture_turns.h"
#include "tests/runtime/cuda/fake_library_gpu.h"
#include "tools/check/oracle.h"

namespace eddy::testing {
namespace {

using ::testing::IsEmpty;

const Library& library() {
  static const Library* const library = new Library();
  return *library;
}

using Clock = std::chrono::steady_clock;

void expect_clean(const FakeLibraryGpu& gpu, FakeCuda& cuda) {
  EXPECT_EQ(gpu.cudnn().num_destroyed() + gpu.cublas_lt().num_destroyed(), 0);
  EXPECT_THAT(cuda.violations(), IsEmpty());
  EXPECT_EQ(gpu.leaks(), "");
}

TEST(CudaIsolation, ADeviceThatGoesWaitsForARecordingOfAnother) {
  FakeLibraryGpu gpu(7, true);
  const MakeDevice make = gpu.options().make_devices[0];
  {
    const auto stays = make();
    ASSERT_TRUE(stays.is_ok()) << stays.status().to_string();
    auto goes = make();
    ASSERT_TRUE(goes.is_ok()) << goes.status().to_string();
    const auto capture = stays->device->create_capture_or_null();
    ASSERT_NE(capture, nullptr);
    ASSERT_TRUE(capture->begin().is_ok());
    ASSERT_TRUE(capture->stream(0).is_ok());
    const auto begin = Clock::now();
    std::atomic<bool> has_gone{false};
    std::thread closer([&] {
      goes = unsupported("gone");
      has_gone = true;
    });
    while (!has_gone && Clock::now() - begin < CaptureTurns::kPatience / 20) {
      std::this_thread::yield();
    }
    const bool has_waited = !has_gone;
    const auto recorded = capture->finish();
    // A thread that gets no processor for so long shows nothing.
    if (Clock::now() - begin < CaptureTurns::kPatience) {
      EXPECT_TRUE(has_waited);
      EXPECT_TRUE(recorded.is_ok()) << recorded.status().to_string();
      EXPECT_EQ(gpu.cuda().num_spoilt(), 0u);
    }
    closer.join();
  }
  expect_clean(gpu, gpu.cuda());
}

TEST(CudaIsolation, ADeviceMadeBesideARecordingWaitsOrFindsHandlesThatAreLeft) {
  FakeLibraryGpu gpu(8, true);
  const MakeDevice make = gpu.options().make_devices[0];
  {
    const auto stays = make();
    ASSERT_TRUE(stays.is_ok()) << stays.status().to_string();
    ASSERT_TRUE(make().is_ok());  // and goes
    const int num_created = gpu.cudnn().num_created() + gpu.cublas_lt().num_created();
    const auto capture = stays->device->create_capture_or_null();
    ASSERT_TRUE(capture->begin().is_ok());
    ASSERT_TRUE(capture->stream(0).is_ok());
    std::atomic<bool> is_made{false};
    std::thread other([&] {
      const auto made = make();
      EXPECT_TRUE(made.is_ok()) << made.status().to_string();
      is_made = true;
      ASSERT_TRUE(capture->finish().is_ok());
    });
    other.join();
    EXPECT_TRUE(is_made);
    EXPECT_EQ(gpu.cuda().num_spoilt(), 0u);
    EXPECT_EQ(gpu.cudnn().num_created() + gpu.cublas_lt().num_created(), num_created);
  }
  expect_clean(gpu, gpu.cuda());
}

// Two convolutions side by side; of small whole numbers, all sums are exact.
Value two_convolutions(GraphBuilder& b, Value x, Value w) {
  const std::vector<int64_t> pads = {1, 1, 1, 1};
  return b.op("Add", {b.op("Conv", {x, w}, {{"pads", pads}}),
                      b.op("Conv", {b.op("Relu", {x}), w}, {{"pads", pads}})});
}

Result<Graph> straight() {
  GraphBuilder b(library().ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {1, 2, 8, 8}));
  const Value w = b.input("w", tensor_type(ElementType::kFloat, {2, 2, 3, 3}));
  b.output("y", two_convolutions(b, x, w));
  return b.finish();
}

Result<Graph> loop() {
  GraphBuilder b(library().ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {1, 2, 8, 8}));
  const Value w = b.input("w", tensor_type(ElementType::kFloat, {2, 2, 3, 3}));
  const auto results = b.while_loop(
      {.name = "filter", .initial = {x}, .trip_limit = b.scalar(int64_t{3})},
      [&](Value, ValueSpan v) {
        const Value most = b.op("ReduceMax", {v[0]}, {{"keepdims", int64_t{0}}});
        return WhileTest{b.op("Less", {most, b.scalar(1e9f)}), {v[0]}};
      },
      [&](Value, ValueSpan v) { return std::vector<Value>{two_convolutions(b, v[0], w)}; });
  b.output("y", results[0]);
  return b.finish();
}

NamedTensors inputs() {
  std::vector<float> x(128), w(36);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3;
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 3) - 1;
  return {{"x", Tensor::of<float>({1, 2, 8, 8}, std::span<const float>(x))},
          {"w", Tensor::of<float>({2, 2, 3, 3}, std::span<const float>(w))}};
}

TEST(CudaIsolation, ARecordingWithALibrarysWorkFindsItsHandlesMadeAndItsAlgorithmsChosen) {
  for (const auto& [build, loops] :
       {std::pair{&straight, Loops::kHost}, {&loop, Loops::kHost}, {&loop, Loops::kDevice}}) {
    auto on_cpu = Session::create(library(), std::move(*build()), {.num_threads = 1});
    ASSERT_TRUE(on_cpu.is_ok()) << on_cpu.status().to_string();
    const auto expected = (*on_cpu)->run(inputs());
    ASSERT_TRUE(expected.is_ok()) << expected.status().to_string();
    FakeLibraryGpu gpu(9, true);
    {
      SessionOptions options = gpu.options();
      options.loops = loops;
      if (loops == Loops::kDevice) options.only_loop_way = LoopChoice::Way::kRecording;
      auto session = Session::create(library(), std::move(*build()), options);
      ASSERT_TRUE(session.is_ok()) << session.status().to_string();
      const int num_choices = gpu.cudnn().num_choices();
      EXPECT_EQ(num_choices, 1) << "both convolutions are of one shape";
      for (int run = 0; run < 4; ++run) {
        const auto found = (*session)->run(inputs());
        ASSERT_TRUE(found.is_ok()) << found.status().to_string();
        EXPECT_EQ(check::difference(*expected, *found), "");
      }
      if (loops == Loops::kDevice) {
        EXPECT_EQ((*session)->loop_reports()[0].driven, "device");
      }
      EXPECT_EQ(gpu.cudnn().num_choices(), num_choices) << "a run has chosen";
    }
    EXPECT_EQ(gpu.cuda().num_spoilt(), 0u);
    EXPECT_GT(gpu.cuda().num_graph_launches(), 0u);
    EXPECT_GT(gpu.cudnn().num_convolutions(), 0);
    expect_clean(gpu, gpu.cuda());
  }
}

}  // namespace
}  // namespace eddy::testing
