// Claim: exactly those values never move that have one block of the plan and that no region's end,
// loop, caller or kernel puts elsewhere; a view stands where its source does.
#include "graph/loops/fixed_addresses.h"

#include <gmock/gmock.h>

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/ir/builder.h"
#include "graph/schedule/plan_graph.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

using ::testing::UnorderedElementsAre;

class FixedAddressesTest : public ::testing::Test {
 protected:
  Value input(GraphBuilder& b, std::string name = "x") {
    return b.input(std::move(name), tensor_type(ElementType::kFloat, {3, 4}));
  }
  static Value neg(GraphBuilder& b, Value x, std::string name) {
    return b.op("Neg", {x}, {}, {.name = std::move(name)});
  }
  static Value reshape(GraphBuilder& b, Value x, std::string name) {
    return b.op("Reshape", {x, b.int64s({4, 3})}, {}, {.name = std::move(name)});
  }
  // "name" of still nodes; "name@source" where they stand in another one's block.
  std::vector<std::string> still(GraphBuilder& b, std::string own_memory = "") {
    auto made = b.finish();
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    const Graph& graph = *made;
    const Plan plan = plan_graph(graph, {.policy = AssignPolicy::kSerial, .is_auto = false});
    const auto name_of = [&](ValueId value) {
      return graph.node(graph.value(value).producer).name;
    };
    const std::vector<ValueId> found = find_fixed_addresses(
        graph, plan.memory, [&](NodeId node) { return graph.node(node).name == own_memory; });
    std::vector<std::string> names;
    for (uint32_t v = 0; v < found.size(); ++v) {
      if (found[v].is_none()) continue;
      const bool is_own = found[v] == ValueId(v);
      names.push_back(name_of(ValueId(v)) + (is_own ? "" : "@" + name_of(found[v])));
    }
    return names;
  }
  Library library_;
};

TEST_F(FixedAddressesTest, WhatIsMadeBetweenInputsAndOutputsIs) {
  GraphBuilder b(library_.ops());
  b.output("y", neg(b, neg(b, neg(b, input(b), "a"), "b"), "out"));
  EXPECT_THAT(still(b), UnorderedElementsAre("a", "b"));
}

TEST_F(FixedAddressesTest, WhatHasSeveralPlacesIsNot) {
  GraphBuilder b(library_.ops());
  b.output("y", neg(b, neg(b, neg(b, input(b), "a"), "b"), "out"));
  const Graph graph = std::move(*b.finish());
  MemoryPlan memory = plan_graph(graph, {.policy = AssignPolicy::kSerial, .is_auto = false}).memory;
  const auto nobody = [](NodeId) { return false; };
  for (ValueMemory& value : memory.values) {
    if (value.place != MemoryPlace::kBlock) continue;
    const auto count = [&] {
      const auto found = find_fixed_addresses(graph, memory, nobody);
      return std::ranges::count_if(found, [](ValueId id) { return !id.is_none(); });
    };
    EXPECT_EQ(count(), 2);
    value.holders.push_back(graph.inputs()[0]);
    EXPECT_EQ(count(), 1);
    value.holders.clear();
  }
}

TEST_F(FixedAddressesTest, AViewStandsWhereItsSourceDoes) {
  GraphBuilder b(library_.ops());
  const Value x = input(b);
  const Value v = reshape(b, reshape(b, neg(b, x, "a"), "first"), "second");
  b.output("y", neg(b, b.op("Add", {v, reshape(b, x, "of_input")}, {}, {.name = "sum"}), "out"));
  EXPECT_THAT(still(b), UnorderedElementsAre("a", "first@a", "second@a", "sum"));
}

TEST_F(FixedAddressesTest, WhatAnyRegionHasAsAResultMayMove) {
  GraphBuilder b(library_.ops());
  const Value x = neg(b, input(b), "captured");
  const Value trips = b.input("trips", tensor_type(ElementType::kInt64, {}));
  const auto out = b.while_loop(
      {.initial = {neg(b, x, "initial")}},
      [&](Value i, std::span<const Value> c) {
        const Value forwarded = neg(b, neg(b, c[0], "tested"), "forwarded");
        return WhileTest{b.op("Less", {i, trips}, {}, {.name = "less"}), {forwarded}};
      },
      [&](Value, std::span<const Value> f) {
        const Value inner = b.op("Add", {neg(b, f[0], "inner"), x}, {}, {.name = "sum"});
        return std::vector<Value>{neg(b, inner, "next")};
      });
  b.output("y", neg(b, out[0], "out"));
  EXPECT_THAT(still(b), UnorderedElementsAre("captured", "initial", "tested", "inner", "sum"));
}

TEST_F(FixedAddressesTest, ResultsOfBranchesMayMove) {
  GraphBuilder b(library_.ops());
  const Value x = input(b);
  const Value selector = b.input("selector", tensor_type(ElementType::kBool, {}));
  const auto branch = [&](const char* inner, const char* result) {
    return [&, inner, result] { return std::vector<Value>{neg(b, neg(b, x, inner), result)}; };
  };
  const auto out = b.if_else(selector, branch("in_one", "of_one"), branch("in_two", "of_two"));
  b.output("y", neg(b, out[0], "out"));
  EXPECT_THAT(still(b), UnorderedElementsAre("in_one", "in_two"));
}

TEST_F(FixedAddressesTest, NothingIsWhereShapesChangeOrKernelsMakeTheirOwnMemory) {
  GraphBuilder changing(library_.ops());
  const Value n = changing.input("x", tensor_type(ElementType::kFloat, {changing.symbol("n"), 4}));
  changing.output("y", neg(changing, neg(changing, n, "a"), "out"));
  EXPECT_THAT(still(changing), UnorderedElementsAre());
  GraphBuilder own(library_.ops());
  own.output("y", neg(own, reshape(own, neg(own, neg(own, input(own), "a"), "b"), "view"), "out"));
  EXPECT_THAT(still(own, "b"), UnorderedElementsAre("a"));
}

}  // namespace
}  // namespace eddy
