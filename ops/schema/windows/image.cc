// GridSample, MaxRoiPool, NonMaxSuppression and RoiAlign: what detectors and warps do with images;
// ImageDecoder, which makes them of files.
#include <string>

#include "ops/schema/families.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

Status expect_choice(const InferContext& context, std::string_view name, std::string_view fallback,
                     std::initializer_list<std::string_view> choices) {
  const std::string_view given = context.attributes().get_string(name, fallback);
  std::string all;
  for (const std::string_view choice : choices) {
    if (given == choice) return Status::ok();
    all += (all.empty() ? "" : ", ") + std::string(choice);
  }
  return invalid_argument("attribute '" + std::string(name) + "' must be one of " + all +
                          ", not '" + std::string(given) + "'");
}

// X [N, C, in...] and grid [N, out..., rank] give [N, C, out...].
Status infer_grid_sample(InferContext& context) {
  EDDY_RETURN_IF_ERROR(
      context.opset_version() < 20
          ? expect_choice(context, "mode", "bilinear", {"bilinear", "nearest", "bicubic"})
          : expect_choice(context, "mode", "linear", {"linear", "nearest", "cubic"}));
  EDDY_RETURN_IF_ERROR(
      expect_choice(context, "padding_mode", "zeros", {"zeros", "border", "reflection"}));
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* grid, tensor_input(context, 1));
  context.set_output(0, TensorType(x->element));
  if (!x->is_ranked) return Status::ok();
  const int rank = x->dims.rank() - 2;
  if (rank < 1 || (context.opset_version() < 20 && rank != 2)) {
    return bad_shape(
        "X", x->dims,
        rank < 1 ? "must be [N, C, sizes...]" : "must be [N, C, H, W] before opset 20");
  }
  Dims y{x->dims[0], x->dims[1]};
  for (int i = 0; i < rank; ++i) y.push_back(kUnknownDim);
  if (grid->is_ranked) {
    const Dims& g = grid->dims;
    const bool fits =
        g.rank() == rank + 2 && merge_dim(g[0], x->dims[0]) && merge_dim(g[rank + 1], rank);
    if (!fits) {
      return bad_shape("grid", g,
                       "must be [N, sizes..., " + std::to_string(rank) + "] for X of shape " +
                           to_string(x->dims));
    }
    for (int i = 0; i < rank; ++i) y[i + 2] = g[i + 1];
  }
  context.set_output(0, TensorType(x->element, y));
  return Status::ok();
}

// boxes [B, N, 4] and scores [B, C, N].
Status infer_non_max_suppression(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* boxes, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* scores, tensor_input(context, 1));
  EDDY_RETURN_IF_ERROR(expect_shape(context, 0, "boxes", {"batch", "boxes", 4}));
  EDDY_RETURN_IF_ERROR(expect_shape(context, 1, "scores", {"batch", "classes", "boxes"}));
  if (boxes->is_ranked && scores->is_ranked &&
      (!merge_dim(boxes->dims[0], scores->dims[0]) ||
       !merge_dim(boxes->dims[1], scores->dims[2]))) {
    return invalid_argument("boxes " + to_string(boxes->dims) + " and scores " +
                            to_string(scores->dims) + " differ in batch or number of boxes");
  }
  static constexpr const char* kNames[] = {"max_output_boxes_per_class", "iou_threshold",
                                           "score_threshold"};
  for (size_t i = 2; i < 5; ++i) {
    if (context.has_input(i)) EDDY_RETURN_IF_ERROR(expect_one_element(context, i, kNames[i - 2]));
  }
  context.set_output(0, TensorType(ElementType::kInt64, Dims{kUnknownDim, 3}));
  return Status::ok();
}

// X [N, C, H, W], rois [R, 4] and the image of each [R].
Status infer_roi_align(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, 2));
  EDDY_RETURN_IF_ERROR(expect_choice(context, "mode", "avg", {"avg", "max"}));
  EDDY_RETURN_IF_ERROR(expect_choice(context, "coordinate_transformation_mode", "half_pixel",
                                     {"half_pixel", "output_half_pixel"}));
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* rois, tensor_input(context, 1));
  EDDY_ASSIGN_OR_RETURN(const TensorType* images, tensor_input(context, 2));
  const int64_t height = context.attributes().get_int("output_height", 1);
  const int64_t width = context.attributes().get_int("output_width", 1);
  const int64_t ratio = context.attributes().get_int("sampling_ratio", 0);
  constexpr int64_t kMost = 1 << 10;
  if (height < 1 || height > kMost || width < 1 || width > kMost || ratio < 0 || ratio > kMost) {
    return invalid_argument(
        "output_height, output_width and sampling_ratio must lie in 1 (0 for "
        "the ratio) to " +
        std::to_string(kMost));
  }
  EDDY_RETURN_IF_ERROR(expect_shape(context, 0, "X", {"N", "C", "H", "W"}));
  EDDY_RETURN_IF_ERROR(expect_shape(context, 1, "rois", {"regions", 4}));
  Dims y{kUnknownDim, kUnknownDim, height, width};
  if (x->is_ranked) y[1] = x->dims[1];
  if (rois->is_ranked) y[0] = rois->dims[0];
  EDDY_RETURN_IF_ERROR(expect_shape(context, 2, "batch_indices", {{y[0], "regions"}}));
  if (images->is_ranked) y[0] = *merge_dim(images->dims[0], y[0]);
  context.set_output(0, TensorType(x->element, y));
  return Status::ok();
}

