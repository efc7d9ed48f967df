#include "runtime/coroutine/stack_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "graph/base/check.h"
#include "runtime/coroutine/switch_hooks.h"

namespace eddy {
namespace {

constexpr std::size_t kMapsPerStack = 2 + switch_hooks::kMapsPerFiber;
constexpr std::size_t kDefaultMaxMapCount = 65530;
constexpr std::size_t kMinStackBytes = std::size_t{16} << 10;

std::size_t round_up(std::size_t value, std::size_t unit) {
  EDDY_CHECK(unit > 0) << "the size of a page is not known";
  return (value + unit - 1) / unit * unit;
}

std::size_t read_max_map_count() {
  std::ifstream file("/proc/sys/vm/max_map_count");
  std::size_t count = 0;
  return (file >> count) ? count : kDefaultMaxMapCount;
}

std::size_t count_maps_in_use() {
  std::ifstream file("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(file, line);) ++count;
  return count;
}

Status kernel_refused(const char* call, int error, std::size_t live) {
  return resource_exhausted(std::string("no guarded stack: ") + call + ": " + std::strerror(error) +
                            " with " + std::to_string(live) +
                            " stacks live; raise vm.max_map_count or run fewer tasks at once");
}

}  // namespace

std::size_t guarded_stacks_available() {
  const std::size_t all = read_max_map_count();
  const std::size_t taken = count_maps_in_use() + all / 8;
  return taken < all ? (all - taken) / kMapsPerStack : 0;
}

StackPool::StackPool(const StackPoolOptions& options)
    : page_bytes_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
      stack_bytes_(round_up(std::max(options.stack_bytes, kMinStackBytes), page_bytes_)),
      max_stacks_(options.max_stacks != 0 ? std::min(options.max_stacks, guarded_stacks_available())
                                          : guarded_stacks_available()),
      max_idle_(options.max_idle) {}

StackPool::~StackPool() {
  EDDY_CHECK(live_ == 0) << live_ << " stacks are still in use";
  for (const Stack& stack : idle_) unmap_stack(stack);
}

Result<Stack> StackPool::acquire() {
  if (!idle_.empty()) {
    Stack stack = idle_.back();
    idle_.pop_back();
    ++live_;
    return stack;
  }
  if (live_ >= max_stacks_) {
    return resource_exhausted("no guarded stack: all " + std::to_string(max_stacks_) +
                              " that vm.max_map_count or the pool's options allow are in use; "
                              "raise the limit or run fewer tasks at once");
  }
  Result<Stack> stack = map_stack();
  if (stack.is_ok()) ++live_;
  return stack;
}

void StackPool::release(const Stack& stack) {
  EDDY_CHECK(live_ > 0) << "released more stacks than were acquired";
  EDDY_CHECK(stack.size_bytes == stack_bytes_) << "this stack is of another pool";
  EDDY_DCHECK(idle_.empty() || idle_.back().base != stack.base) << "a stack is released twice";
  --live_;
  // Frames that never returned leave red zones behind, which would trip the next user.
  switch_hooks::unpoison(stack.base, stack.size_bytes);
  if (idle_.size() < max_idle_) {
    idle_.push_back(stack);
  } else {
    unmap_stack(stack);
  }
  EDDY_DCHECK(live_ + idle_.size() <= max_stacks_)
      << live_ << " live and " << idle_.size() << " idle stacks, of " << max_stacks_;
}

Result<Stack> StackPool::map_stack() const {
  const std::size_t whole_bytes = page_bytes_ + stack_bytes_;
  void* whole = mmap(nullptr, whole_bytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (whole == MAP_FAILED) return kernel_refused("mmap", errno, live_);
  char* base = static_cast<char*>(whole) + page_bytes_;
  // Succeeds only if the kernel could split the range, so the page below stays a guard.
  if (mprotect(base, stack_bytes_, PROT_READ | PROT_WRITE) != 0) {
    const int error = errno;
    munmap(whole, whole_bytes);
    return kernel_refused("mprotect", error, live_);
  }
  return Stack{base, stack_bytes_};
}

void StackPool::unmap_stack(const Stack& stack) const {
  const int failed = munmap(stack.base - page_bytes_, page_bytes_ + stack.size_bytes);
  EDDY_CHECK(failed == 0) << "munmap: " << std::strerror(errno);
}

}  // namespace eddy
