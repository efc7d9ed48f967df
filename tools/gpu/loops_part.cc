#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "graph/base/check.h"
#include "ops/cuda/device/params.h"
#include "tools/gpu/report_part.h"

namespace eddy {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int kNumRuns = 5;
static_assert(kNumRuns % 2 == 1, "one of them is the median");

// One loop: x = x + 1, as often as the host decides.
class Loop {
 public:
  static Result<std::unique_ptr<Loop>> create(const GpuUnderReport& gpu, CudaFunction add) {
    auto loop = std::make_unique<Loop>();
    EDDY_ASSIGN_OR_RETURN(loop->value_, gpu.device.staging().allocate(2 * sizeof(float)));
    EDDY_ASSIGN_OR_RETURN(loop->stream_, gpu.device.create_stream());
    loop->launcher_ = &gpu.module;
    loop->function_ = add;
    auto* numbers = static_cast<float*>(loop->value_.data());
    numbers[0] = 0;
    numbers[1] = 1;
    cuda::ElementwiseParams& p = loop->params_;
    p.out = numbers;
    p.in[0] = numbers;
    p.in[1] = numbers + 1;
    p.count = p.dims[0] = 1;
    p.rank = 1;
    return loop;
  }

  // Issues an iteration when the end of the last one has been observed. False once all are done.
  bool step(int num_iterations) {
    if (!stream_->is_idle()) return true;
    if (num_issued_ == num_iterations || !error_.is_ok()) return false;
    ++num_issued_;
    return stream_->launch({&Loop::enqueue, this, false});
  }
  void restart() { num_issued_ = 0; }
  // The counter, in memory that host and device share.
  float value() const { return *static_cast<const float*>(value_.data()); }
  const Status& error() const { return error_; }

 private:
  static bool enqueue(void* self) {
    Loop& loop = *static_cast<Loop*>(self);
    loop.error_ = loop.launcher_->launch(loop.function_, 1, &loop.params_, loop.stream_->native());
    return loop.error_.is_ok();
  }

  BufferRef value_;
  CudaLauncher* launcher_ = nullptr;
  CudaFunction function_ = nullptr;
  cuda::ElementwiseParams params_{};
  int num_issued_ = 0;
  Status error_;
  std::unique_ptr<Stream> stream_;  // goes first: idle by then
};

// Microseconds for a round: one iteration of every loop.
double run_once(const GpuUnderReport& gpu, std::vector<std::unique_ptr<Loop>>& loops,
                int num_iterations) {
  EDDY_CHECK(num_iterations > 0) << "a round of nothing";
  for (auto& loop : loops) loop->restart();
  const Clock::time_point start = Clock::now();
  for (bool is_running = true; is_running;) {
    is_running = false;
    for (auto& loop : loops) is_running |= loop->step(num_iterations);
    gpu.progress();
    gpu.device.poll();
  }
  const std::chrono::duration<double, std::micro> took = Clock::now() - start;
  return took.count() / num_iterations;
}

Status measure(const GpuUnderReport& gpu, CudaFunction add, int num_loops, int num_iterations,
               Json& row) {
  std::vector<std::unique_ptr<Loop>> loops;
  for (int i = 0; i < num_loops; ++i) {
    EDDY_ASSIGN_OR_RETURN(std::unique_ptr<Loop> loop, Loop::create(gpu, add));
    loops.push_back(std::move(loop));
  }
  std::array<double, kNumRuns> times_us{};
  for (double& time_us : times_us) time_us = run_once(gpu, loops, num_iterations);
  EDDY_RETURN_IF_ERROR(gpu.device.health());
  for (const auto& loop : loops) {
    EDDY_RETURN_IF_ERROR(loop->error());
    const auto expected = static_cast<float>(kNumRuns * num_iterations);
    if (loop->value() != expected) {
      return run_failed("a loop counted to " + std::to_string(loop->value()) + ", expected " +
                        std::to_string(expected));
    }
  }
  std::sort(times_us.begin(), times_us.end());
  const double median_us = times_us[kNumRuns / 2];
  row["us_per_round"] = median_us;
  row["us_per_iteration"] = median_us / num_loops;
  row["us_fastest"] = times_us.front() / num_loops;
  row["us_slowest"] = times_us.back() / num_loops;
  return Status::ok();
}

}  // namespace

Json report_loops(const GpuUnderReport& gpu, int num_iterations) {
  PartReport report("loops", gpu.pace);
  report.document()["completion"] = gpu.device.has_memory_words() ? "words" : "events";
  Result<CudaFunction> add = gpu.module.find("eddy_Add_f32");
  for (const int num_loops : {1, 2, 4, 8, 32}) {
    if (!report.may_begin(std::to_string(num_loops) + " loops")) break;
    Json row = {{"loops", num_loops}, {"iterations", num_iterations}};
    const Status status =
        add.is_ok() ? measure(gpu, *add, num_loops, num_iterations, row) : add.status();
    set_status(status, row);
    report.add(std::move(row));
    report.end_with(status);
  }
  return report.take();
}

}  // namespace eddy
