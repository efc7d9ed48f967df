#pragma once

#include <vector>

#include "tests/tidy/tree.h"

namespace eddy::tidy {

// One screen.
inline constexpr int kReadmeLines = 60;

// Finds names in READMEs that do not exist: words in backticks that look like a path of the
// repository or a Bazel label (`graph/base/status.h`, `ir/`, `//graph/base:status`). A path
// counts from the root or from the README's folder, a bare file name like `status.h` in the
// README's folder or anywhere below it. Blocks between triple backticks and words with
// wildcards are left alone.
std::vector<Finding> check_readme_names(const Tree& tree);

// Finds promises of the root README's section "Reliability" (its list's points, a subject in bold
// each) that name no file of a test in backticks, and a section without promises.
std::vector<Finding> check_promises(const Tree& tree);

// Finds folders with C++ or CUDA files but no BUILD or no README.md, and READMEs longer than one
// screen (not the one at the root). tests/X needs no README where X is a folder: the README of X
// covers both.
std::vector<Finding> check_folders(const Tree& tree);

}  // namespace eddy::tidy
