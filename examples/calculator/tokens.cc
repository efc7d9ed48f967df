#include <algorithm>
#include <cctype>
#include <charconv>
#include <regex>

#include "examples/calculator/calculator.h"

namespace eddy::calculator {
namespace {

constexpr std::string_view kKeywords[] = {"let", "while", "do",  "case",  "of",   "else", "end",
                                          "and", "or",    "not", "print", "true", "false"};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)); }

// Bytes of the UTF-8 character at the start of `rest`; 1 where there is no whole one.
size_t character_size(std::string_view rest) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(rest[i]); };
  const size_t size = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : byte(0) >= 0xc0 ? 2 : 1;
  if (size > rest.size()) return 1;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 1;
  }
  return size;
}

// The token at the start of `rest`, which does not start with a space.
Result<Token> first_token(std::string_view rest, Position at) {
  Token token{Token::Kind::kSymbol, rest.substr(0, 1), at};
  if (rest.empty()) {
    token.kind = Token::Kind::kEnd;
  } else if (std::isdigit(static_cast<unsigned char>(rest[0]))) {
    token.kind = Token::Kind::kNumber;
    const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), token.number);
    token.text = rest.substr(0, static_cast<size_t>(read.ptr - rest.data()));
    if (read.ec != std::errc()) {
      return std::move(
          invalid_argument("a double cannot hold this number").prepend_path(name_at("number", at)));
    }
  } else if (is_word(rest[0])) {
    const auto end = std::ranges::find_if_not(rest, is_word);
    token.text = rest.substr(0, static_cast<size_t>(end - rest.begin()));
    const bool is_keyword = std::ranges::count(kKeywords, token.text) > 0;
    token.kind = is_keyword ? Token::Kind::kKeyword : Token::Kind::kName;
  } else if (rest.substr(1).starts_with('=') && std::string_view("<>=!").find(rest[0]) < 4) {
    token.text = rest.substr(0, 2);
  } else {
    token.text = rest.substr(0, character_size(rest));
  }
  return token;
}

}  // namespace

Result<std::vector<Token>> split(std::string_view source) {
  std::vector<Token> tokens;
  Position at;
  while (tokens.empty() || tokens.back().kind != Token::Kind::kEnd) {
    size_t size = 1;
    if (source.starts_with('#')) {
      size = std::min(source.find('\n'), source.size());
    } else if (source.empty() || !is_space(source[0])) {
      EDDY_ASSIGN_OR_RETURN(tokens.emplace_back(), first_token(source, at));
      size = tokens.back().text.size();
    }
    for (char c : source.substr(0, size)) {
      at = c == '\n' ? Position{at.line + 1, 1} : Position{at.line, at.column + 1};
    }
    source.remove_prefix(size);
  }
  return tokens;
}

std::string name_at(std::string_view what, Position at) {
  return std::string(what) + "@" + std::to_string(at.line) + ":" + std::to_string(at.column);
}

// The last name in the path is the node that failed; the loops around it give their iterations.
std::string explain(const Status& status, const std::string& file) {
  static const std::regex place_and_iteration("@(\\d+:\\d+)[^/@\\[]*(?:\\[(\\d+)\\])?");
  std::string place;
  std::string iterations;
  const std::string& path = status.path();
  for (std::sregex_iterator name(path.begin(), path.end(), place_and_iteration), end; name != end;
       ++name) {
    place = ":" + (*name)[1].str();
    if (!(*name)[2].matched) continue;
    iterations += ", in iteration " + (*name)[2].str() + " of the loop at " + (*name)[1].str();
  }
  return file + place + ": " + status.message() + iterations;
}

}  // namespace eddy::calculator
