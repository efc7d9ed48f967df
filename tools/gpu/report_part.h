// The parts of the GPU report: each runs on a device it is given and returns one JSON document.
//
//   {"part":"conformance", "rows":[{"op":"Add","type":"float","status":"passed"}, …], "failed":0}
//
// Errors: a row that cannot run has status "failed" and says why; a lost device ends the part, and
// the document's "error" says so.
#pragma once

#include <functional>

#include <nlohmann/json.hpp>

#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cuda_module.h"

namespace eddy {

struct GpuUnderReport {
  CudaDevice& device;
  CudaModule& module;
  // What moves the device while the report waits: nothing on a GPU, steps on a fake one.
  std::function<void()> progress = [] {};
};

// Every operator with a CUDA kernel, by type, against the reference kernels, from upload to
// download. Rows whose values differ, and calls that fail, count as failed.
nlohmann::json report_conformance(const GpuUnderReport& gpu, uint64_t seed);

// Host-driven loops of one small kernel: launch, hear of it by the stream's word, decide, again;
// 1, 2, 4 and 8 loops side by side. Microseconds per iteration of each, the median of five runs
// with the fastest and the slowest.
nlohmann::json report_loops(const GpuUnderReport& gpu, int num_iterations);

}  // namespace eddy
