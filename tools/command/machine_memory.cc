#include "tools/command/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace eddy {

uint64_t machine_memory_bytes() {
  const uint64_t physical = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                            static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
  // Version 2, then version 1; without a limit the former has "max", the latter some 2^63.
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    uint64_t limit = 0;
    if (std::ifstream(path) >> limit && limit > 0) return std::min(physical, limit);
  }
  return physical;
}

}  // namespace eddy
