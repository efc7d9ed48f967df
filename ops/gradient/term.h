// Term: a value of a gradient rule that formulas can be written with.
//
//   Term tanh_slope(const Slope& s) { return 1.0 - s.y() * s.y(); }
//
// Each operator adds one node; a number becomes a scalar of output 0's element type.
#pragma once

#include <initializer_list>
#include <string_view>

#include "graph/base/check.h"
#include "graph/differentiate/gradient_rule.h"

namespace eddy {

class Term {
 public:
  Term(GradientContext& context, Value value) : context_(&context), value_(value) {}

  Value value() const { return value_; }
  GradientContext& context() const { return *context_; }
  Term number(double x) const { return {*context_, context_->number(x)}; }

 private:
  GradientContext* context_;
  Value value_;
};

inline Term apply(std::string_view op, Term a, Attributes attributes = {}) {
  return {a.context(), a.context().op(op, {a.value()}, std::move(attributes))};
}
inline Term apply(std::string_view op, Term a, Term b) {
  EDDY_DCHECK(&a.context() == &b.context()) << op << " of values of two rules";
  return {a.context(), a.context().op(op, {a.value(), b.value()})};
}
inline Term choose(Term condition, Term yes, Term no) {
  EDDY_DCHECK(&condition.context() == &yes.context() && &yes.context() == &no.context())
      << "a choice of values of several rules";
  return {yes.context(), yes.context().op("Where", {condition.value(), yes.value(), no.value()})};
}

inline Term operator+(Term a, Term b) { return apply("Add", a, b); }
inline Term operator-(Term a, Term b) { return apply("Sub", a, b); }
inline Term operator*(Term a, Term b) { return apply("Mul", a, b); }
inline Term operator/(Term a, Term b) { return apply("Div", a, b); }
inline Term operator>(Term a, Term b) { return apply("Greater", a, b); }
inline Term operator<(Term a, Term b) { return apply("Less", a, b); }
inline Term operator+(Term a, double b) { return a + a.number(b); }
inline Term operator-(Term a, double b) { return a - a.number(b); }
inline Term operator*(Term a, double b) { return a * a.number(b); }
inline Term operator/(Term a, double b) { return a / a.number(b); }
inline Term operator+(double a, Term b) { return b + a; }
inline Term operator-(double a, Term b) { return b.number(a) - b; }
inline Term operator*(double a, Term b) { return b * a; }
inline Term operator/(double a, Term b) { return b.number(a) / b; }
inline Term operator>(Term a, double b) { return a > a.number(b); }
inline Term operator<(Term a, double b) { return a < a.number(b); }
inline Term operator-(Term a) { return apply("Neg", a); }

}  // namespace eddy
