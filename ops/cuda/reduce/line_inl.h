// The bodies of kernels of one thread for each line, channel or element: CumSum,
// BatchNormalization, quantization; for the device and for tests on the host.
#pragma once

#include "ops/cuda/device/block_inl.h"
#include "ops/cuda/reduce/row_inl.h"

namespace eddy::cuda {

// Walks the line in order, so sums have the reference's order.
template <typename T>
EDDY_HD void run_cum_sum(const LineParams& p, uint64_t first, uint64_t step) {
  for (uint64_t line = first; line < p.num_lines; line += step) {
    const uint64_t o = line / p.inner;
    const uint64_t start = o * p.length * p.inner + (line - o * p.inner);
    sum_t<T> sum = 0;
    for (uint64_t j = 0; j < p.length; ++j) {
      const uint64_t at = start + (p.is_reverse != 0 ? p.length - 1 - j : j) * p.inner;
      const sum_t<T> before = sum;
      sum += static_cast<sum_t<T>>(load(static_cast<const T*>(p.in)[at]));
      static_cast<T*>(p.out)[at] = round_sum<T>(p.is_exclusive != 0 ? before : sum);
    }
  }
}

template <typename T>
EDDY_HD double double_at(const void* data, uint64_t i) {
  return static_cast<double>(load(static_cast<const T*>(data)[i]));
}

template <typename T>
EDDY_HD void run_batch_norm(const ChannelParams& p, uint64_t first, uint64_t step) {
  for (uint64_t item = first; item < p.count; item += step) {
    const uint64_t c = item / p.inner % p.channels;
    const double factor =
        double_at<T>(p.scale, c) / std::sqrt(double_at<T>(p.variance, c) + p.epsilon);
    const double y = (double_at<T>(p.in, item) - double_at<T>(p.mean, c)) * factor;
    static_cast<T*>(p.out)[item] = store_double<T>(y + double_at<T>(p.bias, c));
  }
}

// ---- quantization: types of one byte ----

template <typename Q>
inline constexpr float kLowestByte = std::is_same_v<Q, int8_t> ? -128 : 0;
template <typename Q>
inline constexpr float kHighestByte = std::is_same_v<Q, int8_t> ? 127 : 255;

// NaN is quantized as 0 is.
template <typename Q>
EDDY_HD Q quantize_one(float x, float scale, float zero) {
  const float rounded = std::rint(x / scale);
  if (is_nan(rounded)) return static_cast<Q>(zero);
  const float y = rounded + zero;
  return static_cast<Q>(y < kLowestByte<Q>    ? kLowestByte<Q>
                        : y > kHighestByte<Q> ? kHighestByte<Q>
                                              : y);
}

EDDY_HD uint64_t scale_place(const QuantizeParams& p, uint64_t item) {
  const uint64_t i = item % p.inner, j = item / p.inner % p.axis, o = item / p.inner / p.axis;
  return o * static_cast<uint64_t>(p.outer_step) +
         j / static_cast<uint64_t>(p.block_size) * static_cast<uint64_t>(p.block_step) +
         i * static_cast<uint64_t>(p.inner_step);
}

template <typename Q, typename T>
EDDY_HD void run_quantize(const QuantizeParams& p, uint64_t first, uint64_t step) {
  for (uint64_t item = first; item < p.count; item += step) {
    const uint64_t s = scale_place(p, item);
    const float zero = p.zero != nullptr ? static_cast<const Q*>(p.zero)[s] : 0;
    static_cast<Q*>(p.out)[item] =
        quantize_one<Q>(static_cast<float>(load(static_cast<const T*>(p.in)[item])),
                        static_cast<float>(load(static_cast<const T*>(p.scale)[s])), zero);
  }
}

template <typename Q, typename T>
EDDY_HD void run_dequantize(const QuantizeParams& p, uint64_t first, uint64_t step) {
  for (uint64_t item = first; item < p.count; item += step) {
    const uint64_t s = scale_place(p, item);
    const double zero =
        p.zero != nullptr ? static_cast<double>(static_cast<const Q*>(p.zero)[s]) : 0;
    const double steps = static_cast<double>(static_cast<const Q*>(p.in)[item]) - zero;
    static_cast<T*>(p.out)[item] = store_double<T>(steps * double_at<T>(p.scale, s));
  }
}

// DynamicQuantizeLinear in two launches: each block's extremes, widened to hold 0 …
struct BlockExtremes {
  using Params = QuantizeParams;
  struct Pair {
    float low, high;
  };
  struct Shared {
    Pair items[kBlockThreads];
  };
  struct Wider {
    EDDY_HD Pair operator()(const Pair& a, const Pair& b) const {
      return {b.low < a.low ? b.low : a.low, b.high > a.high ? b.high : a.high};
    }
  };

  EDDY_HD static void run(const Params& p, const Block& block, Shared& shared) {
    const float* const in = static_cast<const float*>(p.in);
    const uint64_t step = block.count * kBlockThreads;
    block.each([&](int thread) {
      Pair pair{0, 0};
      const uint64_t first = block.index * kBlockThreads + static_cast<uint64_t>(thread);
      for (uint64_t i = first; i < p.count; i += step) pair = Wider()(pair, Pair{in[i], in[i]});
      shared.items[thread] = pair;
    });
    reduce_block(block, shared.items, Wider());
    block.each([&](int thread) {
      if (thread != 0) return;
      p.extremes[2 * block.index] = shared.items[0].low;
      p.extremes[2 * block.index + 1] = shared.items[0].high;
    });
  }
};

// … and with the extremes of all of them the scale, the zero point and the bytes.
EDDY_HD void run_quantize_by_extremes(const QuantizeParams& p, uint64_t first, uint64_t step) {
  BlockExtremes::Pair pair{0, 0};
  for (uint64_t i = 0; i < p.num_extremes; ++i) {
    pair = BlockExtremes::Wider()(pair, {p.extremes[2 * i], p.extremes[2 * i + 1]});
  }
  const float scale = pair.low == pair.high ? 1.0f : (pair.high - pair.low) / 255.0f;
  float zero = std::rint(-pair.low / scale);
  zero = zero > 255 ? 255 : zero > 0 ? zero : 0;  // of what is no number, 0
  for (uint64_t item = first; item < p.count; item += step) {
    static_cast<uint8_t*>(p.out)[item] =
        quantize_one<uint8_t>(static_cast<const float*>(p.in)[item], scale, zero);
  }
  if (first != 0) return;
  if (p.scale_out != nullptr) *p.scale_out = scale;
  if (p.zero_out != nullptr) *p.zero_out = static_cast<uint8_t>(zero);
}

}  // namespace eddy::cuda
