// RunningStrands: the moving parts of one run's strands, and the meaning of their commands; how
// calls are made, and on which threads strands go on, is the runner's that derives from it.
//
//   while (is_running() && run_command(agent, strand, at)) {}
//
// A strand is the thread's that executes it; while it waits or rests, it is its event's, and then
// the recorder's, which wakes it: enqueue(). Strands that neither rest nor have ended are counted;
// the one that ends last ends the run.
//
// The end of a run that nothing stops resets nothing: all strands rest where the next run needs
// them. After a stopped one, everything is set back at the next start.
//
// Threads and memory order: strand_event.h. Cost: a command 1 to 2 ns and its call; waking a
// strand, enqueue() and two atomic operations.
#pragma once

#include <memory>
#include <vector>

#include "graph/base/check.h"
#include "runtime/device/strand_event.h"
#include "runtime/device/strand_runner.h"

namespace eddy {

class RunningStrands : public StrandRunner, public Resumable {
 public:
  using Op = StrandCode::Op;
  using Command = StrandCode::Command;

  StrandState strand_state(uint32_t strand) const override {
    EDDY_DCHECK(strand < num_strands()) << "strand " << strand << " of " << num_strands();
    return strands_[strand].state.load(std::memory_order_relaxed);
  }
  void resume(uint32_t strand, bool is_ok) override;

 protected:
  // Of the call that a strand has started: whichever of the strand and the answer comes second
  // lets it go on.
  enum class Answer : uint8_t { kNone, kAwaited, kThere };
  struct Strand {
    uint32_t at = 0;    // next command; of the strand that it belongs to
    uint32_t next = 0;  // in an event's list
    std::atomic<Answer> answer{Answer::kNone};
    bool rests = false;                                  // at its first command, and is not counted
    std::atomic<StrandState> state{StrandState::kIdle};  // for describing only (relaxed)
  };

  RunningStrands(const StrandCode& code, const Bindings& bindings);

  // Lets the strand go on, sooner or later, on whatever thread.
  virtual void enqueue(uint32_t strand) = 0;

  // Before a run: strand 0 is counted, and about to begin.
  void prepare(RunControl& control);
  bool is_running() const {
    EDDY_DCHECK(control_ != nullptr) << "no run has begun";
    return !control_->is_stopped();
  }
  // Wakes those that waited.
  void record(uint32_t index) { wake(event(index).record()); }
  // False: the strand is not the caller's any more. Else it goes on behind `command`.
  bool wait_or_park(uint32_t strand, uint32_t at);
  // False: it rests. Else its next round begins already, at its first command.
  bool rest(uint32_t strand, uint32_t at);
  // Makes a call that may answer later. False: it will, and the strand is not the caller's any
  // more.
  bool start_call(uint32_t strand, uint32_t at);
  // True: the strand waits for it, and is the caller's.
  bool take_answer(uint32_t strand, bool is_ok);
  // Its end, or that of the run for it.
  void end_strand(uint32_t strand);
  // One strand less is counted; nothing of the run is the caller's any more, but for the last.
  void leave(RunControl& control);
  // Records that were made, and rounds that strands have had, otherwise than by their commands.
  void pass_round(uint32_t counter) {
    EDDY_DCHECK(counter < rounds_.size()) << "counter " << counter << " of " << rounds_.size();
    ++rounds_[counter];
  }
  void pass_record(uint32_t index) { event(index).pass(); }
  // Of a run that is stopped: its waits end.
  void release_waits();
  // The last strand that is counted has ended: the run is over, and all this may be gone once that
  // is reported.
  virtual void complete(RunControl& control) {
    if (control.on_complete != nullptr) control.on_complete(control.context);
  }

