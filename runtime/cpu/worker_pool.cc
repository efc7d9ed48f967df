#include "runtime/cpu/worker_pool.h"

#include <sched.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace eddy {

int usable_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(CPU_COUNT(&set), 1);
}

struct WorkerPool::Arena {
  explicit Arena(int num_threads)
      : limit(tbb::global_control::max_allowed_parallelism, kMaxThreads + 1),
        arena(num_threads, /*reserved_for_masters=*/0) {}
  tbb::global_control limit;
  tbb::task_arena arena;
};

WorkerPool::WorkerPool(int num_threads)
    : num_threads_(std::min(num_threads > 0 ? num_threads : usable_processors(), kMaxThreads)),
      arena_(std::make_unique<Arena>(num_threads_)) {}

WorkerPool::~WorkerPool() {
  // Nobody wakes it: the last touch of tasks and of enqueue() is that they count no more.
  constexpr int kNumYields = 100;
  constexpr std::chrono::microseconds kNap{100};
  for (int i = 0; num_live_.load(std::memory_order_acquire) != 0; ++i) {
    i < kNumYields ? std::this_thread::yield() : std::this_thread::sleep_for(kNap);
  }
}

void WorkerPool::enqueue(Function run, void* context) {
  num_waiting_.fetch_add(1, std::memory_order_relaxed);
  // The task, and this call: whoever the task tells of its end may let go of the pool before oneTBB
  // has left it here.
  num_live_.fetch_add(2, std::memory_order_relaxed);
  arena_->arena.enqueue([this, run, context] {
    num_waiting_.fetch_sub(1, std::memory_order_relaxed);
    run(context);
    num_live_.fetch_sub(1, std::memory_order_release);  // from here on the pool may be gone
  });
  num_live_.fetch_sub(1, std::memory_order_release);
}

}  // namespace eddy
