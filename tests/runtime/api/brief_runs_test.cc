// Claim: a submitted run that takes less than to wake a worker is run by the thread that submits
// it, and ends as all others do; one that may wait, or whose time is not known, is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "graph/ir/builder.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

const ValueType kScalar = tensor_type(ElementType::kFloat, {});

TensorView view(float& value) { return {&value, nullptr, 0, ElementType::kFloat}; }

class BriefRuns : public testing::Test {
 protected:
  std::unique_ptr<Session> make(GraphBuilder& b, const SessionOptions& options = {}) {
    auto session = Session::create(library_, std::move(*b.finish()), options);
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    return std::move(*session);
  }
  // y = x + x.
  std::unique_ptr<Session> make_doubling(const SessionOptions& options = {}) {
    GraphBuilder b(library_.ops());
    const Value x = b.input("x", kScalar);
    b.output("y", b.op("Add", {x, x}));
    return make(b, options);
  }
  std::unique_ptr<Call> prepare(Session& session, float& x, float& y) {
    auto call = std::move(*session.prepare());
    EXPECT_TRUE(call->bind_input(0, view(x)).is_ok());
    EXPECT_TRUE(call->bind_output(0, view(y)).is_ok());
    return call;
  }

  Library library_;
};

TEST_F(BriefRuns, ARunOfAMicrosecondHasEndedWhenItIsSubmitted) {
  auto session = make_doubling();
  float x = 0, y = 0;
  auto call = prepare(*session, x, y);
  for (int i = 0; i < 100; ++i) {
    x = static_cast<float>(i);
    ASSERT_TRUE(call->submit().is_ok());
    ASSERT_TRUE(call->is_done());
    EXPECT_EQ(y, 2 * x);
    EXPECT_TRUE(call->wait().is_ok());
  }
  std::promise<std::thread::id> called;
  ASSERT_TRUE(call->submit({}, [&](const Status&) { called.set_value(std::this_thread::get_id()); })
                  .is_ok());
  EXPECT_NE(called.get_future().get(), std::this_thread::get_id()) << "users are called elsewhere";
  std::promise<float> made;
  session->run_async({{"x", Tensor::scalar(4.0f)}}, [&](Result<NamedTensors> outputs) {
    made.set_value((*outputs)[0].second.values<float>()[0]);
  });
  EXPECT_EQ(made.get_future().get(), 8);
}

TEST_F(BriefRuns, OneOfAnOperatorOfTheCallersGoesOnByItself) {
  std::promise<void> open;
  const std::shared_future<void> gate = open.get_future().share();
  OpDef def{.name = "Wait",
            .domain = "test",
            .inputs = {{.name = "x", .types = {ElementType::kFloat}}},
            .infer = [](InferContext& context) {
              context.set_output(0, context.input(0));
              return Status::ok();
            }};
  struct Gate : KernelState {
    explicit Gate(std::shared_future<void> g) : future(std::move(g)) {}
    std::shared_future<void> future;
  };
  const BindFunction bind = [gate](const KernelInit&) -> Result<BoundKernel> {
    BoundKernel kernel;
    kernel.state = std::make_unique<Gate>(gate);
    kernel.run = [](const KernelArgs& args) {
      static_cast<const Gate&>(*args.state).future.wait();
      args.outputs[0].mutable_as<float>()[0] = args.inputs[0].as<float>()[0];
      return true;
    };
    return kernel;
  };
  ASSERT_TRUE(library_.add_operator(std::move(def), bind).is_ok());
  GraphBuilder b(library_.ops());
  b.output("y", b.op("Wait", {b.input("x", kScalar)}, {}, {.domain = "test"}));
  auto session = make(b);
  float x = 3, y = 0;
  auto call = prepare(*session, x, y);
  ASSERT_TRUE(call->submit().is_ok());
  EXPECT_FALSE(call->is_done());
  open.set_value();
  EXPECT_TRUE(call->wait().is_ok());
  EXPECT_EQ(y, 3);
}

TEST_F(BriefRuns, OneOfAHostFunctionGoesOnByItself) {
  std::promise<void> open;
  ASSERT_TRUE(library_
                  .add_host_function("wait",
                                     [&](std::span<const TensorView>) -> Result<int64_t> {
                                       open.get_future().wait();
                                       return 1;
                                     })
                  .is_ok());
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", kScalar);
  b.output("y", b.op("HostPredicate", {x}, {{"name", std::string("wait")}}, {.domain = "eddy"}));
  auto session = make(b);
  float given = 3;
  auto call = std::move(*session->prepare());
  ASSERT_TRUE(call->bind_input(0, view(given)).is_ok());
  ASSERT_TRUE(call->submit().is_ok());
  EXPECT_FALSE(call->is_done());
  open.set_value();
  EXPECT_TRUE(call->wait().is_ok());
}

// Each callback submits the next run, which ends at once: behind each other, not inside each other.
TEST_F(BriefRuns, TheyMaySubmitEachOtherWithoutEnd) {
  SessionOptions options;
  options.max_runs_in_flight = 1;
  auto session = make_doubling(options);
  std::atomic<int> left{100'000};
  std::promise<void> is_over;
  float x = 1, y = 0;
  auto call = prepare(*session, x, y);
  std::function<void(const Status&)> next = [&](const Status& status) {
    EXPECT_TRUE(status.is_ok());
    if (--left == 0) return is_over.set_value();
    EXPECT_TRUE(call->submit({}, next).is_ok());
  };
  ASSERT_TRUE(call->submit({}, next).is_ok());
  is_over.get_future().wait();
  session->close();
}

TEST_F(BriefRuns, ManyThreadsSubmitThemWithOneTurn) {
  SessionOptions options;
  options.max_runs_in_flight = 1;
  auto session = make_doubling(options);
  std::vector<std::thread> threads;
  std::atomic<int> num_called{0};
  constexpr int kRuns = 300;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      float x = static_cast<float>(t), y = 0;
      auto call = prepare(*session, x, y);
      for (int i = 0; i < kRuns; ++i) {
        ASSERT_TRUE(call->submit({},
                                 [&](const Status& status) {
                                   EXPECT_TRUE(status.is_ok()) << status.to_string();
                                   ++num_called;
                                 })
                        .is_ok());
        ASSERT_TRUE(call->wait().is_ok());
        EXPECT_EQ(y, 2 * x);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  session->close();
  EXPECT_EQ(num_called, 4 * kRuns);
}

}  // namespace
}  // namespace eddy
