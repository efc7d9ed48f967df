#include "runtime/api/shared_threads.h"

#include <mutex>

#include "runtime/api/callback_thread.h"
#include "runtime/api/file_watch.h"
#include "runtime/api/fork_guard.h"
#include "runtime/api/session_scope.h"
#include "runtime/coroutine/scheduler.h"
#include "runtime/cpu/worker_pool.h"
#include "runtime/execute/host/device_pollers.h"

namespace eddy {

struct SharedThreads::Impl {
  Impl(int num_workers, size_t max) : workers(std::make_shared<WorkerPool>(num_workers)) {
    scheduler_options.stacks.max_stacks = max;
    // To spin for another thread helps only where that one can run meanwhile.
    if (num_processors == 1) scheduler_options.idle.spin = std::chrono::nanoseconds(0);
  }

  const int num_processors = usable_processors();
  const std::shared_ptr<const ForkGuard> fork_guard = std::make_shared<ForkGuard>();
  SchedulerOptions scheduler_options;
  const std::shared_ptr<WorkerPool> workers;
  CallbackThreads callbacks;
  FileWatch files;
  std::once_flag scheduler_made;
  std::unique_ptr<Scheduler> scheduler_or_null;  // ends before the workers that it issues to
  std::unique_ptr<DevicePollers> pollers_or_null;
};

SharedThreads::SharedThreads(int num_workers, size_t max_stacks)
    : impl_(std::make_unique<Impl>(num_workers, max_stacks)) {}
SharedThreads::~SharedThreads() {
  // A child has no threads to join.
  if (impl_->fork_guard->is_in_child()) [[maybe_unused]]
    const Impl* left_alone = impl_.release();
}

int SharedThreads::num_workers() const { return impl_->workers->num_threads(); }
int SharedThreads::num_processors() const { return impl_->num_processors; }
CallbackThreads& SharedThreads::callback_threads() { return impl_->callbacks; }

FileWatch& SharedThreads::file_watch() { return impl_->files; }

Scheduler& SharedThreads::scheduler() {
  std::call_once(impl_->scheduler_made, [this] {
    impl_->scheduler_or_null = std::make_unique<Scheduler>(impl_->scheduler_options);
    // A kernel or a row's function that runs there may wait for none of the sessions' runs.
    [[maybe_unused]] const Status marked =
        impl_->scheduler_or_null->spawn([this] { SessionScope::stand_on(this); }, "mark");
    impl_->pollers_or_null = std::make_unique<DevicePollers>(*impl_->scheduler_or_null);
  });
  return *impl_->scheduler_or_null;
}

DevicePollers& SharedThreads::device_pollers() {
  (void)scheduler();
  return *impl_->pollers_or_null;
}

const std::shared_ptr<WorkerPool>& SharedThreads::workers() const { return impl_->workers; }

const std::shared_ptr<const ForkGuard>& SharedThreads::fork_guard() const {
  return impl_->fork_guard;
}

}  // namespace eddy
