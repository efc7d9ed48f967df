// eddy bench dynamic: the models of examples/dynamic_models at full size, on one thread or more,
// with ONNX Runtime in the same run where it is found and can run them.
//
// Every model is written to a file for the rival and compared with it; with batch 1 also with
// plain loops, which a larger batch would keep waiting. Trip counts must be equal.
#pragma once

#include "tools/bench/bench_suite.h"

namespace eddy {

// kDiffers when a result is not the rival's or the plain loops'. Slower than the rival is no
// failure: machines differ.
Outcome bench_dynamic(const BenchOptions& options, Console& console, Interrupts& interrupts);

}  // namespace eddy
