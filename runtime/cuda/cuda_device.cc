#include "runtime/cuda/cuda_device.h"

#include <cstring>

#include "graph/base/check.h"
#include "ops/cuda/device/params.h"
#include "ops/cuda/images/loop_control.h"
#include "runtime/cuda/cuda_launch.h"

namespace eddy {

Result<std::unique_ptr<CudaDevice>> CudaDevice::create(std::shared_ptr<const CudaApi> api,
                                                       const CudaDeviceOptions& options) {
  EDDY_ASSIGN_OR_RETURN(std::unique_ptr<CudaContext> context,
                        CudaContext::create(std::move(api), options.ordinal));
  EDDY_ASSIGN_OR_RETURN(std::unique_ptr<CudaDeviceMemory> memory,
                        CudaDeviceMemory::create(*context));
  std::unique_ptr<CudaDevice> device(
      new CudaDevice(std::move(context), options, std::move(memory)));
  if (device->context().facts().has_memory_words) {
    EDDY_RETURN_IF_ERROR(device->probe_memory_words());
  }
  return device;
}

CudaDevice::CudaDevice(std::unique_ptr<CudaContext> context, const CudaDeviceOptions& options,
                       std::unique_ptr<CudaDeviceMemory> memory)
    : context_(std::move(context)), words_(*context_), events_(*context_) {
  const auto mark_streams = [this] { streams_.mark(); };
  memory_ = std::make_unique<CudaAllocator>(*context_, progress_, std::move(memory),
                                            options.memory_limit_bytes, mark_streams);
  auto pinned = std::make_unique<CudaPinnedMemory>(*context_);
  pinned_ = pinned.get();
  staging_ =
      std::make_unique<CudaAllocator>(*context_, progress_, std::move(pinned), 0, mark_streams);
}

CudaDevice::~CudaDevice() {
  // Given up because the driver refused something, the GPU may still be at work on what it has,
  // and pages below must not go before that; so a refusal here is asked once more. Else all streams
  // have ended, and the driver is not asked: a capture in progress elsewhere would be lost by it.
  bool is_idle = !context_->is_lost() && unconfirmed_.empty();
  for (int attempt = 0; attempt < 2 && !is_idle; ++attempt) {
    const CaptureTurns::Alone alone(context_->capture_turns());
    const CudaContext::Use use(*context_);
    is_idle = context_->api().context_synchronize() == CuResult::kSuccess;
  }
  const CudaContext::Use use(*context_);
  for (CuStream stream : idle_streams_) context_->api().stream_destroy(stream);
}

Result<CuStream> CudaDevice::take_stream() {
  {
    std::lock_guard lock(idle_mutex_);
    if (!idle_streams_.empty()) {
      const CuStream stream = idle_streams_.back();
      idle_streams_.pop_back();
      return stream;
    }
  }
  return context_->make_stream();
}

void CudaDevice::give_back(CuStream stream) {
  std::lock_guard lock(idle_mutex_);
  idle_streams_.push_back(stream);
}

// Drivers of some virtual machines have the calls and refuse them: one write shows it.
Status CudaDevice::probe_memory_words() {
  EDDY_ASSIGN_OR_RETURN(const PinnedWord word, words_.acquire());
  const CudaContext::Use use(*context_);
  const CudaApi& api = context_->api();
  const Result<CuStream> stream = take_stream();
  Status status = stream.status();
  if (status.is_ok()) {
    const CuResult written =
        api.stream_write_value32(*stream, word.device, 1, kCuWriteValueDefault);
    status = context_->check(api.stream_synchronize(*stream), "cuStreamSynchronize");
    const bool has_arrived =
        std::atomic_ref<uint32_t>(*word.host).load(std::memory_order_acquire) == 1;
    has_memory_words_ = status.is_ok() && written == CuResult::kSuccess && has_arrived;
    give_back(*stream);
  }
  words_.release(word);
  return status;
}

std::vector<std::string> CudaDevice::notices() const {
  std::vector<std::string> all = kernels_.notices;
  if (!kernels_.further_notices) return all;
  for (std::string& notice : kernels_.further_notices()) all.push_back(std::move(notice));
  return all;
}

Result<std::unique_ptr<Stream>> CudaDevice::create_stream() {
  EDDY_RETURN_IF_ERROR(health());
  EDDY_ASSIGN_OR_RETURN(std::unique_ptr<CudaStream> stream, CudaStream::create(shared()));
  return std::unique_ptr<Stream>(std::move(stream));
}

// A stream that is refused later, when a run needs it, would cost the device.
Status CudaDevice::check_adoptable(CuStream stream) {
  const auto handle = reinterpret_cast<uintptr_t>(stream);
  if (handle == 0 || handle == kCuStreamLegacy) {
    return invalid_argument("the null stream orders itself with all others; adopt another one");
  }
  if (handle == kCuStreamPerThread) {
    return invalid_argument(
        "the per-thread default stream is another one on every thread; adopt one that you made");
  }
  const CudaContext::Use use(*context_);
  const CudaApi& api = context_->api();
  CuContext owner = nullptr;
  const Status asked = context_->check(api.stream_context(stream, &owner), "cuStreamGetCtx");
  if (context_->is_lost()) return health();
  if (!asked.is_ok()) return invalid_argument("a stream can't be adopted: " + asked.message());
  if (owner != context_->handle()) {
    return invalid_argument(
        "a stream can't be adopted: it is not of the primary context of CUDA "
        "device " +
        std::to_string(context_->facts().ordinal));
  }
  CuCaptureStatus capture = CuCaptureStatus::kNone;
  if (!api.stream_is_capturing) return Status::ok();
  EDDY_RETURN_IF_ERROR(
      context_->check(api.stream_is_capturing(stream, &capture), "cuStreamIsCapturing"));
  if (capture == CuCaptureStatus::kNone) return Status::ok();
  return invalid_argument("a stream can't be adopted while it captures; end the capture first");
}

Result<std::unique_ptr<Stream>> CudaDevice::adopt_stream(void* native_stream) {
  EDDY_RETURN_IF_ERROR(health());
  const auto theirs = static_cast<CuStream>(native_stream);
  EDDY_RETURN_IF_ERROR(check_adoptable(theirs));
  EDDY_ASSIGN_OR_RETURN(std::unique_ptr<CudaStream> stream, CudaStream::adopt(shared(), theirs));
  return std::unique_ptr<Stream>(std::move(stream));
}

bool CudaDevice::is_device_memory(const void* memory) const {
  if (!context_->api().pointer_attribute) return false;
  const CudaContext::Use use(*context_);
  unsigned type = 0;
  const CuResult result = context_->api().pointer_attribute(
      &type, kCuPointerMemoryType, reinterpret_cast<CuDevicePointer>(memory));
  return result == CuResult::kSuccess && type == kCuMemoryTypeDevice;
}

Status CudaDevice::write(void* to, const void* from, size_t size_bytes) {
  if (size_bytes == 0) return Status::ok();
  if (!is_device_memory(to)) {
    return invalid_argument("the memory bound for an output is not the GPU's");
  }
  EDDY_ASSIGN_OR_RETURN(const BufferRef staged, staging().allocate(size_bytes));
  std::memcpy(staged.data(), from, size_bytes);
  const CudaContext::Use use(*context_);
  const CudaApi& api = context_->api();
  EDDY_ASSIGN_OR_RETURN(const CuStream stream, take_stream());
  Status status = context_->check(
      api.copy(reinterpret_cast<CuDevicePointer>(to),
               reinterpret_cast<CuDevicePointer>(staged.data()), size_bytes, stream),
      "cuMemcpyAsync");
  const Status ended = context_->check(api.stream_synchronize(stream), "cuStreamSynchronize");
  if (ended.is_ok()) {
    give_back(stream);
  } else {
    (void)api.stream_destroy(stream);
    std::lock_guard lock(idle_mutex_);
    unconfirmed_.push_back(staged);
  }
  return status.is_ok() ? ended : status;
}

Status CudaDevice::copy_by_kernel(void* to, const void* from, size_t size_bytes,
                                  void* native_stream) {
  EDDY_DCHECK(can_copy_words() && size_bytes > 0) << "no kernel copies, or it copies nothing";
  cuda::LoopCopyParams params{};
  params.num_pieces = 1;
  params.pieces[0] = {to, from, size_bytes};
  const CudaContext::Use use(*context_);
  return launch_grid(*context_, kernels_.loop.copy, 1, cuda::kBlockThreads, &params,
                     static_cast<CuStream>(native_stream));
}

Status CudaDevice::copy_last_by_kernel(void* to, const void* from, size_t size_bytes,
                                       void* native_stream) {
  GraphCapture* const capture =
      context_->stream_tails().open_capture_or_null(static_cast<CuStream>(native_stream));
  if (capture != nullptr) return capture->copy(to, from, size_bytes);
  return copy_by_kernel(to, from, size_bytes, native_stream);
}

Result<std::unique_ptr<Event>> CudaDevice::create_event() {
  EDDY_RETURN_IF_ERROR(health());
  return std::unique_ptr<Event>(std::make_unique<CudaEvent>(polled_));
}

Result<std::unique_ptr<Event>> CudaDevice::create_host_event() {
  EDDY_RETURN_IF_ERROR(health());
  return std::unique_ptr<Event>(std::make_unique<CudaEvent>(polled_, true));
}

Result<std::shared_ptr<Gate>> CudaDevice::create_gate() {
  EDDY_RETURN_IF_ERROR(health());
  EDDY_ASSIGN_OR_RETURN(const PinnedWord word, words_.acquire());
  return std::shared_ptr<Gate>(std::make_shared<CudaGate>(words_, word));
}

bool CudaDevice::wants_polling() {
  watch_.watch();
  return streams_.has_work() || !polled_.is_empty();
}

bool CudaDevice::poll() {
  std::vector<EventListener*> ready;
  const bool has_moved = streams_.poll(ready);
  polled_.take_ready(ready);
  for (EventListener* listener : ready) listener->on_complete();
  return has_moved || !ready.empty();
}

}  // namespace eddy
