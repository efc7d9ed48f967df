// expect_units_write_apart: the units of each step in any order, with memory that held something
// else, give what the call gives.
#pragma once

#include <gtest/gtest.h>

#include "ops/cpu/blocked/two_step_conv.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {

inline void expect_units_write_apart(const cpu::TwoStepConv& conv, const OpCall& call,
                                     const TestTensor& expected) {
  const auto memory = [](size_t bytes) {
    TestTensor made(ElementType::kFloat, {static_cast<int64_t>(bytes / sizeof(float) + 1)});
    for (float& value : made.values<float>()) value = 1e30f;
    return made;
  };
  TestTensor shared = memory(conv.shared_bytes()), scratch = memory(conv.scratch_bytes());
  const TestTensor made(ElementType::kFloat, expected.dims());
  const bool has_bias = call.inputs.size() > 2;
  const cpu::TwoStepConv::Call parts{
      call.inputs[0].tensor().view().as<float>(), call.inputs[1].tensor().view().as<float>(),
      has_bias ? call.inputs[2].tensor().view().as<float>() : nullptr,
      made.view().mutable_as<float>(), shared.view().data};
  for (uint32_t unit = conv.num_units(); unit-- > 0;) {
    conv.prepare(parts, scratch.view().data, unit);
  }
  for (uint32_t unit = conv.num_units(); unit-- > 0;) conv.run(parts, scratch.view().data, unit);
  EXPECT_TRUE(is_same_bits(made, expected));
}

}  // namespace eddy::testing
