// Claim: exact gradients have the same bits whatever loops keep (save_policy.h): on random nests of
// loops and branches with a policy of its own for each loop, after 0, 1, 2, 3, 10 and 1000 trips,
// with shapes that change, and where a value is read only by what is made again. What cannot be
// made again is kept. A policy that is none, or a path that is no loop's, is refused in words.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "graph/ir/builder.h"
#include "tests/graph/differentiate/gradient_inputs.h"
#include "tests/ops/gradient/gradient_check.h"

namespace eddy::testing {
namespace {

SavePolicy policy(std::string_view text) {
  auto parsed = parse_save_policy(text);
  EXPECT_TRUE(parsed.is_ok()) << parsed.status().to_string();
  return parsed.is_ok() ? *parsed : SavePolicy{};
}

constexpr std::string_view kPolicies[] = {"all",     "carried", "every:1",
                                          "every:2", "every:7", "grow"};

std::string describe(const TestValue& value) {
  return value.kind == TestValue::Kind::kTensor ? to_string(value.tensor().dims()) : "no tensor";
}

void expect_same_bits(const NamedValues& found, const NamedValues& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, value] : expected) {
    const auto at = found.find(name);
    ASSERT_NE(at, found.end()) << name;
    ASSERT_EQ(describe(at->second), describe(value)) << name;
    const TensorView a = at->second.tensor().view(), b = value.tensor().view();
    ASSERT_EQ(a.size_bytes(), b.size_bytes()) << name;
    EXPECT_EQ(std::memcmp(a.data, b.data, b.size_bytes()), 0) << name;
  }
}

// All loops of a graph, by path.
std::vector<std::string> loops_of(const Graph& graph) {
  std::vector<std::string> paths;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (graph.node(NodeId(n)).kind == NodeKind::kWhile) paths.push_back(graph.path(NodeId(n)));
  }
  return paths;
}

Result<GradientGraph> gradient_of(const Graph& graph, SavePolicies save) {
  return differentiate(graph.copy(), gradient_ops(), gradient_rules(),
                       {.loss = "loss", .save = std::move(save), .exact = true});
}

// Every policy for all loops, and three mixtures.
std::vector<SavePolicies> some_policies(const Graph& graph, uint64_t seed) {
  std::vector<SavePolicies> all;
  for (const std::string_view text : kPolicies) {
    if (text != "all") all.push_back({.others = policy(text)});
  }
  Random random(seed);
  for (int i = 0; i < 3; ++i) {
    SavePolicies mixed;
    for (const std::string& path : loops_of(graph)) {
      mixed.loops[path] = policy(kPolicies[random.below(std::size(kPolicies))]);
    }
    all.push_back(std::move(mixed));
  }
  return all;
}

std::string describe(const SavePolicies& policies) {
  std::string text = to_string(policies.others);
  for (const auto& [path, each] : policies.loops) text += " " + path + "=" + to_string(each);
  return text;
}

TEST(PoliciesTest, RandomNestsHaveTheSameBits) {
  int compared = 0, made_again = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    GraphBuilder b(gradient_ops());
    check::add_gradient_program(b, seed, {.has_sequences = false});
    const auto graph = b.finish();
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    const NamedValues inputs = random_inputs(seed);
    const auto all = gradient_of(*graph, {});
    if (!all.is_ok()) continue;  // flat
    const auto expected = run_graph(all->graph, inputs);
    ASSERT_TRUE(expected.is_ok()) << expected.status().to_string();
    for (const SavePolicies& policies : some_policies(*graph, seed)) {
      SCOPED_TRACE(describe(policies));
      const auto gradient = gradient_of(*graph, policies);
      ASSERT_TRUE(gradient.is_ok()) << gradient.status().to_string();
      const auto run = run_graph(gradient->graph, inputs);
      ASSERT_TRUE(run.is_ok()) << run.status().to_string();
      expect_same_bits(run->outputs, expected->outputs);
      if (HasFatalFailure() || HasNonfatalFailure()) return;
      ++compared;
      for (const LoopSaving& loop : gradient->report.loops) made_again += loop.policy != "all";
    }
  }
  printf("seeds 1..60: %d gradients compared, %d loops made again\n", compared, made_again);
  EXPECT_GE(compared, 300);
  EXPECT_GE(made_again, 300);
}

