// How often this program has called operator new: linking this library replaces it.
#pragma once

#include <cstdint>

namespace eddy::testing {

uint64_t num_allocations();

}  // namespace eddy::testing
