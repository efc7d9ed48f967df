#include "tests/runtime/testing/allocation_counter.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<uint64_t> num_calls{0};
}  // namespace

void* operator new(size_t size) {
  num_calls.fetch_add(1, std::memory_order_relaxed);
  if (void* data = std::malloc(size > 0 ? size : 1)) return data;
  throw std::bad_alloc();
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  num_calls.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size > 0 ? size : 1);
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, size_t) noexcept { std::free(data); }

namespace eddy::testing {

uint64_t num_allocations() { return num_calls.load(std::memory_order_relaxed); }

}  // namespace eddy::testing
