#include "runtime/api/c/rows.h"

#include <chrono>

#include "runtime/api/c/api_functions.h"
#include "runtime/api/c/convert.h"
#include "runtime/api/c/errors.h"
#include "runtime/api/c/user_code.h"
#include "runtime/api/c/value.h"

namespace eddy::c {

std::shared_ptr<RowsObject> RowsObject::make(size_t max_waiting,
                                             std::shared_ptr<ExecutorObject> executor_or_null,
                                             eddy_row_callback callback,
                                             std::shared_ptr<void> user) {
  auto rows = std::make_shared<RowsObject>();
  const std::weak_ptr<RowsObject> weak = rows;
  const bool is_inline =
      executor_or_null != nullptr && executor_or_null->kind() == EDDY_EXECUTOR_INLINE;
  std::function<void(Tensor)> on_value;
  const auto stream = std::make_shared<std::weak_ptr<OutputStream>>();
  if (callback != nullptr && (executor_or_null == nullptr || is_inline)) {
    on_value = [stream, callee = Callee{callback, user, rows->is_closed_}](Tensor row) {
      if (const auto self = stream->lock()) callee.call(*self, std::move(row));
    };
  }
  rows->executor_or_null_ = std::move(executor_or_null);
  rows->callback_ = callback;
  rows->user_ = std::move(user);
  const auto on_change = [weak] {
    if (const auto self = weak.lock()) self->on_change();
  };
  rows->stream_ =
      std::make_shared<OutputStream>(max_waiting, std::move(on_value), on_change,
                                     is_inline ? RowCalls::kInLoop : RowCalls::kOnCallbackThread);
  *stream = rows->stream_;
  return rows;
}

void RowsObject::on_change() {
  if (callback_ == nullptr) {
    if (has_file_.load(std::memory_order_acquire)) file_.set();
    return;
  }
  if (executor_or_null_ == nullptr || executor_or_null_->kind() == EDDY_EXECUTOR_INLINE) return;
  // Not this object, which keeps the executor whose queue the function waits in.
  executor_or_null_->post([stream = stream_, callee = Callee{callback_, user_, is_closed_}] {
    bool is_over = false;
    if (auto row = stream->next_for({}, is_over)) callee.call(*stream, std::move(*row));
  });
}

namespace {
thread_local const OutputStream* called_here = nullptr;
}  // namespace

bool RowsObject::is_called_here() const { return called_here == stream_.get(); }

// Without memory for a handle, or once the caller's function throws, no further row is wanted:
// executors call what throws nothing.
void RowsObject::Callee::call(OutputStream& stream, Tensor row) const {
  eddy_value value = nullptr;
  try {
    value = make_handle<eddy_value>(std::make_shared<ValueObject>(std::move(row)));
  } catch (const std::bad_alloc&) {
    return stream.close();
  }
  const OutputStream* const outer = std::exchange(called_here, &stream);
  std::string thrown;
  if (!has_returned(thrown, [&] { callback(user.get(), value); })) {
    is_closed->store(true, std::memory_order_release);
    stream.close();
  }
  called_here = outer;
}

Refusal RowsObject::next(int64_t timeout_ns, eddy_value* value) {
  bool is_over = false;
  // Cleared before it is looked, so that what comes meanwhile sets it again.
  const bool has_file = has_file_.load(std::memory_order_acquire);
  if (has_file) file_.clear();
  std::optional<Tensor> row;
  if (timeout_ns < 0) {
    row = stream_->next();
    is_over = !row;
  } else {
    row = stream_->next_for(std::chrono::nanoseconds(timeout_ns), is_over);
  }
  if (has_file && (row || is_over)) file_.set();
  if (!row) return {is_over ? EDDY_END : EDDY_NOT_DONE, ""};
  *value = make_handle<eddy_value>(std::make_shared<ValueObject>(std::move(*row)));
  return {};
}

int RowsObject::fd() {
  const std::lock_guard lock(mutex_);
  if (!file_.is_open()) {
    file_.open();
    file_.set();  // what has come before is looked for once
    has_file_.store(true, std::memory_order_release);
  }
  return file_.fd();
}

void RowsObject::close() {
  is_closed_->store(true, std::memory_order_release);
  stream_->close();
  on_change();
}

namespace {

// An executor that a call may leave out.
Refusal share_executor(eddy_executor executor, std::shared_ptr<ExecutorObject>& shared) {
  if (executor == nullptr) return {};
  Refusal why;
  const Pin<ExecutorObject> pin(executor, why);
  if (pin) shared = pin.share();
  return why;
}

}  // namespace

eddy_code rows_create(size_t max_waiting, eddy_executor executor, eddy_row_callback callback,
                      void* user, eddy_rows* rows, eddy_error* error) {
  return rows_create_with(max_waiting, executor, callback, user, nullptr, rows, error);
}

eddy_code rows_create_with(size_t max_waiting, eddy_executor executor, eddy_row_callback callback,
                           void* user, eddy_function destroy, eddy_rows* rows, eddy_error* error) {
  return enter(error, [&]() -> Refusal {
    std::shared_ptr<void> owned(user, [destroy](void* gone) {
      if (destroy != nullptr) call_and_forget([&] { destroy(gone); });
    });
    EDDY_C_TRY(need(rows, "place for the stream of rows"));
    std::shared_ptr<ExecutorObject> shared;
    EDDY_C_TRY(share_executor(executor, shared));
    *rows = make_handle<eddy_rows>(
        RowsObject::make(max_waiting, std::move(shared), callback, std::move(owned)));
    return {};
  });
}

eddy_code rows_next(eddy_rows rows, int64_t timeout_ns, eddy_value* value, eddy_error* error) {
  return enter_with<RowsObject>(rows, error, [&](const auto& r) -> Refusal {
    EDDY_C_TRY(need(value, "place for the value"));
    if (r->has_callback()) {
      return {EDDY_INVALID_STATE, "these rows go to a callback; make a stream without one"};
    }
    if (timeout_ns != 0) EDDY_C_TRY(r->stream()->check_wait());
    return r->next(timeout_ns, value);
  });
}

eddy_code rows_fd(eddy_rows rows, int* fd, eddy_error* error) {
  return enter_with<RowsObject>(rows, error, [&](const auto& r) -> Refusal {
    EDDY_C_TRY(need(fd, "place for the descriptor"));
    if (r->has_callback()) {
      return {EDDY_INVALID_STATE, "these rows go to a callback; make a stream without one"};
    }
    *fd = r->fd();
    return {};
  });
}

eddy_code rows_close(eddy_rows rows, eddy_error* error) {
  return enter_with<RowsObject>(rows, error, [&](const auto& r) -> Refusal {
    r->close();
    return {};
  });
}

}  // namespace eddy::c
