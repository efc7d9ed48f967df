// The loops of regions, compiled once for each instruction set by the files that include this.
#pragma once

#include "ops/cpu/sample/region.h"

namespace eddy::cpu {
namespace {

// line[c] (or += ) the weighted sum of kRows rows.
template <int kRows, bool kStarts>
[[gnu::always_inline]] inline void add_rows(const RegionArgs& t, int64_t tap) {
  const float* from[kRows];
  float weight[kRows];
  for (int r = 0; r < kRows; ++r) {
    from[r] = t.plane + t.rows.place[tap + r] * t.width + t.first_column;
    weight[r] = t.rows.high[tap + r];
  }
  float* __restrict line = t.line;
  for (int64_t c = 0; c < t.num_columns; ++c) {
    float sum = weight[0] * from[0][c];
    for (int r = 1; r < kRows; ++r) sum += weight[r] * from[r][c];
    line[c] = kStarts ? sum : line[c] + sum;
  }
}

template <bool kStarts>
[[gnu::always_inline]] inline void add_up_to_four(const RegionArgs& t, int64_t tap, int64_t rows) {
  if (rows >= 4) return add_rows<4, kStarts>(t, tap);
  if (rows == 3) return add_rows<3, kStarts>(t, tap);
  if (rows == 2) return add_rows<2, kStarts>(t, tap);
  add_rows<1, kStarts>(t, tap);
}

[[gnu::always_inline]] inline float weighted_sum(const float* values, const float* weights,
                                                 int64_t count) {
  constexpr int kLanes = 16;
  float sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) sums[k] += weights[i + k] * values[i + k];
  }
  float sum = 0;
  for (; i < count; ++i) sum += weights[i] * values[i];
  if (count < kLanes) return sum;
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int k = 0; k < half; ++k) sums[k] += sums[k + half];
  }
  return sums[0] + sum;
}

void mean_of_bins(const RegionArgs& t) {
  float* out = t.out;
  for (int64_t i = 0; i < t.rows.bins; ++i, out += t.columns.bins) {
    const int64_t begin = t.rows.begin[i], end = t.rows.begin[i + 1];
    if (begin == end) {
      for (int64_t j = 0; j < t.columns.bins; ++j) out[j] = 0;
      continue;
    }
    add_up_to_four<true>(t, begin, end - begin);
    for (int64_t tap = begin + 4; tap < end; tap += 4) add_up_to_four<false>(t, tap, end - tap);
    for (int64_t j = 0; j < t.columns.bins; ++j) {
      const int64_t first = t.columns.begin[j], count = t.columns.begin[j + 1] - first;
      const int64_t* const place = t.columns.place + first;
      const float* const weight = t.columns.high + first;
      float sum = 0;
      if (count > 0 && t.columns.is_run[j]) {
        sum = weighted_sum(t.line + place[0], weight, count);
      } else {
        for (int64_t k = 0; k < count; ++k) sum += weight[k] * t.line[place[k]];
      }
      out[j] = sum * t.factor;
    }
  }
}

[[gnu::always_inline]] inline float larger(float a, float b) {
  return ((a > b) | (a != a)) ? a : b;
}

// The largest of a line's taps and of `most`. A NaN is found beside the maxima, which then are one
// instruction each; of values of either sign no branch would be foreseen.
[[gnu::always_inline]] inline float most_of_taps(const RegionTaps& taps, int64_t bin,
                                                 const float* line, float most) {
  bool has_nan = false;
  for (int64_t k = taps.begin[bin]; k < taps.begin[bin + 1]; ++k) {
    const float value = line[taps.place[k]];
    const float high = value * taps.high[k], low = value * taps.low[k];
    const float part = high > low ? high : low;
    has_nan |= part != part;
    most = part > most ? part : most;
  }
  return has_nan ? __builtin_nanf("") : most;
}

void most_of_bins(const RegionArgs& t) {
  constexpr float kLeast = -__builtin_inff();
  float* __restrict line = t.line;
  float* out = t.out;
  for (int64_t i = 0; i < t.rows.bins; ++i, out += t.columns.bins) {
    const bool has_rows = t.rows.begin[i] != t.rows.begin[i + 1];
    for (int64_t c = 0; c < t.num_columns; ++c) line[c] = kLeast;
    for (int64_t tap = t.rows.begin[i]; tap < t.rows.begin[i + 1]; ++tap) {
      const float* from = t.plane + t.rows.place[tap] * t.width + t.first_column;
      const float low = t.rows.low[tap], high = t.rows.high[tap];
      for (int64_t c = 0; c < t.num_columns; ++c) {
        const float part = from[c] * (from[c] > 0 ? high : low);
        line[c] = larger(line[c], part);
      }
    }
    for (int64_t j = 0; j < t.columns.bins; ++j) {
      const float start = t.rows.has_none[i] || t.columns.has_none[j] ? 0 : kLeast;
      out[j] = has_rows ? most_of_taps(t.columns, j, line, start) : start;
    }
  }
}

}  // namespace
}  // namespace eddy::cpu
