// Elementwise operators of one input, and Clip. Floats are computed in double and rounded once.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "ops/reference/elementwise/elementwise.h"
#include "ops/reference/parts/activation.h"
#include "ops/reference/parts/number.h"

namespace eddy {
namespace {

using Parameters = ActivationParameters;
using UnaryFunction = ActivationFunction;

constexpr double kSqrtHalf = 0.70710678118654752440;
constexpr double kSqrtTwoOverPi = 0.79788456080286535588;

double sign_of(double x) { return std::isnan(x) ? x : static_cast<double>((x > 0) - (x < 0)); }
double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
// max(0, min(1, x)); a NaN stays.
double unit_clamp(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
double gelu_erf(double x, const Parameters&) { return 0.5 * x * std::erfc(-x * kSqrtHalf); }
double gelu_tanh(double x, const Parameters&) {
  return 0.5 * x * (1 + std::tanh(kSqrtTwoOverPi * (x + 0.044715 * x * x * x)));
}
double shrink(double x, const Parameters& p) { return x < -p.b ? x + p.a : x > p.b ? x - p.a : 0; }

struct UnaryRow {
  std::string_view name;
  UnaryFunction function;
};

using P = const Parameters&;
constexpr UnaryRow kUnary[] = {
    {"Acos", [](double x, P) { return std::acos(x); }},
    {"Acosh", [](double x, P) { return std::acosh(x); }},
    {"Asin", [](double x, P) { return std::asin(x); }},
    {"Asinh", [](double x, P) { return std::asinh(x); }},
    {"Atan", [](double x, P) { return std::atan(x); }},
    {"Atanh", [](double x, P) { return std::atanh(x); }},
    {"Ceil", [](double x, P) { return std::ceil(x); }},
    {"Cos", [](double x, P) { return std::cos(x); }},
    {"Cosh", [](double x, P) { return std::cosh(x); }},
    {"Erf", [](double x, P) { return std::erf(x); }},
    {"Exp", [](double x, P) { return std::exp(x); }},
    {"Floor", [](double x, P) { return std::floor(x); }},
    {"Log", [](double x, P) { return std::log(x); }},
    {"Reciprocal", [](double x, P) { return 1 / x; }},
    {"Round", [](double x, P) { return std::nearbyint(x); }},
    {"Sigmoid", [](double x, P) { return 1 / (1 + std::exp(-x)); }},
    {"Sin", [](double x, P) { return std::sin(x); }},
    {"Sinh", [](double x, P) { return std::sinh(x); }},
    {"Softplus", [](double x, P) { return softplus(x); }},
    {"Softsign", [](double x, P) { return x / (1 + std::fabs(x)); }},
    {"Sqrt", [](double x, P) { return std::sqrt(x); }},
    {"Tan", [](double x, P) { return std::tan(x); }},
    {"Tanh", [](double x, P) { return std::tanh(x); }},
    {"Mish", [](double x, P) { return x * std::tanh(softplus(x)); }},
    {"HardSwish", [](double x, P) { return x * unit_clamp(x / 6 + 0.5); }},
    {"Swish", [](double x, P p) { return x / (1 + std::exp(-p.a * x)); }},
    {"HardSigmoid", [](double x, P p) { return unit_clamp(p.a * x + p.b); }},
    {"Elu", [](double x, P p) { return x < 0 ? p.a * std::expm1(x) : x; }},
    {"Celu", [](double x, P p) { return x < 0 ? p.a * std::expm1(x / p.a) : x; }},
    {"Selu", [](double x, P p) { return p.b * (x > 0 ? x : p.a * std::expm1(x)); }},
    {"LeakyRelu", [](double x, P p) { return x < 0 ? p.a * x : x; }},
    {"ThresholdedRelu", [](double x, P p) { return x > p.a ? x : 0; }},
    {"Gelu", gelu_erf},
    {"Shrink", shrink},
    {"Abs", [](double x, P) { return std::fabs(x); }},
    {"Neg", [](double x, P) { return -x; }},
    {"Relu", [](double x, P) { return x < 0 ? 0 : x; }},
    {"Sign", [](double x, P) { return sign_of(x); }},
    {"IsNaN", [](double x, P) { return std::isnan(x) ? 1.0 : 0.0; }},
    {"IsInf",
     [](double x, P p) {
       return std::isinf(x) && (x > 0 ? p.detects_positive : p.detects_negative) ? 1.0 : 0.0;
     }},
    {"Not", [](double x, P) { return x != 0 ? 0.0 : 1.0; }},
};

}  // namespace

ActivationFunction activation_or_null(std::string_view op) {
  const auto* const found = std::ranges::find(kUnary, op, &UnaryRow::name);
  return found == std::end(kUnary) ? nullptr : found->function;
}

namespace {

// The operators that take 64-bit integers, which a double does not hold.
using IntegerFunction = Number (*)(Number);
Number negate_int(Number n) {
  n.unsigned_value = 0 - n.unsigned_value;
  return n;
}
bool is_negative(const Number& n) { return n.kind == Number::Kind::kSigned && n.signed_value < 0; }
Number abs_int(Number n) { return is_negative(n) ? negate_int(n) : n; }
Number relu_int(Number n) { return is_negative(n) ? Number::of_int(0) : n; }
Number sign_int(Number n) {
  return Number::of_int(is_negative(n) ? -1 : n.unsigned_value != 0 ? 1 : 0);
}
Number not_int(Number n) {
  n.unsigned_value = ~n.unsigned_value;
  return n;
}
struct IntegerRow {
  std::string_view name;
  IntegerFunction function;
};
constexpr IntegerRow kInteger[] = {
    {"Neg", negate_int}, {"Abs", abs_int},        {"Relu", relu_int},
    {"Sign", sign_int},  {"BitwiseNot", not_int},
};

struct UnaryState : KernelState {
  UnaryFunction function = nullptr;
  IntegerFunction integer_function = nullptr;
  Parameters parameters;
};

bool run_float(const KernelArgs& args) {
  const auto& state = *static_cast<const UnaryState*>(args.state);
  const TensorView& out = args.outputs[0];
  const int64_t count = out.count();
  for (int64_t i = 0; i < count; ++i) {
    const double x = load_number(args.inputs[0], i).to_double();
    store_number(out, i, Number::of_double(state.function(x, state.parameters)));
  }
  return true;
}

bool run_integer(const KernelArgs& args) {
  const auto& state = *static_cast<const UnaryState*>(args.state);
  const TensorView& out = args.outputs[0];
  const int64_t count = out.count();
  for (int64_t i = 0; i < count; ++i) {
    store_number(out, i, state.integer_function(load_number(args.inputs[0], i)));
  }
  return true;
}

Result<BoundKernel> bind_unary(const KernelInit& init) {
  const ElementType element = init.inputs[0].tensor.element;
  const bool is_test = init.op.name == "IsNaN" || init.op.name == "IsInf";
  if (!kNumberTypes.contains(element) && !(is_test && kFloat8Types.contains(element))) {
    return unsupported(std::string(element_type_name(element)) +
                       " is not supported by the reference kernel of " + init.op.name);
  }
  auto state = std::make_unique<UnaryState>();
  state->function = activation_or_null(init.op.name);
  state->parameters = activation_parameters(init.op.name, init.attributes);
  if (init.op.name == "Gelu") {
    EDDY_ASSIGN_OR_RETURN(const bool by_tanh, is_gelu_by_tanh(init.attributes));
    if (by_tanh) state->function = gelu_tanh;
  }
  if (kIntTypes.contains(element)) {
    for (const IntegerRow& row : kInteger) {
      if (row.name == init.op.name) state->integer_function = row.function;
    }
  }
  return BoundKernel{.run = state->integer_function != nullptr ? run_integer : run_float,
                     .state = std::move(state)};
}

struct ClipState : KernelState {
  // Opset 6: from attributes. Otherwise inputs 1 and 2 are the limits.
  bool by_attributes = false;
  Number low = Number::of_double(std::numeric_limits<float>::lowest());
  Number high = Number::of_double(std::numeric_limits<float>::max());
};

bool is_less(const Number& a, const Number& b) {
  if (a.kind == Number::Kind::kFloat) return a.float_value < b.float_value;
  return a.kind == Number::Kind::kSigned ? a.signed_value < b.signed_value
                                         : a.unsigned_value < b.unsigned_value;
}

// min(max(x, low), high): where low > high the result is high.
bool run_clip(const KernelArgs& args) {
  const auto& state = *static_cast<const ClipState*>(args.state);
  const bool has_low = state.by_attributes || args.has_input(1);
  const bool has_high = state.by_attributes || args.has_input(2);
  const TensorView& out = args.outputs[0];
  const int64_t count = out.count();
  if (count == 0) return true;
  const Number low = !state.by_attributes && has_low ? load_number(args.inputs[1], 0) : state.low;
  const Number high =
      !state.by_attributes && has_high ? load_number(args.inputs[2], 0) : state.high;
  for (int64_t i = 0; i < count; ++i) {
    Number x = load_number(args.inputs[0], i);
    if (has_low && is_less(x, low)) x = low;
    if (has_high && is_less(high, x)) x = high;
    store_number(out, i, x);
  }
  return true;
}

Result<BoundKernel> bind_clip(const KernelInit& init) {
  auto state = std::make_unique<ClipState>();
  state->by_attributes = init.op.since_version < 11;
  state->low =
      Number::of_double(init.attributes.get_float("min", std::numeric_limits<float>::lowest()));
  state->high =
      Number::of_double(init.attributes.get_float("max", std::numeric_limits<float>::max()));
  return BoundKernel{.run = run_clip, .state = std::move(state)};
}

}  // namespace

void add_unary_reference(KernelRegistry& registry) {
  for (const UnaryRow& row : kUnary) {
    registry.add({.op = row.name, .bind = bind_unary, .provider = "reference"});
  }
  registry.add({.op = "BitwiseNot", .bind = bind_unary, .provider = "reference"});
  registry.add({.op = "Clip", .bind = bind_clip, .provider = "reference"});
}

}  // namespace eddy
