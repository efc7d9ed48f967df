// Metrics: what the server counts, and its text in Prometheus' exposition format (version 0.0.4).
//
//   metrics.add_response(200);
//   const RunTimer run(metrics);  // in flight while it lives
//   text = metrics.text({.tensor_bytes = 4096});
//
// Durations fall into the buckets of kBucketsNs, which are cumulative in the text: each counts what
// took no longer. A text's histogram agrees with itself: its last bucket is its count. What is
// counted while a text is made may be in one of its lines and not in another.
// Errors: none. Threads: any; the counters are independent, and order nothing. Cost: O(1) to count.
// Source: prometheus.io/docs/instrumenting/exposition_formats.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace eddy::server {

// Runs by the samples that share them: buckets of 1, 2, 4, ... 128, and +Inf. Any thread.
class BatchSizes {
 public:
  static constexpr size_t kNumBounds = 8;
  static int64_t bound(size_t bucket) { return int64_t{1} << bucket; }

  void add(int64_t num_samples);
  uint64_t count(size_t bucket) const { return counts_[bucket].load(); }
  int64_t num_samples() const { return num_samples_.load(); }

 private:
  std::array<std::atomic<uint64_t>, kNumBounds + 1> counts_{};  // not cumulative
  std::atomic<int64_t> num_samples_{0};
};

inline constexpr const char* kMetricsType = "text/plain; version=0.0.4";

// 1 ms to 10 s; slower runs are in the last bucket, +Inf.
inline constexpr std::array<int64_t, 13> kBucketsNs = {
    1'000'000,     2'500'000,     5'000'000,     10'000'000,  25'000'000,
    50'000'000,    100'000'000,   250'000'000,   500'000'000, 1'000'000'000,
    2'500'000'000, 5'000'000'000, 10'000'000'000};

// What others count, when the text is made.
struct Gauges {
  uint64_t tensor_bytes = 0;
  uint64_t peak_tensor_bytes = 0;
  uint64_t num_connections = 0;
  const BatchSizes* batch_sizes_or_null = nullptr;  // null: requests share no runs
};

class Metrics {
 public:
  Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void add_response(int code);  // 100 to 599; others are counted as 500
  void begin_run() { ++num_in_flight_; }
  void end_run() { --num_in_flight_; }
  // Of a run that has ended, well or not.
  void add_duration(std::chrono::nanoseconds duration);

  uint64_t num_responses() const;
  int64_t num_in_flight() const { return num_in_flight_.load(); }
  std::string text(const Gauges& gauges) const;

 private:
  static constexpr int kFirstCode = 100;
  static constexpr int kNumCodes = 500;

  const double start_s_;  // since 1970
  std::array<std::atomic<uint64_t>, kNumCodes> responses_{};
  std::array<std::atomic<uint64_t>, kBucketsNs.size() + 1> durations_{};  // not cumulative
  std::atomic<int64_t> total_ns_{0};
  std::atomic<int64_t> num_in_flight_{0};
};

// A run from its submission to its end.
class RunTimer {
 public:
  explicit RunTimer(Metrics& metrics) : metrics_(metrics) { metrics_.begin_run(); }
  ~RunTimer() { metrics_.end_run(); }
  RunTimer(const RunTimer&) = delete;
  RunTimer& operator=(const RunTimer&) = delete;

  std::chrono::nanoseconds elapsed() const { return std::chrono::steady_clock::now() - start_; }

 private:
  Metrics& metrics_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace eddy::server
