// Lexer: the text of a program as tokens, each with its line and column.
//
// Comments go from # to the end of their line. Tokens point into the text. Errors: Failure, which
// all of the language throws.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace dsl {

struct Position {
  uint32_t line = 1;
  uint32_t column = 1;  // in characters
};

// What is wrong with a program, and where.
struct Failure : std::runtime_error {
  Failure(Position where, const std::string& what) : std::runtime_error(what), at(where) {}
  Position at;
};

struct Token {
  enum class Kind { kInt, kReal, kName, kKeyword, kSymbol, kEnd };
  Kind kind;
  Position at;
  std::string_view text;
  bool is(std::string_view symbol) const {
    return text == symbol && (kind == Kind::kKeyword || kind == Kind::kSymbol);
  }
};

// `at`: where the text begins. The last token is the end.
std::vector<Token> split(std::string_view text, Position at);
// For a message: short, and without what a terminal would act on.
std::string quote(std::string_view text);

}  // namespace dsl
