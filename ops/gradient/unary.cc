// Operators of one input: the adjoint times the slope, which reads the input or the output.
//
// Kinks: Relu, ThresholdedRelu and Shrink have slope 0 where they bend, Abs has 0 at 0, LeakyRelu
// its alpha, Elu and its kin alpha, HardSigmoid 0.
#include <cmath>
#include <numbers>

#include "graph/ir/checked_call.h"
#include "ops/gradient/families.h"
#include "ops/gradient/parts.h"
#include "ops/gradient/term.h"

namespace eddy {
namespace {

class Slope {
 public:
  explicit Slope(GradientContext& c) : c_(c) {}
  Term x() const { return {c_, c_.input(0)}; }
  Term y() const { return {c_, c_.output(0)}; }
  Term g() const { return {c_, c_.gradient()}; }
  Term zero() const { return {c_, c_.number(0)}; }
  double attribute(std::string_view name, float fallback) const {
    return static_cast<double>(c_.attributes().get_float(name, fallback));
  }
  bool is_attribute(std::string_view name, std::string_view value) const {
    return c_.attributes().get_string(name, "") == value;
  }

 private:
  GradientContext& c_;
};

Term exp_below(const Slope& s, Term scaled) { return apply("Exp", apply("Min", scaled, s.zero())); }

// Each gives the adjoint of x.
Term abs_slope(const Slope& s) { return s.g() * apply("Sign", s.x()); }
Term neg_slope(const Slope& s) { return -s.g(); }
Term relu_slope(const Slope& s) { return choose(s.y() > 0.0, s.g(), s.zero()); }
Term leaky_slope(const Slope& s) {
  return choose(s.x() > 0.0, s.g(), s.g() * s.attribute("alpha", 0.01f));
}
Term elu_slope(const Slope& s) {
  return choose(s.x() > 0.0, s.g(), s.g() * (s.attribute("alpha", 1.0f) * exp_below(s, s.x())));
}
Term celu_slope(const Slope& s) {
  const double alpha = s.attribute("alpha", 1.0f);
  return choose(s.x() > 0.0, s.g(), s.g() * exp_below(s, s.x() / alpha));
}
Term selu_slope(const Slope& s) {
  const double gamma = s.attribute("gamma", 1.05070102214813232421875f);
  const double alpha = s.attribute("alpha", 1.67326319217681884765625f);
  return choose(s.x() > 0.0, s.g() * gamma, s.g() * ((gamma * alpha) * exp_below(s, s.x())));
}
Term exp_slope(const Slope& s) { return s.g() * s.y(); }
Term log_slope(const Slope& s) { return s.g() / s.x(); }
Term sqrt_slope(const Slope& s) { return s.g() / (s.y() * 2.0); }
Term reciprocal_slope(const Slope& s) { return -(s.g() * (s.y() * s.y())); }
Term sigmoid_slope(const Slope& s) { return s.g() * (s.y() * (1.0 - s.y())); }
Term tanh_slope(const Slope& s) { return s.g() * (1.0 - s.y() * s.y()); }
Term sin_slope(const Slope& s) { return s.g() * apply("Cos", s.x()); }
Term cos_slope(const Slope& s) { return -(s.g() * apply("Sin", s.x())); }
Term tan_slope(const Slope& s) { return s.g() * (1.0 + s.y() * s.y()); }
Term asin_slope(const Slope& s) { return s.g() / apply("Sqrt", 1.0 - s.x() * s.x()); }
Term acos_slope(const Slope& s) { return -asin_slope(s); }
Term atan_slope(const Slope& s) { return s.g() / (1.0 + s.x() * s.x()); }
Term sinh_slope(const Slope& s) { return s.g() * apply("Cosh", s.x()); }
Term cosh_slope(const Slope& s) { return s.g() * apply("Sinh", s.x()); }
Term asinh_slope(const Slope& s) { return s.g() / apply("Sqrt", s.x() * s.x() + 1.0); }
Term acosh_slope(const Slope& s) {
  return s.g() / (apply("Sqrt", s.x() - 1.0) * apply("Sqrt", s.x() + 1.0));
}
Term atanh_slope(const Slope& s) { return s.g() / (1.0 - s.x() * s.x()); }
Term erf_slope(const Slope& s) {
  return s.g() * (2.0 * std::numbers::inv_sqrtpi * apply("Exp", -(s.x() * s.x())));
}
Term softplus_slope(const Slope& s) { return s.g() * apply("Sigmoid", s.x()); }
Term softsign_slope(const Slope& s) {
  const Term below = 1.0 + apply("Abs", s.x());
  return s.g() / (below * below);
}
Term hard_sigmoid_slope(const Slope& s) {
  const Term inside = apply("And", s.y() > 0.0, s.y() < 1.0);
  return choose(inside, s.g() * s.attribute("alpha", 0.2f), s.zero());
}
Term hard_swish_slope(const Slope& s) {
  const Term middle = choose(s.x() > 3.0, s.g(), s.g() * (s.x() / 3.0 + 0.5));
  return choose(s.x() < -3.0, s.zero(), middle);
}
Term mish_slope(const Slope& s) {
  const Term t = apply("Tanh", apply("Softplus", s.x()));
  return s.g() * (t + s.x() * apply("Sigmoid", s.x()) * (1.0 - t * t));
}
Term gelu_slope(const Slope& s) {
  const Term x = s.x();
  if (s.is_attribute("approximate", "tanh")) {
    const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    const Term t = apply("Tanh", scale * (x + 0.044715 * (x * x * x)));
    const Term inner = scale * (1.0 + (3 * 0.044715) * (x * x));
    return s.g() * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner);
  }
  const Term below = 0.5 * (1.0 + apply("Erf", x / std::numbers::sqrt2));
  const double density = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return s.g() * (below + x * (density * apply("Exp", x * x * -0.5)));
}
Term swish_slope(const Slope& s) {
  const double alpha = s.attribute("alpha", 1.0f);
  const Term t = apply("Sigmoid", s.x() * alpha);
  return s.g() * (t + alpha * s.x() * t * (1.0 - t));
}
Term shrink_slope(const Slope& s) {
  return choose(apply("Abs", s.x()) > s.attribute("lambd", 0.5f), s.g(), s.zero());
}
Term thresholded_slope(const Slope& s) {
  return choose(s.x() > s.attribute("alpha", 1.0f), s.g(), s.zero());
}
Term same_slope(const Slope& s) { return s.g(); }

template <Term (*slope)(const Slope&)>
void build(GradientContext& c) {
  c.set_gradient(0, slope(Slope(c)).value());
}

template <Term (*slope)(const Slope&)>
GradientRule reads_x(const char* op) {
  return {.op = op, .reads = {GradientReads{.inputs = 1}}, .build = build<slope>};
}
template <Term (*slope)(const Slope&)>
GradientRule reads_y(const char* op) {
  return {.op = op, .reads = {GradientReads{.outputs = 1}}, .build = build<slope>};
}
template <Term (*slope)(const Slope&)>
GradientRule reads_none(const char* op) {
  return {.op = op, .reads = {GradientReads{}}, .build = build<slope>};
}

}  // namespace

