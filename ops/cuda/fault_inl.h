// report_fault: how a thread says what it found wrong (ops/contract/device_fault.h).
#pragma once

#include "ops/contract/device_fault.h"
#include "ops/cuda/scalar_ops.h"

namespace eddy::cuda {

EDDY_HD void report_fault(DeviceFault* fault, int32_t kind, int32_t axis, int64_t value,
                          int64_t limit) {
#ifdef __CUDA_ARCH__
  if (atomicCAS_system(&fault->kind, DeviceFault::kNone, DeviceFault::kWriting) !=
      DeviceFault::kNone) {
    return;
  }
#else
  if (fault->kind != DeviceFault::kNone) return;
#endif
  fault->axis = axis;
  fault->value = value;
  fault->limit = limit;
#ifdef __CUDA_ARCH__
  __threadfence_system();
#endif
  *static_cast<volatile int32_t*>(&fault->kind) = kind;
}

}  // namespace eddy::cuda
