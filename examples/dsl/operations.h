// Operations: operators and built-in functions of the language as nodes of a graph.
//
//   apply("+", {a, b}, at)   a Cast where an int meets a real, then an Add
//
// Each node gets the place `at`, so that what fails names it, also in a run. Errors: Failure where
// the elements are wrong; eddy::Error where the graph refuses the shapes.
#pragma once

#include "examples/dsl/syntax.h"

namespace dsl {

using eddy::ValueId;
using Values = std::vector<ValueId>;

class Operations {
 public:
  Operations(const eddy::Library& library, const std::string& file)
      : graph_(library, "program"), file_(file) {}

  eddy::Graph& graph() { return graph_; }
  eddy_type type(ValueId value) const { return graph_.type(value); }
  // Valid as long as `text`.
  eddy_location location(Position at, const char* text = nullptr) const {
    return {sizeof(eddy_location), file_.c_str(), at.line, at.column, text};
  }
  ValueId apply(Name name, Values arguments, Position at);
  // The value with other elements: ints as reals.
  ValueId as(eddy_element element, ValueId value, Position at);
  ValueId numbers(const Node& node);
  ValueId node(const char* op, const Values& inputs, Position at, const char* attribute = nullptr,
               int64_t number = 0);

 private:
  ValueId compose(Name name, const Values& of, Position at);

  eddy::Graph graph_;
  const std::string& file_;
};

}  // namespace dsl
