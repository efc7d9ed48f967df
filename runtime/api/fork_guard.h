// ForkGuard: tells whether this process is a child, forked after the guard was made.
//
// A child has the memory of its parent but not its threads, and a lock that another thread held
// stays locked for ever. So nothing of a session may be used there, not even to end it; a child
// that wants to run graphs makes sessions of its own. Every call on the parent's sessions, calls
// and handles fails there with kInvalidArgument, and destroying them does nothing. Tensors that the
// parent's sessions made may be read there, but must be left undestroyed (as _exit() does).
//
// Idea: a page that the kernel hands to children empty (MADV_WIPEONFORK, Linux 4.14), so asking is
// one load, without a system call and without process-wide state. Where the kernel has none the
// guard never finds itself in a child.
//
// Threads: any, after creation. Cost: a page and three system calls to make.
#pragma once

#include <sys/mman.h>

#include <cstdint>

#include "graph/base/status.h"

namespace eddy {

class ForkGuard {
 public:
  ForkGuard() {
    void* page = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return;
    if (madvise(page, kBytes, MADV_WIPEONFORK) != 0) {
      munmap(page, kBytes);
      return;
    }
    mark_or_null_ = static_cast<volatile uint32_t*>(page);
    *mark_or_null_ = kHere;
  }
  ~ForkGuard() {
    if (mark_or_null_ != nullptr) munmap(const_cast<uint32_t*>(mark_or_null_), kBytes);
  }
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

  bool is_in_child() const { return mark_or_null_ != nullptr && *mark_or_null_ != kHere; }
  static Status error() {
    return invalid_argument(
        "this session was made before fork() and its threads live in the parent only; make the "
        "session in the child");
  }

 private:
  static constexpr size_t kBytes = 4096;
  static constexpr uint32_t kHere = 1;
  volatile uint32_t* mark_or_null_ = nullptr;
};

}  // namespace eddy
