// CudaContext: one GPU as the driver shows it: its calls, its primary context, what it can do, and
// whether it is lost.
//
// Every call that touches the device is made inside a Use, which makes the context current for
// the thread and puts back what was current before, so an application's own CUDA code is not
// disturbed. Nor is its stream capture: while one in global mode is open on any thread, the driver
// refuses every thread most calls and spoils the capture, but for threads whose own mode is
// relaxed, as it is inside a Use. Cost: four calls that stay in the process.
//
// Errors: check() turns a driver's answer into a Status. After a sticky answer (an illegal address,
// a failed launch …) every further call of the process answers the same for this context, so the
// device is lost for good: kDeviceLost, with the first answer and the call that got it. Other
// devices go on.
// Threads: any.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/cuda/capture_turns.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/cuda/launch_guards.h"
#include "runtime/cuda/plain_order.h"
#include "runtime/cuda/stream_keepers.h"
#include "runtime/cuda/stream_tails.h"

namespace eddy {

struct CudaDeviceFacts {
  int ordinal = 0;
  std::string name;
  int compute_capability = 0;  // 90 is 9.0
  int num_multiprocessors = 0;
  int max_threads_per_multiprocessor = 0;
  size_t memory_bytes = 0;
  int driver_version = 0;         // 13000 is 13.0
  bool has_memory_words = false;  // streams can write words and wait for them
  bool has_graphs = false;
  bool has_capture = false;        // what is issued to streams can become part of a graph
  bool has_device_driven = false;  // conditional nodes, CUDA 12.8 or newer
  bool has_programmatic = false;   // a kernel may begin before the last one has ended (9.0)
};

// The facts of every device, without making a context on any.
Result<std::vector<CudaDeviceFacts>> list_cuda_devices(const CudaApi& api);

class CudaContext {
 public:
  // Errors: kInvalidArgument when there is no such ordinal; kUnsupported for a device without
  // mapped memory, unified addresses or memory pools (older than Pascal).
  static Result<std::unique_ptr<CudaContext>> create(std::shared_ptr<const CudaApi> api,
                                                     int ordinal);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  const CudaApi& api() const { return *api_; }
  const CudaDeviceFacts& facts() const { return facts_; }
  CuContext handle() const { return context_; }

  // Current for the calling thread while it lives. A context that cannot be made current is lost.
  class Use {
   public:
    explicit Use(CudaContext& context) : api_(*context.api_) {
      is_pushed_ =
          context.check_order(api_.context_push(context.context_), "cuCtxPushCurrent").is_ok();
      is_relaxed_ = api_.thread_capture_mode(&mode_) == CuResult::kSuccess;
    }
    ~Use() {
      if (is_relaxed_) api_.thread_capture_mode(&mode_);
      CuContext ignored = nullptr;
      if (is_pushed_) api_.context_pop(&ignored);
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    const CudaApi& api_;
    bool is_pushed_ = false;
    bool is_relaxed_ = false;
    CuCaptureMode mode_ = CuCaptureMode::kRelaxed;  // then what the thread had
  };

  // A stream of ours, with the context current: of a higher priority than streams have by default.
  // Not to run before others, but because streams share a few queues of the GPU (by default 8 for
  // each priority), and what stands in one behind a stream that waits does not run: an
  // application's stream that waits for a run of ours must not hold up the streams of that run.
  Result<CuStream> make_stream();
  // `call`: what was asked, for the message ("cuEventRecord"). kResourceExhausted when the
  // device's memory is out, kDeviceLost after a sticky answer, else kRunFailed.
  Status check(CuResult result, const char* call);
  // As check(), for calls without which the order of streams is lost: any failure loses the device.
  Status check_order(CuResult result, const char* call);
  bool is_lost() const { return is_lost_.load(std::memory_order_acquire); }
  // Ok, or why the device is lost.
  Status health() const;

  // Called with streams that end, and with those that are made for recordings.
  StreamKeepers& stream_ends() { return stream_ends_; }
  StreamKeepers& recording_streams() { return recording_streams_; }

  // Shared with every session on this GPU: entered by captures and by what spoils them.
  CaptureTurns& capture_turns() { return *capture_turns_; }
  // The primary context stays to the end of the process.
  Status keep();

  StreamTails& stream_tails() { return stream_tails_; }

  // What launches on streams that collect must look at.
  LaunchGuards& launch_guards() { return launch_guards_; }
  // Where launches are not programmatic, although they may be elsewhere.
  PlainOrder& plain_order() { return plain_order_; }

  // Launches so far, of any thread; launches are counted here.
  void count_launches(uint64_t more) { num_launches_.fetch_add(more, std::memory_order_relaxed); }
  uint64_t num_launches() const { return num_launches_.load(std::memory_order_relaxed); }

  // Whether to ask the driver now for a fault, which any call tells of: once in kAskEveryNs for all
  // streams together, because a query takes a microsecond and the driver's lock.
  static constexpr int64_t kAskEveryNs = 1'000'000;
  bool may_ask() {
    const int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
    int64_t last = asked_ns_.load(std::memory_order_relaxed);
    return now - last >= kAskEveryNs &&
           asked_ns_.compare_exchange_strong(last, now, std::memory_order_relaxed);
  }

  // Whether kernels may be launched programmatically (cuda_launch.h); not at first.
  bool is_programmatic() const { return is_programmatic_.load(std::memory_order_relaxed); }
  void set_programmatic(bool may_be) { is_programmatic_.store(may_be, std::memory_order_relaxed); }

 private:
  CudaContext(std::shared_ptr<const CudaApi> api, CudaDeviceFacts facts, CuDevice device)
      : api_(std::move(api)), facts_(std::move(facts)), device_(device) {}
  void lose(Status status);

  const std::shared_ptr<const CudaApi> api_;
  CudaDeviceFacts facts_;
  const CuDevice device_;
  CuContext context_ = nullptr;
  int stream_priority_ = 0;
  std::atomic<uint64_t> num_launches_{0};
  std::atomic<int64_t> asked_ns_{0};  // steady clock
  std::atomic<bool> is_programmatic_{false};
  std::atomic<bool> is_lost_{false};  // released by lose(), after loss_
  StreamKeepers stream_ends_;
  StreamKeepers recording_streams_;
  std::shared_ptr<CaptureTurns> capture_turns_;
  LaunchGuards launch_guards_;
  PlainOrder plain_order_;
  StreamTails stream_tails_;
  mutable std::mutex mutex_;
  Status loss_;  // under the mutex
};

}  // namespace eddy
