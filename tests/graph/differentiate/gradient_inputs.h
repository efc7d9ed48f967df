// random_inputs: seeded values of the inputs that check::add_gradient_program declares.
#pragma once

#include "graph/base/random.h"
#include "tests/ops/gradient/graph_runner.h"
#include "tools/check/gradient_program.h"

namespace eddy::testing {

inline NamedValues random_inputs(uint64_t seed) {
  Random random(seed + 1'000'000);
  NamedValues inputs;
  for (const char* name : {"a", "b", "c"}) {
    inputs[name] = TestTensor::scalar(random.uniform() * 2.4 - 1.2);
  }
  inputs["v"] = TestTensor::random(ElementType::kDouble, {check::kGradientRows}, random, -1, 1);
  return inputs;
}

}  // namespace eddy::testing
