// Claim: whatever stands in a program, compiling it ends, with a graph or with one error that has a
// place, and never with a defect of Eddy's: pieces in any order, deep nesting, long texts, bytes
// that are no text, calls that double.
#include <gtest/gtest.h>

#include <regex>

#include "examples/dsl/language.h"
#include "graph/base/random.h"

namespace dsl {
namespace {

std::string repeat(const std::string& text, int count) {
  std::string made;
  for (int i = 0; i < count; ++i) made += text;
  return made;
}

// "ok", or the error.
std::string compiled(const std::string& text) {
  static const eddy::Context context;
  static const eddy::Library library(context);
  try {
    Functions functions;
    const Node program = parse(text, "test", 1, functions);
    compile(program, functions, {}, library);
    return "ok";
  } catch (const Failure& failure) {
    return failure.what();
  } catch (const eddy::Error& error) {
    EXPECT_NE(error.code(), EDDY_INTERNAL) << text << "\n" << error.what();
    return error.what();
  }
}

bool has_place(const std::string& error) {
  return std::regex_search(error, std::regex("^test:[0-9]+:[0-9]+: [^\n]+$"));
}

TEST(HostilePrograms, NonsenseIsAnErrorWithAPlace) {
  const char* const pieces[] = {"let",  "x",       "=",    "1",     "while",    "x = x + 1", "}",
                                "case", "{",       "0:",   "true:", "else:",    "+",         "(",
                                ")",    "print",   "[",    "]",     "<",        "\n",        "y",
                                "1.5",  "not",     "-",    "^",     "range",    "stream",    "@",
                                ",",    "yield x", "fn",   "f",     "return",   "for",       "in",
                                "sum(", "[1, 2]",  "bool", "->",    "let x = 2"};
  int num_ok = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    eddy::Random random(seed);
    std::string text = "let y = [1, 2] let x = 3 fn g(a) { return [a, a] } ";
    for (uint64_t i = random.below(12); i > 0; --i) {
      text += std::string(pieces[random.below(std::size(pieces))]) + " ";
    }
    const std::string said = compiled(text);
    num_ok += said == "ok";
    EXPECT_TRUE(said == "ok" || has_place(said)) << seed << ": " << text << "\n" << said;
  }
  EXPECT_GT(num_ok, 30) << "the pieces make programs, too";
  EXPECT_LT(num_ok, 2000);
}

TEST(HostilePrograms, BytesThatAreNoTextAreAnErrorWithAPlace) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    eddy::Random random(seed);
    std::string text = "print 1 + ";
    for (uint64_t i = 1 + random.below(30); i > 0; --i) {
      text += static_cast<char>(random.below(256));
    }
    const std::string said = compiled(text);
    EXPECT_TRUE(said == "ok" || has_place(said)) << seed << ": " << said;
  }
}

