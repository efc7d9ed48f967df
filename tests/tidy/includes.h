#pragma once

#include <vector>

#include "tests/tidy/tree.h"

namespace eddy::tidy {

// Which folder may include which, from the quoted includes of all C++ and CUDA files.

// Finds includes that point up in tools, examples, tests -> runtime -> ops -> graph, and
// quoted includes that are no path from the root (those would hide from the other checks).
std::vector<Finding> check_arrows(const Tree& tree);

// Finds circles of includes, between files and between folders. A folder is one directory
// without those below it. One finding for each knot of circles: a shortest circle in it.
std::vector<Finding> check_circles(const Tree& tree);

}  // namespace eddy::tidy