// h <- tanh(h W) + x and z <- z w, both sides of the check at work, with rows and a branch.
Result<Graph> recurrent() {
  GraphBuilder b(gradient_ops());
  const Value h = b.input("h", tensor_type(ElementType::kDouble, {4}));
  const Value w = b.input("w", tensor_type(ElementType::kDouble, {4, 4}));
  const Value x = b.input("x", tensor_type(ElementType::kDouble, {4}));
  const Value trips = b.input("trips", tensor_type(ElementType::kInt64, {}));
  const auto made = b.while_loop(
      {.name = "recur", .initial = {h, x}, .num_scan_outputs = 1},
      [&](Value i, ValueSpan c) {
        const Value turned = b.op("Sin", {b.op("Add", {c[0], c[1]})});
        return WhileTest{b.op("Less", {i, trips}), {turned, c[1]}};
      },
      [&](Value i, ValueSpan f) {
        const Value next = b.op("Add", {b.op("Tanh", {b.op("MatMul", {f[0], w})}), x});
        const Value scale = b.op("Cast", {b.op("Mod", {i, b.scalar(int64_t{3})})},
                                 {{"to", static_cast<int64_t>(ElementType::kDouble)}});
        const Value row = b.op("Mul", {next, b.op("Mul", {next, scale})});
        const Value other = b.op("Mul", {f[1], b.scalar(0.99)});
        return std::vector<Value>{next, other, row};
      });
  const Value rows = b.op("ReduceSum", {made[2]}, {{"keepdims", int64_t{0}}});
  const Value last =
      b.op("ReduceSum", {b.op("Mul", {made[0], made[1]})}, {{"keepdims", int64_t{0}}});
  b.output("loss", b.op("Add", {rows, last}));
  return b.finish();
}

NamedValues recurrent_inputs(int64_t trips) {
  Random random(5);
  NamedValues inputs = {{"trips", TestTensor::scalar(trips)}};
  inputs["h"] = TestTensor::random(ElementType::kDouble, {4}, random);
  inputs["w"] = TestTensor::random(ElementType::kDouble, {4, 4}, random, -0.5, 0.5);
  inputs["x"] = TestTensor::random(ElementType::kDouble, {4}, random);
  return inputs;
}

TEST(PoliciesTest, NumbersOfTripsHaveTheSameBits) {
  const auto graph = recurrent();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  for (const int64_t trips : {0, 1, 2, 3, 10, 1000}) {
    SCOPED_TRACE(std::to_string(trips) + " trips");
    const NamedValues inputs = recurrent_inputs(trips);
    NamedValues expected;
    for (const std::string_view text : kPolicies) {
      SCOPED_TRACE(text);
      const auto gradient = gradient_of(*graph, {.others = policy(text)});
      ASSERT_TRUE(gradient.is_ok()) << gradient.status().to_string();
      const auto run = run_graph(gradient->graph, inputs, 2000);
      ASSERT_TRUE(run.is_ok()) << run.status().to_string();
      if (text != "all") expect_same_bits(run->outputs, expected);
      expected = run->outputs;
      if (text == "grow" && trips <= 10) {
        EXPECT_EQ(compare_with_differences(*gradient, inputs, "loss", "", 1e-6), "");
      }
    }
  }
}

// The carried tensor grows by a row each time, so that nothing has a fixed shape.
TEST(PoliciesTest, ShapesMayChange) {
  GraphBuilder b(gradient_ops());
  add_growing_loop(b, 5);
  const auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  Random random(3);
  const NamedValues inputs = {{"x", TestTensor::random(ElementType::kDouble, {5, 2}, random)},
                              {"s", TestTensor::random(ElementType::kDouble, {1, 2}, random)}};
  NamedValues expected;
  for (const std::string_view text : kPolicies) {
    SCOPED_TRACE(text);
    const auto gradient = gradient_of(*graph, {.others = policy(text)});
    ASSERT_TRUE(gradient.is_ok()) << gradient.status().to_string();
    const auto run = run_graph(gradient->graph, inputs);
    ASSERT_TRUE(run.is_ok()) << run.status().to_string();
    if (text != "all") expect_same_bits(run->outputs, expected);
    expected = run->outputs;
    EXPECT_EQ(compare_with_differences(*gradient, inputs, "loss", "", 1e-6), "");
  }
}

