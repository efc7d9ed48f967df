// Largest elements of windows and where they lie; included by one source file for each
// instruction set.
#pragma once

#include "ops/cpu/loops/elementwise_inl.h"

namespace eddy::cpu {
namespace {

template <bool kIsStart>
void max_place_loop(const MaxPlaceCall& call) {
  const float* const x = call.x;
  const int32_t* const begins = call.begins;
  const int32_t tap = call.tap;
  float* const largest = call.largest;
  int32_t* const places = call.places;
  const int64_t count = call.count;
  EDDY_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    const int32_t place = begins[i] + tap;
    const float value = x[place];
    const bool is_larger = kIsStart | (value > largest[i]) | (value != value);
    largest[i] = is_larger ? value : largest[i];
    places[i] = is_larger ? place : places[i];
  }
}

constexpr void put_max_place_loops(LoopSet& set) {
  set.max_place = {max_place_loop<true>, max_place_loop<false>};
}

}  // namespace
}  // namespace eddy::cpu
