// Claim: graphs with communication, tied and planned by any policy, are proved safe for ranks that
// share them; graphs that differ by rank where they must not, and loops that ranks may decide
// differently, are refused in words that say where.
#include "ops/schema/eddy/rank_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <set>

#include "graph/base/random.h"
#include "graph/proof/rank_proof.h"
#include "graph/ranks/skeleton.h"
#include "graph/schedule/plan_graph.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;
using Build = std::function<void(GraphBuilder&, Value)>;

constexpr uint64_t kSeeds = 150;
constexpr AssignPolicy kPolicies[] = {AssignPolicy::kRank, AssignPolicy::kMatching,
                                      AssignPolicy::kSerial};

ValueType line() { return TensorType(ElementType::kFloat, Dims{1}); }

Value talk(GraphBuilder& b, const char* op, std::vector<Value> inputs, Attributes attributes = {},
           const char* name = "") {
  return b.op(op, inputs, std::move(attributes), {.name = name, .domain = "eddy"});
}

Attributes on(int64_t channel) { return {{"channel", channel}}; }

class RankRulesTest : public testing::Test {
 protected:
  RankRulesTest() { EXPECT_TRUE(add_standard_schemas(ops_).is_ok()); }

  // What a rank with the graph of `build` and one float input `x` issues.
  Result<RankSkeleton> skeleton(const Build& build, const RankWorld& world, bool ties = true) {
    GraphBuilder b(ops_);
    build(b, b.input("x", line()));
    EDDY_ASSIGN_OR_RETURN(Graph graph, b.finish());
    EDDY_RETURN_IF_ERROR(check_communication(graph, world));
    const RankRules rules = standard_rank_rules(world);
    if (ties) {
      EDDY_ASSIGN_OR_RETURN(graph,
                            tie_channels(std::move(graph), ops_, rules, standard_tie_rules(world)));
    }
    EDDY_ASSIGN_OR_RETURN(const Decisions decisions, find_decisions(graph, rules));
    Plan plan = plan_graph(graph, options_);
    EDDY_RETURN_IF_ERROR(prove_plan(graph, plan));
    return extract_skeleton(graph, plan.program, rules, decisions);
  }

  // Empty: proved safe.
  std::string verdict(const std::vector<Build>& builds, bool ties = true) {
    std::vector<RankSkeleton> skeletons;
    for (uint32_t rank = 0; rank < builds.size(); ++rank) {
      world_.rank = rank;
      world_.num_ranks = static_cast<uint32_t>(builds.size());
      Result<RankSkeleton> made = skeleton(builds[rank], world_, ties);
      if (!made.is_ok()) return made.status().to_string();
      skeletons.push_back(std::move(*made));
    }
    num_posts_ = skeletons[0].posts.size();
    num_controls_ = skeletons[0].controls.size();
    const RankProof proof = prove_ranks(skeletons);
    return proof.is_safe() ? "" : proof.violations[0];
  }
  std::string by_every_policy(const Build& build, uint32_t num_ranks) {
    for (const AssignPolicy policy : kPolicies) {
      for (const uint32_t max_streams : {0u, 2u}) {
        options_.policy = policy;
        options_.max_streams = max_streams;
        const std::string text = verdict(std::vector<Build>(num_ranks, build));
        if (!text.empty()) return text;
      }
    }
    return "";
  }

  OpTable ops_;
  RankWorld world_;
  PlanOptions options_ = {.is_auto = false};
  size_t num_posts_ = 0, num_controls_ = 0;
};

// Sums on two channels, in lines that nothing but ties orders.
void two_channels(GraphBuilder& b, Value x) {
  for (const char* op : {"Neg", "Abs", "Exp", "Sin", "Tanh", "Cos"}) {
    const bool is_first = *op < 'D';
    b.output(op, b.op("Sqrt", {talk(b, "AllReduce", {b.op(op, {x})}, on(is_first))}));
  }
}

