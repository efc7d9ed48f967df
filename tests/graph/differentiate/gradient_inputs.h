// random_inputs: seeded values of the inputs that check::add_gradient_program declares.
// add_growing_loop: a program whose carried tensor has a row more in each iteration.
#pragma once

#include <vector>

#include "graph/base/random.h"
#include "graph/ir/builder.h"
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

// Inputs x: double[num_rows, 2], whose rows are read one by one, and s: double[1, 2]; output loss.
inline void add_growing_loop(GraphBuilder& b, int64_t num_rows) {
  const Value x = b.input("x", tensor_type(ElementType::kDouble, {num_rows, 2}));
  const Value start = b.input("s", tensor_type(ElementType::kDouble, {1, 2}));
  const auto made = b.while_loop(
      {.name = "grow", .initial = {start}, .trip_limit = b.scalar(num_rows)},
      [&](Value, ValueSpan grown) {
        return WhileTest{b.scalar(true), {grown[0]}};
      },
      [&](Value iteration, ValueSpan grown) {
        const Value row = b.op("Gather", {x, b.op("Reshape", {iteration, b.int64s({1})})});
        const Value mean = b.op("ReduceMean", {grown[0], b.int64s({0})});
        const Value next = b.op("Tanh", {b.op("Mul", {row, mean})});
        return std::vector<Value>{b.op("Concat", {grown[0], next}, {{"axis", int64_t{0}}})};
      });
  b.output("loss", b.op("ReduceSumSquare", {made[0]}, {{"keepdims", int64_t{0}}}));
}

}  // namespace eddy::testing
