// A slow, obvious fluid model of one block: a clock that ticks, and in each tick everything that
// may run gets its share. Correct to a few ticks for each command.
#pragma once

#include <vector>

#include "graph/base/random.h"
#include "graph/simulate/fluid_model.h"
#include "tests/graph/simulate/fluid_sketch.h"

namespace eddy {

// Kernels on up to four streams, with records and waits between them.
inline FluidSketch random_flat_sketch(Random& random) {
  FluidSketch sketch;
  FluidSketch::Block block;
  block.num_streams = 1 + static_cast<uint32_t>(random.below(4));
  for (uint32_t i = 0; i < 2 + random.below(10); ++i) {
    const auto stream = static_cast<uint32_t>(random.below(block.num_streams));
    if (block.num_events > 0 && random.below(2) == 0) {
      block.steps.push_back(
          {Program::Op::kWait, stream, static_cast<uint32_t>(random.below(block.num_events))});
    }
    block.steps.push_back({Program::Op::kLaunch, stream, i});
    sketch.kernels.push_back({1 + 20 * random.uniform(), 0.5 + 3 * random.uniform(),
                              random.below(2) == 0 ? 0 : random.uniform()});
    if (random.below(3) == 0) {
      block.steps.push_back({Program::Op::kRecord, stream, block.num_events++});
    }
  }
  sketch.blocks.push_back(block);
  return sketch;
}

// As fluid_rates promises: all rise together, until what they use is used up.
inline std::vector<double> rates_by_small_steps(const std::vector<FluidDemand>& demands,
                                                double num_units) {
  constexpr double kStep = 5e-3;
  std::vector<double> rates(demands.size(), 0);
  std::vector<bool> is_settled(demands.size());
  double units = 0, bandwidth = 0;
  for (double level = kStep; level <= 1; level += kStep) {
    for (size_t i = 0; i < demands.size(); ++i) {
      const double more_units = kStep * demands[i].units;
      const double more_bandwidth = kStep * demands[i].bandwidth;
      const bool is_full = (more_units > 0 && units + more_units > num_units * (1 + kStep)) ||
                           (more_bandwidth > 0 && bandwidth + more_bandwidth > 1 + kStep);
      if (is_full) is_settled[i] = true;
      if (is_settled[i]) continue;
      rates[i] = level;
      units += more_units;
      bandwidth += more_bandwidth;
    }
  }
  return rates;
}

// The makespan, where issuing costs nothing. Only `handoff_ns` of the machine is looked at.
inline double tick_through(const PricedProgram& priced, const FluidMachine& machine, double tick) {
  const Program::Block& block = priced.program.blocks[0];
  struct Lane {
    std::vector<Program::Step> steps;
    size_t at = 0;
    double left = -1;  // of the kernel at work
    double blocked_until = 0;
    bool is_parked = true;  // at rest; all but the main one begin with a wait
  };
  std::vector<Lane> lanes(block.streams.size());
  for (const Program::Step& step : block.steps) {
    if (!is_frame(step.op)) lanes[local_stream(block, step.stream)].steps.push_back(step);
  }
  lanes[0].is_parked = false;
  std::vector<double> recorded(block.num_events, -1);
  double now = 0;
  for (;; now += tick) {
    bool is_done = true;
    for (bool moved = true; moved;) {
      moved = false;
      for (Lane& lane : lanes) {
        if (lane.at == lane.steps.size() || lane.left >= 0 || lane.blocked_until > now) continue;
        const Program::Step& step = lane.steps[lane.at];
        if (step.op == Program::Op::kLaunch) {
          lane.left = priced.costs.launches[step.operand].solo_ns;
        } else if (step.op == Program::Op::kRecord) {
          recorded[step.operand] = now;
          ++lane.at;
        } else if (recorded[step.operand] < 0) {
          lane.is_parked = true;
          continue;
        } else {
          if (lane.is_parked) lane.blocked_until = recorded[step.operand] + machine.handoff_ns;
          lane.is_parked = false;
          ++lane.at;
        }
        moved = true;
      }
    }
    std::vector<Lane*> active;
    for (Lane& lane : lanes) {
      is_done &= lane.at == lane.steps.size();
      if (lane.left >= 0) active.push_back(&lane);
    }
    if (is_done) return now;
    std::vector<FluidDemand> demands;
    for (const Lane* lane : active) {
      demands.push_back(priced.costs.launches[lane->steps[lane->at].operand]);
    }
    const std::vector<double> rate = rates_by_small_steps(demands, machine.num_units);
    for (size_t i = 0; i < active.size(); ++i) {
      active[i]->left -= tick * rate[i];
      if (active[i]->left <= 0) {
        active[i]->left = -1;
        ++active[i]->at;
      }
    }
  }
}

}  // namespace eddy
