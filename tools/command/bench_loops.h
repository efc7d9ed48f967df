// eddy bench loops: the loop models of tests/bench/models, Silero VAD and loops over an operator
// of our own, on one thread, with ONNX Runtime in the same run where it is found.
#pragma once

#include <string>

#include "tools/command/console.h"
#include "tools/command/interrupts.h"
#include "tools/command/outcome.h"

namespace eddy {

struct BenchLoopsArguments {
  std::string models;  // folder; empty: of the checkout
  std::string ort;     // libonnxruntime.so.1; empty: where it usually is
  std::string silero;  // model file; empty: where the demo keeps it
  std::string filter;  // only cases with this in their names
  int rounds = 15;
  double budget_s = 4;
};

// kDiffers when a result is not the rival's. A missed target is no failure: machines differ.
Outcome bench_loops(const BenchLoopsArguments& arguments, Console& console, Interrupts& interrupts);

// "AMD EPYC, 2 processors".
std::string machine_name();

}  // namespace eddy