TEST(PoliciesTest, EachValueHasItsClassAndItsBytes) {
  const auto graph = recurrent();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  const auto classes = [&](std::string_view text) {
    const auto gradient = gradient_of(*graph, {.others = policy(text)});
    EXPECT_TRUE(gradient.is_ok());
    std::vector<std::string> lines;
    for (const KeptReport& kept : gradient->report.kept) {
      EXPECT_NE(kept.why, "");
      lines.push_back(std::string(to_string(kept.kind)) + " " + kept.how + " " +
                      (kept.bytes.has_value() ? std::to_string(*kept.bytes) : "?"));
    }
    const LoopSaving& loop = gradient->report.loops.at(0);
    EXPECT_EQ(loop.policy, text);
    lines.push_back(std::to_string(loop.bytes_per_iteration.value_or(-1)) + " " +
                    std::to_string(loop.state_bytes.value_or(-1)));
    return lines;
  };
  const auto count = [](const std::vector<std::string>& lines, std::string_view line) {
    return std::ranges::count(lines, line);
  };
  const auto all = classes("all");
  // Of `before` the sum whose sine is taken; of `after` what the product, the hyperbolic tangent
  // and the row read, and the scale, of which only the remainder is kept.
  EXPECT_EQ(count(all, "row value 32"), 3);
  EXPECT_EQ(count(all, "row value 8"), 1);
  EXPECT_EQ(count(all, "derived value 0"), 2);
  EXPECT_EQ(all.back(), "104 0");
  const auto carried = classes("carried");
  EXPECT_EQ(count(carried, "state value 32"), 2);
  EXPECT_EQ(carried.back(), "0 64");
  const auto grow = classes("grow");
  EXPECT_EQ(count(grow, "state value 32"), 2);
  EXPECT_EQ(grow.back(), "104 64");
}

// Regions by their paths, values by names that the graph has; constants may have none.
void expect_names_of(const Graph& graph, const GradientReport& report) {
  std::set<std::string> regions, loops, names = {"iteration", "constant"};
  for (uint32_t r = 1; r < graph.num_regions(); ++r) {
    const Region& region = graph.region(RegionId(r));
    regions.insert(graph.path(region.owner) + "/" + region.name);
    loops.insert(graph.path(region.owner));
  }
  for (uint32_t v = 0; v < graph.num_values(); ++v) names.insert(graph.value(ValueId(v)).name);
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) names.insert(graph.node(NodeId(n)).name);
  for (const KeptReport& kept : report.kept) {
    EXPECT_TRUE(regions.contains(kept.path)) << kept.path;
    const bool is_numbered =
        kept.value.starts_with("carried value ") || kept.value.starts_with("forwarded value ");
    EXPECT_TRUE(is_numbered || names.contains(kept.value)) << kept.path << ": " << kept.value;
    EXPECT_NE(kept.value, "") << kept.path;
    EXPECT_NE(kept.type, "") << kept.path;
  }
  for (const LoopSaving& loop : report.loops) EXPECT_TRUE(loops.contains(loop.path)) << loop.path;
}

TEST(PoliciesTest, ReportsNameWhatTheGraphHas) {
  size_t num_lines = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    for (const char* text : {"all", "carried", "every:3", "grow"}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + text);
      GraphBuilder b(gradient_ops());
      check::add_gradient_program(b, seed, {.has_sequences = false});
      const auto graph = b.finish();
      ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
      const auto gradient = gradient_of(*graph, {.others = policy(text)});
      if (!gradient.is_ok()) continue;  // flat
      expect_names_of(*graph, gradient->report);
      num_lines += gradient->report.kept.size();
    }
  }
  printf("seeds 1..60: %zu lines\n", num_lines);
  EXPECT_GE(num_lines, 500u);
}

// States are of tensors: what has sequences inside keeps all, whatever is asked, and says so.
TEST(PoliciesTest, LoopsWithSequencesKeepAll) {
  int num_kept = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    for (const char* text : {"carried", "every:3", "grow"}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + text);
      GraphBuilder b(gradient_ops());
      check::add_gradient_program(b, seed, {});
      const auto graph = b.finish();
      ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
      const auto gradient = gradient_of(*graph, {.others = policy(text)});
      ASSERT_TRUE(gradient.is_ok() ||
                  gradient.status().message().find("depends on no input") != std::string::npos)
          << gradient.status().to_string();
      if (!gradient.is_ok()) continue;  // flat
      for (const LoopSaving& loop : gradient->report.loops) {
        if (loop.why.find("makes or reads a sequence") == std::string::npos) continue;
        EXPECT_EQ(loop.policy, "all") << loop.path;
        ++num_kept;
      }
    }
  }
  printf("seeds 1..40: %d loops keep all\n", num_kept);
  EXPECT_GE(num_kept, 10);
}

