#include "examples/server/metrics.h"

#include <algorithm>
#include <charconv>
#include <concepts>

#include "graph/base/check.h"

namespace eddy::server {
namespace {

constexpr double kNsPerSecond = 1e9;

template <typename T>
std::string number_text(T value) {
  std::array<char, 40> digits{};
  std::to_chars_result end{};
  if constexpr (std::floating_point<T>) {
    end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  } else {
    end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 10);
  }
  EDDY_CHECK(end.ec == std::errc()) << "a number of more than " << digits.size() << " characters";
  return {digits.data(), end.ptr};
}

class Page {
 public:
  void begin(const std::string& name, const std::string& type, const std::string& help) {
    name_ = name;
    text_ += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
  }
  // suffix: of the name; labels: with their braces.
  template <typename T>
  void add(T value, const std::string& suffix = "", const std::string& labels = "") {
    text_ += name_ + suffix + labels + " " + number_text(value) + "\n";
  }
  template <typename T>
  void gauge(const std::string& name, const std::string& help, T value) {
    begin(name, "gauge", help);
    add(value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string name_;
  std::string text_;
};

void add_batches(Page& page, const BatchSizes& sizes) {
  page.begin("eddy_batch_samples", "histogram", "Samples that shared a run.");
  uint64_t sum = 0;
  for (size_t i = 0; i <= BatchSizes::kNumBounds; ++i) {
    sum += sizes.count(i);
    const bool is_last = i == BatchSizes::kNumBounds;
    page.add(sum, "_bucket",
             "{le=\"" + (is_last ? "+Inf" : number_text(BatchSizes::bound(i))) + "\"}");
  }
  page.add(sizes.num_samples(), "_sum");
  page.add(sum, "_count");
}

double now_s() {
  const std::chrono::duration<double> since = std::chrono::system_clock::now().time_since_epoch();
  return since.count();
}

}  // namespace

Metrics::Metrics() : start_s_(now_s()) {}

void Metrics::add_response(int code) {
  const bool is_code = code >= kFirstCode && code < kFirstCode + kNumCodes;
  ++responses_[static_cast<size_t>((is_code ? code : 500) - kFirstCode)];
}

void Metrics::add_duration(std::chrono::nanoseconds duration) {
  const int64_t ns = std::max<int64_t>(duration.count(), 0);
  const auto bucket = std::ranges::lower_bound(kBucketsNs, ns) - kBucketsNs.begin();
  ++durations_[static_cast<size_t>(bucket)];
  total_ns_ += ns;
}

void BatchSizes::add(int64_t num_samples) {
  size_t bucket = 0;
  while (bucket < kNumBounds && num_samples > bound(bucket)) ++bucket;
  ++counts_[bucket];
  num_samples_ += num_samples;
}

uint64_t Metrics::num_responses() const {
  uint64_t sum = 0;
  for (const auto& count : responses_) sum += count.load();
  return sum;
}

std::string Metrics::text(const Gauges& gauges) const {
  Page page;
  page.begin("eddy_http_requests_total", "counter", "Requests answered, by code.");
  for (size_t i = 0; i < responses_.size(); ++i) {
    const uint64_t count = responses_[i].load();
    const int code = kFirstCode + static_cast<int>(i);
    if (count > 0 || code == 200) page.add(count, "", "{code=\"" + number_text(code) + "\"}");
  }
  page.begin("eddy_run_duration_seconds", "histogram",
             "From a run's submission to its end, turns waited for included.");
  uint64_t sum = 0;
  for (size_t i = 0; i < durations_.size(); ++i) {
    sum += durations_[i].load();
    const bool is_last = i == kBucketsNs.size();
    const std::string bound =
        is_last ? "+Inf" : number_text(static_cast<double>(kBucketsNs[i]) / kNsPerSecond);
    page.add(sum, "_bucket", "{le=\"" + bound + "\"}");
  }
  page.add(static_cast<double>(total_ns_.load()) / kNsPerSecond, "_sum");
  page.add(sum, "_count");
  if (gauges.batch_sizes_or_null != nullptr) add_batches(page, *gauges.batch_sizes_or_null);
  page.gauge("eddy_runs_in_flight", "Runs submitted and not ended, with those that wait.",
             num_in_flight());
  page.gauge("eddy_connections", "Connections open.", gauges.num_connections);
  page.gauge("eddy_tensor_bytes", "Bytes of tensors held now.", gauges.tensor_bytes);
  page.gauge("eddy_tensor_peak_bytes", "The most bytes of tensors held so far.",
             gauges.peak_tensor_bytes);
  page.gauge("process_start_time_seconds", "When the server was made, in seconds since 1970.",
             start_s_);
  return page.take();
}

}  // namespace eddy::server
