// LoopChoice: which of two ways drives a loop, found by timing both: the host's or the device's.
//
// Each way is tried kTries times; the first try of each pays for recordings and counts for nothing,
// the fastest of the others, per iteration, is held against that of the other way. From then on it
// is settled and costs one load. Ties go to the device, which leaves the host's thread free.
//
// Trip counts may differ between tries: time per iteration is what is compared, with at least one
// iteration counted. Runs that share a program share its choices, so what the first runs have found
// the later ones use.
//
// Both ways give the same values, so nothing depends on the clock but time. Threads: any; a mutex,
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
  enum class Way : uint8_t { kHost, kDevice };
  static constexpr int kTries = 3;

  struct Advice {
    Way way;
    bool is_try;  // report how it went
  };
  Advice next() const;
  void report(Way way, int64_t elapsed_ns, int64_t iterations);
  bool is_settled() const { return settled_.load(std::memory_order_acquire) != kOpen; }
  // "measured: 4.3 µs an iteration by the device, 8.1 by the host"; empty: not settled.
  std::string text() const;

 private:
  enum : int { kOpen = -1 };
  struct Tried {
    int times = 0;
    double best_ns = 0;  // an iteration; of those that count
  };

  const Tried& tried(Way way) const { return tried_[static_cast<size_t>(way)]; }

  mutable std::mutex mutex_;
  std::array<Tried, 2> tried_;       // by Way; under the mutex
  std::atomic<int> settled_{kOpen};  // a Way; released once tried_ does not change any more
};

}  // namespace eddy
