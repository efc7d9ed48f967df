// What tests of outputs in the caller's memory share: an operator that logs where it writes, and
// calls with memory bound to them.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "runtime/virtual/virtual_device.h"
#include "tests/runtime/testing/ways.h"

namespace eddy::testing {

inline constexpr int64_t kSize = 24;
inline constexpr int64_t kDims[] = {kSize};
inline const ValueType kRow = tensor_type(ElementType::kFloat, {kSize});
inline const ValueType kInt = tensor_type(ElementType::kInt64, {});

// Where a node has written, in order.
class Log {
 public:
  void add(const void* written) {
    std::lock_guard lock(mutex_);
    all_.push_back(written);
  }
  std::vector<const void*> take() {
    std::lock_guard lock(mutex_);
    return std::exchange(all_, {});
  }
  // Keeps its room.
  void forget() {
    std::lock_guard lock(mutex_);
    all_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<const void*> all_;
};

struct LogState : KernelState {
  explicit LogState(Log& l) : log(l) {}
  Log& log;
};

inline bool run_next(const KernelArgs& args) {
  const TensorView& y = args.outputs[0];
  static_cast<const LogState*>(args.state)->log.add(y.data);
  for (int64_t i = 0; i < y.count(); ++i) {
    y.mutable_as<float>()[i] = args.inputs[0].as<float>()[i] + 1;
  }
  return true;
}

// Operators whose writes are logged, and calls with everything bound.
class OutputWays : public WaysTest {
 public:
  // Whether a loop goes on: iteration < n, computed so that it is unknown until the test runs.
  static Value is_below(GraphBuilder& b, Value iteration, Value n) {
    return b.op("LessOrEqual", {b.op("Add", {iteration, b.scalar<int64_t>(1)}), n});
  }

 protected:
  OutputWays() {
    // y = x + 1. "Next" may overwrite x, "Away" may not; their writes are logged.
    for (const bool may_overwrite : {true, false}) {
      OpDef def{.name = may_overwrite ? "Next" : "Away", .domain = "test"};
      def.inputs = {{.name = "x"}};
      def.infer = [](InferContext& context) {
        context.set_output(0, context.input(0));
        return Status::ok();
      };
      def.in_place_inputs = may_overwrite ? 1 : 0;
      const Status status = library_.add_operator(def, [this](const KernelInit&) {
        return Result<BoundKernel>({.run = run_next, .state = std::make_unique<LogState>(log_)});
      });
      EXPECT_TRUE(status.is_ok()) << status.to_string();
    }
  }

  static Value next(GraphBuilder& b, Value x) { return b.op("Next", {x}, {}, {.domain = "test"}); }
  static Value away(GraphBuilder& b, Value x) { return b.op("Away", {x}, {}, {.domain = "test"}); }

  // Builds the graph anew for each device and checks it there.
  template <typename Build, typename Check>
  void on_every_device(Build build, Check check) {
    for (const bool is_virtual : {false, true}) {
      SCOPED_TRACE(is_virtual ? "virtual device" : "CPU");
      GraphBuilder b(library_.ops());
      build(b);
      auto graph = b.finish();
      ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
      SessionOptions options = this->options();
      if (is_virtual) {
        options.make_device = []() -> Result<std::shared_ptr<Device>> {
          return std::shared_ptr<Device>(std::make_shared<VirtualDevice>(VirtualDeviceOptions()));
        };
      }
      auto session = Session::create(library_, std::move(*graph), options);
      ASSERT_TRUE(session.is_ok()) << session.status().to_string();
      check(**session);
    }
  }

  // A call with x bound to 0, 0, …; kSize floats each.
  struct Bound {
    explicit Bound(Session& session) : call(std::move(*session.prepare())) {
      bind_input(0, x.data());
    }
    void bind_input(size_t i, float* data) {
      ASSERT_TRUE(call->bind_input(i, {data, kDims, 1, ElementType::kFloat}).is_ok());
    }
    void bind_count(size_t i, const int64_t* count) {
      const TensorView view{const_cast<int64_t*>(count), nullptr, 0, ElementType::kInt64};
      ASSERT_TRUE(call->bind_input(i, view).is_ok());
    }
    void bind_output(size_t i, float* data) {
      ASSERT_TRUE(call->bind_output(i, {data, kDims, 1, ElementType::kFloat}).is_ok());
    }
    void bind_output(size_t i, float* data, float* spare) {
      if (spare == nullptr) return bind_output(i, data);
      const TensorView view{data, kDims, 1, ElementType::kFloat};
      const Status status = call->bind_output(i, view, {spare, kDims, 1, ElementType::kFloat});
      ASSERT_TRUE(status.is_ok()) << status.to_string();
    }
    void run() {
      const Status status = call->run();
      ASSERT_TRUE(status.is_ok()) << status.to_string();
    }

    std::vector<float> x = std::vector<float>(kSize, 0.0f);
    std::unique_ptr<Call> call;
  };
  static std::vector<float> row(float value) { return std::vector<float>(kSize, value); }

  Log log_;
};

}  // namespace eddy::testing
