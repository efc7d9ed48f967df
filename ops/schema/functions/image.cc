// AffineGrid, CenterCropPad and Upsample as functions.
#include <string>
#include <vector>

#include "graph/ir/expansion.h"
#include "ops/schema/functions/functions.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

constexpr TypeSet kIndexTypes = {ElementType::kInt32, ElementType::kInt64};
constexpr InputFlag kHost = InputFlag::kHostValue;

// theta is [N, 2, 3] for images and [N, 3, 4] for volumes. -1: not known.
int spatial_rank(const TensorType& theta) {
  if (!theta.is_ranked || theta.dims.rank() != 3) return -1;
  const int64_t rank = theta.dims[1] >= 0 ? theta.dims[1] : theta.dims[2] - 1;
  return rank == 2 || rank == 3 ? static_cast<int>(rank) : -1;
}

Status infer_affine_grid(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* theta, tensor_input(context, 0));
  context.set_output(0, TensorType(theta->element));
  if (!theta->is_ranked) return Status::ok();
  const int rank = spatial_rank(*theta);
  const Dims& dims = theta->dims;
  const bool fits = dims.rank() == 3 && (rank > 0 || (dims[1] < 0 && dims[2] < 0)) &&
                    (rank < 0 || (merge_dim(dims[1], rank) && merge_dim(dims[2], rank + 1)));
  if (!fits) {
    return invalid_argument("theta must be [N, 2, 3] or [N, 3, 4], not " + to_string(dims));
  }
  return rank < 0 ? Status::ok() : expect_shape(context, 1, "size", {rank + 2});
}

// The n places along an axis, from -1 to 1: their corners are the ends, or their middles lie half a
// step from them.
Value axis_places(Expansion& e, Value n, ElementType element, bool align_corners) {
  const Value index =
      e.cast(e.op("Range", {e.number(ElementType::kInt64, 0), n, e.number(ElementType::kInt64, 1)}),
             ElementType::kDouble);
  const Value count = e.cast(n, ElementType::kDouble);
  const auto number = [&](double value) { return e.number(ElementType::kDouble, value); };
  Value place;
  if (align_corners) {
    const Value steps = e.op("Max", {e.op("Sub", {count, number(1)}), number(1)});
    place = e.op("Div", {e.op("Mul", {index, number(2)}), steps});
  } else {
    const Value odd = e.op("Add", {e.op("Mul", {index, number(2)}), number(1)});
    place = e.op("Div", {odd, count});
  }
  return e.cast(e.op("Sub", {place, number(1)}), element);
}

