// Elementwise operators of two and more inputs, one element at a time as a Number. Floats are
// computed in double and rounded once when stored: for + - * / that gives the same float as
// computing in float (double has more than twice the digits).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "ops/reference/elementwise/elementwise.h"
#include "ops/reference/parts/broadcast.h"
#include "ops/reference/parts/number.h"

namespace eddy {
namespace {

using Kind = Number::Kind;

bool is_float(const Number& n) { return n.kind == Kind::kFloat; }

// Applies a function of doubles to floats and one of 64-bit words (wrapping) to integers.
template <typename FloatFunction, typename WordFunction>
Number apply(const Number& a, const Number& b, FloatFunction of_floats, WordFunction of_words) {
  if (is_float(a)) return Number::of_double(of_floats(a.float_value, b.float_value));
  Number result = a;
  result.unsigned_value = of_words(a.unsigned_value, b.unsigned_value);
  return result;
}

Number add(const Number& a, const Number& b) {
  return apply(
      a, b, [](double x, double y) { return x + y; }, [](uint64_t x, uint64_t y) { return x + y; });
}
Number subtract(const Number& a, const Number& b) {
  return apply(
      a, b, [](double x, double y) { return x - y; }, [](uint64_t x, uint64_t y) { return x - y; });
}
Number multiply(const Number& a, const Number& b) {
  return apply(
      a, b, [](double x, double y) { return x * y; }, [](uint64_t x, uint64_t y) { return x * y; });
}

// Towards zero for integers; the divisor is not 0. The lowest value by -1 wraps to itself.
Number divide(const Number& a, const Number& b) {
  if (is_float(a)) return Number::of_double(a.float_value / b.float_value);
  if (a.kind == Kind::kUnsigned) return Number::of_uint(a.unsigned_value / b.unsigned_value);
  if (b.signed_value == -1) return subtract(Number::of_int(0), a);
  return Number::of_int(a.signed_value / b.signed_value);
}

// C's remainder: the sign of the dividend.
Number remainder(const Number& a, const Number& b) {
  if (is_float(a)) return Number::of_double(std::fmod(a.float_value, b.float_value));
  if (a.kind == Kind::kUnsigned) return Number::of_uint(a.unsigned_value % b.unsigned_value);
  if (b.signed_value == -1) return Number::of_int(0);
  return Number::of_int(a.signed_value % b.signed_value);
}

// Python's remainder: the sign of the divisor.
Number modulo(const Number& a, const Number& b) {
  Number result = remainder(a, b);
  if (a.kind != Kind::kSigned || result.signed_value == 0) return result;
  if ((result.signed_value < 0) != (b.signed_value < 0)) result.signed_value += b.signed_value;
  return result;
}

// An integer to an integer power wraps; to a negative one it is the true value cut towards zero
// (0 for a base of 0).
Number integer_power(const Number& a, const Number& b) {
  Number result = a;
  if (b.kind == Kind::kSigned && b.signed_value < 0) {
    const bool is_minus_one = a.kind == Kind::kSigned && a.signed_value == -1;
    const bool is_odd = (b.signed_value & 1) != 0;
    result.signed_value = a.unsigned_value == 1 ? 1 : is_minus_one ? (is_odd ? -1 : 1) : 0;
    return result;
  }
  uint64_t power = 1;
  uint64_t square = a.unsigned_value;
  for (uint64_t rest = b.unsigned_value; rest != 0; rest >>= 1) {
    if (rest & 1) power *= square;
    square *= square;
  }
  result.unsigned_value = power;
  return result;
}

Number power(const Number& a, const Number& b) {
  if (!is_float(a) && !is_float(b)) return integer_power(a, b);
  return Number::of_double(std::pow(a.to_double(), b.to_double()));
}

bool is_less(const Number& a, const Number& b) {
  if (is_float(a)) return a.float_value < b.float_value;
  return a.kind == Kind::kSigned ? a.signed_value < b.signed_value
                                 : a.unsigned_value < b.unsigned_value;
}
bool is_equal(const Number& a, const Number& b) {
  return is_float(a) ? a.float_value == b.float_value : a.unsigned_value == b.unsigned_value;
}
bool is_nan(const Number& a) { return is_float(a) && std::isnan(a.float_value); }

// A NaN on either side is the result.
Number maximum(const Number& a, const Number& b) {
  if (is_nan(a)) return a;
  return is_nan(b) || is_less(a, b) ? b : a;
}
Number minimum(const Number& a, const Number& b) {
  if (is_nan(a)) return a;
  return is_nan(b) || is_less(b, a) ? b : a;
}

Number of_bool(bool value) { return Number::of_uint(value ? 1 : 0); }
bool truth(const Number& a) { return a.to_double() != 0; }

Number logical_and(const Number& a, const Number& b) { return of_bool(truth(a) && truth(b)); }
Number logical_or(const Number& a, const Number& b) { return of_bool(truth(a) || truth(b)); }
Number logical_xor(const Number& a, const Number& b) { return of_bool(truth(a) != truth(b)); }
Number equal(const Number& a, const Number& b) { return of_bool(is_equal(a, b)); }
Number greater(const Number& a, const Number& b) { return of_bool(is_less(b, a)); }
Number less(const Number& a, const Number& b) { return of_bool(is_less(a, b)); }
Number greater_equal(const Number& a, const Number& b) {
  return of_bool(is_less(b, a) || is_equal(a, b));
}
Number less_equal(const Number& a, const Number& b) {
  return of_bool(is_less(a, b) || is_equal(a, b));
}

template <typename WordFunction>
Number words(const Number& a, const Number& b, WordFunction function) {
  Number result = a;
  result.unsigned_value = function(a.unsigned_value, b.unsigned_value);
  return result;
}
Number bit_and(const Number& a, const Number& b) {
  return words(a, b, [](uint64_t x, uint64_t y) { return x & y; });
}
Number bit_or(const Number& a, const Number& b) {
  return words(a, b, [](uint64_t x, uint64_t y) { return x | y; });
}
Number bit_xor(const Number& a, const Number& b) {
  return words(a, b, [](uint64_t x, uint64_t y) { return x ^ y; });
}
// Shifting out every bit leaves 0, or the sign.
Number shift_left(const Number& a, const Number& b) {
  return words(a, b, [](uint64_t x, uint64_t y) { return y > 63 ? 0 : x << y; });
}
Number shift_right(const Number& a, const Number& b) {
  if (a.kind == Kind::kSigned) {  // the sign fills in
    return Number::of_int(a.signed_value >> std::min<uint64_t>(b.unsigned_value, 63));
  }
  return words(a, b, [](uint64_t x, uint64_t y) { return y > 63 ? 0 : x >> y; });
}
Number prelu(const Number& a, const Number& b) {
  return is_less(a, is_float(a) ? Number::of_double(0)
                                : words(a, a, [](uint64_t, uint64_t) { return uint64_t{0}; }))
             ? multiply(a, b)
             : a;
}

using BinaryFunction = Number (*)(const Number&, const Number&);

struct BinaryRow {
  std::string_view name;
  BinaryFunction function;
};
constexpr BinaryRow kBinary[] = {
    {"Add", add},
    {"Sub", subtract},
    {"Mul", multiply},
    {"Div", divide},
    {"Mod", modulo},
    {"Pow", power},
    {"And", logical_and},
    {"Or", logical_or},
    {"Xor", logical_xor},
    {"Equal", equal},
    {"Greater", greater},
    {"GreaterOrEqual", greater_equal},
    {"Less", less},
    {"LessOrEqual", less_equal},
    {"BitwiseAnd", bit_and},
    {"BitwiseOr", bit_or},
    {"BitwiseXor", bit_xor},
    {"BitShift", shift_left},
    {"PRelu", prelu},
    {"Max", maximum},
    {"Min", minimum},
    {"Sum", add},
    {"Mean", add},
};

BinaryFunction find_function(const KernelInit& init) {
  const auto* row = std::find_if(std::begin(kBinary), std::end(kBinary),
                                 [&](const BinaryRow& r) { return r.name == init.op.name; });
  EDDY_CHECK(row != std::end(kBinary)) << init.op.name;
  if (init.op.name == "Mod" && init.attributes.get_int("fmod", 0) != 0) return remainder;
  if (init.op.name == "BitShift" && init.attributes.get_string("direction", "") == "RIGHT") {
    return shift_right;
  }
  return row->function;
}

struct BinaryState : KernelState {
  BinaryFunction function = nullptr;
  std::string_view name;  // a literal of the table
  bool divides = false;   // integers: a zero divisor is an error
  bool is_mean = false;
};

Status check_numbers(const KernelInit& init) {
  for (const ValueType& type : init.inputs) {
    if (type.tensor.element == ElementType::kUndefined) continue;
    if (!kNumberTypes.contains(type.tensor.element)) {
      return unsupported(std::string(element_type_name(type.tensor.element)) +
                         " is not supported by the reference kernel of " + init.op.name);
    }
  }
  return Status::ok();
}

bool fail_zero(const KernelArgs& args, std::string_view name, int64_t i) {
  return args.fail(run_failed("integer division by zero in " + std::string(name) + " at element " +
                              std::to_string(i) + " of input 1"));
}

bool run_binary(const KernelArgs& args) {
  const auto& state = *static_cast<const BinaryState*>(args.state);
  const TensorView& out = args.outputs[0];
  const TensorView& a = args.inputs[0];
  const TensorView& b = args.inputs[1];
  const BroadcastIndex a_index(Dims(a.shape()), out.shape());
  const BroadcastIndex b_index(Dims(b.shape()), out.shape());
  const int64_t count = out.count();
  for (int64_t i = 0; i < count; ++i) {
    const Number right = load_number(b, b_index(i));
    if (state.divides && !is_float(right) && right.unsigned_value == 0) {
      return fail_zero(args, state.name, b_index(i));
    }
    store_number(out, i, state.function(load_number(a, a_index(i)), right));
  }
  return true;
}

// Max, Min, Sum, Mean: one element of the output is folded over all inputs.
bool run_variadic(const KernelArgs& args) {
  const auto& state = *static_cast<const BinaryState*>(args.state);
  const TensorView& out = args.outputs[0];
  const int64_t count = out.count();
  for (int64_t i = 0; i < count; ++i) {
    Number total;
    for (uint32_t k = 0; k < args.num_inputs; ++k) {
      const BroadcastIndex index(Dims(args.inputs[k].shape()), out.shape());
      const Number next = load_number(args.inputs[k], index(i));
      total = k == 0 ? next : state.function(total, next);
    }
    if (state.is_mean) total = Number::of_double(total.to_double() / args.num_inputs);
    store_number(out, i, total);
  }
  return true;
}

bool run_equal_strings(const KernelArgs& args) {
  const TensorView& out = args.outputs[0];
  const BroadcastIndex a_index(Dims(args.inputs[0].shape()), out.shape());
  const BroadcastIndex b_index(Dims(args.inputs[1].shape()), out.shape());
  const auto* a = args.inputs[0].as<std::string>();
  const auto* b = args.inputs[1].as<std::string>();
  for (int64_t i = 0; i < out.count(); ++i) {
    out.mutable_as<bool>()[i] = a[a_index(i)] == b[b_index(i)];
  }
  return true;
}

Result<BoundKernel> bind_binary(const KernelInit& init) {
  auto state = std::make_unique<BinaryState>();
  state->function = find_function(init);
  state->name = init.op.name == "Mod" ? "Mod" : "Div";
  state->divides = init.op.name == "Div" || init.op.name == "Mod";
  state->is_mean = init.op.name == "Mean";
  BoundKernel kernel;
  if (init.op.name == "Equal" && init.inputs[0].tensor.element == ElementType::kString) {
    kernel.run = run_equal_strings;
  } else {
    EDDY_RETURN_IF_ERROR(check_numbers(init));
    const bool is_variadic = has_flag(init.op.inputs.back().flags, InputFlag::kVariadic);
    kernel.run = is_variadic ? run_variadic : run_binary;
  }
  kernel.state = std::move(state);
  return kernel;
}

// Where copies elements of any type.
bool run_where(const KernelArgs& args) {
  const TensorView& out = args.outputs[0];
  const BroadcastIndex condition_index(Dims(args.inputs[0].shape()), out.shape());
  const BroadcastIndex x_index(Dims(args.inputs[1].shape()), out.shape());
  const BroadcastIndex y_index(Dims(args.inputs[2].shape()), out.shape());
  const size_t width = element_size_bytes(out.element);
  for (int64_t i = 0; i < out.count(); ++i) {
    const bool takes_x = args.inputs[0].as<bool>()[condition_index(i)];
    const TensorView& from = args.inputs[takes_x ? 1 : 2];
    const size_t at = static_cast<size_t>(takes_x ? x_index(i) : y_index(i));
    if (out.element == ElementType::kString) {
      out.mutable_as<std::string>()[i] = from.as<std::string>()[at];
    } else {
      std::memmove(out.mutable_as<std::byte>() + static_cast<size_t>(i) * width,
                   from.as<std::byte>() + at * width, width);
    }
  }
  return true;
}

Result<BoundKernel> bind_where(const KernelInit&) {
  return BoundKernel{.run = run_where, .state = nullptr};
}

}  // namespace

void add_binary_reference(KernelRegistry& registry) {
  for (const BinaryRow& row : kBinary) {
    registry.add({.op = row.name, .bind = bind_binary, .provider = "reference"});
  }
  registry.add({.op = "Where", .bind = bind_where, .provider = "reference"});
}

}  // namespace eddy
