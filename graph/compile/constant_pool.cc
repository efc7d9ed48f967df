#include "graph/compile/constant_pool.h"

#include <algorithm>
#include <cstring>

#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr size_t kSamples = 64;

// Words spread over the bytes, mixed by Fowler, Noll and Vo's rule.
uint64_t sample(const char* bytes, size_t size) {
  static_assert(ConstantPool::kMinBytes >= sizeof(uint64_t), "a sample has a word at least");
  EDDY_DCHECK(size >= sizeof(uint64_t)) << size << " bytes have no whole word";
  uint64_t hash = 0xcbf29ce484222325;
  const size_t step = std::max<size_t>((size - sizeof(uint64_t)) / kSamples, 1);
  for (size_t at = 0; at + sizeof(uint64_t) <= size; at += step) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + at, sizeof(word));
    hash = (hash ^ word) * 0x100000001b3;
  }
  return hash;
}

}  // namespace

const void* ConstantPool::find_or_add(const TensorView& view) {
  if (view.data == nullptr || view.element == ElementType::kString) return view.data;
  const size_t size = view.size_bytes();
  if (size < kMinBytes) return view.data;
  const Key key(size, sample(view.as<char>(), size));
  const size_t alignment = element_size_bytes(view.element);
  EDDY_CHECK(alignment > 0) << "bytes of no element type";
  const auto [first, last] = known_.equal_range(key);
  for (auto it = first; it != last; ++it) {
    const void* bytes = it->second;
    if (bytes == view.data) return bytes;
    const bool is_aligned = reinterpret_cast<uintptr_t>(bytes) % alignment == 0;
    if (is_aligned && std::memcmp(bytes, view.data, size) == 0) return bytes;
  }
  known_.emplace(key, view.data);
  return view.data;
}

}  // namespace eddy