Status add_unary_gradients(GradientTable& table) {
  // Of few instructions, so that loops call them again on their way back.
  table.add_cheap("", {"Abs", "Neg", "Relu", "Not", "Ceil", "Floor", "Round", "Sign", "LeakyRelu",
                       "Reciprocal", "BitwiseNot"});
  return add_rules(table, {reads_x<abs_slope>("Abs"),
                           reads_none<neg_slope>("Neg"),
                           reads_y<relu_slope>("Relu"),
                           reads_x<leaky_slope>("LeakyRelu"),
                           reads_x<elu_slope>("Elu"),
                           reads_x<celu_slope>("Celu"),
                           reads_x<selu_slope>("Selu"),
                           reads_y<exp_slope>("Exp"),
                           reads_x<log_slope>("Log"),
                           reads_y<sqrt_slope>("Sqrt"),
                           reads_y<reciprocal_slope>("Reciprocal"),
                           reads_y<sigmoid_slope>("Sigmoid"),
                           reads_y<tanh_slope>("Tanh"),
                           reads_x<sin_slope>("Sin"),
                           reads_x<cos_slope>("Cos"),
                           reads_y<tan_slope>("Tan"),
                           reads_x<asin_slope>("Asin"),
                           reads_x<acos_slope>("Acos"),
                           reads_x<atan_slope>("Atan"),
                           reads_x<sinh_slope>("Sinh"),
                           reads_x<cosh_slope>("Cosh"),
                           reads_x<asinh_slope>("Asinh"),
                           reads_x<acosh_slope>("Acosh"),
                           reads_x<atanh_slope>("Atanh"),
                           reads_x<erf_slope>("Erf"),
                           reads_x<softplus_slope>("Softplus"),
                           reads_x<softsign_slope>("Softsign"),
                           reads_y<hard_sigmoid_slope>("HardSigmoid"),
                           reads_x<hard_swish_slope>("HardSwish"),
                           reads_x<mish_slope>("Mish"),
                           reads_x<gelu_slope>("Gelu"),
                           reads_x<swish_slope>("Swish"),
                           reads_x<shrink_slope>("Shrink"),
                           reads_x<thresholded_slope>("ThresholdedRelu"),
                           reads_none<same_slope>("Identity"),
                           {.op = kCheckedCall,
                            .domain = "eddy",
                            .reads = {GradientReads{}, std::nullopt},
                            .build = build<same_slope>}});
}

}  // namespace eddy
