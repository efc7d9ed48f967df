// The search for places, compiled once for each instruction set by the files that include this, and
// samples by four floats at a time.
#pragma once

#include <smmintrin.h>

#include "ops/cpu/sample/sample.h"

namespace eddy::cpu {
namespace {

// Some places at a time, so that each step is a loop of its own over arrays.
inline constexpr int kPlaces = 32;

struct Between {
  double before[kPlaces], beyond[kPlaces];
};

// Of places in elements. A NaN is nowhere.
[[gnu::always_inline]] inline void split(const double* place, double size, Between& parts) {
  for (int i = 0; i < kPlaces; ++i) {
    double x = place[i] > -2 ? place[i] : -2;
    x = x < size ? x : size;
    parts.before[i] = __builtin_floor(x);
    parts.beyond[i] = x - parts.before[i];
  }
}

[[gnu::always_inline]] inline void find_on_axis(const double* coordinate, const SampleAxis& axis,
                                                Between& parts) {
  const double highest = axis.size - 1;
  double place[kPlaces];
  for (int i = 0; i < kPlaces; ++i) {
    double x = ((coordinate[i] + 1) * axis.factor - axis.minus) / 2;
    if (axis.clamps) {
      const bool is_somewhere = x == x;
      x = x > 0 ? x : 0;
      x = x < highest ? x : highest;
      x = is_somewhere ? x : -2;
    }
    place[i] = x;
  }
  split(place, axis.size, parts);
}

// What the loops write for each place.
struct Found {
  int32_t* first;
  float* right;
  float* down;
};

[[gnu::always_inline]] inline void put_places(const Between& along, const Between& across,
                                              double height, double width, const Found& to) {
  for (int i = 0; i < kPlaces; ++i) {
    const double a = along.before[i], b = across.before[i];
    const auto right = static_cast<float>(across.beyond[i]);
    const auto down = static_cast<float>(along.beyond[i]);
    to.right[i] = right;
    to.down[i] = down;
    // A weight that rounds to none would be one of none times infinity.
    const bool has_weights = (right > 0) & (right < 1) & (down > 0) & (down < 1);
    const bool is_out = (a < -1) | (a >= height) | (b < -1) | (b >= width);
    const bool is_whole = (a >= 0) & (a < height - 1) & (b >= 0) & (b < width - 1) & has_weights;
    const double other = is_out ? double{kNowhere} : double{kElsewhere};
    to.first[i] = static_cast<int32_t>(is_whole ? a * width + b : other);
  }
}

[[gnu::always_inline]] inline void find_some(const float* grid, const FindArgs& t,
                                             const Found& to) {
  double x[kPlaces], y[kPlaces];
  for (int i = 0; i < kPlaces; ++i) {
    x[i] = static_cast<double>(grid[2 * i]);
    y[i] = static_cast<double>(grid[2 * i + 1]);
  }
  Between across, along;
  find_on_axis(x, t.x, across);
  find_on_axis(y, t.y, along);
  put_places(along, across, t.y.size, t.x.size, to);
}

// Places of a whole group, of which some are wanted.
struct Spare {
  float right[kPlaces], down[kPlaces];
  int32_t first[kPlaces];

