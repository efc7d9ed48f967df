#include "runtime/cpu/worker_pool.h"

#include <sched.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <iterator>
#include <latch>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include "graph/base/check.h"
#include "graph/base/processor.h"

namespace eddy {

int usable_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(CPU_COUNT(&set), 1);
}

namespace {

// How many threads the system would give now, up to `wanted`. Throws std::system_error for none.
int threads_to_be_had(int wanted) {
  EDDY_CHECK(wanted > 0) << wanted << " threads are wanted";
  std::latch may_end(1);
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(wanted));
  std::exception_ptr refused;
  try {
    while (std::ssize(threads) < wanted) threads.emplace_back([&may_end] { may_end.wait(); });
  } catch (...) {
    refused = std::current_exception();
  }
  may_end.count_down();
  for (std::thread& thread : threads) thread.join();
  if (threads.empty()) std::rethrow_exception(refused);
  return static_cast<int>(threads.size());
}

}  // namespace

struct WorkerPool::Arena {
  explicit Arena(int num_threads)
      : limit(tbb::global_control::max_allowed_parallelism, kMaxThreads + 1),
        arena(num_threads, /*reserved_for_masters=*/0) {}
  tbb::global_control limit;
  tbb::task_arena arena;
};

WorkerPool::WorkerPool(int num_threads)
    : num_threads_(std::min(num_threads > 0 ? num_threads : usable_processors(), kMaxThreads)),
      places_(std::make_unique<Place[]>(static_cast<size_t>(num_threads_))),
      arena_(std::make_unique<Arena>(num_threads_)) {}

WorkerPool::~WorkerPool() {
  // No thread wakes the destructor: the last access of tasks and of enqueue() is to lower the
  // count.
  constexpr int kNumYields = 100;
  constexpr std::chrono::microseconds kNap{100};
  for (int i = 0; num_live_.load(std::memory_order_acquire) != 0; ++i) {
    i < kNumYields ? std::this_thread::yield() : std::this_thread::sleep_for(kNap);
  }
}

void WorkerPool::prepare() {
  if (has_worker_.load(std::memory_order_acquire)) return;
  std::lock_guard lock(preparing_);
  if (has_worker_.load(std::memory_order_relaxed)) return;
  if (const int num = threads_to_be_had(num_threads_); num < num_threads_) {
    arena_ = std::make_unique<Arena>(num);
  }
  try {
    arena_->arena.enqueue([] {});
  } catch (const std::runtime_error& error) {
    // It counts a worker that it could not start as there: this arena would wait for it for ever.
    arena_ = std::make_unique<Arena>(num_threads_);
    throw std::system_error(EAGAIN, std::generic_category(), error.what());
  }
  has_worker_.store(true, std::memory_order_release);
}

int WorkerPool::num_idle() const {
  const int64_t num_busy =
      num_live_.load(std::memory_order_relaxed) - num_lingering_.load(std::memory_order_relaxed);
  return static_cast<int>(std::max<int64_t>(num_threads_ - num_busy, 0));
}

void WorkerPool::enqueue(Function run, void* context) {
  EDDY_DCHECK(run != nullptr) << "a task does nothing";
  num_waiting_.fetch_add(1, std::memory_order_relaxed);
  // Counts the task and this call: the task's end may lead its waiter to destroy the pool before
  // oneTBB has left this call.
  num_live_.fetch_add(2, std::memory_order_relaxed);
  try {
    arena_->arena.enqueue([this, run, context] {
      const int64_t num_waiting = num_waiting_.fetch_sub(1, std::memory_order_relaxed);
      EDDY_DCHECK(num_waiting > 0) << "a task begins that did not wait";
      run(context);
      num_live_.fetch_sub(1, std::memory_order_release);  // from here on the pool may be gone
    });
  } catch (const std::runtime_error&) {
    // One more worker is refused. The task is queued by then: those there are take it.
    if (!has_worker_.load(std::memory_order_relaxed)) throw;
  }
  const int64_t num_live = num_live_.fetch_sub(1, std::memory_order_release);
  EDDY_DCHECK(num_live > 0) << "this call was not counted";
}

void WorkerPool::assist(Function run, void* context) {
  EDDY_DCHECK(run != nullptr) << "a task does nothing";
  for (int i = 0; i < num_threads_; ++i) {
    Place& place = places_[static_cast<size_t>(i)];
    int expected = Place::kLingering;
    if (!place.state.compare_exchange_strong(expected, Place::kClaimed, std::memory_order_acquire,
                                             std::memory_order_relaxed)) {
      continue;
    }
    place.run = run;
    place.context = context;
    place.state.store(Place::kFull, std::memory_order_release);
    return;
  }
  enqueue(run_assistance, std::make_unique<Assistance>(Assistance{this, run, context}).release());
}

void WorkerPool::run_assistance(void* assistance) {
  const std::unique_ptr<Assistance> first(static_cast<Assistance*>(assistance));
  Function run = first->run;
  void* context = first->context;
  do {
    run(context);
  } while (first->pool->linger(run, context));
}

bool WorkerPool::linger(Function& run, void*& context) {
  for (int i = 0; i < num_threads_ && !has_waiting(); ++i) {
    Place& place = places_[static_cast<size_t>(i)];
    int expected = Place::kFree;
    if (!place.state.compare_exchange_strong(expected, Place::kLingering, std::memory_order_release,
                                             std::memory_order_relaxed)) {
      continue;
    }
    num_lingering_.fetch_add(1, std::memory_order_relaxed);
    const bool has_task = await_task(place, run, context);
    num_lingering_.fetch_sub(1, std::memory_order_relaxed);
    return has_task;
  }
  return false;
}

bool WorkerPool::await_task(Place& place, Function& run, void*& context) {
  constexpr int kPauses = 64;  // some 2 µs
  const uint64_t began = processor_ticks();
  for (;;) {
    for (int i = 0; i < kPauses; ++i) {
      if (place.state.load(std::memory_order_acquire) == Place::kFull) {
        run = place.run;
        context = place.context;
        place.state.store(Place::kFree, std::memory_order_release);
        return true;
      }
      cpu_relax();
    }
    std::this_thread::yield();
    if (!has_waiting() && processor_ticks() - began < kLingerCycles) continue;
    int expected = Place::kLingering;
    // Where it fails, a task has been handed over, or is about to be.
    if (place.state.compare_exchange_strong(expected, Place::kFree, std::memory_order_relaxed)) {
      return false;
    }
  }
}

}  // namespace eddy
