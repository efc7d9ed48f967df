#include "tests/ops/cuda/libraries/shadowed_cudnn.h"

#include <array>

namespace eddy::testing {
namespace {

constexpr int kMostDims = 8;

struct TensorFacts {
  int type = -1, rank = 0;
  std::array<int, kMostDims> dims{}, strides{};
};

}  // namespace

Result<std::unique_ptr<ShadowedCudnn>> ShadowedCudnn::create(std::shared_ptr<const CudnnApi> real,
                                                             const FakeCudnn& fake) {
  std::unique_ptr<ShadowedCudnn> made(new ShadowedCudnn(std::move(real), fake.api()));
  EDDY_RETURN_IF_ERROR(made->find_questions());
  auto api = std::make_shared<CudnnApi>(*made->fake_);
  made->fill_descriptors(*api);
  made->fill_calls(*api);
  made->api_ = std::move(api);
  return made;
}

Status ShadowedCudnn::find_questions() {
  constexpr std::array kNames = {"libcudnn.so.9"};
  EDDY_ASSIGN_OR_RETURN(library_, DynamicLibrary::open(kNames));
  const bool has_all = library_.find("cudnnGetTensorNdDescriptor", tensor_get_) &&
                       library_.find("cudnnGetPoolingNdForwardOutputDim", pooled_dims_) &&
                       library_.find("cudnnGetConvolutionNdForwardOutputDim", convolved_dims_) &&
                       library_.find("cudnnDeriveBNTensorDescriptor", derive_channels_);
  return has_all ? Status::ok() : unsupported("this cuDNN answers no questions about sizes");
}

template <typename Descriptor>
std::function<int(Descriptor*)> ShadowedCudnn::made_twice(std::function<int(Descriptor*)> fake,
                                                          std::function<int(Descriptor*)> real) {
  return [this, fake, real](Descriptor* made) {
    Descriptor behind = nullptr;
    if (real(&behind) != kDnnSuccess) differences_.push_back("a descriptor cannot be made");
    const int status = fake(made);
    real_of_[*made] = behind;
    return status;
  };
}

template <typename Descriptor>
std::function<int(Descriptor)> ShadowedCudnn::dropped_twice(std::function<int(Descriptor)> fake,
                                                            std::function<int(Descriptor)> real) {
  return [this, fake, real](Descriptor made) {
    if (real(real_of(made)) != kDnnSuccess)
      differences_.push_back("a descriptor cannot be dropped");
    real_of_.erase(made);
    return fake(made);
  };
}

template <typename Descriptor, typename... Args>
std::function<int(Descriptor, Args...)> ShadowedCudnn::told_twice(
    const char* call, std::function<int(Descriptor, Args...)> fake,
    std::function<int(Descriptor, Args...)> real) {
  return [this, call, fake, real](Descriptor made, Args... args) {
    const int answer = real(real_of(made), args...);
    const int expected = fake(made, args...);
    if (answer != expected) {
      differences_.push_back(std::string(call) + " answers " + std::to_string(answer) + ", not " +
                             std::to_string(expected));
    }
    return expected;
  };
}

void ShadowedCudnn::fill_descriptors(CudnnApi& api) {
#define EDDY_TWICE(name)                                                            \
  api.name##_create = made_twice(fake_->name##_create, real_->name##_create);       \
  api.name##_destroy = dropped_twice(fake_->name##_destroy, real_->name##_destroy); \
  api.name##_set = told_twice(#name "_set", fake_->name##_set, real_->name##_set)
  EDDY_TWICE(tensor);
  EDDY_TWICE(filter);
  EDDY_TWICE(convolution);
  EDDY_TWICE(pooling);
#undef EDDY_TWICE
  api.convolution_groups =
      told_twice("convolution_groups", fake_->convolution_groups, real_->convolution_groups);
  api.convolution_math =
      told_twice("convolution_math", fake_->convolution_math, real_->convolution_math);
}

void ShadowedCudnn::compare_convolution(DnnTensor x, DnnFilter filter, DnnConvolution convolution,
                                        DnnTensor y) {
  TensorFacts facts;
  tensor_get_(real_of(x), kMostDims, &facts.type, &facts.rank, facts.dims.data(),
              facts.strides.data());
  std::vector<int> dims(static_cast<size_t>(facts.rank));
  const int status =
      convolved_dims_(real_of(convolution), real_of(x), real_of(filter), facts.rank, dims.data());
  compare("a convolution's result", y, status, dims);
}

void ShadowedCudnn::compare(const char* what, DnnTensor fake_tensor, int status,
                            const std::vector<int>& dims) {
  TensorFacts facts;
  const int asked = tensor_get_(real_of(fake_tensor), kMostDims, &facts.type, &facts.rank,
                                facts.dims.data(), facts.strides.data());
  const auto rank = static_cast<size_t>(facts.rank);
  const bool is_same = asked == kDnnSuccess && status == kDnnSuccess && dims.size() >= rank &&
                       std::equal(dims.begin(), dims.begin() + facts.rank, facts.dims.begin());
  ++num_compared_;
  if (!is_same) differences_.push_back(std::string(what) + " has other sizes");
}

void ShadowedCudnn::compare_channels(DnnTensor x, DnnTensor channels) {
  DnnTensor derived = nullptr;
  TensorFacts ours, theirs;
  const auto facts_of = [&](DnnTensor tensor, TensorFacts& facts) {
    return tensor_get_(tensor, kMostDims, &facts.type, &facts.rank, facts.dims.data(),
                       facts.strides.data());
  };
  const bool is_derived = real_->tensor_create(&derived) == kDnnSuccess &&
                          derive_channels_(derived, real_of(x), kDnnNormSpatial) == kDnnSuccess &&
                          facts_of(derived, theirs) == kDnnSuccess &&
                          facts_of(real_of(channels), ours) == kDnnSuccess;
  if (derived != nullptr) real_->tensor_destroy(derived);
  ++num_compared_;
  if (is_derived && ours.type == theirs.type && ours.rank == theirs.rank &&
      ours.dims == theirs.dims && ours.strides == theirs.strides) {
    return;
  }
  differences_.push_back("a norm's moments are another tensor");
}

void ShadowedCudnn::fill_calls(CudnnApi& api) {
  api.pool = [this](DnnHandle handle, DnnPooling pooling, const void* alpha, DnnTensor x_tensor,
                    const void* x, const void* beta, DnnTensor y_tensor, void* y) {
    TensorFacts facts;
    tensor_get_(real_of(x_tensor), kMostDims, &facts.type, &facts.rank, facts.dims.data(),
                facts.strides.data());
    std::vector<int> dims(static_cast<size_t>(facts.rank));
    const int status = pooled_dims_(real_of(pooling), real_of(x_tensor), facts.rank, dims.data());
    compare("a pool's result", y_tensor, status, dims);
    return fake_->pool(handle, pooling, alpha, x_tensor, x, beta, y_tensor, y);
  };
  api.convolve = [this](DnnHandle handle, const void* alpha, DnnTensor x_tensor, const void* x,
                        DnnFilter filter, const void* w, DnnConvolution convolution, int algorithm,
                        void* workspace, size_t workspace_bytes, const void* beta,
                        DnnTensor y_tensor, void* y) {
    compare_convolution(x_tensor, filter, convolution, y_tensor);
    return fake_->convolve(handle, alpha, x_tensor, x, filter, w, convolution, algorithm, workspace,
                           workspace_bytes, beta, y_tensor, y);
  };
  api.convolve_with_addends = [this](DnnHandle handle, const void* alpha, DnnTensor x_tensor,
                                     const void* x, DnnFilter filter, const void* w,
                                     DnnConvolution convolution, int algorithm, void* workspace,
                                     size_t workspace_bytes, const void* z_factor,
                                     DnnTensor z_tensor, const void* z, DnnTensor bias_tensor,
                                     const void* bias, DnnActivation activation, DnnTensor y_tensor,
                                     void* y) {
    compare_convolution(x_tensor, filter, convolution, y_tensor);
    return fake_->convolve_with_addends(handle, alpha, x_tensor, x, filter, w, convolution,
                                        algorithm, workspace, workspace_bytes, z_factor, z_tensor,
                                        z, bias_tensor, bias, activation, y_tensor, y);
  };
  api.normalize = [this](DnnHandle handle, int mode, const void* alpha, const void* beta,
                         DnnTensor x_tensor, const void* x, DnnTensor y_tensor, void* y,
                         DnnTensor channels, const void* scale, const void* bias, const void* mean,
                         const void* variance, double epsilon) {
    compare_channels(x_tensor, channels);
    return fake_->normalize(handle, mode, alpha, beta, x_tensor, x, y_tensor, y, channels, scale,
                            bias, mean, variance, epsilon);
  };
}

}  // namespace eddy::testing
