// CudaAllocator: pooled memory that a GPU uses: its own, or the host's (pinned, for staging).
//
// The seam's allocate() and release() do not say which stream uses a buffer, and a host drops its
// last reference when the work that uses the buffer has been issued, not when it has run. So a
// released block notes the last Work of every busy stream; it is handed out again once all of them
// have passed it, which no use can outlast (stream_progress.h). Loops thus rotate through as many
// blocks as their iterations overlap, and a warm loop makes no driver call.
//
// New blocks come from a memory pool of the driver's, allocated in the order of a stream of this
// allocator's own and awaited at once (rare); blocks go back to the driver by trim(), when the
// driver has no more, and at the end. When it still has none, released blocks that streams may use
// are waited for, as long as something moves: the host runs ahead of the device, and whether a run
// fits must not depend on how far. All of this waits, without the mutex, so a thread that may not
// wait (no_waiting.h) is refused it and has what is cached only.
//
// Errors: kResourceExhausted past the limit or when memory is out; kUnsupported for strings, which
// live on the CPU; kDeviceLost. Threads: any. Cost: O(streams) when cached.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "runtime/cuda/cuda_context.h"
#include "runtime/cuda/stream_progress.h"
#include "runtime/device/device.h"
#include "runtime/device/size_class.h"

namespace eddy {

// Where an allocator's blocks come from. Any thread.
class CudaMemorySource {
 public:
  virtual ~CudaMemorySource() = default;
  virtual Result<void*> allocate(size_t size_bytes) = 0;
  virtual void free(void* memory) = 0;
};

// Device memory, by stream-ordered allocation.
class CudaDeviceMemory : public CudaMemorySource {
 public:
  static Result<std::unique_ptr<CudaDeviceMemory>> create(CudaContext& context);
  ~CudaDeviceMemory() override;
  Result<void*> allocate(size_t size_bytes) override;
  void free(void* memory) override;

 private:
  CudaDeviceMemory(CudaContext& context, CuMemoryPool pool, CuStream stream)
      : context_(context), pool_(pool), stream_(stream) {}
  CudaContext& context_;
  const CuMemoryPool pool_;
  const CuStream stream_;
};

// Page-locked host memory that the device can read and write.
class CudaPinnedMemory : public CudaMemorySource {
 public:
  explicit CudaPinnedMemory(CudaContext& context) : context_(context) {}
  Result<void*> allocate(size_t size_bytes) override;
  void free(void* memory) override;
  // Whether all of these bytes lie in one block of this. Any thread.
  bool contains(const void* memory, size_t size_bytes) const;

 private:
  CudaContext& context_;
  mutable std::mutex mutex_;
  std::map<uintptr_t, size_t> blocks_;  // under the mutex: address, size
};

class CudaAllocator : public Allocator {
 public:
  // For how long nothing may move while memory is waited for.
  static constexpr std::chrono::milliseconds kPatience{1000};

  // limit_bytes 0: no limit but the device's. `mark_streams` lets the positions of all streams move
  // on though poll() is not called (CudaStreamList::mark); it is called without the allocator's
  // mutex.
  CudaAllocator(CudaContext& context, ProgressList& progress,
                std::unique_ptr<CudaMemorySource> source, size_t limit_bytes,
                std::function<void()> mark_streams)
      : context_(context),
        progress_(progress),
        source_(std::move(source)),
        limit_bytes_(limit_bytes),
        mark_streams_(std::move(mark_streams)) {}
  ~CudaAllocator() override;  // every buffer must have been released, every stream be idle

  Result<BufferRef> allocate(size_t size_bytes) override;
  Result<BufferRef> allocate_strings(size_t count) override;
  void release(Buffer* buffer) noexcept override;
  MemoryStatistics statistics() const override;
  // Gives back to the driver what no stream uses any more.
  void trim() override;

 private:
  struct Cached {
    Buffer* buffer;
    std::vector<ProgressList::Position> users;  // those it still waits for
  };
  static bool is_unused(Cached& cached);
  Buffer* take_cached(size_t size_class);
  Result<Buffer*> take(size_t size_class, std::unique_lock<std::mutex>& lock);
  Result<Buffer*> make(size_t size_class, std::unique_lock<std::mutex>& lock);
  bool wait_for_users(std::unique_lock<std::mutex>& lock);
  Status out_of_memory(size_t size_bytes, const Status& reason) const;

  CudaContext& context_;
  ProgressList& progress_;
  const std::unique_ptr<CudaMemorySource> source_;
  const size_t limit_bytes_;
  const std::function<void()> mark_streams_;
  mutable std::mutex mutex_;
  std::array<std::vector<Cached>, kNumSizeClasses> free_;  // under the mutex, oldest first
  MemoryStatistics statistics_;                            // under the mutex
};

}  // namespace eddy
