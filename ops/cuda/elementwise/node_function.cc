#include "ops/cuda/elementwise/node_function.h"

#include <algorithm>
#include <limits>

#include "ops/cuda/launch/families.h"
#include "ops/cuda/text/element_functions.h"
#include "ops/reference/parts/activation.h"
#include "ops/schema/unary_operators.h"

namespace eddy::cuda {
namespace {

// Operators under another name than the function's; the first input's type follows.
std::string_view function_op(const KernelInit& init) {
  const std::string& op = init.op.name;
  if (op == "Sum") return "Add";
  if (op == "Mod") return "Fmod";
  if (op == "BitShift") {
    return init.attributes.get_string("direction", "") == "LEFT" ? "ShiftLeft" : "ShiftRight";
  }
  if (op == "Gelu") {
    const auto by_tanh = is_gelu_by_tanh(init.attributes);
    return by_tanh.is_ok() && *by_tanh ? "GeluTanh" : "Gelu";
  }
  if (op == "Clip") {
    if (init.op.since_version < 11) return "ClipTo";
    if (init.inputs.size() == 2) return "ClipLow";
    const bool has_low =
        init.inputs.size() == 3 && init.inputs[1].tensor.element != ElementType::kUndefined;
    return has_low ? "Clip" : "ClipHigh";
  }
  return op;
}

ElementFunction with_attributes(const KernelInit& init, std::string name) {
  const std::string& op = init.op.name;
  const ActivationParameters numbers = activation_parameters(op, init.attributes);
  ElementFunction function{std::move(name), numbers.a, numbers.b};
  if (op == "Clip" && init.op.since_version < 11) {
    function.a = init.attributes.get_float("min", std::numeric_limits<float>::lowest());
    function.b = init.attributes.get_float("max", std::numeric_limits<float>::max());
  }
  if (op == "IsInf") {
    function.a = init.attributes.get_int("detect_positive", 1) != 0 ? 1.0f : 0.0f;
    function.b = init.attributes.get_int("detect_negative", 1) != 0 ? 1.0f : 0.0f;
  }
  return function;
}

bool has_equal_types(const KernelInit& init) {
  const ElementType first = init.inputs[0].tensor.element;
  return std::ranges::all_of(init.inputs, [&](const ValueType& type) {
    return type.tensor.element == first || type.tensor.element == ElementType::kUndefined;
  });
}

size_t num_given(const KernelInit& init) {
  return static_cast<size_t>(std::ranges::count_if(init.inputs, [](const ValueType& type) {
    return type.tensor.element != ElementType::kUndefined;
  }));
}

constexpr std::string_view kBinary[] = {
    "Add",   "Sub",        "Mul",       "Pow",         "And",      "Or",
    "Xor",   "Equal",      "Less",      "LessOrEqual", "Greater",  "GreaterOrEqual",
    "PRelu", "BitwiseAnd", "BitwiseOr", "BitwiseXor",  "BitShift",
};
// Div and Mod: of floats; of integers they may fail, so they are no functions.
constexpr std::string_view kOthers[] = {
    "Cast", "Clip", "Div", "IsInf", "IsNaN", "Max", "Min", "Mod", "Sum", "Where",
};

}  // namespace

bool is_elementwise(std::string_view op) {
  return std::ranges::find(kBinary, op) != std::end(kBinary) ||
         std::ranges::find(kOthers, op) != std::end(kOthers) ||
         std::ranges::find(kUnaryOperators, op, &UnaryOperator::name) != std::end(kUnaryOperators);
}
std::span<const std::string_view> binary_operators() { return kBinary; }

Result<ElementFunction> element_function(const KernelInit& init) {
  const std::string& op = init.op.name;
  if (!is_elementwise(op) || init.inputs.empty()) return no_cuda_kernel(init);
  std::string name;
  if (op == "Cast") {
    name = "Cast_" + input_suffix(init) + "_" +
           std::string(type_suffix(init.outputs[0].tensor.element));
  } else if (op == "Where") {
    name = "Where_" + input_suffix(init, 1);
  } else {
    if (!has_equal_types(init)) {
      return unsupported("inputs of different types are not supported by the CUDA kernel of " + op);
    }
    name = std::string(function_op(init)) + "_" + input_suffix(init);
  }
  const auto signature = element_signature(name);
  if (!signature) return no_cuda_kernel(init);
  if (num_given(init) != signature->num_inputs) {
    return unsupported(op + " of " + std::to_string(num_given(init)) +
                       " inputs is not one function of elements");
  }
  return with_attributes(init, std::move(name));
}

}  // namespace eddy::cuda
