// Largest elements of windows and where they lie; included by one source file for each
// instruction set. Vectors of the compiler, so that what a window holds stays in registers over all
// its taps, and rows of any length are whole vectors: their ends are computed and overwritten.
#pragma once

#include <cstring>
#include <type_traits>

#include "ops/cpu/loops/elementwise_inl.h"

namespace eddy::cpu {
namespace {

struct MaxPlaceVectors {
  static constexpr int kWidth = 16;
  typedef float Floats __attribute__((vector_size(kWidth * sizeof(float))));
  typedef int32_t Ints __attribute__((vector_size(kWidth * sizeof(int32_t))));
  typedef int64_t Longs __attribute__((vector_size(kWidth * sizeof(int64_t))));
};

// from[0], from[stride], ...; only the first `count` matter, and strides above 2 read no others.
template <int kStride>
[[gnu::always_inline]] inline void load_strided(const float* from, int64_t stride, int64_t count,
                                                MaxPlaceVectors::Floats& v) {
  constexpr int kWidth = MaxPlaceVectors::kWidth;
  if constexpr (kStride == 1) {
    std::memcpy(&v, from, sizeof v);
  } else if constexpr (kStride == 2) {
    MaxPlaceVectors::Floats low, high;
    std::memcpy(&low, from, sizeof low);
    std::memcpy(&high, from + kWidth - 1, sizeof high);  // not beyond the last one
    v = __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29,
                                31);
  } else {
    const int64_t end = count < kWidth ? count : kWidth;
    v = MaxPlaceVectors::Floats{};
    for (int64_t j = 0; j < end; ++j) v[j] = from[j * stride];
  }
}

// The first `count` of a vector's elements, in moves of known size.
template <typename T>
[[gnu::always_inline]] inline void copy_first(const T* from, T* to, int64_t count) {
  int64_t at = 0;
  const auto move = [&]<size_t kCount>(std::integral_constant<size_t, kCount>) {
    if ((count & kCount) == 0) return;
    std::memcpy(to + at, from + at, kCount * sizeof(T));
    at += kCount;
  };
  move(std::integral_constant<size_t, 16>());
  move(std::integral_constant<size_t, 8>());
  move(std::integral_constant<size_t, 4>());
  move(std::integral_constant<size_t, 2>());
  move(std::integral_constant<size_t, 1>());
}

// Where a row of windows begins.
struct MaxPlaceRow {
  const float* x;
  float* y;
  int64_t* places;
  int64_t first_place;
  int64_t room;
};

// The windows from i on.
template <int kStride>
[[gnu::always_inline]] inline void max_place_vector(const MaxPlaceCall& call,
                                                    const MaxPlaceRow& row, int64_t i, float* y,
                                                    int64_t* places) {
  using V = MaxPlaceVectors;
  const float* const x = row.x + i * call.stride;
  V::Floats largest, value;
  load_strided<kStride>(x + call.taps[0], call.stride, call.count - i, largest);
  V::Ints tap = V::Ints{} + static_cast<int32_t>(call.taps[0]);
  for (int64_t t = 1; t < call.num_taps; ++t) {
    load_strided<kStride>(x + call.taps[t], call.stride, call.count - i, value);
    const V::Ints is_larger = (value > largest) | (value != value);
    largest = is_larger ? value : largest;
    tap = is_larger ? V::Ints{} + static_cast<int32_t>(call.taps[t]) : tap;
  }
  V::Longs place = __builtin_convertvector(tap, V::Longs);
  constexpr V::Longs kSteps = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const int64_t stride = kStride > 2 ? call.stride : kStride;
  place += kSteps * stride + (row.first_place + i * stride);
  std::memcpy(y, &largest, sizeof largest);
  std::memcpy(places, &place, sizeof place);
}

inline void max_place_one(const MaxPlaceCall& call, const MaxPlaceRow& row, int64_t i) {
  const float* const x = row.x + i * call.stride;
  int64_t tap = call.taps[0];
  for (int64_t t = 1; t < call.num_taps; ++t) {
    const float value = x[call.taps[t]];
    if (value > x[tap] || value != value) tap = call.taps[t];
  }
  row.y[i] = x[tap];
  row.places[i] = row.first_place + i * call.stride + tap;
}

template <int kStride>
[[gnu::always_inline]] inline void max_place_row(const MaxPlaceCall& call, const MaxPlaceRow& row) {
  constexpr int kWidth = MaxPlaceVectors::kWidth;
  const int64_t reach = kStride > 2 ? 0 : call.taps[call.num_taps - 1] + (kWidth - 1) * kStride;
  for (int64_t i = 0; i < call.count; i += kWidth) {
    const int64_t some = call.count - i < kWidth ? call.count - i : kWidth;
    if (kStride <= 2 && call.x_end - row.x <= i * kStride + reach) {
      for (int64_t j = i; j < i + some; ++j) max_place_one(call, row, j);
    } else if (row.room - i >= kWidth) {
      max_place_vector<kStride>(call, row, i, row.y + i, row.places + i);
    } else {
      float y[kWidth];
      int64_t places[kWidth];
      max_place_vector<kStride>(call, row, i, y, places);
      copy_first(y, row.y + i, some);
      copy_first(places, row.places + i, some);
    }
  }
}

template <int kStride>
void max_place_rows(const MaxPlaceCall& call) {
  for (int64_t j = 0; j < call.rows; ++j) {
    const MaxPlaceRow row = {.x = call.x + j * call.x_row,
                             .y = call.y + j * call.y_row,
                             .places = call.places + j * call.y_row,
                             .first_place = call.first_place + j * call.x_row,
                             .room = call.room - j * call.y_row};
    max_place_row<kStride>(call, row);
  }
}

inline void max_place_loop(const MaxPlaceCall& call) {
  if (call.stride == 1) return max_place_rows<1>(call);
  if (call.stride == 2) return max_place_rows<2>(call);
  max_place_rows<3>(call);  // and more
}

constexpr void put_max_place_loops(LoopSet& set) { set.max_place = max_place_loop; }

}  // namespace
}  // namespace eddy::cpu
