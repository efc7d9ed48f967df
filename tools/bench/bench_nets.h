// eddy bench nets: networks, one run after another, with ONNX Runtime in the same run where it is
// found.
//
// First every *.onnx file of the folder, if one is named, in the order of the names, then the
// networks of examples/nets at full size, written to a temporary folder that goes again, also on
// failure and interrupt. Each is measured once for each number of threads. A session of Eddy's has
// that many workers, one of the rival's that many threads within an operator. Both run the same
// file on the same inputs, from a seed that the report names: a built network's own, and its
// weights; of a file random values (random_value of tools/command/inputs.h, open dimensions 1). The
// outputs of one run are compared before the clock starts.
//
// A network that Eddy cannot load, feed or run gets a row with the reason instead of times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/bench/bench_suite.h"

namespace eddy {

struct BenchNetsArguments {
  std::string models;  // folder; empty: the built ones alone
  uint64_t seed = 1;   // of the inputs, and of built weights
  BenchOptions common;
};

// kDiffers when a result is not the rival's; the first failure when Eddy ran none of the networks.
// Slower than the rival is no failure: machines differ.
Outcome bench_nets(const BenchNetsArguments& arguments, Console& console, Interrupts& interrupts);

}  // namespace eddy
