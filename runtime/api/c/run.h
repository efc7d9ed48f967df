// RunObject: a Call behind a handle: what is bound is kept, and its end reaches the caller once, by
// a callback, a descriptor, or a wait.
//
// Internal to runtime/api/c. Ownership: keeps its session; a submitted run with a callback or a
// descriptor keeps itself, by a reference to its own handle. Threads: as run.* of eddy.h says.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/api/c/errors.h"
#include "runtime/api/c/event_file.h"
#include "runtime/api/c/executor.h"
#include "runtime/api/c/rows.h"
#include "runtime/api/c/session.h"

namespace eddy::c {

class RunObject : public Object {
 public:
  static constexpr Kind kKind = Kind::kRun;

  RunObject(std::shared_ptr<SessionObject> session, std::unique_ptr<Call> call)
      : session_(std::move(session)),
        inputs_(session_->session->inputs().size()),
        call_(std::move(call)) {}

  const Locations* locations_or_null() const { return session_->locations_or_null(); }
  BusyFlag busy;

  Call& call() { return *call_; }
  const Session& session() const { return *session_->session; }
  Refusal bind_input(size_t index, Tensor value);
  Refusal stream_output(size_t index, std::shared_ptr<RowsObject> rows_or_null);
  Refusal execute(const eddy_run_options* options);

  struct Ending {
    std::shared_ptr<ExecutorObject> executor_or_null;
    eddy_run_callback callback_or_null = nullptr;
    void* user = nullptr;
  };
  static Refusal submit(const std::shared_ptr<RunObject>& run, eddy_run handle,
                        const eddy_run_options* options, Ending ending);
  // The result of the run that has ended.
  Refusal result();
  Refusal fd(int* fd);

 private:
  Refusal read_options(const eddy_run_options* given, RunOptions& options) const;
  void ended(eddy_run handle, uint64_t submission, const Status& status, const Ending& ending);
  // Before the next run: the last one may have ended unseen.
  void settle() {
    if (is_counted_.load(std::memory_order_relaxed) || !call_->is_done()) return;
    [[maybe_unused]] const Refusal seen = result();
  }
  // The first of those that see how a run has ended counts it.
  void count(eddy_code code) {
    if (!is_counted_.exchange(true, std::memory_order_relaxed)) session_->count(code);
  }

  const std::shared_ptr<SessionObject> session_;
  std::vector<Tensor> inputs_;
  std::vector<std::pair<size_t, std::shared_ptr<RowsObject>>> rows_;
  const std::unique_ptr<Call> call_;  // goes before what its run may still read
  std::atomic<bool> is_counted_{true};
  std::mutex mutex_;
  EventFile file_;           // under the mutex
  uint64_t submission_ = 0;  // under the mutex: the last one's number
};

}  // namespace eddy::c
