#include "runtime/virtual/virtual_command_buffer.h"

#include "graph/base/check.h"

namespace eddy {

VirtualCommandBuffer::VirtualCommandBuffer(VirtualEngine& engine) : engine_(engine) {}

VirtualCommandBuffer::~VirtualCommandBuffer() {
  auto guard = engine_.lock();
  for (Strand& strand : strands_) engine_.remove_lane(strand);
}

void VirtualCommandBuffer::finish() {
  CommandCode::finish();
  auto guard = engine_.lock();
  for (uint32_t i = 0; i < strand_entries().size(); ++i) {
    engine_.add_lane(strands_.emplace_back(*this, i));
  }
  events_.resize(num_events());
}

StrandState VirtualCommandBuffer::strand_state(uint32_t strand) const {
  return strands_[strand].state.load(std::memory_order_relaxed);
}

void VirtualCommandBuffer::start(RunControl& control) {
  EDDY_CHECK(is_finished()) << "launching a command buffer that is still being recorded";
  auto guard = engine_.lock();
  EDDY_CHECK(num_live_ == 0) << "a launch is still in progress";
  control_ = &control;
  for (BufferEvent& event : events_) event.is_done = false;
  Strand& main = strands_[0];
  main.counter = strand_entries()[0];
  main.state = StrandState::kQueued;
  num_live_ = 1;
  if (auto* watcher = engine_.watcher_or_null()) watcher->on_start(engine_.id(main));
  engine_.make_ready(main);
}

void VirtualCommandBuffer::skip_jumps(Strand& strand) {
  for (;;) {
    const Command& command = code()[strand.counter];
    if (command.op != Op::kJump && command.op != Op::kRepeat) return;
    strand.counter = command.target;
  }
}

// False when the run has stopped, or stops here.
bool VirtualCommandBuffer::may_go_on(Strand& strand) {
  if (!control_->is_stopped() && engine_.should_fail(FaultKind::kKillLane)) {
    control_->fail(
        device_lost("strand " + std::to_string(strand.index) + " died on the virtual device"),
        strand.index);
  }
  return !control_->is_stopped();
}

// long: a switch over all commands, as in the other interpreters.
void VirtualCommandBuffer::step(Strand& strand, Guard& guard) {
  if (engine_.is_lost()) control_->fail(engine_.health_here(), strand.index);
  strand.state = StrandState::kRunning;
  skip_jumps(strand);
  if (!may_go_on(strand)) return end_strand(strand, guard);
  const Command& command = code()[strand.counter];
  switch (command.op) {
    case Op::kLaunch:
      run_work(strand, command, guard);
      break;
    case Op::kTest:
    case Op::kSwitch:
      decide(strand, command, guard);
      break;
    case Op::kFork:
      fork(strand, command.target);
      ++strand.counter;
      break;
    case Op::kReset:
      reset_event(command.target);
      ++strand.counter;
      break;
    case Op::kRecord:
      record_event(strand, command.target);
      ++strand.counter;
      break;
    case Op::kWait:
      if (!wait_or_park(strand, command.target)) return;
      ++strand.counter;
      break;
    case Op::kEnd:
      return end_strand(strand, guard);
    case Op::kJump:
    case Op::kRepeat:
      break;  // skip_jumps has taken them
  }
  skip_jumps(strand);
  if (code()[strand.counter].op == Op::kEnd) return end_strand(strand, guard);
  engine_.make_ready(strand);
}

void VirtualCommandBuffer::run_work(Strand& strand, const Command& command, Guard& guard) {
  guard.unlock();
  const bool ok = engine_.run(strand, {.run = command.run, .context = command.context}) != 0;
  guard.lock();
  if (!ok) {
    control_->request_stop(StopReason::kFailed);
  } else {
    ++strand.counter;
  }
}

void VirtualCommandBuffer::decide(Strand& strand, const Command& command, Guard& guard) {
  guard.unlock();
  const int32_t decision =
      engine_.run(strand, {.decide = command.decide, .context = command.context});
  guard.lock();
  if (decision < 0) {
    control_->request_stop(StopReason::kFailed);
  } else if (command.op == Op::kSwitch) {
    const uint32_t entry = command.target + static_cast<uint32_t>(decision);
    EDDY_CHECK(entry < targets().size()) << "a case has no branch " << decision;
    strand.counter = targets()[entry];
  } else {
    strand.counter = decision != 0 ? strand.counter + 1 : command.target;
  }
}

void VirtualCommandBuffer::fork(Strand& parent, uint32_t index) {
  Strand& child = strands_[index];
  if (child.state != StrandState::kIdle) {
    engine_.add_violation("strand " + std::to_string(index) + " is forked while it lives");
    control_->fail(internal_error("a strand is forked while it lives"), parent.index);
    return;
  }
  child.counter = strand_entries()[index];
  child.state = StrandState::kQueued;
  ++num_live_;
  if (auto* watcher = engine_.watcher_or_null()) {
    watcher->on_fork(engine_.id(parent), engine_.id(child));
  }
  engine_.make_ready(child);
}

void VirtualCommandBuffer::reset_event(uint32_t index) {
  BufferEvent& event = events_[index];
  event.is_done = false;
  if (event.parked.empty()) return;
  engine_.add_violation("event " + std::to_string(index) + " is reset while strand " +
                        std::to_string(event.parked[0]->index) + " waits for it");
}

void VirtualCommandBuffer::record_event(Strand& strand, uint32_t index) {
  if (engine_.should_fail(FaultKind::kRecord)) {
    engine_.lose("the virtual device was told to refuse the record of event " +
                 std::to_string(index));
  }
  BufferEvent& event = events_[index];
  if (event.is_done) {
    engine_.add_violation("event " + std::to_string(index) + " is recorded twice in one round");
  }
  event.is_done = true;
  ++event.num_records;
  if (auto* watcher = engine_.watcher_or_null()) {
    watcher->on_record(engine_.id(strand), {&event, event.num_records});
  }
  for (Strand* parked : event.parked) engine_.make_ready(*parked);
  num_parked_ -= static_cast<uint32_t>(event.parked.size());
  event.parked.clear();
}

bool VirtualCommandBuffer::wait_or_park(Strand& strand, uint32_t index) {
  if (engine_.should_fail(FaultKind::kWait)) {
    engine_.lose("the virtual device was told to refuse a wait for event " + std::to_string(index));
  }
  BufferEvent& event = events_[index];
  if (event.is_done) {
    if (auto* watcher = engine_.watcher_or_null()) {
      watcher->on_wait(engine_.id(strand), {&event, event.num_records});
    }
    return true;
  }
  strand.state = StrandState::kWaitingForStrand;
  event.parked.push_back(&strand);
  ++num_parked_;
  if (engine_.is_lost()) wake_all();
  end_if_deadlocked();
  return false;
}

void VirtualCommandBuffer::wake_all() {
  for (BufferEvent& event : events_) {
    for (Strand* parked : event.parked) engine_.make_ready(*parked);
    event.parked.clear();
  }
  num_parked_ = 0;
}

void VirtualCommandBuffer::end_if_deadlocked() {
  if (num_live_ == 0 || num_parked_ < num_live_) return;
  std::string graph;
  for (const Strand& strand : strands_) {
    const std::string waits = describe(strand);
    if (!waits.empty()) graph += (graph.empty() ? "" : "; ") + waits;
  }
  engine_.add_violation("deadlock: " + graph);
  control_->fail(internal_error("the run can never end: " + graph));
  wake_all();
}

void VirtualCommandBuffer::end_strand(Strand& strand, Guard& guard) {
  strand.state = StrandState::kIdle;
  RunControl* control = control_;
  --num_live_;
  if (auto* watcher = engine_.watcher_or_null()) watcher->on_end(engine_.id(strand));
  if (control->is_stopped()) wake_all();
  end_if_deadlocked();
  const bool is_last = num_live_ == 0;
  guard.unlock();
  if (is_last && control->on_complete != nullptr) control->on_complete(control->context);
}

std::string VirtualCommandBuffer::recorder_of(uint32_t event) const {
  uint32_t recorder = UINT32_MAX;
  for (uint32_t at = 0; at < code().size(); ++at) {
    if (code()[at].op != Op::kRecord || code()[at].target != event) continue;
    recorder = 0;  // the nearest entry in front is the strand's own: forks are nested
    for (uint32_t s = 1; s < strand_entries().size(); ++s) {
      const bool is_nearer = recorder == 0 || strand_entries()[s] > strand_entries()[recorder];
      const uint32_t end = code()[strand_entries()[s] - 1].target;  // of the jump around the fork
      if (strand_entries()[s] <= at && at < end && is_nearer) recorder = s;
    }
  }
  if (recorder == UINT32_MAX) return "which nobody records";
  const StrandState state = strands_[recorder].state;
  return "which strand " + std::to_string(recorder) + " records" +
         (state == StrandState::kIdle ? ", but that one is not running" : "");
}

std::string VirtualCommandBuffer::describe(const Strand& strand) const {
  if (strand.state != StrandState::kWaitingForStrand) return "";
  const uint32_t event = code()[strand.counter].target;
  return "strand " + std::to_string(strand.index) + " waits for event " + std::to_string(event) +
         ", " + recorder_of(event);
}

}  // namespace eddy
