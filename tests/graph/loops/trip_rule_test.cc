// Claim: how often a loop runs is settled as it begins where its predicate comes from outside,
// where a carried one can only stay true, and where the iteration is compared with a bound from
// outside, under whatever names and shapes; what the body decides is not.
#include "graph/loops/trip_rule.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "graph/ir/builder.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

const ValueType kBool = tensor_type(ElementType::kBool, {});
const ValueType kCount = tensor_type(ElementType::kInt64, {});

class TripRuleTest : public ::testing::Test {
 protected:
  TripRuleTest() { EXPECT_TRUE(add_standard_schemas(ops_).is_ok()); }

  // The test of a loop that carries a bool and a count and forwards what it carries.
  using Test = std::function<Value(GraphBuilder&, Value iteration, ValueSpan carried)>;
  using Next = std::function<Value(GraphBuilder&, ValueSpan forwarded)>;
  TripRule rule(const Test& test, const Next& next_bool) {
    GraphBuilder b(ops_);
    go_ = b.input("go", kBool);
    const Value count = b.input("count", kCount);
    bound_ = b.input("bound", kCount);
    const std::vector<Value> made = b.while_loop(
        {.initial = {go_, count}},
        [&](Value iteration, ValueSpan carried) {
          carried_ = carried[0];
          return WhileTest{test(b, iteration, carried), {carried[0], carried[1]}};
        },
        [&](Value, ValueSpan forwarded) {
          const Value more = b.op("Add", {forwarded[1], b.scalar(int64_t{1})});
          return std::vector<Value>{next_bool(b, forwarded), more};
        });
    b.output("y", made[1]);
    graph_.emplace(b.finish());
    EXPECT_TRUE(graph_->is_ok()) << graph_->status().to_string();
    const Graph& graph = **graph_;
    return find_trip_rule(graph, graph.region(graph.value(carried_.id).region).owner);
  }

  static Value keep(GraphBuilder&, ValueSpan forwarded) { return forwarded[0]; }
  static Value carried(GraphBuilder&, Value, ValueSpan carried) { return carried[0]; }

  OpTable ops_;
  std::optional<Result<Graph>> graph_;
  Value go_, bound_, carried_;
};

TEST_F(TripRuleTest, APredicateFromOutsideSettlesIt) {
  const TripRule found = rule([&](auto&, Value, ValueSpan) { return go_; }, keep);
  EXPECT_TRUE(found.is_settled);
  EXPECT_EQ(found.first, go_.id);
  EXPECT_TRUE(found.bound.is_none());
}

TEST_F(TripRuleTest, AConstantPredicateSettlesIt) {
  const TripRule found =
      rule([](GraphBuilder& b, Value, ValueSpan) { return b.scalar(true); }, keep);
  EXPECT_TRUE(found.is_settled);
  EXPECT_EQ((*graph_)->value(found.first).origin, ValueOrigin::kConstant);
}

TEST_F(TripRuleTest, ACarriedPredicateThatStaysOrBecomesTrueSettlesIt) {
  EXPECT_EQ(rule(carried, keep).first, carried_.id);
  const TripRule becomes_true =
      rule(carried, [](GraphBuilder& b, ValueSpan) { return b.scalar(true); });
  EXPECT_TRUE(becomes_true.is_settled);
  EXPECT_EQ(becomes_true.first, carried_.id);
  const TripRule renamed = rule(
      [](GraphBuilder& b, Value, ValueSpan c) {
        return b.op("Reshape", {b.op("Identity", {c[0]}), b.int64s({1})});
      },
      [](GraphBuilder& b, ValueSpan f) { return b.op("Identity", {f[0]}); });
  EXPECT_TRUE(renamed.is_settled);
  EXPECT_EQ(renamed.first, carried_.id);
}

TEST_F(TripRuleTest, ACarriedPredicateThatTheBodyMakesDoesNot) {
  const auto less = [](GraphBuilder& b, ValueSpan f) {
    return b.op("Less", {f[1], b.scalar(int64_t{9})});
  };
  EXPECT_FALSE(rule(carried, less).is_settled);
  const auto never = [](GraphBuilder& b, ValueSpan) { return b.scalar(false); };
  EXPECT_FALSE(rule(carried, never).is_settled);
}

TEST_F(TripRuleTest, ABoundFromOutsideSettlesIt) {
  const TripRule found = rule(
      [&](GraphBuilder& b, Value i, ValueSpan) {
        return b.op("Less", {b.op("Identity", {i}), bound_});
      },
      keep);
  EXPECT_TRUE(found.is_settled);
  EXPECT_TRUE(found.first.is_none());
  EXPECT_EQ(found.bound, bound_.id);
}

TEST_F(TripRuleTest, ABoundFromInsideAndAnotherNumberDoNot) {
  const auto by_carried = [](GraphBuilder& b, Value i, ValueSpan c) {
    return b.op("Less", {i, c[1]});
  };
  EXPECT_FALSE(rule(by_carried, keep).is_settled);
  const auto of_carried = [&](GraphBuilder& b, Value, ValueSpan c) {
    return b.op("Less", {c[1], bound_});
  };
  EXPECT_FALSE(rule(of_carried, keep).is_settled);
}

}  // namespace
}  // namespace eddy
