// Claim: tiles of a call are each run once, by whichever workers are idle, and the strand goes on
// with the last; those that follow others see what these have written; results have the same bits
// with any number of threads; one that fails or throws fails the run at its node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
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

// Tiles in kSteps steps: each adds up what all of the step before have made, and its place.
constexpr uint32_t kAtOnce = 5, kSteps = 300;

bool run_step(const KernelArgs& args, uint32_t tile) {
  auto* const made = static_cast<uint64_t*>(args.shared);
  EXPECT_NE(args.scratch->reserve(64), args.shared);
  const uint32_t step = tile / kAtOnce;
  uint64_t sum = tile;
  for (uint32_t i = 0; step > 0 && i < kAtOnce; ++i) sum += made[(step - 1) * kAtOnce + i] % 1000;
  made[tile] = sum;
  if (step + 1 == kSteps)
    args.outputs[0].mutable_as<float>()[tile % kAtOnce] = static_cast<float>(sum);
  if (seen.bad_tile == static_cast<int>(tile)) return args.fail(run_failed("a step is broken"));
  return true;
}
bool run_steps(const KernelArgs& args) {
  std::vector<uint64_t> made(kAtOnce * kSteps);
  KernelArgs own = args;
  own.shared = made.data();
  for (uint32_t tile = 0; tile < kAtOnce * kSteps; ++tile) {
    if (!run_step(own, tile)) return false;
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
    OpDef steps = def;
    steps.name = "Steps";
    const BindFunction bind_steps = [](const KernelInit&) -> Result<BoundKernel> {
      BoundKernel kernel;
      kernel.run = run_steps;
      kernel.count_tiles = [](const KernelArgs&) { return kAtOnce * kSteps; };
      kernel.count_at_once = [](const KernelArgs&) { return kAtOnce; };
      kernel.shared_bytes = [](const KernelArgs&) { return kAtOnce * kSteps * sizeof(uint64_t); };
      kernel.run_tile = run_step;
      return kernel;
    };
    ASSERT_TRUE(library_.add_operator(std::move(def), bind).is_ok());
    ASSERT_TRUE(library_.add_operator(std::move(steps), bind_steps).is_ok());
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

TEST_P(TilesTest, TilesThatFollowOthersSeeWhatTheyHaveWritten) {
  std::vector<float> expected;
  for (const int num_threads : {1, 2, 3, 8}) {
    GraphBuilder b(library_.ops());
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {kTiles, kWidth}));
    b.output("y", b.op("Steps", {x}, {}, {.name = "steps", .domain = "test"}));
    SessionOptions options;
    options.num_threads = num_threads;
    options.loops = GetParam();
    auto session = Session::create(library_, std::move(*b.finish()), options);
    ASSERT_TRUE(session.is_ok()) << session.status().to_string();
    for (int run = 0; run < 20; ++run) {
      const auto outputs = (*session)->run(inputs());
      ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      const auto y = (*outputs)[0].second.values<float>();
      const std::vector<float> made(y.begin(), y.begin() + kAtOnce);
      if (expected.empty()) expected = made;
      ASSERT_EQ(made, expected) << num_threads << " threads, run " << run;
    }
    seen.bad_tile = kAtOnce * kSteps / 2;
    EXPECT_THAT((*session)->run(inputs()).status().to_string(), HasSubstr("a step is broken"));
    seen.bad_tile = -1;
    EXPECT_TRUE((*session)->run(inputs()).is_ok());
  }
  EXPECT_GT(expected[0], 0);
}

std::vector<float> random_floats(size_t count) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(-3, 3);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

// A graph of one operator of the CPU that has tiles (and what follows), and its input.
struct Shipped {
  const char* name;
  Dims dims;
  std::function<Value(GraphBuilder&, Value)> make;
  bool is_known = true;  // when kernels are bound: else the last axis but one is not

  // With the same input each time.
  std::vector<float> run(const Library& library, Loops loops, int num_threads) const {
    GraphBuilder b(library.ops());
    Dims bound = dims;
    if (!is_known) bound[dims.rank() - 2] = kUnknownDim;
    b.output("y", make(b, b.input("x", tensor_type(ElementType::kFloat, bound))));
    SessionOptions options;
    options.num_threads = num_threads;
    options.loops = loops;
    auto session = Session::create(library, std::move(*b.finish()), options);
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    const std::vector<float> x = random_floats(static_cast<size_t>(*dims.count()));
    const auto outputs = (*session)->run({{"x", Tensor::of<float>(dims, std::span(x))}});
    EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    const auto values = (*outputs)[0].second.values<float>();
    return std::vector<float>(values.begin(), values.end());
  }
};

Value constant_of(GraphBuilder& b, const Dims& dims) {
  const std::vector<float> values = random_floats(static_cast<size_t>(*dims.count()));
  return b.constant(Tensor::of<float>(dims, std::span(values)).view());
}
// The same number for each channel or column.
Value same(GraphBuilder& b, int64_t count) {
  const std::vector<float> values(static_cast<size_t>(count), 1.5f);
  return b.constant(Tensor::of<float>({count}, std::span(values)).view());
}

