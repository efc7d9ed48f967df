// Language: the text of a program as trees, and those as a graph, through Eddy's C interface alone.
//
// Trees are plain data, of bounded depth, so that what walks one may do so by recursion; the
// grammar is in README.md. They point into the text and the name of the file, which must stay. Of
// types, the language checks the elements, by which it chooses operators; the graph infers the
// sizes as it is built.
//
// Errors: Failure, or eddy::Error where the graph refuses. Nesting and size are bounded.
#pragma once

#include <map>
#include <string_view>

#include "runtime/api/c/eddy.hpp"

namespace dsl {

using Name = std::string_view;
using Position = eddy_location;  // its columns are characters

constexpr size_t kMaxDepth = 500;  // of blocks and expressions in one another

// What is wrong with a program, behind its place: "life.edy:3:14: there is no 'x' here".
struct Failure : std::runtime_error {
  Failure(const Position& at, const std::string& what)
      : std::runtime_error(std::string(at.file) + ":" + std::to_string(at.line) + ":" +
                           std::to_string(at.column) + ": " + what) {}
};
inline void require(bool is_so, const Position& at, const std::string& what) {
  if (!is_so) throw Failure(at, what);
}

// A level of a recursion over a program, while it lives; fails where there are too many.
struct Level {
  Level(size_t& count, const Position& at, const char* what) : depth(count) {
    if (++depth > kMaxDepth) throw Failure(at, what);
  }
  Level(const Level&) = delete;
  ~Level() { --depth; }
  size_t& depth;
};

// ---- Types: an element type and a shape, whose sizes may be unknown: real[3, ?] ----
constexpr eddy_element kInt = EDDY_INT64;
constexpr eddy_element kReal = EDDY_DOUBLE;
constexpr eddy_element kBool = EDDY_BOOL;

inline std::string name_of(eddy_element element) {
  return element == kInt ? "int" : element == kReal ? "real" : "bool";
}
// "real[3, ?]", "int"; "real[...]" where not even the number of dimensions is known.
inline std::string print_type(const eddy_type& of) { return eddy::print(of, name_of(of.element)); }

// ---- Trees ----
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

// `line`: where the text begins. `functions`: to which those of the program are added; the other
// statements as a block.
Node parse(Name text, const char* file, uint32_t line, Functions& functions);
// How many brackets whole lines open, less those that they close.
int num_open(Name lines);
// For a message: at most so many characters of UTF-8, and none that a terminal would act on.
std::string excerpt(Name text, size_t most);
inline std::string quote(Name text) { return "'" + excerpt(text, 43) + "'"; }

// ---- Graphs ----
using Variables = std::map<std::string, eddy::Value>;

struct Compiled {
  eddy::Graph graph;
  std::vector<const Node*> shown;  // of the first outputs: print, stream or an expression
  std::optional<size_t> stream;    // which of them is streamed
  std::vector<std::string> kept;   // the others: variables that the program has set
};

// `variables`: the program may use and set them; they are inputs of the graph, of these names.
Compiled compile(const Node& program, const Functions& functions, const Variables& variables,
                 const eddy::Library& library);

}  // namespace dsl
