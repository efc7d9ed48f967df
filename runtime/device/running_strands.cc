#include "runtime/device/running_strands.h"

#include "graph/base/check.h"

namespace eddy {

RunningStrands::RunningStrands(const StrandCode& code, const Bindings& bindings)
    : code_(code), bindings_(bindings), rounds_(code.rounds.size(), 0) {
  EDDY_CHECK(bindings.calls.size() == code.commands.size()) << "commands and bindings differ";
  EDDY_CHECK(bindings.notes.empty() || bindings.notes.size() == code.commands.size())
      << "commands and notes differ";
  EDDY_CHECK(!code.strands.empty() && code.strands[0].round == StrandCode::kNone)
      << "the main strand is missing, or has rounds";
  strands_ = std::make_unique<Strand[]>(code.strands.size());
  events_ = std::make_unique<StrandEvent[]>(code.events.size());
}

void RunningStrands::set_back() {
  is_spoilt_.store(false, std::memory_order_relaxed);
  for (size_t i = 0; i < code_.events.size(); ++i) events_[i].reset();
  for (uint32_t& round : rounds_) round = 0;
  for (uint32_t s = 1; s < num_strands(); ++s) {
    set_state(s, StrandState::kIdle);
    strands_[s].at = code_.strands[s].first;
    EDDY_CHECK(code_.strands[s].round < rounds_.size()) << "strand " << s << " counts no rounds";
    rounds_[code_.strands[s].round] = 1;
    park_at_rest(s);
  }
}

// Where its first round begins.
void RunningStrands::park_at_rest(uint32_t index) {
  Strand& strand = strands_[index];
  const Command& first = code_.commands[strand.at];
  strand.rests = true;
  const bool goes_on = events_[first.operand].wait_or_park(wanted(first), index, strand.next);
  EDDY_CHECK(!goes_on) << "strand " << index << " has nothing to wait for";
}

void RunningStrands::prepare(RunControl& control) {
  EDDY_CHECK(num_live() == 0) << "a run is still in progress";
  control_ = &control;
  if (is_spoilt_.load(std::memory_order_relaxed)) set_back();
  strands_[0].at = code_.strands[0].first;
  num_live_.store(1, std::memory_order_relaxed);
}

void RunningStrands::wake(uint32_t list) {
  while (list != StrandEvent::kNobody) {
    EDDY_DCHECK(list < num_strands()) << "strand " << list << " of " << num_strands();
    Strand& strand = strands_[list];
    const uint32_t next = strand.next;  // read first: once enqueued, the strand is another thread's
    if (strand.rests) {
      strand.rests = false;
      num_live_.fetch_add(1, std::memory_order_relaxed);
    }
    enqueue(list);
    list = next;
  }
}

bool RunningStrands::wait_or_park(uint32_t index, uint32_t at) {
  const Command& command = code_.commands[at];
  StrandEvent& event = events_[command.operand];
  const uint32_t count = wanted(command);
  if (event.is_reached(count)) return true;
  Strand& strand = strands_[index];
  strand.at = at;
  // Said before: once on the event's list, the strand is the recorder's.
  set_state(index, StrandState::kWaitingForStrand);
  if (!event.wait_or_park(count, index, strand.next)) return false;
  set_state(index, StrandState::kRunning);
  return true;
}

// It is counted until it leaves, so that the run, and all this, is not over before; and from where
// it rests another thread may execute it at once.
bool RunningStrands::rest(uint32_t index, uint32_t at) {
  EDDY_DCHECK(index != 0) << "the main strand ends and does not rest";
  const Command& command = code_.commands[at];
  EDDY_DCHECK(command.op == Op::kRest && command.target == code_.strands[index].round)
      << "strand " << index << " ends a round that is not its own";
  RunControl& control = *control_;
  Strand& strand = strands_[index];
  record(command.operand);
  strand.at = code_.strands[index].first;
  ++rounds_[command.target];
  strand.rests = true;
  set_state(index, StrandState::kIdle);
  const Command& first = code_.commands[strand.at];
  if (!events_[first.operand].wait_or_park(wanted(first), index, strand.next)) {
    leave(control);
    return false;
  }
  strand.rests = false;
  set_state(index, StrandState::kRunning);
  return true;
}

bool RunningStrands::start_call(uint32_t index, uint32_t at) {
  Strand& strand = strands_[index];
  const Binding& binding = bindings_.calls[at];
  EDDY_DCHECK(code_.commands[at].op == Op::kStart && binding.start != nullptr)
      << "command " << at << " starts no call";
  strand.at = at + 1;
  strand.answer.store(Answer::kNone, std::memory_order_relaxed);
  // Said before: once it is awaited, the strand is the answer's.
  set_state(index, StrandState::kWaitingForAnswer);
  const CallOutcome outcome = binding.start(binding.context, {this, index});
  if (outcome == CallOutcome::kFailed) control_->request_stop(StopReason::kFailed);
  const bool is_parked =
      outcome == CallOutcome::kLater &&
      strand.answer.exchange(Answer::kAwaited, std::memory_order_acq_rel) == Answer::kNone;
  if (is_parked) return false;
  set_state(index, StrandState::kRunning);
  return true;
}

bool RunningStrands::take_answer(uint32_t index, bool is_ok) {
  if (!is_ok) control_->request_stop(StopReason::kFailed);
  const Answer before = strands_[index].answer.exchange(Answer::kThere, std::memory_order_acq_rel);
  EDDY_CHECK(before != Answer::kThere) << "a call has two answers";
  return before == Answer::kAwaited;
}

void RunningStrands::resume(uint32_t index, bool is_ok) {
  if (take_answer(index, is_ok)) enqueue(index);
}

void RunningStrands::release_waits() {
  is_spoilt_.store(true, std::memory_order_relaxed);
  for (size_t i = 0; i < code_.events.size(); ++i) {
    uint32_t list = events_[i].release();
    while (list != StrandEvent::kNobody) {
      const uint32_t next = strands_[list].next;
      if (!strands_[list].rests) enqueue(list);
      list = next;
    }
  }
}

void RunningStrands::leave(RunControl& control) {
  // Only strands that are counted wake others: the last one needs no locked operation.
  const uint32_t live = num_live_.load(std::memory_order_acquire);
  EDDY_DCHECK(live > 0) << "a strand leaves that was not counted";
  if (live == 1) {
    num_live_.store(0, std::memory_order_relaxed);
  } else if (num_live_.fetch_sub(1, std::memory_order_acq_rel) != 1) {
    return;
  }
  complete(control);
}

void RunningStrands::end_strand(uint32_t index) {
  RunControl& control = *control_;
  if (control.is_stopped()) release_waits();
  set_state(index, StrandState::kIdle);
  leave(control);
}

}  // namespace eddy
