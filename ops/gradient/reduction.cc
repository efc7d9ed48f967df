// Reductions: the adjoint goes back over the axes that were reduced. Axes are an attribute or,
// since opset 18 (ReduceSum: 13), an input.
//
// Kinks: equal extremes share evenly; ReduceL1 has slope 0 at 0, ReduceL2 of zeros 0.
#include "ops/gradient/families.h"
#include "ops/gradient/parts.h"
#include "ops/gradient/term.h"

namespace eddy {
namespace {

// A reduction's axes in the form of today.
class Reduced {
 public:
  explicit Reduced(GradientContext& c) : c_(c) {
    if (c.has_input(1)) {
      axes_ = c.input(1);
      const auto known = known_ints(c, 1);
      has_axes_ = !known.has_value() || !known->empty();
    } else if (const auto axes = c.attributes().get_ints("axes"); !axes.empty()) {
      axes_ = c.int64s(axes);
      has_axes_ = true;
    }
    keeps_none_ = !has_axes_ && c.attributes().get_int("noop_with_empty_axes", 0) != 0;
  }

  // A value of the output's shape with the reduced axes as ones, or without any: it broadcasts.
  Value restored(Value value) const {
    const bool keeps = c_.attributes().get_int("keepdims", 1) != 0;
    return keeps || !has_axes_ ? value : c_.op("Unsqueeze", {value, axes_});
  }
  Value all_of_input(Value value) const {
    return c_.op("Expand", {restored(value), c_.input_shape(0)});
  }
  // The same axes of a value of the input's shape, as ones.
  Value again(std::string_view op, Value value) const {
    if (keeps_none_) return value;
    const Attributes keep = {
        {"keepdims", int64_t{1}},
        {"noop_with_empty_axes", c_.attributes().get_int("noop_with_empty_axes", 0)}};
    return has_axes_ ? c_.op(op, {value, axes_}, keep)
                     : c_.op(op, {value}, {{"keepdims", int64_t{1}}});
  }
  Term g() const { return {c_, restored(c_.gradient())}; }
  Term y() const { return {c_, restored(c_.output())}; }
  Term x() const { return {c_, c_.input(0)}; }
  void set(Term gradient) const { c_.set_gradient(0, gradient.value()); }

 private:
  GradientContext& c_;
  Value axes_;
  bool has_axes_ = false;
  bool keeps_none_ = false;
};

void sum_gradient(GradientContext& c) { c.set_gradient(0, Reduced(c).all_of_input(c.gradient())); }

void mean_gradient(GradientContext& c) {
  const auto count = [&](Value shape) {
    return c.cast(c.op("ReduceProd", {shape}, {{"keepdims", int64_t{0}}}), c.element());
  };
  const Value each = c.op("Div", {count(c.output_shape()), count(c.input_shape(0))});
  c.set_gradient(0, Reduced(c).all_of_input(c.op("Mul", {c.gradient(), each})));
}

void extreme_gradient(GradientContext& c) {
  const Reduced r(c);
  const Term is_extreme{c, c.cast(c.op("Equal", {c.input(0), r.y().value()}), c.element())};
  const Term count{c, r.again("ReduceSum", is_extreme.value())};
  r.set(is_extreme * (r.g() / count));
}

// The product of the others: of zeros, only a single one has a slope.
void product_gradient(GradientContext& c) {
  const Reduced r(c);
  const Term x = r.x(), none = x.number(0), one = x.number(1);
  const Term is_zero = apply("Equal", x, none);
  const Term safe = choose(is_zero, one, x);
  const Term product{c, r.again("ReduceProd", safe.value())};
  const Term zeros{c, r.again("ReduceSum", choose(is_zero, one, none).value())};
  const Term others = choose(is_zero, zeros - 1.0, zeros);  // zeros among the others
  r.set(r.g() * choose(apply("Equal", others, none), product / safe, none));
}

void l1_gradient(GradientContext& c) {
  const Reduced r(c);
  r.set(r.g() * apply("Sign", r.x()));
}

void l2_gradient(GradientContext& c) {
  const Reduced r(c);
  const Term is_zero = apply("Equal", r.y(), r.y().number(0));
  const Term length = choose(is_zero, r.y().number(1), r.y());
  r.set(r.x() * (r.g() / length));
}

void sum_square_gradient(GradientContext& c) {
  const Reduced r(c);
  r.set(r.x() * (r.g() * 2.0));
}

void log_sum_gradient(GradientContext& c) {
  const Reduced r(c);
  const Value each = c.op("Div", {c.gradient(), c.op("Exp", {c.output()})});
  c.set_gradient(0, r.all_of_input(each));
}

void log_sum_exp_gradient(GradientContext& c) {
  const Reduced r(c);
  r.set(r.g() * apply("Exp", r.x() - r.y()));
}

void cum_sum_gradient(GradientContext& c) {
  const Attributes& given = c.attributes();
  c.set_gradient(0, c.op("CumSum", {c.gradient(), c.input(1)},
                         {{"exclusive", given.get_int("exclusive", 0)},
                          {"reverse", int64_t{given.get_int("reverse", 0) == 0}}}));
}

}  // namespace

Status add_reduction_gradients(GradientTable& table) {
  const auto rule = [](const char* op, GradientReads reads, GradientFunction build) {
    reads.inputs |= 2;  // the axes
    return GradientRule{.op = op, .reads = {reads, kNothingBack}, .build = build};
  };
  return add_rules(table,
                   {rule("ReduceSum", {.input_shapes = 1}, sum_gradient),
                    rule("ReduceMean", {.input_shapes = 1, .output_shapes = 1}, mean_gradient),
                    rule("ReduceMax", {.inputs = 1, .outputs = 1}, extreme_gradient),
                    rule("ReduceMin", {.inputs = 1, .outputs = 1}, extreme_gradient),
                    rule("ReduceProd", {.inputs = 1}, product_gradient),
                    rule("ReduceL1", {.inputs = 1}, l1_gradient),
                    rule("ReduceL2", {.inputs = 1, .outputs = 1}, l2_gradient),
                    rule("ReduceSumSquare", {.inputs = 1}, sum_square_gradient),
                    rule("ReduceLogSum", {.outputs = 1, .input_shapes = 1}, log_sum_gradient),
                    rule("ReduceLogSumExp", {.inputs = 1, .outputs = 1}, log_sum_exp_gradient),
                    rule("CumSum", {}, cum_sum_gradient)});
}

}  // namespace eddy
