// eddy bench loops: the loop models of tests/bench/models, Silero VAD and loops over an operator
// of our own, on one thread, with ONNX Runtime in the same run where it is found.
#pragma once

#include <string>

#include "tools/bench/bench_suite.h"

namespace eddy {

struct BenchLoopsArguments {
  std::string models;  // folder; empty: of the checkout
  std::string silero;  // model file; empty: where the demo keeps it
  BenchOptions common;
};

// kDiffers when a result is not the rival's. A missed target is no failure: machines differ.
Outcome bench_loops(const BenchLoopsArguments& arguments, Console& console, Interrupts& interrupts);

}  // namespace eddy
