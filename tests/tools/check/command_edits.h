// The defects that can be planted in the code of strands, by name.
#pragma once

#include <utility>
#include <vector>

#include "tests/tools/check/mutants.h"

namespace eddy::check {

std::vector<std::pair<const char*, CommandEdit>> command_edits();

// No defect: counts how often the n-th wait is reached, where a lost wait is lost.
CommandEdit count_wait(uint64_t& count);

}  // namespace eddy::check
