// eddy bench embedding: what the C interface costs beside the C++ one and ONNX Runtime's, in the
// same process, A B A B.
//
//   identity   a graph of one node on one element, bound and run again and again; by names, with
//              outputs allocated
//   loop       10^6 trips of a loop, per iteration
//   operator   the same with an operator of the caller's in the loop: a C++ kernel, or a C function
//              behind the table
//   round trip from submit to a callback on the caller's executor, or a wait; p50 and p99
//
// Results of all are compared in a run that is not measured.
#pragma once

#include "tools/bench/bench_suite.h"

namespace eddy {

// kDiffers when a result is another one's. Slower than a rival is no failure.
Outcome bench_embedding(const BenchOptions& options, Console& console, Interrupts& interrupts);

}  // namespace eddy
