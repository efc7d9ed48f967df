#include "runtime/api/shared_threads.h"

#include <mutex>

#include "runtime/coroutine/scheduler.h"
#include "runtime/cpu/worker_pool.h"

namespace eddy {

struct SharedThreads::Impl {
  explicit Impl(int num_workers) : workers(std::make_shared<WorkerPool>(num_workers)) {}

  const std::shared_ptr<WorkerPool> workers;
  std::once_flag scheduler_made;
  std::unique_ptr<Scheduler> scheduler_or_null;  // ends before the workers that it issues to
};

SharedThreads::SharedThreads(int num_workers) : impl_(std::make_unique<Impl>(num_workers)) {}
SharedThreads::~SharedThreads() = default;

int SharedThreads::num_workers() const { return impl_->workers->num_threads(); }

Scheduler& SharedThreads::scheduler() {
  std::call_once(impl_->scheduler_made,
                 [this] { impl_->scheduler_or_null = std::make_unique<Scheduler>(); });
  return *impl_->scheduler_or_null;
}

const std::shared_ptr<WorkerPool>& SharedThreads::workers() const { return impl_->workers; }

}  // namespace eddy