  Found found() { return {first, right, down}; }
  void copy(int64_t count, const Found& to) const {
    for (int64_t k = 0; k < count; ++k) {
      to.first[k] = first[k];
      to.right[k] = right[k];
      to.down[k] = down[k];
    }
  }
};

void find(const FindArgs& t) {
  int64_t i = 0;
  for (; i + kPlaces <= t.count; i += kPlaces) {
    find_some(t.grid + 2 * i, t, {t.first + i, t.right + i, t.down + i});
  }
  if (i == t.count) return;
  float grid[2 * kPlaces] = {};
  const int64_t rest = t.count - i;
  for (int64_t k = 0; k < 2 * rest; ++k) grid[k] = t.grid[2 * i + k];
  Spare spare;
  find_some(grid, t, spare.found());
  spare.copy(rest, {t.first + i, t.right + i, t.down + i});
}

[[gnu::always_inline]] inline void find_some_moved(const float* down_by, const float* right_by,
                                                   double column, const MovedArgs& t,
                                                   const Found& to) {
  double x[kPlaces], y[kPlaces];
  for (int i = 0; i < kPlaces; ++i) {
    x[i] = column + i * t.step + static_cast<double>(right_by[i]);
    y[i] = t.row + static_cast<double>(down_by[i]);
  }
  const auto height = static_cast<double>(t.height), width = static_cast<double>(t.width);
  Between across, along;
  split(x, width, across);
  split(y, height, along);
  put_places(along, across, height, width, to);
}

void find_moved(const MovedArgs& t) {
  int64_t i = 0;
  for (; i + kPlaces <= t.count; i += kPlaces) {
    find_some_moved(t.down_by + i, t.right_by + i, t.column + static_cast<double>(i) * t.step, t,
                    {t.first + i, t.right + i, t.down + i});
  }
  if (i == t.count) return;
  float down_by[kPlaces] = {}, right_by[kPlaces] = {};
  const int64_t rest = t.count - i;
  for (int64_t k = 0; k < rest; ++k) {
    down_by[k] = t.down_by[i + k];
    right_by[k] = t.right_by[i + k];
  }
  Spare spare;
  find_some_moved(down_by, right_by, t.column + static_cast<double>(i) * t.step, t, spare.found());
  spare.copy(rest, {t.first + i, t.right + i, t.down + i});
}

// Upper and lower two of a place; of one that is nowhere what lies at the plane's beginning.
[[gnu::always_inline]] inline __m128 neighbours(const float* plane, int64_t width, int32_t first) {
  const float* at = plane + (first & ~(first >> 31));
  const __m128 upper = _mm_castsi128_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)));
  return _mm_loadh_pi(upper, reinterpret_cast<const __m64*>(at + width));
}

[[gnu::always_inline]] inline void sample_four(const SampleArgs& t, const int32_t* first,
                                               const float* right, const float* down, float* out) {
  const __m128 one = _mm_set1_ps(1), x = _mm_loadu_ps(right), y = _mm_loadu_ps(down);
  const __m128 left = _mm_sub_ps(one, x), up = _mm_sub_ps(one, y);
  __m128 a = neighbours(t.plane, t.width, first[0]), b = neighbours(t.plane, t.width, first[1]);
  __m128 c = neighbours(t.plane, t.width, first[2]), d = neighbours(t.plane, t.width, first[3]);
  _MM_TRANSPOSE4_PS(a, b, c, d);
  const __m128 upper =
      _mm_add_ps(_mm_mul_ps(a, _mm_mul_ps(up, left)), _mm_mul_ps(b, _mm_mul_ps(up, x)));
  const __m128 lower =
      _mm_add_ps(_mm_mul_ps(c, _mm_mul_ps(y, left)), _mm_mul_ps(d, _mm_mul_ps(y, x)));
  const __m128i nowhere =
      _mm_srai_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(first)), 31);
  _mm_storeu_ps(out, _mm_andnot_ps(_mm_castsi128_ps(nowhere), _mm_add_ps(upper, lower)));
}

[[maybe_unused]] void sample_by_four(const SampleArgs& t) {
  int64_t i = 0;
  for (; i + 4 <= t.count; i += 4) {
    sample_four(t, t.first + i, t.right + i, t.down + i, t.out + i);
  }
  if (i == t.count) return;
  int32_t first[4] = {kNowhere, kNowhere, kNowhere, kNowhere};
  float right[4] = {}, down[4] = {}, out[4];
  for (int64_t k = 0; i + k < t.count; ++k) {
    first[k] = t.first[i + k];
    right[k] = t.right[i + k];
    down[k] = t.down[i + k];
  }
  sample_four(t, first, right, down, out);
  for (int64_t k = 0; i + k < t.count; ++k) t.out[i + k] = out[k];
}

}  // namespace
}  // namespace eddy::cpu
