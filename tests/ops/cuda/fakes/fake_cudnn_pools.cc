#include <cmath>

#include "tests/ops/cuda/fakes/fake_cudnn_types.h"

namespace eddy::testing {

std::string FakeCudnn::misfit(const Pooling& pooling, const Shape& x, const Shape& y) const {
  const size_t rank = x.dims.size();
  if (y.dims.size() != rank || pooling.sizes.size() != rank - 2) return "ranks";
  if (x.type != y.type) return "types";
  if (x.dims[0] != y.dims[0] || x.dims[1] != y.dims[1]) return "planes";
  if (!x.is_laid_as(y)) return "orders";
  for (size_t i = 0; i + 2 < rank; ++i) {
    const int64_t room = x.dims[i + 2] + 2 * pooling.pads[i] - pooling.sizes[i];
    if (room < 0 || 1 + room / pooling.strides[i] != y.dims[i + 2]) return "sizes";
  }
  return "";
}

int FakeCudnn::pool(const Handle& handle, const Pooling& pooling, const Shape& x, const void* from,
                    const Shape& y, void* to) {
  ++num_pools_;
  enqueue(handle.stream, {from, to}, [=] {
    const bool is_max = pooling.mode == DnnPoolMode::kMax;
    const Shape window{x.type, [&] {
                         std::vector<int64_t> dims = {1, 1};
                         dims.insert(dims.end(), pooling.sizes.begin(), pooling.sizes.end());
                         return dims;
                       }()};
    for (int64_t item = 0; item < y.volume(0); ++item) {
      const std::vector<int64_t> at = y.position(item % y.volume(2));
      const int64_t plane = item / y.volume(2);
      double result = is_max ? -HUGE_VAL : 0;
      int64_t inside = 0;
      for (int64_t tap = 0; tap < window.volume(2); ++tap) {
        const int64_t place = pooling.place(x, at, window.position(tap));
        if (place < 0) continue;
        ++inside;
        const double value = x.read(from, plane * x.volume(2) + place);
        if (!is_max) result += value;
        if (is_max && !std::isnan(result) && !(value <= result)) result = value;
      }
      const bool counts_all = pooling.mode == DnnPoolMode::kAverageOfWindow;
      const auto count = static_cast<double>(counts_all ? window.volume(2) : inside);
      y.write(to, item, is_max ? result : result / count);
    }
  });
  return kDnnSuccess;
}

void FakeCudnn::fill_pools(CudnnApi& api) {
  api.pooling_create = [this](DnnPooling* pooling) {
    ++num_alive_;
    *pooling = reinterpret_cast<DnnPooling>(new Pooling());
    return kDnnSuccess;
  };
  api.pooling_destroy = [this](DnnPooling pooling) {
    --num_alive_;
    delete reinterpret_cast<Pooling*>(pooling);
    return kDnnSuccess;
  };
  api.pooling_set = [this](DnnPooling handle, DnnPoolMode mode, int nans, int rank,
                           const int* sizes, const int* pads, const int* strides) {
    if (const int failure = failure_of("pooling_set"); failure != 0) return failure;
    if (nans != kDnnPropagateNan) return violation("a pool that loses NaNs");
    if (rank < 2 || rank > 3) return violation("a pool of neither planes nor volumes");
    auto& pooling = *reinterpret_cast<Pooling*>(handle);
    pooling.mode = mode;
    pooling.sizes.assign(sizes, sizes + rank);
    pooling.pads.assign(pads, pads + rank);
    pooling.strides.assign(strides, strides + rank);
    pooling.dilations.assign(static_cast<size_t>(rank), 1);
    for (int i = 0; i < rank; ++i) {
      if (sizes[i] < 1 || strides[i] < 1 || pads[i] < 0) return violation("a window of nothing");
      if (pads[i] >= sizes[i]) return violation("a window that lies in the padding");
    }
    return kDnnSuccess;
  };
  api.pool = [this](DnnHandle handle, DnnPooling pooling, const void* alpha, DnnTensor x_tensor,
                    const void* x, const void* beta, DnnTensor y_tensor, void* y) {
    if (const int failure = failure_of("pool"); failure != 0) return failure;
    const auto& by = *reinterpret_cast<Pooling*>(pooling);
    const Shape& from = *reinterpret_cast<Shape*>(x_tensor);
    const Shape& to = *reinterpret_cast<Shape*>(y_tensor);
    const std::string problem = misfit(by, from, to);
    if (!problem.empty()) return violation("a pool's " + problem + " do not fit");
    if (!are_one_and_zero(float_of(from.type), alpha, beta)) {
      return violation("factors other than 1 and 0");
    }
    return pool(*reinterpret_cast<Handle*>(handle), by, from, x, to, y);
  };
}

void FakeCudnn::fill_norms(CudnnApi& api) {
  api.normalize = [this](DnnHandle handle, int mode, const void* alpha, const void* beta,
                         DnnTensor x_tensor, const void* x, DnnTensor y_tensor, void* y,
                         DnnTensor channel_tensor, const void* scale, const void* bias,
                         const void* mean, const void* variance, double epsilon) {
    if (const int failure = failure_of("normalize"); failure != 0) return failure;
    const Shape xs = *reinterpret_cast<Shape*>(x_tensor);
    const Shape& ys = *reinterpret_cast<Shape*>(y_tensor);
    const Shape& channels = *reinterpret_cast<Shape*>(channel_tensor);
    const FakeFloat type = float_of(xs.type);
    const FakeFloat moment = type == FakeFloat::kDouble ? type : FakeFloat::kFloat;
    if (mode != kDnnNormSpatial || epsilon < 0) return violation("another norm");
    if (ys.type != xs.type || ys.dims != xs.dims || !xs.is_laid_as(ys)) {
      return violation("a norm's shapes do not fit");
    }
    if (float_of(channels.type) != moment) return violation("moments of another type");
    if (channels.volume(0) != xs.dims[1] || channels.dims[1] != xs.dims[1] ||
        channels.dims.size() != xs.dims.size()) {
      return violation("moments of other channels");
    }
    if (!are_one_and_zero(type, alpha, beta)) return violation("factors other than 1 and 0");
    ++num_norms_;
    enqueue(reinterpret_cast<Handle*>(handle)->stream, {x, scale, bias, mean, variance, y}, [=] {
      for (int64_t i = 0; i < xs.volume(0); ++i) {
        const int64_t c = i / xs.volume(2) % xs.dims[1];
        const double distance = xs.read(x, i) - read_number(moment, mean, c);
        const double deviation = std::sqrt(read_number(moment, variance, c) + epsilon);
        ys.write(
            y, i,
            read_number(moment, scale, c) * distance / deviation + read_number(moment, bias, c));
      }
    });
    return kDnnSuccess;
  };
}

}  // namespace eddy::testing
