// Elementwise operators of several inputs: the adjoint times the slope, added up over the axes over
// which an input was broadcast.
//
// Kinks: inputs of Max and Min that are equal share evenly; Clip passes at its bounds; the slope of
// x^p for p is 0 where x is 0; PRelu has its slope at 0.
#include "ops/gradient/families.h"
#include "ops/gradient/parts.h"
#include "ops/gradient/term.h"

namespace eddy {
namespace {

void add_gradient(GradientContext& c) {
  if (c.wants(0)) c.set_gradient(0, c.sum_to(c.gradient(), 0));
  if (c.wants(1)) c.set_gradient(1, c.sum_to(c.gradient(), 1));
}

void sub_gradient(GradientContext& c) {
  if (c.wants(0)) c.set_gradient(0, c.sum_to(c.gradient(), 0));
  if (c.wants(1)) c.set_gradient(1, c.sum_to(c.op("Neg", {c.gradient()}), 1));
}

void mul_gradient(GradientContext& c) {
  for (const size_t i : {0, 1}) {
    if (c.wants(i)) c.set_gradient(i, c.sum_to(c.op("Mul", {c.gradient(), c.input(1 - i)}), i));
  }
}

void div_gradient(GradientContext& c) {
  const Term over{c, c.op("Div", {c.gradient(), c.input(1)})};
  if (c.wants(0)) c.set_gradient(0, c.sum_to(over.value(), 0));
  if (c.wants(1)) c.set_gradient(1, c.sum_to((-(over * Term(c, c.output()))).value(), 1));
}

void pow_gradient(GradientContext& c) {
  const Term g{c, c.gradient()}, x{c, c.input(0)};
  const Term p{c, c.cast(c.input(1), c.element())};
  if (c.wants(0)) {
    const Term slope = p * apply("Pow", x, p - 1.0);
    const Term none = apply("Equal", p, p.number(0));
    c.set_gradient(0, c.sum_to((g * choose(none, p.number(0), slope)).value(), 0));
  }
  if (c.wants(1)) {
    const Term is_zero = apply("Equal", x, x.number(0));
    const Term safe = choose(is_zero, x.number(1), x);
    const Term slope = choose(is_zero, x.number(0), Term(c, c.output()) * apply("Log", safe));
    c.set_gradient(1, c.sum_to(c.cast((g * slope).value(), c.input_type(1).element), 1));
  }
}

// a - trunc(a / b) * b, of floating-point types.
void mod_gradient(GradientContext& c) {
  if (c.wants(0)) c.set_gradient(0, c.sum_to(c.gradient(), 0));
  if (!c.wants(1)) return;
  const Term a{c, c.input(0)}, b{c, c.input(1)}, y{c, c.output()};
  const Term times = apply("Round", (a - y) / b);
  c.set_gradient(1, c.sum_to((-(Term(c, c.gradient()) * times)).value(), 1));
}

void extreme_gradient(GradientContext& c) {
  std::vector<Value> shares;
  Value count;
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    shares.push_back(c.cast(c.op("Equal", {c.input(i), c.output()}), c.element()));
    count = i == 0 ? shares[0] : c.op("Add", {count, shares[i]});
  }
  const Value each = c.op("Div", {c.gradient(), count});
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    if (c.wants(i)) c.set_gradient(i, c.sum_to(c.op("Mul", {each, shares[i]}), i));
  }
}

void sum_gradient(GradientContext& c) {
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    if (c.wants(i)) c.set_gradient(i, c.sum_to(c.gradient(), i));
  }
}

void mean_gradient(GradientContext& c) {
  const Value each = c.op("Div", {c.gradient(), c.number(static_cast<double>(c.num_inputs()))});
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    if (c.wants(i)) c.set_gradient(i, c.sum_to(each, i));
  }
}

void where_gradient(GradientContext& c) {
  const Value zero = c.number(0);
  if (c.wants(1)) {
    c.set_gradient(1, c.sum_to(c.op("Where", {c.input(0), c.gradient(), zero}), 1));
  }
  if (c.wants(2)) {
    c.set_gradient(2, c.sum_to(c.op("Where", {c.input(0), zero, c.gradient()}), 2));
  }
}

void set_bound_gradient(GradientContext& c, size_t i, Value beyond) {
  if (!c.wants(i)) return;
  const Value outside = c.op("Where", {beyond, c.gradient(), c.number(0)});
  const Value sum = c.op("ReduceSum", {outside}, {{"keepdims", int64_t{0}}});
  c.set_gradient(i, reshape_to_input(c, sum, i));
}

void clip_gradient(GradientContext& c) {
  Value low = c.input(1), high = c.input(2);
  if (c.opset_version() < 11) {
    const Attributes& given = c.attributes();
    if (given.has("min")) low = c.number(given.get_float("min", 0));
    if (given.has("max")) high = c.number(given.get_float("max", 0));
  }
  const Value x = c.input(0);
  Value passed = c.gradient();
  if (!low.is_none()) {
    const Value below = c.op("Less", {x, low});
    if (c.wants(0)) passed = c.op("Where", {below, c.number(0), passed});
    set_bound_gradient(c, 1, below);
  }
  if (!high.is_none()) {
    const Value above = c.op("Greater", {x, high});
    if (c.wants(0)) passed = c.op("Where", {above, c.number(0), passed});
    set_bound_gradient(c, 2, above);
  }
  if (c.wants(0)) c.set_gradient(0, passed);
}

