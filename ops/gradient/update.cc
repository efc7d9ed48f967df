// UpdateParameter as the nodes that it stands for, operation for operation: its derivative, for
// losses behind steps of an optimizer, and what its kernels are checked against.
#include <string>

#include "graph/base/check.h"
#include "ops/gradient/families.h"
#include "ops/gradient/parts.h"
#include "ops/schema/eddy/update_parameter.h"

namespace eddy {
namespace {

// A value that formulas can be written with.
class UpdateNodes {
 public:
  struct Term {
    UpdateNodes* nodes;
    Value value;
    friend Term operator+(Term a, Term b) { return a.nodes->op("Add", {a.value, b.value}); }
    friend Term operator-(Term a, Term b) { return a.nodes->op("Sub", {a.value, b.value}); }
    friend Term operator*(Term a, Term b) { return a.nodes->op("Mul", {a.value, b.value}); }
    friend Term operator/(Term a, Term b) { return a.nodes->op("Div", {a.value, b.value}); }
    friend Term operator*(double factor, Term b) {
      return factor == 1 ? b : b.nodes->number(factor) * b;
    }
  };

  UpdateNodes(GraphBuilder& builder, const Node& call, ValueSpan inputs, const UpdateForm& form)
      : b_(builder), call_(call), inputs_(inputs), form_(form) {
    element_ = b_.type(inputs_[UpdateInputs::kX]).tensor.element;
  }

  std::vector<Value> build() {
    const Term x = input(UpdateInputs::kX), gradient = input(UpdateInputs::kGradient);
    const Term rate = scalar(UpdateInputs::kRate);
    const Term g = form_.norm == 0 ? gradient : form_.norm * x + gradient;
    switch (form_.rule) {
      case UpdateRule::kDescent:
        return {(x - rate * g).value};
      case UpdateRule::kAdagrad: {
        const Term squares = input(UpdateInputs::kStates) + g * g;
        return {(x - rate * over_root(g, squares)).value, squares.value};
      }
      case UpdateRule::kAdam: {
        const Term mean = form_.alpha * input(UpdateInputs::kStates) + form_.rest_of_alpha * g;
        const Term squares =
            form_.beta * input(UpdateInputs::kStates + 1) + form_.rest_of_beta * (g * g);
        return {(form_.kept * (x - rate * over_root(mean, squares))).value, mean.value,
                squares.value};
      }
      default: {
        const bool is_whole = inputs_[UpdateInputs::kShare].is_none();
        const Term added = is_whole ? g : scalar(UpdateInputs::kShare) * g;
        const Term momentum = form_.alpha * input(UpdateInputs::kStates) + added;
        const bool looks_ahead = form_.rule == UpdateRule::kNesterov;
        const Term direction = looks_ahead ? g + form_.alpha * momentum : momentum;
        return {(x - rate * direction).value, momentum.value};
      }
    }
  }

  Term op(std::string_view name, std::initializer_list<Value> inputs, Attributes attributes = {}) {
    return {this, b_.op(name, inputs, std::move(attributes),
                        {.name = call_.name + "/" + std::string(name), .device = call_.device})};
  }
  Term number(double value) {
    if (element_ == ElementType::kFloat) return {this, b_.scalar(static_cast<float>(value))};
    if (element_ == ElementType::kDouble) return {this, b_.scalar(value)};
    return op("Cast", {b_.scalar(value)}, {{"to", static_cast<int64_t>(element_)}});
  }

 private:
  Term input(int i) {
    EDDY_DCHECK(static_cast<size_t>(i) < inputs_.size()) << "input " << i << " of " << call_.name;
    return {this, inputs_[static_cast<size_t>(i)]};
  }
  // Of one element, without axes, which would widen what has none.
  Term scalar(int i) {
    const Term given = input(i);
    const TensorType& type = b_.type(given.value).tensor;
    if (type.is_ranked && type.dims.rank() == 0) return given;
    return op("Reshape", {given.value, b_.int64s({})});
  }
  Term over_root(Term above, Term squares) {
    return above / (op("Sqrt", {squares.value}) + number(form_.epsilon));
  }

  GraphBuilder& b_;
  const Node& call_;
  const ValueSpan inputs_;
  const UpdateForm& form_;
  ElementType element_;
};

std::vector<Value> expand(GraphBuilder& builder, const Node& call, ValueSpan inputs) {
  const auto form = parse_update(call.attributes);
  EDDY_CHECK(form.is_ok()) << call.name << " was built of " << form.status().message();
  std::vector<Value> made = UpdateNodes(builder, call, inputs, *form).build();
  EDDY_DCHECK(made.size() == 1 + static_cast<size_t>(num_states(form->rule)))
      << call.name << " becomes " << made.size() << " values";
  return made;
}

}  // namespace

Status add_update_gradients(GradientTable& table) {
  const Reads back = GradientReads{};
  return add_rules(
      table, {{.op = "UpdateParameter", .domain = "eddy", .reads = {back}, .expand = expand}});
}

}  // namespace eddy
