// Scenarios of the fluid model give what can be reckoned by hand, see what scenarios of tasks see
// (all of them and the same samples), read records run by run, and charge each decision the
// machine's cost.
#include "graph/simulate/fluid_scenarios.h"

#include <cmath>

#include <gtest/gtest.h>

#include "graph/base/random.h"
#include "tests/graph/simulate/fluid_sketch.h"

namespace eddy {
namespace {

using Op = Program::Op;
using Likely = Decision::Likely;

Decision likely(std::vector<Likely> distribution) {
  return {.distribution = std::move(distribution), .trace = {}};
}
Decision trace(std::vector<int64_t> values) {
  return {.distribution = {}, .trace = std::move(values)};
}

FluidMachine plain_machine() {
  FluidMachine machine;
  machine.num_units = 1;
  return machine;
}

ScenarioReport evaluate(const FluidSketch& sketch, const FluidMachine& machine = plain_machine(),
                        const ScenarioOptions& options = {}) {
  const PricedProgram priced = sketched(sketch);
  auto report = evaluate_fluid_scenarios(priced.program, priced.costs, machine, options);
  EXPECT_TRUE(report.is_ok()) << report.status().to_string();
  return report.is_ok() ? *report : ScenarioReport{};
}

// A loop around one kernel of 10 ns.
FluidSketch loop_of_ten(Decision decision) {
  return sketch_loop({.solo_ns = 10}, std::move(decision));
}

TEST(FluidScenarios, ADistributionOfTripsGivesExpectationQuantilesAndWorstCase) {
  ScenarioOptions options;
  options.quantiles = {0, 0.25, 0.26, 1};
  const ScenarioReport report = evaluate(
      loop_of_ten(likely({{1, 0.25}, {3, 0.5}, {10, 0.25}, {99, 0}})), plain_machine(), options);
  EXPECT_TRUE(report.is_exact);
  EXPECT_EQ(report.num_scenarios, 3u);
  EXPECT_DOUBLE_EQ(report.expectation, 0.25 * 10 + 0.5 * 30 + 0.25 * 100);
  EXPECT_EQ(report.quantiles, (std::vector<double>{10, 10, 30, 100}));
  EXPECT_EQ(report.best, 10);
  EXPECT_EQ(report.worst, 100);
}

TEST(FluidScenarios, TheRunAtTheMeanIsNotTheMeanOfTheRuns) {
  // Beside a kernel of 50 ns on a machine of two units, short loops cost nothing.
  FluidSketch program = loop_of_ten(likely({{0, 0.5}, {10, 0.5}}));
  program.kernels.push_back({.solo_ns = 50});
  program.blocks[0].num_streams = 2;
  program.blocks[0].steps.push_back({Op::kLaunch, 1, 1});
  FluidMachine machine = plain_machine();
  machine.num_units = 2;
  EXPECT_DOUBLE_EQ(evaluate(program, machine).expectation, 0.5 * 50 + 0.5 * 100);
  program.loops[0].costs.decision = trace({5});
  EXPECT_DOUBLE_EQ(evaluate(program, machine).expectation, 50);
}

TEST(FluidScenarios, ARecordIsReadRunByRunUntilItsLongestTraceEnds) {
  const ScenarioReport report = evaluate(loop_of_ten(trace({1, 2, 6})));
  EXPECT_TRUE(report.is_exact);
  EXPECT_EQ(report.num_scenarios, 3u);
  EXPECT_DOUBLE_EQ(report.expectation, 30);
  EXPECT_EQ(report.worst, 60);
  // An inner loop is read by every execution: two in the first run, one in the second.
  FluidSketch nested = loop_of_ten(trace({2, 1}));
  nested.blocks.resize(5);
  nested.blocks[2].steps = {{Op::kLoop, 0, 1}};
  nested.blocks[4].steps = {{Op::kLaunch, 0, 0}};
  nested.loops.push_back({{.name = "inner", .decision = trace({1, 2, 7})}, 3, 4});
  const ScenarioReport of_nested = evaluate(nested);
  EXPECT_EQ(of_nested.num_scenarios, 2u);
  EXPECT_EQ(of_nested.best, 30);
  EXPECT_EQ(of_nested.worst, 70);
}

TEST(FluidScenarios, EachPredicateCostsAReadbackAndALaunchWhereTheHostDrives) {
  FluidMachine machine = plain_machine();
  machine.host.launch_ns = 3;
  machine.host.decision_ns = 2;
  machine.readback_ns = 7;
  const FluidSketch program = loop_of_ten(likely({{1, 0.5}, {4, 0.5}}));
  const ScenarioReport driven = evaluate(program, machine);
  // n trips read back n + 1 predicates, and launch n kernels only then; the host requests later
  // predicates while the kernel before them runs.
  const auto cost = [](double n) { return 2 + 7 + n * (3 + 10 + 7); };
  EXPECT_DOUBLE_EQ(driven.best, cost(1));
  EXPECT_DOUBLE_EQ(driven.worst, cost(4));
  EXPECT_DOUBLE_EQ(driven.expectation, (cost(1) + cost(4)) / 2);
  EXPECT_EQ(evaluate(program).worst, 40) << "a device that drives itself reads nothing back";
}

// The same random nest of kernels, loops and cases, on one stream and as tasks of one device.
class Twins {
 public:
  explicit Twins(uint64_t seed) : random_(seed) {
    program.blocks.emplace_back();
    fill(0, root, 0);
  }

