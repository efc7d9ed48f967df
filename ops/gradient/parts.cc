#include "ops/gradient/parts.h"

#include <algorithm>

#include "graph/base/check.h"

namespace eddy {

Status add_rules(GradientTable& table, std::vector<GradientRule> rules) {
  for (GradientRule& rule : rules) EDDY_RETURN_IF_ERROR(table.add(std::move(rule)));
  return Status::ok();
}

int64_t place_of(int64_t axis, int rank) { return axis < 0 ? axis + rank : axis; }

std::vector<int64_t> axes_between(int64_t begin, int64_t end) {
  std::vector<int64_t> axes;
  for (int64_t axis = begin; axis < end; ++axis) axes.push_back(axis);
  return axes;
}

std::optional<std::vector<int64_t>> known_ints(const GradientContext& c, size_t input) {
  const Constant* constant = c.input_constant_or_null(input);
  if (constant == nullptr) return std::nullopt;
  const TensorView view = constant->view();
  EDDY_DCHECK(view.element == ElementType::kInt32 || view.element == ElementType::kInt64)
      << "input " << input << " of " << c.op_name() << " holds no integers";
  std::vector<int64_t> values(static_cast<size_t>(view.count()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = view.element == ElementType::kInt32 ? view.as<int32_t>()[i] : view.as<int64_t>()[i];
  }
  return values;
}

Value reshape_to_input(GradientContext& c, Value value, size_t i) {
  return c.op("Reshape", {value, c.input_shape(i)}, {{"allowzero", int64_t{1}}});
}

Value sum_over(GradientContext& c, Value value, const std::vector<int64_t>& axes) {
  if (axes.empty()) return value;
  return c.op("ReduceSum", {value, c.int64s(axes)}, {{"keepdims", int64_t{1}}});
}

Value mean_over(GradientContext& c, Value value, const std::vector<int64_t>& axes) {
  if (axes.empty()) return value;
  return c.op("ReduceMean", {value, c.int64s(axes)}, {{"keepdims", int64_t{1}}});
}

Value zeros_of(GradientContext& c, Value shape) { return c.op("Expand", {c.number(0), shape}); }

Value flat_places(GradientContext& c) {
  const Value shape = c.input_shape(0);
  const Value count = c.op("ReduceProd", {shape}, {{"keepdims", int64_t{0}}});
  const ElementType ints = ElementType::kInt64;
  const Value places = c.op("Range", {c.number(ints, 0), count, c.number(ints, 1)});
  return c.op("Reshape", {places, shape}, {{"allowzero", int64_t{1}}});
}

void add_at_places(GradientContext& c, Value places, Value gradient) {
  const Value flat = c.int64s({-1});
  const Value sum = c.op("Reshape", {c.take_sum(0), flat});
  const Value added = c.op(
      "ScatterElements", {sum, c.op("Reshape", {places, flat}), c.op("Reshape", {gradient, flat})},
      {{"axis", int64_t{0}}, {"reduction", std::string("add")}});
  c.set_gradient(0, reshape_to_input(c, added, 0));
}

}  // namespace eddy
