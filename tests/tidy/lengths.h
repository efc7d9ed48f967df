#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/tidy/tree.h"

namespace eddy::tidy {

inline constexpr int kFileLines = 500;
inline constexpr int kFunctionLines = 70;
inline constexpr int kColumns = 100;

// What is longer than the rules want. A comment `// long: the reason` excuses it: in the
// first comment of a file, or in the comment right above a function.
struct Long {
  std::string path;
  int line = 0;  // 0 for a file.
  int lines = 0;
  std::string name;  // Of the function; empty for a file.
  bool excused = false;
};

std::vector<Long> find_long_files(const Tree& tree);
std::vector<Long> find_long_functions(const Tree& tree);

// The findings of both rules without an excuse.
std::vector<Finding> check_lengths(const Tree& tree);

// Lines of C++ wider than kColumns characters (of UTF-8, not bytes): what clang-format would break.
// A line with a quote is left alone, since a literal cannot be broken.
std::vector<Finding> check_widths(const Tree& tree);

// A function with a body, from the first line of its declaration to the closing brace.
struct Function {
  std::string name;
  int first_line = 0;
  int last_line = 0;
};

// The functions defined at namespace or class scope. Reads the shape of formatted code: braces,
// and the words before them. A brace right behind a word (`x_{1}`) is an initializer, one behind
// a space is a body. Lambdas belong to the function around them.
std::vector<Function> functions_of(std::string_view text);

}  // namespace eddy::tidy