TEST(PoliciesTest, WhatDrawsNumbersIsKept) {
  GraphBuilder b(gradient_ops());
  const Value x = b.input("x", tensor_type(ElementType::kDouble, {3}));
  const auto made = b.while_loop(
      {.name = "noise", .initial = {x}, .trip_limit = b.scalar(int64_t{4})},
      [&](Value, ValueSpan c) {
        return WhileTest{b.scalar(true), {c[0]}};
      },
      [&](Value, ValueSpan f) {
        const Value noise = b.op("RandomNormalLike", {f[0]}, {{"seed", 3.0f}});
        return std::vector<Value>{b.op("Tanh", {b.op("Mul", {f[0], noise})})};
      });
  b.output("loss", b.op("ReduceSum", {made[0]}, {{"keepdims", int64_t{0}}}));
  const auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  const auto gradient = gradient_of(*graph, {.others = policy("carried")});
  ASSERT_TRUE(gradient.is_ok()) << gradient.status().to_string();
  const LoopSaving& loop = gradient->report.loops.at(0);
  EXPECT_EQ(loop.policy, "all");
  EXPECT_NE(loop.why.find("RandomNormalLike"), std::string::npos) << loop.why;
}

// K is an input that is there or added: every value of it, also such as are no lengths.
TEST(PoliciesTest, TheRunMayChooseTheLengthOfSegments) {
  const auto graph = recurrent();
  ASSERT_TRUE(graph.is_ok());
  const auto all = gradient_of(*graph, {});
  const auto chosen = gradient_of(*graph, {.others = policy("every:length")});
  ASSERT_TRUE(all.is_ok() && chosen.is_ok()) << chosen.status().to_string();
  EXPECT_EQ(chosen->report.loops.at(0).policy, "every:length");
  for (const int64_t trips : {int64_t{0}, int64_t{1}, int64_t{5}, int64_t{10}}) {
    NamedValues inputs = recurrent_inputs(trips);
    const auto expected = run_graph(all->graph, inputs);
    ASSERT_TRUE(expected.is_ok()) << expected.status().to_string();
    for (const int64_t length : {int64_t{1}, int64_t{3}, int64_t{100}, int64_t{0}, int64_t{-7}}) {
      SCOPED_TRACE(std::to_string(length) + " of " + std::to_string(trips));
      inputs["length"] = TestTensor::scalar(length);
      const auto run = run_graph(chosen->graph, inputs);
      ASSERT_TRUE(run.is_ok()) << run.status().to_string();
      expect_same_bits(run->outputs, expected->outputs);
    }
  }
  const auto wrong = gradient_of(*graph, {.others = policy("every:h")});
  ASSERT_FALSE(wrong.is_ok());
  EXPECT_EQ(wrong.status().message().substr(0, 52),
            "to save every:h, input 'h' must be int64[], not doub");
  const auto there = gradient_of(*graph, {.loops = {{"recur", policy("every:trips")}}});
  EXPECT_TRUE(there.is_ok()) << there.status().to_string();
}

TEST(PoliciesTest, TextsThatAreNoPolicyAreRefused) {
  const auto refused = [](std::string_view text, const std::string& words) {
    SavePolicies policies;
    const Status status = add_save_policy(text, policies);
    EXPECT_FALSE(status.is_ok()) << text;
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  };
  for (const char* text : {"", "none", "ALL", "every", "grow:2", "loop=", "loop=some"}) {
    refused(text, "a loop saves all, carried, every:K or grow, not '");
  }
  for (const char* text :
       {"every:", "every:0", "every:-1", "every:2x", "every:1.5", "every:99999999999999999999"}) {
    refused(text, "every:K takes a whole K of at least 1, or an input's name, not '");
  }
  refused("=all", "names no loop before its '='");
  SavePolicies policies;
  EXPECT_TRUE(add_save_policy("a/b=every:3", policies).is_ok());
  EXPECT_TRUE(add_save_policy("grow", policies).is_ok());
  EXPECT_EQ(to_string(policies.of("a/b")), "every:3");
  EXPECT_EQ(to_string(policies.of("a")), "grow");
  EXPECT_FALSE(add_save_policy("a/b=all", policies).is_ok());

  const auto graph = recurrent();
  ASSERT_TRUE(graph.is_ok());
  const auto unknown = gradient_of(*graph, {.loops = {{"recurr", policy("grow")}}});
  ASSERT_FALSE(unknown.is_ok());
  EXPECT_EQ(unknown.status().message(),
            "there is no loop 'recurr' to save grow of; there are 'recur'");
}

}  // namespace
}  // namespace eddy::testing