void prelu_gradient(GradientContext& c) {
  const Term g{c, c.gradient()}, x{c, c.input(0)}, slope{c, c.input(1)};
  const Term is_up = x > 0.0;
  if (c.wants(0)) c.set_gradient(0, choose(is_up, g, g * slope).value());
  if (c.wants(1)) c.set_gradient(1, c.sum_to(choose(is_up, x.number(0), g * x).value(), 1));
}

void cast_gradient(GradientContext& c) {
  c.set_gradient(0, c.cast(c.gradient(), c.input_type(0).element));
}

// The mask and the ratio are read only where the model trains: by an attribute of opset 6, by an
// input since 12.
void dropout_gradient(GradientContext& c) {
  if (c.gradient().is_none()) return;  // of opset 6, a mask of floating point
  const bool by_attribute = c.opset_version() < 7 && c.attributes().get_int("is_test", 0) == 0;
  const Constant* training = c.input_constant_or_null(2);
  const bool never =
      !by_attribute && (c.opset_version() < 12 || !c.has_input(2) ||
                        (training != nullptr && *training->view().as<uint8_t>() == 0));
  if (never) return c.set_gradient(0, c.gradient());
  if (c.num_outputs() < 2) {
    c.fail(unsupported("the gradient of Dropout in training mode reads its mask; name output 1"));
    return;
  }
  const double fixed = static_cast<double>(c.attributes().get_float("ratio", 0.5f));
  const Value ratio = c.has_input(1) ? c.cast(c.input(1), c.element()) : c.number(fixed);
  const Term scaled = Term(c, c.gradient()) / (1.0 - Term(c, ratio));
  const Value kept = c.cast(c.output(1), ElementType::kBool);
  const Value dropped = c.op("Where", {kept, scaled.value(), c.number(0)});
  if (by_attribute) return c.set_gradient(0, dropped);
  c.set_gradient(0, c.op("Where", {c.input(2), dropped, c.gradient()}));
}

GradientRule variadic(const char* op, GradientReads reads, GradientFunction build) {
  return {.op = op, .reads = {reads}, .build = build};
}

}  // namespace

Status add_elementwise_gradients(GradientTable& table) {
  const GradientReads shape0{.input_shapes = 1}, shape1{.input_shapes = 2};
  const GradientReads clip{.inputs = 7, .input_shapes = bits({1, 2})};
  return add_rules(
      table, {{.op = "Add", .reads = {shape0, shape1}, .build = add_gradient},
              {.op = "Sub", .reads = {shape0, shape1}, .build = sub_gradient},
              {.op = "Mul",
               .reads = {GradientReads{.inputs = 2, .input_shapes = 1},
                         GradientReads{.inputs = 1, .input_shapes = 2}},
               .build = mul_gradient},
              {.op = "Div",
               .reads = {GradientReads{.inputs = 2, .input_shapes = 1},
                         GradientReads{.inputs = 2, .outputs = 1, .input_shapes = 2}},
               .build = div_gradient},
              {.op = "Pow",
               .reads = {GradientReads{.inputs = 3, .input_shapes = 1},
                         GradientReads{.inputs = 3, .outputs = 1, .input_shapes = 2}},
               .build = pow_gradient},
              {.op = "Mod",
               .reads = {shape0, GradientReads{.inputs = 3, .outputs = 1, .input_shapes = 2}},
               .build = mod_gradient},
              variadic("Max", {.inputs = kAllValues, .outputs = 1, .input_shapes = kAllValues},
                       extreme_gradient),
              variadic("Min", {.inputs = kAllValues, .outputs = 1, .input_shapes = kAllValues},
                       extreme_gradient),
              variadic("Sum", {.input_shapes = kAllValues}, sum_gradient),
              variadic("Mean", {.input_shapes = kAllValues}, mean_gradient),
              {.op = "Where",
               .reads = {kNothingBack, GradientReads{.inputs = 1, .input_shapes = 2},
                         GradientReads{.inputs = 1, .input_shapes = 4}},
               .build = where_gradient},
              {.op = "Clip", .reads = {clip, clip, clip}, .build = clip_gradient},
              {.op = "PRelu",
               .reads = {GradientReads{.inputs = 3}, GradientReads{.inputs = 3, .input_shapes = 2}},
               .build = prelu_gradient},
              {.op = "Cast", .reads = {GradientReads{}}, .build = cast_gradient},
              {.op = "CastLike", .reads = {GradientReads{}, kNothingBack}, .build = cast_gradient},
              {.op = "Dropout",
               .reads = {GradientReads{.inputs = bits({1, 2}), .outputs = 2}, kNothingBack},
               .build = dropout_gradient}});
}

}  // namespace eddy
