#include "tests/tidy/operators.h"

#include <cctype>
#include <set>
#include <string>

namespace eddy::tidy {
namespace {

constexpr size_t kNamesOfList = 10;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::set<std::string> words_of(std::string_view text) {
  std::set<std::string> words;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end > i) words.emplace(text.substr(i, end - i));
    i = end + 1;
  }
  return words;
}

// "Abs" of "ROW(X, Abs, 6, ".
std::set<std::string> listed_operators(const std::string& list) {
  const std::string_view before = "  ROW(X, ";
  std::set<std::string> names;
  for (const std::string& line : lines_of(list)) {
    if (line.starts_with(before)) {
      names.insert(line.substr(before.size(), line.find(',', before.size()) - before.size()));
    }
  }
  return names;
}

}  // namespace

std::vector<Finding> check_operator_lists(const Tree& tree) {
  const auto list = tree.files.find("ops/schema/unary_list.h");
  if (list == tree.files.end()) return {{"ops/schema/unary_list.h", 0, "is not there"}};
  const std::set<std::string> operators = listed_operators(list->second);
  std::vector<Finding> findings;
  for (const auto& [path, text] : tree.files) {
    if (top_of(path) != "ops" || !is_cpp(path)) continue;
    const std::set<std::string> words = words_of(text);
    size_t count = 0;
    for (const std::string& name : operators) count += words.contains(name) ? 1 : 0;
    if (count < kNamesOfList) continue;
    findings.push_back({path, 0, "names " + std::to_string(count) + " operators of one input"});
  }
  if (findings.size() <= kOperatorFiles) findings.clear();
  return findings;
}

}  // namespace eddy::tidy
