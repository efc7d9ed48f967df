// Claim: programs of the calculator give the values that their meaning gives, and every error,
// while compiling or in an iteration, names its place in the source.
#include "examples/calculator/calculator.h"

#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "examples/print_tensor.h"
#include "graph/base/random.h"
#include "runtime/api/session.h"

namespace eddy::calculator {
namespace {

// What is printed, separated by "; ", or the error.
std::string run(const std::string& source, Loops loops = Loops::kAuto) {
  Library library;
  auto program = compile(source, library.ops());
  if (!program.is_ok()) return explain(program.status(), "test");
  auto session = Session::create(library, std::move(program->graph), {.loops = loops});
  if (!session.is_ok()) return explain(session.status(), "test");
  const auto outputs = (*session)->run({}, {.timeout = std::chrono::seconds(10)});
  if (!outputs.is_ok()) return explain(outputs.status(), "test");
  std::ostringstream text;
  text << std::boolalpha;
  for (size_t i = 0; i < outputs->size(); ++i) {
    text << (i > 0 ? "; " : "") << program->labels[i] << " = ";
    print_tensor(text, (*outputs)[i].second);
  }
  return text.str();
}

std::string value_of(const std::string& expression) {
  const std::string text = run("print " + expression);
  const std::string start = expression + " = ";
  return text.starts_with(start) ? text.substr(start.size()) : text;
}

TEST(Calculator, OperatorsBindAsInMathematics) {
  EXPECT_EQ(value_of("1 + 2 * 3"), "7");
  EXPECT_EQ(value_of("(1 + 2) * 3"), "9");
  EXPECT_EQ(value_of("10 - 4 - 3"), "3");
  EXPECT_EQ(value_of("2 ^ 3 ^ 2"), "512");
  EXPECT_EQ(value_of("-2 ^ 2"), "-4");
  EXPECT_EQ(value_of("2 ^ -1"), "0.5");
  EXPECT_EQ(value_of("7 % 4 / 2"), "1.5");
  EXPECT_EQ(value_of("not 1 < 2 or 3 >= 3"), "true");
  EXPECT_EQ(value_of("1 != 2 and 1 == 2"), "false");
}

TEST(Calculator, TensorsBroadcastAndMultiply) {
  EXPECT_EQ(value_of("[1, 2, 3] * 2"), "[2, 4, 6]");
  EXPECT_EQ(value_of("[[1, 2], [3, 4]] @ [[0, 1], [1, 0]]"), "[[2, 1], [4, 3]]");
  EXPECT_EQ(value_of("[[1], [2]] + [10, 20]"), "[[11, 21], [12, 22]]");
  EXPECT_EQ(value_of("[1, 2, 3][1]"), "2");
  EXPECT_EQ(value_of("[[1, 2], [3, 4]][1][0]"), "3");
  EXPECT_EQ(value_of("[1, 2, 3] > 1"), "[false, true, true]");
}

TEST(Calculator, FunctionsGiveTheirValues) {
  EXPECT_EQ(value_of("sum(range(5))"), "10");
  EXPECT_EQ(value_of("mean([1, 2, 6])"), "3");
  EXPECT_EQ(value_of("size([[1, 2], [3, 4]])"), "4");
  EXPECT_EQ(value_of("concat([1], [2, 3])"), "[1, 2, 3]");
  EXPECT_EQ(value_of("transpose([[1, 2]])"), "[[1], [2]]");
  EXPECT_EQ(value_of("max(min(5, 3), abs(-2))"), "3");
  EXPECT_EQ(value_of("sqrt(9) + floor(1.7) + exp(0) + log(1) + sin(0) + cos(0) + tanh(0)"), "6");
}

TEST(Calculator, LoopsCarryWhatTheyAssign) {
  for (const Loops loops : {Loops::kDevice, Loops::kHost}) {
    EXPECT_EQ(
        run("let x = 1 let n = 0 while x < 100 do x = x * 2 n = n + 1 end print x print n", loops),
        "x = 128; n = 7");
    EXPECT_EQ(
        run("let v = [0] let n = 1 while n < 4 do v = concat(v, [n]) n = n + 1 end print v", loops),
        "v = [0, 1, 2, 3]");
    EXPECT_EQ(run("let x = 5 while x < 0 do let y = x x = y end print x", loops), "x = 5");
  }
}

TEST(Calculator, ACaseTakesTheBranchOfItsNumber) {
  const auto pick = [](const std::string& selector) {
    return run("let y = 9 case " + selector +
               " of 0: y = 10 1: y = 11 else: y = [1, 2] end print y");
  };
  EXPECT_EQ(pick("0"), "y = 10");
  EXPECT_EQ(pick("1.9"), "y = 11");
  EXPECT_EQ(pick("2"), "y = [1, 2]");
  EXPECT_EQ(pick("0 - 1"), "y = [1, 2]");
  EXPECT_EQ(pick("1 > 0"), "y = 11");
  EXPECT_EQ(run("let y = 0 case 1 > 2 of false: y = 1 true: y = 2 end print y"), "y = 1");
}

TEST(Calculator, ErrorsOfASourceNameTheirPlace) {
  const std::string order = " (branches come in order), found ";
  const std::pair<const char*, std::string> cases[] = {
      {"let a = 1 +", "test:1:12: expected a value, found the end"},
      {"let a = 1\n  print b", "test:2:9: there is no 'b' here; declare it with let"},
      {"let a = 1\nlet a = 2", "test:2:5: there is a 'a' already; leave out the let"},
      {"a = 2", "test:1:1: there is no 'a' yet; declare it with let"},
      {"print (1", "test:1:9: expected ')', found the end"},
      {"print foo(1)", "test:1:7: there is no 'foo'"},
      {"print $", "test:1:7: expected a value, found '$'"},
      {"print \u00e9", "test:1:7: expected a value, found '\u00e9'"},
      {"print 1 \U0001f600", "test:1:9: expected a statement, found '\U0001f600'"},
      {"print \xc3(", "test:1:7: expected a value, found '\xc3'"},
      {"print \xf0\x9f", "test:1:7: expected a value, found '\xf0\x9f'"},
      {"print 1e999", "test:1:7: a double cannot hold this number"},
      {"1", "test:1:1: expected a statement, found '1'"},
      {"let while = 1", "test:1:5: expected a name, found 'while'"},
      {"while 1 < 2 do end", "test:1:1: this loop changes no variable, so it would never end"},
      {"let x = 1 while x do x = 2 end", "test:1:11: the predicate must be one bool, not double[]"},
      {"let x = 1 while x < 2 do print x x = 2 end",
       "test:1:26: print stands outside of loops and branches"},
      {"let x = 1 case x of end", "test:1:11: no branch of this case changes a variable"},
      {"let x = 1 case x of 1: x = 2 end", "test:1:21: expected false: or 0:" + order + "'1'"},
      {"let x = 1 case x > 0 of true: x = 2 end",
       "test:1:25: expected false: or 0:" + order + "'true'"},
      {"let x = 1 case x of 0: x = 2 0: x = 3 end",
       "test:1:30: expected true: or 1:" + order + "'0'"},
      {"let x = 1 case x of 0: x = 2 1: x = 3 4: x = 5 end",
       "test:1:39: expected 2:" + order + "'4'"},
      {"let x = 1 case x of 0: x = 2 else: x = 3 1: x = 4 end",
       "test:1:30: expected true: or 1:" + order + "'else'"},
      {"let x = 1 while x < 2 do x = 2", "test:1:31: expected 'end', found the end"},
      {"print true + 1", "test:1:12: input 0 ('A') of Add can't be bool"},
      {"# comment\nprint [1, 2]\n      + [1, 2, 3]",
       "test:3:7: inputs 0 and 1 do not broadcast: [2] and [3]"},
  };
  for (const auto& [source, error] : cases) EXPECT_EQ(run(source), error) << source;
}

TEST(Calculator, AFunctionRefusesAnArgumentTooMany) {
  for (const std::string name : {"abs", "sqrt", "exp", "log", "sin", "cos", "tanh", "floor", "sum",
                                 "mean", "size", "range", "transpose"}) {
    EXPECT_EQ(run("print 0 + " + name + "(2, 5)"),
              "test:1:11: " + name + " takes 1 argument, not 2");
    EXPECT_EQ(run("print " + name + "()"),
              "test:1:" + std::to_string(8 + name.size()) + ": expected a value, found ')'");
  }
  EXPECT_EQ(value_of("range(1, 2, 3)"), "test:1:7: range takes 1 argument, not 3");
  EXPECT_EQ(value_of("min(4, 2, 3) + max(1)"), "3");
  EXPECT_EQ(value_of("concat([1], [2], [3])"), "[1, 2, 3]");
  for (const std::string name : {"index", "vector", "negate"}) {
    EXPECT_EQ(value_of(name + "(1)"), "test:1:7: there is no '" + name + "'");
  }
}

TEST(Calculator, ErrorsOfARunNameTheirPlaceAndIteration) {
  for (const Loops loops : {Loops::kDevice, Loops::kHost}) {
    EXPECT_EQ(run("let a = [1, 2]\nlet i = 0\nwhile i < 5 do\n  i = i + a[i]\nend\nprint i", loops),
              "test:4:12: index 3 is out of range for axis 0 of size 2, in iteration 2 of the loop "
              "at 3:1");
    EXPECT_EQ(run("let i = 0\nlet y = 0\nwhile i < 3 do\n  let j = 0\n  while j < 9 do\n"
                  "    case i * 2 + j of 0: y = 0 1: y = 1 2: y = 2 3: y = 3 end\n    j = j + 1\n"
                  "  end\n  i = i + 1\nend\nprint y",
                  loops),
              "test:6:5: the selector is 4, but there are branches 0 to 3, no default and nothing "
              "to pass through, in iteration 0 of the loop at 3:1, in iteration 4 of the loop at "
              "5:3");
  }
}

TEST(Calculator, NestingIsLimited) {
  const auto repeat = [](const std::string& text, int count) {
    std::string result;
    for (int i = 0; i < count; ++i) result += text;
    return result;
  };
  for (const char* part : {"(", "[", "-", "not ", "2 ^ ", "abs("}) {
    EXPECT_NE(run("print " + repeat(part, 100000)).find("nested too deeply"), std::string::npos);
  }
  EXPECT_NE(run("let x = 0 " + repeat("while x < 1 do x = 1 ", 10000)).find("nested too deeply"),
            std::string::npos);
  EXPECT_EQ(run("let x = 1" + repeat(" + 1", 2000) + " print x"), "x = 2001");
  EXPECT_EQ(
      run("let x = 0 " + repeat("while x < 9 do x = x + 1 ", 50) + repeat("end ", 50) + "print x"),
      "x = 9");
}

// Pieces of programs in any order: each ends with values or with an error that has a place.
TEST(Calculator, NonsenseIsAnErrorAndNoMore) {
  const char* const pieces[] = {
      "let", "x",          "=",   "1", "while", "do",    "end",   "case",   "of", "0",
      ":",   "else",       "+",   "(", ")",     "print", "[",     "]",      "<",  "\n",
      "y",   "let x = 2 ", "not", "-", "^",     "range", "index", "vector", ","};
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    std::string source = "let y = [1, 2] ";
    for (uint64_t i = random.below(20); i > 0; --i) {
      source += std::string(pieces[random.below(std::size(pieces))]) + " ";
    }
    Library library;
    const auto program = compile(source, library.ops());
    if (program.is_ok()) continue;
    const std::string text = explain(program.status(), "test");
    EXPECT_TRUE(std::regex_search(text, std::regex("^test:[0-9]+:[0-9]+: ")))
        << seed << ": " << text;
    EXPECT_NE(program.status().code(), StatusCode::kInternal) << "seed " << seed << ": " << source;
  }
}

}  // namespace
}  // namespace eddy::calculator
