// An open loop's next iteration runs beside the tail of the last one as far as events allow: as
// reckoned by hand, and as the same iterations written out one after the other.
#include <gtest/gtest.h>

#include "graph/base/random.h"
#include "graph/simulate/fluid_model.h"

namespace eddy {
namespace {

using Op = Program::Op;

FluidMachine plain_machine() {
  FluidMachine machine;
  machine.num_units = 4;
  return machine;
}

FluidTimeline simulate(const FluidProgram& program, const FluidMachine& machine) {
  auto timeline = simulate_fluid(program, machine);
  EXPECT_TRUE(timeline.is_ok()) << timeline.status().to_string();
  return timeline.is_ok() ? std::move(*timeline) : FluidTimeline{};
}

// A loop whose body is one kernel in `after`.
FluidProgram loop_of(const FluidDemand& kernel, int64_t trips) {
  FluidProgram program;
  program.kernels = {kernel};
  program.regions.resize(3);
  program.regions[0].commands = {{Op::kLoop, 0, 0}};
  program.regions[2].commands = {{Op::kLaunch, 0, 0}};
  program.loops.push_back({.name = "l", .before = 1, .after = 2});
  program.loops[0].decision.trace = {trips};
  return program;
}

// Two streams: a kernel, and another behind it whose end nobody needs.
FluidProgram open_loop(double main_ns, double tail_ns, int64_t trips) {
  FluidProgram program = loop_of({main_ns, 1, 0}, trips);
  program.kernels.push_back({tail_ns, 1, 0});
  FluidRegion& after = program.regions[2];
  after.num_streams = 2;
  after.num_events = 2;
  after.commands = {{Op::kLaunch, 0, 0},
                    {Op::kRecord, 0, 0},
                    {Op::kWait, 1, 0},
                    {Op::kLaunch, 1, 1},
                    {Op::kRecord, 1, 1}};
  after.is_open = true;
  return program;
}

TEST(FluidOpenLoop, TheNextIterationOfAnOpenLoopRunsBesideTheTailOfTheLast) {
  const auto makespan = [](const FluidProgram& program) {
    return simulate(program, plain_machine()).makespan_ns;
  };
  FluidProgram program = open_loop(10, 7, 20);
  EXPECT_DOUBLE_EQ(makespan(program), 20 * 10 + 7);
  program.regions[2].entry_waits = {1};
  EXPECT_DOUBLE_EQ(makespan(program), 20 * 17) << "the tail's end is waited for";
  program.regions[2].entry_waits = {};
  program.regions[2].commands.insert(program.regions[2].commands.begin(),
                                     {Op::kWaitPrevious, 0, 1});
  EXPECT_DOUBLE_EQ(makespan(program), 20 * 17) << "within the next iteration";
  program = open_loop(10, 7, 20);
  program.regions[2].is_open = false;
  EXPECT_DOUBLE_EQ(makespan(program), 20 * 17);
  EXPECT_DOUBLE_EQ(makespan(open_loop(10, 25, 20)), 10 + 20 * 25) << "tails go on in order";
  EXPECT_DOUBLE_EQ(makespan(open_loop(10, 7, 0)), 0);
}

FluidRegion random_open_region(Random& random, size_t num_kernels) {
  FluidRegion region{.num_streams = 2 + static_cast<uint32_t>(random.below(2)), .is_open = true};
  for (uint64_t n = 3 + random.below(8); n > 0; --n) {
    const auto stream = static_cast<uint32_t>(random.below(region.num_streams));
    const auto event = static_cast<uint32_t>(random.below(region.num_events + 1));
    const uint64_t kind = random.below(4);
    if (kind == 0) {
      region.commands.push_back({Op::kRecord, stream, region.num_events++});
    } else if (kind == 1 && event < region.num_events) {
      region.commands.push_back({Op::kWait, stream, event});
    } else {
      region.commands.push_back(
          {Op::kLaunch, stream, static_cast<uint32_t>(random.below(num_kernels))});
    }
  }
  for (uint32_t event = 0; event < region.num_events; ++event) {
    if (random.below(3) == 0) region.commands.push_back({Op::kWait, 0, event});
    if (random.below(3) == 0) region.entry_waits.push_back(event);
    if (random.below(3) != 0) continue;
    const auto at = static_cast<std::ptrdiff_t>(random.below(region.commands.size()));
    region.commands.insert(region.commands.begin() + at, {Op::kWaitPrevious, 0, event});
  }
  return region;
}

// The iterations one after the other in one region, ordered by events alone.
FluidRegion unrolled(const FluidRegion& open, uint32_t trips) {
  const uint32_t entry = open.num_events;  // followed by who has begun, by stream from 1
  const uint32_t set = open.num_events + open.num_streams;
  FluidRegion region{.num_streams = open.num_streams, .num_events = trips * set};
  auto& commands = region.commands;
  for (uint32_t i = 0; i < trips; ++i) {
    const uint32_t now = i * set;
    const uint32_t before = now - set;
    for (uint32_t s = 1; s < open.num_streams && i > 0; ++s) {
      commands.push_back({Op::kWait, 0, before + entry + s});
    }
    for (const uint32_t event : open.entry_waits) {
      if (i > 0) commands.push_back({Op::kWait, 0, before + event});
    }
    commands.push_back({Op::kRecord, 0, now + entry});
    for (uint32_t s = 1; s < open.num_streams; ++s) {
      commands.push_back({Op::kWait, s, now + entry});
      commands.push_back({Op::kRecord, s, now + entry + s});
    }
    for (Program::Step command : open.commands) {
      if (command.op == Op::kWaitPrevious) {
        if (i > 0) commands.push_back({Op::kWait, 0, before + command.operand});
        continue;
      }
      if (command.op != Op::kLaunch) command.operand += now;
      commands.push_back(command);
    }
  }
  return region;
}

TEST(FluidOpenLoop, RunsAsItsIterationsOneAfterTheOther) {
  constexpr uint64_t kSeed = 31;
  Random random(kSeed);
  for (int trial = 0; trial < 1000; ++trial) {
    const auto trips = static_cast<uint32_t>(random.below(7));
    FluidProgram program = loop_of({5, 1, 0}, trips);
    for (uint64_t n = random.below(4); n > 0; --n) {
      program.kernels.push_back(
          {static_cast<double>(1 + random.below(40)), 1 + static_cast<double>(random.below(3)), 0});
    }
    program.regions[2] = random_open_region(random, program.kernels.size());
    FluidProgram plain;
    plain.kernels = program.kernels;
    plain.regions = {unrolled(program.regions[2], trips)};
    const FluidTimeline looping = simulate(program, plain_machine());
    const FluidTimeline straight = simulate(plain, plain_machine());
    ASSERT_NEAR(looping.makespan_ns, straight.makespan_ns, 1e-6 * (1 + straight.makespan_ns))
        << "seed " << kSeed << ", trial " << trial;
    ASSERT_NEAR(looping.unit_ns, straight.unit_ns, 1e-6 * (1 + straight.unit_ns));
    // With a host that takes time the same is done, later.
    FluidMachine driven = plain_machine();
    driven.host = {.launch_ns = 3, .record_ns = 1, .wait_ns = 1, .decision_ns = 2};
    driven.readback_ns = 4;
    const FluidTimeline issued = simulate(program, driven);
    ASSERT_NEAR(issued.unit_ns, looping.unit_ns, 1e-6 * (1 + looping.unit_ns));
  }
}

TEST(FluidOpenLoop, OnlyAfterOfALoopWithSeveralStreamsIsOpen) {
  const auto refused = [](const FluidProgram& program) {
    return simulate_fluid(program, plain_machine()).status().message();
  };
  FluidProgram program = open_loop(1, 1, 1);
  program.regions[2].is_open = false;
  program.regions[2].entry_waits = {0};
  EXPECT_EQ(refused(program),
            "region 2, command 0: only an open region waits for the iteration before");
  program = open_loop(1, 1, 1);
  program.regions[2].entry_waits = {2};
  EXPECT_EQ(refused(program), "region 2, command 0: it waits for an event that is none of its own");
  program = open_loop(1, 1, 1);
  program.regions[2].commands.push_back({Op::kWaitPrevious, 1, 0});
  EXPECT_EQ(refused(program),
            "region 2, command 5: only stream 0 of an open region waits for the iteration before");
  program = open_loop(1, 1, 1);
  program.regions[1].is_open = true;
  EXPECT_EQ(refused(program),
            "region 1, command 0: only what runs after a loop's test, on several streams, can be "
            "open");
}

}  // namespace
}  // namespace eddy
