// StackPool: guarded stacks for fibers, made by mmap and recycled.
//
//   [ guard page, no access | usable ................................ top ]
//
// Contract: a stack is never handed out without its guard. The whole range is first mapped
// without access and only the part above the guard is then opened, so a half-done attempt
// leaves less access, never more. A recycled stack keeps what its last user wrote.
//
// Limit: each guarded stack costs two of the process's memory maps (vm.max_map_count, 65,530
// by default, so about 30,000 stacks). The pool reads that number and counts the maps in use
// when it is made, leaves an eighth of all maps to others, and returns resource_exhausted at
// the limit, or earlier when the kernel refuses.
//
// Errors: resource_exhausted (limit, or the kernel refused). Threads: one at a time.
// Cost: recycled 20 ns, fresh one mmap and one mprotect (about 8 µs with the first touch).
#pragma once

#include <cstddef>
#include <vector>

#include "graph/base/status.h"

namespace eddy {

struct Stack {
  char* base = nullptr;  // lowest usable byte; the guard page lies just below
  std::size_t size_bytes = 0;

  char* top() const { return base + size_bytes; }
};

struct StackPoolOptions {
  std::size_t stack_bytes = std::size_t{256} << 10;  // rounded up to pages, the guard comes on top
  std::size_t max_stacks = 0;                        // 0: as many as vm.max_map_count allows
  std::size_t max_idle = 4096;  // released stacks beyond these return to the kernel
};

class StackPool {
 public:
  explicit StackPool(const StackPoolOptions& options = {});
  // Every stack must have been released.
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  Result<Stack> acquire();
  // `stack` comes from acquire() and nothing runs on it or refers into it any more.
  void release(const Stack& stack);

  std::size_t max_stacks() const { return max_stacks_; }
  std::size_t live() const { return live_; }         // acquired and not released
  std::size_t idle() const { return idle_.size(); }  // waiting to be used again

 private:
  Result<Stack> map_stack() const;
  void unmap_stack(const Stack& stack) const;

  const std::size_t page_bytes_;
  const std::size_t stack_bytes_;
  const std::size_t max_stacks_;
  const std::size_t max_idle_;
  std::size_t live_ = 0;
  std::vector<Stack> idle_;  // last in, first out: the warmest first
};

// What the kernel allows and what is in use: the honest limit for stacks of two maps each.
// 0 when nothing is left.
std::size_t guarded_stacks_available();

}  // namespace eddy
