#include "tests/runtime/cuda/fake_memory.h"

#include <sys/mman.h>

#include "graph/base/check.h"

namespace eddy::testing {

FakeMemory::FakeMemory(size_t limit_bytes) : limit_bytes_(limit_bytes) {
  void* memory =
      mmap(nullptr, kReservedBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  EDDY_CHECK(memory != MAP_FAILED) << "no addresses for the fake's memory";
  begin_ = reinterpret_cast<uint64_t>(memory);
}

FakeMemory::~FakeMemory() { munmap(reinterpret_cast<void*>(begin_), kReservedBytes); }

void FakeMemory::set_open(bool open) {
  if (next_ == 0) return;
  EDDY_CHECK(mprotect(reinterpret_cast<void*>(begin_), next_,
                      open ? PROT_READ | PROT_WRITE : PROT_NONE) == 0);
}

uint64_t FakeMemory::reserve(size_t size_bytes) {
  if (size_bytes == 0 || size_bytes > limit_bytes_ - used_bytes_) return 0;
  const size_t rounded_bytes = (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  const size_t pages_bytes = (rounded_bytes + 4095) / 4096 * 4096;
  if (pages_bytes > kReservedBytes - next_) return 0;
  // Blocks end where their pages end, so that most overruns fault as well.
  const uint64_t address = begin_ + next_ + (pages_bytes - rounded_bytes);
  next_ += pages_bytes;
  used_bytes_ += size_bytes;
  blocks_[address].size_bytes = size_bytes;
  return address;
}

void FakeMemory::mark_allocated(uint64_t address) { blocks_.at(address).is_allocated = true; }

void FakeMemory::mark_freed(uint64_t address) {
  Block& block = blocks_.at(address);
  EDDY_CHECK(!block.is_freed);
  block.is_freed = true;
  used_bytes_ -= block.size_bytes;
}

std::string FakeMemory::check(uint64_t address, size_t size_bytes) const {
  auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return "memory that was never allocated";
  const auto& [begin, block] = *--after;
  const std::string what = "a block of " + std::to_string(block.size_bytes) + " bytes";
  if (address - begin > block.size_bytes) return "memory that was never allocated";
  if (!block.is_allocated) return what + " before its allocation";
  if (block.is_freed) return what + " after its free";
  if (size_bytes > block.size_bytes - (address - begin)) {
    return std::to_string(size_bytes) + " bytes at offset " + std::to_string(address - begin) +
           " of " + what;
  }
  return "";
}

size_t FakeMemory::num_blocks() const {
  size_t count = 0;
  for (const auto& [address, block] : blocks_) count += block.is_freed ? 0 : 1;
  return count;
}

}  // namespace eddy::testing
