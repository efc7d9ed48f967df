#include "runtime/virtual/virtual_strands.h"

#include <utility>

#include "graph/base/check.h"

namespace eddy {

VirtualStrands::VirtualStrands(VirtualEngine& engine, const StrandCode& code,
                               const Bindings& bindings)
    : RunningStrands(code, bindings), engine_(engine) {
  auto guard = engine_.lock();
  for (uint32_t s = 0; s < num_strands(); ++s) engine_.add_lane(lanes_.emplace_back(*this, s));
}

VirtualStrands::~VirtualStrands() {
  auto guard = engine_.lock();
  for (Lane& lane : lanes_) engine_.remove_lane(lane);
}

void VirtualStrands::start(RunControl& control) {
  auto guard = engine_.lock();
  prepare(control);
  if (auto* watcher = engine_.watcher_or_null()) watcher->on_start(engine_.id(lanes_[0]));
  enqueue(0);
}

void VirtualStrands::enqueue(uint32_t strand) {
  set_state(strand, StrandState::kQueued);
  engine_.make_ready(lanes_[strand]);
}

void VirtualStrands::skip_jumps(uint32_t& at) const {
  EDDY_DCHECK(at < code_.commands.size()) << "command " << at << " of " << code_.commands.size();
  while (code_.commands[at].op == Op::kJump || code_.commands[at].op == Op::kRepeat) {
    at = code_.commands[at].target;
  }
}

// False when the run has stopped, or stops here.
bool VirtualStrands::may_go_on(uint32_t strand) {
  if (is_running() && engine_.should_fail(FaultKind::kKillLane)) {
    control().fail(device_lost("strand " + std::to_string(strand) + " died on the virtual device"),
                   strand);
  }
  return is_running();
}

int32_t VirtualStrands::run(uint32_t strand, const LaneWork& work, Guard& guard) {
  EDDY_DCHECK(guard.owns_lock()) << "strand " << strand << " moves without the engine's lock";
  guard.unlock();
  const int32_t answer = engine_.run(lanes_[strand], work);
  guard.lock();
  const bool has_failed = work.run != nullptr ? answer == 0 : answer < 0;
  if (has_failed) control().request_stop(StopReason::kFailed);
  return answer;
}

// Wherever the answer comes from: perhaps from inside a step.
void VirtualStrands::resume(uint32_t index, bool is_ok) {
  if (take_answer(index, is_ok)) engine_.wake(lanes_[index]);
}

bool VirtualStrands::start_in_lane(uint32_t index, uint32_t at, Guard& guard) {
  struct Call {
    VirtualStrands& owner;
    uint32_t strand;
    uint32_t at;
    bool goes_on = false;
    static bool run(void* call) {
      auto& self = *static_cast<Call*>(call);
      self.goes_on = self.owner.start_call(self.strand, self.at);
      return true;
    }
  } call{*this, index, at};
  run(index, {.run = Call::run, .context = &call}, guard);
  return call.goes_on;
}

void VirtualStrands::see_record(uint32_t strand, uint32_t index) {
  if (engine_.should_fail(FaultKind::kRecord)) {
    engine_.lose("the virtual device was told to refuse the record of event " +
                 std::to_string(index));
  }
  EDDY_DCHECK(code_.events[index].round != StrandCode::kNone)
      << "event " << index << " has no round";
  const uint32_t count = event(index).count() + 1;
  if (count > rounds()[code_.events[index].round]) {
    engine_.add_violation("event " + std::to_string(index) + " is recorded twice in one round");
  }
  if (auto* watcher = engine_.watcher_or_null()) {
    watcher->on_record(engine_.id(lanes_[strand]), point(index, count));
  }
}

bool VirtualStrands::wait(uint32_t strand, uint32_t at) {
  const Command& command = code_.commands[at];
  if (engine_.should_fail(FaultKind::kWait)) {
    engine_.lose("the virtual device was told to refuse a wait for event " +
                 std::to_string(command.operand));
  }
  const uint32_t count = wanted(command);
  const bool is_reached = event(command.operand).is_reached(count);
  if (auto* watcher = engine_.watcher_or_null(); is_reached && watcher != nullptr) {
    watcher->on_wait(engine_.id(lanes_[strand]), point(command.operand, count));
  }
  if (wait_or_park(strand, at)) return true;
  if (engine_.is_lost()) release_waits();
  end_if_deadlocked();
  return false;
}

struct VirtualStrands::Agent {
  VirtualStrands& owner;
  Guard& guard;
  const StrandCode& code;
  const Command* const commands;
  uint32_t* const rounds;

