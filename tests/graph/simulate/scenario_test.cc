// Loops and branches cost what their scenarios cost, weighted: exactly where they are few, within
// the stated error where they are sampled; records are read run by run; and what is wrong is named.
#include "graph/simulate/scenario.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace eddy {
namespace {

ScenarioEntry task(const std::string& name, double time, uint32_t device = 0,
                   std::vector<uint32_t> deps = {}) {
  return {.name = name, .deps = std::move(deps), .exe_time = time, .device = device};
}

ScenarioEntry loop(const std::string& name, std::vector<ScenarioEntry> body,
                   std::vector<Decision::Likely> trips, double decision_time = 0) {
  ScenarioEntry entry{.kind = ScenarioEntry::Kind::kLoop, .name = name};
  entry.regions = {{}, {std::move(body)}};
  entry.decision = {.distribution = std::move(trips), .time = decision_time, .device = 9};
  return entry;
}

ScenarioEntry case_of(const std::string& name, std::vector<ScenarioRegion> branches,
                      std::vector<Decision::Likely> likely) {
  ScenarioEntry entry{.kind = ScenarioEntry::Kind::kCase, .name = name};
  entry.regions = std::move(branches);
  entry.decision = {.distribution = std::move(likely), .device = 9};
  return entry;
}

ScenarioReport evaluated(const ScenarioRegion& root, const ScenarioOptions& options = {}) {
  auto report = evaluate_scenarios(root, options);
  EXPECT_TRUE(report.is_ok()) << report.status().message();
  return report.is_ok() ? *report : ScenarioReport();
}

std::string refusal(const ScenarioRegion& root) {
  const auto report = evaluate_scenarios(root);
  return report.is_ok() ? "accepted" : report.status().message();
}

TEST(Scenario, ALoopCostsItsTripsAndOneDecisionMore) {
  // n trips: n * 5 + (n + 1) * 2.
  const ScenarioRegion root{{loop("l", {task("body", 5)}, {{0, 0.25}, {2, 0.5}, {4, 0.25}}, 2)}};
  const ScenarioReport report = evaluated(root, {.quantiles = {0, 0.25, 0.26, 0.75, 0.76, 1}});
  EXPECT_TRUE(report.is_exact);
  EXPECT_EQ(report.num_scenarios, 3u);
  EXPECT_DOUBLE_EQ(report.expectation, 0.25 * 2 + 0.5 * 16 + 0.25 * 30);
  EXPECT_EQ(report.quantiles, (std::vector<double>{2, 2, 16, 16, 30, 30}));
  EXPECT_EQ(report.best, 2);
  EXPECT_EQ(report.worst, 30);
  EXPECT_EQ(report.standard_error, 0);
}

TEST(Scenario, TheExpectationIsNotTheRunAtTheMean) {
  // The loop runs beside a task of 10: max(10, trips * 5), with 2 trips on average.
  const ScenarioRegion root{
      {task("beside", 10, 1), loop("l", {task("body", 5)}, {{0, 0.5}, {4, 0.5}})}};
  EXPECT_DOUBLE_EQ(evaluated(root).expectation, 0.5 * 10 + 0.5 * 20);
}

TEST(Scenario, ACaseInALoopDrawsAnewInEachIteration) {
  // Two iterations of 1 or 3: 2, 4, 4 or 6.
  const ScenarioRegion root{
      {loop("l", {case_of("c", {{{task("a", 1)}}, {{task("b", 3)}}}, {{0, 0.75}, {1, 0.25}})},
            {{2, 1}})}};
  const ScenarioReport report = evaluated(root);
  EXPECT_EQ(report.num_scenarios, 4u);
  EXPECT_DOUBLE_EQ(report.expectation, 0.5625 * 2 + 2 * 0.1875 * 4 + 0.0625 * 6);
  EXPECT_EQ(report.quantiles, (std::vector<double>{2, 4, 6}));
}

TEST(Scenario, WhatDependsOnALoopOrCaseWaitsForItsEnd) {
  ScenarioRegion root{
      {task("first", 1), loop("l", {task("body", 5)}, {{2, 1}}, 1),
       case_of("c", {{{task("a", 2, 3), task("b", 4, 4)}}, {}}, {{0, 0.5}, {1, 0.5}}),
       task("last", 1)}};
  root.entries[1].deps = {0};
  root.entries[2].deps = {1};
  root.entries[3].deps = {2};
  const ScenarioReport report = evaluated(root);
  EXPECT_EQ(report.best, 1 + 3 + 10 + 1);
  EXPECT_EQ(report.worst, 1 + 3 + 10 + 4 + 1);
}

TEST(Scenario, TheBeforeRegionRunsOnceMoreThanTheAfterRegion) {
  ScenarioRegion root{{loop("l", {task("after", 1)}, {{3, 1}})}};
  root.entries[0].regions[0] = {{task("before", 10)}};
  EXPECT_EQ(evaluated(root).worst, 43);
}

ScenarioEntry follow(const std::string& name, std::vector<ScenarioRegion> branches,
                     std::vector<uint32_t> deps) {
  ScenarioEntry entry{.kind = ScenarioEntry::Kind::kFollow, .name = "after " + name};
  entry.deps = std::move(deps);
  entry.follows = name;
  entry.regions = std::move(branches);
  return entry;
}

// The case takes its branches 0 and 1, 1 and 0 in turn: the follow that of the last turn.
TEST(Scenario, AFollowRunsWhatItsCaseTookLast) {
  ScenarioEntry gate = case_of("c", {{{task("a", 1)}}, {{task("b", 2)}}}, {});
  gate.decision.trace = {0, 1, 1, 0};
  ScenarioEntry turns = loop("l", {gate}, {});
  turns.decision.trace = {2, 2, 0};
  const ScenarioRegion root{
      {turns, follow("c", {{{task("x", 10)}}, {{task("y", 100)}}}, {0}), task("z", 0, 0, {1})}};
  const ScenarioReport report = evaluated(root);
  EXPECT_EQ(report.num_scenarios, 3u);
  EXPECT_EQ(report.best, 0) << "without a turn nothing follows";
  EXPECT_DOUBLE_EQ(report.expectation, (3 + 100 + 3 + 10 + 0) / 3.0);
  EXPECT_EQ(report.worst, 103);
}

// The inner loop turns in the outer one's first turn only.
TEST(Scenario, AFollowMayStandBeforeTheCaseThatItWaitsFor) {
  const ScenarioRegion inside{{follow("c", {{{task("x", 10)}}, {{task("y", 100)}}}, {})}};
  ScenarioRegion root{{case_of("r", {inside}, {{0, 1}}),
                       case_of("c", {{{task("a", 1)}}, {{task("b", 2)}}}, {{1, 1}})}};
  EXPECT_NE(refusal(root), "") << "does not wait for it";
  root.entries[0].deps = {1};
  EXPECT_EQ(evaluated(root).worst, 2 + 100);
}

TEST(Scenario, AFollowKnowsOfNoEarlierRunOfTheLoopAroundItsCase) {
  ScenarioEntry inner = loop("l", {case_of("c", {{{task("a", 1)}}}, {{0, 1}})}, {});
  inner.decision.trace = {1, 0};
  ScenarioEntry outer = loop("o", {inner, follow("c", {{{task("x", 10)}}}, {0})}, {});
  outer.decision.trace = {2};
  EXPECT_EQ(evaluated({{outer}}).worst, 1 + 10);
  outer.regions[1].entries.pop_back();
  EXPECT_EQ(evaluated({{outer, follow("c", {{{task("x", 10)}}}, {0})}}).worst, 1);
}

TEST(Scenario, ARecordIsReadRunByRun) {
  // Runs: 2 trips with branches 0, 1; 1 trip with branch 1; then 3 trips, of which one is missing.
  ScenarioRegion root{{loop("l", {case_of("c", {{{task("a", 1)}}, {{task("b", 10)}}}, {})}, {})}};
  root.entries[0].decision.trace = {2, 1, 3};
  root.entries[0].regions[1].entries[0].decision.trace = {0, 1, 1, 0, 0};
  const ScenarioReport report = evaluated(root);
  EXPECT_TRUE(report.is_exact);
  EXPECT_EQ(report.num_scenarios, 2u);
  EXPECT_DOUBLE_EQ(report.expectation, (11 + 10) / 2.0);
  EXPECT_EQ(report.worst, 11);
}

// A loop of up to 6 trips around a case, beside a loop: 2^6-ish times 3 scenarios.
ScenarioRegion many(double b) {
  ScenarioRegion root{
      {loop("l", {case_of("c", {{{task("a", 1)}}, {{task("b", b)}}}, {{0, 0.6}, {1, 0.4}})},
            {{1, 0.3}, {3, 0.4}, {6, 0.3}}, 0.5),
       loop("m", {task("d", 2, 1)}, {{0, 0.2}, {5, 0.5}, {9, 0.3}})}};
  return root;
}

TEST(Scenario, SamplesAgreeWithAllScenariosWithinTheirError) {
  const ScenarioReport exact = evaluated(many(4));
  EXPECT_TRUE(exact.is_exact);
  EXPECT_EQ(exact.num_scenarios, (2u + 8u + 64u) * 3u);
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    const ScenarioReport sampled =
        evaluated(many(4), {.seed = seed, .max_exact = 10, .num_samples = 2000});
    EXPECT_FALSE(sampled.is_exact);
    EXPECT_GT(sampled.standard_error, 0);
    EXPECT_LT(std::abs(sampled.expectation - exact.expectation), 4 * sampled.standard_error)
        << "seed " << seed;
    EXPECT_EQ(sampled.worst, exact.worst) << "the extreme scenario is among those seen";
  }
}

