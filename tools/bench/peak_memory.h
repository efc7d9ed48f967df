// Peak memory of one model under one contender, each in a process of its own: a peak never falls.
//
// The process is this program again, as `eddy bench peak`: it loads the model, runs it kPeakRuns
// times on one thread and prints its resident peak, libraries and all.
//
// Errors: kNotFound and kInvalidArgument for files; kRunFailed with what the other process said.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/io/host_value.h"
#include "tools/command/console.h"
#include "tools/command/outcome.h"

namespace eddy {

inline constexpr int kPeakRuns = 3;

struct PeakArguments {
  std::string model = {};                 // an ONNX file
  std::string contender = "eddy";         // or "onnxruntime"
  std::vector<std::string> inputs = {};   // NAME=FILE, .npy
  std::vector<std::string> outputs = {};  // names
};

// The peak of this process since it began; 0 where the system does not report it.
uint64_t resident_peak_bytes();

// Runs this program again with `words` ("eddy" first), waits for it and gives what it wrote to
// standard output. kRunFailed when it ends otherwise than with success.
Result<std::string> run_this_program(const std::vector<std::string>& words);

// In the process that is measured.
Outcome bench_peak(const PeakArguments& arguments, const std::string& ort, Console& console);

// Starts that process and waits for it; bytes.
Result<uint64_t> measure_peak(const PeakArguments& arguments, const std::string& ort);

// Writes the values to files whose paths begin with `stem` and names them in `arguments.inputs`;
// remove_peak_inputs() removes them.
Status write_peak_inputs(const std::vector<std::pair<std::string, const HostValue*>>& values,
                         const std::string& stem, PeakArguments& arguments);
void remove_peak_inputs(const PeakArguments& arguments);

}  // namespace eddy
