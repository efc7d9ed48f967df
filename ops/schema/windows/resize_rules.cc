#include "ops/schema/windows/resize_rules.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "graph/base/check.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

constexpr double kMaxSize = 9e15;

template <typename E>
struct Choice {
  std::string_view name;
  E value;
};

template <typename E, size_t N>
Status choose(const Attributes& attributes, std::string_view attribute,
              const Choice<E> (&choices)[N], E& value) {
  if (!attributes.has(attribute)) return Status::ok();
  const std::string_view name = attributes.get_string(attribute, "");
  for (const Choice<E>& choice : choices) {
    if (choice.name != name) continue;
    value = choice.value;
    return Status::ok();
  }
  std::string known;
  for (const Choice<E>& choice : choices) {
    known += (known.empty() ? "" : ", ") + std::string(choice.name);
  }
  return invalid_argument(std::string(attribute) + " must be one of " + known + ", not " +
                          std::string(name));
}

constexpr Choice<ResizeMode> kModes[] = {{"nearest", ResizeMode::kNearest},
                                         {"linear", ResizeMode::kLinear},
                                         {"cubic", ResizeMode::kCubic}};
constexpr Choice<ResizeCoordinates> kCoordinates[] = {
    {"half_pixel", ResizeCoordinates::kHalfPixel},
    {"half_pixel_symmetric", ResizeCoordinates::kHalfPixelSymmetric},
    {"pytorch_half_pixel", ResizeCoordinates::kPytorchHalfPixel},
    {"align_corners", ResizeCoordinates::kAlignCorners},
    {"asymmetric", ResizeCoordinates::kAsymmetric},
    {"tf_half_pixel_for_nn", ResizeCoordinates::kTfHalfPixelForNearest},
    {"tf_crop_and_resize", ResizeCoordinates::kTfCropAndResize}};
constexpr Choice<ResizeRounding> kRoundings[] = {
    {"round_prefer_floor", ResizeRounding::kPreferFloor},
    {"round_prefer_ceil", ResizeRounding::kPreferCeil},
    {"floor", ResizeRounding::kFloor},
    {"ceil", ResizeRounding::kCeil}};
constexpr Choice<ResizeAspect> kAspects[] = {{"stretch", ResizeAspect::kStretch},
                                             {"not_larger", ResizeAspect::kNotLarger},
                                             {"not_smaller", ResizeAspect::kNotSmaller}};

// "1e+18", where to_string writes all digits.
std::string short_text(float number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", static_cast<double>(number));
  return text;
}

bool is_given(const TensorView* view) {
  return view != nullptr && !view->is_omitted() && view->count() > 0;
}

// Which axes are resized, and where their numbers stand.
Status place_axes(const ResizeRules& rules, int rank, ResizeShape& shape) {
  shape.places.fill(-1);
  if (rules.axes.empty()) {
    for (int i = 0; i < rank; ++i) shape.places[static_cast<size_t>(i)] = i;
    shape.num_places = rank;
    return Status::ok();
  }
  EDDY_RETURN_IF_ERROR(axes_mask(rules.axes, rank).take_status());
  for (size_t i = 0; i < rules.axes.size(); ++i) {
    const int64_t axis = rules.axes[i] < 0 ? rules.axes[i] + rank : rules.axes[i];
    shape.places[static_cast<size_t>(axis)] = static_cast<int>(i);
  }
  shape.num_places = static_cast<int>(rules.axes.size());
  return Status::ok();
}

Status check_count(std::string_view name, const TensorView& view, const ResizeShape& shape) {
  EDDY_DCHECK(shape.num_places >= 0 && shape.num_places <= kMaxRank)
      << shape.num_places << " axes are resized";
  if (view.rank == 1 && view.dims[0] == shape.num_places) return Status::ok();
  return invalid_argument(std::string(name) + " must hold " + std::to_string(shape.num_places) +
                          " values, not " + to_string(Dims(view.shape())));
}

