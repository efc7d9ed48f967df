// What tests of CUDA kernels share: a registry on a HostLauncher, calls with seeded inputs, and the
// reference's values to compare with.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "ops/cuda/cuda_kernels.h"
#include "tests/ops/cuda/host/host_launcher.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {

inline constexpr ElementType kCudaFloats[] = {ElementType::kFloat, ElementType::kDouble,
                                              ElementType::kFloat16, ElementType::kBfloat16};

class CudaKernelFixture : public ::testing::Test {
 protected:
  static constexpr uint64_t kSeed = 71;
  CudaKernelFixture() { add_cuda_kernels(registry_, launcher_); }

  static bool is_half(ElementType element) {
    return element == ElementType::kFloat16 || element == ElementType::kBfloat16;
  }
  static OpCall make_call(const std::string& op, std::vector<TestValue> inputs) {
    OpCall call;
    call.op = op;
    call.inputs = std::move(inputs);
    return call;
  }
  TestTensor random(ElementType element, const Dims& dims, double low, double high) {
    return TestTensor::random(element, dims, random_, low, high);
  }
  // All values of a type of one byte.
  TestTensor random_bytes(ElementType element, const Dims& dims) {
    const double lowest = element == ElementType::kInt8 ? -128 : 0;
    return random(element, dims, lowest, lowest + 255);
  }
  static TestTensor ints(const std::vector<int64_t>& values) {
    return TestTensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
  }
  // Binds with shapes, ranks and nothing known.
  void compare(const OpCall& call, double rtol = 0, double atol = 0) {
    SCOPED_TRACE(call.op + ", seed " + std::to_string(kSeed));
    compare_with_reference(call, registry_, rtol, atol);
  }
  // For operators that bind only where the rank is known.
  void compare_ranked(const OpCall& call, double rtol, double atol) {
    SCOPED_TRACE(call.op + ", seed " + std::to_string(kSeed));
    const auto expected = run_op(call, KernelSet::kReference);
    ASSERT_TRUE(expected.is_ok()) << expected.status().to_string();
    for (Known known : {Known::kShapes, Known::kRanks}) {
      OpCall varied = call;
      varied.known = known;
      const auto actual = run_op(varied, registry_);
      ASSERT_TRUE(actual.is_ok()) << actual.status().to_string();
      for (size_t o = 0; o < call.num_outputs; ++o) {
        EXPECT_TRUE(is_close((*actual)[o].tensor(), (*expected)[o].tensor(), rtol, atol))
            << "output " << o;
      }
    }
  }
  // What a call says instead of running.
  std::string refusal(const OpCall& call) {
    const auto result = run_op(call, registry_);
    return result.is_ok() ? "accepted" : result.status().message();
  }

  HostLauncher launcher_{kSeed};
  KernelRegistry registry_;
  Random random_{kSeed};
};

}  // namespace eddy::testing
