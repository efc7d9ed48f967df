// ShadowedCudnn: a fake of cuDNN with a real descriptor behind each of its own. The installed
// library makes and fills descriptors without a GPU, so each call that sets up the fake sets up the
// real library, too; and before the fake computes, the real library returns the sizes and types
// that follow.
//
// differences(): what the two did not agree on. Threads: one. The fake outlives it, and it its
// table.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ops/cuda/libraries/library.h"
#include "tests/ops/cuda/fakes/fake_cudnn.h"

namespace eddy::testing {

class ShadowedCudnn {
 public:
  static Result<std::unique_ptr<ShadowedCudnn>> create(std::shared_ptr<const CudnnApi> real,
                                                       const FakeCudnn& fake);

  std::shared_ptr<const CudnnApi> api() const { return api_; }
  const std::vector<std::string>& differences() const { return differences_; }
  int num_compared() const { return num_compared_; }  // calls that compute
  size_t num_alive() const { return real_of_.size(); }

 private:
  ShadowedCudnn(std::shared_ptr<const CudnnApi> real, std::shared_ptr<const CudnnApi> fake)
      : real_(std::move(real)), fake_(std::move(fake)) {}
  Status find_questions();
  void fill_descriptors(CudnnApi& api);
  void fill_calls(CudnnApi& api);
  template <typename Descriptor>
  std::function<int(Descriptor*)> made_twice(std::function<int(Descriptor*)> fake,
                                             std::function<int(Descriptor*)> real);
  template <typename Descriptor>
  std::function<int(Descriptor)> dropped_twice(std::function<int(Descriptor)> fake,
                                               std::function<int(Descriptor)> real);
  template <typename Descriptor, typename... Args>
  std::function<int(Descriptor, Args...)> told_twice(const char* call,
                                                     std::function<int(Descriptor, Args...)> fake,
                                                     std::function<int(Descriptor, Args...)> real);
  template <typename Descriptor>
  Descriptor real_of(Descriptor fake) const {
    return static_cast<Descriptor>(real_of_.at(fake));
  }
  // Checks that the tensor has the shape that the library computes.
  void compare_convolution(DnnTensor x, DnnFilter filter, DnnConvolution convolution, DnnTensor y);
  void compare(const char* what, DnnTensor fake_tensor, int status, const std::vector<int>& dims);
  void compare_channels(DnnTensor x, DnnTensor channels);

  const std::shared_ptr<const CudnnApi> real_, fake_;
  DynamicLibrary library_;
  // Queries that only this class calls.
  std::function<int(DnnTensor, int, int*, int*, int*, int*)> tensor_get_;
  std::function<int(DnnPooling, DnnTensor, int, int*)> pooled_dims_;
  std::function<int(DnnConvolution, DnnTensor, DnnFilter, int, int*)> convolved_dims_;
  std::function<int(DnnTensor, DnnTensor, int)> derive_channels_;

  std::map<void*, void*> real_of_;
  std::vector<std::string> differences_;
  int num_compared_ = 0;
  std::shared_ptr<const CudnnApi> api_;
};

}  // namespace eddy::testing
