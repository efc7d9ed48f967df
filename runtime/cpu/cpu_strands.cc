#include "runtime/cpu/cpu_strands.h"

#include "graph/base/check.h"
#include "graph/base/processor.h"
#include "runtime/device/run_scope.h"

namespace eddy {
namespace {

constexpr int kShortRounds = 64;  // between two looks at the clock
constexpr uint64_t kPatienceCycles = 75'000;

// After how many rounds to look again, where the last `rounds` of them took that long.
int rounds_to_look(uint64_t cycles, int rounds) {
  EDDY_DCHECK(rounds > 0) << rounds << " rounds";
  return cycles / static_cast<uint64_t>(rounds) < WorkerPool::kSliceCycles / (2 * kShortRounds)
             ? kShortRounds
             : 1;
}

}  // namespace

CpuStrands::CpuStrands(WorkerPool& pool, const StrandCode& code, const Bindings& bindings)
    : RunningStrands(code, bindings), pool_(pool) {
  for (uint32_t s = 0; s < num_strands(); ++s) tasks_.push_back({this, s});
}

void CpuStrands::start(RunControl& control) {
  prepare(control);
  enqueue(0);
}

void CpuStrands::run_here(RunControl& control) {
  prepare(control);
  execute(0, /*is_pool_thread=*/false);
}

void CpuStrands::run_as_worker(RunControl& control) {
  prepare(control);
  execute(0, /*is_pool_thread=*/true);
}

void CpuStrands::enqueue(uint32_t strand) {
  EDDY_DCHECK(strand < tasks_.size()) << "strand " << strand << " of " << tasks_.size();
  set_state(strand, StrandState::kQueued);
  pool_.enqueue(
      [](void* context) {
        const Task& task = *static_cast<Task*>(context);
        task.owner->execute(task.strand, /*is_pool_thread=*/true);
      },
      &tasks_[strand]);
}

void CpuStrands::look_for_record(const Command& wait, bool is_pool_thread) {
  const StrandEvent& awaited = event(wait.operand);
  const uint32_t count = wanted(wait);
  if (awaited.is_reached(count)) return;
  const uint64_t began = processor_ticks();
  const auto goes_on = [&](bool has_other_work) {
    return !awaited.is_reached(count) && !has_other_work && is_running() &&
           processor_ticks() - began < kPatienceCycles;
  };
  if (!is_pool_thread) {
    while (goes_on(pool_.has_waiting())) cpu_relax();
    return;
  }
  const WorkerPool::Looking looking(pool_);
  while (goes_on(pool_.has_work())) cpu_relax();
}

struct CpuStrands::Worker {
  CpuStrands& owner;
  const StrandCode& code;
  const Command* const commands;
  const Binding* const bindings;
  uint32_t* const rounds;
  const bool is_pool_thread;
  const uint64_t slice_start = is_pool_thread ? processor_ticks() : 0;
  uint64_t looked_at = slice_start;
  int look_every = 1;  // iterations, of those with something waiting
  int rounds_left = 1;

  bool call(uint32_t strand, uint32_t& at) {
    const Binding& binding = bindings[at];
    EDDY_DCHECK(binding.run != nullptr) << "command " << at << " calls nothing";
    if (!binding.run(binding.context)) [[unlikely]] {
      owner.control().request_stop(StopReason::kFailed);
      return true;
    }
    const bool is_cheap = commands[at++].is_cheap;
    if (is_cheap) return true;
    rounds_left = 1;
    return repeat(strand, at);
  }
  bool start(uint32_t strand, uint32_t at) { return owner.start_call(strand, at); }
  int32_t decide(uint32_t, uint32_t at) {
    const Binding& binding = bindings[at];
    EDDY_DCHECK(binding.decide != nullptr) << "command " << at << " asks nobody";
    const int32_t decision = binding.decide(binding.context);
    if (decision < 0) [[unlikely]]
      owner.control().request_stop(StopReason::kFailed);
    return decision;
  }
  bool repeat(uint32_t strand, uint32_t at) {
    if (!is_pool_thread || !owner.pool_.has_waiting()) [[likely]]
      return true;
    if (--rounds_left > 0) return true;
    if (const uint64_t now = processor_ticks(); now - slice_start <= WorkerPool::kSliceCycles) {
      rounds_left = look_every = rounds_to_look(now - looked_at, look_every);
      looked_at = now;
      return true;
    }
    owner.strand(strand).at = at;
    owner.enqueue(strand);
    return false;
  }
  bool wait(uint32_t strand, uint32_t at) {
    owner.look_for_record(commands[at], is_pool_thread);
    return owner.wait_or_park(strand, at);
  }
  bool record(uint32_t, uint32_t at) {
    owner.record(commands[at].operand);
    return true;
  }
  bool rest(uint32_t strand, uint32_t at) { return owner.rest(strand, at); }
  bool end(uint32_t strand) {
    owner.end_strand(strand);
    return false;
  }
};

void CpuStrands::execute(uint32_t index, bool is_pool_thread) {
  const RunScope scope(control().owner);
  set_state(index, StrandState::kRunning);
  uint32_t at = strand(index).at;
  Worker worker{*this,    code_,         code_.commands.data(), bindings_.calls.data(),
                rounds(), is_pool_thread};
  const std::atomic<StopReason>& stop = control().stop;
  while (stop.load(std::memory_order_acquire) == StopReason::kRunning) {
    if (!run_command(worker, index, at)) return;
  }
  end_strand(index);
}

}  // namespace eddy
