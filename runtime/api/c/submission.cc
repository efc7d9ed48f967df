// How runs are submitted, and who is told of their end.
#include <utility>

#include "runtime/api/c/run.h"
#include "runtime/api/c/user_code.h"

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
  ended_ = submission_;
  changed_.notify_all();
  return begun;
}

Refusal RunObject::submit(const std::shared_ptr<RunObject>& run, eddy_run handle,
                          const eddy_run_options* given, Ending ending,
                          const std::function<void()>& begun) {
  RunOptions options;
  EDDY_C_TRY(run->read_options(given, options));
  EDDY_C_TRY(run->check_ended());
  run->settle();
  bool calls_back = ending.callback_or_null != nullptr;
  uint64_t submission = 0;
  StreamObject* const stream = ending.stream_or_null.get();
  // A callback of the run before, which comes late, then counts and tells nothing of this one.
  EDDY_C_TRY(run->begin_run());
  {
    const std::lock_guard lock(run->mutex_);
    calls_back |= run->file_.is_open();
    submission = run->submission_;
  }
  run->stream_or_null_ = ending.stream_or_null;
  if (!calls_back && !run->session_->may_owe) {
    run->is_counted_.store(false, std::memory_order_relaxed);
    const Status status = run->submit_to(stream, options, {}, {}, begun);
    if (!status.is_ok()) run->is_counted_.store(true, std::memory_order_relaxed);
    return status;
  }
  if (calls_back) EDDY_C_TRY(HandleTable::get().retain(handle));
  bool may_end_at_once = false;
  {
    const std::lock_guard lock(run->mutex_);
    run->is_counted_.store(false, std::memory_order_relaxed);
    if (run->file_.is_open()) run->file_.clear();
    may_end_at_once = run->may_end_at_once(ending);
  }
  Call::AtOnce at_once;
  const auto made = std::make_shared<Submission>();
  made->object = run.get();
  made->run = run;
  if (calls_back) made->handle = handle;
  made->number = submission;
  made->ending = std::move(ending);
  if (may_end_at_once) at_once = [made](const Status& how) { return made->end_at_once(how); };
  if (run->session_->may_owe) watch(run, made, options);
  const Status status = run->submit_to(
      stream, options, [made](const Status& how) { made->end(how); }, std::move(at_once), begun);
  if (status.is_ok()) return {};
  run->is_counted_.store(true, std::memory_order_relaxed);
  if (!calls_back) return status;
  [[maybe_unused]] const Refusal given_back = HandleTable::get().release(handle);
  return status;
}

void RunObject::watch(const std::shared_ptr<RunObject>& run,
                      const std::shared_ptr<Submission>& made, RunOptions& options) {
  options.answer_limit = std::chrono::milliseconds(run->session_->own.answer_limit_ms);
  options.on_overdue = [of = std::weak_ptr(made), to = std::weak_ptr(run)](const Status& why) {
    const std::shared_ptr<Submission> submission = of.lock();
    const std::shared_ptr<RunObject> object = to.lock();
    if (submission != nullptr && object != nullptr) submission->note_overdue(object, why);
  };
}

// This thread keeps the object, until the submission does.
Refusal RunObject::execute_owing(const std::shared_ptr<RunObject>& run,
                                 const eddy_run_options* given) {
  RunOptions options;
  EDDY_C_TRY(run->read_options(given, options));
  run->settle();
  EDDY_C_TRY(run->check_ended());
  EDDY_C_TRY(run->call().check_wait_for_next());
  EDDY_C_TRY(run->begin_run());
  const auto made = std::make_shared<Submission>();
  made->object = run.get();
  made->number = run->submission();
  watch(run, made, options);
  run->is_counted_.store(false, std::memory_order_relaxed);
  const Status status = run->submit_to(
      nullptr, options, [made](const Status& how) { made->end(how); },
      [made](const Status&) { return made->end_waited(); }, {});
  if (status.is_ok()) return run->wait(-1);
  run->count(static_cast<eddy_code>(status.code()));
  return status;
}

void RunObject::released() noexcept {
  if (session_->may_owe && !call().is_done()) call().cancel();
}

// What is left to do by the thread that ends the run neither calls the user nor takes long.
bool RunObject::may_end_at_once(const Ending& ending) const {
  const bool is_plain = rows_.empty() && !session_->own.checks_memory && placings_.empty() &&
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
  ended_ = submission;
  changed_.notify_all();
  return code;
}

void RunObject::Submission::note_end(const Status& status) {
  if (has_ended) return;
  const eddy_code ended = object->note_end(number, status);
  if (overdue_run == nullptr) code = ended;
  has_ended = true;
}

void RunObject::Submission::note_overdue(const std::shared_ptr<RunObject>& of, const Status& why) {
  {
    const std::lock_guard lock(of->mutex_);
    if (of->submission_ != number || of->ended_ == number) return;
    of->overdue_ = why;
    overdue_run = of;
    code = static_cast<eddy_code>(why.code());
    of->count(code);
    if (of->file_.is_open()) of->file_.set();
    of->changed_.notify_all();
  }
  if (run != nullptr) post_to(ending.executor_or_null, tell());
}

bool RunObject::Submission::end_waited() {
  const std::lock_guard lock(object->mutex_);
  if (overdue_run != nullptr) return false;
  object->ended_ = number;
  object->changed_.notify_all();
  return true;
}

// Allocates nothing.
std::function<void()> RunObject::Submission::tell() {
  return [self = shared_from_this()] {
    const std::shared_ptr<RunObject> run = std::move(self->run);
    if (self->ending.callback_or_null != nullptr) {
      std::string thrown;
      const bool has_thrown = !has_returned(thrown, [&] {
        self->ending.callback_or_null(self->ending.user, self->handle, self->code);
      });
      if (has_thrown) self->object->session_->library->context->log("a run's callback: " + thrown);
    }
    if (self->handle == nullptr) return;
    [[maybe_unused]] const Refusal gone = HandleTable::get().release(self->handle);
  };
}

void RunObject::Submission::end(const Status& status) {
  note_end(status);
  const std::shared_ptr<RunObject> overdue = std::move(overdue_run);  // it was told
  if (overdue == nullptr) post_to(ending.executor_or_null, tell());
}

// The run, whose last handle may go then, goes where the user is told, or at the end above.
bool RunObject::Submission::end_at_once(const Status& status) {
  note_end(status);
  if (overdue_run != nullptr) return false;
  if (ending.callback_or_null == nullptr || ending.executor_or_null == nullptr) return false;
  std::function<void()> told = tell();
  return ending.executor_or_null->try_post(told);
}

}  // namespace eddy::c
