// Syntax: a program as trees. Plain data; the grammar is in README.md.
//
// Names point into the text, which must stay. The parser bounds the depth, so that whoever walks a
// tree may do so by recursion. Errors: Failure.
#pragma once

#include <map>

#include "examples/dsl/lexer.h"
#include "examples/dsl/types.h"

namespace dsl {

using Name = std::string_view;

constexpr size_t kMaxDepth = 500;  // of blocks and expressions in one another

enum class Kind {
  // Values.
  kNumbers,  // as they stand there: type, ints, reals
  kName,
  kCall,  // of an operator or function: the arguments; of a list: the elements
  kRows,  // the value of each row, which is called `name`; what the rows are of
  kCase,  // the selector, then a block for each arm
  // Statements; blocks and loops have others in them, all others one value.
  kBlock,  // of a case: `type` and `ints` are the label's, or of no elements for else
  kWhile,  // the test, the block; `name`: of its rows, if they are wanted
  kLet,
  kSet,
  kValue,  // an expression alone: the value of an arm; outside of blocks it is printed
  kPrint,
  kStream,
  kYield,
  kReturn
};

struct Node {
  Kind kind;
  Position at;
  Name name = {};
  eddy_type type = {};             // that is promised, where it has elements; of numbers: theirs
  std::vector<int64_t> ints = {};  // of numbers that are ints or bools
  std::vector<double> reals = {};  // of numbers that are ints or reals
  std::vector<Node> parts = {};
  std::string text = {};  // of the value of a statement, as the program has it
  size_t depth = 1;
};

// By their names: parameters, then the block, which ends with a return; `type` is the result's.
using Functions = std::map<std::string, Node, std::less<>>;

// `functions`: to which those of the program are added; the other statements as a block.
Node parse(std::string_view text, Position at, Functions& functions);

}  // namespace dsl
