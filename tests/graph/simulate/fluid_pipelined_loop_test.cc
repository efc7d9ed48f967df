// A pipelined loop's next iteration runs beside the tail of the last one as far as events allow: as
// reckoned by hand, and as the same iterations written out one after the other.
#include <gtest/gtest.h>

#include "graph/base/random.h"
#include "graph/simulate/fluid_model.h"
#include "tests/graph/simulate/fluid_sketch.h"

namespace eddy {
namespace {

using Op = Program::Op;

FluidMachine plain_machine() {
  FluidMachine machine;
  machine.num_units = 4;
  return machine;
}

FluidTimeline simulate(const FluidSketch& sketch, const FluidMachine& machine) {
  const PricedProgram priced = sketched(sketch);
  auto timeline = simulate_fluid(priced.program, priced.costs, machine);
  EXPECT_TRUE(timeline.is_ok()) << timeline.status().to_string();
  return timeline.is_ok() ? std::move(*timeline) : FluidTimeline{};
}

FluidSketch loop_of(const FluidDemand& kernel, int64_t trips) {
  Decision decision;
  decision.trace = {trips};
  return sketch_loop(kernel, decision);
}

// Two streams: a kernel, and another behind it whose end no step needs.
FluidSketch open_loop(double main_ns, double tail_ns, int64_t trips) {
  FluidSketch program = loop_of({main_ns, 1, 0}, trips);
  program.kernels.push_back({tail_ns, 1, 0});
  FluidSketch::Block& after = program.blocks[2];
  after.num_streams = 2;
  after.num_events = 2;
  after.steps = {{Op::kLaunch, 0, 0},
                 {Op::kRecord, 0, 0},
                 {Op::kWait, 1, 0},
                 {Op::kLaunch, 1, 1},
                 {Op::kRecord, 1, 1}};
  program.loops[0].is_pipelined = true;
  return program;
}

TEST(FluidPipelinedLoop, TheNextIterationOfAnOpenLoopRunsBesideTheTailOfTheLast) {
  const auto makespan = [](const FluidSketch& program) {
    return simulate(program, plain_machine()).makespan_ns;
  };
  FluidSketch program = open_loop(10, 7, 20);
  EXPECT_DOUBLE_EQ(makespan(program), 20 * 10 + 7);
  program.blocks[2].entry_waits = {1};
  EXPECT_DOUBLE_EQ(makespan(program), 20 * 17) << "the tail's end is waited for";
  program.blocks[2].entry_waits = {};
  program.blocks[2].steps.insert(program.blocks[2].steps.begin(), {Op::kWaitPrevious, 0, 1});
  EXPECT_DOUBLE_EQ(makespan(program), 20 * 17) << "within the next iteration";
  program = open_loop(10, 7, 20);
  program.loops[0].is_pipelined = false;
  EXPECT_DOUBLE_EQ(makespan(program), 20 * 17);
  EXPECT_DOUBLE_EQ(makespan(open_loop(10, 25, 20)), 10 + 20 * 25) << "tails go on in order";
  EXPECT_DOUBLE_EQ(makespan(open_loop(10, 7, 0)), 0);
}

FluidSketch::Block random_open_block(Random& random, size_t num_kernels) {
  FluidSketch::Block block{.num_streams = 2 + static_cast<uint32_t>(random.below(2))};
  for (uint64_t n = 3 + random.below(8); n > 0; --n) {
    const auto stream = static_cast<uint32_t>(random.below(block.num_streams));
    const auto event = static_cast<uint32_t>(random.below(block.num_events + 1));
    const uint64_t kind = random.below(4);
    if (kind == 0) {
      block.steps.push_back({Op::kRecord, stream, block.num_events++});
    } else if (kind == 1 && event < block.num_events) {
      block.steps.push_back({Op::kWait, stream, event});
    } else {
      block.steps.push_back(
          {Op::kLaunch, stream, static_cast<uint32_t>(random.below(num_kernels))});
    }
  }
  for (uint32_t event = 0; event < block.num_events; ++event) {
    if (random.below(3) == 0) block.steps.push_back({Op::kWait, 0, event});
    if (random.below(3) == 0) block.entry_waits.push_back(event);
    if (random.below(3) != 0) continue;
    const auto at = static_cast<std::ptrdiff_t>(random.below(block.steps.size()));
    const auto stream = static_cast<uint32_t>(random.below(block.num_streams));
    block.steps.insert(block.steps.begin() + at, {Op::kWaitPrevious, stream, event});
  }
  return block;
}

// The iterations one after the other in one block, ordered by events alone.
FluidSketch::Block unrolled(const FluidSketch::Block& open, uint32_t trips) {
  const uint32_t entry = open.num_events;  // followed by ends, by stream from 1
  const uint32_t set = open.num_events + open.num_streams;
  FluidSketch::Block block{.num_streams = open.num_streams, .num_events = trips * set};
  auto& steps = block.steps;
  for (uint32_t i = 0; i < trips; ++i) {
    const uint32_t now = i * set;
    const uint32_t before = now - set;
    for (uint32_t s = 1; s < open.num_streams && i > 1; ++s) {
      steps.push_back({Op::kWait, 0, before - set + entry + s});
    }
    for (const uint32_t event : open.entry_waits) {
      if (i > 0) steps.push_back({Op::kWait, 0, before + event});
    }
    steps.push_back({Op::kRecord, 0, now + entry});
    for (uint32_t s = 1; s < open.num_streams; ++s) {
      if (begins_unordered(open, s)) steps.push_back({Op::kWait, s, now + entry});
    }
    for (Program::Step step : open.steps) {
      if (step.op == Op::kWaitPrevious) {
        if (i > 0) steps.push_back({Op::kWait, step.stream, before + step.operand});
        continue;
      }
      if (step.op != Op::kLaunch) step.operand += now;
      steps.push_back(step);
    }
    for (uint32_t s = 1; s < open.num_streams; ++s) {
      steps.push_back({Op::kRecord, s, now + entry + s});
    }
  }
  return block;
}

TEST(FluidPipelinedLoop, RunsAsItsIterationsOneAfterTheOther) {
  constexpr uint64_t kSeed = 31;
  Random random(kSeed);
  for (int trial = 0; trial < 1000; ++trial) {
    const auto trips = static_cast<uint32_t>(random.below(7));
    FluidSketch program = loop_of({5, 1, 0}, trips);
    for (uint64_t n = random.below(4); n > 0; --n) {
      program.kernels.push_back(
          {static_cast<double>(1 + random.below(40)), 1 + static_cast<double>(random.below(3)), 0});
    }
    program.blocks[2] = random_open_block(random, program.kernels.size());
    program.loops[0].is_pipelined = true;
    FluidSketch plain;
    plain.kernels = program.kernels;
    plain.blocks = {unrolled(program.blocks[2], trips)};
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

TEST(FluidPipelinedLoop, OnlyAPipelinedLoopWaitsForItsIterationBefore) {
  const auto refused = [](const FluidSketch& program) {
    const PricedProgram priced = sketched(program);
    return simulate_fluid(priced.program, priced.costs, plain_machine()).status().message();
  };
  FluidSketch program = open_loop(1, 1, 1);
  program.loops[0].is_pipelined = false;
  program.blocks[2].entry_waits = {0};
  EXPECT_EQ(refused(program), "block 2: a wait for the iteration before, but no pipelined loop");
  program = open_loop(1, 1, 1);
  program.blocks[1].entry_waits = {0};
  EXPECT_EQ(refused(program), "block 1: a wait for the iteration before, but no pipelined loop");
  program = open_loop(1, 1, 1);
  program.blocks[2].entry_waits = {4};
  EXPECT_EQ(refused(program), "block 2: event 4 is not one of the block's");
  program.blocks[2].entry_waits = {2};
  EXPECT_EQ(refused(program), "block 2, step 1: it waits for an event that is never recorded");
  program.blocks[2].entry_waits = {3};  // the tail's end
  EXPECT_EQ(refused(program), "");
}

TEST(FluidPipelinedLoop, OnOneStreamIterationsCannotOverlap) {
  FluidSketch program = loop_of({10, 1, 0}, 7);
  program.loops[0].is_pipelined = true;
  EXPECT_DOUBLE_EQ(simulate(program, plain_machine()).makespan_ns, 70);
}

TEST(FluidPipelinedLoop, ATailThatGoesOnIsNotWokenAgain) {
  FluidMachine machine = plain_machine();
  machine.num_workers = 2;
  machine.stream.fork_ns = 3;
  // Its first wake takes 3 of the main stream; then its next iteration has always begun.
  EXPECT_DOUBLE_EQ(simulate(open_loop(10, 25, 20), machine).makespan_ns, 13 + 20 * 25);
  // It rests between iterations, so each record wakes it.
  EXPECT_DOUBLE_EQ(simulate(open_loop(10, 7, 20), machine).makespan_ns, 20 * 13 + 7);
}

}  // namespace
}  // namespace eddy
