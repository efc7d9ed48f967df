// The bodies of kernels that move elements by indices: what one thread does, for the device and
// for tests on the host.
//
// Elements are words of their size: what a type means does not matter here. Concat, Split and
// Gather move the widest words (up to 16 bytes) that pointers and row lengths allow.
//
// An index out of range is reported to params.fault and has no element: gathers then write zeros,
// scatters skip the update. Scatters walk the updates of one place in order, one thread a line or
// slice, so that of equal indices the last wins and sums have one order: no atomics.
#pragma once

#include <cstring>

#include "ops/cuda/device/fault_inl.h"
#include "ops/cuda/device/params.h"
#include "ops/cuda/device/scalar_ops.h"

namespace eddy::cuda {

struct alignas(16) Word16 {
  uint64_t low, high;
};

// Index i counted from the front, or -1 after reporting it.
EDDY_HD int64_t read_index(const void* indices, int32_t is_wide, uint64_t i, int64_t size,
                           int32_t axis, DeviceFault* fault) {
  const int64_t index = is_wide != 0 ? static_cast<const int64_t*>(indices)[i]
                                     : static_cast<const int32_t*>(indices)[i];
  if (index >= 0 && index < size) return index;
  if (index < 0 && index >= -size) return index + size;
  report_fault(fault, DeviceFault::kIndex, axis, index, size);
  return -1;
}

// The part of a row's word r, and where it begins.
EDDY_HD int find_part(const JoinParams& p, uint64_t r, uint64_t& begin) {
  int part = 0;
  begin = 0;
  while (r >= p.ends[part]) begin = p.ends[part++];
  return part;
}

template <typename Word, bool kJoins>
EDDY_HD void run_rows(const JoinParams& p, uint64_t first, uint64_t step) {
  const uint64_t width = p.ends[p.num_parts - 1];
  Word* const whole = static_cast<Word*>(p.whole);
  for (uint64_t item = first; item < p.outer * width; item += step) {
    const uint64_t o = item / width, r = item - o * width;
    uint64_t begin;
    const int part = find_part(p, r, begin);
    Word& there = static_cast<Word*>(p.parts[part])[o * (p.ends[part] - begin) + r - begin];
    Word& here = whole[o * p.row + p.first + r];
    if constexpr (kJoins) {
      here = there;
    } else {
      there = here;
    }
  }
}
template <typename Word>
EDDY_HD void run_concat(const JoinParams& p, uint64_t first, uint64_t step) {
  run_rows<Word, true>(p, first, step);
}
template <typename Word>
EDDY_HD void run_split(const JoinParams& p, uint64_t first, uint64_t step) {
  run_rows<Word, false>(p, first, step);
}

template <typename Word>
EDDY_HD void run_gather(const GatherParams& p, uint64_t first, uint64_t step) {
  const Word* const data = static_cast<const Word*>(p.data);
  for (uint64_t item = first; item < p.count; item += step) {
    const uint64_t row = item / p.inner, i = item - row * p.inner;
    const uint64_t o = row / p.num_indices, j = row - o * p.num_indices;
    const int64_t index = read_index(p.indices, p.has_wide_indices, j, p.size, p.axis, p.fault);
    Word word{};
    if (index >= 0) {
      word = data[(o * static_cast<uint64_t>(p.size) + static_cast<uint64_t>(index)) * p.inner + i];
    }
    static_cast<Word*>(p.out)[item] = word;
  }
}

template <typename Word>
EDDY_HD void run_gather_elements(const ElementsParams& p, uint64_t first, uint64_t step) {
  for (uint64_t item = first; item < p.count; item += step) {
    const int64_t index = read_index(p.indices, p.has_wide_indices, item, p.size, p.axis, p.fault);
    int64_t place = index * p.strides[p.axis];
    uint64_t rest = item;
    for (int d = p.rank - 1; d >= 0; --d) {
      const uint64_t quotient = rest / p.dims[d];
      if (d != p.axis) place += static_cast<int64_t>(rest - quotient * p.dims[d]) * p.strides[d];
      rest = quotient;
    }
    static_cast<Word*>(p.out)[item] = index >= 0 ? static_cast<const Word*>(p.data)[place] : Word{};
  }
}

// The place in the data that tuple t names, or -1.
EDDY_HD int64_t tuple_place(const TuplesParams& p, uint64_t t) {
  int64_t place = 0;
  for (int i = 0; i < p.length; ++i) {
    const uint64_t at = t * static_cast<uint64_t>(p.length) + static_cast<uint64_t>(i);
    const int64_t index = read_index(p.indices, 1, at, p.sizes[i], p.first_axis + i, p.fault);
    if (index < 0) return -1;
    place += index * p.strides[i];
  }
  return place;
}

template <typename Word>
EDDY_HD void run_gather_tuples(const TuplesParams& p, uint64_t first, uint64_t step) {
  for (uint64_t item = first; item < p.num_tuples * p.slice; item += step) {
    const uint64_t t = item / p.slice;
    const int64_t place = tuple_place(p, t);
    Word word{};
    if (place >= 0) {
      const auto batch = static_cast<int64_t>(t / p.tuples_per_batch) * p.batch_stride;
      word = static_cast<const Word*>(
          p.data)[batch + place + static_cast<int64_t>(item - t * p.slice)];
    }
    static_cast<Word*>(p.out)[item] = word;
  }
}

// What a scatter does where it meets an element, as ops/reference/parts/combine.h numbers it.
struct ScatterReduce {
  template <typename T>
  EDDY_HD static T apply(int32_t reduction, T old, T update) {
    const auto a = load(old);
    const auto b = load(update);
    switch (reduction) {
      case 1:
        return store<T>(Add::apply(a, b));
      case 2:
        return store<T>(Mul::apply(a, b));
      case 3:
        return a >= b || a != a ? old : update;
      default:
        return a <= b || a != a ? old : update;
    }
  }
};

template <typename T, bool kReduces>
EDDY_HD void scatter_to(T& place, T update, int32_t reduction) {
  if constexpr (kReduces) {
    place = ScatterReduce::apply(reduction, place, update);
  } else {
    place = update;
  }
}

// A thread takes a line along the axis: its updates go to that line only.
template <typename T, bool kReduces>
EDDY_HD void run_scatter_elements(const ElementsParams& p, uint64_t first, uint64_t step) {
  uint64_t axis_step = 1;  // of the indices
  for (int d = p.rank - 1; d > p.axis; --d) axis_step *= p.dims[d];
  for (uint64_t line = first; line < p.count; line += step) {
    int64_t place = 0;
    uint64_t item = 0, rest = line, below = 1;
    for (int d = p.rank - 1; d >= 0; --d) {
      if (d != p.axis) {
        const uint64_t at = rest % p.dims[d];
        rest /= p.dims[d];
        place += static_cast<int64_t>(at) * p.strides[d];
        item += at * below;
      }
      below *= p.dims[d];
    }
    for (uint64_t j = 0; j < p.dims[p.axis]; ++j, item += axis_step) {
      const int64_t index =
          read_index(p.indices, p.has_wide_indices, item, p.size, p.axis, p.fault);
      if (index < 0) continue;
      scatter_to<T, kReduces>(static_cast<T*>(p.out)[place + index * p.strides[p.axis]],
                              static_cast<const T*>(p.updates)[item], p.reduction);
    }
  }
}

// A thread takes one element of the slices and walks the tuples in order.
template <typename T, bool kReduces>
EDDY_HD void run_scatter_tuples(const TuplesParams& p, uint64_t first, uint64_t step) {
  for (uint64_t i = first; i < p.slice; i += step) {
    for (uint64_t t = 0; t < p.num_tuples; ++t) {
      const int64_t place = tuple_place(p, t);
      if (place < 0) continue;
      scatter_to<T, kReduces>(static_cast<T*>(p.out)[place + static_cast<int64_t>(i)],
                              static_cast<const T*>(p.updates)[t * p.slice + i], p.reduction);
    }
  }
}

template <typename T>
EDDY_HD void run_scatter_elements_set(const ElementsParams& p, uint64_t first, uint64_t step) {
  run_scatter_elements<T, false>(p, first, step);
}
template <typename T>
EDDY_HD void run_scatter_elements_reduce(const ElementsParams& p, uint64_t first, uint64_t step) {
  run_scatter_elements<T, true>(p, first, step);
}
template <typename T>
EDDY_HD void run_scatter_tuples_set(const TuplesParams& p, uint64_t first, uint64_t step) {
  run_scatter_tuples<T, false>(p, first, step);
}
template <typename T>
EDDY_HD void run_scatter_tuples_reduce(const TuplesParams& p, uint64_t first, uint64_t step) {
  run_scatter_tuples<T, true>(p, first, step);
}

// PadMode's numbers.
inline constexpr int32_t kPadConstant = 0, kPadReflect = 1, kPadEdge = 2, kPadWrap = 3;

// The element of an axis of `size` that a position shows; -1: none.
EDDY_HD int64_t padded_position(int64_t position, int64_t size, int32_t mode) {
  if (position >= 0 && position < size) return position;
  if (mode == kPadConstant || size == 0) return -1;
  if (mode == kPadEdge) return position < 0 ? 0 : size - 1;
  if (mode == kPadWrap) return ((position % size) + size) % size;
  if (size == 1) return 0;
  const int64_t period = 2 * (size - 1);
  const int64_t phase = ((position % period) + period) % period;
  return phase < size ? phase : period - phase;
}

template <typename Word>
EDDY_HD void run_pad(const PadParams& p, uint64_t first, uint64_t step) {
  const Word fill =
      p.fill != nullptr ? *static_cast<const Word*>(p.fill) : static_cast<Word>(p.fill_bits);
  for (uint64_t item = first; item < p.count; item += step) {
    int64_t from = 0;
    uint64_t rest = item;
    for (int d = p.rank - 1; d >= 0 && from >= 0; --d) {
      const uint64_t quotient = rest / p.dims[d];
      const auto at = static_cast<int64_t>(rest - quotient * p.dims[d]);
      rest = quotient;
      const int64_t place = padded_position(at - p.before[d], p.sizes[d], p.mode);
      from = place < 0 ? -1 : from + place * p.strides[d];
    }
    static_cast<Word*>(p.out)[item] = from < 0 ? fill : static_cast<const Word*>(p.in)[from];
  }
}

template <typename Word>
EDDY_HD void run_trilu(const PositionParams& p, uint64_t first, uint64_t step) {
  int64_t k = p.other != nullptr ? *static_cast<const int64_t*>(p.other) : 0;
  k = k < -p.rows ? -p.rows : k > p.columns ? p.columns : k;
  for (uint64_t item = first; item < p.count; item += step) {
    const auto at = static_cast<int64_t>(item);
    const int64_t column = at % p.columns, row = at / p.columns % p.rows;
    const bool is_kept = p.is_upper != 0 ? column - row >= k : column - row <= k;
    static_cast<Word*>(p.out)[item] = is_kept ? static_cast<const Word*>(p.in)[item] : Word{};
  }
}

template <typename Word, typename Index>
EDDY_HD void run_one_hot(const PositionParams& p, uint64_t first, uint64_t step) {
  const Word* const values = static_cast<const Word*>(p.other);
  for (uint64_t item = first; item < p.count; item += step) {
    const auto at = static_cast<int64_t>(item);
    const int64_t place = at / p.inner % p.depth;
    const int64_t from = at / (p.inner * p.depth) * p.inner + at % p.inner;
    const Index given = static_cast<const Index*>(p.in)[from];
    const auto index = convert<int64_t>(given);
    const bool is_number = load(given) == load(given);
    const bool is_in_range = is_number && index >= -p.depth && index < p.depth;
    const bool is_on = is_in_range && place == (index < 0 ? index + p.depth : index);
    static_cast<Word*>(p.out)[item] = values[is_on ? 1 : 0];
  }
}

template <typename Word>
EDDY_HD void run_fill(const PositionParams& p, uint64_t first, uint64_t step) {
  for (uint64_t item = first; item < p.count; item += step) {
    static_cast<Word*>(p.out)[item] = static_cast<Word>(p.start);
  }
}

template <typename T>
EDDY_HD T from_bits(uint64_t bits) {
  T value;
  memcpy(&value, &bits, sizeof(T));
  return value;
}

// start + i * delta; integers wrap.
template <typename T>
EDDY_HD void run_range(const PositionParams& p, uint64_t first, uint64_t step) {
  const T start = from_bits<T>(p.start), delta = from_bits<T>(p.delta);
  for (uint64_t item = first; item < p.count; item += step) {
    if constexpr (std::is_integral_v<T>) {
      static_cast<T*>(p.out)[item] = static_cast<T>(word(start) + item * word(delta));
    } else {
      static_cast<T*>(p.out)[item] = start + static_cast<T>(item) * delta;
    }
  }
}

}  // namespace eddy::cuda
