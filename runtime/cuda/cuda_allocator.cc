#include "runtime/cuda/cuda_allocator.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "graph/base/check.h"
#include "runtime/device/no_waiting.h"

namespace eddy {

// ---------------------------------------------------------------- sources

Result<std::unique_ptr<CudaDeviceMemory>> CudaDeviceMemory::create(CudaContext& context) {
  const CudaApi& api = context.api();
  const CudaContext::Use use(context);
  CuMemoryPoolProps props;
  props.location_id = context.facts().ordinal;
  CuMemoryPool pool = nullptr;
  EDDY_RETURN_IF_ERROR(context.check(api.pool_create(&pool, &props), "cuMemPoolCreate"));
  // The pool keeps what is freed: giving pages back costs a synchronization each time.
  uint64_t keep_all = UINT64_MAX;
  Status status = context.check(api.pool_set_attribute(pool, kCuPoolReleaseThreshold, &keep_all),
                                "cuMemPoolSetAttribute");
  Result<CuStream> stream = status.is_ok() ? context.make_stream() : Result<CuStream>(status);
  if (!stream.is_ok()) {
    const CaptureTurns::Alone alone(context.capture_turns());
    api.pool_destroy(pool);
    return stream.take_status();
  }
  return std::unique_ptr<CudaDeviceMemory>(new CudaDeviceMemory(context, pool, *stream));
}

CudaDeviceMemory::~CudaDeviceMemory() {
  const CudaContext::Use use(context_);
  (void)context_.check(context_.api().stream_synchronize(stream_), "cuStreamSynchronize");
  context_.api().stream_destroy(stream_);
  const CaptureTurns::Alone alone(context_.capture_turns());
  context_.api().pool_destroy(pool_);
}

Result<void*> CudaDeviceMemory::allocate(size_t size_bytes) {
  const CudaContext::Use use(context_);
  CuDevicePointer memory = 0;
  const auto ask = [&] {
    return context_.check(context_.api().memory_allocate(&memory, size_bytes, pool_, stream_),
                          "cuMemAllocFromPoolAsync");
  };
  const auto catch_up = [&] {
    return context_.check(context_.api().stream_synchronize(stream_), "cuStreamSynchronize");
  };
  Status status = ask();
  if (status.code() == StatusCode::kResourceExhausted) {  // what was freed may not be back yet
    EDDY_RETURN_IF_ERROR(catch_up());
    status = ask();
  }
  EDDY_RETURN_IF_ERROR(status);
  status = catch_up();
  if (!status.is_ok()) {
    context_.api().memory_free(memory, stream_);
    return status;
  }
  return reinterpret_cast<void*>(memory);
}

void CudaDeviceMemory::free(void* memory) {
  const CudaContext::Use use(context_);
  (void)context_.check(
      context_.api().memory_free(reinterpret_cast<CuDevicePointer>(memory), stream_),
      "cuMemFreeAsync");
}

Result<void*> CudaPinnedMemory::allocate(size_t size_bytes) {
  const CudaContext::Use use(context_);
  void* memory = nullptr;
  EDDY_RETURN_IF_ERROR(context_.check(
      context_.api().host_allocate(&memory, size_bytes, kCuHostAllocPortable | kCuHostAllocMapped),
      "cuMemHostAlloc"));
  std::lock_guard lock(mutex_);
  const bool is_new = blocks_.emplace(reinterpret_cast<uintptr_t>(memory), size_bytes).second;
  EDDY_CHECK(is_new) << "the driver gives a block that is in use";
  return memory;
}

bool CudaPinnedMemory::contains(const void* memory, size_t size_bytes) const {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  std::lock_guard lock(mutex_);
  auto block = blocks_.upper_bound(address);
  if (block == blocks_.begin()) return false;
  --block;
  const uintptr_t offset = address - block->first;
  return offset <= block->second && size_bytes <= block->second - offset;
}

void CudaPinnedMemory::free(void* memory) {
  {
    std::lock_guard lock(mutex_);
    const size_t num_erased = blocks_.erase(reinterpret_cast<uintptr_t>(memory));
    EDDY_CHECK(num_erased == 1) << "a block goes back that is not of this memory";
  }
  const CudaContext::Use use(context_);
  (void)context_.check(context_.api().host_free(memory), "cuMemFreeHost");
}

// ---------------------------------------------------------------- allocator

CudaAllocator::~CudaAllocator() {
  EDDY_CHECK(statistics_.used_bytes == 0)
      << statistics_.used_bytes << " bytes are still in use when their device goes";
  for (auto& list : free_) {
    for (Cached& cached : list) {
      source_->free(cached.buffer->data);
      delete cached.buffer;
    }
  }
}

bool CudaAllocator::is_unused(Cached& cached) {
  std::erase_if(cached.users, [](const auto& position) { return position.is_reached(); });
  return cached.users.empty();
}

Buffer* CudaAllocator::take_cached(size_t size_class) {
  auto& list = free_[size_class];
  const auto found = std::find_if(list.begin(), list.end(), is_unused);
  if (found == list.end()) {
    for (Cached& cached : list) {
      for (const auto& position : cached.users) position.progress->want_mark();
    }
    return nullptr;
  }
  Buffer* buffer = found->buffer;
  list.erase(found);
  EDDY_DCHECK(buffer->size_class == size_class &&
              buffer->capacity_bytes <= statistics_.cached_bytes)
      << "class " << buffer->size_class << " is cached in the list of " << size_class;
  statistics_.cached_bytes -= buffer->capacity_bytes;
  return buffer;
}

Result<Buffer*> CudaAllocator::take(size_t size_class, std::unique_lock<std::mutex>& lock) {
  for (;;) {
    if (Buffer* cached = take_cached(size_class)) return cached;
    if (NoWaiting::refuses()) return resource_exhausted("no memory that is there at once");
    Result<Buffer*> made = make(size_class, lock);
    if (made.is_ok() || made.status().code() != StatusCode::kResourceExhausted) return made;
    if (!wait_for_users(lock)) return made;
  }
}

// Until a block that was released is in use no more. False: none will be, as far as one can see:
// what it waits for is not issued, or nothing has moved for kPatience. The lock is given up
// meanwhile.
bool CudaAllocator::wait_for_users(std::unique_lock<std::mutex>& lock) {
  EDDY_DCHECK(lock.owns_lock()) << "the lists are read without the lock";
  using Clock = std::chrono::steady_clock;
  uint64_t seen = 0;
  Clock::time_point moved = Clock::now();
  while (!context_.is_lost()) {
    uint64_t completed = 0;
    bool is_any_issued = false;
    for (auto& list : free_) {
      for (Cached& cached : list) {
        if (is_unused(cached)) return true;
        bool is_issued = true;
        for (const auto& [progress, at] : cached.users) {
          completed += progress->completed();
          is_issued &= progress->issued() >= at;
        }
        is_any_issued |= is_issued;
      }
    }
    const Clock::time_point now = Clock::now();
    if (std::exchange(seen, completed) != completed) moved = now;
    if (!is_any_issued || now - moved > kPatience) return false;
    lock.unlock();
    mark_streams_();
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    lock.lock();
  }
  return false;
}

// The lock is given up meanwhile.
Result<Buffer*> CudaAllocator::make(size_t size_class, std::unique_lock<std::mutex>& lock) {
  EDDY_DCHECK(lock.owns_lock()) << "the lock that is given up is not held";
  const size_t capacity_bytes = size_class_bytes(size_class);
  lock.unlock();
  Result<void*> memory = source_->allocate(capacity_bytes);
  if (!memory.is_ok() && memory.status().code() == StatusCode::kResourceExhausted) {
    trim();
    memory = source_->allocate(capacity_bytes);
  }
  lock.lock();
  if (!memory.is_ok()) return memory.take_status();
  ++statistics_.num_system_allocations;
  Buffer* buffer = new Buffer;
  buffer->size_class = static_cast<uint32_t>(size_class);
  buffer->capacity_bytes = capacity_bytes;
  buffer->data = *memory;
  buffer->owner = this;
  return buffer;
}

Status CudaAllocator::out_of_memory(size_t size_bytes, const Status& reason) const {
  std::string message = "no memory for a tensor of " + std::to_string(size_bytes) +
                        " bytes: " + std::to_string(statistics_.used_bytes) + " bytes are in use";
  if (limit_bytes_ != 0) message += " of a limit of " + std::to_string(limit_bytes_);
  if (!reason.is_ok()) message += "; " + reason.message();
  return resource_exhausted(std::move(message));
}

Result<BufferRef> CudaAllocator::allocate(size_t size_bytes) {
  EDDY_RETURN_IF_ERROR(context_.health());
  std::unique_lock lock(mutex_);
  if (size_bytes >= kMaxPooledBytes) return out_of_memory(size_bytes, Status::ok());
  const size_t size_class = size_class_of(size_bytes);
  const size_t capacity_bytes = size_class_bytes(size_class);
  EDDY_DCHECK(capacity_bytes >= size_bytes) << "class " << size_class << " is too small";
  EDDY_DCHECK(limit_bytes_ == 0 || statistics_.used_bytes <= limit_bytes_)
      << statistics_.used_bytes << " bytes are in use of " << limit_bytes_;
  if (limit_bytes_ != 0 && capacity_bytes > limit_bytes_ - statistics_.used_bytes) {
    return out_of_memory(size_bytes, Status::ok());
  }
  // Others come to the limit while this one waits for its memory.
  statistics_.used_bytes += capacity_bytes;
  Result<Buffer*> taken = take(size_class, lock);
  if (!taken.is_ok()) {
    EDDY_DCHECK(statistics_.used_bytes >= capacity_bytes) << "more is given back than was taken";
    statistics_.used_bytes -= capacity_bytes;
    EDDY_RETURN_IF_ERROR(context_.health());
    const bool is_exhausted = taken.status().code() == StatusCode::kResourceExhausted;
    if (!is_exhausted || NoWaiting::has_refused_here()) return taken.take_status();
    return out_of_memory(size_bytes, taken.status());
  }
  Buffer* const buffer = *taken;
  statistics_.peak_bytes = std::max(statistics_.peak_bytes, statistics_.used_bytes);
  buffer->references.store(1, std::memory_order_relaxed);
  return BufferRef(buffer);
}

Result<BufferRef> CudaAllocator::allocate_strings(size_t) {
  return unsupported("strings can't live in a GPU's memory; nodes with strings run on the CPU");
}

void CudaAllocator::release(Buffer* buffer) noexcept {
  EDDY_DCHECK(buffer->owner == this && buffer->size_class < kNumSizeClasses)
      << "the buffer of another allocator";
  EDDY_DCHECK(buffer->references.load(std::memory_order_relaxed) <= 1)
      << "a buffer goes while others refer to it";
  auto users = progress_.now();
  std::lock_guard lock(mutex_);
  EDDY_DCHECK(statistics_.used_bytes >= buffer->capacity_bytes)
      << statistics_.used_bytes << " bytes are in use, and more go";
  statistics_.used_bytes -= buffer->capacity_bytes;
  statistics_.cached_bytes += buffer->capacity_bytes;
  free_[buffer->size_class].push_back({buffer, std::move(users)});
}

MemoryStatistics CudaAllocator::statistics() const {
  std::lock_guard lock(mutex_);
  return statistics_;
}

void CudaAllocator::trim() {
  std::vector<Buffer*> unused;
  {
    std::lock_guard lock(mutex_);
    for (auto& list : free_) {
      std::erase_if(list, [&](Cached& cached) {
        if (!is_unused(cached)) return false;
        EDDY_DCHECK(cached.buffer->capacity_bytes <= statistics_.cached_bytes) << "wrong books";
        statistics_.cached_bytes -= cached.buffer->capacity_bytes;
        unused.push_back(cached.buffer);
        return true;
      });
    }
  }
  for (Buffer* buffer : unused) {
    source_->free(buffer->data);
    delete buffer;
  }
}

}  // namespace eddy
