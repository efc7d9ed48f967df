// program_fingerprint: 32 digits that stand for everything that decides the bits of a program's
// results, beside its inputs.
//
// In it: Eddy's version and compiler, the kernels' libraries and vector instructions, the graph as
// given (operators, attributes, types, the bytes of constants) and as it runs (of large constants,
// which follow from the former, only the shapes), the plan (streams, order, records, waits), the
// kernel chosen for each node and what decides loops. Kernels split work by shape alone, so the
// partition follows from these. Not in it: names of nodes and values, the number of threads, memory
// limits, the code of custom kernels and host functions.
//
// Equal fingerprints: bitwise equal results, in any process and under any load. Different ones say
// nothing about results. Cost: graph_fingerprint reads all constants once, some 15 GB/s; weights
// that a model keeps in bytes have not yet grown to floats there.
#pragma once

#include <functional>
#include <string>

#include "graph/base/fingerprint.h"
#include "graph/ir/graph.h"
#include "runtime/execute/executable.h"

namespace eddy {

// Of a graph before it is simplified, and so on. `evict_files`, which may be empty, is called now
// and then to let go of the pages that constants were read from.
Fingerprint graph_fingerprint(const Graph& graph, std::function<void()> evict_files = {});
// Of what was made of it; kernels may not have packed its constants yet.
Fingerprint simplified_fingerprint(const Fingerprint& given, const Graph& graph);
// `made`: of the program's graph.
std::string program_fingerprint(const Fingerprint& made, const Executable& program,
                                bool is_host_driven);

}  // namespace eddy
