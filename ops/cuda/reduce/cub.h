// CubApi: the interface to CUB: reductions, running sums and sorts of one long line by all of the
// device, in one table.
//
//   size_t bytes = 0;
//   api.sum(call, nullptr, &bytes, stream);  // gives the size of the scratch memory api.sum(call,
//   scratch, &bytes, stream);  // enqueues
//
// CUB is a library of templates, so the table's functions are compiled here (cub_*.cu), for host
// and device, and stand on the runtime library, linked statically. That works beside the driver's
// interface: it takes the context that is current, and the driver's streams are its streams. It
// opens the driver when load_cub() first calls it; before, a process pays for the registration of
// some kernels only, and needs no driver. Tests put a fake underneath.
//
// Captures: calls enqueue kernels and fills, which any capture and a conditional node's body may
// hold. The runtime library loads a kernel when it is first launched, which a relaxed capture
// permits (CUDA driver API, cuThreadExchangeStreamCaptureMode), and ours are (runtime/cuda's
// recorder); in a capture of another mode a first call fails.
//
// Determinism: sums of floats have the same bits from run to run on one kind of device (CUB's
// documentation of DeviceReduce, "run-to-run determinism"); on another kind perhaps others.
// Threads: any. Errors: a call returns the runtime library's number, 0 for success.
// Source: NVIDIA, CUB 3.0: DeviceReduce, DeviceScan, DeviceRadixSort, DeviceFor.
#pragma once

#include <functional>
#include <memory>

#include "graph/base/status.h"
#include "ops/cuda/reduce/cub_calls.h"

namespace eddy {

struct CubApi {
  template <typename Call>
  using Entry =
      std::function<int(const Call& call, void* scratch, size_t* scratch_bytes, void* stream)>;

  Entry<cuda::SumCall> sum;
  Entry<cuda::ExtremeCall> extreme;
  Entry<cuda::CumSumCall> cum_sum;
  Entry<cuda::TopKCall> top_k;
  std::function<const char*(int status)> error_text;
  std::function<int()> version;  // 300001 for 3.0.1
};

// Errors: kUnsupported, saying why: a build without a CUDA toolkit, no driver, one that is older
// than the toolkit's; long lines then run on our own kernels.
Result<std::shared_ptr<const CubApi>> load_cub();

}  // namespace eddy
