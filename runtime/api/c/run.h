// RunObject: a Call behind a handle: what is bound is kept, and its end reaches the caller once, by
// a callback, a descriptor, or a wait.
//
// Where kernels or host functions may owe answers, a run that was stopped may be overdue: its
// caller has its result, while the run itself goes on until the answers have come. It cannot be
// used again before.
//
// Internal to runtime/api/c. Ownership: keeps its session; a submitted run with a callback or a
// descriptor keeps itself, by a reference to its own handle, and one that is overdue by one to the
// object. Threads: as run.* of eddy.h says.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/api/c/errors.h"
#include "runtime/api/c/event_file.h"
#include "runtime/api/c/executor.h"
#include "runtime/api/c/memory_check.h"
#include "runtime/api/c/rows.h"
#include "runtime/api/c/session.h"
#include "runtime/api/c/stream.h"
#include "runtime/trace/trace_recorder.h"

namespace eddy::c {

class RunObject : public Object {
 public:
  static constexpr Kind kKind = Kind::kRun;

  RunObject(std::shared_ptr<SessionObject> session, std::unique_ptr<Call> call)
      : session_(std::move(session)),
        inputs_(session_->session->inputs().size()),
        outputs_(session_->session->outputs().size()),
        plain_call_(std::move(call)),
        call_(plain_call_.get()),
        tally_(session_->begin_tally()) {}
  ~RunObject() override { session_->end_tally(tally_); }
  void released() noexcept override;

  const Locations* locations_or_null() const { return session_->locations_or_null(); }

  Call& call() { return *call_.load(std::memory_order_acquire); }
  const Session& session() const { return *session_->session; }
  bool is_of(const SessionObject& session) const { return session_.get() == &session; }
  Refusal bind_input(size_t index, Tensor value);
  Refusal bind_output(size_t index, const TensorView& view, bool is_on_device = false);
  // Null `place`: no more.
  Refusal place_output(size_t index, eddy_output_place place, void* user);
  // Of the last run, which has succeeded.
  TensorView output(size_t index);
  bool is_on_device(size_t index) const {
    return outputs_[index].has_value() && outputs_[index]->is_on_device;
  }
  Refusal stream_output(size_t index, std::shared_ptr<RowsObject> rows_or_null);
  // Where the session's runs may owe answers by execute_owing(), which keeps what is overdue.
  bool may_owe() const { return session_->may_owe; }
  Refusal execute(const eddy_run_options* options) {
    if (options == nullptr && are_rows_open()) [[likely]]
      return execute_with(plain_options_);
    return execute_as(options);
  }
  static Refusal execute_owing(const std::shared_ptr<RunObject>& run,
                               const eddy_run_options* given);
  // Between two runs.
  Refusal start_trace();
  Refusal stop_trace(std::string& json);

  struct Ending {
    std::shared_ptr<ExecutorObject> executor_or_null;
    eddy_run_callback callback_or_null = nullptr;
    void* user = nullptr;
    std::shared_ptr<StreamObject> stream_or_null;
  };
  // `begun` is called once the run may not be used by others until it has ended: from then on, as
  // it may be called back before this returns, it is its callback's.
  static Refusal submit(std::shared_ptr<RunObject> run, eddy_run handle,
                        const eddy_run_options* options, Ending ending,
                        const std::function<void()>& begun);
  // Until the run has ended or is overdue; EDDY_NOT_DONE where the limit (< 0: none) comes first.
  Refusal wait(int64_t limit_ns);
  // Of the run that has ended, or is overdue; else EDDY_NOT_DONE.
  Refusal poll();
  // That no run is under way.
  Refusal check_ended();
  Refusal fd(int* fd);

 private:
  Refusal read_options(const eddy_run_options* given, RunOptions& options) const;
  // A submission that tells someone of its end, or that may be overdue.
  struct Submission final : RunEnd, Task {
    // By the thread that ends the run: nothing; a thread that waits sees it; the task is posted.
    enum class AtOnce : uint8_t { kNothing, kWaited, kPosted };

    RunObject* object = nullptr;             // kept by one of the two, or by the thread that waits
    std::shared_ptr<RunObject> run;          // goes where the end is reported
    std::shared_ptr<RunObject> overdue_run;  // until it has ended; under the object's mutex
    eddy_run handle = nullptr;               // with a reference of its own, or null
    uint64_t number = 0;
    Ending ending;
    AtOnce at_once = AtOnce::kNothing;
    bool has_ended = false;
    eddy_code code = EDDY_OK;  // once it has

    bool end_at_once(std::shared_ptr<RunEnd>& self, const Status& status) override;
    void end(std::shared_ptr<RunEnd>& self, const Status& status) override;
    // Tells the caller. The run, whose last handle may go then, goes with it.
    void call(std::shared_ptr<Task> self) override;

