// What convolutions and pools of blocked images share: the live taps of a window, the positions
// whose windows lie inside the input, parts of a range.
#pragma once

#include <algorithm>
#include <cstdint>

#include "graph/base/check.h"
#include "ops/schema/rules/window.h"

namespace eddy::cpu {

constexpr int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Span {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Span&) const = default;
};

// Part `index` of `parts` of about equal size; part `parts - 1` ends with the whole.
inline Span part_of(int64_t total, int64_t parts, int64_t index) {
  EDDY_DCHECK(parts > 0 && index >= 0 && index < parts) << "part " << index << " of " << parts;
  return {total * index / parts, total * (index + 1) / parts};
}

// How many parts a call of so much work falls into: at most `most`; of two and more, as many that
// two threads have the same, and so have four.
inline int64_t count_parts(int64_t work, int64_t part_work, int64_t most) {
  const int64_t parts = std::clamp<int64_t>(work / part_work, 1, most);
  return parts == 1 ? 1 : std::min(div_up(parts, 4) * 4, most);
}

// Into how many of at most `most` bands of positions `wanted` parts are cut: an even number.
inline int64_t count_bands(int64_t most, int64_t wanted) {
  const int64_t bands = std::clamp<int64_t>(most, 1, wanted);
  return bands > 2 ? bands - bands % 2 : bands;
}

// Positions of an image that are worth a part: fewer are left together, and channels are parted.
// All that works on blocked images parts them alike, so that a thread finds in its own cache what
// it has written.
constexpr int64_t kMinPositions = 48;

// The taps of a window at `out` that lie inside the input.
inline Span live_taps(const WindowAxis& axis, int64_t input, int64_t out) {
  const int64_t start = out * axis.stride - axis.pad_begin;
  Span taps;
  taps.begin = start >= 0 ? 0 : std::min(div_up(-start, axis.dilation), axis.kernel);
  taps.end = start >= input ? 0 : std::min(div_up(input - start, axis.dilation), axis.kernel);
  taps.end = std::max(taps.end, taps.begin);
  return taps;
}

// What the windows of an axis read: `left` elements of padding, `count` of the input, padding
// again.
struct ReadSpan {
  int64_t size, left, count;

  ReadSpan(const WindowAxis& axis, int64_t input, int64_t output)
      : size((output - 1) * axis.stride + axis.extent()),
        left(std::min(axis.pad_begin, size)),
        count(std::clamp<int64_t>(size - left, 0, input)) {}
  int64_t right() const { return size - left - count; }
};

// Outputs whose windows lie inside the input.
inline Span inner_outputs(const WindowAxis& axis, int64_t input, int64_t output) {
  Span inner;
  inner.begin = std::min(div_up(axis.pad_begin, axis.stride), output);
  const int64_t room = input + axis.pad_begin - axis.extent();
  inner.end = room < 0 ? 0 : std::min(room / axis.stride + 1, output);
  inner.end = std::max(inner.end, inner.begin);
  return inner;
}

}  // namespace eddy::cpu