std::vector<Shipped> shipped_products() {
  std::vector<Shipped> all;
  for (const int64_t rows : {1, 64, 257, 1000}) {  // around those of the tiles
    all.push_back({"MatMul", {rows, 300}, [](GraphBuilder& b, Value x) {
                     return b.op("Tanh", {b.op("MatMul", {x, constant_of(b, {300, 290})})});
                   }});
    all.push_back({"Gemm", {rows, 300}, [](GraphBuilder& b, Value x) {
                     return b.op("Gemm", {x, constant_of(b, {290, 300}), constant_of(b, {290})},
                                 {{"transB", int64_t{1}}});
                   }});
  }
  all.push_back({"MatMul", {7, 130, 130}, [](GraphBuilder& b, Value x) {
                   return b.op("MatMul", {x, x});
                 }});
  return all;
}

// What a decoder does to its caches, of a length that it decides.
std::vector<Shipped> shipped_of_unknown_length() {
  const Dims cache{8, 12, 100, 64};
  const auto grown = [](GraphBuilder& b, Value x) {
    return b.op("Concat", {x, constant_of(b, {8, 12, 1, 64})}, {{"axis", int64_t{2}}});
  };
  const auto times = [](GraphBuilder& b, Value x) {
    return b.op("MatMul", {x, constant_of(b, {8, 12, 64, 1})});
  };
  const auto softmax = [](GraphBuilder& b, Value x) {
    return b.op("Softmax", {x}, {{"axis", int64_t{2}}});
  };
  const auto normal = [](GraphBuilder& b, Value x) {
    return b.op("LayerNormalization", {x, same(b, 64), same(b, 64)});
  };
  return {{"Concat", cache, grown, false},
          {"MatMul", cache, times, false},
          {"Softmax", cache, softmax, false},
          {"LayerNormalization", cache, normal, false}};
}

std::vector<Shipped> shipped_operators() {
  using Ints = std::vector<int64_t>;
  const Dims image{2, 24, 61, 67};
  const Attributes window = {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}};
  std::vector<Shipped> all = shipped_products();
  const auto add = [&](const char* name, const Attributes& attributes) {
    all.push_back(
        {name, image, [=](GraphBuilder& b, Value x) { return b.op(name, {x}, attributes); }});
  };
  all.push_back({"LSTM", {60, 2, 64}, [](GraphBuilder& b, Value x) {
                   return b.op(
                       "LSTM",
                       {x, constant_of(b, {1, 4 * 384, 64}), constant_of(b, {1, 4 * 384, 384})},
                       {{"hidden_size", int64_t{384}}});
                 }});
  const auto add_with = [&](const char* name, auto... make) {
    all.push_back({name, image, [=](GraphBuilder& b, Value x) {
                     return b.op(name, {x, make(b, x)...});
                   }});
  };
  const auto of_channels = [](GraphBuilder& b, Value) { return same(b, 24); };
  const auto of_columns = [](GraphBuilder& b, Value) { return same(b, 67); };
  add("LRN", {{"size", int64_t{5}}});
  add("MaxPool", window);
  add("AveragePool", window);
  add("GlobalAveragePool", {});
  add("GlobalMaxPool", {});
  add("Transpose", {{"perm", Ints{0, 2, 3, 1}}});
  for (const int64_t axis : {1, 3}) {
    add("Softmax", {{"axis", axis}});
    add("LogSoftmax", {{"axis", axis}});
  }
  add_with("BatchNormalization", of_channels, of_channels, of_channels, of_channels);
  add_with("InstanceNormalization", of_channels, of_channels);
  add_with("LayerNormalization", of_columns, of_columns);
  add_with("Add", [](GraphBuilder&, Value x) { return x; });
  add_with("Mul", [](GraphBuilder& b, Value) { return b.scalar(0.3f); });
  add_with("ReduceMean", [](GraphBuilder& b, Value) { return b.int64s({2, 3}); });
  add_with("ReduceSum", [](GraphBuilder& b, Value) { return b.int64s({1}); });
  for (const Shipped& shipped : shipped_of_unknown_length()) all.push_back(shipped);
  return all;
}

TEST_P(TilesTest, ShippedKernelsHaveTheSameBitsWithAnyNumberOfThreads) {
  for (const Shipped& shipped : shipped_operators()) {
    SCOPED_TRACE(std::string(shipped.name) + " of " + to_string(shipped.dims));
    const std::vector<float> expected = shipped.run(library_, GetParam(), 1);
    for (const int num_threads : {2, 3, 8}) {
      const std::vector<float> actual = shipped.run(library_, GetParam(), num_threads);
      ASSERT_EQ(actual.size(), expected.size());
      EXPECT_EQ(std::memcmp(actual.data(), expected.data(), actual.size() * sizeof(float)), 0)
          << num_threads << " threads";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, TilesTest, testing::Values(Loops::kAuto, Loops::kHost),
                         [](const auto& info) {
                           return info.param == Loops::kHost ? "FromTheHost" : "ByWorkers";
                         });

}  // namespace
}  // namespace eddy
