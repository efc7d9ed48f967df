// CpuCommandBuffer: command buffers as flat code, run by the workers themselves.
//
// A loop in steady state takes no lock and allocates nothing.
//
// Giving way: at the end of a round of any of its loops, a strand that somebody in the worker
// pool's queue waits for goes to the end of that queue, once kSliceCycles of the time-stamp counter
// have passed since it was picked up. While rounds are short it looks at the counter every
// kShortRounds of them only.
//
// Cost: a command about 1–2 ns plus its function.
#pragma once

#include <deque>

#include "runtime/cpu/strand.h"
#include "runtime/cpu/worker_pool.h"
#include "runtime/device/command_code.h"

namespace eddy {

class CpuCommandBuffer : public CommandCode {
 public:
  explicit CpuCommandBuffer(WorkerPool& pool);

  void finish() override;

  void start(RunControl& control) override;
  void run_here(RunControl& control) override;
  StrandState strand_state(uint32_t strand) const override {
    return strands_[strand].state.load(std::memory_order_relaxed);
  }

 private:
  void prepare(RunControl& control);
  void execute(Strand& strand, bool is_pool_thread);
  void enqueue(Strand& strand);
  void enqueue_all(Strand* list);
  void end_strand(Strand& strand);
  void release_waits();

  WorkerPool& pool_;
  std::deque<Strand> strands_;   // [0] is the main one; addresses are stable
  std::deque<CpuEvent> events_;  // likewise

  RunControl* control_ = nullptr;      // of the launch in progress
  std::atomic<uint32_t> num_live_{0};  // strands not ended; the last one acquires all others
};

}  // namespace eddy
