// How runs are submitted, and who is told of their end.
#include <utility>

#include "runtime/api/c/run.h"

namespace eddy::c {

Status RunObject::submit_to(StreamObject* stream_or_null, const RunOptions& options,
                            Call::Callback callback, Call::AtOnce at_once,
                            const std::function<void()>& begun_now) {
  const Status begun =
      stream_or_null == nullptr
          ? call().submit(options, std::move(callback), std::move(at_once), begun_now)
          : call().submit_on(*stream_or_null->stream, options, std::move(callback), begun_now);
  if (begun.is_ok()) return begun;
  const std::lock_guard lock(mutex_);  // there is no run to be checked
  checks_.clear();
  is_placed_ = true;
  return begun;
}

Refusal RunObject::submit(const std::shared_ptr<RunObject>& run, eddy_run handle,
                          const eddy_run_options* given, Ending ending,
                          const std::function<void()>& begun) {
  RunOptions options;
  EDDY_C_TRY(run->read_options(given, options));
  run->settle();
  bool calls_back = ending.callback_or_null != nullptr;
  uint64_t submission = 0;
  StreamObject* const stream = ending.stream_or_null.get();
  if (!run->call().is_done()) return run->call().submit(options);  // which refuses it
  // A callback of the run before, which comes late, then counts and tells nothing of this one.
  EDDY_C_TRY(run->begin_run());
  {
    const std::lock_guard lock(run->mutex_);
    calls_back |= run->file_.is_open();
    submission = run->submission_;
  }
  run->stream_or_null_ = ending.stream_or_null;
  if (!calls_back) {
    run->is_counted_.store(false, std::memory_order_relaxed);
    const Status status = run->submit_to(stream, options, {}, {}, begun);
    if (!status.is_ok()) run->is_counted_.store(true, std::memory_order_relaxed);
    return status;
  }
  EDDY_C_TRY(HandleTable::get().retain(handle));
  bool may_end_at_once = false;
  {
    const std::lock_guard lock(run->mutex_);
    run->is_counted_.store(false, std::memory_order_relaxed);
    if (run->file_.is_open()) run->file_.clear();
    may_end_at_once = run->may_end_at_once(ending);
  }
  Call::AtOnce at_once;
  const auto made = std::make_shared<Submission>();
  made->run = run;
  made->handle = handle;
  made->number = submission;
  made->ending = std::move(ending);
  if (may_end_at_once) at_once = [made](const Status& how) { return made->end_at_once(how); };
  const Status status = run->submit_to(
      stream, options, [made](const Status& how) { made->end(how); }, std::move(at_once), begun);
  if (status.is_ok()) return {};
  run->is_counted_.store(true, std::memory_order_relaxed);
  [[maybe_unused]] const Refusal given_back = HandleTable::get().release(handle);
  return status;
}

// What is left to do by the thread that ends the run neither calls the user nor takes long.
bool RunObject::may_end_at_once(const Ending& ending) const {
  const bool is_plain = rows_.empty() && !session_->checks_memory && placings_.empty() &&
                        ending.stream_or_null == nullptr;
  const bool is_drained =
      ending.executor_or_null != nullptr && ending.executor_or_null->kind() == EDDY_EXECUTOR_CALLER;
  return is_plain && (is_drained || file_.is_open());
}

eddy_code RunObject::note_end(uint64_t submission, const Status& status) {
  auto code = static_cast<eddy_code>(status.code());
  // A thread that waited may have submitted the next run already.
  const std::lock_guard lock(mutex_);
  if (submission != submission_) return code;
  const Refusal found = finish(status);
  if (!found.is_ok()) code = found.code();
  count(code);
  if (file_.is_open()) file_.set();
  return code;
}

void RunObject::Submission::note_end(const Status& status) {
  if (has_ended) return;
  code = run->note_end(number, status);
  has_ended = true;
}

// Allocates nothing.
std::function<void()> RunObject::Submission::tell() {
  return [self = shared_from_this()] {
    const std::shared_ptr<RunObject> run = std::move(self->run);
    if (self->ending.callback_or_null != nullptr) {
      self->ending.callback_or_null(self->ending.user, self->handle, self->code);
    }
    [[maybe_unused]] const Refusal gone = HandleTable::get().release(self->handle);
  };
}

void RunObject::Submission::end(const Status& status) {
  note_end(status);
  post_to(ending.executor_or_null, tell());
}

// The run, whose last handle may go then, goes where the user is told, or at the end above.
bool RunObject::Submission::end_at_once(const Status& status) {
  note_end(status);
  if (ending.callback_or_null == nullptr || ending.executor_or_null == nullptr) return false;
  std::function<void()> told = tell();
  return ending.executor_or_null->try_post(told);
}

}  // namespace eddy::c
