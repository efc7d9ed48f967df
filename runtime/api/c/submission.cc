// How runs are submitted, and where their end is reported.
#include <utility>

#include "runtime/api/c/run.h"
#include "runtime/api/c/user_code.h"

namespace eddy::c {

Status RunObject::submit_to(StreamObject* stream_or_null, const RunOptions& options,
                            std::shared_ptr<RunEnd> end_or_null,
                            const std::function<void()>& begun) {
  const Status status =
      stream_or_null == nullptr
          ? call().submit(options, std::move(end_or_null), begun)
          : call().submit_on(*stream_or_null->stream, options, std::move(end_or_null), begun);
  if (status.is_ok()) return status;
  const std::lock_guard lock(mutex_);  // there is no run to be checked
  checks_.clear();
  is_placed_ = true;
  ended_ = submission_;
  changed_.notify_all();
  return status;
}

Refusal RunObject::submit(std::shared_ptr<RunObject> run, eddy_run handle,
                          const eddy_run_options* given, Ending ending,
                          const std::function<void()>& begun) {
  RunObject& self = *run;  // its caller's pin keeps it
  RunOptions options;
  EDDY_C_TRY(self.read_options(given, options));
  EDDY_C_TRY(self.check_ended());
  self.settle();
  StreamObject* const stream = ending.stream_or_null.get();
  // A callback of the run before, which comes late, then counts and tells nothing of this one.
  uint64_t number = 0;
  EDDY_C_TRY(self.begin_run(&number));
  self.stream_or_null_ = ending.stream_or_null;
  const bool calls_back = ending.callback_or_null != nullptr || self.file_.is_open();
  std::shared_ptr<Submission> made;
  if (calls_back || self.outlives_handles()) {
    made = std::make_shared<Submission>();
    made->object = &self;
    made->number = number;
    if (self.may_end_at_once(ending)) made->at_once = Submission::AtOnce::kPosted;
    made->ending = std::move(ending);
    if (self.session_->may_owe) watch(run, made, options);
    made->run = std::move(run);
  }
  if (calls_back) {
    EDDY_C_TRY(HandleTable::get().retain(handle));
    made->handle = handle;
    if (self.file_.is_open()) self.file_.clear();
  }
  self.is_counted_.store(false, std::memory_order_relaxed);
  const Status status = self.submit_to(stream, options, std::move(made), begun);
  if (status.is_ok()) return {};
  self.is_counted_.store(true, std::memory_order_relaxed);
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
    if (submission != nullptr && object != nullptr) {
      Submission::note_overdue(submission, object, why);
    }
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
  made->at_once = Submission::AtOnce::kWaited;
  watch(run, made, options);
  run->is_counted_.store(false, std::memory_order_relaxed);
  const Status status = run->submit_to(nullptr, options, made, {});
  if (status.is_ok()) return run->wait(-1);
  run->count(static_cast<eddy_code>(status.code()));
  return status;
}

void RunObject::released() noexcept {
  if (outlives_handles() && !call().is_done()) call().cancel();
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
  if (session_->may_owe) changed_.notify_all();  // else no thread waits so
  return code;
}

void RunObject::Submission::note_end(const Status& status) {
  if (has_ended) return;
  const eddy_code ended = object->note_end(number, status);
  if (overdue_run == nullptr) code = ended;
  has_ended = true;
}

void RunObject::Submission::note_overdue(std::shared_ptr<Submission> self,
                                         const std::shared_ptr<RunObject>& of, const Status& why) {
  Submission& made = *self;
  {
    const std::lock_guard lock(of->mutex_);
    if (of->submission_ != made.number || of->ended_ == made.number) return;
    of->overdue_ = why;
    made.overdue_run = of;
    made.code = static_cast<eddy_code>(why.code());
    of->count(made.code);
    if (of->file_.is_open()) of->file_.set();
    of->changed_.notify_all();
  }
  if (made.run != nullptr) post_to(made.ending.executor_or_null.get(), std::move(self));
}

bool RunObject::Submission::end_waited() {
  const std::lock_guard lock(object->mutex_);
  if (overdue_run != nullptr) return false;
  object->ended_ = number;
  object->changed_.notify_all();
  return true;
}

void RunObject::Submission::call(std::shared_ptr<Task>) {
  const std::shared_ptr<RunObject> of = std::move(run);
  if (ending.callback_or_null != nullptr) {
    std::string thrown;
    const bool has_thrown =
        !has_returned(thrown, [&] { ending.callback_or_null(ending.user, handle, code); });
    if (has_thrown) of->session_->library->context->log("a run's callback: " + thrown);
  }
  if (handle == nullptr) return;
  [[maybe_unused]] const Refusal gone = HandleTable::get().release(handle);
}

void RunObject::Submission::end(std::shared_ptr<RunEnd>& self, const Status& status) {
  note_end(status);
  std::shared_ptr<Submission> made = std::static_pointer_cast<Submission>(std::move(self));
  const std::shared_ptr<RunObject> overdue = std::move(overdue_run);  // it has been reported
  if (overdue != nullptr) return;
  // Once it is posted this object may go, and with it the last that keeps the executor.
  const std::shared_ptr<ExecutorObject> executor = ending.executor_or_null;
  post_to(executor.get(), std::move(made));
}

bool RunObject::Submission::end_at_once(std::shared_ptr<RunEnd>& self, const Status& status) {
  if (at_once == AtOnce::kNothing) return false;
  if (at_once == AtOnce::kWaited) return end_waited();
  note_end(status);
  if (overdue_run != nullptr) return false;
  if (ending.callback_or_null == nullptr || ending.executor_or_null == nullptr) return false;
  // As in end(); without memory for the post, end() follows, which needs `self`.
  const std::shared_ptr<ExecutorObject> executor = ending.executor_or_null;
  std::shared_ptr<Task> task = std::static_pointer_cast<Submission>(self);
  if (!executor->try_post(std::move(task))) return false;
  self = nullptr;
  return true;
}

}  // namespace eddy::c
