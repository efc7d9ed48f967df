#include "runtime/cpu/host_allocator.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "graph/base/check.h"
#include "graph/base/sanitizers.h"

#if EDDY_HAS_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace eddy {
namespace {

constexpr size_t kAlignment = kSizeClassAlignment;

// What stands in front of the bytes. Cached ones are lists through it: the lock is held where they
// change, and no memory is requested there.
struct Header {
  Buffer buffer;
  Buffer* next_or_null = nullptr;
};

Buffer*& next_of(Buffer* buffer) { return reinterpret_cast<Header*>(buffer)->next_or_null; }

// Under AddressSanitizer, reading what has gone back to the pool is an error.
void close([[maybe_unused]] const Buffer* buffer) {
#if EDDY_HAS_ASAN
  __asan_poison_memory_region(buffer->data, buffer->capacity_bytes);
#endif
}
void open([[maybe_unused]] const Buffer* buffer) {
#if EDDY_HAS_ASAN
  __asan_unpoison_memory_region(buffer->data, buffer->capacity_bytes);
#endif
}

void push(Buffer*& list, Buffer* buffer) {
  next_of(buffer) = list;
  list = buffer;
}

Buffer* pop(Buffer*& list) {
  EDDY_DCHECK(list != nullptr) << "nothing of this class is cached";
  return std::exchange(list, next_of(list));
}

constexpr size_t kHeaderBytes = kAlignment;
// From here on a larger block may serve, up to four times as large.
constexpr size_t kFirstLargeClass = size_class_of(size_t{64} << 10);
constexpr size_t kReach = 8;
static_assert(sizeof(Header) <= kHeaderBytes, "the header must fit before the aligned bytes");
static_assert(alignof(Header) <= kAlignment, "blocks are aligned for their header");

}  // namespace

HostAllocator::~HostAllocator() {
  HostAllocator::trim();
  EDDY_CHECK(statistics_.used_bytes == 0)
      << statistics_.used_bytes << " bytes are still in use when their device goes";
}

bool HostAllocator::charge(size_t bytes) {
  if (limit_bytes_ != 0 && statistics_.used_bytes + bytes > limit_bytes_) return false;
  statistics_.used_bytes += bytes;
  statistics_.peak_bytes = std::max(statistics_.peak_bytes, statistics_.used_bytes);
  return true;
}

Buffer* HostAllocator::take_cached(size_t size_class) {
  const size_t end = size_class < kFirstLargeClass
                         ? size_class + 1
                         : std::min(size_class + kReach + 1, kNumSizeClasses);
  for (size_t c = size_class; c < end; ++c) {
    if (free_[c] == nullptr) continue;
    if (!charge(size_class_bytes(c) - size_class_bytes(size_class))) continue;
    Buffer* const buffer = pop(free_[c]);
    EDDY_DCHECK(buffer->size_class == c && buffer->capacity_bytes <= statistics_.cached_bytes)
        << "class " << buffer->size_class << " is cached in the list of " << c;
    statistics_.cached_bytes -= buffer->capacity_bytes;
    return buffer;
  }
  return nullptr;
}

void HostAllocator::give_back(Buffer* list) {
  while (list != nullptr) {
    Buffer* const buffer = pop(list);
    open(buffer);
    if (memory_or_null_ == nullptr) {
      std::free(buffer);
    } else {
      memory_or_null_->release(buffer, kHeaderBytes + buffer->capacity_bytes);
    }
  }
}

void* HostAllocator::try_block(size_t size_bytes) {
  return memory_or_null_ == nullptr ? std::aligned_alloc(kAlignment, size_bytes)
                                    : memory_or_null_->allocate(size_bytes);
}

// Where there is no more, what is cached for other sizes goes back first.
void* HostAllocator::allocate_block(size_t capacity_bytes) {
  void* block = try_block(kHeaderBytes + capacity_bytes);
  if (block != nullptr) return block;
  trim();
  return try_block(kHeaderBytes + capacity_bytes);
}

