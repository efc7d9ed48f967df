// The parts of the GPU report: each runs on a device it is given and returns one JSON document.
//
//   {"part":"conformance", "rows":[{"op":"Add","type":"float","status":"passed"}, …], "failed":0}
//
// Errors: a row that cannot run has status "failed" and the reason; a lost device ends the part,
// and the document's "error" holds it. A part that runs out of time ends with "out_of_time", no
// error (part_report.h).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "ops/cuda/cuda_kernels.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cuda_module.h"
#include "runtime/device/execution_device.h"
#include "tools/gpu/part_report.h"

namespace eddy {

struct GpuUnderReport {
  CudaDevice& device;
  CudaModule& module;
  // What moves the device while the report waits: nothing on a GPU, steps on a fake one.
  std::function<void()> progress = [] {};
  // The libraries found; to be used at every size (DnnOptions, LongLinesOptions).
  CudaLibraries libraries = {};
  // The same, but that float32 products may round their operands to TF32; empty: no such rows.
  CudaLibraries tf32_libraries = {};
  // The same with TF32, and convolutions by the algorithm that was measured to be the fastest.
  CudaLibraries measured_libraries = {};
  ReportPace pace = {};
  bool has_libraries() const {
    return libraries.products != nullptr || libraries.dnn != nullptr ||
           libraries.long_lines != nullptr;
  }
};

// Every operator with a CUDA kernel, by type, against the reference kernels, from upload to
// download: our own kernels, then what the libraries do themselves of the same calls ("way"),
// float32 products also with TF32, within what its 10 bits of fraction allow; "left_out" names
// those without a call (conformance_cases.h). Rows with differing values, and calls that fail,
// count as failed.
nlohmann::json report_conformance(const GpuUnderReport& gpu, uint64_t seed);

// Host-driven loops of one small kernel: launch, observe the end by the stream's word, decide,
// again; 1, 2, 4, 8 and 32 loops side by side. Microseconds an iteration, the loops' iterations
// together being counted, the median of five runs with the fastest and the slowest; and a round of
// all.
nlohmann::json report_loops(const GpuUnderReport& gpu, int num_iterations);

// The same calls by our own kernels and by the libraries, at sizes around those from which nodes go
// to a library (DnnOptions, LongLinesOptions), float32 products and convolutions with and
// without TF32, convolutions also by measured algorithms, and of images whose channels come last,
// with TF32: microseconds of a call in a recording of
// many, the median of `num_runs` with the fastest and the slowest. `is_small`: sizes for tests.
nlohmann::json report_libraries(const GpuUnderReport& gpu, bool is_small, int num_runs);

// For parts that make sessions, or use a device as a session does.
struct SessionsUnderReport {
  MakeDevice make_device;
  // The same, but that float32 products may round their operands to TF32; empty: no such rows.
  MakeDevice make_tf32_device = {};
  // The same with TF32, and convolutions by measured algorithms.
  MakeDevice make_measured_device = {};
  // The same with TF32, and images whose channels come first.
  MakeDevice make_channels_first_device = {};
  bool is_small = false;   // sizes for tests
  int num_warm_runs = 13;  // enough for loops to be measured in all four ways
  int num_runs = 9;
  std::function<void()> progress = [] {};  // as above
  ReportPace pace = {};
};

// Small loops, each way of driving them: a scalar counter, a matmul, eight of these side by side,
// nested ones, a 4-way case inside, 32 side by side, named host functions that decide; those of
// products with TF32, too. Against the CPU's results and trips; microseconds a round.
nlohmann::json report_control(const SessionsUnderReport& what);

// The same loops as conditional graphs by the driver's calls and a kernel of their own
// (raw_graphs.h), with nothing of Eddy in them; and the floor of host predicates: a graph of 1 and
// of 10 kernels, launched, and a spin on the word that the last one writes, of 32 such graphs by
// turns, too. `rival_image_or_null`:
// rival_image(). Counts are checked; microseconds a round.
nlohmann::json report_hand_written(const GpuUnderReport& gpu, const void* rival_image_or_null,
                                   bool is_small, int num_runs);

// `num_loops` conditional loops of `num_kernels` in a chain at once, on streams of their own. Loses
// the device where it does not stand that many: one probe, one process.
nlohmann::json report_probe(const SessionsUnderReport& what, int num_loops, int num_kernels);

// Loses the device on purpose, in the fourth round of a loop that the device drives or the host:
// the run must end with kDeviceLost, node and iteration, whatever comes after it with kDeviceLost
// at once, and nothing may hang. One report, one process. `rival_image_or_null`: rival_image().
nlohmann::json report_lost(const SessionsUnderReport& what, const void* rival_image_or_null,
                           bool by_device);

// The ways of driving the small loops bit for bit: each against the host's on the same device,
// which rounds as they do (TF32 is off); and run against run. A way that a loop does not have is
// "refused".
nlohmann::json report_bits(const SessionsUnderReport& what);

// The processor time of a session, as a share of one core: for a run that waits some 100 ms for a
// loop that the device drives, at most 0.05; for an idle session, nothing measurable. "short": the
// run was too short to measure.
nlohmann::json report_waiting(const SessionsUnderReport& what);

// The dynamic models of examples/dynamic_models, their loops driven by the host, by the device and
// as Eddy chooses: results against the CPU's, trips, and milliseconds a run.
nlohmann::json report_models(const SessionsUnderReport& what);

// Networks that tools/gpu/export_networks.py has left in a folder: NAME/model.onnx with input.npy
// and output.npy, one stream and several, against that output.
nlohmann::json report_networks(const SessionsUnderReport& what, const std::string& folder);

}  // namespace eddy
