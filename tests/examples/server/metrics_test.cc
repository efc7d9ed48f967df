// Claim: the page of metrics has Prometheus' text format, its histogram is cumulative and agrees
// with itself, and nothing that many threads count is lost.
#include "examples/server/metrics.h"

#include <algorithm>
#include <ctime>
#include <thread>
#include <vector>

#include "tests/examples/server/metrics_lines.h"

namespace eddy::server {
namespace {

using std::chrono::nanoseconds;

// Of the histogram, in the order of the page: bound and count.
std::vector<std::pair<double, double>> buckets(const std::string& page) {
  std::vector<std::pair<double, double>> found;
  static const std::regex kBucket("eddy_run_duration_seconds_bucket\\{le=\"([^\"]+)\"\\} ([0-9]+)");
  for (auto it = std::sregex_iterator(page.begin(), page.end(), kBucket);
       it != std::sregex_iterator(); ++it) {
    const bool is_last = (*it)[1] == "+Inf";
    found.emplace_back(is_last ? HUGE_VAL : std::stod((*it)[1]), std::stod((*it)[2]));
  }
  return found;
}

TEST(Metrics, APageWithoutRequestsHasAllFamilies) {
  const auto before = static_cast<double>(std::time(nullptr));
  const Metrics metrics;
  auto samples = metrics_lines(
      metrics.text({.tensor_bytes = 5, .peak_tensor_bytes = 7, .num_connections = 2}));
  EXPECT_EQ(samples["eddy_http_requests_total{code=\"200\"}"], 0);
  EXPECT_EQ(samples["eddy_run_duration_seconds_count"], 0);
  EXPECT_EQ(samples["eddy_run_duration_seconds_sum"], 0);
  EXPECT_EQ(samples["eddy_runs_in_flight"], 0);
  EXPECT_EQ(samples["eddy_connections"], 2);
  EXPECT_EQ(samples["eddy_tensor_bytes"], 5);
  EXPECT_EQ(samples["eddy_tensor_peak_bytes"], 7);
  EXPECT_GE(samples["process_start_time_seconds"], before);
  EXPECT_LE(samples["process_start_time_seconds"], static_cast<double>(std::time(nullptr)) + 1);
}

TEST(Metrics, ABucketCountsWhatTookNoLongerThanItsBound) {
  Metrics metrics;
  std::vector<int64_t> durations;
  for (const int64_t bound : kBucketsNs) {
    for (const int64_t ns : {bound - 1, bound, bound + 1}) durations.push_back(ns);
  }
  durations.push_back(0);
  durations.push_back(int64_t{1} << 50);
  double sum_s = 0;
  for (const int64_t ns : durations) {
    metrics.add_duration(nanoseconds(ns));
    sum_s += static_cast<double>(ns) / 1e9;
  }
  const std::string page = metrics.text({});
  auto samples = metrics_lines(page);
  const auto found = buckets(page);
  ASSERT_EQ(found.size(), kBucketsNs.size() + 1);
  for (size_t i = 0; i < kBucketsNs.size(); ++i) {
    const auto count =
        std::ranges::count_if(durations, [&](int64_t ns) { return ns <= kBucketsNs[i]; });
    EXPECT_DOUBLE_EQ(found[i].first, static_cast<double>(kBucketsNs[i]) / 1e9);
    EXPECT_EQ(found[i].second, static_cast<double>(count)) << found[i].first;
  }
  EXPECT_EQ(found.back().first, HUGE_VAL);
  EXPECT_EQ(found.back().second, static_cast<double>(durations.size()));
  EXPECT_EQ(samples["eddy_run_duration_seconds_count"], found.back().second);
  EXPECT_NEAR(samples["eddy_run_duration_seconds_sum"], sum_s, 1e-6 * sum_s);
}

TEST(Metrics, ResponsesAreCountedByCode) {
  Metrics metrics;
  for (const int code : {200, 200, 404, 503, 99, 600, -1}) metrics.add_response(code);
  auto samples = metrics_lines(metrics.text({}));
  EXPECT_EQ(samples["eddy_http_requests_total{code=\"200\"}"], 2);
  EXPECT_EQ(samples["eddy_http_requests_total{code=\"404\"}"], 1);
  EXPECT_EQ(samples["eddy_http_requests_total{code=\"503\"}"], 1);
  EXPECT_EQ(samples["eddy_http_requests_total{code=\"500\"}"], 3);
  EXPECT_EQ(metrics.num_responses(), 7u);
}

TEST(Metrics, NothingThatManyThreadsCountIsLost) {
  Metrics metrics;
  constexpr int kThreads = 8;
  constexpr int kEach = 1000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        const RunTimer run(metrics);
        metrics.add_response(200);
        metrics.add_duration(nanoseconds(1'000'000'000));
      }
    });
  }
  // What is read meanwhile agrees with itself.
  for (int i = 0; i < 50; ++i) {
    const std::string page = metrics.text({});
    const auto found = buckets(page);
    for (size_t k = 1; k < found.size(); ++k) EXPECT_GE(found[k].second, found[k - 1].second);
    EXPECT_EQ(metrics_lines(page)["eddy_run_duration_seconds_count"], found.back().second);
  }
  for (std::thread& thread : threads) thread.join();
  auto samples = metrics_lines(metrics.text({}));
  EXPECT_EQ(samples["eddy_http_requests_total{code=\"200\"}"], kThreads * kEach);
  EXPECT_EQ(samples["eddy_run_duration_seconds_count"], kThreads * kEach);
  EXPECT_EQ(samples["eddy_run_duration_seconds_sum"], kThreads * kEach);
  EXPECT_EQ(samples["eddy_runs_in_flight"], 0);
}

TEST(Metrics, ARunIsInFlightWhileItsTimerLives) {
  Metrics metrics;
  {
    const RunTimer one(metrics);
    const RunTimer two(metrics);
    EXPECT_EQ(metrics_lines(metrics.text({}))["eddy_runs_in_flight"], 2);
  }
  EXPECT_EQ(metrics.num_in_flight(), 0);
}

}  // namespace
}  // namespace eddy::server