Result<BufferRef> HostAllocator::allocate(size_t size_bytes) {
  const size_t size_class = size_bytes < kMaxPooledBytes ? size_class_of(size_bytes) : 0;
  const size_t capacity_bytes = size_class_bytes(size_class);
  EDDY_DCHECK(capacity_bytes >= size_bytes || size_bytes >= kMaxPooledBytes)
      << "class " << size_class << " is too small for " << size_bytes << " bytes";
  Buffer* spares = nullptr;
  lock_.lock();
  const bool fits = size_bytes < kMaxPooledBytes && charge(capacity_bytes);
  Buffer* buffer = fits ? take_cached(size_class) : nullptr;
  // The bytes of all other buffers, for the message.
  const size_t used_bytes = statistics_.used_bytes - (fits ? capacity_bytes : 0);
  if (fits && buffer == nullptr) {
    ++statistics_.num_system_allocations;
    // Smaller blocks of a tensor that grows are of no use any more.
    for (size_t c = kFirstLargeClass; c < size_class; ++c) {
      while (free_[c] != nullptr && statistics_.cached_bytes > statistics_.used_bytes / 2) {
        EDDY_DCHECK(free_[c]->capacity_bytes <= statistics_.cached_bytes) << "the books are wrong";
        statistics_.cached_bytes -= free_[c]->capacity_bytes;
        push(spares, pop(free_[c]));
      }
    }
  }
  lock_.unlock();
  if (buffer != nullptr) {
    open(buffer);
    buffer->references.store(1, std::memory_order_relaxed);
    return BufferRef(buffer);
  }
  give_back(spares);
  void* block = fits ? allocate_block(capacity_bytes) : nullptr;
  if (block == nullptr) {
    if (fits) {
      lock_.lock();
      EDDY_DCHECK(statistics_.used_bytes >= capacity_bytes) << "more is given back than was taken";
      statistics_.used_bytes -= capacity_bytes;
      lock_.unlock();
    }
    return resource_exhausted(
        "no memory for a tensor of " + std::to_string(size_bytes) +
        " bytes: " + std::to_string(used_bytes) + " bytes are in use" +
        (limit_bytes_ != 0 ? " of a limit of " + std::to_string(limit_bytes_) : std::string()));
  }
  buffer = &(new (block) Header)->buffer;
  buffer->size_class = static_cast<uint32_t>(size_class);
  buffer->capacity_bytes = capacity_bytes;
  buffer->data = static_cast<char*>(block) + kHeaderBytes;
  buffer->owner = this;
  return BufferRef(buffer);
}

Result<BufferRef> HostAllocator::allocate_strings(size_t count) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, sizeof(std::string), &bytes)) {
    return resource_exhausted("no memory for " + std::to_string(count) + " strings");
  }
  EDDY_ASSIGN_OR_RETURN(BufferRef buffer, allocate(bytes));
  std::uninitialized_default_construct_n(static_cast<std::string*>(buffer.data()), count);
  buffer.get()->num_strings = count;
  return buffer;
}

bool HostAllocator::charge_strings(Buffer* buffer, size_t size_bytes) noexcept {
  lock_.lock();
  EDDY_DCHECK(statistics_.used_bytes >= buffer->charged_bytes + buffer->capacity_bytes)
      << "a buffer with strings is not counted as in use";
  const size_t others = statistics_.used_bytes - buffer->charged_bytes;
  const bool fits = limit_bytes_ == 0 || size_bytes <= buffer->charged_bytes ||
                    (others <= limit_bytes_ && size_bytes <= limit_bytes_ - others);
  if (fits) {
    statistics_.used_bytes = others + size_bytes;
    statistics_.peak_bytes = std::max(statistics_.peak_bytes, statistics_.used_bytes);
    buffer->charged_bytes = size_bytes;
  }
  lock_.unlock();
  return fits;
}

void HostAllocator::release(Buffer* buffer) noexcept {
  EDDY_DCHECK(buffer->owner == this && buffer->size_class < kNumSizeClasses)
      << "the buffer of another allocator";
  EDDY_DCHECK(buffer->references.load(std::memory_order_relaxed) <= 1)
      << "a buffer goes while others refer to it";
  std::destroy_n(static_cast<std::string*>(buffer->data), buffer->num_strings);
  buffer->num_strings = 0;
  close(buffer);
  lock_.lock();
  EDDY_DCHECK(statistics_.used_bytes >= buffer->capacity_bytes + buffer->charged_bytes)
      << statistics_.used_bytes << " bytes are in use, and more go";
  statistics_.used_bytes -= buffer->capacity_bytes + buffer->charged_bytes;
  buffer->charged_bytes = 0;
  statistics_.cached_bytes += buffer->capacity_bytes;
  push(free_[buffer->size_class], buffer);
  lock_.unlock();
}

MemoryStatistics HostAllocator::statistics() const {
  lock_.lock();
  const MemoryStatistics copy = statistics_;
  lock_.unlock();
  return copy;
}

void HostAllocator::trim() {
  decltype(free_) lists{};
  lock_.lock();
  lists.swap(free_);
  statistics_.cached_bytes = 0;
  lock_.unlock();
  for (Buffer* list : lists) give_back(list);
}

}  // namespace eddy
