// Places: where the elements of an output read in each plane of an image, found once for all
// channels; sample_plane: what lies there.
//
// Determinism: a sample depends on its own place only. Errors: none. Threads: pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/cpu/sample/sample.h"

namespace eddy::cpu {

// Up to four elements (-1: nowhere, because it lies outside or the weight is none: an infinity
// there counts for nothing), and their weights.
struct Place {
  std::array<float, 4> weight{};
  std::array<int64_t, 4> offset{-1, -1, -1, -1};
};

// Some places side by side. Most are between four elements, all with a weight, or nowhere, as
// SampleLoops finds them; the others stand in a list.
struct Places {
  Place* others;
  int64_t* index;  // of the others
  float *right, *down;
  int32_t* first;
  int64_t num_others = 0;

  static constexpr size_t kBytesEach =
      sizeof(Place) + sizeof(int64_t) + 2 * sizeof(float) + sizeof(int32_t);
  // In `memory` of count * kBytesEach.
  Places(void* memory, int64_t count)
      : others(static_cast<Place*>(memory)),
        index(reinterpret_cast<int64_t*>(others + count)),
        right(reinterpret_cast<float*>(index + count)),
        down(right + count),
        first(reinterpret_cast<int32_t*>(down + count)) {}

  // Whether the loops can find places in such a plane; where not, all are elsewhere.
  static bool may_be_between(int64_t height, int64_t width) {
    return height > 1 && width > 1 && height * width <= INT32_MAX;
  }
  // Lists those of `count` places that are elsewhere: place_of(i) says where.
  template <typename PlaceOf>
  void list_others(int64_t count, PlaceOf place_of) {
    num_others = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (first[i] != kElsewhere) continue;
      index[num_others] = i;
      others[num_others++] = place_of(i);
    }
  }
};

// The best loops for this processor.
const SampleLoops& sample_loops();

// out[i]: what lies at place i of `count` in a plane of rows of `width`, which is not empty.
void sample_plane(const float* plane, int64_t width, const Places& places, int64_t count,
                  float* out);

}  // namespace eddy::cpu
