// Claim: by default a plan has no more streams than the session has workers, unless a node may wait
// for something else, and none for operators that all workers share; the main strand of a run that
// is waited for starts on its caller; and an operator whose kernel answers later has to say so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <thread>

#include "graph/ir/builder.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

constexpr int kWidth = 8;

struct Seen {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::thread::id of_the_longest;  // that ran the first node of the longest chain
} seen;

bool note_thread(const KernelArgs& args) {
  const std::lock_guard lock(seen.mutex);
  seen.threads.insert(std::this_thread::get_id());
  *args.outputs[0].mutable_as<float>() = *args.inputs[0].as<float>() + 1;
  return true;
}

bool note_first(const KernelArgs& args) {
  seen.of_the_longest = std::this_thread::get_id();
  *args.outputs[0].mutable_as<float>() = *args.inputs[0].as<float>();
  return true;
}

CallOutcome answer_later(const KernelArgs&, PendingCall&) { return CallOutcome::kFailed; }

class WidthTest : public ::testing::Test {
 protected:
  void add_operator(const std::string& name, BoundKernel (*make)(), double flops = 1) {
    OpDef def{.name = name,
              .domain = "test",
              .inputs = {{.name = "x", .types = {ElementType::kFloat}}},
              .infer = [](InferContext& context) {
                context.set_output(0, context.input(0));
                return Status::ok();
              }};
    // Estimates see much work, so that streams pay.
    if (flops > 1) {
      def.flops = [](const InferContext&, std::span<const ValueType>) { return 1e9; };
    }
    const auto status = library_.add_operator(
        std::move(def), [make](const KernelInit&) -> Result<BoundKernel> { return make(); });
    ASSERT_TRUE(status.is_ok()) << status.to_string();
  }
  void SetUp() override {
    add_operator(
        "Heavy",
        [] {
          BoundKernel kernel;
          kernel.run = note_thread;
          return kernel;
        },
        1e9);
    ASSERT_TRUE(library_
                    .add_host_function(
                        "go?", [](std::span<const TensorView>) -> Result<int64_t> { return 1; })
                    .is_ok());
    seen.threads.clear();
  }
  // Chains of two beside each other.
  Result<std::unique_ptr<Session>> make(int num_threads, bool asks_host, uint32_t max_streams = 0) {
    GraphBuilder b(library_.ops());
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {}));
    for (int i = 0; i < kWidth; ++i) {
      Value y = b.op("Heavy", {x}, {}, {.domain = "test"});
      y = b.op("Heavy", {y}, {}, {.domain = "test"});
      if (asks_host) {
        b.op("HostPredicate", {y}, {{"name", std::string("go?")}}, {.domain = "eddy"});
      }
      b.output("y" + std::to_string(i), y);
    }
    SessionOptions options;
    options.num_threads = num_threads;
    options.max_streams = max_streams;
    options.simplify = false;
    return Session::create(library_, std::move(*b.finish()), options);
  }

  Library library_;
};

TEST_F(WidthTest, ThereAreAsManyStreamsAsWorkers) {
  for (const int threads : {1, 2, 3, 5}) {
    auto session = make(threads, false);
    ASSERT_TRUE(session.is_ok()) << session.status().to_string();
    EXPECT_EQ((*session)->plan().num_streams, static_cast<uint32_t>(threads));
  }
}

TEST_F(WidthTest, ACapThatWasAskedForHolds) {
  auto session = make(2, false, 4);
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  EXPECT_EQ((*session)->plan().num_streams, 4u);
}

TEST_F(WidthTest, NodesThatMayWaitHaveStreamsBesideThem) {
  auto session = make(2, true);
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  EXPECT_EQ((*session)->plan().num_streams, static_cast<uint32_t>(kWidth));
}

// Chains of products beside each other: large ones are shared by all workers, so that streams would
// win nothing; small ones have no tiles.
TEST_F(WidthTest, OperatorsThatAllWorkersShareOverlapWithNothing) {
  const auto streams_of = [this](int64_t size, int64_t length) -> uint32_t {
    GraphBuilder b(library_.ops());
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {size, size}));
    for (int chain = 0; chain < 2; ++chain) {
      Value y = x;
      for (int64_t i = 0; i < length; ++i) y = b.op("MatMul", {y, x});
      b.output("y" + std::to_string(chain), y);
    }
    SessionOptions options;
    options.num_threads = 2;
    options.simplify = false;
    auto session = Session::create(library_, std::move(*b.finish()), options);
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    return (*session)->plan().num_streams;
  };
  EXPECT_EQ(streams_of(256, 4), 1u);
  EXPECT_EQ(streams_of(32, 100), 2u);
}

// By rank the longest chain stands on the first stream.
TEST_F(WidthTest, TheMainStrandRunsOnTheCaller) {
  add_operator("First", [] {
    BoundKernel kernel;
    kernel.run = note_first;
    return kernel;
  });
  GraphBuilder b(library_.ops());
  const Value input = b.input("x", tensor_type(ElementType::kFloat, {}));
  for (const bool is_longest : {false, true}) {
    Value y = is_longest ? b.op("First", {input}, {}, {.domain = "test"}) : input;
    for (int i = 0; i < 2; ++i) y = b.op("Heavy", {y}, {}, {.domain = "test"});
    b.output(is_longest ? "longest" : "other", y);
  }
  SessionOptions options;
  options.num_threads = 2;
  options.simplify = false;
  auto session = Session::create(library_, std::move(*b.finish()), options);
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  ASSERT_EQ((*session)->plan().num_streams, 2u);
  const Tensor x = Tensor::scalar(1.0f);
  for (int run = 0; run < 20; ++run) {
    seen.of_the_longest = {};
    const auto outputs = (*session)->run({{"x", x}});
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    for (const auto& [name, y] : *outputs) EXPECT_EQ(y.values<float>()[0], 3.0f) << name;
    EXPECT_EQ(seen.of_the_longest, std::this_thread::get_id());
  }
}

TEST_F(WidthTest, AnOperatorThatAnswersLaterHasToSaySo) {
  add_operator("Later", [] {
    BoundKernel kernel;
    kernel.start = answer_later;
    return kernel;
  });
  GraphBuilder b(library_.ops());
  b.output("y", b.op("Later", {b.input("x", tensor_type(ElementType::kFloat, {}))}, {},
                     {.domain = "test"}));
  const auto session = Session::create(library_, std::move(*b.finish()), {});
  ASSERT_FALSE(session.is_ok());
  EXPECT_THAT(session.status().message(),
              ::testing::HasSubstr("answers later: set may_wait of its operator"));
}

}  // namespace
}  // namespace eddy
