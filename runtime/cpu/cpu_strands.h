// CpuStrands: strands executed by the workers themselves.
//
// A strand never blocks: to wait it releases its thread, and whichever strand records the event
// enqueues it again. A loop in steady state takes no lock and allocates nothing.
//
// Giving way: behind a call that is not cheap, and at the end of an iteration of any of its loops,
// while something waits in the worker pool's queue, a strand goes to the end of that queue, once
// WorkerPool::kSliceCycles have passed since it was picked up. While iterations are
// short it looks at the counter every kShortRounds of them only.
//
// Waiting: a strand looks for a record for up to kPatienceCycles, about what the wake of a sleeping
// worker takes, unless tasks wait for a worker; so a wait costs at most twice what parking at once
// would, and streams that meet after microseconds never sleep.
//
// Cost: a command about 1–2 ns plus its call; a wait that is met meanwhile some 100 ns.
#pragma once

#include "runtime/cpu/worker_pool.h"
#include "runtime/device/running_strands.h"

namespace eddy {

class CpuStrands : public RunningStrands {
 public:
  CpuStrands(WorkerPool& pool, const StrandCode& code, const Bindings& bindings);

  void start(RunControl& control) override;
  void run_here(RunControl& control) override;
  void run_as_worker(RunControl& control) override;

 private:
  struct Worker;  // a thread that executes one of the strands
  struct Task {
    CpuStrands* owner;
    uint32_t strand;
  };

  void execute(uint32_t strand, bool is_pool_thread);
  void enqueue(uint32_t strand) override;
  // Until it is there, or waiting on does not pay: other work waits for this thread, tiles too.
  void look_for_record(const Command& wait, bool is_pool_thread);

  WorkerPool& pool_;
  std::vector<Task> tasks_;  // by strand
};

}  // namespace eddy
