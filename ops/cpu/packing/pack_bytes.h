// pack_bytes: weights that a kernel packs as plain bytes, for itself or shared with the kernels
// that are bound with it and with earlier processes (ops/contract/packed_constants.h).
//
// The layout names the kind of packing and all that it depends on beside the constant and the
// processor. Null: out of memory.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "ops/contract/kernel.h"

namespace eddy::cpu {

// `init_or_null`: the kernel that is being bound; null: for itself.
inline PackedMemory pack_bytes(const KernelInit* init_or_null, const void* constant,
                               std::string_view layout, size_t size_bytes,
                               const std::function<void(std::byte* to)>& fill) {
  if (init_or_null != nullptr) return init_or_null->pack_bytes(constant, layout, size_bytes, fill);
  return PackedConstants().memory(constant, layout, size_bytes, fill);
}

}  // namespace eddy::cpu
