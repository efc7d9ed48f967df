#include "graph/simulate/fluid_model.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "graph/base/check.h"
#include "graph/base/text_hash.h"
#include "graph/simulate/decision_draw.h"
#include "graph/simulate/fluid_code.h"
#include "graph/simulate/fluid_streams.h"

namespace eddy {
namespace {

using Op = FluidCode::Op;
using Command = FluidCode::Command;
using Kind = FluidStep::Kind;
using What = FluidSpan::What;

// Depends on seed, sample, name and execution only.
int64_t choose_value(const Decision& decision, const std::string& name, uint64_t execution,
                     const FluidOptions& options) {
  if (!decision.trace.empty()) return decision.trace[execution % decision.trace.size()];
  EDDY_CHECK(!decision.distribution.empty()) << "nothing says how '" << name << "' falls";
  double draw = draw_uniform(options.seed, options.sample, text_hash(name), execution);
  for (const Decision::Likely& likely : decision.distribution) {
    if (draw < likely.probability) return likely.value;
    draw -= likely.probability;
  }
  return decision.distribution.back().value;
}

// Issues steps on the one host, and lets the streams run them. A strand is a stream of its own.
class Issuing {
 public:
  Issuing(const Program& program, const FluidCosts& costs, const FluidMachine& machine,
          const FluidOptions& options)
      : program_(program),
        costs_(costs),
        machine_(machine),
        options_(options),
        code_(program),
        streams_(machine, options, lanes(code_), code_.num_events,
                 has_further() ? machine.start_ns : machine.run_ns),
        strands_(code_.strands.size()),
        rounds_(code_.num_rounds, 0),
        block_scales_(program.blocks.size(), 1),
        loops_(program.loops.size()),
        case_runs_(program.cases.size(), 0),
        num_issued_(code_.num_events, 0),
        unissued_(code_.num_events) {
    EDDY_CHECK(costs.launches.size() == program.launches.size() &&
               costs.loops.size() == program.loops.size() &&
               costs.cases.size() == program.cases.size())
        << "the costs are of another program";
    for (size_t s = 0; s < strands_.size(); ++s) strands_[s].at = code_.strands[s].first;
  }

