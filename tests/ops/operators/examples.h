// One small valid call of each operator that Eddy's CPU has beyond the core, for tests that go over
// all of them.
//
// Threads: pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/base/random.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {

struct Example {
  std::string op;
  int first_opset = 1;  // in which the standard brought it
  // Types of the operator's main input: those of float32, int64, int32 and bool that the standard
  // allows (or where the main input is of bytes, those).
  std::vector<ElementType> elements;
  Attributes attributes = {};
  size_t num_outputs = 1;
  std::function<std::vector<TestValue>(ElementType element, Random& random)> inputs = {};

  // At opset 22, or the one that brought it where that is newer.
  OpCall call(ElementType element, uint64_t seed) const;
};

const std::vector<Example>& examples();

}  // namespace eddy::testing
