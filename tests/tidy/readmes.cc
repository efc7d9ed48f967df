#include "tests/tidy/readmes.h"

#include <algorithm>
#include <array>
#include <regex>
#include <set>
#include <string>
#include <string_view>

namespace eddy::tidy {
namespace {

constexpr std::array<std::string_view, 6> kTops = {"graph", "ops",   "runtime",
                                                   "tools", "tests", "examples"};

struct Word {
  int line = 0;
  std::string text;
};

// The first word of each pair of backticks, outside of code blocks.
std::vector<Word> words_in_backticks(const std::string& text) {
  static const std::regex kQuoted("`([^` ]+)[^`]*`");
  std::vector<Word> words;
  bool in_block = false;
  int number = 0;
  for (const std::string& line : lines_of(text)) {
    ++number;
    if (line.find("```") != line.npos) {
      in_block = !in_block;
      continue;
    }
    if (in_block) continue;
    for (auto at = std::sregex_iterator(line.begin(), line.end(), kQuoted);
         at != std::sregex_iterator(); ++at) {
      words.push_back({number, (*at)[1]});
    }
  }
  return words;
}

std::string joined(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

// Labels: //graph/base, //graph/base:status, //graph/base/...
bool label_exists(const Tree& tree, const std::string& label) {
  static const std::regex kLabel("//([A-Za-z0-9_/-]*?)(/?\\.\\.\\.|:([A-Za-z0-9_.-]+))?");
  std::smatch match;
  if (!std::regex_match(label, match, kLabel)) return false;
  const std::string folder = match[1];
  if (!match[3].matched) return exists(tree, folder);
  const auto build = tree.files.find(joined(folder, "BUILD"));
  return build != tree.files.end() &&
         (build->second.find("\"" + match[3].str() + "\"") != std::string::npos ||
          tree.files.contains(joined(folder, match[3])));
}

bool has_source_ending(const std::string& word) {
  static constexpr std::array<std::string_view, 8> kEndings = {".h",   ".cc", ".cu", ".cuh",
                                                               ".bzl", ".md", ".py", ".sh"};
  return std::ranges::any_of(
      kEndings, [&](auto end) { return word.size() > end.size() && word.ends_with(end); });
}

bool file_below(const Tree& tree, const std::string& folder, const std::string& name) {
  return std::ranges::any_of(tree.files, [&](const auto& file) {
    return name_of(file.first) == name && (folder.empty() || file.first.starts_with(folder + "/"));
  });
}

// Whether the word claims to name something of the repository, and names nothing.
bool is_dangling(const Tree& tree, const std::string& folder, const std::string& word) {
  static const std::regex kPath("[A-Za-z0-9_.][A-Za-z0-9_./-]*");
  if (word.starts_with("//")) return !label_exists(tree, word);
  if (!std::regex_match(word, kPath)) return false;
  if (word.find('/') == word.npos) {
    return has_source_ending(word) && !file_below(tree, folder, word);
  }
  if (exists(tree, word) || exists(tree, joined(folder, word))) return false;
  // `int32/int64` is no path; `graph/nothing` and `ir/nothing` beside ir/ are.
  return std::ranges::find(kTops, top_of(word)) != kTops.end() || has_source_ending(word) ||
         exists(tree, joined(folder, top_of(word)));
}

}  // namespace

std::vector<Finding> check_readme_names(const Tree& tree) {
  std::vector<Finding> findings;
  for (const auto& [path, text] : tree.files) {
    if (name_of(path) != "README.md") continue;
    for (const Word& word : words_in_backticks(text)) {
      if (is_dangling(tree, folder_of(path), word.text)) {
        findings.push_back({path, word.line, "names `" + word.text + "`, which does not exist"});
      }
    }
  }
  return findings;
}

std::vector<Finding> check_promises(const Tree& tree) {
  static const std::regex kTest("tests/.*_test\\.(cc|sh)");
  struct Promise {
    std::string subject;
    int begin = 0;  // its first line
    int end = 0;    // the line behind it
  };
  std::vector<Promise> promises;
  const auto readme = tree.files.find("README.md");
  if (readme == tree.files.end()) return {};
  int number = 0;
  bool is_inside = false;
  for (const auto& line : lines_of(readme->second)) {
    ++number;
    if (line.starts_with("## ")) is_inside = line == "## Reliability";
    if (is_inside && line.starts_with("- **")) {
      promises.push_back({std::string(line.substr(4, line.find("**", 4) - 4)), number, number});
    }
    const bool goes_on = is_inside && (line.starts_with("- **") || line.starts_with("  "));
    if (goes_on && !promises.empty()) promises.back().end = number + 1;
  }
  if (promises.empty()) return {{"README.md", 0, "promises nothing under ## Reliability"}};
  const std::vector<Word> words = words_in_backticks(readme->second);
  std::vector<Finding> findings;
  for (const Promise& promise : promises) {
    const bool is_held = std::ranges::any_of(words, [&](const Word& word) {
      return word.line >= promise.begin && word.line < promise.end &&
             std::regex_match(word.text, kTest) && tree.files.contains(word.text);
    });
    if (is_held) continue;
    findings.push_back({"README.md", promise.begin,
                        "promises '" + promise.subject + "' and names no test that holds it"});
  }
  return findings;
}

std::vector<Finding> check_folders(const Tree& tree) {
  std::vector<Finding> findings;
  std::set<std::string> folders;
  for (const auto& [path, text] : tree.files) {
    if (is_cpp(path)) folders.insert(folder_of(path));
    if (name_of(path) != "README.md" || path == "README.md") continue;
    const auto lines = lines_of(text).size();
    if (lines > kReadmeLines) {
      findings.push_back({path, 0,
                          "has " + std::to_string(lines) + " lines; one screen is " +
                              std::to_string(kReadmeLines)});
    }
  }
  for (const std::string& folder : folders) {
    if (!tree.files.contains(joined(folder, "BUILD"))) {
      findings.push_back({folder, 0, "has sources but no BUILD"});
    }
    const bool mirrors = folder.starts_with("tests/") && exists(tree, folder.substr(6));
    if (!mirrors && !tree.files.contains(joined(folder, "README.md"))) {
      findings.push_back({folder, 0, "has sources but no README.md"});
    }
  }
  return findings;
}

}  // namespace eddy::tidy
