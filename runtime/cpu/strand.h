// Strand and CpuEvent: the moving parts of a running command buffer on the CPU.
//
// A strand is one in-order thread of commands: a program counter into its buffer's code. It runs
// on whichever worker (or caller) picks it up and never blocks: to wait it puts itself on an
// event's list and lets go of the thread; whoever records the event enqueues it again.
//
//   CpuEvent::state_:  pending (0) ──push──▶ list of waiting strands ──record──▶ done (1)
//                          └───────────────record────────────────────────────────▶┘
//                      done ──reset (while no strand of a run that goes on waits or records)──▶
//                      pending
//
// Threads: a strand is the thread's that runs it, the event's while it is on its list, the
// recorder's once record() has returned it. Events: wait_or_done and record from any, record once
// between two resets. Errors: none.
// Memory order: record releases what its strand did before; wait acquires it, either by seeing
// `done` or by being enqueued by the recorder. The strands of a run that has been stopped record
// every event as they end, beside others that have not seen the stop and reset one. A reset behind
// such a record takes `done` away, so it acquires what came before the record: the stop, which its
// strand sees before it waits.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/device/command_buffer.h"

namespace eddy {

class CpuCommandBuffer;

struct Strand {
  CpuCommandBuffer* buffer = nullptr;
  uint32_t entry = 0;      // first command
  uint32_t counter = 0;    // next command; owned by whoever runs the strand
  Strand* next = nullptr;  // in an event's list
  std::atomic<StrandState> state{StrandState::kIdle};  // for describing only (relaxed)

  Strand(CpuCommandBuffer* owner, uint32_t first) : buffer(owner), entry(first), counter(first) {}
};

class CpuEvent {
 public:
  bool is_done() const { return state_.load(std::memory_order_acquire) == kDone; }
  void reset() { state_.exchange(kPending, std::memory_order_acq_rel); }

  // True when the event is done; otherwise the strand is on the list and belongs to the recorder
  // from here on: the caller must not touch it again.
  bool wait_or_done(Strand& strand) {
    uintptr_t state = state_.load(std::memory_order_acquire);
    do {
      if (state == kDone) return true;
      strand.next = reinterpret_cast<Strand*>(state);  // kPending is the null pointer
    } while (!state_.compare_exchange_weak(state, reinterpret_cast<uintptr_t>(&strand),
                                           std::memory_order_acq_rel, std::memory_order_acquire));
    return false;
  }

  // Marks the event done and returns the strands that waited for it.
  Strand* record() {
    const uintptr_t state = state_.exchange(kDone, std::memory_order_acq_rel);
    return state == kDone ? nullptr : reinterpret_cast<Strand*>(state);
  }

 private:
  static constexpr uintptr_t kPending = 0;
  static constexpr uintptr_t kDone = 1;
  std::atomic<uintptr_t> state_{kPending};
};

}  // namespace eddy
