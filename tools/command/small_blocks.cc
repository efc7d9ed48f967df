#include "tools/command/small_blocks.h"

#include <malloc.h>

#include <cstdint>
#include <cstdlib>
#include <new>

namespace eddy::small_blocks {
namespace {

constexpr size_t kStep = 16;
constexpr size_t kNumSizes = kLargestBytes / kStep;
static_assert(kStep == __STDCPP_DEFAULT_NEW_ALIGNMENT__);

struct Block {
  Block* next;
};

// Lists by the number of steps that their blocks have. Fresh: no list has room yet.
enum class Phase : uint8_t { kFresh, kKeeping, kOver };
struct Lists {
  Block* first[kNumSizes + 1];
  uint32_t room[kNumSizes + 1];  // for so many more blocks
  Phase phase;
};
constinit thread_local Lists lists{};

constexpr size_t max_blocks(size_t steps) { return kMaxKeptBytes / (steps * kStep); }

[[maybe_unused]] constexpr size_t steps_of(size_t size) {
  return size == 0 ? 1 : (size + kStep - 1) / kStep;
}

}  // namespace

size_t kept_bytes(size_t size) {
  const size_t steps = steps_of(size);
  if (steps > kNumSizes || lists.phase != Phase::kKeeping) return 0;
  return (max_blocks(steps) - lists.room[steps]) * steps * kStep;
}

#ifndef EDDY_SANITIZER
namespace {

// Gives everything back when its thread ends; blocks that come later are not kept.
struct EndOfThread {
  EndOfThread() { lists.phase = Phase::kKeeping; }
  ~EndOfThread() {
    lists.phase = Phase::kOver;
    for (size_t steps = 1; steps <= kNumSizes; ++steps) {
      lists.room[steps] = 0;
      while (Block* const block = lists.first[steps]) {
        lists.first[steps] = block->next;
        std::free(block);
      }
    }
  }
};

// The list is full, or has never been used.
[[gnu::noinline]] void let_go_slowly(void* data) {
  if (lists.phase == Phase::kFresh) {
    thread_local const EndOfThread end;
    for (size_t steps = 1; steps <= kNumSizes; ++steps) {
      lists.room[steps] = static_cast<uint32_t>(max_blocks(steps));
    }
  }
  std::free(data);
}

inline void let_go(void* data, size_t steps) {
  if (data == nullptr) return;
  if (steps > kNumSizes) return std::free(data);
  if (lists.room[steps] == 0) [[unlikely]] return let_go_slowly(data);
  --lists.room[steps];
  lists.first[steps] = new (data) Block{lists.first[steps]};
}

[[gnu::noinline]] void* from_malloc(size_t size) {
  for (;;) {
    if (void* const data = std::malloc(size)) return data;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

}  // namespace
#endif

}  // namespace eddy::small_blocks

#ifndef EDDY_SANITIZER

void* operator new(size_t size) {
  using namespace eddy::small_blocks;
  const size_t steps = steps_of(size);
  if (steps > kNumSizes) return from_malloc(size);
  Block* const block = lists.first[steps];
  if (block == nullptr) [[unlikely]] return from_malloc(steps * kStep);
  lists.first[steps] = block->next;
  __builtin_prefetch(block->next, 1);  // whoever asks for a block next reads its link first
  ++lists.room[steps];
  return block;
}

// Whoever does not say how large a block is gets what malloc knows of it: at least what was asked.
void operator delete(void* data) noexcept {
  eddy::small_blocks::let_go(data, malloc_usable_size(data) / eddy::small_blocks::kStep);
}
void operator delete(void* data, size_t size) noexcept {
  eddy::small_blocks::let_go(data, eddy::small_blocks::steps_of(size));
}

#endif
