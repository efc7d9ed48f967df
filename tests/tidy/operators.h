#pragma once

#include <vector>

#include "tests/tidy/tree.h"

namespace eddy::tidy {

// An operator of one input stands in ops/schema/unary_list.h, the reference, the CPU loops, the
// device's functions and the gradients.
inline constexpr size_t kOperatorFiles = 5;

// Finds the lists of operators in C++ or CUDA files of ops, where there are more than these: files
// that name ten or more of unary_list.h.
std::vector<Finding> check_operator_lists(const Tree& tree);

}  // namespace eddy::tidy