  // What a wait at `command` waits for.
  uint32_t wanted(const Command& command) const {
    EDDY_DCHECK(command.op == Op::kWait) << "only waits want a record";
    EDDY_DCHECK(command.target < rounds_.size())
        << "counter " << command.target << " of " << rounds_.size();
    return rounds_[command.target] - command.lag;
  }
  uint32_t* rounds() { return rounds_.data(); }
  StrandEvent& event(uint32_t index) {
    EDDY_DCHECK(index < code_.events.size()) << "event " << index << " of " << code_.events.size();
    return events_[index];
  }
  const StrandEvent& event(uint32_t index) const {
    EDDY_DCHECK(index < code_.events.size()) << "event " << index << " of " << code_.events.size();
    return events_[index];
  }
  Strand& strand(uint32_t index) {
    EDDY_DCHECK(index < num_strands()) << "strand " << index << " of " << num_strands();
    return strands_[index];
  }
  const Strand& strand(uint32_t index) const {
    EDDY_DCHECK(index < num_strands()) << "strand " << index << " of " << num_strands();
    return strands_[index];
  }
  uint32_t num_strands() const { return static_cast<uint32_t>(code_.strands.size()); }
  uint32_t num_live() const { return num_live_.load(std::memory_order_relaxed); }
  void set_state(uint32_t index, StrandState state) {
    strand(index).state.store(state, std::memory_order_relaxed);
  }
  RunControl& control() const {
    EDDY_DCHECK(control_ != nullptr) << "no run has begun";
    return *control_;
  }

  const StrandCode& code_;
  const Bindings& bindings_;

 private:
  void set_back();
  void park_at_rest(uint32_t strand);
  void wake(uint32_t list);

  std::unique_ptr<Strand[]> strands_;
  std::unique_ptr<StrandEvent[]> events_;
  std::vector<uint32_t> rounds_;
  RunControl* control_ = nullptr;      // of the run in progress
  std::atomic<uint32_t> num_live_{0};  // the last one acquires all others
  std::atomic<bool> is_spoilt_{true};  // strands are not where a run begins
};

// Where a kSelect goes on.
inline uint32_t select(const StrandCode& code, const StrandCode::Command& command,
                       int32_t decision) {
  EDDY_DCHECK(decision >= 0) << "a decision that failed chooses no branch";
  const uint32_t entry = command.target + static_cast<uint32_t>(decision);
  EDDY_CHECK(entry < code.targets.size()) << "a case has no branch " << decision;
  EDDY_DCHECK(code.targets[entry] < code.commands.size())
      << "branch " << decision << " is not there";
  return code.targets[entry];
}

// Executes the strand's command at `at`, and moves on. False: the strand is not the caller's any
// more, or the agent leaves the command to another. Agent:
//   const StrandCode& code, const StrandCode::Command* commands (the code's), uint32_t* rounds
//   bool call(strand, at)           calls, or has it called, and moves on
//   bool start(strand, at)          the same, but for moving on; false: it will answer later
//   int32_t decide(strand, at)      the call's answer, or < 0, once the run has been stopped
//   bool repeat(strand, at)         an iteration has ended
//   bool wait(strand, at), record(strand, at), rest(strand, at), end(strand)
template <typename Agent>
[[gnu::always_inline]] inline bool run_command(Agent& agent, uint32_t strand, uint32_t& at) {
  using Op = StrandCode::Op;
  EDDY_DCHECK(at < agent.code.commands.size()) << "strand " << strand << " has left its commands";
  const StrandCode::Command& command = agent.commands[at];
  switch (command.op) {
    case Op::kCall:
      return agent.call(strand, at);
    case Op::kStart:
      if (!agent.start(strand, at)) return false;
      ++at;
      return true;
    case Op::kTest: {
      const int32_t decision = agent.decide(strand, at);
      if (decision >= 0) [[likely]]
        at = decision != 0 ? at + 1 : command.target;
      return true;
    }
    case Op::kSelect: {
      const int32_t decision = agent.decide(strand, at);
      if (decision >= 0) at = select(agent.code, command, decision);
      return true;
    }
    case Op::kRepeat:
      at = command.target;
      return agent.repeat(strand, at);
    case Op::kJump:
      at = command.target;
      return true;
    case Op::kBegin:
      EDDY_DCHECK(command.operand < agent.code.rounds.size()) << "counter " << command.operand;
      ++agent.rounds[command.operand];
      ++at;
      return true;
    case Op::kRecord:
      if (!agent.record(strand, at)) return false;
      ++at;
      return true;
    case Op::kWait:
      if (!agent.wait(strand, at)) return false;
      ++at;
      return true;
    case Op::kRest:
      if (!agent.rest(strand, at)) return false;
      at = agent.code.strands[strand].first;
      return true;
    case Op::kEnd:
      return agent.end(strand);
  }
  __builtin_unreachable();
}

}  // namespace eddy
