// OutputStream: the values of one output while the loop that makes them runs.
//
//   auto tokens = std::make_shared<OutputStream>(16);
//   RunHandle run = session->run_async(inputs, {}, {.streams = {{"tokens", tokens}}});
//   while (std::optional<Tensor> token = tokens->next()) print(*token);
//   tokens->status();  // how the run has ended
//
// The output is one whose rows a loop of the graph itself stacks, one in each iteration; each row
// comes here when it is made, in order, and the output is what it always is. The loop waits only
// while max_waiting rows wait here, and nothing but its strand does. Instead of by next(), rows may
// be had by `on_value`, called before the run's own callback: on the session's callback thread, or
// in the loop itself (RowCalls), which costs no thread's wake and holds the loop until it returns.
//
// A stream is for one run at a time; a second one is refused. Closed early, it lets the loop go on
// without it.
//
// Errors: next() has no value once the run has ended and all its rows are taken; status() is how
// the run ended, and of a run that was refused why. Threads: next() by one at a time, close() and
// the rest from any. Cost: a copy of each row, and a lock.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "runtime/api/tensor.h"
#include "runtime/execute/values/row_sink.h"

namespace eddy {

class SessionRuns;

// Where a stream's on_value is called. kInLoop: by the thread that has made the row, as a kernel of
// the run: the loop, and a stop of the run, wait for it, and it may wait for no run of the session.
enum class RowCalls { kOnCallbackThread, kInLoop };

class OutputStream : public RowSink, public std::enable_shared_from_this<OutputStream> {
 public:
  // max_waiting 0 counts as 1. `on_change` is called when a row has come and when the run has
  // ended, by the thread that brings it, so it must be quick: what wakes an event loop that then
  // calls next_for().
  explicit OutputStream(size_t max_waiting, std::function<void(Tensor)> on_value = {},
                        std::function<void()> on_change = {},
                        RowCalls calls = RowCalls::kOnCallbackThread);

  // Waits for the next row; none: there will be no more.
  std::optional<Tensor> next();
  // Waits for so long at most. None: it has not come yet or, where is_over, there will be no more.
  std::optional<Tensor> next_for(std::chrono::nanoseconds timeout, bool& is_over);
  // Whether next() would wait, on this thread, for a run that waits for this very thread: in a host
  // function or callback of the session that brings the rows.
  Status check_wait() const;
  // No more rows are wanted; those that wait are dropped.
  void close();
  // Of the run; ok while it goes on.
  Status status() const;

  // --- for sessions ---
  bool needs_callback_thread() const { return on_value_ && calls_ == RowCalls::kOnCallbackThread; }
  // For one run, which is of `runs`, until its end(). False: another one has it.
  bool reserve(std::shared_ptr<const SessionRuns> runs);
  // A run that had not reserved it was refused.
  void refuse(const Status& why);
  void begin(std::function<void(std::function<void()>)> post);
  // Until on_value, if there is one, has had all rows.
  void wait_delivered();
  // The run has its result, though it goes on: no row comes any more.
  void leave(Status status);
  void end(Status status);
  void push(const TensorView& row) override;
  bool has_room_or(std::function<void()> waiter) override;
  bool forget_waiter() override;

 private:
  void call(Tensor row);
  void deliver();
  std::optional<Tensor> take(std::unique_lock<std::mutex>& lock);

  const size_t max_waiting_;
  const std::function<void(Tensor)> on_value_;
  const std::function<void()> on_change_;
  const RowCalls calls_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Under the mutex.
  std::function<void(std::function<void()>)> post_;
  std::shared_ptr<const SessionRuns> runs_or_null_;  // of the session whose run has reserved it
  std::deque<Tensor> rows_;
  std::function<void()> waiter_;
  size_t num_posted_ = 0;  // deliveries that are still to come, or under way
  bool is_reserved_ = false;
  bool is_over_ = false;
  bool is_closed_ = false;
  Status status_;
};

}  // namespace eddy
