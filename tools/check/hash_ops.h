// Operators of domain "check": the vocabulary of random graphs. Each mixes all bits of all it
// reads, their order, shapes and its own id into what it makes, so that a swapped input, a stale
// value or a lost iteration changes everything behind it.
//
//   Mix(x, more...)      int64 of x's shape; element i mixes x[i] and all of `more`
//   MixInPlace(x, more)  the same, and may overwrite x
//   Row(x...)            int64[3]: whatever the inputs' shapes; scan rows are made of these
//   Twins(x...)          two outputs, int64[3] and int64[2]
//   Resize(x...)         int64[n], n in 0..5 drawn from the inputs' bits (a value operator)
//   Fold(sequence)       int64[3] (a value operator)
//   Floats(x...)         float[4] in [-1, 1)
//   Trips(x...)          int64 scalar: one of attribute `choices`
//   Go(iteration, x...)  bool: iteration < one of `choices`; with `early` = n > 0, one time in n
//                        false although the count gives true
//   Pick(x...)           scalar of type `type` (bool, int32, int64), in `low` .. `low` + `count` -
//   1
//
// Every operator but Go's iteration reads tensors of any element type but string. All have
// the attribute `id`. The scalar function of 64 bits is here; the kernels are in hash_ops.cc
// and the oracle writes their meaning down a second time.
//
// The host function "check.choose" mixes its inputs to 0, 1 or 2 (eddy.HostPredicate).
#pragma once

#include <cstdint>
#include <string_view>

#include "graph/base/status.h"
#include "runtime/api/library.h"

namespace eddy::check {

inline constexpr std::string_view kHashDomain = "check";
inline constexpr std::string_view kChooseFunction = "check.choose";

// What "check.choose" does.
Result<int64_t> choose_by_hash(std::span<const TensorView> inputs);

// Registers all of them, as a user would; with another host function where one is given.
Status add_hash_ops(Library& library, const HostFunction& choose_or_empty = {});

// Not commutative, not associative, a bijection of `more` for each `state`.
inline uint64_t mix(uint64_t state, uint64_t more) {
  uint64_t z = (state * 0x9e3779b97f4a7c15u) ^ (more + 0x632be59bd9b4e019u);
  z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93u;
  return z ^ (z >> 29);
}

}  // namespace eddy::check
