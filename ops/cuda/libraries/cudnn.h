// CudnnApi: the interface to cuDNN: the calls that convolutions, pools and norms need, in one
// table, and the types that cross it.
//
// Opened when a session with a GPU is made (load_cudnn); nothing is linked, and a test puts a fake
// underneath. As with cuBLASLt (cublas_lt.h) the few declarations are ours, the numbers the
// library's, and a test compares them with its headers where a toolkit is.
// These calls are cuDNN's older interface, which version 9 still has; its graph interface would
// serve the same purpose with ten times the declarations.
// Source: NVIDIA, cuDNN API reference, libraries cudnn_ops and cudnn_cnn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "graph/base/status.h"
#include "ops/cuda/libraries/handle_pool.h"

namespace eddy {

using DnnHandle = struct DnnHandleTag*;
using DnnTensor = struct DnnTensorTag*;
using DnnFilter = struct DnnFilterTag*;
using DnnConvolution = struct DnnConvolutionTag*;
using DnnPooling = struct DnnPoolingTag*;
using DnnActivation = struct DnnActivationTag*;

constexpr int kDnnSuccess = 0;
// The call was refused for its parameters, and nothing has been enqueued; the same call will be
// refused again. Version 9 has ranges of codes, the versions before it single ones.
constexpr bool is_dnn_refusal(int status) {
  constexpr int kOldBadParam = 3, kOldInvalidValue = 5, kOldArchMismatch = 6, kOldNotSupported = 9;
  return (status >= 2000 && status < 4000) || status == kOldBadParam ||
         status == kOldInvalidValue || status == kOldArchMismatch || status == kOldNotSupported;
}
enum class DnnType : int { kFloat = 0, kDouble = 1, kHalf = 2, kBfloat16 = 9 };
constexpr int kDnnFormatNchw = 0;
constexpr int kDnnFormatNhwc = 1;        // dims are named in the order of NCHW all the same
constexpr int kDnnCrossCorrelation = 1;  // what ONNX calls a convolution
constexpr int kDnnDefaultMath = 0;       // float32 may be rounded to TF32
constexpr int kDnnTensorMath = 1;        // tensor cores without conversions: 16-bit types
constexpr int kDnnConvertingMath = 2;    // floats may be rounded to 16 bits
constexpr int kDnnFmaMath = 3;           // not even to TF32
constexpr int kDnnDeterministic = 1;
enum class DnnPoolMode : int {
  kAverageOfWindow = 1,  // a window's padding counts
  kAverageOfInput = 2,
  kMax = 3,  // the deterministic one
};
constexpr int kDnnPropagateNan = 1;  // of a window with a NaN the greatest is NaN; NaN or 0 is NaN
constexpr int kDnnRelu = 1;
constexpr int kDnnIdentity = 5;         // of a convolution's one call
constexpr int kDnnPrecomputedGemm = 1;  // the algorithm that has it so
constexpr int kDnnNormSpatial = 1;      // moments of a channel

struct DnnAlgorithm {  // cudnnConvolutionFwdAlgoPerf_t
  int algorithm;
  int status;
  float time;
  size_t workspace_bytes;
  int determinism;
  int math;
  int reserved[3];
};
static_assert(sizeof(DnnAlgorithm) == 48);

// X(entry, symbol, signature).
#define EDDY_CUDNN_CALLS(X)                                                                       \
  X(create, "cudnnCreate", int(DnnHandle * handle))                                               \
  X(destroy, "cudnnDestroy", int(DnnHandle handle))                                               \
  X(set_stream, "cudnnSetStream", int(DnnHandle handle, void* stream))                            \
  X(version, "cudnnGetVersion", size_t())                                                         \
  X(error_string, "cudnnGetErrorString", const char*(int status))                                 \
  X(tensor_create, "cudnnCreateTensorDescriptor", int(DnnTensor * tensor))                        \
  X(tensor_destroy, "cudnnDestroyTensorDescriptor", int(DnnTensor tensor))                        \
  X(tensor_set, "cudnnSetTensorNdDescriptor",                                                     \
    int(DnnTensor tensor, DnnType type, int rank, const int* dims, const int* strides))           \
  X(filter_create, "cudnnCreateFilterDescriptor", int(DnnFilter * filter))                        \
  X(filter_destroy, "cudnnDestroyFilterDescriptor", int(DnnFilter filter))                        \
  X(filter_set, "cudnnSetFilterNdDescriptor",                                                     \
    int(DnnFilter filter, DnnType type, int format, int rank, const int* dims))                   \
  X(convolution_create, "cudnnCreateConvolutionDescriptor", int(DnnConvolution * convolution))    \
  X(convolution_destroy, "cudnnDestroyConvolutionDescriptor", int(DnnConvolution convolution))    \
  X(convolution_set, "cudnnSetConvolutionNdDescriptor",                                           \
    int(DnnConvolution convolution, int rank, const int* pads, const int* strides,                \
        const int* dilations, int mode, DnnType compute))                                         \
  X(convolution_groups, "cudnnSetConvolutionGroupCount",                                          \
    int(DnnConvolution convolution, int groups))                                                  \
  X(convolution_math, "cudnnSetConvolutionMathType", int(DnnConvolution convolution, int math))   \
  X(choose, "cudnnGetConvolutionForwardAlgorithm_v7",                                             \
    int(DnnHandle handle, DnnTensor x, DnnFilter w, DnnConvolution convolution, DnnTensor y,      \
        int num_wanted, int* num_found, DnnAlgorithm* found))                                     \
  X(measure, "cudnnFindConvolutionForwardAlgorithm",                                              \
    int(DnnHandle handle, DnnTensor x, DnnFilter w, DnnConvolution convolution, DnnTensor y,      \
        int num_wanted, int* num_found, DnnAlgorithm* found))                                     \
  X(convolve, "cudnnConvolutionForward",                                                          \
    int(DnnHandle handle, const void* alpha, DnnTensor x_tensor, const void* x, DnnFilter filter, \
        const void* w, DnnConvolution convolution, int algorithm, void* workspace,                \
        size_t workspace_bytes, const void* beta, DnnTensor y_tensor, void* y))                   \
  X(convolve_with_addends, "cudnnConvolutionBiasActivationForward",                               \
    int(DnnHandle handle, const void* alpha, DnnTensor x_tensor, const void* x, DnnFilter filter, \
        const void* w, DnnConvolution convolution, int algorithm, void* workspace,                \
        size_t workspace_bytes, const void* z_factor, DnnTensor z_tensor, const void* z,          \
        DnnTensor bias_tensor, const void* bias, DnnActivation activation, DnnTensor y_tensor,    \
        void* y))                                                                                 \
  X(activation_create, "cudnnCreateActivationDescriptor", int(DnnActivation * activation))        \
  X(activation_destroy, "cudnnDestroyActivationDescriptor", int(DnnActivation activation))        \
  X(activation_set, "cudnnSetActivationDescriptor",                                               \
    int(DnnActivation activation, int mode, int nans, double bound))                              \
  X(activate, "cudnnActivationForward",                                                           \
    int(DnnHandle handle, DnnActivation activation, const void* alpha, DnnTensor x_tensor,        \
        const void* x, const void* beta, DnnTensor y_tensor, void* y))                            \
  X(add, "cudnnAddTensor",                                                                        \
    int(DnnHandle handle, const void* alpha, DnnTensor a_tensor, const void* a, const void* beta, \
        DnnTensor c_tensor, void* c))                                                             \
  X(pooling_create, "cudnnCreatePoolingDescriptor", int(DnnPooling * pooling))                    \
  X(pooling_destroy, "cudnnDestroyPoolingDescriptor", int(DnnPooling pooling))                    \
  X(pooling_set, "cudnnSetPoolingNdDescriptor",                                                   \
    int(DnnPooling pooling, DnnPoolMode mode, int nans, int rank, const int* sizes,               \
        const int* pads, const int* strides))                                                     \
  X(pool, "cudnnPoolingForward",                                                                  \
    int(DnnHandle handle, DnnPooling pooling, const void* alpha, DnnTensor x_tensor,              \
        const void* x, const void* beta, DnnTensor y_tensor, void* y))                            \
  X(normalize, "cudnnBatchNormalizationForwardInference",                                         \
    int(DnnHandle handle, int mode, const void* alpha, const void* beta, DnnTensor x_tensor,      \
        const void* x, DnnTensor y_tensor, void* y, DnnTensor channel_tensor, const void* scale,  \
        const void* bias, const void* mean, const void* variance, double epsilon))

struct CudnnApi {
#define EDDY_CUDNN_ENTRY(entry, symbol, ...) std::function<__VA_ARGS__> entry;
  EDDY_CUDNN_CALLS(EDDY_CUDNN_ENTRY)
#undef EDDY_CUDNN_ENTRY
  std::shared_ptr<HandlePool<DnnHandle>> handles = std::make_shared<HandlePool<DnnHandle>>();
};

// The process's table. Errors: kNotFound, saying what was looked for, and kUnsupported for a
// library that lacks a call; our own kernels then do its work.
Result<std::shared_ptr<const CudnnApi>> load_cudnn();
// The same from another file; for tests.
Result<std::shared_ptr<const CudnnApi>> load_cudnn_from(const char* library);

}  // namespace eddy
