// A cost table comes back from its JSON as it was, and what is no table is refused by name.
#include "graph/schedule/costs/cost_table.h"

#include <gtest/gtest.h>

#include "graph/ir/builder.h"

namespace eddy {
namespace {

TEST(CostTable, ComesBackFromItsJsonAsItWas) {
  CostTable table;
  ASSERT_TRUE(table.add({"MatMul", "float[2,3],float[3,4]->float[2,4]", "cpu", 512.5, 498, 561, 15})
                  .is_ok());
  ASSERT_TRUE(table.add({"MatMul", "float[2,3],float[3,4]->float[2,4]", "cuda", 3, 3, 3, 1, 4, 1.5})
                  .is_ok());
  table.dispatch_ns = 41;
  auto back = parse_cost_table(to_json(table));
  ASSERT_TRUE(back.is_ok()) << back.status().to_string();
  const MeasuredCost* cost =
      back->find_or_null("MatMul", "float[2,3],float[3,4]->float[2,4]", "cpu");
  ASSERT_NE(cost, nullptr);
  EXPECT_EQ(cost->ns, 512.5);
  EXPECT_EQ(cost->low_ns, 498);
  EXPECT_EQ(cost->high_ns, 561);
  EXPECT_EQ(cost->samples, 15u);
  EXPECT_EQ(cost->threads, 0u);
  const MeasuredCost* split =
      back->find_or_null("MatMul", "float[2,3],float[3,4]->float[2,4]", "cuda");
  ASSERT_NE(split, nullptr);
  EXPECT_EQ(split->threads, 4u);
  EXPECT_EQ(split->all_ns, 1.5);
  EXPECT_EQ(back->dispatch_ns, 41);
  EXPECT_EQ(back->costs().size(), 2u);
  EXPECT_EQ(back->find_or_null("MatMul", "float[2,3],float[3,4]->float[2,4]", "tpu"), nullptr);
}

TEST(CostTable, KeysOfNodesAreTheirTypesAndEmptyWhereOneIsOpen) {
  OpTable ops;
  OpDef def{.name = "Same", .inputs = {{.name = "x"}}};
  def.infer = [](InferContext& context) {
    context.set_output(0, context.input(0));
    return Status::ok();
  };
  ASSERT_TRUE(ops.add(std::move(def)).is_ok());
  GraphBuilder b(ops);
  const Value fixed = b.input("fixed", tensor_type(ElementType::kFloat, {2, 3}));
  const Value open = b.input("open", tensor_type(ElementType::kFloat, {kUnknownDim}));
  b.output("y", b.op("Same", {fixed}));
  b.output("z", b.op("Same", {open}));
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  EXPECT_EQ(cost_key(*graph, graph->node(NodeId(0))), "float[2,3]->float[2,3]");
  EXPECT_EQ(cost_key(*graph, graph->node(NodeId(1))), "");
}

TEST(CostTable, DecisionsAreWhatWasSeenOrWhatIsLikely) {
  const auto table = parse_cost_table(
      R"({"costs": [], "decisions": {"seen": [3, 4], "likely": {"distribution": [[4, 0.25], [9, 0.75]]}}})");
  ASSERT_TRUE(table.is_ok()) << table.status().to_string();
  EXPECT_EQ(table->decisions.at("seen"), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(table->decisions.count("likely"), 0u);
  const std::vector<std::pair<int64_t, double>> likely = {{4, 0.25}, {9, 0.75}};
  EXPECT_EQ(table->distributions.at("likely"), likely);
  const auto again = parse_cost_table(to_json(*table));
  ASSERT_TRUE(again.is_ok()) << again.status().to_string();
  EXPECT_EQ(again->decisions, table->decisions);
  EXPECT_EQ(again->distributions, table->distributions);
  for (const char* bad : {"{}", R"({"distribution": [[4, 0.5]]})", R"({"distribution": [[4]]})",
                          R"({"distribution": [[4, 2], [5, -1]]})", R"({"distribution": []})"}) {
    const auto refused =
        parse_cost_table(R"({"costs": [], "decisions": {"l": )" + std::string(bad) + "}}");
    ASSERT_FALSE(refused.is_ok()) << bad;
    EXPECT_NE(refused.status().message().find("\"distribution\" of \"l\""), std::string::npos)
        << refused.status().message();
  }
}

TEST(CostTable, RefusesWhatIsNoTable) {
  const std::pair<const char*, const char*> kCases[] = {
      {"{", "is no JSON"},
      {"[]", "needs the list \"costs\""},
      {R"({"costs": [3]})", "cost 0: must be an object"},
      {R"({"costs": [{"op": "A", "shapes": "", "device": "cpu"}]})", "cost 0: needs the number"},
      {R"({"costs": [{"op": "A", "shapes": "", "ns": 1}]})", "needs the string \"device\""},
      {R"({"costs": [{"op": "A", "shapes": "", "device": "cpu", "ns": -1}]})", ">= 0"},
      {R"({"costs": [{"op": "A", "shapes": "", "device": "cpu", "ns": "1"}]})", "no number"},
      {R"({"costs": [{"op": "A", "shapes": "", "device": "cpu", "ns": 1},
                     {"op": "A", "shapes": "", "device": "cpu", "ns": 2}]})",
       "cost 1: the cost of A  on cpu is given twice"},
      {R"({"costs": [], "dispatch_ns": -4})", "dispatch_ns"},
  };
  for (const auto& [json, message] : kCases) {
    auto table = parse_cost_table(json);
    ASSERT_FALSE(table.is_ok()) << json;
    EXPECT_NE(table.status().message().find(message), std::string::npos)
        << table.status().message();
  }
}

}  // namespace
}  // namespace eddy
