// eddy bench serve: many clients of one session, beside ONNX Runtime driven by as many threads.
//
// Three small models that the suite builds, with seeded weights: one of a single node, a perceptron
// (64, 256, 256, 10), and a loop whose data decide when it stops. Each is measured with so many
// clients, each of which sends its next request once it has its answer: by Session::run, by
// Session::run_async and a wait for its handle, and by ONNX Runtime's Run on the client's thread.
// Eddy's session has a worker for each processor, ONNX Runtime's one thread within an operator:
// requests are what runs side by side.
//
// With `batches`, also requests that share runs (runtime/batching), of the models whose loops no
// sample decides: as many as came while one run was under way.
//
// And one client of an idle session: between its requests it sleeps so long that all threads do.
// What run_async costs is measured against the wake of one sleeping thread.
//
// Results are compared before the clock starts. The report has p50, p99 and requests per second.
#pragma once

#include <vector>

#include "tools/bench/bench_suite.h"

namespace eddy {

struct BenchServeArguments {
  std::vector<int> clients = {1, 4, 16, 64};
  bool batches = false;
  BenchOptions common;
};

// kDiffers when a result is not the rival's. Slower than the rival is no failure.
Outcome bench_serve(const BenchServeArguments& arguments, Console& console, Interrupts& interrupts);

}  // namespace eddy
