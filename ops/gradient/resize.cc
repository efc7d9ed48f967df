// Resize. Nearest neighbours only pick elements, so the adjoint is added at the places that were
// picked. The other modes are linear and treat one axis after the other: along each axis they are
// a matrix, which is what they make of the unit matrix, and the adjoint is multiplied with it.
//
// Cost: linear and cubic n m for an axis resized from n to m, beside the product; axes whose scale
// is known to be 1 cost nothing.
#include <algorithm>

#include "graph/base/check.h"
#include "ops/gradient/families.h"
#include "ops/gradient/parts.h"
#include "ops/schema/windows/resize_rules.h"

namespace eddy {
namespace {

// The node's attributes; before opset 11 it had fewer and meant these.
Attributes resize_attributes(const GradientContext& c) {
  Attributes attributes = c.attributes();
  if (c.opset_version() < 11) {
    attributes.set("coordinate_transformation_mode", std::string("asymmetric"));
    attributes.set("nearest_mode", std::string("floor"));
  }
  return attributes;
}

// scales or sizes: the input that says how large the output becomes.
struct Extents {
  size_t input = 0;
  bool are_scales = true;
};
Extents extents_of(const GradientContext& c) {
  if (c.opset_version() < 11) return {1, true};
  const Constant* sizes = c.input_constant_or_null(3);
  const bool has_sizes = c.has_input(3) && (sizes == nullptr || sizes->view().count() > 0);
  return has_sizes ? Extents{3, false} : Extents{2, true};
}

void nearest_gradient(GradientContext& c) {
  const Extents extents = extents_of(c);
  const Value given = c.input(extents.input);
  const Value places =
      extents.are_scales
          ? c.op("Resize", {flat_places(c), Value{}, given}, resize_attributes(c))
          : c.op("Resize", {flat_places(c), Value{}, Value{}, given}, resize_attributes(c));
  add_at_places(c, places, c.gradient());
}

// Whether the axis is known to stay as it is.
bool keeps(const GradientContext& c, const Extents& extents, size_t place, int64_t size) {
  const Constant* given = c.input_constant_or_null(extents.input);
  if (given == nullptr || static_cast<int64_t>(place) >= given->view().count()) return false;
  EDDY_DCHECK(given->element == (extents.are_scales ? ElementType::kFloat : ElementType::kInt64))
      << "input " << extents.input << " is " << element_type_name(given->element);
  if (extents.are_scales) return given->view().as<float>()[place] == 1.0f;
  return size >= 0 && given->view().as<int64_t>()[place] == size;
}

// What Resize makes of the unit matrix of that size along its axis 0: [output size, size].
Value matrix_along(GradientContext& c, const Extents& extents, int64_t place, int64_t axis) {
  const Value size = c.op("Gather", {c.input_shape(0), c.int64s({axis})});
  const Value square = c.op("Concat", {size, size}, {{"axis", int64_t{0}}});
  const Value unit = c.op("EyeLike", {zeros_of(c, square)});
  Attributes attributes;
  const Attributes given = resize_attributes(c);
  for (const auto& [name, value] : given.entries()) {
    if (name != "axes") attributes.set(name, value);
  }
  const Value one = c.op("Gather", {c.input(extents.input), c.int64s({place})});
  const Value rest =
      extents.are_scales ? c.op("Expand", {c.number(ElementType::kFloat, 1), c.int64s({1})}) : size;
  const Value both = c.op("Concat", {one, rest}, {{"axis", int64_t{0}}});
  return extents.are_scales ? c.op("Resize", {unit, Value{}, both}, attributes)
                            : c.op("Resize", {unit, Value{}, Value{}, both}, attributes);
}

void linear_gradient(GradientContext& c, const ResizeRules& rules) {
  const int rank = c.rank_or_fail(c.input_type(0), "the input");
  if (rank < 0) return;
  if (rules.aspect != ResizeAspect::kStretch) {
    return c.fail(
        unsupported("the gradient of Resize that keeps its aspect ratio is known for nearest "
                    "neighbours only; give scales, or stretch"));
  }
  const Extents extents = extents_of(c);
  const int64_t num_places = rules.axes.empty() ? rank : static_cast<int64_t>(rules.axes.size());
  Value g = c.gradient();
  for (int64_t place = 0; place < num_places; ++place) {
    const int64_t axis =
        rules.axes.empty() ? place : place_of(rules.axes[static_cast<size_t>(place)], rank);
    const int64_t size = c.input_type(0).dims[static_cast<int>(axis)];
    if (keeps(c, extents, static_cast<size_t>(place), size)) continue;
    std::vector<int64_t> swapped = axes_between(0, rank);
    std::swap(swapped[static_cast<size_t>(axis)], swapped.back());
    const Attributes swap = {{"perm", swapped}};
    const Value product =
        c.op("MatMul", {c.op("Transpose", {g}, swap), matrix_along(c, extents, place, axis)});
    g = c.op("Transpose", {product}, swap);
  }
  c.set_gradient(0, g);
}

void resize_gradient(GradientContext& c) {
  const Attributes attributes = resize_attributes(c);
  ResizeRules rules;
  if (Status status = parse_resize(attributes, 18, rules); !status.is_ok()) {
    return c.fail(std::move(status));
  }
  if (rules.coordinates == ResizeCoordinates::kTfCropAndResize) {
    return c.fail(
        unsupported("the gradient of Resize with tf_crop_and_resize is not known: its "
                    "region may lie outside; slice and resize"));
  }
  if (rules.mode == ResizeMode::kNearest) return nearest_gradient(c);
  linear_gradient(c, rules);
}

}  // namespace

Status add_resize_gradients(GradientTable& table) {
  const GradientReads reads{.inputs = bits({1, 2, 3}), .input_shapes = 1};
  return add_rules(table,
                   {{.op = "Resize", .reads = {reads, kNothingBack}, .build = resize_gradient}});
}

}  // namespace eddy
