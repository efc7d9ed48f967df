// MemoryBudget: what reading one model may take, charged before it is allocated.
//
// A file buys memory with its size, so that a small file can request little however its bytes are
// arranged: limits.min_memory_bytes, and limits.memory_per_file_byte for each byte of the model and
// of the external files it names, up to limits.max_memory_bytes. Mapped bytes cost nothing;
// parsed messages, numbers, names, nodes and copied constants do, by an estimate that is above
// what they really take. Nothing is ever given back: a budget lives as long as one reading.
//
// Internal to graph/io. Threads: as a plain value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "graph/base/check.h"
#include "graph/base/status.h"
#include "graph/io/import_limits.h"

namespace eddy {

class MemoryBudget {
 public:
  explicit MemoryBudget(const ImportLimits& limits)
      : limits_(limits), allowed_(std::min(limits.min_memory_bytes, limits.max_memory_bytes)) {}

  void add_file(uint64_t size_bytes) {
    const auto more = static_cast<unsigned __int128>(size_bytes) * limits_.memory_per_file_byte;
    EDDY_CHECK(allowed_ <= limits_.max_memory_bytes) << allowed_ << " bytes are over the limit";
    const uint64_t room = limits_.max_memory_bytes - allowed_;
    allowed_ += more > room ? room : static_cast<uint64_t>(more);
  }

  // False when it does not fit; nothing fits from then on.
  [[nodiscard]] bool charge(uint64_t size_bytes) {
    EDDY_DCHECK(used_ <= allowed_) << used_ << " of " << allowed_ << " bytes";
    if (size_bytes > allowed_ - used_) {
      used_ = allowed_;
      return false;
    }
    used_ += size_bytes;
    return true;
  }

  std::string message() const {
    return "reading this would take more than " + std::to_string(allowed_) +
           " bytes of memory, which is what a file of its size may take; a program that trusts "
           "it can raise ImportLimits::min_memory_bytes";
  }
  Status error() const { return resource_exhausted(message()); }

 private:
  const ImportLimits& limits_;
  uint64_t allowed_;
  uint64_t used_ = 0;
};

}  // namespace eddy
