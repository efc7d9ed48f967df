#include "ops/cuda/libraries/dnn_norms.h"

namespace eddy {

Result<bool> DnnNorms::run(const KernelArgs& args, ElementType element,
                           const cuda::ChannelParams& p) {
  if (p.count == 0 || static_cast<int64_t>(p.count) < options_.least_norm_elements ||
      !(p.epsilon >= 0)) {
    return false;
  }
  const auto channels = static_cast<int64_t>(p.channels), inner = static_cast<int64_t>(p.inner);
  const auto batch = static_cast<int64_t>(p.count) / (channels * inner);
  const auto describe = [&](DnnHandle, Plan& plan) -> Result<bool> {
    constexpr int kRank = 2;
    const int64_t of_x[cuda::kMaxSpatialAxes] = {1, 1, inner}, of_channel[] = {1, 1, 1};
    const DnnShape x = dnn_shape(batch, channels, of_x, kRank);
    if (!x.fits || !fits_dnn_grid(batch, channels)) return false;
    EDDY_RETURN_IF_ERROR(describe_tensor(handles_, element, x, plan.x));
    EDDY_RETURN_IF_ERROR(describe_tensor(handles_, element,
                                         dnn_shape(1, channels, of_channel, kRank), plan.channels));
    return true;
  };
  return plans_.run(
      args, {static_cast<int64_t>(element), batch, channels, inner}, describe,
      [&](DnnHandle handle, const Plan& plan) {
        const DnnFactors factors = dnn_factors(element);
        return handles_.check(
            handles_.api().normalize(handle, kDnnNormSpatial, factors.one, factors.zero,
                                     plan.x.get(), p.in, plan.x.get(), p.out, plan.channels.get(),
                                     p.scale, p.bias, p.mean, p.variance, p.epsilon),
            "cudnnBatchNormalizationForwardInference");
      });
}

}  // namespace eddy
