#include "tests/tidy/lengths.h"

#include <algorithm>
#include <cctype>
#include <regex>

namespace eddy::tidy {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Blanks out [from, to), keeping line ends.
void blank(std::string& text, size_t from, size_t to) {
  for (size_t i = from; i < std::min(to, text.size()); ++i) {
    if (text[i] != '\n') text[i] = ' ';
  }
}

// Returns the end of the literal that begins at the quote `at`.
size_t end_of_literal(const std::string& text, size_t at) {
  if (text[at] == '"' && at > 0 && text[at - 1] == 'R') {
    const size_t open = text.find('(', at);
    if (open == text.npos) return text.size();
    const std::string close = ")" + text.substr(at + 1, open - at - 1) + "\"";
    const size_t end = text.find(close, open);
    return end == text.npos ? text.size() : end + close.size();
  }
  size_t i = at + 1;
  while (i < text.size() && text[i] != text[at] && text[i] != '\n') i += text[i] == '\\' ? 2 : 1;
  return i + 1;
}

// Where the preprocessor line that begins at `at` ends, with its continuations.
size_t end_of_directive(const std::string& text, size_t at) {
  size_t end = text.find('\n', at);
  while (end != text.npos && end > 0 && text[end - 1] == '\\') end = text.find('\n', end + 1);
  return std::min(end, text.size());
}

// The text with comments, literals and preprocessor lines blanked out; same length and lines.
std::string only_code(std::string_view original) {
  std::string text(original);
  bool line_start = true;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    size_t end = i + 1;
    if (c == '/' && i + 1 < text.size() && text[i + 1] == '/') {
      end = std::min(text.find('\n', i), text.size());
      blank(text, i, end);
    } else if (c == '/' && i + 1 < text.size() && text[i + 1] == '*') {
      end = std::min(text.find("*/", i + 2), text.size() - 2) + 2;
      blank(text, i, end);
    } else if (c == '#' && line_start) {
      end = end_of_directive(text, i);
      blank(text, i, end);
    } else if (c == '"' || (c == '\'' && (i == 0 || !is_word(text[i - 1])))) {
      end = end_of_literal(text, i);
      blank(text, i + 1, end - 1);
    }
    line_start = c == '\n' || (line_start && c == ' ');
    i = end;
  }
  return text;
}

// The words before a brace, without template parameters.
std::string without_template(const std::string& head) {
  size_t at = head.find_first_not_of(" \n");
  if (at == head.npos || head.compare(at, 8, "template") != 0) return head;
  int depth = 0;
  for (size_t i = head.find('<', at); i < head.size(); ++i) {
    if (head[i] == '<') ++depth;
    if (head[i] == '>' && --depth == 0) return without_template(head.substr(i + 1));
  }
  return head;
}

enum class Scope { kNames, kFunction, kOther };

// What the brace behind `head` opens, at namespace or class scope.
Scope scope_of(const std::string& head) {
  static const std::regex kNames(
      R"(\s*(typedef\s+|inline\s+|export\s+)*(namespace|class|struct|union|enum)\b[\s\S]*)");
  static const std::regex kLinkage(R"(\s*extern\s+\"\s*\"\s*)");
  const std::string words = without_template(head);
  if (std::regex_match(words, kNames) || std::regex_match(words, kLinkage)) return Scope::kNames;
  const size_t open = words.find('(');
  if (open == words.npos) return Scope::kOther;
  // `int table[] = {` and the like; the = of `operator==` is part of a name.
  const size_t equals = words.find('=');
  const bool is_value = equals < open && words.find("operator") == words.npos;
  return is_value ? Scope::kOther : Scope::kFunction;
}

std::string name_in(const std::string& head) {
  const std::string words = without_template(head);
  size_t end = words.find('(');
  if (words.starts_with("TEST") || words.find("TEST") < end)
    return words.substr(words.find("TEST"));
  size_t begin = end;
  while (begin > 0 &&
         (is_word(words[begin - 1]) || words[begin - 1] == ':' || words[begin - 1] == '~')) {
    --begin;
  }
  return words.substr(begin, end - begin);
}

size_t matching_brace(const std::string& code, size_t open) {
  int depth = 0;
  for (size_t i = open; i < code.size(); ++i) {
    if (code[i] == '{') ++depth;
    if (code[i] == '}' && --depth == 0) return i;
  }
  return code.size();
}

int line_at(const std::string& code, size_t at) {
  return 1 + static_cast<int>(
                 std::count(code.begin(), code.begin() + static_cast<ptrdiff_t>(at), '\n'));
}

