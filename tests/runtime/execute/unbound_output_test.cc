// Claim: a value without a place in the plan, because it leaves the graph, overwrites the one that
// it is made of where that ends there and nothing else holds its memory, of any shape of more than
// a cache line; what is read later, or is the caller's, stays.
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

// In each iteration `first` is a result, too, so what is made of it goes elsewhere; and what that
// makes is overwritten at once.
TEST_P(UnboundOutputTest, WhatIsKeptIsNotOverwritten) {
  const auto build = [&](GraphBuilder& b) {
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {b.symbol("n")}));
    const Value n = b.input("n", kInt);
    const auto results = b.while_loop(
        {.initial = {x, x}},
        [&](Value i, ValueSpan c) {
          return WhileTest{is_below(b, i, n), {c[0], c[1]}};
        },
        [&](Value, ValueSpan f) {
          const Value first = away(b, f[0]);
          return std::vector<Value>{first, next(b, next(b, first))};
        });
    b.output("first", results[0]);
    b.output("second", results[1]);
  };
  on_every_device(build, [&](Session& session) {
    for (const int64_t n : {1, 4}) {
      const auto made =
          session.run({{"x", Tensor::of<float>({2}, {5, 7})}, {"n", Tensor::of<int64_t>({}, {n})}});
      ASSERT_TRUE(made.is_ok()) << made.status().to_string();
      const auto more = static_cast<float>(n);
      EXPECT_EQ(values<float>((*made)[0].second), (std::vector<float>{5 + more, 7 + more}));
      EXPECT_EQ(values<float>((*made)[1].second), (std::vector<float>{7 + more, 9 + more}));
      const auto writes = log_.take();  // away, next, next of each iteration
      ASSERT_EQ(writes.size(), static_cast<size_t>(3 * n));
      for (size_t i = 0; i < writes.size(); i += 3) {
        EXPECT_NE(writes[i], writes[i + 1]) << i;
        EXPECT_EQ(writes[i + 1], writes[i + 2]) << i;
      }
    }
  });
}

EDDY_IN_ALL_WAYS(UnboundOutputTest);

}  // namespace
}  // namespace eddy
