#include "runtime/api/c/memory_check.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace eddy::c {
namespace {

constexpr size_t kChunk = size_t{64} << 10;

void add_to(uint64_t& sum, const std::byte* bytes, size_t count) {
  for (size_t i = 0; i < count; i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + i, std::min(sizeof(word), count - i));
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    sum ^= sum >> 29;
  }
}

// False: it is not there. The system copies, as a read of ours would crash. Where it may not (some
// sandboxes), the memory is taken to be there.
bool read_sum(const void* data, size_t size_bytes, uint64_t& sum) {
  sum = size_bytes;
  std::vector<std::byte> chunk(std::min(kChunk, size_bytes));
  for (size_t done = 0; done < size_bytes;) {
    auto* const from = const_cast<std::byte*>(static_cast<const std::byte*>(data)) + done;
    const size_t count = std::min(kChunk, size_bytes - done);
    const iovec local = {chunk.data(), count};
    const iovec remote = {from, count};
    const ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    if (got != static_cast<ssize_t>(count)) {
      if (got >= 0 || errno == EFAULT) return false;
      std::memcpy(chunk.data(), from, count);
    }
    add_to(sum, chunk.data(), count);
    done += count;
  }
  return true;
}

}  // namespace

Refusal MemoryCheck::begin(std::string name, const TensorView& view, MemoryCheck& check) {
  check.name_ = std::move(name);
  check.data_ = view.data;
  const bool has_bytes = view.data != nullptr && view.element != ElementType::kString;
  check.size_bytes_ = has_bytes ? view.size_bytes() : 0;
  if (read_sum(check.data_, check.size_bytes_, check.sum_)) return {};
  return {EDDY_INVALID_ARGUMENT,
          check.name_ +
              " is bound to memory that is not there any more; it must stay until it is "
              "bound anew"};
}

Refusal MemoryCheck::verify() const {
  uint64_t sum = 0;
  if (!read_sum(data_, size_bytes_, sum)) {
    return {EDDY_INVALID_ARGUMENT, "the memory of " + name_ +
                                       " was freed while the run was under way; it must stay until "
                                       "the run has ended"};
  }
  if (sum == sum_) return {};
  return {EDDY_INVALID_ARGUMENT, "the memory of " + name_ +
                                     " was written, or freed and used again, while the run was "
                                     "under way; it must stay as it is until the run has ended"};
}

}  // namespace eddy::c