  const Binding& binding(uint32_t at) const { return owner.bindings_.calls[at]; }
  bool call(uint32_t strand, uint32_t& at) {
    const Binding& bound = binding(at);
    const LaneWork work{.run = bound.run, .context = bound.context};
    if (owner.run(strand, work, guard) != 0) ++at;
    return true;
  }
  bool start(uint32_t strand, uint32_t at) { return owner.start_in_lane(strand, at, guard); }
  int32_t decide(uint32_t strand, uint32_t at) {
    const Binding& bound = binding(at);
    return owner.run(strand, {.decide = bound.decide, .context = bound.context}, guard);
  }
  bool repeat(uint32_t, uint32_t) { return true; }
  bool wait(uint32_t strand, uint32_t at) { return owner.wait(strand, at); }
  bool record(uint32_t strand, uint32_t at) {
    owner.see_record(strand, commands[at].operand);
    owner.record(commands[at].operand);
    return true;
  }
  bool rest(uint32_t strand, uint32_t at) {
    owner.see_record(strand, commands[at].operand);
    return owner.rest(strand, at);
  }
  bool end(uint32_t strand) {
    owner.end(strand);
    return false;
  }
};

void VirtualStrands::step(uint32_t index, Guard& guard) {
  EDDY_DCHECK(guard.owns_lock()) << "strand " << index << " moves without the engine's lock";
  EDDY_DCHECK(completed_or_null_ == nullptr) << "strand " << index << " moves after the run's end";
  if (engine_.is_lost()) control().fail(engine_.health_here(), index);
  set_state(index, StrandState::kRunning);
  uint32_t at = strand(index).at;
  Agent agent{*this, guard, code_, code_.commands.data(), rounds()};
  skip_jumps(at);
  if (!may_go_on(index)) {
    end(index);
  } else if (run_command(agent, index, at)) {
    skip_jumps(at);
    if (code_.commands[at].op == Op::kEnd) {
      end(index);
    } else {
      strand(index).at = at;
      engine_.make_ready(lanes_[index]);
    }
  }
  RunControl* const completed = std::exchange(completed_or_null_, nullptr);
  if (completed == nullptr) return;
  guard.unlock();
  RunningStrands::complete(*completed);
}

void VirtualStrands::end(uint32_t strand) {
  auto* const watcher = engine_.watcher_or_null();
  if (watcher != nullptr && is_running()) watcher->on_end(engine_.id(lanes_[strand]));
  end_strand(strand);
  end_if_deadlocked();
}

// What is stopped ends in no order, but each strand with its last command.
void VirtualStrands::complete(RunControl& control) {
  EDDY_DCHECK(completed_or_null_ == nullptr) << "a run ends twice";
  completed_or_null_ = &control;
  DeviceWatcher* const watcher = engine_.watcher_or_null();
  if (!control.is_stopped() || watcher == nullptr) return;
  for (const Lane& lane : lanes_) watcher->on_end(engine_.id(lane));
}

void VirtualStrands::end_if_deadlocked() {
  uint32_t num_parked = 0;
  std::string graph;
  for (uint32_t s = 0; s < num_strands(); ++s) {
    const std::string waits = describe(s);
    if (waits.empty()) continue;
    ++num_parked;
    graph += (graph.empty() ? "" : "; ") + waits;
  }
  if (num_live() == 0 || num_parked < num_live()) return;
  engine_.add_violation("deadlock: " + graph);
  control().fail(internal_error("the run can never end: " + graph));
  release_waits();
}

std::string VirtualStrands::describe(uint32_t index) const {
  if (strand_state(index) != StrandState::kWaitingForStrand) return "";
  const uint32_t event = code_.commands[strand(index).at].operand;
  const uint32_t recorder = code_.events[event].strand;
  std::string text =
      "strand " + std::to_string(index) + " waits for event " + std::to_string(event);
  if (recorder == StrandCode::kNone) return text + ", which nobody records";
  text += ", which strand " + std::to_string(recorder) + " records";
  return strand_state(recorder) == StrandState::kIdle ? text + ", but that one is not running"
                                                      : text;
}

}  // namespace eddy
