// LoopChoice: which of several ways drives a loop, found by timing them: as one kernel of the
// device, where it is small enough for that, as a recording that decides by itself, plain or
// unrolled (unrolling.h), or by the host.
//
// Each way is tried kTries times; the first try of each pays for recordings and counts for nothing,
// the fastest of the others, per iteration, is held against those of the other ways. Then it is
// settled. Of ties the earlier way is taken, in the order of Way, and the host's where it is faster
// by more than kHostsMargin: the device's ways leave the host's thread free, and take as long again
// the next time, where the host's depend on what else its processor does. A way that turns out not
// to work is ruled out, and the reason reported.
//
// A loaded process may have timed a way wrongly, and what is best may change. So what is settled
// holds for kFirstHold uses, then all ways are tried anew; for twice as many each time they say the
// same, so that trying costs next to nothing in the long run.
//
// Trip counts may differ between tries: time per iteration is what is compared, with at least one
// iteration counted. Runs that share a program share its choices, so what the first runs have found
// the later ones use.
//
// All ways give the same values, so nothing depends on the clock but time. Threads: any; a mutex,
// while it is not settled. Cost: settled, a load and a count.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

namespace eddy {

class LoopChoice {
 public:
  enum class Way : uint8_t { kKernel, kRecording, kUnrolled, kHost };
  static constexpr int kTries = 3;
  static constexpr double kHostsMargin = 1.125;
  static constexpr int64_t kFirstHold = 1000;
  static constexpr int64_t kLongestHold = 1 << 20;

  // Ways that the loop has, besides a recording and the host.
  struct Has {
    bool kernel = false;
    bool unrolled = false;
  };
  explicit LoopChoice(const Has& has);

  struct Advice {
    Way way;
    bool is_try;  // report how it went
  };
  Advice next();
  void report(Way way, int64_t elapsed_ns, int64_t iterations);
  // It cannot be done, and why. Not for the host's.
  void rule_out(Way way, std::string why);
  bool is_settled() const { return settled_.load(std::memory_order_acquire) != kOpen; }
  // "measured, µs an iteration: 0.9 as one kernel, 4.3 by a recording, 8.1 by the host", and what
  // was ruled out, when it was settled last; empty: never.
  std::string text() const {
    std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  enum : int { kOpen = -1 };
  static constexpr Way kWays[] = {Way::kKernel, Way::kRecording, Way::kUnrolled, Way::kHost};
  struct Tried {
    int times = 0;
    double best_ns = 0;  // an iteration; of those that count
    bool is_out = false;
    std::string why_out = {};
  };

  const Tried& tried(Way way) const { return tried_[static_cast<size_t>(way)]; }
  Tried& tried(Way way) { return tried_[static_cast<size_t>(way)]; }
  void settle_if_tried();
  void open_again();
  std::string describe() const;

  mutable std::mutex mutex_;
  std::array<Tried, std::size(kWays)> tried_;  // by Way; under the mutex
  std::atomic<int> settled_{kOpen};            // a Way; released once tried_ is settled
  std::atomic<int64_t> uses_left_{0};          // while it is settled
  int last_ = kOpen;                           // settled before; under the mutex
  int64_t hold_ = kFirstHold;                  // under the mutex
  std::string text_;                           // under the mutex
};

}  // namespace eddy
