// Compiler: a program as a graph, through Eddy's C interface alone.
//
// `while` and comprehensions become loops that carry what their blocks assign, `case` a case-of
// node; calls are written out where they stand. A carried type may widen (int[1], then int[?]): the
// whole program is compiled again, with the wider types, until none does.
//
// Errors: Failure, or eddy::Error where the graph refuses. Nesting and size are bounded.
#pragma once

#include "examples/dsl/syntax.h"

namespace dsl {

using Types = std::map<std::string, eddy_type, std::less<>>;

struct Compiled {
  eddy::Graph graph;
  std::vector<const Node*> shown;  // of the first outputs: print, stream or an expression
  std::vector<std::string> kept;   // the others: variables that the program has set
};

// `variables`: inputs of the graph, of these names, which the program may use and set.
Compiled compile(const Node& program, const Functions& functions, const Types& variables,
                 const eddy::Library& library, const std::string& file);

}  // namespace dsl
