// StreamProgress: how far one stream has come, readable from any thread without a driver call.
//
// Positions count what was asked of the stream (works, records, waits, gates). `requested` runs
// ahead of `issued` while the stream is out of credit; `completed` follows behind, as the device
// writes positions (their low 32 bits) into the stream's word.
//
// Memory: a stream uses a block only by its Works; a record, a wait or a gate uses none. A Work is
// requested before the host drops the last reference to what it uses (allocators learn of it then),
// so a block is unused once every stream has passed the last Work that was requested of it
// by then. So a stream that stands before a gate of a run, as an application's does from run to
// run, holds up no block of that run, nor of any other.
//
// A tail is a graph whose last kernel writes 1 into a second word (stream_tails.h). Its value does
// not say which launch it is of, so a launch is armed, its position given by the word, only once
// all tails before it have run; a launch that is not armed is learned of by the next mark.
//
// Memory order: completed() reads the words with acquire; their partners are the device's writes
// behind a memory barrier, so what the stream did up to that position is visible to the reader.
// arm_tail() keeps in `told` what is known, clears the word, and only then take_tail() stores the
// position that the word will give, each with release: a reader of the position (acquire) sees the
// word cleared, and one that sees it cleared sees `told`.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace eddy {

class StreamProgress {
 public:
  // `word_or_null`: null where streams cannot write words; then its stream reports what events
  // show.
  explicit StreamProgress(uint32_t* word_or_null, uint32_t* tail_word_or_null = nullptr)
      : word_(word_or_null), tail_word_(tail_word_or_null) {}

  // Sequentially consistent: WorkWatch's sleepers look at it behind their watch().
  uint64_t requested() const { return requested_.load(); }
  uint64_t last_work() const { return last_work_.load(std::memory_order_acquire); }
  uint64_t issued() const { return issued_.load(std::memory_order_acquire); }
  uint64_t completed() const {
    if (is_ended_.load(std::memory_order_acquire)) return requested();
    if (word_ == nullptr) return told_.load(std::memory_order_acquire);
    const uint64_t tail = tail_position_.load(std::memory_order_acquire);
    const bool has_told = tail != 0 && std::atomic_ref(*tail_word_).load(std::memory_order_acquire);
    const uint64_t told = std::max(told_.load(std::memory_order_acquire), has_told ? tail : 0);
    // Read first: what is issued afterwards only widens the distance. It stays far below 2^32,
    // because credit bounds what is in flight.
    const uint32_t word = std::atomic_ref<uint32_t>(*word_).load(std::memory_order_acquire);
    const uint64_t issued = this->issued();
    return std::max(told, issued - static_cast<uint32_t>(static_cast<uint32_t>(issued) - word));
  }
  bool has_completed(uint64_t position) const { return completed() >= position; }

  // By the thread that issues, just before a tail is launched.
  void arm_tail() {
    is_tail_launched_ = true;
    const uint64_t completed = this->completed();
    is_tail_armed_ = tail_word_ != nullptr && completed >= last_tail_;
    if (!is_tail_armed_) return;
    told_.store(completed, std::memory_order_release);
    std::atomic_ref(*tail_word_).store(0, std::memory_order_release);
  }
  // It was refused.
  void disarm_tail() { is_tail_launched_ = is_tail_armed_ = false; }
  // Behind a Work at that position. True: it ends with a tail, which tells of it.
  bool take_tail(uint64_t position) {
    if (!std::exchange(is_tail_launched_, false)) return false;
    last_tail_ = position;
    if (!std::exchange(is_tail_armed_, false)) return false;
    tail_position_.store(position, std::memory_order_release);
    return true;
  }

  // Asks poll() to mark the stream, so that `completed` can move on.
  void want_mark() { is_mark_wanted_.store(true, std::memory_order_relaxed); }

 private:
  friend class CudaStream;
  uint32_t* const word_;
  uint32_t* const tail_word_;
  bool is_tail_launched_ = false, is_tail_armed_ = false;  // the issuer's
  uint64_t last_tail_ = 0;                                 // the issuer's: armed or not
  std::atomic<uint64_t> tail_position_{0};                 // the last one armed; 0: none
  std::atomic<uint64_t> requested_{0};
  std::atomic<uint64_t> last_work_{0};  // its position; 0: none yet
  std::atomic<uint64_t> issued_{0};
  std::atomic<uint64_t> told_{0};
  std::atomic<bool> is_mark_wanted_{false};
  std::atomic<bool> is_ended_{false};  // the stream is gone or its device lost: all is over
};

// The streams of a device that may have work.
class ProgressList {
 public:
  struct Position {
    std::shared_ptr<StreamProgress> progress;
    uint64_t at;
    bool is_reached() const { return progress->has_completed(at); }
  };

  void add(std::shared_ptr<StreamProgress> progress) {
    std::lock_guard lock(mutex_);
    list_.push_back(std::move(progress));
  }
  void remove(const StreamProgress* progress) {
    std::lock_guard lock(mutex_);
    std::erase_if(list_, [&](const auto& entry) { return entry.get() == progress; });
  }
  // The last Work of every stream that has not run it yet: once all are reached, no block that was
  // released until now is used any more.
  std::vector<Position> now() const {
    std::vector<Position> positions;
    std::lock_guard lock(mutex_);
    for (const auto& progress : list_) {
      const uint64_t at = progress->last_work();
      if (!progress->has_completed(at)) positions.push_back({progress, at});
    }
    return positions;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<StreamProgress>> list_;  // under the mutex
};

}  // namespace eddy
