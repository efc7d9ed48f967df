// WorkerPool: a fixed number of threads that run small tasks.
//
//   running ──queue empty──▶ lingering ──150 µs──▶ sleeping
//      ▲────────task────────────┘                      │
//      └──────────────────────roused───────────────────┘
//
// Tasks are functions on a context, started in the order given, and must not block on each other;
// helpers (Workers::assist) start when no task waits. A worker without a task polls the queue for a
// while before it sleeps. It does not yield: since Linux 6.12 a thread that has yielded is owed
// little of a processor, and when it sleeps it stays on the queue of the one where it ran, so that
// a wake-up leaves it behind what computes there, however idle the others are. It gives up
// polling where it finds that another thread has run on its processor meanwhile. Of pollers there
// are as many as processors, but for one of the caller's.
//
// Threads are started by the first task that finds no idle one. enqueue from any thread, tasks
// included. The destructor, of no worker, waits for running and queued tasks and for calls of
// enqueue: a task's end may lead its waiter to destroy the pool.
// Errors: std::system_error where there is no thread at all; one of several that the system refuses
// is done without. Cost: enqueue some 50 ns where a worker polls or all are busy; to wake one takes
// the caller a few µs, and the worker starts in some 40 µs.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "graph/base/short_lock.h"
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

  // Starts a worker where there is none. Before the first enqueue that must not throw.
  void prepare();
  void enqueue(Function run, void* context) override;
  void assist(Function run, void* context) override;
  // A task that has had a worker for so long gives way to those that wait: some 60 to 100 µs of the
  // time-stamp counter.
  static constexpr uint64_t kSliceCycles = 200'000;
  // Tasks are enqueued and not yet started; helpers do not count.
  bool has_waiting() const { return num_waiting_.load(std::memory_order_relaxed) > 0; }
  // A worker whose task only looks for what another thread does counts as idle: its task ends as
  // soon as has_work().
  class Looking {
   public:
    explicit Looking(WorkerPool& pool) : pool_(pool) {
      pool_.num_looking_.fetch_add(1, std::memory_order_relaxed);
    }
    ~Looking() { pool_.num_looking_.fetch_sub(1, std::memory_order_relaxed); }
    Looking(const Looking&) = delete;
    Looking& operator=(const Looking&) = delete;

   private:
    WorkerPool& pool_;
  };
  // Tasks or helpers are.
  bool has_work() const { return num_waiting_.load() + num_helpers_waiting_.load() > 0; }
  int num_threads() const { return num_threads_; }
  int num_idle() const override;
  int number_here() const override;

 private:
  struct Task {
    Function run = nullptr;
    void* context = nullptr;
  };
  struct alignas(64) Worker {
    enum State : int { kRunning, kLingering, kSleeping };
    std::atomic<int> state{kRunning};  // sequentially consistent with what waits
    std::atomic<int> processor{-1};    // where it lingers; relaxed, a hint
    std::mutex mutex;                  // of what it sleeps on: `state`
    std::condition_variable roused;
    std::thread thread;
  };
  static constexpr uint64_t kLingerCycles = 2 * kSliceCycles;

  void work(Worker& worker, int number);
  void add(std::atomic<int64_t>& num_waiting, std::deque<Task>& queue, Task task);
  bool take(Task& task);
  bool take(std::atomic<int64_t>& num_waiting, std::deque<Task>& queue, Task& task);
  // Until a task or helper waits. False: none has come.
  bool linger(Worker& worker);
  void sleep(Worker& worker);
  // Workers that poll, but for one on the caller's processor: that one does not run now.
  int num_polling() const;
  // Whether a processor has neither a worker that is awake nor the caller.
  bool has_free_processor() const;
  // A worker that sleeps, or a new one.
  void rouse_one();
  bool rouse(Worker& worker);
  bool start_worker();
  int num_started() const { return num_started_.load(std::memory_order_acquire); }

  const int num_threads_;
  const int num_processors_;
  ShortLock queue_lock_;
  // Both under queue_lock_.
  std::deque<Task> queue_;
  std::deque<Task> helpers_;
  // Of the queues. A worker says that it lingers no more, or sleeps, before it looks here for the
  // last time; enqueue adds before it looks for such workers: one of the two sees the other.
  std::atomic<int64_t> num_waiting_{0};
  std::atomic<int64_t> num_helpers_waiting_{0};
  // Tasks and helpers that wait or run, and calls that enqueue them; released as each ends,
  // acquired by ~WorkerPool.
  std::atomic<int64_t> num_live_{0};
  std::atomic<int> num_looking_{0};  // of those that run; a hint
  std::atomic<int> num_lingering_{0};
  std::atomic<int> num_sleeping_{0};  // a hint where to look
  std::atomic<bool> is_ending_{false};
  std::mutex starting_;
  std::atomic<int> num_started_{0};  // released under starting_, once that worker is there
  std::unique_ptr<Worker[]> workers_;
};

}  // namespace eddy
