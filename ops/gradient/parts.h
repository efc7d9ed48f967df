// What several families of rules share: declarations of reads, and parts of formulas.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "graph/base/check.h"
#include "graph/differentiate/gradient_rule.h"

namespace eddy {

Status add_rules(GradientTable& table, std::vector<GradientRule> rules);

// Places as bits.
constexpr uint64_t bits(std::initializer_list<int> places) {
  uint64_t set = 0;
  for (const int place : places) {
    EDDY_DCHECK(place >= 0 && place < 64) << "place " << place;
    set |= uint64_t{1} << place;
  }
  return set;
}

using Reads = std::optional<GradientReads>;
inline constexpr Reads kNothingBack = std::nullopt;  // the input is of integers, or a shape

// `axis` as 0..rank-1.
int64_t place_of(int64_t axis, int rank);
// Axes begin .. end-1.
std::vector<int64_t> axes_between(int64_t begin, int64_t end);
// The content of a constant of int64 or int32; nullopt where it is none.
std::optional<std::vector<int64_t>> known_ints(const GradientContext& c, size_t input);

// The same elements in the shape of input i. Reads its shape.
Value reshape_to_input(GradientContext& c, Value value, size_t i);
// Sums over the axes; sizes stay as ones.
Value sum_over(GradientContext& c, Value value, const std::vector<int64_t>& axes);
Value mean_over(GradientContext& c, Value value, const std::vector<int64_t>& axes);
// Zeros of that shape, of output 0's element type.
Value zeros_of(GradientContext& c, Value shape);

// For operators that only move elements: each element of input 0 is replaced by its place in the
// flat input, as int64, the operator is applied to these, and the adjoint is added at the places
// that come out. Reads the shape of input 0.
Value flat_places(GradientContext& c);
void add_at_places(GradientContext& c, Value places, Value gradient);

}  // namespace eddy
