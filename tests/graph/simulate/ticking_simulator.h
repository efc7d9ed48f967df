// A slow, obvious fluid model of one region: a clock that ticks, and in each tick everything that
// may run gets its share. Correct to a few ticks for each command.
#pragma once

#include <vector>

#include "graph/base/random.h"
#include "graph/simulate/fluid_model.h"

namespace eddy {

// Kernels on up to four streams, with records and waits between them.
inline FluidProgram random_flat_program(Random& random) {
  FluidProgram program;
  FluidRegion region;
  region.num_streams = 1 + static_cast<uint32_t>(random.below(4));
  for (uint32_t i = 0; i < 2 + random.below(10); ++i) {
    const auto stream = static_cast<uint32_t>(random.below(region.num_streams));
    if (region.num_events > 0 && random.below(2) == 0) {
      region.commands.push_back(
          {Program::Op::kWait, stream, static_cast<uint32_t>(random.below(region.num_events))});
    }
    region.commands.push_back({Program::Op::kLaunch, stream, i});
    program.kernels.push_back({1 + 20 * random.uniform(), 0.5 + 3 * random.uniform(),
                               random.below(2) == 0 ? 0 : random.uniform()});
    if (random.below(3) == 0) {
      region.commands.push_back({Program::Op::kRecord, stream, region.num_events++});
    }
  }
  program.regions.push_back(region);
  return program;
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
inline double tick_through(const FluidProgram& program, const FluidMachine& machine, double tick) {
  const FluidRegion& region = program.regions[0];
  struct Lane {
    std::vector<Program::Step> commands;
    size_t at = 0;
    double left = -1;  // of the kernel at work
    double blocked_until = 0;
    bool is_parked = false;
  };
  std::vector<Lane> lanes(region.num_streams);
  for (const Program::Step& command : region.commands) {
    lanes[command.stream].commands.push_back(command);
  }
  // Streams other than 0 start a hand-off late; their ends are events that stream 0 waits for.
  for (uint32_t s = 1; s < region.num_streams; ++s) {
    lanes[s].blocked_until = machine.handoff_ns;
    lanes[s].commands.push_back({Program::Op::kRecord, s, region.num_events + s});
    lanes[0].commands.push_back({Program::Op::kWait, 0, region.num_events + s});
  }
  std::vector<double> recorded(region.num_events + region.num_streams, -1);
  double now = 0;
  for (;; now += tick) {
    bool is_done = true;
    for (bool moved = true; moved;) {
      moved = false;
      for (Lane& lane : lanes) {
        if (lane.at == lane.commands.size() || lane.left >= 0 || lane.blocked_until > now) continue;
        const Program::Step& command = lane.commands[lane.at];
        if (command.op == Program::Op::kLaunch) {
          lane.left = program.kernels[command.operand].solo_ns;
        } else if (command.op == Program::Op::kRecord) {
          recorded[command.operand] = now;
          ++lane.at;
        } else if (recorded[command.operand] < 0) {
          lane.is_parked = true;
          continue;
        } else {
          if (lane.is_parked) lane.blocked_until = recorded[command.operand] + machine.handoff_ns;
          lane.is_parked = false;
          ++lane.at;
        }
        moved = true;
      }
    }
    std::vector<Lane*> active;
    for (Lane& lane : lanes) {
      is_done &= lane.at == lane.commands.size();
      if (lane.left >= 0) active.push_back(&lane);
    }
    if (is_done) return now;
    std::vector<FluidDemand> demands;
    for (const Lane* lane : active) {
      demands.push_back(program.kernels[lane->commands[lane->at].operand]);
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
