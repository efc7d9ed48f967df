// The bodies of elementwise kernels: what one thread does, for the device and for tests on the
// host.
//
// A thread handles items first, first + step, … (a grid-stride loop, so a grid sized to the device
// serves any count). Where every operand is contiguous or one repeated element, an item is a pack
// of 16 bytes of the widest operand; else it is one element, found by dividing through the axes.
#pragma once

#include "ops/cuda/device/params.h"
#include "ops/cuda/device/scalar_ops.h"

namespace eddy::cuda {

template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T values[kCount];
};

// Offsets of output element `index` in each of kInputs inputs.
template <typename Params, int kInputs>
EDDY_HD void locate(const Params& p, uint64_t index, int64_t (&offsets)[kInputs]) {
  for (int i = 0; i < kInputs; ++i) offsets[i] = 0;
  for (int axis = p.rank - 1; axis > 0; --axis) {
    const uint64_t quotient = index / p.dims[axis];
    const auto at = static_cast<int64_t>(index - quotient * p.dims[axis]);
    for (int i = 0; i < kInputs; ++i) offsets[i] += at * p.strides[i][axis];
    index = quotient;
  }
  for (int i = 0; i < kInputs; ++i) offsets[i] += static_cast<int64_t>(index) * p.strides[i][0];
}

template <typename T, typename Params>
EDDY_HD const T* input(const Params& p, int i) {
  return static_cast<const T*>(p.in[i]);
}

// kCount elements from `first` on of an input that is contiguous, or one element repeated.
template <typename T, int kCount, typename Params>
EDDY_HD Pack<T, kCount> load_pack(const Params& p, int i, uint64_t first) {
  if (p.strides[i][0] != 0) {
    return *reinterpret_cast<const Pack<T, kCount>*>(input<T>(p, i) + first);
  }
  Pack<T, kCount> pack;
  for (int k = 0; k < kCount; ++k) pack.values[k] = input<T>(p, i)[0];
  return pack;
}

constexpr int widest(int size) { return size; }
template <typename... Sizes>
constexpr int widest(int size, Sizes... sizes) {
  const int other = widest(sizes...);
  return size > other ? size : other;
}
// Elements of a pack: 16 bytes of the widest type.
template <typename... T>
constexpr int kPackCount = 16 / widest(static_cast<int>(sizeof(T))...);

// out[i] = apply(in0[i], in1[i]).
template <typename Op, typename Out, typename In>
EDDY_HD void run_binary(const ElementwiseParams& p, uint64_t first, uint64_t step) {
  constexpr int kCount = kPackCount<Out, In>;
  Out* const out = static_cast<Out*>(p.out);
  if (p.is_aligned != 0) {
    const uint64_t num_packs = p.count / kCount;
    for (uint64_t item = first; item < num_packs; item += step) {
      const auto x = load_pack<In, kCount>(p, 0, item * kCount);
      const auto y = load_pack<In, kCount>(p, 1, item * kCount);
      Pack<Out, kCount> result;
      for (int k = 0; k < kCount; ++k) {
        result.values[k] = store<Out>(Op::apply(load(x.values[k]), load(y.values[k])));
      }
      reinterpret_cast<Pack<Out, kCount>*>(out)[item] = result;
    }
    first += num_packs * kCount;  // the rest, one element an item
  }
  for (uint64_t item = first; item < p.count; item += step) {
    int64_t at[2];
    locate(p, item, at);
    out[item] = store<Out>(Op::apply(load(input<In>(p, 0)[at[0]]), load(input<In>(p, 1)[at[1]])));
  }
}

