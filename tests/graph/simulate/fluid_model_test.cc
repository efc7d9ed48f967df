// The fluid model does what can be reckoned by hand, agrees with a clock that ticks in small steps
// on random programs, keeps work and bounds, and refuses what is no program.
#include "graph/simulate/fluid_model.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "graph/base/random.h"
#include "graph/io/file_bytes.h"
#include "graph/simulate/fluid_sharing.h"
#include "tests/graph/simulate/fluid_sketch.h"
#include "tests/graph/simulate/ticking_simulator.h"

namespace eddy {
namespace {

using Op = Program::Op;

FluidMachine plain_machine(double units = 4) {
  FluidMachine machine;
  machine.num_units = units;
  return machine;
}

FluidTimeline simulate(const FluidSketch& sketch, const FluidMachine& machine,
                       const FluidOptions& options = {}) {
  const PricedProgram priced = sketched(sketch);
  auto timeline = simulate_fluid(priced.program, priced.costs, machine, options);
  EXPECT_TRUE(timeline.is_ok()) << timeline.status().to_string();
  return timeline.is_ok() ? std::move(*timeline) : FluidTimeline{};
}

// Kernels side by side, each on a stream of its own.
FluidSketch side_by_side(const std::vector<FluidDemand>& kernels) {
  FluidSketch sketch{.kernels = kernels};
  sketch.blocks.push_back({.num_streams = static_cast<uint32_t>(kernels.size())});
  for (uint32_t i = 0; i < kernels.size(); ++i) {
    sketch.blocks[0].steps.push_back({Op::kLaunch, i, i});
  }
  return sketch;
}

Decision trace(std::vector<int64_t> values) {
  Decision decision;
  decision.trace = std::move(values);
  return decision;
}

TEST(FluidModel, ShortKernelsShareTheMachineUntilTheyEnd) {
  // 4 units: 3 + 3 wanted, so both run at 2/3 until the shorter ends at 150, the rest at full rate.
  const FluidSketch program = side_by_side({{100, 3, 0}, {200, 3, 0}});
  EXPECT_DOUBLE_EQ(simulate(program, plain_machine()).makespan_ns, 250);
}

TEST(FluidModel, SmallKernelsRunBesideEachOtherAtFullRate) {
  const FluidSketch program = side_by_side({{100, 1, 0.2}, {200, 2, 0.3}, {150, 1, 0.5}});
  EXPECT_DOUBLE_EQ(simulate(program, plain_machine()).makespan_ns, 200);
}

TEST(FluidModel, BandwidthSlowsOnlyThoseThatUseIt) {
  // Two that need 0.8 of the bandwidth run at 5/8; the third does not touch memory.
  const FluidSketch program = side_by_side({{100, 1, 0.8}, {100, 1, 0.8}, {100, 1, 0}});
  FluidOptions options;
  options.wants_spans = true;
  const FluidTimeline timeline = simulate(program, plain_machine(), options);
  EXPECT_DOUBLE_EQ(timeline.makespan_ns, 160);
  EXPECT_EQ(timeline.spans[0].id, 2u);
  EXPECT_DOUBLE_EQ(timeline.spans[0].end_ns, 100);
}

TEST(FluidModel, RatesAreMaxMinFairOnRandomDemands) {
  constexpr uint64_t kSeed = 5;
  Random random(kSeed);
  for (int trial = 0; trial < 2000; ++trial) {
    const double units = 1 + static_cast<double>(random.below(8));
    std::vector<FluidDemand> demands(1 + random.below(6));
    for (FluidDemand& demand : demands) {
      demand = {1, units * random.uniform(), random.below(2) == 0 ? 0 : random.uniform()};
    }
    std::vector<double> rates(demands.size());
    fluid_rates(units, demands, rates);
    double used_units = 0, used_bandwidth = 0;
    for (size_t i = 0; i < rates.size(); ++i) {
      ASSERT_GT(rates[i], 0);
      ASSERT_LE(rates[i], 1);
      used_units += rates[i] * demands[i].units;
      used_bandwidth += rates[i] * demands[i].bandwidth;
    }
    ASSERT_LE(used_units, units * (1 + 1e-9)) << "seed " << kSeed << ", trial " << trial;
    ASSERT_LE(used_bandwidth, 1 + 1e-9);
    // A slowed task uses a resource that is exhausted, and no task on that resource has a higher
    // rate.
    for (size_t i = 0; i < rates.size(); ++i) {
      if (rates[i] == 1) continue;
      const auto has_bottleneck = [&](bool is_full, auto share) {
        if (!is_full || share(demands[i]) <= 0) return false;
        for (size_t j = 0; j < rates.size(); ++j) {
          if (share(demands[j]) > 0 && rates[j] > rates[i] * (1 + 1e-9)) return false;
        }
        return true;
      };
      ASSERT_TRUE(has_bottleneck(used_units > units * (1 - 1e-9),
                                 [](const FluidDemand& d) { return d.units; }) ||
                  has_bottleneck(used_bandwidth > 1 - 1e-9,
                                 [](const FluidDemand& d) { return d.bandwidth; }))
          << "seed " << kSeed << ", trial " << trial;
    }
  }
}

TEST(FluidModel, LaunchesGoThroughOneSerialHost) {
  // Issued at 10, 20, 30: the host, not the device, decides when the last one starts.
  FluidMachine machine = plain_machine();
  machine.host.launch_ns = 10;
  EXPECT_DOUBLE_EQ(simulate(side_by_side({{5, 1, 0}, {5, 1, 0}, {5, 1, 0}}), machine).makespan_ns,
                   35);
  EXPECT_DOUBLE_EQ(simulate(side_by_side({{50, 1, 0}, {5, 1, 0}, {5, 1, 0}}), machine).makespan_ns,
                   60);
}

TEST(FluidModel, AWaitingStreamStartsAHandoffAfterTheRecord) {
  FluidSketch program = side_by_side({{100, 1, 0}, {30, 1, 0}});
  program.blocks[0].num_events = 1;
  program.blocks[0].steps = {
      {Op::kLaunch, 0, 0}, {Op::kRecord, 0, 0}, {Op::kWait, 1, 0}, {Op::kLaunch, 1, 1}};
  FluidMachine machine = plain_machine();
  machine.handoff_ns = 7;
  // And stream 0 waits for the end of stream 1: a second hand-off.
  EXPECT_DOUBLE_EQ(simulate(program, machine).makespan_ns, 100 + 7 + 30 + 7);
  machine.host = {.launch_ns = 0, .record_ns = 3, .wait_ns = 4};
  EXPECT_DOUBLE_EQ(simulate(program, machine).makespan_ns, 100 + 7 + 30 + 7)
      << "hidden behind work";
}

TEST(FluidModel, AWorkerThatSleepsIsWokenUnlessAnotherIsFree) {
  FluidMachine machine = plain_machine(2);
  machine.num_workers = 2;
  machine.handoff_ns = 1;
  machine.wake_ns = 40;
  machine.spin_ns = 10;
  machine.pickup_ns = 0.5;
  FluidSketch program;
  program.kernels = {{100, 1, 0}, {30, 1, 0}};
  program.blocks.push_back({.num_streams = 2, .num_events = 1});
  // Stream 1 rests until the first kernel has ended; its worker sleeps, and stream 0 goes on
  // beside it.
  program.blocks[0].steps = {{Op::kLaunch, 0, 0},
                             {Op::kRecord, 0, 0},
                             {Op::kLaunch, 0, 1},
                             {Op::kWait, 1, 0},
                             {Op::kLaunch, 1, 1}};
  // Stream 0 ends its second kernel at 130 and waits: its worker takes stream 1 at 130.5, before
  // the sleeper would at 140. Stream 1 ends at 160.5, and then stream 0 is taken by the worker
  // that stream 1 frees.
  EXPECT_DOUBLE_EQ(simulate(program, machine).makespan_ns, 161);
}

TEST(FluidModel, HandingToAWorkerThatIsAwakeTakesTimeOfBothSides) {
  FluidMachine machine = plain_machine(2);
  machine.num_workers = 2;
  machine.handing_ns = 2;
  machine.handoff_ns = 3;
  machine.wake_ns = 40;
  machine.spin_ns = 1000;
  machine.pickup_ns = 0.5;
  FluidSketch program;
  program.kernels = {{100, 1, 0}, {30, 1, 0}, {0, 1, 0}};
  program.blocks.push_back({.num_streams = 2, .num_events = 1});
  program.blocks[0].steps = {{Op::kLaunch, 0, 0}, {Op::kRecord, 0, 0}, {Op::kLaunch, 0, 1},
                             {Op::kLaunch, 1, 2}, {Op::kWait, 1, 0},   {Op::kLaunch, 1, 1}};
  // Stream 1 comes at 40 and waits, awake. The record at 100 keeps stream 0 until 102 and starts
  // stream 1 at 105, which ends at 135, hands over until 137, and then takes stream 0 itself.
  EXPECT_DOUBLE_EQ(simulate(program, machine).makespan_ns, 137.5);
}

TEST(FluidModel, ARunForWhichItsCallerSleepsTakesLonger) {
  FluidMachine machine = plain_machine(2);
  machine.num_workers = 2;
  machine.run_ns = 1;
  machine.start_ns = 5;
  machine.sleeping_start_ns = 50;
  machine.caller_spin_ns = 100;
  EXPECT_DOUBLE_EQ(simulate(side_by_side({{90, 1, 0}, {10, 1, 0}}), machine).makespan_ns, 95);
  EXPECT_DOUBLE_EQ(simulate(side_by_side({{200, 1, 0}, {10, 1, 0}}), machine).makespan_ns, 250);
  EXPECT_DOUBLE_EQ(simulate(side_by_side({{200, 1, 0}}), machine).makespan_ns, 201);
}

TEST(FluidModel, ALoopRunsItsTestOnceMoreThanItsTrips) {
  FluidSketch program = sketch_loop({10, 1, 0}, trace({4}));
  program.loops[0].costs.test = {1, 0, 0};
  program.loops[0].costs.enter = {100, 0, 0};
  program.loops[0].costs.advance = {2, 0, 0};
  program.loops[0].costs.leave = {1000, 0, 0};
  EXPECT_DOUBLE_EQ(simulate(program, plain_machine()).makespan_ns, 100 + 5 + 4 * 12 + 1000);
}

TEST(FluidModel, AHostDrivenLoopPaysTheReadbackAndItsLaunchesEveryTime) {
  FluidMachine machine = plain_machine();
  machine.host = {.launch_ns = 4, .decision_ns = 1};
  machine.readback_ns = 5;
  // test: 1 + 5, then three times launch 4, kernel 2 (launching the test runs beside it), 5.
  const FluidSketch program = sketch_loop({2, 1, 0}, trace({3}));
  EXPECT_DOUBLE_EQ(simulate(program, machine).makespan_ns, 6 + 3 * (4 + 2 + 5));
}

TEST(FluidModel, TwoHostDrivenLoopsHideEachOthersReadbacks) {
  FluidSketch one = sketch_loop({2, 1, 0}, trace({100}));
  FluidSketch two = one;
  two.blocks.resize(5);
  two.blocks[0] = {.num_streams = 2};
  two.blocks[0].steps = {{Op::kLoop, 0, 0}, {Op::kLoop, 1, 1}};
  two.blocks[4].steps = {{Op::kLaunch, 0, 0}};
  two.loops.push_back({{.name = "m", .decision = trace({100})}, 3, 4});
  FluidMachine machine = plain_machine();
  machine.host = {.launch_ns = 4, .decision_ns = 1};
  machine.readback_ns = 20;
  const double alone = simulate(one, machine).makespan_ns;
  const double both = simulate(two, machine).makespan_ns;
  EXPECT_LT(both, 1.3 * alone);
  EXPECT_GT(both, alone);
}

TEST(FluidModel, RoundsThatStandForSeveralTakeAsLongAsAll) {
  const FluidSketch program = sketch_loop({10, 1, 0}, trace({1'000'000}));
  FluidOptions few;
  few.max_rounds = 8;
  const FluidTimeline timeline = simulate(program, plain_machine(), few);
  EXPECT_NEAR(timeline.makespan_ns, 1e7, 1);
  EXPECT_LT(timeline.num_steps, 100u);
  // Issuing and reading back count as many times, too.
  FluidMachine driven = plain_machine();
  driven.host = {.launch_ns = 4, .decision_ns = 1};
  driven.readback_ns = 5;
  EXPECT_NEAR(simulate(program, driven, few).makespan_ns, 19e6, 0.01 * 19e6);
}

TEST(FluidModel, DrawsDependOnSeedSampleNameAndExecutionOnly) {
  Decision decision;
  decision.distribution = {{1, 0.5}, {9, 0.5}};
  const FluidSketch program = sketch_loop({10, 1, 0}, decision);
  double sum = 0;
  FluidOptions options;
  for (options.sample = 0; options.sample < 2000; ++options.sample) {
    const double makespan = simulate(program, plain_machine(), options).makespan_ns;
    EXPECT_EQ(makespan, simulate(program, plain_machine(), options).makespan_ns);
    sum += makespan;
  }
  EXPECT_NEAR(sum / 2000, 50, 3);
}

TEST(FluidModel, ACaseRunsItsBranchOrNone) {
  FluidSketch program;
  program.kernels = {{10, 1, 0}, {20, 1, 0}};
  program.blocks.resize(3);
  program.blocks[0].steps = {{Op::kCase, 0, 0}};
  program.blocks[1].steps = {{Op::kLaunch, 0, 0}};
  program.blocks[2].steps = {{Op::kLaunch, 0, 1}};
  program.cases.push_back({{.name = "c", .decision = trace({1})}, {1, 2}});
  EXPECT_DOUBLE_EQ(simulate(program, plain_machine()).makespan_ns, 20);
  program.cases[0].costs.decision = trace({7});
  EXPECT_DOUBLE_EQ(simulate(program, plain_machine()).makespan_ns, 0);
}

// A stream that reaches a wait at the very instant of its record may park in one model and not in
// the other, so makespans differ by some hand-offs where hand-offs take time.
TEST(FluidModel, AgreesWithAClockThatTicks) {
  constexpr uint64_t kSeed = 11;
  int num_off = 0;
  Random random(kSeed);
  for (int trial = 0; trial < 100; ++trial) {
    const FluidSketch sketch = random_flat_sketch(random);
    const PricedProgram program = sketched(sketch);
    FluidMachine machine = plain_machine(4);
    machine.handoff_ns = static_cast<double>(random.below(3)) * 5;
    const double tick = 0.1;
    const FluidTimeline timeline = simulate(sketch, machine);
    const double slow = tick_through(program, machine, tick);
    const double slack = tick * 4 * static_cast<double>(sketch.blocks[0].steps.size() + 2);
    const double off = std::abs(timeline.makespan_ns - slow);
    if (off > slack) ++num_off;
    ASSERT_LE(off, slack + 2 * machine.handoff_ns) << "seed " << kSeed << ", trial " << trial;
    double work = 0, longest = 0;
    for (const FluidDemand& kernel : sketch.kernels) {
      work += kernel.solo_ns * kernel.units;
      longest = std::max(longest, kernel.solo_ns);
    }
    ASSERT_NEAR(timeline.unit_ns, work, 1e-6 * work + 1e-9);
    ASSERT_GE(timeline.makespan_ns * (1 + 1e-9), std::max(longest, work / machine.num_units));
  }
  EXPECT_LE(num_off, 20);
}

TEST(FluidModel, AWakeFromRestTakesTimeOfTheRecordingStreamOneAfterTheOther) {
  FluidMachine machine = plain_machine();
  machine.stream.fork_ns = 3;
  machine.handoff_ns = 10;
  // Both wait for the begin: at 13 and 16; stream 0 works from 6.
  EXPECT_DOUBLE_EQ(simulate(side_by_side({{1, 1, 0}, {5, 1, 0}, {50, 1, 0}}), machine).makespan_ns,
                   16 + 50 + 10);
  EXPECT_DOUBLE_EQ(simulate(side_by_side({{90, 1, 0}, {5, 1, 0}, {5, 1, 0}}), machine).makespan_ns,
                   96);
  // A stream that waits for a node alone is not woken before.
  FluidSketch late = side_by_side({{100, 1, 0}, {30, 1, 0}});
  late.blocks[0].num_events = 1;
  late.blocks[0].steps = {
      {Op::kLaunch, 0, 0}, {Op::kRecord, 0, 0}, {Op::kWait, 1, 0}, {Op::kLaunch, 1, 1}};
  EXPECT_DOUBLE_EQ(simulate(late, machine).makespan_ns, 100 + 3 + 10 + 30 + 10);
}

TEST(FluidModel, RecordsAndWaitsOrderStreamsAndNothingElseDoes) {
  FluidSketch sketch = sketch_loop({10, 1, 0}, trace({1}));
  sketch.kernels = {{10, 1, 0}, {25, 1, 0}, {100, 1, 0}};
  sketch.blocks[0].steps.push_back({Op::kLaunch, 0, 2});
  sketch.blocks[2] = {.num_streams = 2, .steps = {{Op::kLaunch, 0, 0}, {Op::kLaunch, 1, 1}}};
  EXPECT_DOUBLE_EQ(simulate(sketch, plain_machine()).makespan_ns, 25 + 100);
  // begin, record, wait, launch, launch, record, wait, advance
  PricedProgram priced = sketched(sketch);
  std::vector<Program::Step>& steps = priced.program.blocks[2].steps;
  steps.erase(steps.begin() + 6);
  const auto free = simulate_fluid(priced.program, priced.costs, plain_machine());
  ASSERT_TRUE(free.is_ok()) << free.status().to_string();
  EXPECT_DOUBLE_EQ(free->makespan_ns, 10 + 100) << "nobody waits for the stream's end";
}

TEST(FluidModel, WhatIsNoProgramIsRefusedWithItsPlace) {
  const auto message = [](const PricedProgram& priced) {
    return simulate_fluid(priced.program, priced.costs, plain_machine()).status().message();
  };
  const PricedProgram flat = sketched(side_by_side({{1, 1, 0}, {1, 1, 0}}));
  PricedProgram priced = flat;
  priced.costs.launches[0].solo_ns = NAN;
  EXPECT_NE(message(priced).find("launch 0 asks for nan ns"), std::string::npos);
  priced.costs.launches[0] = {1, 5, 0};
  EXPECT_NE(message(priced).find("5 units"), std::string::npos);
  priced.costs.launches.pop_back();
  EXPECT_NE(message(priced).find("not those of the program's launches"), std::string::npos);
  // begin, record, wait, launch 0, launch 1, record, wait, end
  priced = flat;
  priced.program.blocks[0].steps[3].operand = 3;
  EXPECT_EQ(message(priced), "block 0: a launch is not there");
  priced = flat;
  std::swap(priced.program.blocks[0].steps[5], priced.program.blocks[0].steps[6]);
  EXPECT_EQ(message(priced),
            "block 0, step 5: it waits for an event that is recorded later or never");
  priced = flat;
  priced.program.blocks[0].steps[5].operand = 0;
  EXPECT_EQ(message(priced),
            "block 0, step 6: it waits for an event that is recorded later or never");
  priced.program.blocks[0].steps.erase(priced.program.blocks[0].steps.begin() + 6);
  EXPECT_EQ(message(priced), "block 0, step 1: its event is recorded twice");
  priced = flat;
  std::swap(priced.program.blocks[0].steps[2], priced.program.blocks[0].steps[4]);
  EXPECT_EQ(message(priced), "block 0, step 2: its stream does not begin with a wait");
  EXPECT_EQ(message({}), "a program needs a root block");

  const PricedProgram looping = sketched(sketch_loop({1, 1, 0}, trace({1})));
  EXPECT_EQ(message(sketched(sketch_loop({1, 1, 0}, trace({-1})))), "negative trips of 'l'");
  priced = looping;
  priced.costs.loops[0].decision = {};
  EXPECT_EQ(message(priced), "'l' needs a trace or a distribution");
  priced = looping;
  priced.program.loops[0].after = 1;
  EXPECT_NE(message(priced).find("the block is another's"), std::string::npos);
  priced = looping;
  priced.program.blocks[2].steps.insert(priced.program.blocks[2].steps.begin() + 1,
                                        {Op::kLoop, 0, 0});
  EXPECT_EQ(message(priced), "block 2: a loop stands in two places");
  FluidOptions short_of;
  short_of.max_steps = 10;
  priced = sketched(sketch_loop({1, 1, 0}, trace({INT64_MAX})));
  const auto endless = simulate_fluid(priced.program, priced.costs, plain_machine(), short_of);
  EXPECT_EQ(endless.status().code(), StatusCode::kResourceExhausted);
}

// Time of a round with bodies of 1, 10 and 50 kernels in a chain.
void expect_rounds_ns(const char* path, const std::vector<double>& measured_ns) {
  auto file = read_file(path, 1 << 16);
  ASSERT_TRUE(file.is_ok()) << file.status().to_string();
  const std::span<const std::byte> bytes = (*file)->bytes();
  auto machine = parse_fluid_machine({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  ASSERT_TRUE(machine.is_ok()) << machine.status().to_string();
  const uint32_t sizes[] = {1, 10, 50};
  for (size_t i = 0; i < std::size(sizes); ++i) {
    FluidSketch program = sketch_loop({machine->shortest_ns, 1, 0}, trace({1000}));
    program.kernels.resize(sizes[i], program.kernels[0]);
    for (uint32_t k = 1; k < sizes[i]; ++k) {
      program.blocks[2].steps.push_back({Op::kLaunch, 0, k});
    }
    EXPECT_NEAR(simulate(program, *machine).makespan_ns / 1000, measured_ns[i],
                0.07 * measured_ns[i])
        << path << ", " << sizes[i] << " kernels";
  }
}

TEST(FluidMachine, TheH200sFilesGiveTheLoopsThatWereMeasured) {
  expect_rounds_ns("graph/simulate/machines/h200.json", {7'500, 42'700, 183'000});
  expect_rounds_ns("graph/simulate/machines/h200_conditional.json", {4'300, 12'200, 47'600});
}

TEST(FluidMachine, IsReadFromJsonAndRefusedByField) {
  auto machine = parse_fluid_machine(
      R"({"name":"m","units":2,"flops_per_ns":100,"bytes_per_ns":10,"host":{"launch_ns":5}})");
  ASSERT_TRUE(machine.is_ok()) << machine.status().to_string();
  EXPECT_EQ(machine->host.launch_ns, 5);
  // 10,000 flops on both units take 100, its 4,000 bytes 400.
  const FluidDemand demand = fluid_demand(*machine, 10'000, 4'000, 1e6);
  EXPECT_EQ(demand.solo_ns, 400);
  EXPECT_EQ(demand.units, 2);
  EXPECT_EQ(demand.bandwidth, 1);
  const auto message = [](const char* json) {
    return parse_fluid_machine(json).status().message();
  };
  EXPECT_EQ(message(R"({"name":"m"})"), R"(machine: needs "units")");
  EXPECT_EQ(message(R"({"name":"m","units":0})"), R"(machine: "units" must be above 0)");
  EXPECT_EQ(message(R"({"name":"m","units":1,"flops_per_ns":1,"bytes_per_ns":1,)"
                    R"("host":{"wait_ns":-1}})"),
            R"(machine, "host": "wait_ns" is no number from 0)");
}

}  // namespace
}  // namespace eddy
