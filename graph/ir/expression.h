// Expression: what several elementwise nodes make of one element each of their inputs, as one step
// after the other, and its text, in which the node of eddy.Fused holds it.
//
//   Mul_f32 0 1; LeakyRelu_f32 2 @3dcccccd,00000000
//
// is a product of inputs 0 and 1, then LeakyRelu of it with alpha 0.1. Elements are numbered:
// inputs first, then the steps' results; the last step's is the expression's. Others may be
// results, too: "Add_f32 0 1; Tanh_f32 2 -> 2" gives the tanh and the sum. Functions are the
// device's, by its names for them (ops/cuda/text/element_functions.h): here they are opaque words.
//
// Contract: text() and parse_expression() are inverse to each other; equal expressions have equal
// texts. Errors: parse_expression() refuses, with the place, what is no expression of so many
// inputs: it may come from a file. Cost: O(steps).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/base/status.h"

namespace eddy {

// A function of elements, with the numbers it was given as attributes.
struct ElementFunction {
  std::string name;  // letters, digits and underscores
  float a = 0;
  float b = 0;
};

struct ExpressionStep {
  ElementFunction function;
  std::vector<uint32_t> arguments;  // smaller than the number of this step's own element
};

struct Expression {
  static constexpr size_t kMaxSteps = 64;
  static constexpr size_t kMaxArguments = 3;

  uint32_t num_inputs = 0;
  std::vector<ExpressionStep> steps;  // at least one
  // Steps' elements that are results beside the last one's, ascending.
  std::vector<uint32_t> more_results = {};

  std::string text() const;
  size_t num_results() const { return 1 + more_results.size(); }
  // The last step's element first.
  uint32_t result(size_t k) const {
    const size_t last = num_inputs + steps.size() - 1;
    return k == 0 ? static_cast<uint32_t>(last) : more_results[k - 1];
  }
};

// An expression of one result, and what it is applied to: inputs of the expression that it was a
// part of, then results of the parts before it.
struct ExpressionPart {
  Expression expression;
  std::vector<uint32_t> arguments;
  size_t result = 0;  // of the whole
};
// One part for each result, the last step's at the end. A step that several of them need is in
// each.
std::vector<ExpressionPart> parts_of(const Expression& expression);

Result<Expression> parse_expression(std::string_view text, uint32_t num_inputs);

}  // namespace eddy