TEST(HostilePrograms, NestingIsLimited) {
  for (const char* part :
       {"(", "[", "-", "not ", "2 ^ ", "abs(", "case 1 { 0: ", "x[", "[x for x in "}) {
    const std::string said = compiled("let x = 1 print " + repeat(part, 100'000));
    EXPECT_NE(said.find("nested too deeply"), said.npos) << part << said;
  }
  for (const char* part : {"while x < 1 { x = 1 ", "case 1 { 1: { x = 1 "}) {
    const std::string said = compiled("let x = 1 " + repeat(part, 100'000));
    EXPECT_NE(said.find("nested too deeply"), said.npos) << part << said;
  }
  for (const char* part : {" + 1", " @ 1", "[0]", " and true"}) {
    const std::string said = compiled("let x = 1 print x" + repeat(part, 100'000));
    EXPECT_NE(said.find("nested too deeply"), said.npos) << part << said;
  }
  EXPECT_EQ(compiled("let x = 1 print x" + repeat(" + 1", 400)), "ok");
  EXPECT_EQ(compiled("print " + repeat("(", 80) + "1" + repeat(")", 80)), "ok");
  EXPECT_EQ(compiled("let x = 1 " + repeat("while x < 9 { x = x + 1 ", 30) + repeat("}", 30)),
            "ok");
}

TEST(HostilePrograms, CallsThatDoubleOrDeepenAreAnError) {
  std::string doubling = "fn f0(x) { return x + 1 }\n";
  std::string deep = doubling;
  for (int i = 1; i < 600; ++i) {
    const std::string before = "f" + std::to_string(i - 1);
    const std::string head = "fn f" + std::to_string(i) + "(x) { return ";
    if (i < 60) doubling += head + before + "(x) + " + before + "(x) }\n";
    deep += head + before + "(x) }\n";
  }
  const std::string said = compiled(doubling + "print f59(1)");
  EXPECT_NE(said.find("too long"), said.npos) << said;
  EXPECT_TRUE(has_place(said)) << said;
  const std::string other = compiled(deep + "print f599(1)");
  EXPECT_NE(other.find("nested too deeply"), other.npos) << other;
}

TEST(HostilePrograms, LongTextsAreCompiled) {
  EXPECT_EQ(compiled("let x = [" + repeat("1, ", 100'000) + "1] print x"), "ok");
  EXPECT_EQ(compiled("let x = 1 " + repeat("x = x + 1\n", 5'000) + "print x"), "ok");
  EXPECT_TRUE(has_place(compiled("print " + repeat("9", 100'000))));
  EXPECT_EQ(compiled("# " + repeat("no end", 100'000)), "ok");
  EXPECT_LT(compiled("print " + repeat("name", 100'000)).size(), 120u);
  EXPECT_EQ(compiled("print \x1b[2J"), "test:1:7: expected a value, found '?'");
  EXPECT_EQ(compiled(std::string("print \0", 7)), "test:1:7: expected a value, found '?'");
}

TEST(HostilePrograms, BracketsOfLinesAddUp) {
  EXPECT_EQ(num_open("let a = [(1 # {"), 2);
  EXPECT_EQ(num_open("), 2]}"), -3);
  EXPECT_EQ(num_open("(\x80"), 1);
}

TEST(HostilePrograms, ExcerptsAreWholeCharactersThatATerminalShows) {
  EXPECT_EQ(excerpt("12345678", 8), "12345678");
  EXPECT_EQ(excerpt("123456789", 8), "12345...");
  EXPECT_EQ(excerpt("äöü€𝄞äöü", 8), "äöü€𝄞äöü");
  EXPECT_EQ(excerpt("äöü€𝄞äöüä", 8), "äöü€𝄞...");
  EXPECT_EQ(excerpt("a\n\tb\x1b\x7f", 8), "a  b??");
  const char* const hostile[] = {"\x80",
                                 "\x9b",
                                 "\xc2",
                                 "\xc2\x80",
                                 "\xc2\x9b",
                                 "\xc0\x80",
                                 "\xc1\xbf",
                                 "\xe0\x82\x9b",
                                 "\xed\xa0\x80",
                                 "\xe2\x82",
                                 "\xe2\x82\xac\x80",
                                 "\xf0\x8f\xbf\xbf",
                                 "\xf4\x90\x80\x80",
                                 "\xf8\x90\x80\x80",
                                 "\xff"};
  for (const std::string text : hostile) {
    EXPECT_EQ(excerpt(text, 8), "?") << testing::PrintToString(text);
    EXPECT_EQ(excerpt("a" + text + "b", 8), "a?b") << testing::PrintToString(text);
  }
  for (const std::string text : {"\xc2\xa0", "\xed\x9f\xbf", "\xee\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(excerpt(text, 8), text);
  }
  EXPECT_EQ(compiled("print \xc2\x9b"), "test:1:7: expected a value, found '?'");
}

}  // namespace
}  // namespace dsl