TEST_F(RankRulesTest, LinesThatNothingElseOrdersAreSafeOnceTied) {
  EXPECT_EQ(by_every_policy(two_channels, 3), "");
  EXPECT_EQ(num_posts_, 6u);
  options_ = {.is_auto = false};
  EXPECT_NE(verdict({two_channels, two_channels}, false), "");
}

// Halves until no rank has more than 1: the predicate is a result of communication, or is not.
Build halving(bool agrees) {
  return [agrees](GraphBuilder& b, Value x) {
    const auto made = b.while_loop(
        {.name = "halve", .initial = {x}},
        [&](Value, ValueSpan carried) {
          Value more = b.op("Greater", {carried[0], b.scalar(1.0f)}, {}, {.name = "more"});
          if (agrees) more = talk(b, "AllReduce", {more}, {{"reduction", std::string("or")}});
          return WhileTest{more, {carried[0]}};
        },
        [&](Value, ValueSpan forwarded) -> std::vector<Value> {
          const Value sum = talk(b, "AllReduce", {forwarded[0]}, {}, "sum");
          const Value mean = talk(b, "AllReduce", {b.op("Neg", {forwarded[0]})}, {}, "other");
          return {b.op("Add", {b.op("Sqrt", {sum}), mean})};
        });
    b.output("y", made[0]);
    b.output("z", talk(b, "AllReduce", {x}, {}, "last"));
  };
}

TEST_F(RankRulesTest, ALoopWhosePredicateIsAnAllReduceIsSafe) {
  EXPECT_EQ(by_every_policy(halving(true), 3), "");
  EXPECT_EQ(num_posts_, 4u);
  EXPECT_EQ(num_controls_, 1u);
}

TEST_F(RankRulesTest, AVaryingPredicateIsRefusedUnlessRanksAgree) {
  EXPECT_THAT(verdict({halving(false), halving(false)}),
              HasSubstr("loop halve holds halve/sum over ranks 0, 1, which may decide differently: "
                        "x may differ -> input 1 -> halve/more; set its agree to all, any or "
                        "root"));
  world_.agreement["halve"] = {.decision = RankSkeleton::Decision::kAgreeAny};
  EXPECT_EQ(verdict({halving(false), halving(false)}), "");
}

Build marked(const std::string& how, const Ints& group = {}) {
  return [=](GraphBuilder& b, Value x) {
    const auto made = b.while_loop(
        {.name = "halve", .initial = {x}},
        [&](Value, ValueSpan carried) {
          const Value more = b.op("Greater", {carried[0], b.scalar(1.0f)});
          return WhileTest{talk(b, "Agree", {more}, {{"how", how}, {"group", group}}),
                           {carried[0]}};
        },
        [&](Value, ValueSpan forwarded) -> std::vector<Value> {
          return {b.op("Sqrt", {talk(b, "AllReduce", {forwarded[0]}, {}, "sum")})};
        });
    b.output("y", made[0]);
  };
}

TEST_F(RankRulesTest, AMarkOnTheDecisionSaysHowRanksAgree) {
  for (const char* const how : {"all", "any", "root"}) {
    EXPECT_EQ(verdict({marked(how), marked(how)}), "") << how;
  }
  EXPECT_NE(verdict({marked("all"), marked("any")}), "");
  EXPECT_THAT(verdict({marked("all", {0, 1}), marked("all", {0, 1}), marked("all", {0, 1})}),
              HasSubstr("but only ranks 0, 1 agree on its decision"));
  EXPECT_THAT(verdict({marked("all", {0, 7}), marked("all")}),
              HasSubstr("its group has rank 7, which is none of 2 ranks"));
  EXPECT_THAT(verdict({marked("some"), marked("some")}), HasSubstr("it must be all, any or root"));
}

