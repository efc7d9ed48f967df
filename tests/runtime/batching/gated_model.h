// A model whose runs a test can hold up, and what it makes of its inputs.
//
//   x float[N,4], pick int64[N], steps int64  ->  y = 2 x + steps (by a loop), z = table[pick],
//                                                 w = steps + 1, the same for all samples
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "graph/ir/batch_rule.h"
#include "graph/ir/builder.h"
#include "ops/contract/kernel.h"
#include "runtime/batching/batching_session.h"

namespace eddy::testing {

// Operator test.Gate copies its input, once it is let through.
class Gate {
 public:
  void shut() {
    std::lock_guard lock(mutex_);
    is_open_ = false;
  }
  void open() {
    std::unique_lock lock(mutex_);
    is_open_ = true;
    const auto held = std::exchange(held_, {});
    lock.unlock();
    for (const auto& each : held) each->call.complete(Status::ok());
  }
  // The one that has come first.
  void let_one_through() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !held_.empty(); });
    const auto first = held_.front();
    held_.pop_front();
    lock.unlock();
    first->call.complete(Status::ok());
  }
  void wait_until_held(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return held_.size() == count; });
  }

  Status add_to(Library& library) {
    OpDef def;
    def.name = "Gate";
    def.domain = "test";
    def.inputs = {{"x"}};
    def.may_wait = true;
    def.infer = [](InferContext& context) {
      context.set_output(0, context.input(0));
      return Status::ok();
    };
    def.batch = [](BatchContext& context) {
      context.set_output(0, context.input(0));
      return Status::ok();
    };
    return library.add_operator(std::move(def), [this](const KernelInit&) -> Result<BoundKernel> {
      BoundKernel kernel;
      kernel.start = [](const KernelArgs& args, PendingCall& call) {
        return static_cast<const State*>(args.state)->gate->pass(args, call);
      };
      kernel.state = std::make_unique<State>(this);
      return kernel;
    });
  }

 private:
  struct State : KernelState {
    explicit State(Gate* g) : gate(g) {}
    Gate* gate;
  };

  struct Held {
    PendingCall call;
    bool is_stopped = false;
  };

  CallOutcome pass(const KernelArgs& args, PendingCall& call) {
    std::memcpy(args.outputs[0].data, args.inputs[0].data, args.inputs[0].size_bytes());
    const auto held = std::make_shared<Held>();
    held->call = std::move(call);
    held->call.on_stop([this, weak = std::weak_ptr<Held>(held)] { drop(weak); });
    std::unique_lock lock(mutex_);
    const bool passes = is_open_ || held->is_stopped;
    if (!passes) held_.push_back(held);
    changed_.notify_all();
    lock.unlock();
    if (passes) held->call.complete(Status::ok());
    return CallOutcome::kLater;
  }
  void drop(const std::weak_ptr<Held>& weak) {
    const auto held = weak.lock();
    if (held == nullptr) return;
    std::unique_lock lock(mutex_);
    held->is_stopped = true;
    if (std::erase(held_, held) == 0) return;
    lock.unlock();
    held->call.complete(cancelled("stopped at the gate"));
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = true;
  std::list<std::shared_ptr<Held>> held_;
};

struct Asked {
  int64_t num_samples = 1;
  float first = 0;  // x counts from there
  int64_t pick = 0;
  int64_t steps = 0;
};

class GatedModelTest : public ::testing::Test {
 protected:
  static constexpr int64_t kWidth = 4;
  static constexpr int64_t kRows = 8;

  void SetUp() override { ASSERT_TRUE(gate_.add_to(library_).is_ok()); }

  Graph graph() {
    GraphBuilder b(library_.ops());
    const int64_t n = b.symbol("N");
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {n, kWidth}));
    const Value pick = b.input("pick", tensor_type(ElementType::kInt64, {n}));
    const Value steps = b.input("steps", tensor_type(ElementType::kInt64, {}));
    const Value passed = b.op("Gate", {x}, {}, {.name = "gate", .domain = "test"});
    const Value one = b.scalar(1.0f);
    const auto y = b.while_loop(
        {.name = "count", .initial = {b.op("Add", {passed, passed})}},
        [&](Value i, ValueSpan c) {
          return WhileTest{b.op("Less", {i, steps}), {c[0]}};
        },
        [&](Value, ValueSpan c) {
          return std::vector<Value>{b.op("Add", {c[0], one})};
        });
    std::vector<float> table;
    for (int64_t i = 0; i < kRows * 2; ++i) table.push_back(static_cast<float>(i));
    const Value rows = b.tensor<float>({kRows, 2}, table);
    b.output("y", y[0]);
    b.output("z", b.op("Gather", {rows, pick}, {}, {.name = "look_up"}));
    b.output("w", b.op("Add", {steps, b.scalar<int64_t>(1)}));
    auto made = b.finish();
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    return std::move(*made);
  }

  std::unique_ptr<BatchingSession> make_session(Batching batching = {},
                                                SessionOptions options = {}) {
    batching.dimension = "N";
    batching.on_batch = [this](size_t num_requests, int64_t num_samples) {
      std::lock_guard lock(mutex_);
      batches_.emplace_back(num_requests, num_samples);
    };
    options.num_threads = 2;
    auto session = BatchingSession::create(library_, graph(), options, batching);
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    return session.is_ok() ? std::move(*session) : nullptr;
  }

  static NamedTensors inputs(const Asked& asked) {
    std::vector<float> x;
    for (int64_t i = 0; i < asked.num_samples * kWidth; ++i) {
      x.push_back(asked.first + static_cast<float>(i));
    }
    const std::vector<int64_t> pick(static_cast<size_t>(asked.num_samples), asked.pick);
    return {{"x", Tensor::of<float>({asked.num_samples, kWidth}, x)},
            {"pick", Tensor::of<int64_t>({asked.num_samples}, pick)},
            {"steps", Tensor::scalar(asked.steps)}};
  }

  // Whether they are what the model makes of these inputs, to the bit.
  static bool is_right(const Asked& asked, const NamedTensors& outputs) {
    if (outputs.size() != 3) return false;
    const Tensor &y = outputs[0].second, &z = outputs[1].second, &w = outputs[2].second;
    if (y.dims() != Dims{asked.num_samples, kWidth} || z.dims() != Dims{asked.num_samples, 2}) {
      return false;
    }
    bool is_right = w.values<int64_t>()[0] == asked.steps + 1;
    for (int64_t i = 0; i < asked.num_samples * kWidth; ++i) {
      const float x = asked.first + static_cast<float>(i);
      is_right &=
          y.values<float>()[static_cast<size_t>(i)] == 2 * x + static_cast<float>(asked.steps);
    }
    for (int64_t i = 0; i < asked.num_samples * 2; ++i) {
      is_right &=
          z.values<float>()[static_cast<size_t>(i)] == static_cast<float>(2 * asked.pick + i % 2);
    }
    return is_right;
  }

  // By now, requests and samples of each run.
  std::vector<std::pair<size_t, int64_t>> batches() {
    std::lock_guard lock(mutex_);
    return batches_;
  }

  Gate gate_;
  Library library_;

 private:
  std::mutex mutex_;
  std::vector<std::pair<size_t, int64_t>> batches_;
};

}  // namespace eddy::testing