Status apply_scales(const TensorView& scales, const Dims& x, ResizeShape& shape) {
  EDDY_RETURN_IF_ERROR(check_count("scales", scales, shape));
  for (int i = 0; i < x.rank(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (shape.places[at] < 0) continue;
    const float scale = scales.as<float>()[shape.places[at]];
    // In float, as ONNX's own inference: 10 * 0.7f is 7.
    const double size = static_cast<double>(std::floor(static_cast<float>(x[i]) * scale));
    if (!(scale > 0) || std::isinf(scale)) {
      return invalid_argument("scales must be positive and finite, not " + std::to_string(scale) +
                              " for axis " + std::to_string(i));
    }
    if (!(size <= kMaxSize)) {
      return invalid_argument("scales ask for " + short_text(scale) + " times axis " +
                              std::to_string(i) + " of size " + std::to_string(x[i]) +
                              ", more than a tensor holds");
    }
    shape.scales[at] = scale;
    shape.output[i] = static_cast<int64_t>(size);
  }
  return Status::ok();
}

// One scale for all axes, as small or as large as the sizes allow.
void keep_aspect(const ResizeRules& rules, const Dims& x, ResizeShape& shape) {
  const bool is_smallest = rules.aspect == ResizeAspect::kNotLarger;
  double scale = is_smallest ? INFINITY : 0;
  for (size_t i = 0; i < static_cast<size_t>(x.rank()); ++i) {
    if (shape.places[i] < 0) continue;
    scale = is_smallest ? std::min(scale, shape.scales[i]) : std::max(scale, shape.scales[i]);
  }
  for (int i = 0; i < x.rank(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (shape.places[at] < 0) continue;
    shape.scales[at] = scale;
    shape.output[i] = static_cast<int64_t>(
        std::min(std::floor(scale * static_cast<double>(x[i]) + 0.5), kMaxSize));
  }
}

Status apply_sizes(const ResizeRules& rules, const TensorView& sizes, const Dims& x,
                   ResizeShape& shape) {
  EDDY_RETURN_IF_ERROR(check_count("sizes", sizes, shape));
  EDDY_ASSIGN_OR_RETURN(const HostInts values, HostInts::read(sizes, "sizes"));
  for (int i = 0; i < x.rank(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (shape.places[at] < 0) continue;
    const int64_t size = values[shape.places[at]];
    if (size < 0 || (x[i] == 0 && size != 0)) {
      return invalid_argument("sizes asks for " + std::to_string(size) + " on axis " +
                              std::to_string(i) + " of size " + std::to_string(x[i]));
    }
    shape.output[i] = size;
    shape.scales[at] = x[i] == 0 ? 1 : static_cast<double>(size) / static_cast<double>(x[i]);
  }
  if (rules.aspect != ResizeAspect::kStretch) keep_aspect(rules, x, shape);
  return Status::ok();
}

}  // namespace

Status parse_resize(const Attributes& attributes, int since_version, ResizeRules& rules) {
  if (since_version < 11) {
    rules.roi_input = rules.sizes_input = -1;
    rules.scales_input = 1;
    rules.coordinates = ResizeCoordinates::kAsymmetric;
    rules.rounding = ResizeRounding::kFloor;
  }
  EDDY_RETURN_IF_ERROR(choose(attributes, "mode", kModes, rules.mode));
  EDDY_RETURN_IF_ERROR(
      choose(attributes, "coordinate_transformation_mode", kCoordinates, rules.coordinates));
  EDDY_RETURN_IF_ERROR(choose(attributes, "nearest_mode", kRoundings, rules.rounding));
  EDDY_RETURN_IF_ERROR(choose(attributes, "keep_aspect_ratio_policy", kAspects, rules.aspect));
  rules.cubic_coefficient = attributes.get_float("cubic_coeff_a", -0.75f);
  rules.extrapolation_value = attributes.get_float("extrapolation_value", 0);
  rules.excludes_outside = attributes.get_int("exclude_outside", 0) != 0;
  rules.antialiases = attributes.get_int("antialias", 0) != 0;
  rules.axes = attributes.get_ints("axes");
  return Status::ok();
}

Status resolve_resize(const ResizeRules& rules, const Dims& x, const TensorView* scales_or_null,
                      const TensorView* sizes_or_null, ResizeShape& shape) {
  EDDY_RETURN_IF_ERROR(place_axes(rules, x.rank(), shape));
  shape.output = x;
  shape.scales.fill(1);
  const bool has_scales = is_given(scales_or_null), has_sizes = is_given(sizes_or_null);
  if (has_scales && has_sizes) return invalid_argument("Resize takes scales or sizes, not both");
  if (has_scales) return apply_scales(*scales_or_null, x, shape);
  if (has_sizes) return apply_sizes(rules, *sizes_or_null, x, shape);
  if (x.rank() == 0) return Status::ok();
  return invalid_argument("Resize needs scales or sizes");
}

Status check_roi(const ResizeRules& rules, int rank, const TensorType* roi_or_null) {
  if (rules.coordinates != ResizeCoordinates::kTfCropAndResize) return Status::ok();
  if (roi_or_null == nullptr) return invalid_argument("tf_crop_and_resize needs the input roi");
  const std::optional<int64_t> count =
      roi_or_null->is_ranked ? roi_or_null->dims.count() : std::nullopt;
  const size_t num_places = rules.axes.empty() ? static_cast<size_t>(rank) : rules.axes.size();
  if (!count || *count == static_cast<int64_t>(2 * num_places)) return Status::ok();
  return invalid_argument("roi must hold " + std::to_string(2 * num_places) + " values, not " +
                          std::to_string(*count));
}

}  // namespace eddy
