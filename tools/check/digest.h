// Digests of values, by which campaigns compare them.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/api/tensor.h"

namespace eddy::check {

// Mixes in all bits of a tensor, its type and shape too: eight bytes at a time, the last ones
// filled up with zeros.
uint64_t taken_in(uint64_t state, const TensorView& view);

// Type, shape and bytes of a value; sequences element by element. Equal for equal values.
uint64_t digest(const Tensor& value);
uint64_t digest(const TensorView& view);
// Combines the digests of a node's outputs, in order.
uint64_t combine_digests(std::span<const uint64_t> digests);

}  // namespace eddy::check
