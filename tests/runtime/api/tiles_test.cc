// Claim: tiles of a call are each run once, by whichever workers are idle, and the strand goes on
// with the last; results have the same bits with any number of threads; one that fails or throws
// fails the run at its node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>

#include "graph/ir/builder.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kTiles = 40;
constexpr int64_t kWidth = 4096;  // so that no call is cheap

// The record of the custom operator's tiles.
struct Seen {
  std::atomic<uint32_t> runs[kTiles] = {};
  std::mutex mutex;
  std::set<std::thread::id> threads;  // under the mutex
  std::atomic<int> num_whole{0};      // run() instead of tiles
  int bad_tile = -1;
  bool throws = false;
} seen;

bool run_tile(const KernelArgs& args, uint32_t tile) {
  EXPECT_NE(args.scratch->reserve(4096), nullptr);
  ++seen.runs[tile];
  {
    const std::lock_guard lock(seen.mutex);
    seen.threads.insert(std::this_thread::get_id());
  }
  if (seen.bad_tile == static_cast<int>(tile)) {
    if (seen.throws) throw std::runtime_error("a tile fell");
    return args.fail(run_failed("tile " + std::to_string(tile) + " is broken"));
  }
  std::this_thread::sleep_for(std::chrono::microseconds(200));
  for (int64_t i = tile * kWidth; i < (tile + 1) * kWidth; ++i) {
    args.outputs[0].mutable_as<float>()[i] = args.inputs[0].as<float>()[i] + 1;
  }
  return true;
}
bool run_all(const KernelArgs& args) {
  ++seen.num_whole;
  const KernelArgs& each = args;
  for (uint32_t tile = 0; tile < kTiles; ++tile) {
    if (!run_tile(each, tile)) return false;
  }
  return true;
}

// The workers execute the strands by themselves, or the host drives them.
class TilesTest : public ::testing::TestWithParam<Loops> {
 protected:
  void SetUp() override {
    OpDef def{.name = "Tiled",
              .domain = "test",
              .inputs = {{.name = "x", .types = {ElementType::kFloat}}},
              .infer = [](InferContext& context) {
                context.set_output(0, context.input(0));
                return Status::ok();
              }};
    const BindFunction bind = [](const KernelInit&) -> Result<BoundKernel> {
      BoundKernel kernel;
      kernel.run = run_all;
      kernel.count_tiles = [](const KernelArgs&) { return kTiles; };
      kernel.run_tile = run_tile;
      return kernel;
    };
    ASSERT_TRUE(library_.add_operator(std::move(def), bind).is_ok());
    for (auto& runs : seen.runs) runs = 0;
    seen.threads.clear();
    seen.num_whole = 0;
    seen.bad_tile = -1;
    seen.throws = false;
  }
  // Three rounds of the operator.
  std::unique_ptr<Session> make(int num_threads) {
    GraphBuilder b(library_.ops());
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {kTiles, kWidth}));
    b.output("y", b.while_loop(
                      {.name = "loop", .initial = {x}, .trip_limit = b.int64s({3})},
                      [&](Value, ValueSpan c) {
                        return WhileTest{b.scalar(true), {c[0]}};
                      },
                      [&](Value, ValueSpan f) {
                        return std::vector<Value>{
                            b.op("Tiled", {f[0]}, {}, {.name = "tiled", .domain = "test"})};
                      })[0]);
    SessionOptions options;
    options.num_threads = num_threads;
    options.loops = GetParam();
    auto session = Session::create(library_, std::move(*b.finish()), options);
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    return std::move(*session);
  }
  NamedTensors inputs() const {
    return {{"x", Tensor::of<float>({kTiles, kWidth}, std::span<const float>(ones_))}};
  }

  const std::vector<float> ones_ = std::vector<float>(kTiles * kWidth, 1.0f);
  Library library_;
};

