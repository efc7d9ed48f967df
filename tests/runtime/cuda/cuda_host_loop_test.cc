// Claim: loops that the host drives run on a CUDA device: kernels enqueued strand by strand,
// decisions read from pinned memory once the stream has signalled, strands joined by events; no
// host half of a kernel runs on a task's small stack; a device that is lost in the middle ends
// the run with its reason; and the scheduler knows when a run should end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>

#include "runtime/coroutine/scheduler.h"
#include "runtime/execute/host/host_strands.h"
#include "tests/runtime/cuda/fake_calls.h"
#include "tests/runtime/device/strand_builder.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::atomic<int64_t> clock_ns{1};  // it moves by what kernels take

class CudaHostLoopTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  CudaHostLoopTest() {
    fake_.define_kernel("add", sizeof(Kernel::Params), [this](const FakeKernelCall& call) {
      clock_ns += kernel_ns_;
      const auto& params = call.params_as<Kernel::Params>();
      *reinterpret_cast<int*>(params.to) += *reinterpret_cast<const int*>(params.from);
    });
    CudaContext& context = device_->context();
    const CudaContext::Use use(context);
    EXPECT_EQ(fake_.api()->module_load(&module_, FakeCuda::kImage), CuResult::kSuccess);
    EXPECT_EQ(fake_.api()->module_function(&add_, module_, "add"), CuResult::kSuccess);
    poller_ = scheduler_.add_poller([this] { return device_->poll(); });
  }
  ~CudaHostLoopTest() override {
    strands_.reset();
    scheduler_.remove_poller(poller_);
    numbers_.reset();
    {
      CudaContext& context = device_->context();
      const CudaContext::Use use(context);
      fake_.api()->module_unload(module_);
    }
    device_.reset();
    EXPECT_EQ(num_on_small_stacks_, 0);
    EXPECT_THAT(fake_.violations(), IsEmpty());
    EXPECT_EQ(fake_.leaks(), "");
  }

  // numbers[to] += numbers[from], on a stream.
  struct Kernel {
    struct Params {
      uint64_t to;
      uint64_t from;
    };
    CudaHostLoopTest* test;
    uint32_t stream;
    Params params;
    static bool enqueue(void* self) {
      Kernel& kernel = *static_cast<Kernel*>(self);
      if (Scheduler::is_in_task()) ++kernel.test->num_on_small_stacks_;
      void* params[] = {&kernel.params};
      return kernel.test->fake_.api()->launch_kernel(
                 kernel.test->add_, 1, 1, 1, 1, 1, 1, 0,
                 static_cast<CuStream>(kernel.test->strands_->native_stream(kernel.stream)), params,
                 nullptr) == CuResult::kSuccess;
    }
  };
  int* numbers() const { return static_cast<int*>(numbers_.data()); }
  void add(uint32_t stream, int to, int from) {
    kernels_.push_back({this,
                        stream,
                        {reinterpret_cast<uint64_t>(numbers() + to),
                         reinterpret_cast<uint64_t>(numbers() + from)}});
    commands_.launch(Kernel::enqueue, &kernels_.back(), false);
  }
  // while (numbers[0] < numbers[1]) { 0 += 2 || 3 += 2; join; 4 += 3 }
  void record_loop() {
    StrandBuilder& recorder = commands_;
    const uint32_t joined = recorder.add_event();
    recorder.begin_while();
    recorder.test_while(
        [](void* numbers) {
          const int* n = static_cast<const int*>(numbers);
          return int32_t{n[0] < n[1] ? 1 : 0};
        },
        numbers());
    recorder.begin_fork(StrandBuilder::kNewStream);
    add(1, 3, 2);
    recorder.record(joined);
    recorder.end_fork();
    add(0, 0, 2);
    recorder.wait(joined);
    add(0, 4, 3);
    recorder.end_while();
    recorder.finish();
    strands_ = std::make_unique<HostStrands>(
        recorder.code(), recorder.bindings(), scheduler_,
        HostStrands::Options{.devices = {device_.get()}, .now = [] { return clock_ns.load(); }});
  }
  void run() {
    control_.on_complete = [](void* done) { static_cast<std::atomic<bool>*>(done)->store(true); };
    control_.context = &is_done_;
    is_done_ = false;
    strands_->start(control_);
    while (!is_done_) std::this_thread::yield();
  }

  FakeCuda fake_{{.seed = GetParam(), .has_memory_words = GetParam() % 2 == 0}};
  std::unique_ptr<CudaDevice> device_ = std::move(*CudaDevice::create(fake_.api(), {}));
  FakeEngine engine_{fake_};
  Scheduler scheduler_;
  CuModule module_ = nullptr;
  CuFunction add_ = nullptr;
  PollerId poller_{};
  BufferRef numbers_ = std::move(*device_->staging().allocate(8 * sizeof(int)));
  std::deque<Kernel> kernels_;
  StrandBuilder commands_;
  std::unique_ptr<HostStrands> strands_;
  RunControl control_;
  std::atomic<int> num_on_small_stacks_{0};
  std::atomic<int64_t> kernel_ns_{0};
  std::atomic<bool> is_done_{false};
};