// out[i] = apply(in0[i]).
template <typename Op, typename Out, typename In>
EDDY_HD void run_unary(const ElementwiseParams& p, uint64_t first, uint64_t step) {
  constexpr int kCount = kPackCount<Out, In>;
  Out* const out = static_cast<Out*>(p.out);
  if (p.is_aligned != 0) {
    const uint64_t num_packs = p.count / kCount;
    for (uint64_t item = first; item < num_packs; item += step) {
      const auto x = load_pack<In, kCount>(p, 0, item * kCount);
      Pack<Out, kCount> result;
      for (int k = 0; k < kCount; ++k) {
        result.values[k] = store<Out>(Op::apply(load(x.values[k]), p.a, p.b));
      }
      reinterpret_cast<Pack<Out, kCount>*>(out)[item] = result;
    }
    first += num_packs * kCount;
  }
  for (uint64_t item = first; item < p.count; item += step) {
    int64_t at[1];
    locate(p, item, at);
    out[item] = store<Out>(Op::apply(load(input<In>(p, 0)[at[0]]), p.a, p.b));
  }
}

// out[i] = apply(in0[i], in1[i], in2[i]).
template <typename Op, typename T>
EDDY_HD void run_ternary(const ElementwiseParams& p, uint64_t first, uint64_t step) {
  constexpr int kCount = kPackCount<T>;
  T* const out = static_cast<T*>(p.out);
  if (p.is_aligned != 0) {
    const uint64_t num_packs = p.count / kCount;
    for (uint64_t item = first; item < num_packs; item += step) {
      auto x = load_pack<T, kCount>(p, 0, item * kCount);
      const auto y = load_pack<T, kCount>(p, 1, item * kCount);
      const auto z = load_pack<T, kCount>(p, 2, item * kCount);
      for (int k = 0; k < kCount; ++k) {
        x.values[k] = store<T>(Op::apply(load(x.values[k]), load(y.values[k]), load(z.values[k])));
      }
      reinterpret_cast<Pack<T, kCount>*>(out)[item] = x;
    }
    first += num_packs * kCount;
  }
  for (uint64_t item = first; item < p.count; item += step) {
    int64_t at[3];
    locate(p, item, at);
    out[item] = store<T>(Op::apply(load(input<T>(p, 0)[at[0]]), load(input<T>(p, 1)[at[1]]),
                                   load(input<T>(p, 2)[at[2]])));
  }
}

// out[i] = in0[i] as another type; both contiguous.
template <typename To, typename From>
EDDY_HD void run_cast(const ElementwiseParams& p, uint64_t first, uint64_t step) {
  constexpr int kCount = kPackCount<To, From>;
  To* const out = static_cast<To*>(p.out);
  if (p.is_aligned != 0) {
    const uint64_t num_packs = p.count / kCount;
    for (uint64_t item = first; item < num_packs; item += step) {
      const auto pack = load_pack<From, kCount>(p, 0, item * kCount);
      Pack<To, kCount> result;
      for (int k = 0; k < kCount; ++k) result.values[k] = convert<To>(pack.values[k]);
      reinterpret_cast<Pack<To, kCount>*>(out)[item] = result;
    }
    first += num_packs * kCount;
  }
  for (uint64_t item = first; item < p.count; item += step) {
    out[item] = convert<To>(input<From>(p, 0)[item]);
  }
}

// out[i] = in0[i] ? in1[i] : in2[i], for elements of any type of this size.
template <typename Word>
EDDY_HD void run_where(const ElementwiseParams& p, uint64_t first, uint64_t step) {
  for (uint64_t item = first; item < p.count; item += step) {
    int64_t at[3];
    locate(p, item, at);
    static_cast<Word*>(p.out)[item] =
        input<bool>(p, 0)[at[0]] ? input<Word>(p, 1)[at[1]] : input<Word>(p, 2)[at[2]];
  }
}

// out[i] = in0[where it comes from]: Transpose, Expand, Slice, one input of Concat.
template <typename Word>
EDDY_HD void run_copy(const ElementwiseParams& p, uint64_t first, uint64_t step) {
  for (uint64_t item = first; item < p.count; item += step) {
    int64_t at[1];
    locate(p, item, at);
    static_cast<Word*>(p.out)[item] = input<Word>(p, 0)[at[0]];
  }
}

}  // namespace eddy::cuda