// theta times (x, y, 1) or (x, y, z, 1) of every place, x along the last axis.
void expand_affine_grid(Expansion& e) {
  const int rank = spatial_rank(e.type(e.input(0)));
  if (rank < 0) {
    return e.fail(unsupported("the shape of theta must be known to build AffineGrid: declare it"));
  }
  const ElementType element = e.element(e.input(0));
  const bool align_corners = e.attributes().get_int("align_corners", 0) != 0;
  const Value size = e.cast(e.input(1), ElementType::kInt64);
  const auto cut = [&](int64_t first, int64_t end) {
    return e.op("Slice", {size, e.int64s({first}), e.int64s({end})});
  };
  const Value spatial = cut(2, rank + 2);
  std::vector<Value> columns;
  for (int axis = rank - 1; axis >= 0; --axis) {
    const Value n = e.op("Gather", {size, e.number(ElementType::kInt64, axis + 2)});
    const Value places = axis_places(e, n, element, align_corners);
    std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
    shape[static_cast<size_t>(axis)] = -1;
    const Value line = e.op("Reshape", {places, e.int64s(shape)});
    columns.push_back(e.op("Unsqueeze", {e.op("Expand", {line, spatial}), e.int64s({-1})}));
  }
  const Value ones = e.op("Expand", {e.number(element, 1), spatial});
  columns.push_back(e.op("Unsqueeze", {ones, e.int64s({-1})}));
  const Value places = e.op("Concat", columns, {{"axis", int64_t{-1}}});
  const Value rows = e.op("Reshape", {places, e.int64s({-1, rank + 1})});
  const Value turned = e.op("Transpose", {e.input(0)}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  const std::vector<Value> parts = {cut(0, 1), spatial, e.int64s({rank})};
  const Value shape = e.op("Concat", parts, {{"axis", int64_t{0}}});
  e.set_output(0, e.op("Reshape", {e.op("MatMul", {rows, turned}), shape}));
}

Status infer_center_crop_pad(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  const std::span<const int64_t> axes = context.attributes().get_ints("axes");
  const bool is_given = context.attributes().has("axes");
  TensorType y(x->element);
  if (x->is_ranked) {
    const int rank = x->dims.rank();
    EDDY_RETURN_IF_ERROR(axes_mask(axes, rank).status());
    const auto wanted = is_given ? static_cast<int64_t>(axes.size()) : rank;
    EDDY_RETURN_IF_ERROR(expect_shape(context, 1, "the input shape", {wanted}));
    Dims dims = x->dims;
    for (int64_t i = 0; i < wanted; ++i) {
      const int64_t axis = is_given ? axes[static_cast<size_t>(i)] : i;
      dims[static_cast<int>(axis < 0 ? axis + rank : axis)] = kUnknownDim;
    }
    y = TensorType(x->element, dims);
  }
  context.set_output(0, y);
  return Status::ok();
}

// Cuts the middle out of axes that are too long, and puts zeros around those that are too short. Of
// an odd number the end has one more.
void expand_center_crop_pad(Expansion& e) {
  const int rank = e.rank_or_fail(e.input(0), "input_data");
  if (rank < 0) return;
  std::vector<int64_t> axes(e.attributes().get_ints("axes").begin(),
                            e.attributes().get_ints("axes").end());
  if (!e.attributes().has("axes")) {
    for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  const Value x = e.input(0);
  const Value axes_value = e.int64s(axes);
  const Value target = e.cast(e.input(1), ElementType::kInt64);
  const Value size = e.op("Gather", {e.shape(x), axes_value});
  const Value zero = e.number(ElementType::kInt64, 0), two = e.number(ElementType::kInt64, 2);
  const Value excess = e.op("Max", {e.op("Sub", {size, target}), zero});
  const Value start = e.op("Div", {excess, two});
  const Value end = e.op("Add", {start, e.op("Min", {size, target})});
  const Value cropped = e.op("Slice", {x, start, end, axes_value});
  const Value lack = e.op("Max", {e.op("Sub", {target, size}), zero});
  const Value before = e.op("Div", {lack, two});
  const std::vector<Value> sides = {before, e.op("Sub", {lack, before})};
  const Value pads = e.op("Concat", sides, {{"axis", int64_t{0}}});
  e.set_output(0, e.op("Pad", {cropped, pads, Value{}, axes_value}));
}

Status infer_upsample(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  const std::string_view mode = context.attributes().get_string("mode", "nearest");
  const std::string_view smooth = context.opset_version() < 7 ? "bilinear" : "linear";
  if (mode != "nearest" && mode != smooth) {
    return invalid_argument("mode must be nearest or " + std::string(smooth) + ", not '" +
                            std::string(mode) + "'");
  }
  TensorType y(x->element);
  if (x->is_ranked) {
    Dims dims = x->dims;
    for (int axis = 0; axis < dims.rank(); ++axis) dims[axis] = kUnknownDim;
    y = TensorType(x->element, dims);
  }
  context.set_output(0, y);
  return Status::ok();
}

void expand_upsample(Expansion& e) {
  const Attributes& given = e.attributes();
  Value scales = e.input(1);
  if (given.has("height_scale")) {  // of images, before opset 7
    const float both[] = {1, 1, given.get_float("height_scale", 1),
                          given.get_float("width_scale", 1)};
    scales = e.floats(both);
  } else if (scales.is_none()) {
    scales = e.floats(given.get_floats("scales"));
  }
  const bool is_nearest = given.get_string("mode", "nearest") == "nearest";
  e.set_output(0, e.op("Resize", {e.input(0), Value{}, scales},
                       {{"mode", std::string(is_nearest ? "nearest" : "linear")},
                        {"coordinate_transformation_mode", std::string("asymmetric")},
                        {"nearest_mode", std::string("floor")}}));
}

OpDef upsample(int since_version, std::vector<FormalInput> inputs,
               std::vector<FormalAttribute> attributes) {
  return {.name = "Upsample",
          .since_version = since_version,
          .inputs = std::move(inputs),
          .attributes = std::move(attributes),
          .infer = infer_upsample,
          .expand = expand_upsample};
}

}  // namespace

Status add_image_functions(OpTable& table) {
  const FormalAttribute mode = attribute("mode", kString);
  return add_schemas(
      table, {{.name = "AffineGrid",
               .since_version = 20,
               .inputs = {in("theta", kFloatTypes), in("size", {ElementType::kInt64}, kHost)},
               .attributes = {flag("align_corners")},
               .infer = infer_affine_grid,
               .expand = expand_affine_grid},
              {.name = "CenterCropPad",
               .since_version = 18,
               .inputs = {in("input_data"), in("shape", kIndexTypes, kHost)},
               .attributes = {attribute("axes", kInts)},
               .infer = infer_center_crop_pad,
               .expand = expand_center_crop_pad},
              upsample(1, {in("X")},
                       {mode, attribute("height_scale", kFloat, true),
                        attribute("width_scale", kFloat, true)}),
              upsample(7, {in("X")}, {mode, attribute("scales", kFloats, true)}),
              upsample(9, {in("X"), in("scales", {ElementType::kFloat}, kHost)}, {mode})});
}

}  // namespace eddy