TEST_F(RankRulesTest, AMarkBecomesCommunicationOnlyWhereRanksMightDiffer) {
  world_.num_ranks = 2;
  const auto ops_of = [&](const Build& build) {
    GraphBuilder b(ops_);
    build(b, b.input("x", line()));
    const Graph graph = agree_decisions(b.finish().value(), ops_, standard_rank_rules(world_),
                                        standard_agree_rules())
                            .value();
    std::multiset<std::string> names;
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
      const Node& node = graph.node(NodeId(n));
      if (node.kind == NodeKind::kExec) names.insert(node.op->name);
    }
    return names;
  };
  const std::multiset<std::string> alone = {"AllReduce", "Greater", "Sqrt"};
  std::multiset<std::string> agreed = alone;
  agreed.insert("AllReduce");
  EXPECT_EQ(ops_of(marked("all")), agreed);
  world_.replicated = {true};
  EXPECT_EQ(ops_of(marked("all")), alone) << "x is equal on all ranks";
}

// All values are float[1].
class RandomTalk {
 public:
  RandomTalk(uint64_t seed, GraphBuilder& b, Value x) : random_(seed), b_(b), values_{x} {}
  void run() {
    fill(0, 6 + random_.below(12));
    for (size_t i = 0; i < 3; ++i) b_.output("y" + std::to_string(i), b_.op("Neg", {pick()}));
  }

 private:
  Value pick() { return values_[random_.below(values_.size())]; }
  Value decision() {
    return talk(b_, "AllReduce", {b_.op("Less", {pick(), pick()})},
                {{"reduction", std::string("or")}, {"channel", int64_t(random_.below(2))}});
  }
  void fill(int depth, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t kind = random_.below(depth < 3 ? 10 : 8);
      const auto channel = static_cast<int64_t>(random_.below(3));
      if (kind < 3) values_.push_back(b_.op("Add", {pick(), pick()}));
      if (kind == 3) values_.push_back(talk(b_, "Broadcast", {pick()}, on(channel)));
      if (kind == 4) {
        const Attributes permuted = {{"group", Ints{2, 0, 1}}};
        values_.push_back(talk(b_, "AllReduce", {pick()}, permuted));
      }
      if (kind == 5) talk(b_, "Barrier", {}, on(channel));
      if (kind == 6 || kind == 7) values_.push_back(talk(b_, "AllReduce", {pick()}, on(channel)));
      if (kind == 8) loop(depth);
      if (kind == 9) branch(depth);
    }
  }
  void loop(int depth) {
    const std::vector<Value> outside = values_;
    const auto made = b_.while_loop(
        {.initial = {pick()}},
        [&](Value, ValueSpan carried) {
          values_ = outside;
          values_.push_back(carried[0]);
          fill(depth + 1, random_.below(3));
          return WhileTest{decision(), {carried[0], pick()}};
        },
        [&](Value, ValueSpan forwarded) -> std::vector<Value> {
          values_ = outside;
          values_.insert(values_.end(), forwarded.begin(), forwarded.end());
          fill(depth + 1, random_.below(5));
          return {pick()};
        });
    values_ = outside;
    values_.insert(values_.end(), made.begin(), made.end());
  }
  void branch(int depth) {
    const std::vector<Value> outside = values_;
    const auto body = [&]() -> std::vector<Value> {
      values_ = outside;
      fill(depth + 1, random_.below(5));
      return {b_.op("Abs", {pick()})};
    };
    const auto made = b_.if_else(decision(), body, body);
    values_ = outside;
    if (!made.empty()) values_.push_back(made[0]);
  }

  Random random_;
  GraphBuilder& b_;
  std::vector<Value> values_;
};

TEST_F(RankRulesTest, RandomGraphsAreSafeByEveryPolicy) {
  size_t num_posts = 0, num_controls = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Build build = [seed](GraphBuilder& b, Value x) { RandomTalk(seed, b, x).run(); };
    ASSERT_EQ(by_every_policy(build, 3), "") << "seed " << seed;
    num_posts += num_posts_;
    num_controls += num_controls_;
  }
  std::cout << kSeeds << " seeds, " << num_posts << " posts, " << num_controls
            << " loops and cases\n";
  EXPECT_GT(num_posts, 500u);
  EXPECT_GT(num_controls, 100u);
}

