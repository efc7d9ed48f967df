// The calculator: a small language, described in README.md, that compiles to Eddy in one pass.
//
//   compile   text -> graph. `while` becomes a while node, `case` a case-of node. Each node is
//             named after what it does and where that stands: "index@4:12".
//   explain   a failure of compile, or of a run -> "sum.calc:4:12: message"
//
// Errors: kInvalidArgument, with a path that ends in the name of a node.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy::calculator {

struct Program {
  Graph graph;
  std::vector<std::string> labels;  // what stands behind the `print` of each output
};

Result<Program> compile(std::string_view source, const OpTable& ops);
std::string explain(const Status& status, const std::string& file);

}  // namespace eddy::calculator
