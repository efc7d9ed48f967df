// RowsObject: the rows of an output while its loop runs, for a caller's event loop or executor.
//
// Internal to runtime/api/c. Rows wait in the OutputStream until they are taken, so its bound holds
// whatever takes them: rows_next(), or an executor's task for each row. Ownership: runs keep it.
#pragma once

#include <memory>

#include "runtime/api/c/event_file.h"
#include "runtime/api/c/executor.h"
#include "runtime/api/output_stream.h"

namespace eddy::c {

class RowsObject : public Object {
 public:
  static constexpr Kind kKind = Kind::kRows;

  static std::shared_ptr<RowsObject> make(size_t max_waiting,
                                          std::shared_ptr<ExecutorObject> executor_or_null,
                                          eddy_row_callback callback, std::shared_ptr<void> user);

  const std::shared_ptr<OutputStream>& stream() const { return stream_; }
  bool has_callback() const { return callback_ != nullptr; }
  bool is_called_in_loop() const {
    return callback_ != nullptr && executor_or_null_ != nullptr &&
           executor_or_null_->kind() == EDDY_EXECUTOR_INLINE;
  }
  // Whether this thread is inside the callback for one of its rows.
  bool is_called_here() const;
  Refusal next(int64_t timeout_ns, eddy_value* value);
  int fd();
  void close();
  bool is_closed() const { return is_closed_->load(std::memory_order_acquire); }
  // Nobody can take rows any more.
  void released() noexcept override {
    if (callback_ == nullptr) close();
  }

 private:
  void on_change();
  // Where a row goes. Apart from this object: rows that wait when its last handle goes are called
  // for, too.
  struct Callee {
    eddy_row_callback callback = nullptr;
    std::shared_ptr<void> user;  // and what ends it
    std::shared_ptr<std::atomic<bool>> is_closed;
    void call(OutputStream& stream, Tensor row) const;
  };

  std::shared_ptr<OutputStream> stream_;
  std::shared_ptr<ExecutorObject> executor_or_null_;
  eddy_row_callback callback_ = nullptr;
  std::shared_ptr<void> user_;
  std::mutex mutex_;
  EventFile file_;  // opened under the mutex
  std::atomic<bool> has_file_{false};
  // Released by close(), and when the callback throws: runs to come bring no rows.
  const std::shared_ptr<std::atomic<bool>> is_closed_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace eddy::c
