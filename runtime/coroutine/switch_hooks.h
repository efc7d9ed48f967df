// Hooks that announce a stack switch to the sanitizers. Empty in normal builds.
//
// Why here and not in Boost: its macros only exist for the ucontext build, which switches
// thirty times slower. Order of a switch from A to B, all on one thread:
//
//   on A:  before(A's memory, B's memory, last way out of A?)   then jump_fcontext
//   on B:  after(B's memory, where A's bounds go)
//
// ASan needs the bounds of the stack that comes next and keeps a fake stack per side, freed
// by a null slot on A's last way out. TSan needs one fiber object per side, switched to just
// before the jump; the switch also orders A before B.
#pragma once

#include <cstddef>

#include "graph/base/sanitizers.h"

#if EDDY_HAS_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if EDDY_HAS_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace eddy::switch_hooks {

// Memory maps that a sanitizer takes for each fiber, besides those of the stack.
#if EDDY_HAS_TSAN
inline constexpr std::size_t kMapsPerFiber = 3;
#else
inline constexpr std::size_t kMapsPerFiber = 0;
#endif

// One side of a switch, as the sanitizers represent it.
struct Side {
  const void* stack_bottom = nullptr;
  std::size_t stack_bytes = 0;
  void* asan_fake_stack = nullptr;
  void* tsan_fiber = nullptr;
};

// Once for each fiber, on the thread that resumes it, before the first switch to it.
inline void create([[maybe_unused]] Side& side) {
#if EDDY_HAS_TSAN
  side.tsan_fiber = __tsan_create_fiber(0);
#endif
}

// Once, after the fiber's last switch away.
inline void destroy([[maybe_unused]] Side& side) {
#if EDDY_HAS_TSAN
  if (side.tsan_fiber != nullptr) __tsan_destroy_fiber(side.tsan_fiber);
  side.tsan_fiber = nullptr;
#endif
}

// The thread's own stack takes part as a side whose TSan fiber is the thread itself.
inline void adopt_current([[maybe_unused]] Side& side) {
#if EDDY_HAS_TSAN
  side.tsan_fiber = __tsan_get_current_fiber();
#endif
}

inline void before([[maybe_unused]] Side& from, [[maybe_unused]] const Side& to,
                   [[maybe_unused]] bool last_way_out) {
#if EDDY_HAS_ASAN
  __sanitizer_start_switch_fiber(last_way_out ? nullptr : &from.asan_fake_stack, to.stack_bottom,
                                 to.stack_bytes);
#endif
#if EDDY_HAS_TSAN
  __tsan_switch_to_fiber(to.tsan_fiber, 0);
#endif
}

// `from` gets its bounds: the side that resumes a fiber does not have its own.
inline void after([[maybe_unused]] Side& to, [[maybe_unused]] Side& from) {
#if EDDY_HAS_ASAN
  __sanitizer_finish_switch_fiber(to.asan_fake_stack, &from.stack_bottom, &from.stack_bytes);
#endif
}

// Makes memory that held stack frames usable for new ones.
inline void unpoison([[maybe_unused]] const void* base, [[maybe_unused]] std::size_t size_bytes) {
#if EDDY_HAS_ASAN
  __asan_unpoison_memory_region(base, size_bytes);
#endif
}

}  // namespace eddy::switch_hooks
