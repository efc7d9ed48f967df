#include "tools/command/small_blocks.h"

#include <malloc.h>
#include <pthread.h>

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

struct List {
  Block* first;
  uint32_t room;  // for so many more blocks
};

// Lists by the number of steps that their blocks have. Fresh: no list can take a block yet.
enum class Phase : uint8_t { kFresh, kKeeping, kOver };
struct Lists {
  List by_steps[kNumSizes + 1];
  Phase phase;
};
constinit thread_local Lists lists{};

constexpr size_t max_blocks(size_t steps) { return kMaxKeptBytes / (steps * kStep); }

[[maybe_unused]] constexpr size_t steps_of(size_t size) {
  return size == 0 ? 1 : (size - 1) / kStep + 1;
}

}  // namespace

size_t kept_bytes(size_t size) {
  const size_t steps = steps_of(size);
  if (steps > kNumSizes || lists.phase != Phase::kKeeping) return 0;
  return (max_blocks(steps) - lists.by_steps[steps].room) * steps * kStep;
}

#ifndef EDDY_SANITIZER
namespace {

// When a thread ends: everything goes back; blocks that come later are not kept.
void end_thread(void*) {
  lists.phase = Phase::kOver;
  for (size_t steps = 1; steps <= kNumSizes; ++steps) {
    List& list = lists.by_steps[steps];
    list.room = 0;
    while (Block* const block = list.first) {
      list.first = block->next;
      std::free(block);
    }
  }
}

// Whether end_thread() will be called. By a key and not by a thread_local's destructor, for which
// glibc ends the process where there is no memory.
bool registers_end() {
  struct Key {
    pthread_key_t key{};
    bool is_made = pthread_key_create(&key, end_thread) == 0;
  };
  static const Key end;
  return end.is_made && pthread_setspecific(end.key, &lists) == 0;
}

// The list is full, or has never been used.
[[gnu::noinline]] void let_go_slowly(void* data) {
  if (lists.phase == Phase::kFresh && registers_end()) {
    lists.phase = Phase::kKeeping;
    for (size_t steps = 1; steps <= kNumSizes; ++steps) {
      lists.by_steps[steps].room = static_cast<uint32_t>(max_blocks(steps));
    }
  }
  std::free(data);
}

inline void let_go(void* data, size_t steps) {
  if (data == nullptr) return;
  if (steps > kNumSizes) return std::free(data);
  List& list = lists.by_steps[steps];
  if (list.room == 0) [[unlikely]]
    return let_go_slowly(data);
  --list.room;
  list.first = new (data) Block{list.first};
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
  List& list = lists.by_steps[steps];
  Block* const block = list.first;
  if (block == nullptr) [[unlikely]]
    return from_malloc(steps * kStep);
  list.first = block->next;
  __builtin_prefetch(block->next, 1);  // the next allocation reads its link first
  ++list.room;
  return block;
}

// Without a size argument the block's size is malloc's usable size: at least what was requested.
void operator delete(void* data) noexcept {
  eddy::small_blocks::let_go(data, malloc_usable_size(data) / eddy::small_blocks::kStep);
}
void operator delete(void* data, size_t size) noexcept {
  eddy::small_blocks::let_go(data, eddy::small_blocks::steps_of(size));
}

#endif
