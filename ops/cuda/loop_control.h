// What decides loops and cases on the device: parameters and bodies of two kernels of one thread
// each, for the device and for tests on the host.
//
//   eddy_loop_step   counts a loop's iterations and says whether another one begins
//   eddy_case_choice says which branch of a case runs
//
// Both end every loop around them once the word `stop` is not 0; a case that has no branch for its
// selector sets it. `stop`, `progress` and `failure` are in host memory that the device sees, so
// whoever wants a loop to end writes `stop`, and reads how far it has come.
//
// On the device the answer goes to a conditional node's handle (cudaGraphSetConditional).
#pragma once

#include <cstdint>

#include "ops/cuda/scalar_ops.h"

namespace eddy::cuda {

struct LoopStepParams {
  enum Flags : uint32_t { kStart = 1, kAdvance = 2, kTest = 4 };
  uint64_t handle;  // kTest
  int64_t* counter;
  const int64_t* limit;
  const uint8_t* predicate;  // kTest
  const volatile uint32_t* stop;
  volatile int64_t* progress;  // {the counter, whether the loop is over}
  uint32_t flags;
  uint32_t reserved;
};
static_assert(sizeof(LoopStepParams) == 56);

struct CaseChoiceParams {
  uint64_t handle;
  const void* selector;
  volatile uint32_t* stop;
  volatile int64_t* failure;
  int32_t type;  // 0: bool, 1: int32, 2: int64
  int32_t num_choices;
  int32_t fallback;  // < 0: the run fails
  int32_t reserved;
};
static_assert(sizeof(CaseChoiceParams) == 48);

// Words that host and device share while both run: on the device by what volatile means there, on a
// host that plays the device as atomics.
template <typename T>
EDDY_HD T read_shared(const volatile T* word) {
#ifdef __CUDA_ARCH__
  return *word;
#else
  return __atomic_load_n(word, __ATOMIC_RELAXED);
#endif
}
template <typename T>
EDDY_HD void write_shared(volatile T* word, T value) {
#ifdef __CUDA_ARCH__
  *word = value;
#else
  __atomic_store_n(word, value, __ATOMIC_RELAXED);
#endif
}

// Set: (handle, value) -> void.
template <typename Set>
EDDY_HD void loop_step(const LoopStepParams& p, Set set) {
  int64_t count = (p.flags & LoopStepParams::kStart) != 0 ? 0 : *p.counter;
  // An iteration that has been stopped is not over: whoever asks where it was is told its number.
  if ((p.flags & LoopStepParams::kAdvance) != 0 && read_shared(p.stop) == 0) ++count;
  *p.counter = count;
  write_shared(p.progress, count);
  if ((p.flags & LoopStepParams::kStart) != 0) write_shared(p.progress + 1, int64_t{0});
  if ((p.flags & LoopStepParams::kTest) == 0) return;
  const bool goes_on = read_shared(p.stop) == 0 && count < *p.limit && *p.predicate != 0;
  if (!goes_on) write_shared(p.progress + 1, int64_t{1});
  set(p.handle, goes_on ? 1u : 0u);
}

template <typename Set>
EDDY_HD void case_choice(const CaseChoiceParams& p, Set set) {
  int64_t value = p.type == 0 ? static_cast<int64_t>(*static_cast<const uint8_t*>(p.selector) != 0)
                  : p.type == 1 ? static_cast<int64_t>(*static_cast<const int32_t*>(p.selector))
                                : *static_cast<const int64_t*>(p.selector);
  const int64_t selected = value;
  if (value < 0 || value >= p.num_choices) value = p.fallback;
  if (value < 0) {
    if (read_shared(p.stop) == 0) {
      write_shared(p.failure + 1, selected);
      write_shared(p.failure, int64_t{1});
      write_shared(p.stop, uint32_t{1});
    }
    value = p.num_choices;
  }
  set(p.handle, static_cast<uint32_t>(value));
}

}  // namespace eddy::cuda
