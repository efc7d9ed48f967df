// Claim: of the few loops that GPUs may drive at once in a process, those count that may run: loops
// behind each other need one place between them.
#include <gtest/gtest.h>

#include "runtime/execute/control/device_control.h"
#include "tests/runtime/cuda/cuda_session_fixture.h"
#include "tests/runtime/cuda/loop_shapes.h"
#include "tools/check/oracle.h"

namespace eddy::testing {
namespace {

const ValueType kFloat = tensor_type(ElementType::kFloat, {});

class CudaPlacesTest : public CudaSessionFixture {
 protected:
  static size_t num_driven(const Session& session) {
    size_t driven = 0;
    for (const LoopReport& report : session.loop_reports()) {
      driven += report.driven == "device" ? 1 : 0;
    }
    return driven;
  }
};

// Each begins where the last one has ended.
Build in_a_row(int n) {
  return [n](GraphBuilder& b) {
    Value x = b.input("x", kFloat);
    for (int i = 0; i < n; ++i) {
      x = b.while_loop(
          {.name = "loop" + std::to_string(i), .initial = {x}},
          [&](Value, ValueSpan v) {
            return WhileTest{b.op("Less", {v[0], b.scalar(static_cast<float>(4 * i + 4))}), {v[0]}};
          },
          [&](Value, ValueSpan v) {
            return std::vector<Value>{b.op("Add", {v[0], b.scalar(0.75f)})};
          })[0];
    }
    b.output("y", x);
  };
}

TEST_P(CudaPlacesTest, LoopsBehindEachOtherAreAllDrivenByTheDevice) {
  constexpr int kLoops = 2 * DeviceControl::kMostAtOnce + 1;
  use_fake();
  auto cpu = std::move(*Session::create(library(), graph_of(in_a_row(kLoops)), {}));
  auto session = make_or_null(graph_of(in_a_row(kLoops)), {});
  ASSERT_NE(session, nullptr);
  const NamedTensors inputs = {{"x", Tensor::scalar(0.0f)}};
  for (int repeat = 0; repeat < 3; ++repeat) {
    const auto outputs = session->run(inputs);
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    EXPECT_EQ(check::difference(*cpu->run(inputs), *outputs), "");
    EXPECT_EQ(num_driven(*session), size_t{kLoops});
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaPlacesTest, ::testing::Range(uint64_t{1}, uint64_t{4}));

}  // namespace
}  // namespace eddy::testing
