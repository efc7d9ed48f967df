// Claim: however long Eddy runs, its memory stays where it was: of the resident memory of a long
// loop, and of many runs created and destroyed, the second half adds at most 1 MiB, and an
// iteration allocates nothing.
//
// EDDY_SOAK_ITERATIONS=N runs each loop N times (default 2,000,000), EDDY_SOAK_RUNS=N makes N runs
// (default 2,000).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "graph/ir/builder.h"
#include "runtime/api/session.h"
#include "tests/runtime/testing/allocation_counter.h"

namespace eddy {
namespace {

using testing::num_allocations;

[[maybe_unused]] constexpr int64_t kMaxGrowthBytes = int64_t{1} << 20;
const ValueType kInt = tensor_type(ElementType::kInt64, {});

int64_t number(const char* variable, int64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoll(text, nullptr, 10);
}

// Reads the kernel's count without allocating.
int64_t resident_bytes() {
  char text[128] = {};
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  char* second = nullptr;
  (void)std::strtoll(text, &second, 10);
  return size <= 0 ? -1 : std::strtoll(second, nullptr, 10) * sysconf(_SC_PAGESIZE);
}

// Samples resident memory while something else runs. It keeps a fixed number of samples, with all
// of their pages resident from the start; when they are full, it drops every other one.
class Watch {
 public:
  Watch() : samples_(size_t{1} << 12, 1), thread_([this] { look(); }) {}
  ~Watch() { stop(); }

  // The most that was resident in the second half of the time, above the most in the first.
  int64_t stop_and_get_growth() {
    stop();
    const auto end = samples_.begin() + static_cast<ptrdiff_t>(num_samples_);
    const auto half = samples_.begin() + static_cast<ptrdiff_t>(num_samples_ / 2);
    return *std::max_element(half, end) - *std::max_element(samples_.begin(), half);
  }
  size_t num_samples() const { return num_samples_; }

 private:
  void stop() {
    is_over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void look() {
    std::chrono::microseconds pause{500};
    while (!is_over_ || num_samples_ < 4) {
      if (num_samples_ == samples_.size()) {
        num_samples_ /= 2;
        for (size_t i = 0; i < num_samples_; ++i) samples_[i] = samples_[2 * i];
        pause *= 2;
      }
      samples_[num_samples_++] = resident_bytes();
      std::this_thread::sleep_for(pause);
    }
  }

  std::vector<int64_t> samples_;
  size_t num_samples_ = 0;
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

class SoakTest : public ::testing::TestWithParam<Loops> {
 protected:
  // y = the number of trips, counted in the body.
  std::unique_ptr<Session> make_counter() {
    GraphBuilder b(library_.ops());
    const Value trips = b.input("trips", kInt);
    const auto out = b.while_loop(
        {.initial = {b.scalar<int64_t>(0)}},
        [&](Value, ValueSpan c) {
          return WhileTest{b.op("Less", {c[0], trips}), {c[0]}};
        },
        [&](Value, ValueSpan f) {
          return std::vector<Value>{b.op("Add", {f[0], b.scalar<int64_t>(1)})};
        });
    b.output("y", out[0]);
    auto graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    SessionOptions options;
    options.loops = GetParam();
    options.num_threads = 2;
    auto session = Session::create(library_, std::move(*graph), options);
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    return std::move(*session);
  }

  Library library_;
};

TEST_P(SoakTest, ALongLoopAllocatesNothingAndStaysWhereItWas) {
  auto session = make_counter();
  auto call = std::move(*session->prepare());
  int64_t trips = 1000;
  int64_t counted = 0;
  ASSERT_TRUE(call->bind_input(0, {&trips, nullptr, 0, ElementType::kInt64}).is_ok());
  ASSERT_TRUE(call->bind_output(0, {&counted, nullptr, 0, ElementType::kInt64}).is_ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(call->run().is_ok());
  trips = number("EDDY_SOAK_ITERATIONS", 2'000'000);
  Watch watch;
  const uint64_t before = num_allocations();
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(call->run().is_ok());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const uint64_t allocations = num_allocations() - before;
  const int64_t growth = watch.stop_and_get_growth();
  EXPECT_EQ(counted, trips);
  // A run itself may allocate a little (a task, a queue entry), and so may the watch's thread.
  EXPECT_LT(allocations, 100u);
#ifndef EDDY_SANITIZER  // a sanitizer's own memory grows with what it sees
  EXPECT_LE(growth, kMaxGrowthBytes);
#endif
  std::printf("%lld iterations in %.2f s, %llu allocations, second half %+lld bytes (%zu looks)\n",
              static_cast<long long>(trips), took.count(),
              static_cast<unsigned long long>(allocations), static_cast<long long>(growth),
              watch.num_samples());
}

TEST_P(SoakTest, RunsThatComeAndGoLeaveNothing) {
  auto session = make_counter();
  const int64_t num_runs = number("EDDY_SOAK_RUNS", 2'000);
  constexpr int64_t kBatch = 20;  // 17 asynchronous, of which 2 cancelled; 2 synchronous, 1 call
  std::atomic<int64_t> called{0};
  int64_t resident_half = 0;
  int64_t wrong = 0;
  const int64_t num_batches = num_runs / kBatch;
  for (int64_t batch = 0; batch < num_batches; ++batch) {
    if (batch == num_batches / 2) resident_half = resident_bytes();
    int64_t trips = batch % 7;
    const NamedTensors inputs = {{"trips", Tensor::scalar(trips)}};
    std::vector<RunHandle> handles;
    for (int i = 0; i < 17; ++i) {
      handles.push_back(session->run_async(inputs, [&](Result<NamedTensors>) { ++called; }));
    }
    for (size_t i : {3, 11}) handles[i].cancel();
    for (int i = 0; i < 2; ++i) {
      auto made = session->run(inputs);
      if (!made.is_ok() || made->at(0).second.values<int64_t>()[0] != trips) ++wrong;
    }
    auto call = std::move(*session->prepare());
    if (!call->bind_input(0, {&trips, nullptr, 0, ElementType::kInt64}).is_ok()) ++wrong;
    if (!call->run().is_ok()) ++wrong;
    for (size_t i = 0; i < handles.size(); ++i) {
      const StatusCode code = handles[i].wait().code();
      const bool may_be_cancelled = i == 3 || i == 11;
      if (code != StatusCode::kOk && !(may_be_cancelled && code == StatusCode::kCancelled)) ++wrong;
    }
  }
  const int64_t growth = resident_bytes() - resident_half;
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(called, num_batches * 17);
#ifndef EDDY_SANITIZER
  EXPECT_LE(growth, kMaxGrowthBytes);
#endif
  session.reset();
  std::printf("%lld runs, second half %+lld bytes\n", static_cast<long long>(num_batches * kBatch),
              static_cast<long long>(growth));
}

INSTANTIATE_TEST_SUITE_P(All, SoakTest, ::testing::Values(Loops::kDevice, Loops::kHost),
                         [](const auto& info) {
                           return info.param == Loops::kDevice ? "Device" : "Host";
                         });

}  // namespace
}  // namespace eddy
