// The calculator: a small language, described in README.md, that compiles to Eddy in one pass.
//
//   split     text -> tokens
//   compile   text -> graph. `while` becomes a while node, `case` a case-of node. Each node is
//             named after what it does and where that stands: "index@4:12".
//   explain   a failure of these two, or of a run -> "sum.calc:4:12: message"
//
// Errors: kInvalidArgument, with a path that ends in the name of a node.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy::calculator {

struct Position {
  int line = 1;
  int column = 1;  // in bytes
};

struct Token {
  enum class Kind { kNumber, kName, kKeyword, kSymbol, kEnd };
  Kind kind = Kind::kSymbol;
  std::string_view text;  // a part of the source; of kEnd: empty
  Position at;
  double number = 0;
};

struct Program {
  Graph graph;
  std::vector<std::string> labels;  // what stands behind the `print` of each output
};

// Never empty: the last one is a kEnd, and no other is.
Result<std::vector<Token>> split(std::string_view source);
Result<Program> compile(std::string_view source, const OpTable& ops);
std::string explain(const Status& status, const std::string& file);

std::string name_at(std::string_view what, Position at);  // "index@4:12"

}  // namespace eddy::calculator
