#include "graph/simulate/fluid_model.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "graph/simulate/fluid_frames.h"
#include "graph/simulate/fluid_streams.h"

namespace eddy {
namespace {

constexpr uint32_t kNone = kNoInstance;
using What = FluidSpan::What;

using Frame = FluidFrame;

// Issues commands on the one host, and lets the streams run them.
class Issuing {
 public:
  Issuing(const FluidProgram& program, const FluidMachine& machine, const FluidOptions& options)
      : program_(program),
        machine_(machine),
        options_(options),
        lists_(program),
        streams_(machine, options),
        loop_runs_(program.loops.size(), 0),
        case_runs_(program.cases.size(), 0) {
    for (const FluidRegion& region : program.regions) {
      has_forks_ |= region.num_streams > 1;
    }
  }

  Result<FluidTimeline> run() {
    const uint32_t root = streams_.add_stream();
    issuer(root) = {};
    streams_.start(root, has_forks_ ? machine_.start_ns : machine_.run_ns);
    enter_region(root, 0, 1);
    ready_.push_back(root);
    for (;;) {
      settle();
      if (streams_.is_over_limit()) {
        return resource_exhausted(
            fmt::format("the simulation takes more than {} steps", options_.max_steps));
      }
      const double next = std::min({streams_.next_ns(), host_until_, next_told()});
      if (next == kNever) break;
      streams_.advance_to(next);
      if (host_until_ <= next) {
        host_until_ = kNever;
        may_issue_ = host_for_;
        ready_.push_back(host_for_);
      }
      for (; !told_.empty() && told_.begin()->first <= next; told_.erase(told_.begin())) {
        ready_.push_back(told_.begin()->second);
      }
    }
    FluidTimeline& timeline = streams_.timeline();
    timeline.makespan_ns = streams_.now_ns();
    if (has_forks_ && timeline.makespan_ns > machine_.start_ns + machine_.caller_spin_ns) {
      timeline.makespan_ns += std::max(0.0, machine_.sleeping_start_ns - machine_.start_ns);
    }
    return std::move(timeline);
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  struct Issuer {
    std::vector<Frame> frames;
    uint32_t root_position = 0;  // of the root's command that it is at, or inside
    bool is_awaiting = false;    // a decision
  };
  // An event that is not yet issued, and who cannot go on issuing before.
  struct Unissued {
    std::set<uint32_t> issued;
    std::map<uint32_t, std::vector<uint32_t>> waiting;
  };

  Issuer& issuer(uint32_t stream) {
    if (stream >= issuers_.size()) issuers_.resize(stream + 1);
    return issuers_[stream];
  }

  double next_told() const { return told_.empty() ? kNever : told_.begin()->first; }

  // All that happens at this instant.
  void settle() {
    for (;;) {
      while (!ready_.empty()) {
        const uint32_t stream = ready_.front();
        ready_.pop_front();
        issue(stream);
      }
      if (host_until_ == kNever && !wants_host_.empty()) {
        const auto [position, stream] = *wants_host_.begin();
        wants_host_.erase(wants_host_.begin());
        host_for_ = stream;
        host_until_ = streams_.now_ns() + host_cost_[stream];
        streams_.timeline().host_busy_ns += host_cost_[stream];
      }
      streams_.settle();
      for (const uint32_t stream : streams_.take_decided()) {
        const double scale = issuer(stream).frames.back().scale;
        issuer(stream).is_awaiting = false;
        told_.emplace(streams_.now_ns() + machine_.readback_ns * scale, stream);
      }
      for (; !told_.empty() && told_.begin()->first <= streams_.now_ns();
           told_.erase(told_.begin())) {
        ready_.push_back(told_.begin()->second);
      }
      if (ready_.empty() && (host_until_ != kNever || wants_host_.empty())) return;
    }
  }

  // Issues for a stream until it needs the host, an event or a decision.
  void issue(uint32_t stream) {
    while (!issuer(stream).frames.empty() && !issuer(stream).is_awaiting) {
      Issuer& self = issuer(stream);
      const Frame& frame = self.frames.back();
      if (frame.kind == Frame::Kind::kRegion && frame.id == 0)
        self.root_position = lists_.position(frame);
      if (must_wait_for_issue(stream)) return;
      const double cost = lists_.host_cost(frame, machine_.host) * frame.scale;
      if (cost > 0 && may_issue_ != stream) {
        if (stream >= host_cost_.size()) host_cost_.resize(stream + 1);
        host_cost_[stream] = cost;
        wants_host_.emplace(self.root_position, stream);
        return;
      }
      may_issue_ = kNone;
      step(stream);
    }
  }

  // A driver's wait binds to a record that was issued before; a strand's waits for the event
  // itself.
  bool must_wait_for_issue(uint32_t stream) {
    if (machine_.num_workers > 0) return false;
    const FluidWait wait = lists_.next_wait(issuer(stream).frames.back());
    if (!wait) return false;
    Unissued& events = unissued_[wait.instance];
    if (events.issued.contains(wait.event)) return false;
    events.waiting[wait.event].push_back(stream);
    return true;
  }

  void step(uint32_t stream) {
    switch (issuer(stream).frames.back().kind) {
      case Frame::Kind::kRegion:
        return step_region(stream);
      case Frame::Kind::kLoop:
        return step_loop(stream);
      case Frame::Kind::kCase:
        return step_case(stream);
    }
  }

  void enter_region(uint32_t stream, uint32_t id, double scale) {
    const FluidRegion& region = program_.regions[id];
    Frame frame{.kind = Frame::Kind::kRegion, .id = id, .scale = scale};
    if (region.is_open) {
      frame.previous = issuer(stream).frames.back().previous;
      frame.stale = issuer(stream).frames.back().stale;
    }
    if (region.num_streams > 1) {
      frame.instance = streams_.add_instance(num_instance_events(region));
      unissued_[frame.instance] = {};
    }
    frame.is_entering = frame.previous != kNone;
    issuer(stream).frames.push_back(frame);
    if (!frame.is_entering) fork_streams(stream, frame);
  }

  void fork_streams(uint32_t stream, const Frame& frame) {
    const FluidRegion& region = program_.regions[frame.id];
    const uint32_t root_position = issuer(stream).root_position;
    for (uint32_t s = 1; s < region.num_streams; ++s) {
      Frame further = frame;
      further.stream = s;
      further.is_entering = region.is_open;
      further.entered = frame.previous == kNone ? 1 : 0;
      const uint32_t child = streams_.add_stream();
      issuer(child) = {{further}, root_position, false};
      FluidStep fork = make_step(FluidStep::Kind::kFork, frame);
      fork.target = child;
      fork.delay_ns = machine_.stream.fork_ns;
      streams_.push(stream, fork);
      ready_.push_back(child);
    }
  }

  // One step on the way into an open region.
  void step_entry(uint32_t stream) {
    Frame& frame = issuer(stream).frames.back();
    const FluidRegion& region = program_.regions[frame.id];
    if (const FluidWait awaited = lists_.next_wait(frame)) {
      ++frame.entered;
      return wait(stream, frame, awaited);
    }
    frame.is_entering = false;
    if (frame.stream > 0) {
      return record(stream, frame, begun_event(region, frame.stream), machine_.stream.record_ns);
    }
    // All have begun in the last iteration, so nobody is in the one before it.
    leave_instance(stream, frame.stale);
    fork_streams(stream, frame);
  }

  FluidStep make_step(FluidStep::Kind kind, const Frame& frame) const {
    FluidStep step;
    step.kind = kind;
    step.instance = frame.instance;
    step.scale = frame.scale;
    if (frame.kind == Frame::Kind::kRegion) {
      const std::vector<uint32_t>& lanes = program_.regions[frame.id].lanes;
      step.lane = lanes.empty() ? frame.stream : lanes[frame.stream];
    }
    return step;
  }

  // Of a control node, in the stream of the region around it.
  void push_control(uint32_t stream, FluidStep::Kind kind, What what, uint32_t id,
                    const FluidDemand& demand, double scale) {
    const std::vector<Frame>& frames = issuer(stream).frames;
    const auto around = std::find_if(frames.rbegin(), frames.rend(), [](const Frame& frame) {
      return frame.kind == Frame::Kind::kRegion;
    });
    FluidStep step = make_step(kind, *around);
    step.what = what;
    step.id = id;
    step.demand = &demand;
    step.scale = scale;
    if (kind == FluidStep::Kind::kDecision) {
      step.delay_ns = machine_.stream.decision_ns;
      step.earliest_ns = streams_.now_ns() + machine_.latency_ns * scale;
      issuer(stream).is_awaiting = true;
    }
    streams_.push(stream, step);
  }

  void step_region(uint32_t stream) {
    Frame& frame = issuer(stream).frames.back();
    const auto& list = lists_.of(frame);
    if (frame.is_entering) return step_entry(stream);
    if (frame.at >= list.size()) return end_region(stream);
    const FluidWait awaited = lists_.next_wait(frame);
    const Program::Step command = list[frame.at++].command;
    switch (command.op) {
      case Program::Op::kLaunch: {
        FluidStep step = make_step(FluidStep::Kind::kWork, frame);
        step.id = command.operand;
        step.demand = &program_.kernels[command.operand];
        step.delay_ns = machine_.stream.launch_ns;
        step.earliest_ns = streams_.now_ns() + machine_.latency_ns * frame.scale;
        return streams_.push(stream, step);
      }
      case Program::Op::kRecord:
        return record(stream, frame, command.operand, machine_.stream.record_ns);
      case Program::Op::kWait:
      case Program::Op::kWaitPrevious:
        return wait(stream, frame, awaited);
      case Program::Op::kLoop:
        issuer(stream).frames.push_back(
            {.kind = Frame::Kind::kLoop, .id = command.operand, .scale = frame.scale});
        return;
      case Program::Op::kCase:
        issuer(stream).frames.push_back(
            {.kind = Frame::Kind::kCase, .id = command.operand, .scale = frame.scale});
        return;
      default:
        return;
    }
  }

  void record(uint32_t stream, const Frame& frame, uint32_t event, double delay_ns) {
    if (frame.instance == kNone) return;  // nobody else is there to wait
    FluidStep step = make_step(FluidStep::Kind::kRecord, frame);
    step.target = event;
    step.delay_ns = delay_ns;
    streams_.push(stream, step);
    Unissued& events = unissued_[frame.instance];
    events.issued.insert(event);
    const auto waiting = events.waiting.find(event);
    if (waiting == events.waiting.end()) return;
    ready_.insert(ready_.end(), waiting->second.begin(), waiting->second.end());
    events.waiting.erase(waiting);
  }

  void wait(uint32_t stream, const Frame& frame, const FluidWait& awaited) {
    if (!awaited) return;
    FluidStep step = make_step(FluidStep::Kind::kWait, frame);
    step.instance = awaited.instance;
    step.target = awaited.event;
    step.delay_ns = machine_.stream.wait_ns;
    streams_.push(stream, step);
  }

  // Nobody will look at its events again.
  void leave_instance(uint32_t stream, uint32_t instance) {
    if (instance == kNone) return;
    FluidStep step = make_step(FluidStep::Kind::kLeave, issuer(stream).frames.back());
    step.instance = instance;
    streams_.push(stream, step);
  }

  // A further stream says that it has ended; stream 0 waits for all of them, then goes on.
  void end_region(uint32_t stream) {
    Frame& frame = issuer(stream).frames.back();
    const FluidRegion& region = program_.regions[frame.id];
    if (frame.stream > 0) {
      record(stream, frame, end_event(region, frame.stream), machine_.stream.record_ns);
      streams_.push(stream, make_step(FluidStep::Kind::kEnd, frame));
      issuer(stream).frames.clear();
      return;
    }
    if (const FluidWait join = lists_.next_wait(frame)) {
      wait(stream, frame, join);
      ++frame.at;
      return;
    }
    if (region.is_open) {
      const Frame left = frame;
      issuer(stream).frames.pop_back();
      issuer(stream).frames.back().previous = left.instance;
      issuer(stream).frames.back().stale = left.previous;
      return;
    }
    leave_instance(stream, frame.instance);
    issuer(stream).frames.pop_back();
  }

  void step_loop(uint32_t stream) {
    Frame& frame = issuer(stream).frames.back();
    const uint32_t id = frame.id;
    const FluidLoop& loop = program_.loops[id];
    const bool is_last = frame.rounds_left == 0;
    const double scale = is_last ? frame.scale : frame.scale * frame.round_scale;
    switch (frame.phase) {
      case kLoopEnter: {
        const uint64_t execution = loop_runs_[id]++;
        const int64_t trips = options_.choose
                                  ? options_.choose(false, id, execution)
                                  : choose_value(loop.decision, loop.name, execution, options_);
        frame.rounds_left = std::min(static_cast<uint64_t>(trips), options_.max_rounds);
        if (frame.rounds_left > 0) {
          frame.round_scale = static_cast<double>(trips) / static_cast<double>(frame.rounds_left);
        }
        frame.phase = kLoopRound;
        return push_control(stream, FluidStep::Kind::kWork, What::kEnter, id, loop.enter,
                            frame.scale);
      }
      case kLoopRound:
        frame.phase = kLoopTest;
        return enter_region(stream, loop.before, scale);
      case kLoopTest:
        frame.phase = kLoopTested;
        return push_control(stream, FluidStep::Kind::kDecision, What::kTest, id, loop.test, scale);
      case kLoopTested:
        if (is_last) {
          frame.phase = kLoopTails;
          return;
        }
        frame.phase = kLoopAdvance;
        return enter_region(stream, loop.after, scale);
      case kLoopTails:
        return leave_loop(stream, frame);
      default:
        frame.phase = kLoopRound;
        --frame.rounds_left;
        return push_control(stream, FluidStep::Kind::kWork, What::kAdvance, id, loop.advance,
                            scale);
    }
  }

  // Behind all further streams of an open loop.
  void leave_loop(uint32_t stream, Frame& frame) {
    if (const FluidWait tail = lists_.next_wait(frame)) {
      ++frame.entered;
      return wait(stream, frame, tail);
    }
    leave_instance(stream, frame.stale);
    leave_instance(stream, frame.previous);
    const FluidLoop& loop = program_.loops[frame.id];
    push_control(stream, FluidStep::Kind::kWork, What::kLeave, frame.id, loop.leave, frame.scale);
    issuer(stream).frames.pop_back();
  }

  void step_case(uint32_t stream) {
    Frame& frame = issuer(stream).frames.back();
    const uint32_t id = frame.id;
    const double scale = frame.scale;
    const FluidCase& branch = program_.cases[id];
    switch (frame.phase++) {
      case 0: {
        const uint64_t execution = case_runs_[id]++;
        frame.value = options_.choose
                          ? options_.choose(true, id, execution)
                          : choose_value(branch.decision, branch.name, execution, options_);
        return push_control(stream, FluidStep::Kind::kDecision, What::kSelect, id, branch.select,
                            scale);
      }
      case 1: {
        const bool is_branch =
            frame.value >= 0 && frame.value < static_cast<int64_t>(branch.regions.size());
        if (is_branch)
          enter_region(stream, branch.regions[static_cast<size_t>(frame.value)], scale);
        return;
      }
      default:
        push_control(stream, FluidStep::Kind::kWork, What::kFinish, id, branch.finish, scale);
        issuer(stream).frames.pop_back();
    }
  }

  const FluidProgram& program_;
  const FluidMachine& machine_;
  const FluidOptions& options_;
  const FluidLists lists_;
  bool has_forks_ = false;
  FluidStreams streams_;
  std::vector<uint64_t> loop_runs_;
  std::vector<uint64_t> case_runs_;

  std::deque<Issuer> issuers_;             // by stream; references stay good
  std::map<uint32_t, Unissued> unissued_;  // by instance
  std::deque<uint32_t> ready_;             // may be able to issue
  std::multimap<double, uint32_t> told_;   // when a decision is known to whoever issues

  double host_until_ = kNever;  // the host is at work for host_for_
  uint32_t host_for_ = kNone;
  uint32_t may_issue_ = kNone;  // whose next command the host has just done
  std::vector<double> host_cost_;
  std::set<std::pair<uint32_t, uint32_t>> wants_host_;  // by place in the root's list
};

}  // namespace

Result<FluidTimeline> simulate_fluid(const FluidProgram& program, const FluidMachine& machine,
                                     const FluidOptions& options) {
  EDDY_RETURN_IF_ERROR(check_fluid_program(program, machine));
  if (options.max_rounds == 0) return invalid_argument("max_rounds must be above 0");
  return Issuing(program, machine, options).run();
}

}  // namespace eddy