  FluidSketch program;
  ScenarioRegion root;

 private:
  void fill(uint32_t region, ScenarioRegion& twin, int depth) {
    const uint64_t count = 1 + random_.below(3);
    for (uint64_t i = 0; i < count; ++i) {
      ScenarioEntry entry{.name = "n" + std::to_string(number_++)};
      if (i > 0) entry.deps = {static_cast<uint32_t>(i - 1)};
      const uint64_t what = depth < 2 ? random_.below(3) : 0;
      if (what == 0) {
        entry.exe_time = static_cast<double>(1 + random_.below(9));
        program.kernels.push_back({.solo_ns = entry.exe_time});
        put(region, Op::kLaunch, program.kernels.size() - 1);
      } else if (what == 1) {
        add_loop(region, entry, depth);
      } else {
        add_case(region, entry, depth);
      }
      twin.entries.push_back(std::move(entry));
    }
  }

  void put(uint32_t region, Op op, size_t id) {
    program.blocks[region].steps.push_back({op, 0, static_cast<uint32_t>(id)});
  }

  uint32_t add_region() {
    program.blocks.emplace_back();
    return static_cast<uint32_t>(program.blocks.size() - 1);
  }

  void add_loop(uint32_t region, ScenarioEntry& entry, int depth) {
    entry.kind = ScenarioEntry::Kind::kLoop;
    entry.decision = likely({{static_cast<int64_t>(random_.below(2)), 0.3}, {2, 0.7}});
    entry.regions.resize(2);
    const uint32_t before = add_region();
    const uint32_t after = add_region();
    const size_t id = program.loops.size();
    program.loops.push_back({{.name = entry.name, .decision = entry.decision}, before, after});
    put(region, Op::kLoop, id);
    fill(before, entry.regions[0], 2);
    fill(after, entry.regions[1], depth + 1);
  }

  void add_case(uint32_t region, ScenarioEntry& entry, int depth) {
    entry.kind = ScenarioEntry::Kind::kCase;
    entry.decision = likely({{0, 0.6}, {1, 0.4}});
    entry.regions.resize(2);
    const std::vector<uint32_t> regions = {add_region(), add_region()};
    const size_t id = program.cases.size();
    program.cases.push_back({{.name = entry.name, .decision = entry.decision}, regions});
    put(region, Op::kCase, id);
    for (size_t r = 0; r < 2; ++r) fill(regions[r], entry.regions[r], depth + 1);
  }

  Random random_;
  uint32_t number_ = 0;
};

TEST(FluidScenarios, PlansAndTasksOfTheSameNamesSeeTheSameScenarios) {
  constexpr uint64_t kFirstSeed = 31;
  std::printf("seeds from %llu\n", static_cast<unsigned long long>(kFirstSeed));
  int num_exact = 0;
  int num_sampled = 0;
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Twins twins(seed);
    ScenarioOptions options;
    options.seed = seed;
    options.max_exact = 50;
    options.num_samples = 40;
    const auto tasks = evaluate_scenarios(twins.root, options);
    ASSERT_TRUE(tasks.is_ok()) << tasks.status().to_string();
    const ScenarioReport plan = evaluate(twins.program, plain_machine(), options);
    EXPECT_EQ(plan.is_exact, tasks->is_exact);
    EXPECT_EQ(plan.num_scenarios, tasks->num_scenarios);
    EXPECT_NEAR(plan.expectation, tasks->expectation, 1e-9 * tasks->expectation);
    EXPECT_NEAR(plan.standard_error, tasks->standard_error, 1e-9 * (1 + tasks->standard_error));
    EXPECT_EQ(plan.quantiles, tasks->quantiles);
    EXPECT_EQ(plan.best, tasks->best);
    EXPECT_EQ(plan.worst, tasks->worst);
    ++(plan.is_exact ? num_exact : num_sampled);
  }
  EXPECT_GT(num_exact, 5);
  EXPECT_GT(num_sampled, 5);
}

TEST(FluidScenarios, WhatIsNoQuestionIsRefused) {
  ScenarioOptions options;
  options.quantiles = {1.5};
  const auto evaluated = [&](int64_t trips, const FluidOptions& fluid) {
    const PricedProgram priced = sketched(loop_of_ten(trace({trips})));
    return evaluate_fluid_scenarios(priced.program, priced.costs, plain_machine(), options, fluid)
        .status();
  };
  EXPECT_EQ(evaluated(1, {}).message(), "quantile 1.5 is not between 0 and 1");
  options = {};
  options.num_samples = 0;
  EXPECT_FALSE(evaluated(1, {}).is_ok());
  options = {};
  FluidOptions short_one;
  short_one.max_steps = 5;
  EXPECT_EQ(evaluated(100, short_one).code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace eddy
