// The defects that can be planted in a recorded list of commands, by name.
#pragma once

#include <utility>
#include <vector>

#include "tests/tools/check/mutants.h"

namespace eddy::check {

std::vector<std::pair<const char*, CommandEdit>> command_edits();

}  // namespace eddy::check
