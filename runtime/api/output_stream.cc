#include "runtime/api/output_stream.h"

#include <algorithm>
#include <utility>

#include "graph/base/check.h"
#include "runtime/api/session_runs.h"

namespace eddy {

OutputStream::OutputStream(size_t max_waiting, std::function<void(Tensor)> on_value,
                           std::function<void()> on_change, RowCalls calls)
    : max_waiting_(std::max<size_t>(max_waiting, 1)),
      on_value_(std::move(on_value)),
      on_change_(std::move(on_change)),
      calls_(calls) {}

std::optional<Tensor> OutputStream::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !rows_.empty() || is_closed_ || is_over_; });
  return take(lock);
}

std::optional<Tensor> OutputStream::next_for(std::chrono::nanoseconds timeout, bool& is_over) {
  std::unique_lock lock(mutex_);
  const auto has_news = [this] { return !rows_.empty() || is_closed_ || is_over_; };
  if (timeout.count() > 0) {
    const auto now = std::chrono::steady_clock::now();
    const auto most = std::chrono::steady_clock::time_point::max() - now;
    changed_.wait_until(lock, timeout < most ? now + timeout : now + most, has_news);
  }
  is_over = rows_.empty() && (is_closed_ || is_over_);
  return take(lock);
}

// The first row, if there is one; a loop that waits for room goes on.
std::optional<Tensor> OutputStream::take(std::unique_lock<std::mutex>& lock) {
  if (rows_.empty()) return std::nullopt;
  std::optional<Tensor> row = std::move(rows_.front());
  rows_.pop_front();
  const std::function<void()> waiter = std::exchange(waiter_, nullptr);
  lock.unlock();
  if (waiter) waiter();
  return row;
}

void OutputStream::close() {
  std::deque<Tensor> rows;  // go after the lock
  std::function<void()> waiter;
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    rows.swap(rows_);
    waiter.swap(waiter_);
  }
  changed_.notify_all();
  if (waiter) waiter();
}

Status OutputStream::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void OutputStream::begin(std::function<void(std::function<void()>)> post) {
  const std::lock_guard lock(mutex_);
  post_ = std::move(post);
  is_over_ = is_closed_ = false;
  status_ = Status::ok();
  rows_.clear();
}

bool OutputStream::reserve(std::shared_ptr<const SessionRuns> runs) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(is_reserved_, true)) return false;
  runs_or_null_ = std::move(runs);
  return true;
}

Status OutputStream::check_wait() const {
  std::shared_ptr<const SessionRuns> runs_or_null;
  {
    const std::lock_guard lock(mutex_);
    if (rows_.empty() && !is_closed_) runs_or_null = runs_or_null_;
  }
  return runs_or_null == nullptr ? Status::ok() : runs_or_null->check_wait();
}

void OutputStream::refuse(const Status& why) {
  {
    const std::lock_guard lock(mutex_);
    if (is_reserved_) return;
  }
  end(why);
}

void OutputStream::leave(Status status) {
  std::function<void()> waiter;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    status_ = std::move(status);
    runs_or_null_ = nullptr;
    waiter.swap(waiter_);
  }
  changed_.notify_all();
  if (on_change_) on_change_();
  if (waiter) waiter();
}

void OutputStream::end(Status status) {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    is_reserved_ = false;
    status_ = std::move(status);
    post_ = nullptr;
    runs_or_null_ = nullptr;
  }
  changed_.notify_all();
  if (on_change_) on_change_();
}

void OutputStream::push(const TensorView& row) {
  Tensor copy = Tensor::copy_of(row);
  const bool calls_here = on_value_ && calls_ == RowCalls::kInLoop;
  std::function<void(std::function<void()>)> post;
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_ || is_over_) return;
    if (!calls_here) rows_.push_back(std::move(copy));
    if (needs_callback_thread()) post = post_;
    if (post) ++num_posted_;
  }
  if (calls_here) return call(std::move(copy));
  changed_.notify_one();
  if (on_change_) on_change_();
  if (post) post([self = shared_from_this()] { self->deliver(); });
}

// What the user's function throws must not end its thread: no row more is wanted then.
void OutputStream::call(Tensor row) try { on_value_(std::move(row)); } catch (...) {
  close();
}

void OutputStream::deliver() {
  {
    std::unique_lock lock(mutex_);
    if (std::optional<Tensor> row = take(lock)) call(std::move(*row));
  }
  {
    const std::lock_guard lock(mutex_);
    EDDY_DCHECK(num_posted_ > 0) << "a row is delivered that was not posted";
    --num_posted_;
  }
  changed_.notify_all();
}

void OutputStream::wait_delivered() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return num_posted_ == 0; });
}

bool OutputStream::has_room_or(std::function<void()> waiter) {
  const std::lock_guard lock(mutex_);
  if (is_closed_ || is_over_ || rows_.size() < max_waiting_) return true;
  waiter_ = std::move(waiter);
  return false;
}

bool OutputStream::forget_waiter() {
  const std::lock_guard lock(mutex_);
  return std::exchange(waiter_, nullptr) != nullptr;
}

}  // namespace eddy
