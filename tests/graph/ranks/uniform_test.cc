// Claim: values that are said to be uniform are equal on ranks that run with different inputs; and
// a decision that may differ is refused with its whole reason.
#include "graph/ranks/uniform.h"

#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "graph/base/random.h"
#include "graph/ir/control_view.h"
#include "tests/graph/schedule/nested_graphs.h"

namespace eddy {
namespace {

using Decision = RankSkeleton::Decision;
constexpr uint64_t kSeeds = 2000;

uint64_t mix(uint64_t a, uint64_t b) { return Random(a * 0x9e3779b97f4a7c15u + b).next(); }

// A node's role, by seed: most compute, some communicate, some vary.
RankRules random_rules(uint64_t seed) {
  RankRules rules;
  const auto draw = [seed](const Node& node) {
    uint64_t hash = seed;
    for (char c : node.name) hash = mix(hash, static_cast<unsigned char>(c));
    return mix(hash, node.region.index());
  };
  rules.communication = [draw](const Node& node) -> std::optional<Communication> {
    if (draw(node) % 5 != 0) return std::nullopt;
    Communication communication{.kind = "AllReduce", .channel = {{0, 1}, 0}};
    communication.makes_equal = draw(node) % 3 != 0;
    return communication;
  };
  rules.is_varying = [draw](const Node& node) { return draw(node) % 11 == 1; };
  rules.is_replicated = [seed](size_t i) { return mix(seed, i) % 3 != 0; };
  rules.agreement = [draw](const Node& node) {
    return draw(node) % 3 == 0 ? Agreement{Decision::kAgreeAll, {{0, 1}, 1}} : Agreement{};
  };
  return rules;
}

// Runs a graph with numbers for values: each node makes a number of those that it reads.
class Interpreter {
 public:
  Interpreter(const Graph& graph, const RankRules& rules, uint64_t rank)
      : graph_(graph), rules_(rules), rank_(rank) {}

  // By value and by the iterations around it.
  std::map<std::pair<uint32_t, std::string>, uint64_t> run() {
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      set(graph_.inputs()[i], rules_.is_replicated(i) ? 7 + i : mix(rank_, i));
    }
    region(Graph::kRoot);
    return trace_;
  }

 private:
  uint64_t get(ValueId value) {
    if (value.is_none()) return 0;
    const ValueInfo& info = graph_.value(value);
    return info.origin == ValueOrigin::kConstant ? info.constant.index() : now_[value.index()];
  }
  void set(ValueId value, uint64_t number) {
    if (value.is_none()) return;
    now_[value.index()] = number;
    trace_[{value.index(), context_}] = number;
  }
  void region(RegionId id) {
    for (NodeId n : graph_.region(id).nodes) {
      const Node& node = graph_.node(n);
      if (node.kind == NodeKind::kExec) exec(n, node);
      if (node.kind == NodeKind::kWhile) loop(LoopView(graph_, node));
      if (node.kind == NodeKind::kCaseOf) branch(CaseView(graph_, node));
    }
  }
  void exec(NodeId n, const Node& node) {
    uint64_t number = n.index();
    const auto communication = rules_.communication(node);
    const bool is_equal = communication.has_value() && communication->makes_equal;
    for (ValueId input : node.inputs) {
      if (!is_equal) number = mix(number, get(input));
    }
    for (char c : context_) number = is_equal ? mix(number, static_cast<uint64_t>(c)) : number;
    if (!is_equal && (communication.has_value() || rules_.is_varying(node))) {
      number = mix(number, rank_);
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) set(node.outputs[i], mix(number, i));
  }
  uint64_t decide(const Node& node, uint64_t own) {
    if (rules_.agreement(node).decision == Decision::kVarying) return own;
    uint64_t number = 5;
    for (char c : node.name + context_) number = mix(number, static_cast<uint64_t>(c));
    return number;
  }
  std::vector<uint64_t> all(std::span<const ValueId> values) {
    std::vector<uint64_t> numbers;
    for (ValueId value : values) numbers.push_back(get(value));
    return numbers;
  }
  void assign(std::span<const ValueId> to, const std::vector<uint64_t>& numbers) {
    for (size_t i = 0; i < to.size() && i < numbers.size(); ++i) set(to[i], numbers[i]);
  }
  void loop(const LoopView& view) {
    const std::string outer = context_;
    const uint64_t limit = get(view.trip_limit()) % 3 + 1;
    std::vector<uint64_t> carried = all(view.initial()), forwarded, stacked(view.rows().size());
    for (uint64_t turn = 0;; ++turn) {
      context_ = outer + "." + std::to_string(turn);
      set(view.iteration(), turn);
      assign(view.carried(), carried);
      region(view.before_id());
      forwarded = all(view.forwarded());
      if (decide(view.node(), get(view.predicate()) + (turn < limit)) % 3 == 0 || turn > 3) break;
      set(view.after_iteration(), turn);
      assign(view.received(), forwarded);
      region(view.after_id());
      carried = all(view.next());
      for (size_t i = 0; i < stacked.size(); ++i) stacked[i] = mix(stacked[i], get(view.rows()[i]));
    }
    context_ = outer;
    assign(view.outputs(), forwarded);
    assign(view.stacked(), stacked);
  }
  void branch(const CaseView& view) {
    const size_t taken = decide(view.node(), get(view.selector())) % (view.num_branches() + 1);
    if (taken < view.num_branches()) {
      region(view.node().regions[taken]);
      assign(view.outputs(), all(view.results(taken)));
    } else if (view.has_pass_through()) {
      assign(view.outputs(), all(view.pass_through()));
    } else {
      assign(view.outputs(), std::vector<uint64_t>(view.outputs().size(), 1));
    }
  }

