// Claim: text depends on a graph's structure only, and no name can break out of its quotes.
#include "graph/ir/print.h"

#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

Graph build(const OpTable& ops, const std::string& node_name) {
  GraphBuilder b(ops, "g");
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {2}));
  const auto out = b.while_loop(
      {.name = "loop", .initial = {x}, .trip_limit = b.scalar<int64_t>(3)},
      [&](Value, std::span<const Value> c) {
        return WhileTest{b.scalar(true), {c[0]}};
      },
      [&](Value, std::span<const Value> f) {
        return std::vector<Value>{b.op("Neg", {f[0]}, {}, {.name = node_name})};
      });
  b.output("y", out[0]);
  return std::move(*b.finish());
}

TEST(PrintTest, TextShowsRegionsIndented) {
  OpTable ops;
  ASSERT_TRUE(add_standard_schemas(ops).is_ok());
  EXPECT_EQ(print_text(build(ops, "minus")), R"(graph g(%0 "x": float[2]) {
  while "loop" (constant int64[] {3}, %0)
  before(%1 "iteration": int64[], %2: float[2]) {
    yield constant bool[] {1}, %2
  }
  after(%3 "iteration": int64[], %4: float[2]) {
    Neg-1 "minus" (%4) -> %5: float[2]
    yield %5
  } -> %6: float[2]
  return %6
}
)");
}

TEST(PrintTest, QuotesAndLineBreaksInNamesAreHarmless) {
  OpTable ops;
  ASSERT_TRUE(add_standard_schemas(ops).is_ok());
  const Graph graph = build(ops, "a\"]; evil [\n");
  EXPECT_NE(print_text(graph).find(R"("a\"]; evil [ ")"), std::string::npos) << print_text(graph);
  EXPECT_EQ(print_text(graph).find("evil [\n"), std::string::npos);
}

}  // namespace
}  // namespace eddy
