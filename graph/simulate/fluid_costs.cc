#include "graph/simulate/fluid_costs.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "graph/program/validate.h"

namespace eddy {
namespace {

using Op = Program::Op;

Status check_demand(const std::string& what, const FluidDemand& demand,
                    const FluidMachine& machine) {
  const bool is_time = std::isfinite(demand.solo_ns) && demand.solo_ns >= 0;
  const bool fits = demand.units >= 0 && demand.units <= machine.num_units &&
                    demand.bandwidth >= 0 && demand.bandwidth <= 1;
  if (is_time && fits) return Status::ok();
  return invalid_argument(fmt::format(
      "{} asks for {} ns, {} units and {} of the bandwidth; {} has "
      "{} units",
      what, demand.solo_ns, demand.units, demand.bandwidth, machine.name, machine.num_units));
}

Status check_decision(const std::string& name, const Decision& decision) {
  if (decision.trace.empty() == decision.distribution.empty()) {
    return invalid_argument(fmt::format("'{}' needs a trace or a distribution", name));
  }
  double sum = 0;
  for (const Decision::Likely& likely : decision.distribution) {
    if (!(likely.probability >= 0)) sum = NAN;
    sum += likely.probability;
  }
  if (!decision.distribution.empty() && !(std::abs(sum - 1) < 1e-6)) {
    return invalid_argument(fmt::format("the probabilities of '{}' do not add up to 1", name));
  }
  return Status::ok();
}

Status check_loop(const FluidCosts::Loop& loop, const FluidMachine& machine) {
  for (const FluidDemand* demand : {&loop.enter, &loop.test, &loop.advance, &loop.leave}) {
    EDDY_RETURN_IF_ERROR(check_demand("'" + loop.name + "'", *demand, machine));
  }
  EDDY_RETURN_IF_ERROR(check_decision(loop.name, loop.decision));
  const bool is_negative =
      std::ranges::any_of(loop.decision.trace, [](int64_t trips) { return trips < 0; }) ||
      std::ranges::any_of(loop.decision.distribution,
                          [](const Decision::Likely& likely) { return likely.value < 0; });
  if (is_negative) return invalid_argument("negative trips of '" + loop.name + "'");
  return Status::ok();
}

// What would leave a strand waiting for ever, or begin it before its block.
Status check_order(const Program& program, uint32_t b) {
  const Program::Block& block = program.blocks[b];
  const auto fail = [&](size_t at, const char* what) {
    return invalid_argument(fmt::format("block {}, step {}: {}", b, at, what));
  };
  if (block.num_events < block.streams.size()) return fail(0, "no events for its begin and ends");
  std::vector<uint32_t> num_records(block.num_events, 0);
  std::vector<bool> has_begun(block.streams.size());
  has_begun[0] = true;
  for (size_t at = 0; at < block.steps.size(); ++at) {
    const Program::Step& step = block.steps[at];
    const uint32_t stream = local_stream(block, step.stream);
    if (!has_begun[stream] && step.op != Op::kWait) {
      return fail(at, "its stream does not begin with a wait");
    }
    has_begun[stream] = true;
    if (step.op == Op::kRecord) ++num_records[step.operand];
    if (step.op == Op::kWait && num_records[step.operand] == 0) {
      return fail(at, "it waits for an event that is recorded later or never");
    }
  }
  if (is_pipelined(program, block)) {  // each stream's end is an event
    for (uint32_t s = 1; s < block.streams.size(); ++s) ++num_records[first_frame_event(block) + s];
  }
  for (size_t at = 0; at < block.steps.size(); ++at) {
    const Program::Step& step = block.steps[at];
    if (step.op == Op::kRecord && num_records[step.operand] > 1) {
      return fail(at, "its event is recorded twice");
    }
    if (step.op == Op::kWaitPrevious && num_records[step.operand] == 0) {
      return fail(at, "it waits for an event that is never recorded");
    }
  }
  return Status::ok();
}

}  // namespace

Status check_fluid_costs(const Program& program, const FluidCosts& costs,
                         const FluidMachine& machine) {
  if (program.blocks.empty()) return invalid_argument("a program needs a root block");
  if (!(machine.num_units > 0)) return invalid_argument("a machine needs units");
  if (const auto defect = find_malformed(program)) {
    return invalid_argument(fmt::format("block {}: {}", defect->block, defect->text));
  }
  if (costs.launches.size() != program.launches.size() ||
      costs.loops.size() != program.loops.size() || costs.cases.size() != program.cases.size()) {
    return invalid_argument("the costs are not those of the program's launches, loops and cases");
  }
  for (size_t k = 0; k < costs.launches.size(); ++k) {
    EDDY_RETURN_IF_ERROR(check_demand(fmt::format("launch {}", k), costs.launches[k], machine));
  }
  for (const FluidCosts::Loop& loop : costs.loops) EDDY_RETURN_IF_ERROR(check_loop(loop, machine));
  for (const FluidCosts::Case& branch : costs.cases) {
    EDDY_RETURN_IF_ERROR(check_demand("'" + branch.name + "'", branch.select, machine));
    EDDY_RETURN_IF_ERROR(check_demand("'" + branch.name + "'", branch.finish, machine));
    EDDY_RETURN_IF_ERROR(check_decision(branch.name, branch.decision));
  }
  for (uint32_t b = 0; b < program.blocks.size(); ++b) {
    EDDY_RETURN_IF_ERROR(check_order(program, b));
  }
  return Status::ok();
}

}  // namespace eddy
