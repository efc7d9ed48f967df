// Claim: bodies of few nodes with neither loops nor branches inside may be recorded several times
// into one round, an outermost loop if it or one inside has such a body, else the result names the
// obstacle; and a round is never more launches than it may be.
#include "graph/loops/unrolling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "runtime/api/library.h"

namespace eddy {
namespace {

const ValueType kWide = tensor_type(ElementType::kFloat, {8});

// A loop of `num_nodes` in a chain, its test read from `go`; with one such loop inside of
// `num_inner` nodes, if > 0.
Graph loop_of(const Library& library, int num_nodes, int num_inner) {
  GraphBuilder b(library.ops());
  const Value go = b.input("go", tensor_type(ElementType::kBool, {}));
  const auto chain = [&](const std::string& name, Value from, int length, const auto& first) {
    return b.while_loop(
        {.name = name, .initial = {from}},
        [&](Value, ValueSpan v) {
          return WhileTest{go, {v[0]}};
        },
        [&](Value, ValueSpan v) {
          Value value = first(v[0]);
          for (int i = 0; i < length; ++i) value = b.op("Tanh", {value});
          return std::vector<Value>{value};
        })[0];
  };
  const auto nothing = [](Value value) { return value; };
  const auto inner = [&](Value value) {
    return num_inner > 0 ? chain("inner", value, num_inner, nothing) : value;
  };
  b.output("y", chain("outer", b.input("x", kWide), num_nodes, inner));
  Result<Graph> made = b.finish();
  EXPECT_TRUE(made.is_ok()) << made.status().to_string();
  return std::move(*made);
}

NodeId named(const Graph& graph, const std::string& name) {
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (graph.node(NodeId(n)).name == name) return NodeId(n);
  }
  return {};
}

TEST(Unrolling, BodiesOfFewNodesAreUnrolled) {
  const Library library;
  constexpr int kMost = Unrolling::kMostNodes;
  const Graph few = loop_of(library, kMost, 0);
  EXPECT_EQ(why_not_unrolled(few, named(few, "outer")), "");
  EXPECT_EQ(why_nothing_unrolled(few, named(few, "outer")), "");
  const Graph many = loop_of(library, kMost + 1, 0);
  const std::string why = "an iteration of outer has 13 kernels, up to 12 are few";
  EXPECT_EQ(why_not_unrolled(many, named(many, "outer")), why);
  EXPECT_EQ(why_nothing_unrolled(many, named(many, "outer")), why);
}

TEST(Unrolling, TheInnermostLoopsAreUnrolled) {
  const Library library;
  const Graph nested = loop_of(library, 1, 2);
  EXPECT_EQ(why_not_unrolled(nested, named(nested, "outer")), "there is inner inside");
  EXPECT_EQ(why_not_unrolled(nested, named(nested, "inner")), "");
  EXPECT_EQ(why_nothing_unrolled(nested, named(nested, "outer")), "");
  const Graph large = loop_of(library, 1, 20);
  EXPECT_EQ(why_nothing_unrolled(large, named(large, "outer")), "there is inner inside");
}

TEST(Unrolling, ARoundHoldsNoMoreLaunchesThanItMay) {
  EXPECT_EQ(Unrolling::iterations_a_round(0), Unrolling::kMostIterations);
  EXPECT_EQ(Unrolling::iterations_a_round(1), Unrolling::kMostIterations);
  for (uint32_t launches = 1; launches <= 40; ++launches) {
    const uint32_t iterations = Unrolling::iterations_a_round(launches);
    EXPECT_LE(iterations, Unrolling::kMostIterations);
    EXPECT_TRUE(iterations == 1 || iterations * launches <= Unrolling::kLaunchesOfARound);
    const bool may_be_more = (iterations + 1) * launches <= Unrolling::kLaunchesOfARound;
    EXPECT_TRUE(!may_be_more || iterations == Unrolling::kMostIterations) << launches;
  }
}

}  // namespace
}  // namespace eddy
