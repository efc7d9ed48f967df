#include "runtime/cpu/worker_pool.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <system_error>

#include "graph/base/check.h"
#include "graph/base/processor.h"

namespace eddy {
namespace {

// Of the worker that is this thread.
thread_local const WorkerPool* own_pool_or_null = nullptr;
thread_local int own_number = 0;

}  // namespace

int usable_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(CPU_COUNT(&set), 1);
}

WorkerPool::WorkerPool(int num_threads)
    : num_threads_(std::min(num_threads > 0 ? num_threads : usable_processors(), kMaxThreads)),
      num_processors_(usable_processors()),
      workers_(std::make_unique<Worker[]>(static_cast<size_t>(num_threads_))) {}

WorkerPool::~WorkerPool() {
  for (int i = 0; i < num_started(); ++i) {
    EDDY_CHECK(workers_[static_cast<size_t>(i)].thread.get_id() != std::this_thread::get_id())
        << "a task destroys the pool that runs it";
  }
  // No thread wakes the destructor: the last access of tasks and of enqueue() is to lower the
  // count.
  constexpr int kNumYields = 100;
  constexpr std::chrono::microseconds kNap{100};
  for (int i = 0; num_live_.load(std::memory_order_acquire) != 0; ++i) {
    if (num_helpers_waiting_.load() > 0) rouse_one();  // perhaps all sleep
    i < kNumYields ? std::this_thread::yield() : std::this_thread::sleep_for(kNap);
  }
  is_ending_ = true;
  for (int i = 0; i < num_started(); ++i) {
    Worker& worker = workers_[static_cast<size_t>(i)];
    rouse(worker);
    worker.thread.join();
  }
}

void WorkerPool::prepare() {
  if (num_started() > 0) return;
  const std::lock_guard lock(starting_);
  if (num_started() == 0) start_worker();
}

// Under starting_. False: there are as many as there may be.
bool WorkerPool::start_worker() {
  const int index = num_started();
  if (index == num_threads_) return false;
  Worker& worker = workers_[static_cast<size_t>(index)];
  worker.thread = std::thread([this, &worker, index] { work(worker, index + 1); });
  num_started_.store(index + 1, std::memory_order_release);
  return true;
}

int WorkerPool::num_idle() const {
  const int64_t num_live = num_live_.load(std::memory_order_relaxed);
  return static_cast<int>(num_threads_ - num_live) + num_looking_.load(std::memory_order_relaxed);
}

int WorkerPool::number_here() const { return own_pool_or_null == this ? own_number : 0; }

void WorkerPool::add(std::atomic<int64_t>& num_waiting, std::deque<Task>& queue, Task task) {
  EDDY_DCHECK(task.run != nullptr) << "a task does nothing";
  prepare();
  // Counts the task and this call: the task's end may lead its waiter to destroy the pool before
  // this call has returned.
  num_live_.fetch_add(2, std::memory_order_relaxed);
  const std::lock_guard lock(queue_lock_);
  queue.push_back(task);
  num_waiting.fetch_add(1);
}

void WorkerPool::enqueue(Function run, void* context) {
  add(num_waiting_, queue_, {run, context});
  if (num_waiting_.load() > num_polling()) rouse_one();
  num_live_.fetch_sub(1, std::memory_order_release);
}

void WorkerPool::assist(Function run, void* context) {
  add(num_helpers_waiting_, helpers_, {run, context});
  if (num_polling() == 0 && has_free_processor()) rouse_one();
  num_live_.fetch_sub(1, std::memory_order_release);
}

int WorkerPool::num_polling() const {
  if (num_lingering_.load() == 0) return 0;
  const int here = sched_getcpu();
  int num_polling = 0;
  const int num_started = this->num_started();
  for (int i = 0; i < num_started; ++i) {
    const Worker& worker = workers_[static_cast<size_t>(i)];
    const bool is_looking = worker.state.load() == Worker::kLingering;
    if (is_looking && worker.processor.load(std::memory_order_relaxed) != here) ++num_polling;
  }
  return num_polling;
}

bool WorkerPool::has_free_processor() const {
  const int num_callers = own_pool_or_null == this ? 0 : 1;
  return num_started() - num_sleeping_.load() + num_callers < num_processors_;
}

void WorkerPool::rouse_one() {
  const int num_started = this->num_started();
  for (int i = 0; i < num_started && num_sleeping_.load() > 0; ++i) {
    if (rouse(workers_[static_cast<size_t>(i)])) return;
  }
  if (num_started == num_threads_) return;
  const std::lock_guard lock(starting_);
  try {
    start_worker();
  } catch (const std::system_error&) {
    // One more is refused; those there are take the task.
  }
}

bool WorkerPool::rouse(Worker& worker) {
  int expected = Worker::kSleeping;
  if (!worker.state.compare_exchange_strong(expected, Worker::kRunning)) return false;
  num_sleeping_.fetch_sub(1);
  // It has either begun to wait, or looks at its state later.
  { const std::lock_guard lock(worker.mutex); }
  worker.roused.notify_one();
  return true;
}

void WorkerPool::work(Worker& worker, int number) {
  own_pool_or_null = this;
  own_number = number;
  while (!is_ending_) {
    Task task;
    if (!take(task)) {
      if (!linger(worker)) sleep(worker);
      continue;
    }
    task.run(task.context);
    num_live_.fetch_sub(1, std::memory_order_release);
  }
}

bool WorkerPool::take(Task& task) {
  return take(num_waiting_, queue_, task) || take(num_helpers_waiting_, helpers_, task);
}

bool WorkerPool::take(std::atomic<int64_t>& num_waiting, std::deque<Task>& queue, Task& task) {
  if (num_waiting.load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard lock(queue_lock_);
  if (queue.empty()) return false;
  task = queue.front();
  queue.pop_front();
  num_waiting.fetch_sub(1);
  return true;
}

bool WorkerPool::linger(Worker& worker) {
  constexpr int kPauses = 64;  // some 2 µs
  constexpr uint64_t kLostCycles = kSliceCycles / 4;
  if (num_lingering_.fetch_add(1) >= std::max(num_processors_ - 1, 1)) {
    num_lingering_.fetch_sub(1);
    return false;
  }
  worker.processor.store(sched_getcpu(), std::memory_order_relaxed);
  worker.state = Worker::kLingering;
  const uint64_t began = processor_ticks();
  uint64_t looked_at = began;
  while (!has_work() && !is_ending_.load(std::memory_order_relaxed)) {
    for (int i = 0; i < kPauses && !has_work(); ++i) cpu_relax();
    const uint64_t now = processor_ticks();
    if (now - began > kLingerCycles || now - looked_at > kLostCycles) break;
    looked_at = now;
  }
  worker.state = Worker::kRunning;
  num_lingering_.fetch_sub(1);
  return has_work();
}

void WorkerPool::sleep(Worker& worker) {
  num_sleeping_.fetch_add(1);
  worker.state = Worker::kSleeping;
  if (has_work() || is_ending_) {
    rouse(worker);  // or another thread does
    return;
  }
  std::unique_lock lock(worker.mutex);
  worker.roused.wait(lock, [&] { return worker.state.load() != Worker::kSleeping; });
}

}  // namespace eddy
