// The bodies of kernels whose elements look at a window of the input: pools, convolutions and
// transposed convolutions, one thread for each output element; for the device and for tests on the
// host.
//
// Convolutions with many channels and filters are products (product_inl.h); here are those with
// few, depthwise ones above all. Sums are held in double.
#pragma once

#include "ops/cuda/device/params.h"
#include "ops/cuda/device/scalar_ops.h"
#include "ops/cuda/reduce/row_inl.h"

namespace eddy::cuda {

EDDY_HD int64_t volume(const int64_t (&dims)[kMaxSpatialAxes]) {
  return dims[0] * dims[1] * dims[2];
}
EDDY_HD void unravel(int64_t index, const int64_t (&dims)[kMaxSpatialAxes],
                     int64_t (&at)[kMaxSpatialAxes]) {
  at[2] = index % dims[2];
  index /= dims[2];
  at[1] = index % dims[1];
  at[0] = index / dims[1];
}

// The taps of one axis of the window at output position `at` that lie inside the input.
struct Taps {
  int64_t start;  // of tap 0 in the input, below 0 in the padding
  int64_t first;
  int64_t end;
};
EDDY_HD Taps taps_inside(const WindowParams& w, int axis, int64_t at) {
  const int64_t start = at * w.stride[axis] - w.pad[axis], dilation = w.dilation[axis];
  const auto taps_before = [dilation](int64_t distance) {
    return distance <= 0 ? 0 : (distance + dilation - 1) / dilation;
  };
  const int64_t end = taps_before(w.in[axis] - start);
  return {start, taps_before(-start), end < w.kernel[axis] ? end : w.kernel[axis]};
}

// Calls visit(input index, tap index) for every tap inside the input, in order.
template <typename Visit>
EDDY_HD void walk_window(const WindowParams& w, int64_t out_index, Visit visit) {
  int64_t at[kMaxSpatialAxes];
  unravel(out_index, w.out, at);
  Taps taps[kMaxSpatialAxes];
  for (int i = 0; i < kMaxSpatialAxes; ++i) taps[i] = taps_inside(w, i, at[i]);
  for (int64_t z = taps[0].first; z < taps[0].end; ++z) {
    const int64_t plane = taps[0].start + z * w.dilation[0];
    for (int64_t y = taps[1].first; y < taps[1].end; ++y) {
      const int64_t row = plane * w.in[1] + taps[1].start + y * w.dilation[1];
      for (int64_t x = taps[2].first; x < taps[2].end; ++x) {
        visit(row * w.in[2] + taps[2].start + x * w.dilation[2],
              (z * w.kernel[1] + y) * w.kernel[2] + x);
      }
    }
  }
}

// How far channels and positions of an image are apart: it lies [channels, positions], or the other
// way round.
struct ImageSteps {
  int64_t channel;
  int64_t position;
};
EDDY_HD ImageSteps image_steps(bool is_channels_last, int64_t channels, int64_t positions) {
  return is_channels_last ? ImageSteps{1, channels} : ImageSteps{positions, 1};
}
// An element of images of so many channels and positions.
struct ImagePlace {
  int64_t image, channel, position;
};
EDDY_HD ImagePlace image_place(bool is_channels_last, int64_t index, int64_t channels,
                               int64_t positions) {
  const int64_t inner = is_channels_last ? channels : positions;
  const int64_t outer = is_channels_last ? positions : channels;
  const int64_t row = index / inner, at = index % inner;
  if (is_channels_last) return {row / outer, at, row % outer};
  return {row / outer, row % outer, at};
}

// A flat index of the input counted with its first axis fastest.
EDDY_HD int64_t column_major(const WindowParams& w, int64_t index) {
  int64_t at[kMaxSpatialAxes];
  unravel(index, w.in, at);
  return (at[2] * w.in[1] + at[1]) * w.in[0] + at[0];
}

// The window that makes one element of the result: its position there, and the input's elements of
// its channel.
template <typename T>
struct PoolWindow {
  const T* in;
  int64_t step;  // between two elements
  int64_t position;

