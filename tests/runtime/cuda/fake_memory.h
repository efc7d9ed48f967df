// FakeMemory: the memory of a fake GPU: addresses that the host may not touch, blocks that live
// from the moment in which their allocation ran to the moment in which their free ran.
//
// Allocations and frees happen in stream order. Each operation's pointers (for kernels: every word
// of the parameters that is a device address) must be in living blocks when it runs. Copies from or
// to pageable host memory are violations, because they block.
//
// A block's address is never handed out twice, so what is used after its free is always noticed.
// Host code that reads or writes device memory faults, because the pages are opened only while
// the fake runs device work (Open). Threads: guarded by the fake's mutex.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace eddy::testing {

class FakeMemory {
 public:
  explicit FakeMemory(size_t limit_bytes);
  ~FakeMemory();
  FakeMemory(const FakeMemory&) = delete;
  FakeMemory& operator=(const FakeMemory&) = delete;

  // Opens device memory to this process for as long as it lives.
  class Open {
   public:
    explicit Open(FakeMemory& memory) : memory_(memory) { memory_.set_open(true); }
    ~Open() { memory_.set_open(false); }

   private:
    FakeMemory& memory_;
  };

  // 0 when the limit is reached. The block lives once mark_allocated has been called.
  uint64_t reserve(size_t size_bytes);
  void mark_allocated(uint64_t address);
  void mark_freed(uint64_t address);
  // Was handed out and not freed yet, in order of the calls (not of the streams).
  bool is_reserved(uint64_t address) const { return blocks_.count(address) != 0; }

  bool contains(uint64_t address) const {
    return address >= begin_ && address < begin_ + kReservedBytes;
  }
  // Empty when [address, address + size_bytes) lies in one living block, else what is wrong.
  std::string check(uint64_t address, size_t size_bytes) const;
  size_t num_blocks() const;
  size_t free_bytes() const { return limit_bytes_ - used_bytes_; }
  size_t limit_bytes() const { return limit_bytes_; }

 private:
  static constexpr size_t kReservedBytes = size_t{1} << 32;  // addresses, not memory
  static constexpr size_t kAlignment = 512;
  struct Block {
    size_t size_bytes = 0;
    bool is_allocated = false;
    bool is_freed = false;
  };
  void set_open(bool open);

  uint64_t begin_ = 0;
  size_t next_ = 0;
  const size_t limit_bytes_;
  size_t used_bytes_ = 0;
  std::map<uint64_t, Block> blocks_;
};

}  // namespace eddy::testing
