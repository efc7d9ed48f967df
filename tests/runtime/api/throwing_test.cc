// Claim: nothing that users' code throws leaves the API or ends the process: kernels, shape rules
// and what binds kernels fail the run, or the making of the session, by name; and a host function
// with a decision that its output can't hold fails with that decision in the message.
#include <gmock/gmock.h>

#include <stdexcept>
#include <system_error>

#include "tests/runtime/testing/ways.h"

namespace eddy {
namespace {

using testing::WaysTest;

// Throws where an element is negative.
bool run_root(const KernelArgs& args) {
  const float* x = args.inputs[0].as<float>();
  float* y = args.outputs[0].mutable_as<float>();
  for (int64_t i = 0; i < args.inputs[0].count(); ++i) {
    if (x[i] < -100) throw 7;
    if (x[i] < 0) throw std::domain_error("no root of " + std::to_string(x[i]));
    y[i] = x[i] / 2;
  }
  return true;
}

class ThrowingTest : public WaysTest {
 protected:
  // Binding throws where the attribute requires it; the shape rule where the input has 13 elements.
  void SetUp() override {
    OpDef def{.name = "Root",
              .domain = "example",
              .inputs = {{.name = "x", .types = {ElementType::kFloat}}},
              .attributes = {{"is_bad", AttributeKind::kInt}},
              .infer = [](InferContext& context) {
                const TensorType& x = context.input(0).tensor;
                if (x.is_ranked && x.dims.count() == int64_t{13}) {
                  throw std::length_error("13 is unlucky");
                }
                context.set_output(0, context.input(0));
                return Status::ok();
              }};
    const auto bind = [](const KernelInit& init) -> Result<BoundKernel> {
      if (init.attributes.get_int("is_bad", 0) != 0) throw std::runtime_error("bad attribute");
      return BoundKernel{.run = run_root, .run_value = nullptr, .state = nullptr};
    };
    ASSERT_TRUE(library_.add_operator(std::move(def), bind).is_ok());
  }
  Value root(GraphBuilder& b, Value x, int64_t is_bad = 0) {
    return b.op("Root", {x}, {{"is_bad", is_bad}}, {.name = "root", .domain = "example"});
  }
  std::unique_ptr<Session> make_root(const Dims& dims) {
    GraphBuilder b(library_.ops());
    b.output("y", root(b, b.input("x", tensor_type(ElementType::kFloat, dims))));
    return make_session(b);
  }
};

TEST_P(ThrowingTest, AKernelThatThrowsFailsItsRunByName) {
  for (const bool is_dynamic : {false, true}) {
    auto session = make_root({is_dynamic ? kUnknownDim : 1});
    ASSERT_NE(session, nullptr);
    const auto x = [](float value) { return NamedTensors{{"x", Tensor::of<float>({1}, {value})}}; };
    for (int round = 0; round < 3; ++round) {
      const Status status = session->run(x(-4)).status();
      EXPECT_EQ(status.code(), StatusCode::kRunFailed);
      EXPECT_NE(status.to_string().find("root"), std::string::npos) << status.to_string();
      EXPECT_NE(status.message().find("the kernel threw: no root of -4"), std::string::npos)
          << status.message();
      EXPECT_NE(session->run_async(x(-1000), {}).wait().message().find("threw something"),
                std::string::npos);
      EXPECT_TRUE(session->run(x(4)).is_ok()) << "the session stays usable";
    }
    session->close();  // nothing is in flight any more
  }
}

TEST_P(ThrowingTest, SoDoesOneInALoopAndTheIterationIsTold) {
  GraphBuilder b(library_.ops());
  const auto y = b.while_loop(
      {.name = "descend", .initial = {b.input("x", tensor_type(ElementType::kFloat, {1}))}},
      [&](Value i, ValueSpan c) {
        return WhileTest{b.op("Less", {i, b.scalar<int64_t>(1000)}), {c[0]}};
      },
      [&](Value, ValueSpan f) {
        const Value lower = b.op("Sub", {f[0], b.scalar(1.0f)});
        const Value halved = root(b, lower);
        return std::vector<Value>{b.op("Add", {halved, halved})};
      });
  b.output("y", y[0]);
  auto session = make_session(b);
  ASSERT_NE(session, nullptr);
  const NamedTensors inputs = {{"x", Tensor::of<float>({1}, {10})}};
  const std::string message = session->run_async(inputs, {}).wait().to_string();
  EXPECT_NE(message.find("descend[10]"), std::string::npos) << message;
  EXPECT_NE(message.find("threw: no root of -1"), std::string::npos) << message;
  EXPECT_EQ(session->run(inputs).status().to_string(), message);
}

TEST_P(ThrowingTest, AShapeRuleThatThrowsFailsWhateverAsksIt) {
  {
    GraphBuilder b(library_.ops());
    b.output("y", root(b, b.input("x", tensor_type(ElementType::kFloat, {13}))));
    const Status status = b.finish().status();
    EXPECT_NE(status.message().find("the shape rule of Root threw: 13 is unlucky"),
              std::string::npos)
        << status.to_string();
  }
  auto session = make_root({kUnknownDim});
  ASSERT_NE(session, nullptr);
  const Status status = session->run({{"x", Tensor::zeros(ElementType::kFloat, {13})}}).status();
  EXPECT_NE(status.message().find("the shape rule of Root threw: 13 is unlucky"), std::string::npos)
      << status.to_string();
  EXPECT_TRUE(session->run({{"x", Tensor::zeros(ElementType::kFloat, {12})}}).is_ok());
}

TEST_P(ThrowingTest, AKernelThatThrowsAsItIsBoundOrFoldedFailsTheSession) {
  for (const bool is_constant : {false, true}) {
    GraphBuilder b(library_.ops());
    const Value x = is_constant ? b.op("Add", {b.scalar(-4.0f), b.scalar(1.0f)})
                                : b.input("x", tensor_type(ElementType::kFloat, {}));
    b.output("y", root(b, x, is_constant ? 0 : 1));
    const auto session = Session::create(library_, std::move(*b.finish()), options());
    if (is_constant) {
      // Folding that fails leaves the node to the run.
      const Status status = session.is_ok() ? (*session)->run({}).status() : session.status();
      EXPECT_NE(status.message().find("the kernel threw: no root of -3"), std::string::npos)
          << status.to_string();
    } else {
      EXPECT_NE(session.status().message().find("binding a kernel of Root threw: bad attribute"),
                std::string::npos)
          << session.status().to_string();
    }
  }
}

TEST_P(ThrowingTest, ADecisionThatItsOutputCannotHoldIsNamed) {
  ASSERT_TRUE(library_
                  .add_host_function("pick",
                                     [](std::span<const TensorView> inputs) -> Result<int64_t> {
                                       return *inputs[0].as<int64_t>();
                                     })
                  .is_ok());
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", tensor_type(ElementType::kInt64, {}));
  b.output("y",
           b.op("HostPredicate", {x},
                {{"name", std::string("pick")}, {"type", tensor_type(ElementType::kInt32, {})}},
                {.domain = "eddy"}));
  auto session = make_session(b);
  ASSERT_NE(session, nullptr);
  const auto run = [&](int64_t value) {
    return session->run({{"x", Tensor::scalar<int64_t>(value)}});
  };
  for (const int64_t value : {(int64_t{1} << 32) + 1, -(int64_t{1} << 40)}) {
    const std::string message = run(value).status().message();
    EXPECT_NE(message.find("'pick' decided " + std::to_string(value)), std::string::npos)
        << message;
  }
  EXPECT_EQ((*run(INT32_MIN))[0].second.values<int32_t>()[0], INT32_MIN);
}

EDDY_IN_ALL_WAYS(ThrowingTest);

TEST_P(ThrowingTest, WhatTheOptionsFunctionsThrowIsWhatMakingTheSessionReturns) {
  const auto told = [&](const SessionOptions& options) {
    GraphBuilder b(library_.ops());
    b.output("y", b.op("Neg", {b.input("x", tensor_type(ElementType::kFloat, {1}))}));
    return Session::create(library_, std::move(*b.finish()), options).status().to_string();
  };
  SessionOptions checks, device, further, nothing, no_kernels, many, no_thread;
  checks.check = []() -> Status { throw std::runtime_error("checked too often"); };
  EXPECT_EQ(told(checks), "run failed: check threw: checked too often");
  device.make_device = []() -> Result<std::shared_ptr<Device>> { throw 7; };
  EXPECT_EQ(told(device), "run failed: make_device threw something");
  further.make_devices = {[]() -> Result<ExecutionDevice> {
    throw std::system_error(ENOENT, std::generic_category(), "the firmware");
  }};
  EXPECT_THAT(told(further), ::testing::StartsWith("run failed: make_devices threw: the firmware"));
  nothing.make_device = [] { return Result<std::shared_ptr<Device>>(nullptr); };
  EXPECT_EQ(told(nothing), "invalid argument: make_device made nothing");
  no_kernels.make_devices = {[] { return Result<ExecutionDevice>(ExecutionDevice()); }};
  EXPECT_EQ(told(no_kernels), "invalid argument: make_devices made nothing");
  many.make_devices.resize(64, nullptr);
  EXPECT_EQ(
      told(many),
      "invalid argument: make_devices has 64 devices, but a session has at most 63 beside the "
      "host's CPU");
  no_thread.make_device = []() -> Result<std::shared_ptr<Device>> {
    throw std::system_error(EAGAIN, std::generic_category());
  };
  EXPECT_THAT(told(no_thread),
              ::testing::StartsWith("resource exhausted: the system gives no more threads"));
}

}  // namespace
}  // namespace eddy
