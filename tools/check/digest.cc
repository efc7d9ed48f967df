#include "tools/check/digest.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "graph/base/check.h"
#include "tools/check/hash_ops.h"

namespace eddy::check {

uint64_t taken_in(uint64_t state, const TensorView& view) {
  static_assert(std::endian::native == std::endian::little);
  const std::span<const int64_t> shape = view.shape();
  state = mix(state,
              static_cast<uint64_t>(view.element) * (uint64_t{1} << 32) + uint64_t{shape.size()});
  for (int64_t dim : shape) state = mix(state, static_cast<uint64_t>(dim));
  EDDY_DCHECK(view.data != nullptr || view.size_bytes() == 0) << "elements without memory";
  const size_t size_bytes = view.size_bytes();
  for (size_t at = 0; at < size_bytes; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, view.as<uint8_t>() + at, std::min<size_t>(8, size_bytes - at));
    state = mix(state, word);
  }
  return state;
}

uint64_t digest(const TensorView& view) {
  if (view.is_omitted()) return 2;
  return taken_in(0, view);
}

uint64_t digest(const Tensor& value) {
  if (value.kind() == ValueKind::kNone) return 1;
  if (value.is_tensor()) return taken_in(0, value.view());
  uint64_t state = mix(3, value.elements().size());
  for (const Tensor& element : value.elements()) state = mix(state, digest(element));
  return state;
}

uint64_t combine_digests(std::span<const uint64_t> digests) {
  uint64_t state = digests.size();
  for (uint64_t digest : digests) state = mix(state, digest);
  return state;
}

}  // namespace eddy::check
