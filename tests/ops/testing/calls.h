// Short forms for tests of operators that are written out by hand: calls, tensors, and what is
// expected of a call whatever is known when it is bound.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {

// A call of another domain than the standard's.
inline OpCall make_of(const char* domain, const char* op, int version,
                      std::vector<TestValue> inputs, Attributes attributes = {},
                      size_t num_outputs = 1) {
  return {.op = op,
          .domain = domain,
          .opset = version,
          .attributes = std::move(attributes),
          .inputs = std::move(inputs),
          .num_outputs = num_outputs};
}
inline OpCall make(const char* op, int opset, std::vector<TestValue> inputs,
                   Attributes attributes = {}) {
  return make_of("", op, opset, std::move(inputs), std::move(attributes));
}

inline TestTensor floats(Dims dims, const std::vector<float>& values) {
  return TestTensor::of<float>(dims, values);
}

// What is wrong with the call, in its own words.
inline std::string refusal(const OpCall& call) {
  const auto result = run_op(call, KernelSet::kReference);
  return result.is_ok() ? "accepted" : result.status().message();
}

// Output o of the call is expected[o], by all kernels and with less and less known.
inline void expect_all(OpCall call, const std::vector<TestTensor>& expected) {
  call.num_outputs = expected.size();
  for (const Known known : {Known::kShapes, Known::kRanks}) {
    call.known = known;
    for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
      const auto found = run_op(call, kernels);
      ASSERT_TRUE(found.is_ok()) << call.op << ": " << found.status().to_string();
      for (size_t o = 0; o < expected.size(); ++o) {
        EXPECT_TRUE(is_close((*found)[o].tensor(), expected[o], 1e-4, 1e-5))
            << call.op << " output " << o;
      }
    }
  }
}

}  // namespace eddy::testing
