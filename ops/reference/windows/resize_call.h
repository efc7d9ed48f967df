// ResizeCall: the axes of one call of Resize, from attributes and inputs.
//
// Errors: as resolve_resize and check_roi.
#pragma once

#include <string>

#include "ops/contract/kernel.h"
#include "ops/reference/parts/number.h"
#include "ops/reference/windows/resize_axis.h"

namespace eddy {

struct ResizeState : KernelState {
  Attributes attributes;
  int since_version = 11;
};

struct ResizeCall {
  ResizeRules rules;
  int rank = 0;
  std::array<ResizeAxis, kMaxRank> axes{};
  // Axes on which something happens.
  std::array<bool, kMaxRank> is_resized{};
};

inline void read_roi(const TensorView& roi, const ResizeShape& shape, ResizeCall& call) {
  for (size_t i = 0; i < static_cast<size_t>(call.rank); ++i) {
    const int place = shape.places[i];
    if (place < 0) continue;
    call.axes[i].roi_begin = load_number(roi, place).to_double();
    call.axes[i].roi_end = load_number(roi, shape.num_places + place).to_double();
  }
}

inline Status make_resize_call(const KernelArgs& args, ResizeCall& call) {
  const auto& state = static_cast<const ResizeState&>(*args.state);
  EDDY_RETURN_IF_ERROR(parse_resize(state.attributes, state.since_version, call.rules));
  const auto input_or_null = [&](int i) {
    return i >= 0 && args.has_input(static_cast<uint32_t>(i)) ? &args.inputs[i] : nullptr;
  };
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  ResizeShape shape;
  EDDY_RETURN_IF_ERROR(resolve_resize(call.rules, Dims(x.shape()),
                                      input_or_null(call.rules.scales_input),
                                      input_or_null(call.rules.sizes_input), shape));
  call.rank = x.rank;
  for (int i = 0; i < x.rank; ++i) {
    const auto at = static_cast<size_t>(i);
    call.axes[at] = {.input = x.dims[i], .output = y.dims[i], .scale = shape.scales[at]};
    call.is_resized[at] =
        shape.places[at] >= 0 && (x.dims[i] != y.dims[i] || shape.scales[at] != 1 ||
                                  call.rules.coordinates == ResizeCoordinates::kTfCropAndResize);
  }
  if (call.rules.coordinates != ResizeCoordinates::kTfCropAndResize) return Status::ok();
  const TensorView* roi = input_or_null(call.rules.roi_input);
  const TensorType roi_type =
      roi != nullptr ? TensorType(roi->element, Dims(roi->shape())) : TensorType();
  EDDY_RETURN_IF_ERROR(check_roi(call.rules, x.rank, roi != nullptr ? &roi_type : nullptr));
  read_roi(*roi, shape, call);
  return Status::ok();
}

}  // namespace eddy
