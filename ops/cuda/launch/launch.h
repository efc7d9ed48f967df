// launch_threads, launch_blocks: one launch of a kernel, sized to the work and the device.
//
// Kernels take any grid (they stride over their items), so there are never more blocks than fill
// the device a few times. True, or false after args.fail(). Nothing to do: nothing is launched.
#pragma once

#include <algorithm>
#include <optional>

#include "graph/base/check.h"
#include "ops/cuda/device/params.h"
#include "ops/cuda/launch/families.h"

namespace eddy::cuda {

inline uint32_t num_blocks_for(uint64_t wanted, const CudaLauncher& launcher) {
  EDDY_DCHECK(launcher.num_resident_blocks() > 0) << "a device that holds no block";
  const uint64_t most = uint64_t{4} * launcher.num_resident_blocks();
  return static_cast<uint32_t>(std::clamp<uint64_t>(wanted, 1, most));
}

inline bool launch_grid(const KernelArgs& args, CudaLauncher& launcher, CudaFunction function,
                        uint64_t num_blocks, const void* params) {
  EDDY_DCHECK(function != nullptr && params != nullptr)
      << "a kernel that was not bound is launched";
  Status status =
      launcher.launch(function, num_blocks_for(num_blocks, launcher), params, args.stream);
  return status.is_ok() || args.fail(std::move(status));
}

// A kernel of threads, one an item.
template <typename Params>
bool launch_threads(const KernelArgs& args, CudaLauncher& launcher, CudaFunction function,
                    uint64_t num_items, const Params& params) {
  if (num_items == 0) return true;
  return launch_grid(args, launcher, function, (num_items + kBlockThreads - 1) / kBlockThreads,
                     &params);
}

// A kernel of blocks, one an item.
template <typename Params>
bool launch_blocks(const KernelArgs& args, CudaLauncher& launcher, CudaFunction function,
                   uint64_t num_items, const Params& params) {
  return num_items == 0 || launch_grid(args, launcher, function, num_items, &params);
}

// The outcome of a call to a library: true or false, as a kernel's run() returns them, or nothing:
// our own kernel is to do it.
inline std::optional<bool> outcome_of(const KernelArgs& args, const Result<bool>& is_done) {
  if (!is_done.is_ok()) return args.fail(is_done.status());
  return *is_done ? std::optional(true) : std::nullopt;
}

inline uint64_t count_of(const TensorView& view) { return static_cast<uint64_t>(view.count()); }

// Where the kernel may record a fault; null after args.fail().
inline DeviceFault* fault_or_null(const KernelArgs& args) {
  if (args.fault == nullptr) {
    args.fail(resource_exhausted("no memory in which a kernel could report its faults"));
  }
  return args.fault;
}

}  // namespace eddy::cuda
