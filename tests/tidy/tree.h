#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::tidy {

// The source tree as plain data, so that a check can run on a planted one: paths relative to
// the root ("graph/base/status.h") with contents. Folders follow from the paths.
struct Tree {
  std::map<std::string, std::string> files;
};

// A breach of a rule. The line counts from 1; 0 means the file or folder as a whole.
struct Finding {
  std::string path;
  int line = 0;
  std::string what;
};

// Reads the tree below `root`, except what Bazel, git and editors put there: names that begin
// with a dot or with "bazel-".
Tree load_tree(const std::filesystem::path& root);

// "path:line: what", without the line if it is 0.
std::string to_string(const Finding& finding);

// The folder of a path, "" for the root; its first component; its last one.
std::string folder_of(std::string_view path);
std::string top_of(std::string_view path);
std::string name_of(std::string_view path);

// Whether the path is a source file that the rules on length and includes apply to.
bool is_cpp(std::string_view path);

// Whether the tree has that file, or a folder of that name.
bool exists(const Tree& tree, std::string_view path);

std::vector<std::string> lines_of(std::string_view text);

}  // namespace eddy::tidy
