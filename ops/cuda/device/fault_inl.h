// report_fault: how a thread reports what it found wrong (ops/contract/device_fault.h).
//
// A record without a fault may hold in `value` the address of a word that becomes 1 with its fault,
// 0 for none: loops that the device drives look at that word and end with the iteration in which a
// kernel found something, uncounted (loop_control.h). Only the thread that writes the record reads
// the address.
#pragma once

#include "ops/contract/device_fault.h"
#include "ops/cuda/device/scalar_ops.h"

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
  auto* const stop = reinterpret_cast<volatile uint32_t*>(fault->value);
  fault->axis = axis;
  fault->value = value;
  fault->limit = limit;
#ifdef __CUDA_ARCH__
  __threadfence_system();
  *static_cast<volatile int32_t*>(&fault->kind) = kind;
  if (stop != nullptr) *stop = 1;
#else
  __atomic_store_n(&fault->kind, kind, __ATOMIC_RELEASE);
  if (stop != nullptr) __atomic_store_n(stop, 1u, __ATOMIC_RELAXED);
#endif
}

}  // namespace eddy::cuda