// x goes through operators one behind the other, by what `ops` says: a name, op and attributes.
struct Talk {
  const char* name;
  const char* op;
  Attributes attributes = {};
};
Build talks(std::vector<Talk> ops) {
  return [ops](GraphBuilder& b, Value x) {
    Value last = x;
    for (const Talk& each : ops) {
      std::vector<Value> inputs = {each.op == std::string("Recv") ? last : x};
      if (each.op != std::string("Recv")) inputs.push_back(last);
      last = talk(b, each.op, inputs, each.attributes, each.name);
    }
    b.output("y", last);
  };
}

TEST_F(RankRulesTest, GraphsThatDifferByRankAreRefusedInWords) {
  world_.is_one_graph = false;
  const Talk sum = {"a", "AllReduce"}, copy = {"b", "Broadcast"};
  EXPECT_EQ(verdict({talks({sum, copy}), talks({copy, sum})}),
            "rank 0 has a (AllReduce sum float[1]) where rank 1 has b (Broadcast float[1], root "
            "0), operation 1 on channel 0 of ranks 0, 1");
  const Talk first = {"a", "AllReduce", on(1)}, second = {"b", "AllReduce", on(2)};
  EXPECT_EQ(verdict({talks({first, second}), talks({second, first})}),
            "rank 0 waits in a for rank 1, which waits in b for rank 0");
  const Attributes from_1 = {{"root", int64_t{1}}, {"type", line()}};
  EXPECT_EQ(verdict({talks({{"r", "Recv", from_1}}), talks({})}),
            "rank 1 has nothing where rank 0 has r (message float[1]), on channel 0 of ranks 0, 1 "
            "from 1 to 0");
  const Talk send = {"s", "Send", {{"root", int64_t{0}}}};
  EXPECT_EQ(verdict({talks({{"r", "Recv", from_1}}), talks({send})}), "");
  const Talk ordered = {"a", "AllGather", {{"group", Ints{1, 0}}}};
  EXPECT_EQ(verdict({talks({{"a", "AllGather", {{"group", Ints{0, 1}}}}}), talks({ordered})}),
            "rank 0 has a (AllGather float[1]) where rank 1 has a (AllGather in order 1, 0 "
            "float[1]), operation 1 on channel 0 of ranks 0, 1");
}

// On one stream an operation may wait for the one in front, say for the memory that it had.
TEST_F(RankRulesTest, OperationsOfOneStreamMayWaitForEachOther) {
  const auto sums = [](int64_t first, int64_t second) -> Build {
    return [=](GraphBuilder& b, Value x) {
      b.output("y", talk(b, "AllReduce", {x}, on(first), first == 1 ? "a" : "b"));
      b.output("z", talk(b, "AllReduce", {x}, on(second), second == 1 ? "a" : "b"));
    };
  };
  world_.is_one_graph = false;
  options_.policy = AssignPolicy::kSerial;
  EXPECT_EQ(verdict({sums(1, 2), sums(1, 2)}), "");
  EXPECT_EQ(verdict({sums(1, 2), sums(2, 1)}),
            "rank 0 waits in a for rank 1, which waits in b for rank 0");
}

TEST_F(RankRulesTest, RanksThatThereAreNotAreRefused) {
  const auto refused = [&](Talk talk, const char* message) {
    EXPECT_THAT(verdict({talks({talk}), talks({talk})}), HasSubstr(message));
  };
  refused({"a", "AllReduce", {{"group", Ints{0, 2}}}}, "a: its group has rank 2, which is none of");
  refused({"a", "AllReduce", {{"group", Ints{1}}}}, "a: rank 0 is not in its group 1");
  refused({"a", "AllReduce", {{"size", int64_t{3}}}}, "a: its size is 3, but there are 2 ranks");
  refused({"a", "Broadcast", {{"root", int64_t{2}}}}, "a: its root is rank 2, which is none of 2");
  refused({"a", "Send", {{"root", int64_t{0}}}}, "a: rank 0 is its own other side");
}

}  // namespace
}  // namespace eddy
