// The small loops that parts of the report measure.
#pragma once

#include <cstdint>
#include <string>

#include "tools/gpu/case_rows.h"

namespace eddy {

// Loops "loop0", "loop1" … side by side, each of which counts to `num_trips` by 1.
GpuCase counters(std::string name, int num_loops, int64_t num_trips);

// x = tanh(x w) in loops side by side, the i-th of num_trips - i * fewer rounds.
GpuCase matmuls(std::string name, int num_loops, int64_t num_trips, int64_t fewer, int64_t width);

// "outer", with another loop that counts in each of its rounds.
GpuCase nested(int64_t outer, int64_t inner);

// The branch is the counter's remainder by 4.
GpuCase with_case(int64_t num_trips);

// x = tanh(1.7 x + 0.1) of 64 numbers, which is rounded in every round.
GpuCase roundings(int64_t num_trips);

// A named host function decides, from the iteration's number and what the last one has made;
// `num_kernels` in a chain. Its library has add_predicate().
GpuCase host_decides(int num_kernels, int64_t num_trips);
Status add_predicate(Library& library);

}  // namespace eddy
