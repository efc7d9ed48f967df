// The memory of this machine, as far as a process of Eddy may have it.
#pragma once

#include <cstdint>

namespace eddy {

// Physical memory, or the limit of the control group where that is less.
uint64_t machine_memory_bytes();

}  // namespace eddy