  const Graph& graph_;
  const RankRules& rules_;
  const uint64_t rank_;
  std::map<uint32_t, uint64_t> now_;
  std::string context_;
  std::map<std::pair<uint32_t, std::string>, uint64_t> trace_;
};

TEST(UniformTest, UniformValuesAreEqualOnRanksThatDiffer) {
  size_t num_uniform = 0, num_varying = 0, num_differ = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Graph graph = nested_graph(seed);
    const RankRules rules = random_rules(seed);
    const Uniformity uniformity(graph, rules, {0, 1});
    const auto one = Interpreter(graph, rules, 1).run();
    const auto two = Interpreter(graph, rules, 2).run();
    for (const auto& [key, number] : one) {
      const auto it = two.find(key);
      if (it == two.end()) continue;
      const bool is_uniform = uniformity.is_uniform(ValueId(key.first));
      if (is_uniform) {
        ASSERT_EQ(number, it->second) << "seed " << seed << ", value " << key.first;
      }
      num_uniform += is_uniform;
      num_varying += !is_uniform;
      num_differ += number != it->second;
    }
  }
  std::cout << num_uniform << " uniform; " << num_varying << " varying, of them " << num_differ
            << " differ\n";
  EXPECT_GT(num_uniform, 5000u);
  EXPECT_GT(num_differ * 2, num_varying);
}

// x -> loop { Test(step) ; sum = Step(sum, x) }.
struct Decode {
  explicit Decode(const char* carried_by) {
    GraphBuilder b(nested_ops(), "decode");
    b.set_opset("nested", 1);
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {8}));
    const auto op = [&](const char* kind, std::vector<Value> inputs, std::string name) {
      return b.op(kind, inputs, {}, {.name = std::move(name), .domain = "nested"});
    };
    const std::vector<Value> outputs = b.while_loop(
        {.name = "decode", .initial = {x}},
        [&](Value, ValueSpan carried) {
          return WhileTest{op("Test", {carried[0]}, "less"), {carried[0]}};
        },
        [&](Value, ValueSpan carried) -> std::vector<Value> {
          const Value sum = op("Step", {carried[0], carried[0]}, "sum");
          return {op("Keep", {sum}, carried_by)};
        });
    b.output("y", outputs[0]);
    Result<Graph> made = b.finish();
    EDDY_CHECK(made.is_ok()) << made.status().to_string();
    graph.emplace(std::move(*made));
    rules.communication = [](const Node& node) -> std::optional<Communication> {
      if (node.name != "sum") return std::nullopt;
      return Communication{.kind = "AllReduce", .channel = {{0, 1}, 0}, .makes_equal = true};
    };
    rules.is_varying = [](const Node& node) { return node.name == "rank"; };
    rules.is_replicated = [](size_t) { return true; };
    rules.agreement = [](const Node&) { return Agreement{}; };
  }
  // By name: the way from the source to the predicate, or "ok".
  std::string decide() {
    Result<Decisions> decisions = find_decisions(*graph, rules);
    return decisions.is_ok() ? "ok" : decisions.status().message();
  }
  std::optional<Graph> graph;
  RankRules rules;
};

TEST(UniformTest, AUniformDecisionNeedsNothing) {
  Decode decode("keep");
  EXPECT_EQ(decode.decide(), "ok");
}

TEST(UniformTest, AVaryingDecisionIsRefusedWithItsReason) {
  Decode decode("rank");
  EXPECT_EQ(decode.decide(),
            "loop decode holds decode/sum over ranks 0, 1, which may decide differently: "
            "decode/rank may differ -> input 1 -> decode/less; set its agree to all, any or root");
}

TEST(UniformTest, AnAgreementOverAllRanksInsideSettlesIt) {
  Decode decode("rank");
  decode.rules.agreement = [](const Node&) { return Agreement{Decision::kAgreeAny, {{0, 1}, 9}}; };
  EXPECT_EQ(decode.decide(), "ok");
  decode.rules.agreement = [](const Node&) { return Agreement{Decision::kAgreeAny, {{0}, 9}}; };
  EXPECT_EQ(decode.decide(),
            "loop decode holds decode/sum over ranks 0, 1, but only ranks 0 agree on its decision; "
            "name them all in its group");
}

TEST(UniformTest, LoopsWithoutCommunicationMayDiffer) {
  Decode decode("rank");
  decode.rules.communication = [](const Node&) -> std::optional<Communication> { return {}; };
  EXPECT_EQ(decode.decide(), "ok");
}

TEST(UniformTest, GraphsThatDifferHaveNothingInCommonButCommunication) {
  Decode decode("keep");
  decode.rules.is_one_graph = false;
  EXPECT_NE(decode.decide(), "ok");
}

TEST(UniformTest, AnUnknownAgreementIsRefused) {
  EXPECT_EQ(*parse_agree("any"), Decision::kAgreeAny);
  EXPECT_EQ(parse_agree("most").status().message(), "agree is 'most'; it must be all, any or root");
}

}  // namespace
}  // namespace eddy
