#include "graph/simulate/fluid_program.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace eddy {
namespace {

class Checker {
 public:
  Checker(const FluidProgram& program, const FluidMachine& machine)
      : program_(program),
        machine_(machine),
        owners_(program.regions.size(), 0),
        is_after_(program.regions.size()) {}

  Status run() {
    if (program_.regions.empty()) return invalid_argument("a program needs a root region");
    if (!(machine_.num_units > 0)) return invalid_argument("a machine needs units");
    for (size_t k = 0; k < program_.kernels.size(); ++k) {
      EDDY_RETURN_IF_ERROR(check_demand(fmt::format("kernel {}", k), program_.kernels[k]));
    }
    for (const FluidLoop& loop : program_.loops) EDDY_RETURN_IF_ERROR(check_loop(loop));
    for (const FluidCase& branch : program_.cases) EDDY_RETURN_IF_ERROR(check_case(branch));
    for (uint32_t r = 0; r < program_.regions.size(); ++r) {
      if (owners_[r] == (r == 0 ? 0 : 1)) continue;
      return invalid_argument(
          fmt::format("region {} belongs to {} loops and cases; all but region 0 belong to one", r,
                      owners_[r]));
    }
    return check_regions();
  }

 private:
  Status check_demand(const std::string& what, const FluidDemand& demand) const {
    const bool is_time = std::isfinite(demand.solo_ns) && demand.solo_ns >= 0;
    const bool fits = demand.units >= 0 && demand.units <= machine_.num_units &&
                      demand.bandwidth >= 0 && demand.bandwidth <= 1;
    if (is_time && fits) return Status::ok();
    return invalid_argument(fmt::format(
        "{} asks for {} ns, {} units and {} of the bandwidth; {} has {} units", what,
        demand.solo_ns, demand.units, demand.bandwidth, machine_.name, machine_.num_units));
  }

  Status check_decision(const std::string& name, const Decision& decision) const {
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

  Status own(const std::string& name, uint32_t region) {
    if (region >= program_.regions.size()) {
      return invalid_argument(
          fmt::format("'{}' names region {}, of {}", name, region, program_.regions.size()));
    }
    ++owners_[region];
    return Status::ok();
  }

  Status check_loop(const FluidLoop& loop) {
    EDDY_RETURN_IF_ERROR(own(loop.name, loop.before));
    EDDY_RETURN_IF_ERROR(own(loop.name, loop.after));
    is_after_[loop.after] = true;
    for (const FluidDemand* demand : {&loop.enter, &loop.test, &loop.advance, &loop.leave}) {
      EDDY_RETURN_IF_ERROR(check_demand("'" + loop.name + "'", *demand));
    }
    EDDY_RETURN_IF_ERROR(check_decision(loop.name, loop.decision));
    for (const int64_t trips : loop.decision.trace) {
      if (trips < 0) return invalid_argument("negative trips of '" + loop.name + "'");
    }
    for (const Decision::Likely& likely : loop.decision.distribution) {
      if (likely.value < 0) return invalid_argument("negative trips of '" + loop.name + "'");
    }
    return Status::ok();
  }

  Status check_case(const FluidCase& branch) {
    for (const uint32_t region : branch.regions) EDDY_RETURN_IF_ERROR(own(branch.name, region));
    EDDY_RETURN_IF_ERROR(check_demand("'" + branch.name + "'", branch.select));
    EDDY_RETURN_IF_ERROR(check_demand("'" + branch.name + "'", branch.finish));
    return check_decision(branch.name, branch.decision);
  }

  // Every region once, from the root down; one that is never reached is inside itself.
  Status check_regions() {
    std::vector<uint32_t> waiting = {0};
    std::vector<bool> is_used[2] = {std::vector<bool>(program_.loops.size()),
                                    std::vector<bool>(program_.cases.size())};
    size_t num_seen = 0;
    for (; !waiting.empty(); ++num_seen) {
      const uint32_t region = waiting.back();
      waiting.pop_back();
      EDDY_RETURN_IF_ERROR(check_commands(region));
      for (const Program::Step& command : program_.regions[region].commands) {
        const bool is_loop = command.op == Program::Op::kLoop;
        if (!is_loop && command.op != Program::Op::kCase) continue;
        if (is_used[is_loop ? 0 : 1][command.operand]) {
          return invalid_argument(fmt::format("{} {} stands twice in the program",
                                              is_loop ? "loop" : "case", command.operand));
        }
        is_used[is_loop ? 0 : 1][command.operand] = true;
        if (is_loop) {
          waiting.push_back(program_.loops[command.operand].before);
          waiting.push_back(program_.loops[command.operand].after);
        } else {
          const std::vector<uint32_t>& regions = program_.cases[command.operand].regions;
          waiting.insert(waiting.end(), regions.begin(), regions.end());
        }
      }
    }
    if (num_seen == program_.regions.size()) return Status::ok();
    return invalid_argument("some regions cannot be reached from region 0");
  }

  size_t limit_of(Program::Op kind, const FluidRegion& region) const {
    switch (kind) {
      case Program::Op::kLaunch:
        return program_.kernels.size();
      case Program::Op::kLoop:
        return program_.loops.size();
      case Program::Op::kCase:
        return program_.cases.size();
      default:
        return region.num_events;
    }
  }

  Status check_commands(uint32_t r) const {
    const FluidRegion& region = program_.regions[r];
    const auto fail = [&](size_t at, const char* what) {
      return invalid_argument(fmt::format("region {}, command {}: {}", r, at, what));
    };
    if (region.num_streams == 0) return fail(0, "a region needs a stream");
    if (!region.lanes.empty() && region.lanes.size() != region.num_streams) {
      return fail(0, "one lane for each stream");
    }
    if (region.is_open && (!is_after_[r] || region.num_streams == 1)) {
      return fail(0, "only what runs after a loop's test, on several streams, can be open");
    }
    std::vector<bool> is_recorded(region.num_events);
    for (size_t at = 0; at < region.commands.size(); ++at) {
      const Program::Step& command = region.commands[at];
      if (!is_node(command.op) && !is_sync(command.op)) return fail(at, "no step of a region");
      if (command.stream >= region.num_streams) return fail(at, "no such stream");
      if (command.operand >= limit_of(command.op, region))
        return fail(at, "its number is too large");
      if (command.op == Program::Op::kRecord) {
        if (is_recorded[command.operand]) return fail(at, "its event is recorded already");
        is_recorded[command.operand] = true;
      } else if (command.op == Program::Op::kWait && !is_recorded[command.operand]) {
        return fail(at, "it waits for an event that is recorded later or never");
      } else if (command.op == Program::Op::kWaitPrevious &&
                 (!region.is_open || command.stream != 0)) {
        return fail(at, "only stream 0 of an open region waits for the iteration before");
      }
    }
    const auto is_event = [&](uint32_t event) { return event < region.num_events; };
    if (!region.is_open && !region.entry_waits.empty()) {
      return fail(0, "only an open region waits for the iteration before");
    }
    if (!std::ranges::all_of(region.entry_waits, is_event)) {
      return fail(0, "it waits for an event that is none of its own");
    }
    return Status::ok();
  }

  const FluidProgram& program_;
  const FluidMachine& machine_;
  std::vector<uint32_t> owners_;
  std::vector<bool> is_after_;
};

}  // namespace

Status check_fluid_program(const FluidProgram& program, const FluidMachine& machine) {
  return Checker(program, machine).run();
}

}  // namespace eddy
