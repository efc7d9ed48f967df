// What differs between processors besides their vectors (ops/cpu/README.md), and nothing else does.
//
// processor_ticks() counts at a steady rate, the same on all cores, of 1 to 5 GHz: for bounds of
// some microseconds, not for times that are reported. Threads: any. Cost: some 10 ns (x86-64), else
// a clock_gettime.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#else
#include <chrono>
#endif

namespace eddy {

inline uint64_t processor_ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
#endif
}

// In loops that look at memory until another thread writes it.
inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

}  // namespace eddy
