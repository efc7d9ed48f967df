// SharedThreads: threads that several sessions use together: one scheduler thread and one pool of
// workers.
//
//   const auto threads = std::make_shared<SharedThreads>(2);
//   Session::create(library, std::move(graph), {.threads = threads});  // and so for the others
//
// A session that is given none makes its own. Share them where many sessions live in one process,
// so that it has as many threads as processors, however many models it runs. Memory, limits and
// results stay each session's own, and so does its callback thread while the session lives; then
// the next session takes it over.
//
// Waiting: host functions run on these threads, so inside one no run of any session that shares
// them may be waited for (kWouldDeadlock). Callbacks run on their session's own thread: there only
// runs of that same session must not be waited for.
// Ownership: each session, and each tensor it handed out, keeps what it needs alive; sessions may
// go in any order, and this object may be dropped as soon as the last session has been made.
// Threads: any. Cost: workers start with the first work, the scheduler's thread with the first
// host-driven loop, asynchronous deadline or timeout.
#pragma once

#include <cstddef>
#include <memory>

namespace eddy {

class CallbackThreads;
class FileWatch;
class DevicePollers;
class ForkGuard;
class Scheduler;
class WorkerPool;

class SharedThreads {
 public:
  // num_workers 0: one for each processor. max_stacks: strands of host-driven runs at once, beyond
  // which a run fails with kResourceExhausted; 0: as many as the system allows.
  explicit SharedThreads(int num_workers = 0, size_t max_stacks = 0);
  ~SharedThreads();
  SharedThreads(const SharedThreads&) = delete;
  SharedThreads& operator=(const SharedThreads&) = delete;

  int num_workers() const;
  // That this process might use when this was made.
  int num_processors() const;

  // For sessions. The scheduler is made when it is first asked for.
  Scheduler& scheduler();
  DevicePollers& device_pollers();  // of the scheduler
  const std::shared_ptr<WorkerPool>& workers() const;
  CallbackThreads& callback_threads();
  FileWatch& file_watch();
  // A child has none of these threads.
  const std::shared_ptr<const ForkGuard>& fork_guard() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace eddy