  EDDY_HD PoolWindow(const PoolParams& p, int64_t item) {
    const int64_t in_size = volume(p.window.in), out_size = volume(p.window.out);
    const T* const images = static_cast<const T*>(p.in);
    if (p.last_channels == 0) {
      in = images + item / out_size * in_size;
      step = 1;
      position = item % out_size;
      return;
    }
    const ImagePlace at = image_place(true, item, p.last_channels, out_size);
    in = images + at.image * in_size * p.last_channels + at.channel;
    step = p.last_channels;
    position = at.position;
  }
};

// Indices are those of planes.
template <typename T>
EDDY_HD void run_max_pool(const PoolParams& p, uint64_t first, uint64_t step) {
  const int64_t in_size = volume(p.window.in);
  for (uint64_t item = first; item < p.count; item += step) {
    const PoolWindow<T> window(p, static_cast<int64_t>(item));
    int64_t best_index = -1;
    T best = lowest<T>();
    walk_window(p.window, window.position, [&](int64_t index, int64_t) {
      const T element = window.in[index * window.step];
      const auto value = load(element);
      if (best_index >= 0 && !is_nan(value) && !(value > load(best))) return;
      best = element;
      best_index = index;
    });
    static_cast<T*>(p.out)[item] = best;
    if (p.indices == nullptr) continue;
    const int64_t within =
        p.is_column_major != 0 && best_index >= 0 ? column_major(p.window, best_index) : best_index;
    const int64_t plane = static_cast<int64_t>(item) / volume(p.window.out);
    p.indices[item] = best_index < 0 ? -1 : plane * in_size + within;
  }
}

// Elements of the window at `out_index` in the padded input.
EDDY_HD int64_t padded_taps(const WindowParams& w, int64_t out_index) {
  int64_t at[kMaxSpatialAxes];
  unravel(out_index, w.out, at);
  int64_t count = 1;
  for (int i = 0; i < kMaxSpatialAxes; ++i) {
    const int64_t room = w.in[i] + w.pad[i] + w.pad_end[i] - at[i] * w.stride[i];
    const int64_t fit = room <= 0 ? 0 : (room + w.dilation[i] - 1) / w.dilation[i];
    count *= fit < w.kernel[i] ? fit : w.kernel[i];
  }
  return count;
}

template <typename T>
EDDY_HD void run_average_pool(const PoolParams& p, uint64_t first, uint64_t step) {
  for (uint64_t item = first; item < p.count; item += step) {
    const PoolWindow<T> window(p, static_cast<int64_t>(item));
    double sum = 0;
    int64_t count = 0;
    walk_window(p.window, window.position, [&](int64_t index, int64_t) {
      sum += static_cast<double>(load(window.in[index * window.step]));
      ++count;
    });
    if (p.counts_padding != 0) count = padded_taps(p.window, window.position);
    const double mean = count == 0 ? 0 : sum / static_cast<double>(count);
    static_cast<T*>(p.out)[item] = round_sum<T>(mean);
  }
}

template <typename T>
EDDY_HD double bias_at(const ConvParams& p, int64_t filter) {
  return p.bias == nullptr ? 0.0 : static_cast<double>(load(static_cast<const T*>(p.bias)[filter]));
}

// The sum with what else a convolution makes of it.
template <typename T, typename Sum>
EDDY_HD Sum finish_conv(const ConvParams& p, Sum sum, int64_t place) {
  if (p.addend != nullptr) {
    sum += static_cast<Sum>(load(static_cast<const T*>(p.addend)[place]));
  }
  return p.ends_in_relu != 0 && sum < Sum(0) ? Sum(0) : sum;
}

// Weights: [groups * filters, channels, taps], or those of each filter the other way round.
template <typename T>
EDDY_HD void run_conv(const ConvParams& p, uint64_t first, uint64_t step) {
  const bool is_last = p.is_channels_last != 0;
  const int64_t out_size = volume(p.window.out), in_size = volume(p.window.in);
  const int64_t num_taps = volume(p.window.kernel), channels = p.groups * p.channels;
  const ImageSteps x = image_steps(is_last, channels, in_size);
  const ImageSteps w = image_steps(is_last, p.channels, num_taps);
  for (uint64_t item = first; item < p.count; item += step) {
    const ImagePlace at =
        image_place(is_last, static_cast<int64_t>(item), p.groups * p.filters, out_size);
    const int64_t f = at.channel;
    const T* const in = static_cast<const T*>(p.in) + at.image * channels * in_size +
                        f / p.filters * p.channels * x.channel;
    const T* const weights = static_cast<const T*>(p.weights) + f * p.channels * num_taps;
    double sum = bias_at<T>(p, f);
    walk_window(p.window, at.position, [&](int64_t index, int64_t tap) {
      for (int64_t c = 0; c < p.channels; ++c) {
        sum += static_cast<double>(load(in[c * x.channel + index * x.position])) *
               static_cast<double>(load(weights[c * w.channel + tap * w.position]));
      }
    });
    sum = finish_conv<T>(p, sum, static_cast<int64_t>(item));
    static_cast<T*>(p.out)[item] = round_sum<T>(sum);
  }
}

// The element of the steps of one axis whose tap `tap` lies on `place`; -1: none.
EDDY_HD int64_t step_onto(const WindowParams& w, int axis, int64_t place, int64_t tap) {
  const int64_t distance = place + w.pad[axis] - tap * w.dilation[axis];
  if (distance < 0 || distance % w.stride[axis] != 0) return -1;
  const int64_t at = distance / w.stride[axis];
  return at < w.out[axis] ? at : -1;
}

// Weights: [groups * channels, filters, taps]. window.in is the output's plane.
template <typename T>
EDDY_HD void run_conv_transpose(const ConvParams& p, uint64_t first, uint64_t step) {
  const WindowParams& w = p.window;
  const int64_t out_size = volume(w.in), in_size = volume(w.out), num_taps = volume(w.kernel);
  const int64_t filters = p.groups * p.filters;
  for (uint64_t item = first; item < p.count; item += step) {
    const int64_t plane = static_cast<int64_t>(item) / out_size;
    const int64_t n = plane / filters, f = plane % filters, group = f / p.filters;
    int64_t at[kMaxSpatialAxes], tap[kMaxSpatialAxes];
    unravel(static_cast<int64_t>(item) % out_size, w.in, at);
    double sum = bias_at<T>(p, f);
    for (int64_t t = 0; t < num_taps; ++t) {
      unravel(t, w.kernel, tap);
      int64_t index = 0;
      for (int i = 0; i < kMaxSpatialAxes && index >= 0; ++i) {
        const int64_t from = step_onto(w, i, at[i], tap[i]);
        index = from < 0 ? -1 : index * w.out[i] + from;
      }
      if (index < 0) continue;
      for (int64_t i = 0; i < p.channels; ++i) {
        const int64_t c = group * p.channels + i;
        const int64_t weight = (c * p.filters + f % p.filters) * num_taps + t;
        const int64_t input = (n * p.groups * p.channels + c) * in_size + index;
        sum += static_cast<double>(load(static_cast<const T*>(p.in)[input])) *
               static_cast<double>(load(static_cast<const T*>(p.weights)[weight]));
      }
    }
    static_cast<T*>(p.out)[item] = round_sum<T>(sum);
  }
}

}  // namespace eddy::cuda
