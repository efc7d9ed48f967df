#include "ops/contract/packed_constants.h"

#include <algorithm>
#include <cstdlib>

namespace eddy {

PackedMemory PackedConstants::memory(
    const void* constant, std::string_view layout, size_t size_bytes,
    const std::function<void(std::byte* to)>& fill,
    const std::function<bool(const std::byte* bytes)>& is_usable) const {
  if (store_.find_or_null) {
    PackedMemory found = store_.find_or_null(constant, layout, size_bytes);
    if (found != nullptr && (!is_usable || is_usable(found.get()))) return found;
  }
  const size_t rounded =
      (std::max<size_t>(size_bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  auto* const bytes = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  if (bytes == nullptr) return nullptr;
  const PackedMemory made(
      bytes, [](const std::byte* memory) { std::free(const_cast<std::byte*>(memory)); });
  fill(bytes);
  if (store_.add) store_.add(constant, layout, made, size_bytes);
  return made;
}

}  // namespace eddy
