#include "tests/tidy/tree.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

namespace eddy::tidy {

namespace fs = std::filesystem;

Tree load_tree(const fs::path& root) {
  Tree tree;
  for (auto entry = fs::recursive_directory_iterator(root); entry != fs::end(entry); ++entry) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(".") || name.starts_with("bazel-")) {
      entry.disable_recursion_pending();
      continue;
    }
    if (!entry->is_regular_file()) continue;
    std::ifstream in(entry->path(), std::ios::binary);
    tree.files[entry->path().lexically_relative(root).generic_string()] =
        std::string(std::istreambuf_iterator<char>(in), {});
  }
  return tree;
}

std::string to_string(const Finding& finding) {
  const std::string line = finding.line > 0 ? ":" + std::to_string(finding.line) : "";
  return finding.path + line + ": " + finding.what;
}

std::string folder_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? "" : std::string(path.substr(0, slash));
}

std::string top_of(std::string_view path) { return std::string(path.substr(0, path.find('/'))); }

std::string name_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(slash == path.npos ? path : path.substr(slash + 1));
}

bool is_cpp(std::string_view path) {
  static constexpr std::array<std::string_view, 5> kEndings = {".h", ".cc", ".c", ".cu", ".cuh"};
  return std::ranges::any_of(kEndings, [&](auto ending) { return path.ends_with(ending); });
}

bool exists(const Tree& tree, std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  if (path.empty() || tree.files.contains(std::string(path))) return true;
  const std::string folder = std::string(path) + "/";
  const auto at = tree.files.lower_bound(folder);
  return at != tree.files.end() && at->first.starts_with(folder);
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace eddy::tidy
