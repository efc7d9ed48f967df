// What elementwise nodes do to one element, by the names that kernels of kernel_list.h carry:
// "Add_f32", "Cast_f16_i64", "Where_f32". The registry binds kernels by them, and fused kernels
// (fused_text.h) apply several in one.
//
// Contract: pure. Cost: a function is looked for in a list of some hundred names.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "graph/ir/expression.h"
#include "graph/ir/types.h"

namespace eddy::cuda {

// Kinds of calls: apply(x, y), apply(x, a, b), apply(x, y, z), convert<Out>(x), x ? y : z.
enum class ElementCall { kBinary, kUnary, kTernary, kCast, kWhere };

struct ElementSignature {
  ElementCall call = ElementCall::kUnary;
  std::string_view op;  // the struct of scalar_ops.h or unary_ops.h: "Add"; borrows the name
  size_t num_inputs = 1;
  std::array<ElementType, Expression::kMaxArguments> inputs = {};
  ElementType output = ElementType::kUndefined;
};

// None: there is no such function. Of the kernels Where_4 and Copy_4, which see only words, there
// are no functions.
std::optional<ElementSignature> element_signature(std::string_view name);

// All of them but casts and Where, of which there is one for each pair of types and for each type.
std::vector<std::string_view> element_function_names();

}  // namespace eddy::cuda
