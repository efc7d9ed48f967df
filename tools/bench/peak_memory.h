// Peak memory of one model under one contender, each in a process of its own: a peak never falls.
//
// The process is this program again, as `eddy bench peak`: it loads the model, runs it kPeakRuns
// times on one thread and prints its resident peak, libraries and all.
//
// Errors: kNotFound and kInvalidArgument for files; kRunFailed with the other process's error text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/bench/loop_cases.h"
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

// The peak of this process since its start; 0 where the system does not report it.
uint64_t resident_peak_bytes();

// Runs this program again with `words` ("eddy" first), waits for it and gives what it wrote to
// standard output. kRunFailed when it ends otherwise than with success.
Result<std::string> run_this_program(const std::vector<std::string>& words);

// In the process that is measured.
Outcome bench_peak(const PeakArguments& arguments, const std::string& ort, Console& console);

// Of the two contenders' processes; 0: not measured.
struct Peaks {
  uint64_t eddy_bytes = 0, rival_bytes = 0;
};

// Starts a process for each contender, with the run's feed; the rival where there is one.
Result<Peaks> measure_peaks(const std::string& model, EddyRun& run, bool has_rival,
                            const std::string& ort);

// "12.3 / 45.6": megabytes.
std::string peaks_text(const Peaks& peaks);

// As "peak_bytes" of the row's "eddy" and "onnxruntime".
void add_peaks(const Peaks& peaks, Json& row);

}  // namespace eddy
