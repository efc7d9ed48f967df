#include "tests/ops/cuda/fakes/fake_cudnn.h"

#include <algorithm>
#include <numeric>

#include "tests/ops/cuda/fakes/fake_cudnn_types.h"

namespace eddy::testing {
namespace {

constexpr int kBadParam = 2000;

// Whether a dense tensor's axis 1 lies innermost; nothing: neither that nor row-major.
std::optional<bool> lies_channels_last(int rank, const int* dims, const int* strides) {
  std::vector<int> axes(static_cast<size_t>(rank));  // the innermost first
  std::iota(axes.rbegin(), axes.rend(), 0);
  const auto are_in_order = [&] {
    int64_t stride = 1;
    for (const int axis : axes) {
      if (strides[axis] != stride) return false;
      stride *= dims[axis];
    }
    return true;
  };
  if (are_in_order()) return false;
  std::rotate(axes.begin(), axes.end() - 2, axes.end() - 1);
  return are_in_order() ? std::optional(true) : std::nullopt;
}

}  // namespace

FakeCudnn::FakeCudnn(Enqueue enqueue) : enqueue_(std::move(enqueue)) {
  auto api = std::make_shared<CudnnApi>();
  fill_handles(*api);
  fill_descriptors(*api);
  fill_calls(*api);
  fill_activations(*api);
  fill_one_call(*api);
  fill_pools(*api);
  fill_norms(*api);
  api_ = std::move(api);
}

int FakeCudnn::violation(const std::string& what) {
  violations_.push_back(what);
  return kBadParam;
}

int FakeCudnn::failure_of(const char* call) {
  if (fail_call_ != call) return kDnnSuccess;
  fail_call_.clear();
  return fail_with_;
}

void FakeCudnn::enqueue(void* stream, std::vector<const void*> addresses,
                        std::function<void()> work) {
  if (enqueue_) return enqueue_(stream, std::move(addresses), std::move(work));
  work();
}

void FakeCudnn::fill_handles(CudnnApi& api) {
  api.create = [this](DnnHandle* handle) {
    ++num_created_;
    synchronize_();
    *handle = reinterpret_cast<DnnHandle>(handles_.emplace_back(std::make_shared<Handle>()).get());
    return kDnnSuccess;
  };
  api.destroy = [this](DnnHandle handle) {
    ++num_destroyed_;
    synchronize_();
    std::erase_if(handles_, [&](const auto& made) {
      return reinterpret_cast<DnnHandle>(made.get()) == handle;
    });
    return kDnnSuccess;
  };
}

void FakeCudnn::fill_descriptors(CudnnApi& api) {
  const auto make = [this](auto** handle, auto* made) {
    ++num_alive_;
    *handle = reinterpret_cast<std::remove_reference_t<decltype(*handle)>>(made);
    return kDnnSuccess;
  };
  const auto drop = [this](auto* made) {
    --num_alive_;
    delete made;
    return kDnnSuccess;
  };
  api.tensor_create = [=](DnnTensor* tensor) { return make(tensor, new Shape()); };
  api.tensor_destroy = [=](DnnTensor tensor) { return drop(reinterpret_cast<Shape*>(tensor)); };
  api.filter_create = [=](DnnFilter* filter) { return make(filter, new Shape()); };
  api.filter_destroy = [=](DnnFilter filter) { return drop(reinterpret_cast<Shape*>(filter)); };
  api.convolution_create = [=](DnnConvolution* convolution) {
    return make(convolution, new Convolution());
  };
  api.convolution_destroy = [=](DnnConvolution convolution) {
    return drop(reinterpret_cast<Convolution*>(convolution));
  };
  api.tensor_set = [this](DnnTensor tensor, DnnType type, int rank, const int* dims,
                          const int* strides) {
    if (rank < 4 || rank > 5) return violation("a tensor of neither planes nor volumes");
    const std::optional<bool> is_last = lies_channels_last(rank, dims, strides);
    if (!is_last) return violation("a tensor with channels neither first nor last");
    *reinterpret_cast<Shape*>(tensor) = {type, std::vector<int64_t>(dims, dims + rank), *is_last};
    return kDnnSuccess;
  };
  api.filter_set = [this](DnnFilter filter, DnnType type, int format, int rank, const int* dims) {
    if (format != kDnnFormatNchw && format != kDnnFormatNhwc) {
      return violation("another format than ours");
    }
    *reinterpret_cast<Shape*>(filter) = {type, std::vector<int64_t>(dims, dims + rank),
                                         format == kDnnFormatNhwc};
    return kDnnSuccess;
  };
  api.convolution_set = [this](DnnConvolution handle, int rank, const int* pads, const int* strides,
                               const int* dilations, int mode, DnnType compute) {
    if (const int failure = failure_of("convolution_set"); failure != 0) return failure;
    if (mode != kDnnCrossCorrelation) return violation("a convolution with mirrored weights");
    if (compute != DnnType::kFloat && compute != DnnType::kDouble)
      return violation("sums of halves");
    auto& convolution = *reinterpret_cast<Convolution*>(handle);
    convolution.pads.assign(pads, pads + rank);
    convolution.strides.assign(strides, strides + rank);
    convolution.dilations.assign(dilations, dilations + rank);
    return kDnnSuccess;
  };
  api.convolution_groups = [](DnnConvolution convolution, int groups) {
    reinterpret_cast<Convolution*>(convolution)->groups = groups;
    return kDnnSuccess;
  };
  api.convolution_math = [](DnnConvolution convolution, int math) {
    reinterpret_cast<Convolution*>(convolution)->math = math;
    return kDnnSuccess;
  };
}

// The good one is listed under three math types, as the heuristic does whatever was asked for; it
// runs under the first that may be taken.
int FakeCudnn::choose(Convolution& convolution, int num_wanted, int* num_found,
                      DnnAlgorithm* found) {
  ++num_choices_;
  chosen_();
  if (const int failure = failure_of("choose"); failure != 0) return failure;
  if (num_wanted < 6) return violation("too few algorithms were asked for");
  *num_found = times_ ? 6 : 5;
  const int maths[] = {0, 0, kDnnConvertingMath, kDnnTensorMath, kDnnFmaMath, kDnnFmaMath};
  for (int i = 0; i < *num_found; ++i) {
    found[i] = {
        .algorithm = i == 5 ? kLastAlgorithm : std::min(kGoodAlgorithm - 2 + i, kGoodAlgorithm),
        .status = kDnnSuccess,
        .time = -1,
        .workspace_bytes = i == 1 ? size_t{1} << 50 : 1024,
        .determinism = i == 0 ? 0 : kDnnDeterministic,
        .math = maths[i],
        .reserved = {}};
  }
  convolution.chosen_math = convolution.math == kDnnFmaMath ? kDnnFmaMath : kDnnTensorMath;
  if (unknown_ > 0) {
    --unknown_;
    *num_found = 2;
  }
  return kDnnSuccess;
}

// In the order of their times, as the library does, and under another math type than was offered.
int FakeCudnn::measure(int num_wanted, int* num_found, DnnAlgorithm* found) {
  ++num_measured_;
  chosen_();
  synchronize_();
  if (const int failure = failure_of("measure"); failure != 0) return failure;
  if (!times_) return violation("algorithms are measured");
  if (num_wanted < 4) return violation("too few algorithms were asked for");
  *num_found = 4;
  const auto answer = [](int algorithm, int math, float ms) {
    return DnnAlgorithm{.algorithm = algorithm,
                        .status = kDnnSuccess,
                        .time = ms,
                        .workspace_bytes = 1024,
                        .determinism = kDnnDeterministic,
                        .math = math,
                        .reserved = {}};
  };
  found[0] = answer(kGoodAlgorithm, kDnnConvertingMath, 0.001f);
  found[1] = answer(kGoodAlgorithm, kDnnTensorMath, times_->tensor_ms);
  found[2] = answer(kGoodAlgorithm, kDnnFmaMath, times_->fma_ms);
  found[3] = answer(kLastAlgorithm, kDnnFmaMath, times_->last_ms);
  std::sort(found, found + 4, [](const auto& a, const auto& b) { return a.time < b.time; });
  return kDnnSuccess;
}

std::string FakeCudnn::misfit(const Shape& x, const Shape& w, const Convolution& c,
                              const Shape& y) const {
  const size_t rank = x.dims.size();
  if (w.dims.size() != rank || y.dims.size() != rank || c.pads.size() != rank - 2) return "ranks";
  if (x.type != w.type || x.type != y.type) return "types";
  if (!x.is_laid_as(w) || !x.is_laid_as(y)) return "orders";
  if (x.dims[0] != y.dims[0] || w.dims[1] * c.groups != x.dims[1] || w.dims[0] != y.dims[1]) {
    return "channels";
  }
  for (size_t i = 0; i + 2 < rank; ++i) {
    const int64_t extent = (w.dims[i + 2] - 1) * c.dilations[i] + 1;
    const int64_t size = 1 + (x.dims[i + 2] + 2 * c.pads[i] - extent) / c.strides[i];
    if (size != y.dims[i + 2]) return "sizes";
  }
  return "";
}

void FakeCudnn::fill_calls(CudnnApi& api) {
  api.set_stream = [](DnnHandle handle, void* stream) {
    reinterpret_cast<Handle*>(handle)->stream = stream;
    return kDnnSuccess;
  };
  api.version = [] { return size_t{91900}; };
  api.error_string = [](int) { return "CUDNN_STATUS_BAD_PARAM"; };
  api.choose = [this](DnnHandle, DnnTensor x, DnnFilter w, DnnConvolution convolution, DnnTensor y,
                      int num_wanted, int* num_found, DnnAlgorithm* found) {
    const std::string problem =
        misfit(*reinterpret_cast<Shape*>(x), *reinterpret_cast<Shape*>(w),
               *reinterpret_cast<Convolution*>(convolution), *reinterpret_cast<Shape*>(y));
    if (!problem.empty()) return violation(problem + " that do not fit");
    return choose(*reinterpret_cast<Convolution*>(convolution), num_wanted, num_found, found);
  };
  api.measure = [this](DnnHandle, DnnTensor, DnnFilter, DnnConvolution, DnnTensor, int num_wanted,
                       int* num_found,
                       DnnAlgorithm* found) { return measure(num_wanted, num_found, found); };
  api.convolve = [this](DnnHandle handle, const void* alpha, DnnTensor x_tensor, const void* x,
                        DnnFilter filter, const void* weights, DnnConvolution convolution,
                        int algorithm, void* workspace, size_t workspace_bytes, const void* beta,
                        DnnTensor y_tensor, void* y) {
    if (const int failure = failure_of("convolve"); failure != 0) return failure;
    const Sums sums{*reinterpret_cast<Shape*>(x_tensor),
                    *reinterpret_cast<Shape*>(filter),
                    *reinterpret_cast<Shape*>(y_tensor),
                    *reinterpret_cast<Convolution*>(convolution),
                    x,
                    weights};
    if (!are_one_and_zero(sums.type(), alpha, beta)) return violation("factors other than 1 and 0");
    if (const int problem = begin(sums, algorithm, workspace, workspace_bytes)) return problem;
    enqueue(reinterpret_cast<Handle*>(handle)->stream, {x, weights, workspace, y}, [=] {
      for (int64_t i = 0; i < sums.y.volume(0); ++i) sums.y.write(y, i, sums.at(i));
    });
    return kDnnSuccess;
  };
  api.add = [this](DnnHandle handle, const void*, DnnTensor a_tensor, const void* a, const void*,
                   DnnTensor c_tensor, void* c) {
    if (const int failure = failure_of("add"); failure != 0) return failure;
    const Shape as = *reinterpret_cast<Shape*>(a_tensor), cs = *reinterpret_cast<Shape*>(c_tensor);
    const bool is_whole = as.dims == cs.dims;
    if (as.dims[1] != cs.dims[1] || (!is_whole && as.volume(0) != as.dims[1])) {
      return violation("another bias");
    }
    if (!as.is_laid_as(cs)) return violation("an addend in another order");
    enqueue(reinterpret_cast<Handle*>(handle)->stream, {a, c}, [=] {
      for (int64_t i = 0; i < cs.volume(0); ++i) {
        const int64_t from = is_whole ? i : i / cs.volume(2) % cs.dims[1];
        cs.write(c, i, cs.read(c, i) + as.read(a, from));
      }
    });
    return kDnnSuccess;
  };
}

int FakeCudnn::begin(const Sums& sums, int algorithm, const void* workspace, size_t bytes) {
  const bool is_last = times_ && algorithm == kLastAlgorithm;
  if (algorithm != kGoodAlgorithm && !is_last) {
    return violation("an algorithm that was not to be taken");
  }
  const bool is_measured_fma = times_ && sums.c.math == kDnnFmaMath;
  if (sums.c.math != sums.c.chosen_math && !is_measured_fma) {
    return violation("an algorithm under another math type than it was chosen with");
  }
  if (bytes < 1024 || workspace == nullptr) return violation("no workspace");
  ++num_convolutions_;
  num_channels_last_ += sums.x.is_channels_last ? 1 : 0;
  last_run_ = {algorithm, sums.c.math};
  num_exact_ += sums.c.math == kDnnFmaMath ? 1 : 0;
  return 0;
}

void FakeCudnn::fill_activations(CudnnApi& api) {
  api.activation_create = [this](DnnActivation* activation) {
    ++num_alive_;
    *activation = reinterpret_cast<DnnActivation>(new Activation());
    return kDnnSuccess;
  };
  api.activation_destroy = [this](DnnActivation activation) {
    --num_alive_;
    delete reinterpret_cast<Activation*>(activation);
    return kDnnSuccess;
  };
  api.activation_set = [this](DnnActivation activation, int mode, int nans, double) {
    const bool is_known = mode == kDnnRelu || mode == kDnnIdentity;
    if (!is_known || nans != kDnnPropagateNan) return violation("another activation");
    *reinterpret_cast<Activation*>(activation) = {true, mode == kDnnRelu};
    return kDnnSuccess;
  };
  api.activate = [this](DnnHandle handle, DnnActivation activation, const void* alpha,
                        DnnTensor x_tensor, const void* x, const void* beta, DnnTensor y_tensor,
                        void* y) {
    if (const int failure = failure_of("activate"); failure != 0) return failure;
    const Shape xs = *reinterpret_cast<Shape*>(x_tensor), ys = *reinterpret_cast<Shape*>(y_tensor);
    const FakeFloat type = float_of(xs.type);
    if (!reinterpret_cast<Activation*>(activation)->is_relu || xs.dims != ys.dims ||
        !xs.is_laid_as(ys) || !are_one_and_zero(type, alpha, beta)) {
      return violation("another activation");
    }
    enqueue(reinterpret_cast<Handle*>(handle)->stream, {x, y}, [=] {
      for (int64_t i = 0; i < xs.volume(0); ++i) {
        const double value = xs.read(x, i);
        ys.write(y, i, value < 0 ? 0 : value);
      }
    });
    return kDnnSuccess;
  };
}

void FakeCudnn::fill_one_call(CudnnApi& api) {
  api.convolve_with_addends = [this](DnnHandle handle, const void* alpha, DnnTensor x_tensor,
                                     const void* x, DnnFilter filter, const void* weights,
                                     DnnConvolution convolution, int algorithm, void* workspace,
                                     size_t workspace_bytes, const void* z_factor,
                                     DnnTensor z_tensor, const void* z, DnnTensor bias_tensor,
                                     const void* bias, DnnActivation activation, DnnTensor y_tensor,
                                     void* y) {
    if (const int failure = failure_of("one_call"); failure != 0) return failure;
    const Sums sums{*reinterpret_cast<Shape*>(x_tensor),
                    *reinterpret_cast<Shape*>(filter),
                    *reinterpret_cast<Shape*>(y_tensor),
                    *reinterpret_cast<Convolution*>(convolution),
                    x,
                    weights};
    const FakeFloat type = sums.type();
    const FakeFloat scale = type == FakeFloat::kDouble ? type : FakeFloat::kFloat;
    const double z_times = read_number(scale, z_factor, 0);
    const Shape biases = *reinterpret_cast<Shape*>(bias_tensor);
    const Shape zs = *reinterpret_cast<Shape*>(z_tensor);
    if (read_number(scale, alpha, 0) != 1 || (z_times != 0 && z_times != 1)) {
      return violation("factors other than 1 and 0");
    }
    if (zs.dims != sums.y.dims || !zs.is_laid_as(sums.y) || bias == nullptr ||
        biases.volume(0) != sums.y.dims[1] || !reinterpret_cast<Activation*>(activation)->is_set) {
      return violation("an addend, a bias or an activation that does not fit");
    }
    const bool is_relu = reinterpret_cast<Activation*>(activation)->is_relu;
    if (!is_relu && algorithm != kDnnPrecomputedGemm) {
      return 3000;  // CUDNN_STATUS_NOT_SUPPORTED
    }
    if (const int problem = begin(sums, algorithm, workspace, workspace_bytes)) return problem;
    ++num_one_calls_;
    enqueue(reinterpret_cast<Handle*>(handle)->stream, {x, weights, workspace, z, bias, y}, [=] {
      for (int64_t i = 0; i < sums.y.volume(0); ++i) {
        double sum = sums.at(i) + read_number(type, bias, i / sums.y.volume(2) % sums.y.dims[1]);
        if (z_times != 0) sum += zs.read(z, i);
        sums.y.write(y, i, is_relu && sum < 0 ? 0 : sum);
      }
    });
    return kDnnSuccess;
  };
}

}  // namespace eddy::testing
