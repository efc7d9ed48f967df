// program_fingerprint: 32 digits that stand for everything that decides the bits of a program's
// results, beside its inputs.
//
// In it: Eddy's version and compiler, the kernels' libraries and vector instructions, the graph as
// it runs (operators, attributes, types, the bytes of constants), the plan (streams, order,
// records, waits), the kernel chosen for each node and who decides loops. Kernels split work by
// shape alone, so the partition follows from these. Not in it: names of nodes and values, the
// number of threads, memory limits, the code of custom kernels and host functions.
//
// Equal fingerprints: bitwise equal results, in any process and under any load. Different ones say
// nothing about results. Cost: reads all constants once, some 15 GB/s.
#pragma once

#include <string>

#include "graph/schedule/plan.h"
#include "runtime/execute/program.h"

namespace eddy {

std::string program_fingerprint(const Program& program, bool is_host_driven);

}  // namespace eddy