TEST(Scenario, TheSameSeedGivesTheSameBitsAndVariantsSeeTheSameScenarios) {
  const ScenarioOptions options{.seed = 7, .max_exact = 0, .num_samples = 300};
  const ScenarioReport one = evaluated(many(4), options);
  EXPECT_EQ(one.expectation, evaluated(many(4), options).expectation);
  // The variant's case is faster by exactly 1 wherever it takes branch 1, never slower.
  const ScenarioReport two = evaluated(many(3), options);
  const ScenarioReport exact_one = evaluated(many(4));
  const ScenarioReport exact_two = evaluated(many(3));
  const double difference = one.expectation - two.expectation;
  EXPECT_GE(difference, 0);
  EXPECT_LT(std::abs(difference - (exact_one.expectation - exact_two.expectation)),
            one.standard_error)
      << "common random numbers";
}

TEST(Scenario, EverySeedDrawsScenariosOfItsOwn) {
  std::set<double> expectations;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    expectations.insert(
        evaluated(many(4), {.seed = seed, .max_exact = 0, .num_samples = 256}).expectation);
  }
  EXPECT_GE(expectations.size(), 15u) << "seeds that share their samples confirm nothing";
}

TEST(Scenario, SamplingSaysHowFarItIsAndStopsWhenAsked) {
  const ScenarioRegion root{{loop("l", {task("body", 5)}, {{1, 0.5}, {2, 0.5}})}};
  ScenarioOptions options{.max_exact = 1, .num_samples = 50};
  uint64_t last = 0;
  options.on_progress = [&last](uint64_t done, uint64_t count) {
    if (count == 50) last = done;
  };
  EXPECT_EQ(evaluated(root, options).num_scenarios, 50u);
  EXPECT_EQ(last, 49u);
  options.should_stop = [&last] { return last == 10; };
  last = 0;
  const auto stopped = evaluate_scenarios(root, options);
  ASSERT_FALSE(stopped.is_ok());
  EXPECT_EQ(stopped.status().code(), StatusCode::kCancelled);
  EXPECT_NE(stopped.status().message().find("interrupted after 11 of 50"), std::string::npos)
      << stopped.status().message();
}

