#include "examples/dsl/lexer.h"

#include <algorithm>
#include <charconv>

namespace dsl {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";
constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
constexpr std::string_view kKeywords[] = {"and",    "case", "else",  "false", "fn",    "for",
                                          "in",     "let",  "not",   "or",    "print", "return",
                                          "stream", "true", "while", "yield"};
constexpr std::string_view kPairs[] = {"<=", ">=", "==", "!=", "//", "->"};

bool contains(std::string_view set, char c) { return set.find(c) != set.npos; }

// The token at the start of `text`, which is not empty and begins with no space or comment.
Token first_token(std::string_view text, Position at) {
  Token token{Token::Kind::kSymbol, at, text};
  size_t size = 1;
  if (contains(kDigits, text[0])) {
    double number = 0;
    const char* const end = std::from_chars(text.data(), text.data() + text.size(), number).ptr;
    size = static_cast<size_t>(end - text.data());
    const bool is_int = text.substr(0, size).find_first_not_of(kDigits) == text.npos;
    token.kind = is_int ? Token::Kind::kInt : Token::Kind::kReal;
  } else if (contains(kLetters, text[0])) {
    size = text.find_first_not_of(kLetters);
    const bool is_keyword = std::ranges::count(kKeywords, text.substr(0, size)) > 0;
    token.kind = is_keyword ? Token::Kind::kKeyword : Token::Kind::kName;
  } else if (std::ranges::count(kPairs, text.substr(0, 2)) > 0) {
    size = 2;
  } else {  // a symbol, or any other character of UTF-8
    while (size < text.size() && (text[size] & 0xc0) == 0x80) ++size;
  }
  token.text = text.substr(0, size);
  return token;
}

}  // namespace

std::vector<Token> split(std::string_view text, Position at) {
  std::vector<Token> tokens;
  Position end = at;  // of the last token
  while (!text.empty()) {
    size_t size = text[0] == '#' ? text.find('\n') : text.find_first_not_of(kSpaces);
    size = std::min(size, text.size());
    const bool is_token = size == 0;
    if (is_token) {
      tokens.push_back(first_token(text, at));
      size = tokens.back().text.size();
    }
    for (const char c : text.substr(0, size)) {
      if (c == '\n') at = {at.line + 1, 0};
      at.column += (c & 0xc0) != 0x80;
    }
    if (is_token) end = at;
    text.remove_prefix(size);
  }
  tokens.push_back({Token::Kind::kEnd, end, {}});
  return tokens;
}

std::string quote(std::string_view text) {
  std::string made(text.substr(0, 40));
  std::ranges::replace_if(
      made, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return "'" + made + (text.size() > made.size() ? "...'" : "'");
}

}  // namespace dsl
