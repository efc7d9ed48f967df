#include "runtime/cpu/cpu_command_buffer.h"

#include <x86intrin.h>

#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr uint64_t kSliceCycles = 200'000;  // some 60 to 100 µs
constexpr int kShortRounds = 64;            // between two looks at the clock

// After how many rounds to look again, where the last `rounds` of them took that long.
int rounds_to_look(uint64_t cycles, int rounds) {
  return cycles / static_cast<uint64_t>(rounds) < kSliceCycles / (2 * kShortRounds) ? kShortRounds
                                                                                    : 1;
}

}  // namespace

CpuCommandBuffer::CpuCommandBuffer(WorkerPool& pool) : pool_(pool) {}

void CpuCommandBuffer::finish() {
  CommandCode::finish();
  for (uint32_t entry : strand_entries()) strands_.emplace_back(this, entry);
  events_.resize(num_events());
}

void CpuCommandBuffer::prepare(RunControl& control) {
  EDDY_CHECK(is_finished()) << "launching a command buffer that is still being recorded";
  EDDY_CHECK(num_live_.load(std::memory_order_relaxed) == 0) << "a launch is still in progress";
  control_ = &control;
  for (CpuEvent& event : events_) event.reset();
  strands_[0].counter = strands_[0].entry;
  num_live_.store(1, std::memory_order_relaxed);
}

void CpuCommandBuffer::start(RunControl& control) {
  prepare(control);
  enqueue(strands_[0]);
}

void CpuCommandBuffer::run_here(RunControl& control) {
  prepare(control);
  execute(strands_[0], /*is_pool_thread=*/false);
}

void CpuCommandBuffer::enqueue(Strand& strand) {
  strand.state.store(StrandState::kQueued, std::memory_order_relaxed);
  pool_.enqueue(
      [](void* context) {
        Strand& self = *static_cast<Strand*>(context);
        self.buffer->execute(self, /*is_pool_thread=*/true);
      },
      &strand);
}

void CpuCommandBuffer::enqueue_all(Strand* list) {
  while (list != nullptr) {
    Strand* next = list->next;  // read first: once enqueued, the strand is another thread's
    enqueue(*list);
    list = next;
  }
}

void CpuCommandBuffer::release_waits() {
  for (CpuEvent& event : events_) enqueue_all(event.record());
}

void CpuCommandBuffer::end_strand(Strand& strand) {
  strand.state.store(StrandState::kIdle, std::memory_order_relaxed);
  RunControl* control = control_;
  if (control->is_stopped()) release_waits();
  if (num_live_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (control->on_complete != nullptr) control->on_complete(control->context);
}

// One function although long: it is the interpreter's loop, and its cases share their state.
// long: a switch over all commands; splitting it would spill what the loop keeps in registers.
void CpuCommandBuffer::execute(Strand& strand, bool is_pool_thread) {
  const Command* const code = this->code().data();
  const std::atomic<StopReason>& stop = control_->stop;
  strand.state.store(StrandState::kRunning, std::memory_order_relaxed);
  uint32_t at = strand.counter;
  const uint64_t slice_start = __rdtsc();
  uint64_t looked_at = slice_start;
  int look_every = 1;  // rounds, of those with somebody waiting
  int rounds = 1;
  const auto is_running = [&] {
    return stop.load(std::memory_order_acquire) == StopReason::kRunning;
  };
  while (is_running()) {
    const Command& command = code[at];
    switch (command.op) {
      case Op::kLaunch:
        if (!command.run(command.context)) [[unlikely]] {
          control_->request_stop(StopReason::kFailed);
          break;
        }
        ++at;
        break;
      case Op::kTest: {
        const int32_t decision = command.decide(command.context);
        if (decision < 0) [[unlikely]] {
          control_->request_stop(StopReason::kFailed);
          break;
        }
        at = decision != 0 ? at + 1 : command.target;
        break;
      }
      case Op::kRepeat:
        at = command.target;
        if (!is_pool_thread || !pool_.has_waiting()) [[likely]]
          break;
        if (--rounds > 0) break;
        if (const uint64_t now = __rdtsc(); now - slice_start <= kSliceCycles) {
          rounds = look_every = rounds_to_look(now - looked_at, look_every);
          looked_at = now;
          break;
        }
        strand.counter = at;
        return enqueue(strand);
      case Op::kJump:
        at = command.target;
        break;
      case Op::kSwitch: {
        const int32_t decision = command.decide(command.context);
        if (decision < 0) [[unlikely]] {
          control_->request_stop(StopReason::kFailed);
          break;
        }
        const uint32_t entry = command.target + static_cast<uint32_t>(decision);
        EDDY_CHECK(entry < targets().size()) << "a case has no branch " << decision;
        at = targets()[entry];
        break;
      }
      case Op::kFork: {
        // Its last time may have recorded its last event and not have come to its end yet: from
        // there on it counts itself out and touches nothing of the strand but what describes it.
        Strand& fork = strands_[command.target];
        fork.counter = fork.entry;
        num_live_.fetch_add(1, std::memory_order_relaxed);
        enqueue(fork);
        ++at;
        break;
      }
      case Op::kReset:
        events_[command.target].reset();
        ++at;
        break;
      case Op::kRecord:
        enqueue_all(events_[command.target].record());
        ++at;
        break;
      case Op::kWait:
        strand.counter = at + 1;
        // Said before: once on the event's list, the strand is the recorder's.
        strand.state.store(StrandState::kWaitingForStrand, std::memory_order_relaxed);
        if (!events_[command.target].wait_or_done(strand)) return;
        strand.state.store(StrandState::kRunning, std::memory_order_relaxed);
        ++at;
        break;
      case Op::kEnd:
        return end_strand(strand);
    }
  }
  end_strand(strand);
}

}  // namespace eddy