// X [N, C, H, W] and rois [R, 5]: the image of each, then two corners.
Status infer_max_roi_pool(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, 2));
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* rois, tensor_input(context, 1));
  const std::span<const int64_t> bins = context.attributes().get_ints("pooled_shape");
  constexpr int64_t kMost = 1 << 10;
  const auto is_size = [](int64_t size) { return size >= 1 && size <= kMost; };
  if (bins.size() != 2 || !is_size(bins[0]) || !is_size(bins[1])) {
    return invalid_argument("attribute 'pooled_shape' must be two sizes of 1 to " +
                            std::to_string(kMost));
  }
  EDDY_RETURN_IF_ERROR(expect_shape(context, 0, "X", {"N", "C", "H", "W"}));
  EDDY_RETURN_IF_ERROR(expect_shape(context, 1, "rois", {"regions", 5}));
  Dims y{kUnknownDim, kUnknownDim, bins[0], bins[1]};
  if (x->is_ranked) y[1] = x->dims[1];
  if (rois->is_ranked) y[0] = rois->dims[0];
  context.set_output(0, TensorType(x->element, y));
  return Status::ok();
}

Status infer_image_decoder(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_choice(context, "pixel_format", "RGB", {"RGB", "BGR", "Grayscale"}));
  EDDY_RETURN_IF_ERROR(expect_shape(context, 0, "encoded_stream", {"bytes"}));
  const bool is_gray = context.attributes().get_string("pixel_format", "RGB") == "Grayscale";
  context.set_output(0,
                     TensorType(ElementType::kUint8, {kUnknownDim, kUnknownDim, is_gray ? 1 : 3}));
  return Status::ok();
}

OpDef grid_sample(int since_version) {
  return {.name = "GridSample",
          .since_version = since_version,
          .inputs = {in("X", kNumericTypes), in("grid", kFloatTypes)},
          .attributes = {flag("align_corners"), attribute("mode", kString),
                         attribute("padding_mode", kString)},
          .infer = infer_grid_sample};
}

}  // namespace

Status add_image_schemas(OpTable& table) {
  const TypeSet floats = {ElementType::kFloat};
  const InputFlag optional = InputFlag::kOptional;
  return add_schemas(
      table,
      {grid_sample(16),
       grid_sample(20),
       {.name = "ImageDecoder",
        .since_version = 20,
        .inputs = {in("encoded_stream", {ElementType::kUint8})},
        .attributes = {attribute("pixel_format", kString)},
        .infer = infer_image_decoder,
        .is_value_op = true},
       {.name = "MaxRoiPool",
        .inputs = {in("X", kFloatTypes), in("rois", kFloatTypes)},
        .attributes = {attribute("pooled_shape", kInts, true), attribute("spatial_scale", kFloat)},
        .infer = infer_max_roi_pool},
       {.name = "NonMaxSuppression",
        .since_version = 10,
        .inputs = {in("boxes", floats), in("scores", floats),
                   in("max_output_boxes_per_class", {ElementType::kInt64}, optional),
                   in("iou_threshold", floats, optional), in("score_threshold", floats, optional)},
        .attributes = {flag("center_point_box")},
        .infer = infer_non_max_suppression,
        .is_value_op = true},
       {.name = "RoiAlign",
        .since_version = 10,
        .inputs = {in("X", kFloatTypes), in("rois", kFloatTypes),
                   in("batch_indices", {ElementType::kInt64})},
        .attributes = {since(16, attribute("coordinate_transformation_mode", kString)),
                       attribute("mode", kString), attribute("output_height", kInt),
                       attribute("output_width", kInt), attribute("sampling_ratio", kInt),
                       attribute("spatial_scale", kFloat)},
        .infer = infer_roi_align}});
}

}  // namespace eddy
