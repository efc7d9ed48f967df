// Claim: sessions on two GPUs of one process, by ordinal, run side by side, each on its own device;
// when one device is lost, every run of its session ends with that and names it, and the other
// session goes on. One session of both is refused, and says what is missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "graph/ir/builder.h"
#include "runtime/api/session.h"
#include "tests/runtime/cuda/cuda_session_fixture.h"
#include "tools/check/oracle.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;

const ValueType kRow = tensor_type(ElementType::kFloat, {8});

Tensor row(float first) {
  std::vector<float> values;
  for (int i = 0; i < 8; ++i) values.push_back(first + 0.125f * static_cast<float>(i));
  return Tensor::of<float>({8}, values);
}

class CudaTwoDevicesTest : public CudaSessionFixture {
 protected:
  CudaTwoDevicesTest() { use_fake({.cuda = {.num_devices = 2}}); }

  // Halves the row until nothing of it is above one.
  Graph halving() {
    GraphBuilder b(library_.ops());
    const auto results = b.while_loop(
        {.name = "halve", .initial = {b.input("x", kRow)}},
        [&](Value, ValueSpan v) {
          const Value most = b.op("ReduceMax", {v[0]}, {{"keepdims", int64_t{0}}});
          return WhileTest{b.op("Greater", {most, b.scalar(1.0f)}), {v[0]}};
        },
        [&](Value, ValueSpan v) {
          return std::vector<Value>{b.op("Mul", {v[0], b.scalar(0.5f)})};
        });
    b.output("y", results[0]);
    return std::move(*b.finish());
  }
  NamedTensors expected(const NamedTensors& inputs) {
    auto cpu = std::move(*Session::create(library_, halving(), {}));
    return std::move(*cpu->run(inputs));
  }
  std::unique_ptr<Session> session_on(int ordinal, Loops loops) {
    return make_or_null(halving(), {.num_threads = 2, .loops = loops, .ordinal = ordinal});
  }
};

TEST_P(CudaTwoDevicesTest, SessionsRunSideBySide) {
  for (const Loops loops : {Loops::kHost, Loops::kDevice}) {
    const std::unique_ptr<Session> sessions[2] = {session_on(0, loops), session_on(1, loops)};
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2; ++i) {
      ASSERT_NE(sessions[i], nullptr);
      threads.emplace_back([&, i] {
        for (int repeat = 0; repeat < 10; ++repeat) {
          const NamedTensors inputs = {{"x", row(static_cast<float>(100 * i + repeat))}};
          const auto outputs = sessions[i]->run(inputs);
          ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
          EXPECT_EQ(check::difference(expected(inputs), *outputs), "") << i;
        }
      });
    }
  }
}

TEST_P(CudaTwoDevicesTest, ALostDeviceEndsTheRunsOfItsSessionAlone) {
  const NamedTensors inputs = {{"x", row(9)}};
  for (const int lost : {0, 1}) {
    use_fake({.cuda = {.num_devices = 2}});
    const std::unique_ptr<Session> sessions[2] = {session_on(0, Loops::kAuto),
                                                  session_on(1, Loops::kAuto)};
    for (const auto& session : sessions) {
      ASSERT_NE(session, nullptr);
      ASSERT_TRUE(session->run(inputs).is_ok());
    }
    fake_->cuda().lose_device(lost, CuResult::kIllegalAddress);
    for (int repeat = 0; repeat < 3; ++repeat) {
      const Status status = sessions[lost]->run(inputs).status();
      EXPECT_EQ(status.code(), StatusCode::kDeviceLost) << status.to_string();
      EXPECT_THAT(status.message(), HasSubstr("CUDA device " + std::to_string(lost)));
      const auto others = sessions[1 - lost]->run(inputs);
      ASSERT_TRUE(others.is_ok()) << others.status().to_string();
      EXPECT_EQ(check::difference(expected(inputs), *others), "");
    }
  }
}

TEST_P(CudaTwoDevicesTest, OneSessionOfBothIsRefusedWithWhatIsMissing) {
  SessionOptions options;
  options.make_devices = {fake_->maker(0), fake_->maker(1)};
  const Status status = Session::create(library_, halving(), options).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported) << status.to_string();
  EXPECT_THAT(status.message(), HasSubstr("device cuda:1 cannot be used beside the ones before it: "
                                          "its copies read and write its own page-locked memory"));
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaTwoDevicesTest, ::testing::Range(uint64_t{1}, uint64_t{6}));

}  // namespace
}  // namespace eddy::testing
