// make_cuda_device: a GPU as a device of a session: streams and memory (cuda_device.h), the kernels
// of ops/cuda on a loaded module, libraries where they are found, and the copies.
//
//   SessionOptions options;
//   options.make_devices = {[] { return make_cuda_device({.device = {.ordinal = 0}}); }};
//
// Errors: what opening the driver, the device and the kernels' images says; kUnsupported for a
// build without kernels. Cost: the driver's start and loading images and libraries, some 100 ms
// each.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/cuda/compiled/kernel_compiler.h"
#include "ops/cuda/libraries/cublas_lt.h"
#include "ops/cuda/libraries/cudnn.h"
#include "ops/cuda/reduce/cub.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/device/execution_device.h"

namespace eddy {

struct CudaOptions {
  CudaDeviceOptions device = {};
  // Where machine code of fused kernels is kept between processes; "": nowhere.
  std::string kernel_cache_folder = CodeCache::default_folder();
  // float32 products and convolutions may round their operands to 10 bits of fraction: faster, less
  // exact.
  bool allows_tf32 = false;
  // Convolutions of known shapes run by the algorithm of the library that is measured to be the
  // fastest when a program with that shape is first bound on this kind of GPU. Algorithms round
  // differently, so the choice is kept in kernel_cache_folder: as long as it stands there, bits are
  // the same from process to process, but not on another machine. Without a folder none is
  // measured.
  bool measures_convolutions = false;
  // Convolutions of constant weights, and what stands between them, work on images whose channels
  // come last, as the library's kernels for tensor cores read them (lay_out_images.h): no image is
  // turned over inside a call. Normalizations and biases then round otherwise. None: as with
  // allows_tf32, with which ResNet-50 takes 0.53 ms so, and 0.90 ms with channels first (H200);
  // without, few kernels of float32 read channels last. Without cuDNN, or with
  // SessionOptions::blocks_channels or simplify off, they come first.
  std::optional<bool> channels_last = {};
  // Of the caller's own operators (callers_kernels.h); what they name and hold outlives the device.
  std::vector<KernelEntry> kernels = {};
};

// The GPU of a device name: for "cuda" the first, for "cuda:2" that one, as report_cuda() counts
// them; none: it names no GPU.
std::optional<int> cuda_ordinal(std::string_view device);

// What a device is made on: the machine's, or a test's.
struct CudaSources {
  std::shared_ptr<const CudaApi> api;
  std::span<const void* const> images;  // of ops/cuda/images/image.h; borrowed for the call
  const void* loop_image_or_null = nullptr;
  std::shared_ptr<const CublasLtApi> cublas_lt_or_null = nullptr;
  std::shared_ptr<const CudnnApi> cudnn_or_null = nullptr;
  std::shared_ptr<const CubApi> cub_or_null = nullptr;
  // Null: elementwise nodes are not fused, and why.
  std::shared_ptr<const NvrtcApi> nvrtc_or_null = nullptr;
  std::string why_no_nvrtc = "there is no compiler for fused kernels";
};

Result<ExecutionDevice> make_cuda_device(const CudaOptions& options);
Result<ExecutionDevice> make_cuda_device(const CudaSources& sources, const CudaOptions& options);

// Whether kernels of recordings begin before those before them have ended (programmatic_launch.h),
// a quarter to a half faster, or why not. Of a device made here.
std::string early_launches_text(const ExecutionDevice& made);

}  // namespace eddy
