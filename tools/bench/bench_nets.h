// eddy bench nets: networks stored as ONNX files, one run after another, with ONNX Runtime in the
// same run where it is found.
//
// Every *.onnx file of the folder is a case, in the order of the names, measured once for each
// number of threads. A session of Eddy's has that many workers, one of the rival's that many
// threads within an operator. Both run the file as it is, on the same inputs: random values
// (random_value of tools/command/inputs.h, open dimensions 1) of a seed that the report names. The
// outputs of one run are compared before the clock starts.
//
// A model that Eddy cannot load, feed or run gets a row with the reason instead of times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/bench/bench_suite.h"

namespace eddy {

struct BenchNetsArguments {
  std::string models;        // folder; it has no default
  std::vector<int> threads;  // 0: one for each processor; empty: 1, and one for each processor
  uint64_t seed = 1;         // of the inputs
  BenchOptions common;
};

// kDiffers when a result is not the rival's; the first failure when Eddy ran none of the models.
// Slower than the rival is no failure: machines differ.
Outcome bench_nets(const BenchNetsArguments& arguments, Console& console, Interrupts& interrupts);

}  // namespace eddy