bool says_long(const std::string& line) {
  static const std::regex kReason(R"(\s*(//|#) long: *\S.*)");
  return std::regex_match(line, kReason);
}

bool is_comment(const std::string& line) {
  const size_t at = line.find_first_not_of(' ');
  return at != line.npos && (line.compare(at, 2, "//") == 0 || line[at] == '#');
}

// Whether a reason stands in the comment that ends above, or begins at, a line (from 0).
bool excused_above(const std::vector<std::string>& lines, int line) {
  while (line > 0 && is_comment(lines[static_cast<size_t>(--line)])) {
    if (says_long(lines[static_cast<size_t>(line)])) return true;
  }
  return false;
}

bool excused_at_top(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    if (!is_comment(line) && !line.empty() && !line.starts_with("#")) return false;
    if (says_long(line)) return true;
  }
  return false;
}

// Characters of UTF-8: every byte but those that continue one.
int columns_of(const std::string& line) {
  return static_cast<int>(std::ranges::count_if(
      line, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

bool is_measured(const std::string& path) {
  return is_cpp(path) || path.ends_with(".py") || path.ends_with(".bzl") || path.ends_with(".sh");
}

}  // namespace

std::vector<Function> functions_of(std::string_view text) {
  const std::string code = only_code(text);
  std::vector<Function> functions;
  size_t head = 0;  // Where the current declaration begins.
  for (size_t i = 0; i < code.size(); ++i) {
    const char c = code[i];
    const bool ends_access = c == ':' && i >= 6 && code[i - 1] != ':' && code[i + 1] != ':' &&
                             (code.compare(i - 6, 6, "public") == 0 ||
                              code.compare(i - std::min<size_t>(i, 7), 7, "private") == 0 ||
                              code.compare(i - std::min<size_t>(i, 9), 9, "protected") == 0);
    if (c == ';' || c == '}' || ends_access) head = i + 1;
    if (c != '{') continue;
    const char before = i > 0 ? code[i - 1] : ' ';
    if (is_word(before) || before == '>' || before == ']' || before == '(' || before == ',') {
      i = matching_brace(code, i);
      continue;
    }
    const std::string words = code.substr(head, i - head);
    const Scope scope = scope_of(words);
    if (scope != Scope::kNames) {
      const size_t end = matching_brace(code, i);
      if (scope == Scope::kFunction) {
        const size_t first = code.find_first_not_of(" \n", head);
        functions.push_back({name_in(words), line_at(code, first), line_at(code, end)});
      }
      i = end;
    }
    head = i + 1;
  }
  return functions;
}

std::vector<Long> find_long_files(const Tree& tree) {
  std::vector<Long> found;
  for (const auto& [path, text] : tree.files) {
    if (!is_measured(path)) continue;
    const auto lines = lines_of(text);
    const int count = static_cast<int>(lines.size());
    if (count > kFileLines) found.push_back({path, 0, count, "", excused_at_top(lines)});
  }
  return found;
}

std::vector<Long> find_long_functions(const Tree& tree) {
  std::vector<Long> found;
  for (const auto& [path, text] : tree.files) {
    if (!is_cpp(path)) continue;
    const auto lines = lines_of(text);
    for (const Function& function : functions_of(text)) {
      const int count = function.last_line - function.first_line + 1;
      if (count <= kFunctionLines) continue;
      found.push_back({path, function.first_line, count, function.name,
                       excused_above(lines, function.first_line - 1)});
    }
  }
  return found;
}

std::vector<Finding> check_lengths(const Tree& tree) {
  std::vector<Finding> findings;
  const std::string cure = "; shorten it or say why not in a comment `// long: reason`";
  for (const Long& file : find_long_files(tree)) {
    if (file.excused) continue;
    findings.push_back({file.path, 0, "has " + std::to_string(file.lines) + " lines" + cure});
  }
  for (const Long& function : find_long_functions(tree)) {
    if (function.excused) continue;
    findings.push_back(
        {function.path, function.line,
         function.name + " has " + std::to_string(function.lines) + " lines" + cure});
  }
  return findings;
}

std::vector<Finding> check_widths(const Tree& tree) {
  std::vector<Finding> findings;
  for (const auto& [path, text] : tree.files) {
    if (!is_cpp(path)) continue;
    int number = 0;
    for (const std::string& line : lines_of(text)) {
      ++number;
      const int columns = columns_of(line);
      if (columns <= kColumns || line.find('"') != line.npos) continue;
      findings.push_back({path, number,
                          "has " + std::to_string(columns) + " columns, more than " +
                              std::to_string(kColumns) + "; run clang-format"});
    }
  }
  return findings;
}

}  // namespace eddy::tidy
