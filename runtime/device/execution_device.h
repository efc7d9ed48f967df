// ExecutionDevice: a device with the kernels that a program binds there. A session has a list of
// them, the host's CPU first; a plan's device indices point into it.
//
// Kernels of a device beside the host's include its copies: eddy.ToDevice and eddy.ToHost enqueue
// a copy between its memory and the host's on the stream they are given.
//
// Ownership: kernels may refer to the device; either pointer keeps what both need. Nothing of a
// program outlives its devices.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "graph/base/check.h"
#include "ops/contract/registry.h"
#include "runtime/device/device.h"
#include "runtime/device/staging.h"

namespace eddy {

struct ExecutionDevice {
  std::shared_ptr<Device> device;
  std::shared_ptr<const KernelRegistry> kernels;
  // Its convolutions are to read images whose channels come last (graph/compile/image_layout.h).
  bool wants_channels_last = false;
};

// In which the host's values live; null: no device has any.
inline Staging* first_staging_or_null(std::span<const ExecutionDevice> devices) {
  for (const ExecutionDevice& each : devices) {
    EDDY_CHECK(each.device != nullptr) << "a place in the list without a device";
    if (Staging* const staging = each.device->staging_or_null()) return staging;
  }
  return nullptr;
}

using MakeDevice = std::function<Result<ExecutionDevice>()>;

}  // namespace eddy
