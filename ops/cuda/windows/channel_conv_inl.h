// The body of convolutions by channel whose images lie with channels last: as many groups as
// channels, a filter for each, a square window of a fixed size without holes.
//
// A block's warps share the weights of 32 neighbouring channels, a thread has one of these; it
// makes kChannelRun results in a row. So a warp reads 32 neighbours of an image at once, and its
// weights lie an odd number of banks apart. Sums are held in float, or double where the elements
// are. cuDNN has no kernels for this order (112 x 112 x 32 by 3 x 3: 23 µs, H200).
#pragma once

#include <type_traits>

#include "ops/cuda/device/block_inl.h"
#include "ops/cuda/windows/window_inl.h"

namespace eddy::cuda {

inline constexpr int kChannelTile = kWarpThreads;
inline constexpr int kChannelRun = 2;

struct ChannelTiles {
  int64_t tiles, runs_a_row, runs;  // of channels; of results in a row, in all images

  EDDY_HD explicit ChannelTiles(const ConvParams& p)
      : tiles((p.groups + kChannelTile - 1) / kChannelTile),
        runs_a_row((p.window.out[2] + kChannelRun - 1) / kChannelRun),
        runs(p.batch * p.window.out[1] * runs_a_row) {}
  static constexpr int64_t kRunsABlock = kThreads / kChannelTile;
  EDDY_HD uint64_t num_items() const {
    return static_cast<uint64_t>(tiles * ((runs + kRunsABlock - 1) / kRunsABlock));
  }
};

// Weights: [channels, window].
template <typename T, int kKernel>
struct BlockChannelConv {
  using Params = ConvParams;
  using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
  static constexpr int kTaps = kKernel * kKernel;
  struct Shared {
    Sum weights[kChannelTile * kTaps];
  };

  EDDY_HD static void run(const Params& p, const Block& block, Shared& shared) {
    const ChannelTiles tiles(p);
    for (uint64_t item = block.index; item < tiles.num_items(); item += block.count) {
      const int64_t first = static_cast<int64_t>(item) % tiles.tiles * kChannelTile;
      const int64_t of_tile = p.groups - first < kChannelTile ? p.groups - first : kChannelTile;
      block.each([&](int thread) {
        const T* const weights = static_cast<const T*>(p.weights) + first * kTaps;
        for (int i = thread; i < of_tile * kTaps; i += kThreads) {
          shared.weights[i] = static_cast<Sum>(load(weights[i]));
        }
      });
      block.each([&](int thread) {
        const int64_t run = static_cast<int64_t>(item) / tiles.tiles * ChannelTiles::kRunsABlock +
                            thread / kChannelTile;
        const int lane = thread % kChannelTile;
        if (run >= tiles.runs || lane >= of_tile) return;
        make_run(p, tiles, run, first + lane, shared.weights + lane * kTaps);
      });
    }
  }

  EDDY_HD static void make_run(const ConvParams& p, const ChannelTiles& tiles, int64_t run,
                               int64_t channel, const Sum* weights) {
    const WindowParams& w = p.window;
    const int64_t row = run / tiles.runs_a_row, image = row / w.out[1];
    const int x = static_cast<int>(run % tiles.runs_a_row) * kChannelRun;
    const int left = x * static_cast<int>(w.stride[2]) - static_cast<int>(w.pad[2]);
    const int top = static_cast<int>(row % w.out[1] * w.stride[1] - w.pad[1]);
    const int width = static_cast<int>(w.in[2]), height = static_cast<int>(w.in[1]);
    const int stride = static_cast<int>(w.stride[2]);
    const T* const in = static_cast<const T*>(p.in) + image * height * width * p.groups + channel;
    const Sum bias = static_cast<Sum>(bias_at<T>(p, channel));
    Sum sums[kChannelRun];
    for (int r = 0; r < kChannelRun; ++r) sums[r] = bias;
    EDDY_UNROLL
    for (int i = 0; i < kKernel; ++i) {
      const int y = top + i;
      if (y < 0 || y >= height) continue;
      const T* const line = in + static_cast<int64_t>(y) * width * p.groups;
      EDDY_UNROLL
      for (int j = 0; j < kKernel; ++j) {
        const Sum weight = weights[i * kKernel + j];
        EDDY_UNROLL
        for (int r = 0; r < kChannelRun; ++r) {
          const int at = left + r * stride + j;
          if (at < 0 || at >= width) continue;
          sums[r] += static_cast<Sum>(load(line[at * p.groups])) * weight;
        }
      }
    }
    const int64_t place = (row * w.out[2] + x) * p.groups + channel;
    for (int r = 0; r < kChannelRun && x + r < w.out[2]; ++r) {
      const int64_t to = place + r * p.groups;
      static_cast<T*>(p.out)[to] = round_sum<T>(finish_conv<T>(p, sums[r], to));
    }
  }
};

}  // namespace eddy::cuda