TEST_P(TilesTest, EachIsRunOnceAndByAllWorkersThatAreIdle) {
  auto session = make(4);
  for (int run = 0; run < 3; ++run) {
    const auto outputs = session->run(inputs());
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    for (const float y : (*outputs)[0].second.values<float>()) EXPECT_EQ(y, 4);
  }
  for (const auto& runs : seen.runs) EXPECT_EQ(runs, 9u);
  EXPECT_GT(seen.threads.size(), 1u);
  EXPECT_LE(seen.threads.size(), 5u) << "the caller's and the workers'";
}

TEST_P(TilesTest, OneThreadRunsThemAllByItself) {
  auto session = make(1);
  ASSERT_TRUE(session->run(inputs()).is_ok());
  EXPECT_EQ(seen.threads.size(), 1u);
  for (const auto& runs : seen.runs) EXPECT_EQ(runs, 3u);
}

TEST_P(TilesTest, ManyRunsAtOnceShareTheWorkers) {
  auto session = make(3);
  std::vector<RunHandle> handles;
  for (int i = 0; i < 30; ++i) handles.push_back(session->run_async(inputs(), {}));
  for (RunHandle& handle : handles) EXPECT_TRUE(handle.wait().is_ok());
  for (const auto& runs : seen.runs) EXPECT_EQ(runs, 90u);
  EXPECT_LE(seen.threads.size(), 3u);
}

TEST_P(TilesTest, ATileThatFailsOrThrowsFailsTheRunAtItsNode) {
  auto session = make(4);
  seen.bad_tile = 17;
  const auto message = [&] { return session->run(inputs()).status().to_string(); };
  EXPECT_THAT(message(), HasSubstr("at loop[0]/tiled: tile 17 is broken"));
  seen.throws = true;
  EXPECT_THAT(message(), HasSubstr("at loop[0]/tiled: the kernel threw: a tile fell"));
  seen.bad_tile = -1;
  EXPECT_TRUE(session->run(inputs()).is_ok());
}

// The operators of the CPU that have tiles, on sizes around those of the tiles.
TEST_P(TilesTest, ShippedKernelsHaveTheSameBitsWithAnyNumberOfThreads) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(-3, 3);
  for (const int64_t rows : {1, 64, 257, 1000}) {
    constexpr int64_t kDepth = 300, kColumns = 290;
    std::vector<float> weights(kDepth * kColumns), x(static_cast<size_t>(rows * kDepth));
    for (float& w : weights) w = uniform(random);
    for (float& v : x) v = uniform(random);
    const auto run = [&](int num_threads) {
      GraphBuilder b(library_.ops());
      const Value in = b.input("x", tensor_type(ElementType::kFloat, {rows, kDepth}));
      const Value w =
          b.constant(Tensor::of<float>({kDepth, kColumns}, std::span<const float>(weights)).view());
      b.output("y", b.op("Tanh", {b.op("MatMul", {in, w})}));
      SessionOptions options;
      options.num_threads = num_threads;
      options.loops = GetParam();
      auto session = Session::create(library_, std::move(*b.finish()), options);
      EXPECT_TRUE(session.is_ok()) << session.status().to_string();
      const auto outputs =
          (*session)->run({{"x", Tensor::of<float>({rows, kDepth}, std::span<const float>(x))}});
      EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      const auto values = (*outputs)[0].second.values<float>();
      return std::vector<float>(values.begin(), values.end());
    };
    const std::vector<float> expected = run(1);
    for (const int num_threads : {2, 3, 8}) {
      const std::vector<float> actual = run(num_threads);
      ASSERT_EQ(actual.size(), expected.size());
      EXPECT_EQ(std::memcmp(actual.data(), expected.data(), actual.size() * sizeof(float)), 0)
          << rows << " rows, " << num_threads << " threads";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, TilesTest, testing::Values(Loops::kAuto, Loops::kHost),
                         [](const auto& info) {
                           return info.param == Loops::kHost ? "FromTheHost" : "ByWorkers";
                         });

}  // namespace
}  // namespace eddy
