// What Compile promises (runtime/device/compile.h), on every device that has it:
//
//   INSTANTIATE_TEST_SUITE_P(Cuda, CompileConformance, testing::Values(make_fusing_gpu));
#pragma once

#include <cstring>

#include "ops/schema/standard.h"
#include "runtime/device/compile.h"
#include "tests/runtime/device/capture_conformance.h"

namespace eddy::testing {

class CompileConformance : public CaptureConformance {
 protected:
  CompileConformance() { EXPECT_TRUE(add_standard_schemas(ops_).is_ok()); }
  std::optional<ElementFunction> function_of(const char* op, size_t num_inputs) const {
    const ValueType row = tensor_type(ElementType::kFloat, {4});
    const std::vector<ValueType> inputs(num_inputs, row), outputs = {row};
    const std::vector<TensorView> constants(num_inputs);
    const Attributes attributes;
    return compile_->function_of(
        {*ops_.find_or_null("", op, 13), attributes, 13, op, inputs, outputs, constants});
  }
  ElementFunction function(const char* op, size_t num_inputs) const {
    const auto found = function_of(op, num_inputs);
    EXPECT_TRUE(found.has_value()) << op;
    return found.value_or(ElementFunction());
  }
  // while (count < limit) x = x + x, of four floats.
  LoopProgram doubling() const {
    LoopProgram program;
    program.num_inputs = 2;  // x, true
    const auto add = [&](ElementType element, Dims dims) {
      const auto value = static_cast<uint32_t>(program.values.size());
      program.values.push_back({element, std::move(dims), value});
      return value;
    };
    const uint32_t initial = add(ElementType::kFloat, {4});
    program.predicate = add(ElementType::kBool, {});
    const uint32_t x = add(ElementType::kFloat, {4});
    const uint32_t next = add(ElementType::kFloat, {4});
    program.after.push_back({.result = next,
                             .arguments = {x, x},
                             .expression = {2, {{function("Add", 2), {0, 1}}}},
                             .reduction = {}});
    program.carried.push_back({x, initial, next});
    program.results = {x};
    return program;
  }

  OpTable ops_;
  Compile* const compile_ = device_->compile_or_null();
};

TEST_P(CompileConformance, ElementwiseNodesHaveFunctionsAndOthersNone) {
  EXPECT_TRUE(function_of("Add", 2));
  EXPECT_TRUE(function_of("Tanh", 1));
  EXPECT_FALSE(function_of("MatMul", 2));
  EXPECT_FALSE(function_of("Softmax", 1));
}

TEST_P(CompileConformance, AKernelOfElementsIsMadeAndMadeAgain) {
  const Expression sum = {3, {{function("Mul", 2), {0, 1}}, {function("Add", 2), {3, 2}}}};
  const std::vector<ElementType> inputs(3, ElementType::kFloat);
  for (int repeat = 0; repeat < 2; ++repeat) {
    const Status status = compile_->prepare_elements(sum, inputs, {ElementType::kFloat});
    EXPECT_TRUE(status.is_ok()) << status.to_string();
  }
  const Expression unknown = {1, {{{"no_such_function"}, {0}}}};
  EXPECT_FALSE(
      compile_->prepare_elements(unknown, {ElementType::kFloat}, {ElementType::kFloat}).is_ok());
}

TEST_P(CompileConformance, AKernelOfALoopRunsAllItsIterationsAndIsStopped) {
  const Result<const void*> kernel = compile_->prepare_loop(doubling());
  ASSERT_TRUE(kernel.is_ok()) << kernel.status().to_string();
  auto* const there = static_cast<char*>(there_.data());
  const float x[4] = {1, 2, 3, 4};
  const bool goes_on = true;
  ASSERT_TRUE(staging_->write(there, x, sizeof(x)).is_ok());
  ASSERT_TRUE(staging_->write(there + 64, &goes_on, sizeof(goes_on)).is_ok());
  const void* const inputs[] = {there, there + 64};
  void* const results[] = {there + 128};
  LoopCall call;
  call.inputs = inputs;
  call.results = results;
  call.limit = 3;
  call.stop = reinterpret_cast<const uint32_t*>(words_ + 16);
  call.progress = words_ + 17;
  for (const bool is_stopped : {false, true}) {
    words_[16] = is_stopped ? 1 : 0;
    ASSERT_TRUE(issue(*stream_, [&](void* native) {
                  return compile_->launch_loop(*kernel, call, native);
                }).is_ok());
    EXPECT_EQ(words_[17], is_stopped ? 0 : 3);
    float made[4];
    std::memcpy(made, read(there_, 128 + sizeof(made)).data() + 128, sizeof(made));
    for (int i = 0; i < 4; ++i) EXPECT_EQ(made[i], x[i] * (is_stopped ? 1 : 8));
    EXPECT_EQ(words_[18], 1);
  }
}

}  // namespace eddy::testing
