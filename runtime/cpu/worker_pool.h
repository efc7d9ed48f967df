// WorkerPool: Eddy's wrapper of oneTBB's scheduler: a fixed number of worker threads that run
// small tasks.
//
// An arena of `num_threads` slots without one for callers. oneTBB's default limit (one thread
// less than processors) would leave a slot empty, so a global_control raises it while a pool
// lives. The smallest of all controls in a process holds, so every pool requests the same,
// whatever its own size. That makes no threads: oneTBB starts one only for a slot of an arena with
// work, so the limit that counts is the sum of the pools' sizes, and other users of oneTBB keep
// the slots of their own arenas; a lower control of theirs still holds for all.
// Tasks are functions on a context, started in the order given, and must not block on each other.
//
// A task of assist() goes to a worker that lingers, where there is one: a worker that has ended one
// looks for another, some 150 µs, before it goes to sleep, unless tasks wait.
//
// Threads: enqueue and assist from any thread, tasks included. The destructor waits for running and
// queued tasks and for calls of enqueue: a task's end may lead its waiter to destroy the pool.
// Cost: enqueue about 100 ns; a sleeping worker wakes in some 40 µs, one that lingers in less than
// 1 µs.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "runtime/device/device.h"

namespace eddy {

// The number of processors that this process may run on; at least 1.
int usable_processors();

class WorkerPool : public Workers {
 public:
  using Function = void (*)(void* context);

  static constexpr int kMaxThreads = 256;

  // 1 to kMaxThreads (more count as that); 0 means one for each processor this process may use.
  explicit WorkerPool(int num_threads);
  ~WorkerPool() override;

  // Before the first enqueue; cheap after that. oneTBB starts its threads when it likes to, does
  // not recover from one that the system refuses, and may find out on a thread of its own, where
  // the process would end. So threads are requested here first, and fewer than wanted make a
  // smaller pool. Throws std::system_error where there is none; later there may be.
  void prepare();
  // Goes on with the existing workers where the system refuses another; a pool that was not
  // prepared throws oneTBB's exception then, because no worker would run the task.
  void enqueue(Function run, void* context) override;
  void assist(Function run, void* context) override;
  // A task that has had a worker for so long gives way to those that wait: some 60 to 100 µs of the
  // time-stamp counter.
  static constexpr uint64_t kSliceCycles = 200'000;
  // Tasks are enqueued and not yet started.
  bool has_waiting() const { return num_waiting_.load(std::memory_order_relaxed) > 0; }
  int num_threads() const { return num_threads_; }
  int num_idle() const override;

 private:
  struct Arena;
  // Where a worker lingers: it polls `state`, and takes the task once that is kFull.
  struct alignas(64) Place {
    enum State : int { kFree, kLingering, kClaimed, kFull };
    std::atomic<int> state{kFree};  // release and acquire
    Function run = nullptr;         // written between kClaimed and kFull
    void* context = nullptr;
  };
  struct Assistance {
    WorkerPool* pool;
    Function run;
    void* context;
  };
  static constexpr uint64_t kLingerCycles = 2 * kSliceCycles;
  static void run_assistance(void* assistance);
  // Looks for a task until one is there or it is time to sleep. False: there is none.
  bool linger(Function& run, void*& context);
  bool await_task(Place& place, Function& run, void*& context);

  int num_threads_;
  std::mutex preparing_;
  std::atomic<bool> has_worker_{false};  // release once a worker exists, under preparing_
  std::atomic<int64_t> num_waiting_{0};  // relaxed: only a hint to give way
  std::atomic<int64_t> num_live_{
      0};  // released by ends of tasks and enqueue; acquired by ~WorkerPool
  std::unique_ptr<Place[]> places_;    // one for each thread
  std::atomic<int> num_lingering_{0};  // relaxed: a hint
  std::unique_ptr<Arena> arena_;
};

}  // namespace eddy
