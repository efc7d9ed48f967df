// CudaDevice: a GPU behind the seam: streams, events, gates and memory on one CUDA context.
//
//   EDDY_ASSIGN_OR_RETURN(auto api, load_cuda_api());
//   EDDY_ASSIGN_OR_RETURN(auto device, CudaDevice::create(api, {.ordinal = 0}));
//
// The device needs polling: a scheduler's poller, or a thread that waits, calls poll() while work
// is pending. Completion costs no host function and, with memory words, no driver call. Strands:
// driven from the host, which captures what it issues (CudaGraphCapture).
//
// Errors: creation says what is missing and what to do. A lost device refuses everything, its
// streams become idle, and health() has the reason.
// Ownership: must outlive everything made from it. Threads: all members from any thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cuda/cuda_allocator.h"
#include "runtime/cuda/cuda_graph_capture.h"
#include "runtime/cuda/cuda_stream.h"
#include "runtime/device/compile.h"
#include "runtime/device/device.h"
#include "runtime/device/staging.h"
#include "runtime/device/strand_runner.h"

namespace eddy {

struct CudaDeviceOptions {
  int ordinal = 0;
  size_t memory_limit_bytes = 0;  // of device memory in use; 0: no limit but the device's
};

// What kernels add to a device; they outlive its use.
struct CudaDeviceKernels {
  CudaLoopKernels loop = {};
  Compile* compile_or_null = nullptr;
  std::string why_no_compile = {};
  std::vector<std::string> notices = {};
  // Those that come while programs are bound and run; may be empty.
  std::function<std::vector<std::string>()> further_notices = {};
  // Why kernels of recordings do not begin early (cuda_launch.h); empty: they do.
  std::string why_plain_order = "no kernels have been loaded";
};

class CudaDevice : public Device, public Staging {
 public:
  static Result<std::unique_ptr<CudaDevice>> create(std::shared_ptr<const CudaApi> api,
                                                    const CudaDeviceOptions& options);
  ~CudaDevice() override;

  std::string_view kind() const override { return "cuda"; }
  Allocator& allocator() override { return *memory_; }
  // Page-locked host memory, for what is copied to and from the device.
  CudaAllocator& staging() override { return *staging_; }
  // Whether it is memory of a GPU's, as the driver says; any address may be asked about.
  bool is_device_memory(const void* memory) const;
  // By a stream that the device keeps for this, one for each thread that writes at the same time.
  Status write(void* to, const void* from, size_t size_bytes) override;
  bool is_staging(const void* memory, size_t size_bytes) const override {
    return pinned_->contains(memory, size_bytes);
  }
  bool can_copy_words() const override { return kernels_.loop.copy != nullptr; }
  Status copy_word(int64_t* to, const int64_t* from, void* native_stream) override {
    if (!can_copy_words()) return Staging::copy_word(to, from, native_stream);
    return copy_by_kernel(to, from, sizeof(int64_t), native_stream);
  }
  // Only where can_copy_words().
  Status copy_by_kernel(void* to, const void* from, size_t size_bytes, void* native_stream);
  // The same for what a Work does last: in a capture it may be a part of a later launch.
  Status copy_last_by_kernel(void* to, const void* from, size_t size_bytes, void* native_stream);
  // Set before others use the device.
  void set_kernels(CudaDeviceKernels kernels) { kernels_ = std::move(kernels); }
  const CudaDeviceKernels& kernels() const { return kernels_; }
  Staging* staging_or_null() override { return this; }
  Compile* compile_or_null() override { return kernels_.compile_or_null; }
  std::string why_no_compile() const override { return kernels_.why_no_compile; }
  std::unique_ptr<GraphCapture> create_capture_or_null() override {
    return CudaGraphCapture::create_or_null(*context_, kernels_.loop);
  }
  std::vector<std::string> notices() const override;
  Result<std::unique_ptr<Stream>> create_stream() override;
  // Errors: kInvalidArgument for a handle that is no stream of this device's primary context (as
  // far as the driver tells), for the driver's default streams (the null one, legacy and per
  // thread) and for one that captures. While a run has its turn on such a stream, the stream waits
  // on the GPU, and so may others of the application that share its queue there, though none of
  // Eddy's, unless it has their priority (CudaContext::make_stream). An application with more than
  // eight streams gives the driver more queues: CUDA_DEVICE_MAX_CONNECTIONS=32 in the environment,
  // before the first call of CUDA. And libraries load kernels and make handles when they are first
  // used, which may wait for the whole context, that stream included: a session's first run is not
  // to be on one.
  Result<std::unique_ptr<Stream>> adopt_stream(void* native_stream) override;
  Result<std::unique_ptr<Event>> create_event() override;
  Result<std::unique_ptr<Event>> create_host_event() override;
  Result<std::shared_ptr<Gate>> create_gate() override;
  std::unique_ptr<StrandRunner> create_runner_or_null(const StrandCode&, const Bindings&) override {
    return nullptr;
  }
  int num_workers() const override { return context_->facts().num_multiprocessors; }
  Status health() const override { return context_->health(); }
  bool needs_polling() const override { return true; }
  bool poll() override;
  // Streams that a poll looks at.
  size_t num_watched_streams() { return streams_.num_watched(); }
  bool wants_polling() override;
  void add_waker(const void* key, std::function<void()> waker) override {
    watch_.add(key, std::move(waker));
  }
  void remove_waker(const void* key) override { watch_.remove(key); }

  CudaContext& context() { return *context_; }
  // False: completion is learned by asking the driver for events.
  bool has_memory_words() const { return has_memory_words_; }

 private:
  CudaDevice(std::unique_ptr<CudaContext> context, const CudaDeviceOptions& options,
             std::unique_ptr<CudaDeviceMemory> memory);
  Status probe_memory_words();
  Status check_adoptable(CuStream stream);
  // A stream for a moment; to be given back idle. With the context current.
  Result<CuStream> take_stream();
  void give_back(CuStream stream);

  CudaShared shared() {
    return {*context_, words_, events_, polled_, progress_, streams_, watch_, has_memory_words_};
  }

  // In the order in which they must go, last first.
  const std::unique_ptr<CudaContext> context_;
  PinnedWords words_;
  CudaEventPool events_;
  CudaPollList polled_;
  ProgressList progress_;
  std::unique_ptr<CudaAllocator> memory_;
  std::unique_ptr<CudaAllocator> staging_;
  const CudaPinnedMemory* pinned_ = nullptr;  // staging_'s
  CudaStreamList streams_;
  WorkWatch watch_;
  bool has_memory_words_ = false;
  std::mutex idle_mutex_;
  std::vector<CuStream> idle_streams_;  // under its mutex; those that take_stream() has made
  // Under its mutex: of writes that perhaps have not ended, so the GPU may read it until it is
  // idle.
  std::vector<BufferRef> unconfirmed_;
  CudaDeviceKernels kernels_;
};

}  // namespace eddy