TEST_P(CudaHostLoopTest, ALoopOverTwoStreamsRunsAsOftenAsItsPredicateSays) {
  record_loop();
  constexpr int kRounds = 100;
  std::fill_n(numbers(), 8, 0);
  numbers()[1] = kRounds;
  numbers()[2] = 1;
  run();
  EXPECT_EQ(control_.stop, StopReason::kRunning) << control_.error.to_string();
  EXPECT_EQ(numbers()[0], kRounds);
  EXPECT_EQ(numbers()[3], kRounds);
  EXPECT_EQ(numbers()[4], kRounds * (kRounds + 1) / 2) << "each round sees both strands' values";
}

TEST_P(CudaHostLoopTest, ALostDeviceEndsTheLoopWithItsReason) {
  record_loop();
  std::fill_n(numbers(), 8, 0);
  numbers()[1] = 1'000'000;
  numbers()[2] = 1;
  fake_.fault_kernel(50, CuResult::kLaunchFailed);
  run();
  EXPECT_EQ(control_.stop, StopReason::kFailed);
  // A launch that the lost device refuses fails its command; the device's own status is kept where
  // no command failed.
  if (!control_.error.is_ok()) {
    EXPECT_EQ(control_.error.code(), StatusCode::kDeviceLost);
    EXPECT_THAT(control_.error.message(), HasSubstr("CUDA device 0"));
  }
  EXPECT_LT(numbers()[0], 50);
}

// Until half as long again as the last run took; of the first run, of one that was stopped and of a
// long one nothing is known, or worth a processor.
TEST_P(CudaHostLoopTest, TheSchedulerKnowsFromTheLastRunWhenThisOneShouldEnd) {
  using Time = Scheduler::Clock::time_point;
  const auto time = [](int64_t ns) { return Time(std::chrono::nanoseconds(ns)); };
  record_loop();
  constexpr int kRounds = 20;
  const auto run_rounds = [&](int64_t kernel_ns) {
    std::fill_n(numbers(), 8, 0);
    numbers()[1] = kRounds;
    numbers()[2] = 1;
    kernel_ns_ = kernel_ns;
    run();
    EXPECT_EQ(control_.stop, StopReason::kRunning) << control_.error.to_string();
  };
  constexpr int64_t kShortNs = 3 * kRounds * 1'000, kLongNs = 3 * kRounds * 1'000'000;
  run_rounds(1'000);
  EXPECT_EQ(scheduler_.expected_end(), Time());
  int64_t began = clock_ns;
  run_rounds(1'000'000);
  EXPECT_EQ(clock_ns, began + kLongNs);
  EXPECT_EQ(scheduler_.expected_end(), time(began + kShortNs * 3 / 2));
  run_rounds(1'000);
  EXPECT_EQ(scheduler_.expected_end(), time(began + kShortNs * 3 / 2)) << "the last one was long";
  began = clock_ns;
  fake_.fault_kernel(10, CuResult::kLaunchFailed);
  std::fill_n(numbers(), 8, 0);
  numbers()[1] = 1'000'000;
  run();
  EXPECT_EQ(control_.stop, StopReason::kFailed);
  EXPECT_EQ(scheduler_.expected_end(), time(began + kShortNs * 3 / 2));
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaHostLoopTest, ::testing::Range(uint64_t{1}, uint64_t{7}));

}  // namespace
}  // namespace eddy::testing
