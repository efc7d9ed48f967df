#include "graph/simulate/fluid_model.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "graph/base/random.h"
#include "graph/simulate/fluid_streams.h"

namespace eddy {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
using What = FluidSpan::What;

struct StreamCommand {
  FluidCommand command;
  uint32_t position;  // in its region's list
};

// What a stream's issuer is in the middle of: a region's list, a loop or a case.
struct Frame {
  enum class Kind : uint8_t { kRegion, kLoop, kCase };
  Kind kind = Kind::kRegion;
  uint32_t id = 0;
  double scale = 1;
  uint32_t stream = 0;        // kRegion: of the region
  uint32_t instance = kNone;  // kRegion, where it has several streams
  uint32_t at = 0;            // kRegion: the next command; beyond them, the next end to wait for
  uint32_t phase = 0;         // kLoop, kCase
  uint64_t rounds_left = 0;   // kLoop
  double round_scale = 1;     // kLoop: of each of them
  int64_t value = 0;          // kCase
};

// Issues commands on the one host, and lets the streams run them.
class Issuing {
 public:
  Issuing(const FluidProgram& program, const FluidMachine& machine, const FluidOptions& options)
      : program_(program),
        machine_(machine),
        options_(options),
        streams_(machine, options),
        loop_runs_(program.loops.size(), 0),
        case_runs_(program.cases.size(), 0) {
    for (const FluidRegion& region : program.regions) {
      auto& lists = lists_.emplace_back(region.num_streams);
      for (uint32_t i = 0; i < region.commands.size(); ++i) {
        lists[region.commands[i].stream].push_back({region.commands[i], i});
      }
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
      if (frame.kind == Frame::Kind::kRegion && frame.id == 0) self.root_position = position(frame);
      if (must_wait_for_issue(stream)) return;
      const double cost = host_cost(frame) * frame.scale;
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

  uint32_t position(const Frame& frame) const {
    const auto& list = lists_[frame.id][frame.stream];
    return frame.at < list.size() ? list[frame.at].position : kNone;
  }

  // A driver's wait binds to a record that was issued before; a strand's waits for the event
  // itself.
  bool must_wait_for_issue(uint32_t stream) {
    if (machine_.num_workers > 0) return false;
    const Frame& frame = issuer(stream).frames.back();
    if (frame.kind != Frame::Kind::kRegion || frame.instance == kNone) return false;
    const auto& list = lists_[frame.id][frame.stream];
    uint32_t event = kNone;
    if (frame.at < list.size()) {
      if (list[frame.at].command.kind == FluidCommand::Kind::kWait)
        event = list[frame.at].command.id;
    } else if (frame.stream == 0 && joins_left(frame) > 0) {
      event = join_event(frame);
    }
    if (event == kNone) return false;
    Unissued& events = unissued_[frame.instance];
    if (events.issued.contains(event)) return false;
    events.waiting[event].push_back(stream);
    return true;
  }

  uint32_t joins_left(const Frame& frame) const {
    const auto done = static_cast<uint32_t>(frame.at - lists_[frame.id][0].size());
    return program_.regions[frame.id].num_streams - 1 - done;
  }
  // Of the further stream whose end comes next.
  uint32_t join_event(const Frame& frame) const {
    const FluidRegion& region = program_.regions[frame.id];
    return region.num_events + region.num_streams - joins_left(frame);
  }

  double host_cost(const Frame& frame) const {
    const FluidMachine::Costs& host = machine_.host;
    if (frame.kind == Frame::Kind::kLoop) {
      const FluidLoop& loop = program_.loops[frame.id];
      if (frame.phase == kLoopTest) return host.decision_ns;
      const bool launches = (frame.phase == kLoopAdvance && loop.advance.solo_ns > 0) ||
                            (frame.phase == kLoopEnter && loop.enter.solo_ns > 0);
      return launches ? host.launch_ns : 0;
    }
    if (frame.kind == Frame::Kind::kCase) return frame.phase == 0 ? host.decision_ns : 0;
    const auto& list = lists_[frame.id][frame.stream];
    if (frame.at >= list.size())
      return frame.stream == 0 && joins_left(frame) > 0 ? host.wait_ns : 0;
    switch (list[frame.at].command.kind) {
      case FluidCommand::Kind::kLaunch:
        return host.launch_ns;
      case FluidCommand::Kind::kRecord:
        return host.record_ns;
      case FluidCommand::Kind::kWait:
        return host.wait_ns;
      default:
        return 0;
    }
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
    if (region.num_streams > 1) {
      frame.instance = streams_.add_instance(region.num_events + region.num_streams);
      unissued_[frame.instance] = {};
    }
    for (uint32_t s = 1; s < region.num_streams; ++s) {
      Frame further = frame;
      further.stream = s;
      const uint32_t child = streams_.add_stream();
      const uint32_t root_position = issuer(stream).root_position;
      issuer(child) = {{further}, root_position, false};
      FluidStep fork = make_step(FluidStep::Kind::kFork, frame);
      fork.target = child;
      fork.delay_ns = machine_.stream.fork_ns;
      streams_.push(stream, fork);
      ready_.push_back(child);
    }
    issuer(stream).frames.push_back(frame);
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
    const auto& list = lists_[frame.id][frame.stream];
    if (frame.at >= list.size()) return end_region(stream);
    const FluidCommand command = list[frame.at++].command;
    switch (command.kind) {
      case FluidCommand::Kind::kLaunch: {
        FluidStep step = make_step(FluidStep::Kind::kWork, frame);
        step.id = command.id;
        step.demand = &program_.kernels[command.id];
        step.delay_ns = machine_.stream.launch_ns;
        step.earliest_ns = streams_.now_ns() + machine_.latency_ns * frame.scale;
        return streams_.push(stream, step);
      }
      case FluidCommand::Kind::kRecord:
        return record(stream, frame, command.id, machine_.stream.record_ns);
      case FluidCommand::Kind::kWait:
        return wait(stream, frame, command.id);
      case FluidCommand::Kind::kLoop:
        issuer(stream).frames.push_back(
            {.kind = Frame::Kind::kLoop, .id = command.id, .scale = frame.scale});
        return;
      case FluidCommand::Kind::kCase:
        issuer(stream).frames.push_back(
            {.kind = Frame::Kind::kCase, .id = command.id, .scale = frame.scale});
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

  void wait(uint32_t stream, const Frame& frame, uint32_t event) {
    if (frame.instance == kNone) return;
    FluidStep step = make_step(FluidStep::Kind::kWait, frame);
    step.target = event;
    step.delay_ns = machine_.stream.wait_ns;
    streams_.push(stream, step);
  }

  // A further stream says that it has ended; stream 0 waits for all of them, then goes on.
  void end_region(uint32_t stream) {
    Frame& frame = issuer(stream).frames.back();
    const FluidRegion& region = program_.regions[frame.id];
    if (frame.stream > 0) {
      record(stream, frame, region.num_events + frame.stream, machine_.stream.record_ns);
      streams_.push(stream, make_step(FluidStep::Kind::kEnd, frame));
      issuer(stream).frames.clear();
      return;
    }
    if (joins_left(frame) > 0) {
      wait(stream, frame, join_event(frame));
      ++frame.at;
      return;
    }
    if (frame.instance != kNone) {
      streams_.push(stream, make_step(FluidStep::Kind::kLeave, frame));
    }
    issuer(stream).frames.pop_back();
  }

  static constexpr uint32_t kLoopEnter = 0, kLoopRound = 1, kLoopTest = 2, kLoopTested = 3,
                            kLoopAdvance = 4;

  void step_loop(uint32_t stream) {
    Frame& frame = issuer(stream).frames.back();
    const uint32_t id = frame.id;
    const FluidLoop& loop = program_.loops[id];
    const bool is_last = frame.rounds_left == 0;
    const double scale = is_last ? frame.scale : frame.scale * frame.round_scale;
    switch (frame.phase) {
      case kLoopEnter: {
        const int64_t trips = choose(loop.decision, loop.name, loop_runs_[id]++);
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
          push_control(stream, FluidStep::Kind::kWork, What::kLeave, id, loop.leave, frame.scale);
          issuer(stream).frames.pop_back();
          return;
        }
        frame.phase = kLoopAdvance;
        return enter_region(stream, loop.after, scale);
      default:
        frame.phase = kLoopRound;
        --frame.rounds_left;
        return push_control(stream, FluidStep::Kind::kWork, What::kAdvance, id, loop.advance,
                            scale);
    }
  }

  void step_case(uint32_t stream) {
    Frame& frame = issuer(stream).frames.back();
    const uint32_t id = frame.id;
    const double scale = frame.scale;
    const FluidCase& branch = program_.cases[id];
    switch (frame.phase++) {
      case 0:
        frame.value = choose(branch.decision, branch.name, case_runs_[id]++);
        return push_control(stream, FluidStep::Kind::kDecision, What::kSelect, id, branch.select,
                            scale);
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

  // Depends on seed, sample, name and execution only.
  int64_t choose(const Decision& decision, const std::string& name, uint64_t execution) const {
    if (!decision.trace.empty()) return decision.trace[execution % decision.trace.size()];
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    uint64_t seed = options_.seed;
    for (const uint64_t part : {options_.sample, hash, execution})
      seed = Random(seed ^ part).next();
    double draw = Random(seed).uniform();
    for (const Decision::Likely& likely : decision.distribution) {
      if (draw < likely.probability) return likely.value;
      draw -= likely.probability;
    }
    return decision.distribution.back().value;
  }

  const FluidProgram& program_;
  const FluidMachine& machine_;
  const FluidOptions& options_;
  std::vector<std::vector<std::vector<StreamCommand>>> lists_;  // by region and stream
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
