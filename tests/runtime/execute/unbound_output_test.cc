// Claim: a value without a place in the plan, because it leaves the graph, overwrites the one that
// it is made of where that ends there and nothing else holds its memory, whatever its shape; what
// is read later, or is the caller's, stays.
#include "tests/runtime/testing/output_ways.h"

namespace eddy {
namespace {

using namespace testing;

class UnboundOutputTest : public OutputWays {
 protected:
  // x + n, one by one: a loop that data decide.
  static Value count_up(GraphBuilder& b, Value x, Value n) {
    return b.while_loop(
        {.initial = {x}},
        [&](Value i, ValueSpan c) {
          return WhileTest{is_below(b, i, n), {c[0]}};
        },
        [&](Value, ValueSpan f) { return std::vector<Value>{next(b, f[0])}; })[0];
  }
};

// Nothing is bound, so the output has no place in the plan: each iteration but the first, which
// must leave the caller's x alone, overwrites what the one before has made; of any shape.
TEST_P(UnboundOutputTest, WhatIsNotBoundIsMadeInPlaceToo) {
  for (const bool is_known : {true, false}) {
    const auto build = [&](GraphBuilder& b) {
      const Value x =
          b.input("x", is_known ? kRow : tensor_type(ElementType::kFloat, {b.symbol("n")}));
      b.output("y", count_up(b, x, b.input("n", kInt)));
    };
    on_every_device(build, [&](Session& session) {
      const std::vector<float> x = row(0);
      for (const int64_t n : {1, 5, 3}) {
        const auto made = session.run({{"x", Tensor::of<float>({kSize}, std::span<const float>(x))},
                                       {"n", Tensor::of<int64_t>({}, {n})}});
        ASSERT_TRUE(made.is_ok()) << made.status().to_string();
        EXPECT_EQ(values<float>((*made)[0].second), row(static_cast<float>(n)));
        EXPECT_EQ(x, row(0));
        const auto writes = log_.take();
        ASSERT_EQ(writes.size(), static_cast<size_t>(n));
        for (const void* written : writes) EXPECT_EQ(written, writes[0]);
      }
    });
  }
}

// What another reads later is not overwritten.
TEST_P(UnboundOutputTest, WhatIsKeptIsNotOverwritten) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {b.symbol("n")}));
  const Value first = away(b, x);
  b.output("first", first);
  b.output("second", next(b, next(b, first)));
  auto session = make_session(b);
  ASSERT_NE(session, nullptr);
  const auto made = session->run({{"x", Tensor::of<float>({2}, {5, 7})}});
  ASSERT_TRUE(made.is_ok()) << made.status().to_string();
  EXPECT_EQ(values<float>((*made)[0].second), (std::vector<float>{6, 8}));
  EXPECT_EQ(values<float>((*made)[1].second), (std::vector<float>{8, 10}));
}

EDDY_IN_ALL_WAYS(UnboundOutputTest);

}  // namespace
}  // namespace eddy