TEST(Scenario, OneScenarioIsWrittenOutWithNames) {
  ScenarioRegion root{{loop("l", {task("body", 5)}, {{2, 1}}, 1)}};
  auto scenario = expand_scenario(root);
  ASSERT_TRUE(scenario.is_ok());
  EXPECT_EQ(scenario->names,
            (std::vector<std::string>{"l[0]?", "l[0]/body", "l[1]?", "l[1]/body", "l[2]?"}));
  EXPECT_EQ(scenario->is_decision, (std::vector<bool>{true, false, true, false, true}));
  EXPECT_EQ(scenario->graph.num_edges(), 4u);
}

TEST(Scenario, WhateverIsWrongIsNamed) {
  EXPECT_EQ(refusal({{follow("c", {{}}, {})}}),
            "'after c' follows 'c', which is no case before it");
  EXPECT_EQ(refusal({{case_of("c", {{}}, {{0, 1}}), follow("c", {{}, {}}, {0})}}),
            "'after c' has 2 regions, and 'c', which it follows, 1 branches");
  EXPECT_EQ(refusal({{loop("l", {}, {{1, 0.5}})}}), "'l': probabilities add up to 0.5, not 1");
  EXPECT_EQ(refusal({{loop("l", {}, {{-1, 1}})}}), "'l': -1 trips; trips are >= 0");
  EXPECT_EQ(refusal({{loop("l", {}, {})}}), "'l' needs a distribution or a trace, and not both");
  EXPECT_EQ(refusal({{loop("l", {}, {{1, -0.5}, {2, 1.5}})}}), "'l': -0.5 is no probability");
  EXPECT_EQ(refusal({{case_of("c", {{}}, {{1, 1}})}}), "'c': there is no branch 1; there are 1");
  EXPECT_EQ(refusal({{case_of("c", {}, {{0, 1}})}}), "'c': a case needs at least one branch");
  EXPECT_EQ(refusal({{loop("l", {loop("l", {}, {{1, 1}})}, {{1, 1}})}}),
            "two loops or cases are called 'l'");
  EXPECT_EQ(refusal({{loop("l", {task("t", NAN)}, {{1, 1}})}}),
            "'l'/'t': exe_time nan is no time; times are finite and >= 0");
  EXPECT_EQ(refusal({{task("a", 1, 0, {1}), task("b", 1, 0, {0})}}),
            "'a' depends on itself: it waits for 'b', which waits for 'a'");
  EXPECT_EQ(refusal({{task("a", 1, 0, {0})}}), "'a' depends on itself");
  // What only follows the cycle is not named, and a loop in it comes first.
  ScenarioEntry waiting = loop("l", {}, {{1, 1}});
  waiting.deps = {2};
  EXPECT_EQ(refusal({{task("z", 1, 0, {1}), task("a", 1, 0, {3}), task("b", 1, 0, {1}), waiting}}),
            "'l' depends on itself: it waits for 'b', which waits for 'a', which waits for 'l'");
  EXPECT_EQ(refusal({{task("a", 1, 0, {7})}}), "'a' depends on entry 7, its region has 1");
  EXPECT_EQ(refusal({{loop("l", {}, {{INT64_MAX, 1}})}}),
            "a scenario has more than 10000000 tasks, in 'l'; make its loops run less often");
  ScenarioRegion short_record{{loop("l", {loop("m", {}, {})}, {})}};
  short_record.entries[0].decision.trace = {2};
  short_record.entries[0].regions[1].entries[0].decision.trace = {1};
  EXPECT_EQ(refusal(short_record), "the trace of 'm' is too short for one run");
  ScenarioRegion long_record{{loop("l", {}, {})}};  // 100,000 runs beside 1,000 drawn branches
  long_record.entries[0].decision.trace.assign(100'000, 0);
  for (int i = 0; i < 1000; ++i) {
    long_record.entries.push_back(case_of("c" + std::to_string(i), {{}}, {{0, 1}}));
  }
  EXPECT_NE(refusal(long_record).find("with more decisions than can be followed"),
            std::string::npos);
  ScenarioRegion inner_record{{loop("l", {loop("m", {}, {})}, {{1, 1}})}};
  inner_record.entries[0].regions[1].entries[0].decision.trace = {1};
  EXPECT_EQ(refusal(inner_record), "'l'/'m' has a trace inside a loop or case that has none");
  EXPECT_EQ(evaluated({}).worst, 0);
}

// Twenty tasks wait for twenty, which wait for the decision, for which they are waited for.
TEST(Scenario, DependenciesAreCountedBeforeTheyAreWrittenOut) {
  std::vector<ScenarioEntry> many;
  for (uint32_t i = 0; i < 40; ++i) many.push_back(task("t", 1));
  for (uint32_t i = 20; i < 40; ++i) {
    for (uint32_t dep = 0; dep < 20; ++dep) many[i].deps.push_back(dep);
  }
  const auto with = [&](int64_t trips, uint64_t limit) {
    const auto report = evaluate_scenarios({{loop("l", many, {{trips, 1}})}}, {.max_tasks = limit});
    return report.is_ok() ? "" : report.status().message();
  };
  EXPECT_EQ(with(9, 990), "") << "9 * (20 + 400 + 20) = 4 * 990";
  EXPECT_EQ(
      with(9, 989),
      "a scenario has more than 3956 dependencies among its tasks, in 'l'; make its loops run "
      "less often or give operators fewer parts");
}

}  // namespace
}  // namespace eddy
