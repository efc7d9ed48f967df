// LoopChoice: which of several ways drives a loop, found by timing them: as one kernel of the
// device, where it is small enough for that, as a recording that decides by itself, plain or
// unrolled (unrolling.h), or by the host.
//
// Each way is tried kTries times; the first try of each pays for recordings and counts for nothing,
// the fastest of the others, per iteration, is held against those of the other ways. From then on
// it is settled and costs one load. Of ties the earlier way is taken, in the order of Way: the
// device's ways leave the host's thread free. A way that turns out not to work is ruled out, and
// the reason told.
//
// Trip counts may differ between tries: time per iteration is what is compared, with at least one
// iteration counted. Runs that share a program share its choices, so what the first runs have found
// the later ones use.
//
// All ways give the same values, so nothing depends on the clock but time. Threads: any; a mutex,
// until it is settled.
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
  Advice next() const;
  void report(Way way, int64_t elapsed_ns, int64_t iterations);
  // It cannot be done, and why. Not for the host's.
  void rule_out(Way way, std::string why);
  bool is_settled() const { return settled_.load(std::memory_order_acquire) != kOpen; }
  // "measured, µs an iteration: 0.9 as one kernel, 4.3 by a recording, 8.1 by the host", and what
  // was ruled out; empty: not settled.
  std::string text() const;

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

  mutable std::mutex mutex_;
  std::array<Tried, std::size(kWays)> tried_;  // by Way; under the mutex
  std::atomic<int> settled_{kOpen};  // a Way; released once tried_ does not change any more
};

}  // namespace eddy