    bool end_waited();
    void note_end(const Status& status);
    static void note_overdue(std::shared_ptr<Submission> self, const std::shared_ptr<RunObject>& of,
                             const Status& why);
  };
  // On the way into runs of sessions that may owe: such a run tells the submission.
  static void watch(const std::shared_ptr<RunObject>& run, const std::shared_ptr<Submission>& made,
                    RunOptions& options);
  Refusal result();
  Refusal check_rows();  // that this thread may wait
  // Under the mutex: the last run is overdue, and an answer is owed still.
  bool is_overdue() { return !overdue_.is_ok() && ended_ < submission_ && call().is_overdue(); }
  // Sets the descriptor and counts the run, unless the next one was submitted; its code.
  eddy_code note_end(uint64_t submission, const Status& status);
  bool may_end_at_once(const Ending& ending) const;  // by the thread that has the run alone
  // Before the next run: the last one may have ended unseen.
  void settle() {
    if (is_counted_.load(std::memory_order_relaxed) || !call().is_done()) return;
    [[maybe_unused]] const Refusal seen = result();
  }
  // The first of those that see how a run has ended counts it.
  void count(eddy_code code) {
    if (!is_counted_.exchange(true, std::memory_order_relaxed)) session_->count(code);
  }

  const std::shared_ptr<SessionObject> session_;
  // Of a binding that a second call takes over: its shape, too.
  struct BoundOutput {
    TensorView view;
    Dims dims;
    bool is_on_device = false;

    Status bind(Call& call, size_t index) const {
      TensorView at = view;
      at.dims = dims.data();
      return is_on_device ? call.bind_device_output(index, at) : call.bind_output(index, at);
    }
  };
  Status submit_to(StreamObject* stream_or_null, const RunOptions& options,
                   std::shared_ptr<RunEnd> end_or_null, const std::function<void()>& begun);
  Refusal bind_to(Call& call);
  bool are_rows_open() const {
    return std::ranges::none_of(rows_, [](const auto& each) { return each.second->is_closed(); });
  }
  // What a run calls may release the last handles, inside the very run: it keeps what it needs
  // until it has ended.
  bool outlives_handles() const {
    return session_->may_owe || std::ranges::any_of(rows_, [](const auto& each) {
             return each.second->is_called_in_loop();
           });
  }
  Refusal execute_as(const eddy_run_options* given);
  Refusal execute_with(const RunOptions& options);
  // Of the checking mode and of placed outputs: before a run, and by the first that sees how it has
  // ended.
  bool is_watched() const {
    return session_->own.checks_memory || has_placings_.load(std::memory_order_relaxed);
  }
  Refusal begin_run(uint64_t* submission_or_null = nullptr);
  // Of that submission; nothing where the next one has begun.
  Refusal end_run(const Status& status, uint64_t submission);
  uint64_t submission();
  Refusal finish(const Status& status);  // under the mutex
  Refusal copy_outputs();                // likewise

  std::vector<std::optional<Tensor>> inputs_;
  std::vector<std::optional<BoundOutput>> outputs_;
  std::shared_ptr<StreamObject> stream_or_null_;  // of the last run; goes behind its call
  // Changed under the mutex, by those that have the run alone.
  std::vector<std::pair<size_t, std::shared_ptr<RowsObject>>> rows_;
  // Calls are traced by what they are prepared with, and threads may wait for one of the two while
  // another begins or ends a trace: both stay. They go before what their runs may still read.
  const std::unique_ptr<Call> plain_call_;
  std::unique_ptr<TraceRecorder> recorder_;  // made with the first trace
  std::unique_ptr<Call> traced_call_;
  std::atomic<Call*> call_;           // one of them: released by start_trace and stop_trace
  RunOptions plain_options_;          // with the streams of `rows_`
  const SessionObject::Tally tally_;  // of what execute() has run
  std::atomic<bool> is_counted_{true};
  std::mutex mutex_;
  // An output that the caller finds a place for once its shape is known.
  struct Placing {
    size_t index = 0;
    eddy_output_place place = nullptr;
    void* user = nullptr;
    BoundOutput made = {};  // of the last run
  };
  std::vector<Placing> placings_;  // under the mutex
  std::atomic<bool> has_placings_{false};
  bool is_placed_ = true;            // under the mutex
  std::vector<MemoryCheck> checks_;  // under the mutex, as is what has failed at the run's end
  Refusal found_;
  EventFile file_;           // under the mutex
  uint64_t submission_ = 0;  // under the mutex: the last one's number
  // In sessions that may owe; under the mutex.
  uint64_t ended_ = 0;  // the last one that has ended
  Status overdue_;      // why the last one is, once it is
  std::condition_variable changed_;
};

}  // namespace eddy::c
