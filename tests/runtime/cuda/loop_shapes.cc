#include "tests/runtime/cuda/loop_shapes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy::testing {

const Library& library() {
  static const Library* const library = new Library();
  return *library;
}

Graph graph_of(const Build& build) {
  GraphBuilder b(library().ops());
  build(b);
  Result<Graph> made = b.finish();
  EXPECT_TRUE(made.is_ok()) << made.status().to_string();
  return std::move(*made);
}

Build side_by_side(int n) {
  return [n](GraphBuilder& b) {
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {}));
    for (int i = 0; i < n; ++i) {
      const auto results = b.while_loop(
          {.name = "loop" + std::to_string(i), .initial = {x}},
          [&](Value, ValueSpan v) {
            return WhileTest{b.op("Less", {v[0], b.scalar(static_cast<float>(4 + i))}), {v[0]}};
          },
          [&](Value, ValueSpan v) {
            return std::vector<Value>{b.op("Add", {v[0], b.scalar(0.75f)})};
          });
      b.output("y" + std::to_string(i), results[0]);
    }
  };
}

Build endless(const ValueType& type) {
  return [type](GraphBuilder& b) {
    const Value x = b.input("x", type);
    const auto results = b.while_loop(
        {.name = "endless", .initial = {x}},
        [&](Value, ValueSpan v) {
          const Value low = b.op("ReduceMin", {v[0]}, {{"keepdims", int64_t{0}}});
          return WhileTest{b.op("Less", {low, b.scalar(2.0f)}), {v[0]}};
        },
        [&](Value, ValueSpan v) { return std::vector<Value>{b.op("Tanh", {v[0]})}; });
    b.output("y", results[0]);
  };
}

}  // namespace eddy::testing
