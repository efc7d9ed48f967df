#include "ops/cuda/libraries/dnn_pools.h"

namespace eddy {
namespace {

using cuda::kMaxSpatialAxes;
using cuda::PoolParams;
using cuda::WindowParams;

DnnPoolMode mode_of(bool is_max, const PoolParams& p) {
  if (is_max) return DnnPoolMode::kMax;
  return p.counts_padding != 0 ? DnnPoolMode::kAverageOfWindow : DnnPoolMode::kAverageOfInput;
}

// Windows without holes, each with an element of the input.
bool has_pool_window(const WindowParams& w) {
  for (int i = 0; i < kMaxSpatialAxes; ++i) {
    if (w.dilation[i] != 1 || w.pad[i] >= w.kernel[i]) return false;
  }
  return is_dnn_window(w);
}

// None of the windows leaves the padded input.
bool has_whole_windows(const WindowParams& w) {
  for (int i = 0; i < kMaxSpatialAxes; ++i) {
    const int64_t end = (w.out[i] - 1) * w.stride[i] + w.kernel[i];
    if (end > w.in[i] + w.pad[i] + w.pad_end[i]) return false;
  }
  return true;
}

int64_t elements_of(int64_t batch, int64_t channels, const WindowParams& w) {
  return batch * channels * w.in[0] * w.in[1] * w.in[2];
}

}  // namespace

Result<bool> DnnPools::describe(Plan& plan, ElementType element, DnnPoolMode mode, int64_t batch,
                                int64_t channels, const PoolParams& p) const {
  const WindowParams& w = p.window;
  const DnnOrder order = p.last_channels > 0 ? DnnOrder::kChannelsLast : DnnOrder::kChannelsFirst;
  const int rank = dnn_spatial_rank(w);
  const DnnShape x = dnn_shape(batch, channels, w.in, rank, order);
  const DnnShape y = dnn_shape(batch, channels, w.out, rank, order);
  if (!has_pool_window(w) || !x.fits || !y.fits || !fits_dnn_grid(batch, channels)) return false;
  if (mode == DnnPoolMode::kAverageOfWindow && !has_whole_windows(w)) return false;
  EDDY_RETURN_IF_ERROR(describe_tensor(handles_, element, x, plan.x));
  EDDY_RETURN_IF_ERROR(describe_tensor(handles_, element, y, plan.y));
  const CudnnApi& api = handles_.api();
  EDDY_RETURN_IF_ERROR(plan.pooling.make(handles_, api.pooling_create, api.pooling_destroy,
                                         "cudnnCreatePoolingDescriptor"));
  const DnnInts sizes = dnn_ints(w.kernel, rank), pads = dnn_ints(w.pad, rank);
  const DnnInts strides = dnn_ints(w.stride, rank);
  EDDY_RETURN_IF_ERROR(
      handles_.check(api.pooling_set(plan.pooling.get(), mode, kDnnPropagateNan, rank, sizes.data(),
                                     pads.data(), strides.data()),
                     "cudnnSetPoolingNdDescriptor"));
  return true;
}

Result<bool> DnnPools::run(const KernelArgs& args, ElementType element, bool is_max, int64_t batch,
                           int64_t channels, const PoolParams& p) {
  const WindowParams& w = p.window;
  if (p.count == 0 || p.indices != nullptr ||
      elements_of(batch, channels, w) < options_.least_pool_elements) {
    return false;
  }
  const DnnPoolMode mode = mode_of(is_max, p);
  std::vector<int64_t> key = {static_cast<int64_t>(element), static_cast<int64_t>(mode), batch,
                              channels};
  add_to_key(key, w);
  // The key has the padding behind, too: the padding before does not determine whether windows are
  // whole.
  key.insert(key.end(), std::begin(w.pad_end), std::end(w.pad_end));
  if (p.last_channels > 0) key.push_back(1);
  return plans_.run(
      args, key,
      [&](DnnHandle, Plan& plan) { return describe(plan, element, mode, batch, channels, p); },
      [&](DnnHandle handle, const Plan& plan) {
        const DnnFactors factors = dnn_factors(element);
        return handles_.check(
            handles_.api().pool(handle, plan.pooling.get(), factors.one, plan.x.get(), p.in,
                                factors.zero, plan.y.get(), p.out),
            "cudnnPoolingForward");
      });
}

}  // namespace eddy
