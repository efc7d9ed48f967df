// RivalTest: one operator's call by Eddy's CPU kernels and by ONNX Runtime, as a model of one node.
//
//   class GeluTest : public RivalTest {};
//   TEST_F(GeluTest, Agrees) { compare(call("Gelu", 20, {floats({2, 3})})); }
//
// Every test is skipped where ONNX Runtime is not installed (tools/bench/ort_rival.h says where it
// is looked for); a call that its version refuses is left out and named.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/ops/testing/op_runner.h"
#include "tools/bench/ort_rival.h"

namespace eddy::testing {

// A model of the one call, whose constant inputs are initializers. Outputs are declared by their
// element types.
std::string model_of(const OpCall& call, const std::vector<ElementType>& outputs);

// Whether numbers differ by that much at most, and types and shapes not at all.
::testing::AssertionResult is_within(const TestTensor& ours, const TestTensor& theirs,
                                     double steps);

class RivalTest : public ::testing::Test {
 protected:
  void SetUp() override;

  TestTensor floats(const Dims& dims, double low = -2, double high = 2) {
    return TestTensor::random(ElementType::kFloat, dims, random_, low, high);
  }
  TestTensor ints(const std::vector<int64_t>& values) {
    return TestTensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
  }
  static OpCall call(const char* op, int opset, std::vector<TestValue> inputs,
                     Attributes attributes = {}, size_t num_outputs = 1);

  // Expects the outputs to agree: integers within `steps`, floats relative and absolute.
  struct Tolerance {
    double relative = 1e-4, absolute = 1e-5;
    double steps = 0;
    size_t num_outputs = SIZE_MAX;  // the first ones; the others may differ
  };
  void compare(const OpCall& call) { compare(call, {}); }
  void compare(const OpCall& call, const Tolerance& tolerance);
  Result<std::vector<TestTensor>> run_rival(const OpCall& call,
                                            const std::vector<ElementType>& outputs);

  static constexpr uint64_t kSeed = 17;
  Random random_{kSeed};
  int num_compared_ = 0;

 private:
  std::unique_ptr<OrtLibrary> library_;
};

}  // namespace eddy::testing