  Result<FluidTimeline> run() {
    ready_.push_back(0);
    for (;;) {
      settle();
      if (streams_.is_over_limit()) {
        return resource_exhausted(
            fmt::format("the simulation takes more than {} steps", options_.max_steps));
      }
      const double next = std::min({streams_.next_ns(), host_until_, next_readback()});
      if (next == kNever) break;
      streams_.advance_to(next);
      if (host_until_ <= next) {
        host_until_ = kNever;
        EDDY_DCHECK(host_for_ != kNone) << "the host was at work for nobody";
        may_issue_ = host_for_;
        ready_.push_back(host_for_);
      }
      take_readbacks();
    }
    FluidTimeline& timeline = streams_.timeline();
    timeline.makespan_ns = streams_.now_ns();
    if (has_further() && timeline.makespan_ns > machine_.start_ns + machine_.caller_spin_ns) {
      timeline.makespan_ns += std::max(0.0, machine_.sleeping_start_ns - machine_.start_ns);
    }
    return std::move(timeline);
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  struct Strand {
    uint32_t at = 0;           // its next command
    double scale = 1;          // of all its times there
    bool is_awaiting = false;  // a decision
    double host_cost_ns = 0;   // of the command that it wants the host for
  };
  struct Loop {
    uint64_t num_runs = 0;
    uint64_t rounds_left = 0;
    double scale = 1;  // around it
  };

  static std::vector<uint32_t> lanes(const FluidCode& code) {
    std::vector<uint32_t> lanes;
    for (const FluidCode::Strand& strand : code.strands) lanes.push_back(strand.stream);
    return lanes;
  }
  bool has_further() const { return code_.strands.size() > 1; }

  double next_readback() const { return readbacks_.empty() ? kNever : readbacks_.begin()->first; }
  void take_readbacks() {
    for (; next_readback() <= streams_.now_ns(); readbacks_.erase(readbacks_.begin())) {
      EDDY_DCHECK(strands_[readbacks_.begin()->second].is_awaiting)
          << "strand " << readbacks_.begin()->second << " awaits no decision";
      strands_[readbacks_.begin()->second].is_awaiting = false;
      ready_.push_back(readbacks_.begin()->second);
    }
  }

  // All that happens at this instant.
  void settle() {
    for (;;) {
      while (!ready_.empty()) {
        const uint32_t strand = ready_.front();
        ready_.pop_front();
        issue(strand);
      }
      if (host_until_ == kNever && !wants_host_.empty()) {
        host_for_ = wants_host_.begin()->second;
        wants_host_.erase(wants_host_.begin());
        host_until_ = streams_.now_ns() + strands_[host_for_].host_cost_ns;
        streams_.timeline().host_busy_ns += strands_[host_for_].host_cost_ns;
      }
      streams_.settle();
      for (const uint32_t strand : streams_.take_decided()) {
        readbacks_.emplace(streams_.now_ns() + machine_.readback_ns * strands_[strand].scale,
                           strand);
      }
      take_readbacks();
      if (ready_.empty() && (host_until_ != kNever || wants_host_.empty())) return;
    }
  }

  // Issues for a strand until it needs the host, an event, a decision or its block's next round.
  void issue(uint32_t strand) {
    Strand& self = strands_[strand];
    while (!self.is_awaiting) {
      EDDY_DCHECK(self.at < code_.commands.size()) << "strand " << strand << " left its code";
      const Command& command = code_.commands[self.at];
      if (is_held(strand, command)) return;
      const double cost = host_cost(command) * self.scale;
      if (cost > 0 && may_issue_ != strand) {
        self.host_cost_ns = cost;
        wants_host_.emplace(command.position, strand);
        return;
      }
      may_issue_ = kNone;
      ++self.at;
      step(strand, command);
    }
  }

  uint64_t records_needed(const Command& wait) const {
    EDDY_DCHECK(wait.op == Op::kWait && wait.target < rounds_.size()) << "round of " << wait.target;
    const uint64_t round = rounds_[wait.target];
    return round > wait.lag ? round - wait.lag : 0;
  }
  uint64_t& round_of(uint32_t strand) { return rounds_[code_.strands[strand].round]; }

  // A driver's wait binds to a record that was issued before; a strand's waits for the event
  // itself.
  bool is_held(uint32_t strand, const Command& command) {
    if (command.op == Op::kEnd) return true;
    if (command.op == Op::kJoin) return round_of(strand) == rounds_[command.operand];
    if (command.op != Op::kWait || machine_.num_workers > 0) return false;
    if (records_needed(command) <= num_issued_[command.operand]) return false;
    unissued_[command.operand].push_back(strand);
    return true;
  }

  double host_cost(const Command& command) const {
    switch (command.op) {
      case Op::kLaunch:
        return machine_.host.launch_ns;
      case Op::kRecord:
        return machine_.host.record_ns;
      case Op::kWait:
        return records_needed(command) > 0 ? machine_.host.wait_ns : 0;
      case Op::kEnter:
        return costs_.loops[command.operand].enter.solo_ns > 0 ? machine_.host.launch_ns : 0;
      case Op::kAdvance:
        return costs_.loops[command.operand].advance.solo_ns > 0 ? machine_.host.launch_ns : 0;
      case Op::kTest:
      case Op::kSelect:
        return machine_.host.decision_ns;
      default:
        return 0;
    }
  }

  void step(uint32_t strand, const Command& command) {
    switch (command.op) {
      case Op::kLaunch:
        return work(strand, Kind::kWork, What::kKernel, command.operand,
                    costs_.launches[command.operand], machine_.stream.launch_ns,
                    machine_.latency_ns);
      case Op::kRecord:
        return record(strand, command.operand);
      case Op::kWait:
        return wait(strand, command);
      case Op::kBegin:
        return begin(strand, command.operand);
      case Op::kJoin:
        ++round_of(strand);
        strands_[strand].scale = block_scales_[command.operand];
        return;
      case Op::kRest:
        strands_[strand].at = command.target;
        return push(strand, {.kind = Kind::kRest});
      case Op::kJump:
        strands_[strand].at = command.target;
        return;
      case Op::kSelect:
      case Op::kFinish:
        return step_case(strand, command);
      default:
        return step_loop(strand, command);
    }
  }

  void push(uint32_t strand, FluidStep step) {
    step.scale = strands_[strand].scale;
    streams_.push(strand, step);
  }

  // Work or a decision; it begins `latency_ns` from now or later.
  void work(uint32_t strand, Kind kind, What what, uint32_t id, const FluidDemand& demand,
            double delay_ns = 0, double latency_ns = 0) {
    Strand& self = strands_[strand];
    push(strand, {.kind = kind,
                  .what = what,
                  .id = id,
                  .demand = &demand,
                  .delay_ns = delay_ns,
                  .earliest_ns = streams_.now_ns() + latency_ns * self.scale});
    self.is_awaiting = kind == Kind::kDecision;
  }
  void decide(uint32_t strand, What what, uint32_t id, const FluidDemand& demand) {
    work(strand, Kind::kDecision, what, id, demand, machine_.stream.decision_ns,
         machine_.latency_ns);
  }

  void record(uint32_t strand, uint32_t event) {
    push(strand, {.kind = Kind::kRecord, .event = event, .delay_ns = machine_.stream.record_ns});
    ++num_issued_[event];
    ready_.insert(ready_.end(), unissued_[event].begin(), unissued_[event].end());
    unissued_[event].clear();
  }

  void wait(uint32_t strand, const Command& command) {
    const uint64_t needed = records_needed(command);
    if (needed == 0) return;
    push(strand, {.kind = Kind::kWait,
                  .event = command.operand,
                  .needed = needed,
                  .delay_ns = machine_.stream.wait_ns});
  }

  void begin(uint32_t strand, uint32_t block) {
    EDDY_DCHECK(block < code_.further.size()) << "block " << block;
    ++rounds_[block];
    block_scales_[block] = strands_[strand].scale;
    const FluidCode::Further further = code_.further[block];
    for (uint32_t s = further.first; s < further.first + further.count; ++s) {
      if (code_.commands[strands_[s].at].op == Op::kJoin) ready_.push_back(s);
    }
  }

  void step_loop(uint32_t strand, const Command& command) {
    Strand& self = strands_[strand];
    Loop& loop = loops_[command.operand];
    const FluidCosts::Loop& costs = costs_.loops[command.operand];
    switch (command.op) {
      case Op::kEnter: {
        work(strand, Kind::kWork, What::kEnter, command.operand, costs.enter);
        const auto trips = static_cast<uint64_t>(
            decided(false, command.operand, costs.decision, costs.name, loop.num_runs++));
        EDDY_DCHECK(static_cast<int64_t>(trips) >= 0) << costs.name << " has negative trips";
        loop.rounds_left = std::min(trips, options_.max_rounds);
        loop.scale = self.scale;
        if (trips > loop.rounds_left) {
          self.scale *= static_cast<double>(trips) / static_cast<double>(loop.rounds_left);
        }
        return;
      }
      case Op::kTest:
        decide(strand, What::kTest, command.operand, costs.test);
        if (loop.rounds_left == 0) self.at = command.target;
        return;
      case Op::kAdvance:
        EDDY_DCHECK(loop.rounds_left > 0) << costs.name << " goes on behind its last round";
        work(strand, Kind::kWork, What::kAdvance, command.operand, costs.advance);
        self.at = command.target;
        if (--loop.rounds_left == 0) self.scale = loop.scale;
        return;
      default:
        return work(strand, Kind::kWork, What::kLeave, command.operand, costs.leave);
    }
  }

  void step_case(uint32_t strand, const Command& command) {
    const FluidCosts::Case& costs = costs_.cases[command.operand];
    if (command.op == Op::kFinish) {
      return work(strand, Kind::kWork, What::kFinish, command.operand, costs.finish);
    }
    decide(strand, What::kSelect, command.operand, costs.select);
    const int64_t value =
        decided(true, command.operand, costs.decision, costs.name, case_runs_[command.operand]++);
    const auto num_branches = static_cast<int64_t>(program_.cases[command.operand].blocks.size());
    const int64_t branch = value >= 0 && value < num_branches ? value : num_branches;
    strands_[strand].at = code_.targets[command.target + static_cast<size_t>(branch)];
  }

  int64_t decided(bool is_case, uint32_t id, const Decision& decision, const std::string& name,
                  uint64_t execution) const {
    if (options_.choose) return options_.choose(is_case, id, execution);
    return choose_value(decision, name, execution, options_);
  }

  static constexpr uint32_t kNone = UINT32_MAX;

  const Program& program_;
  const FluidCosts& costs_;
  const FluidMachine& machine_;
  const FluidOptions& options_;
  const FluidCode code_;
  FluidStreams streams_;
  std::vector<Strand> strands_;
  std::vector<uint64_t> rounds_;
  std::vector<double> block_scales_;  // of their latest rounds
  std::vector<Loop> loops_;
  std::vector<uint64_t> case_runs_;

  // By event: records so far, and strands that cannot go on issuing before another.
  std::vector<uint64_t> num_issued_;
  std::vector<std::vector<uint32_t>> unissued_;
  std::deque<uint32_t> ready_;                 // may be able to issue
  std::multimap<double, uint32_t> readbacks_;  // when the issuer has read a decision

  double host_until_ = kNever;  // the host is at work for host_for_
  uint32_t host_for_ = kNone;
  uint32_t may_issue_ = kNone;                          // whose next command the host has just done
  std::set<std::pair<uint32_t, uint32_t>> wants_host_;  // by place in the root's list
};

}  // namespace

Result<FluidTimeline> simulate_fluid(const Program& program, const FluidCosts& costs,
                                     const FluidMachine& machine, const FluidOptions& options) {
  EDDY_RETURN_IF_ERROR(check_fluid_costs(program, costs, machine));
  if (options.max_rounds == 0) return invalid_argument("max_rounds must be above 0");
  return Issuing(program, costs, machine, options).run();
}

}  // namespace eddy
