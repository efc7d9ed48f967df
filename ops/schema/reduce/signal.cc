// DFT, STFT and MelWeightMatrix. A complex number is a last axis of two; a real one of one.
#include <string>

#include "ops/schema/families.h"
#include "ops/schema/rules/index_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

constexpr TypeSet kIndexTypes = {ElementType::kInt32, ElementType::kInt64};
constexpr InputFlag kHost = InputFlag::kHostValue;
constexpr InputFlag kOptionalHost = InputFlag::kOptional | InputFlag::kHostValue;

constexpr int64_t kNotKnown = INT64_MIN;

// The one value of a host input: `fallback` where it is left out, kNotKnown until it is known.
Result<int64_t> read_scalar(const InferContext& context, size_t i, std::string_view name,
                            int64_t fallback) {
  if (!context.has_input(i)) return fallback;
  const TensorView* view = context.value_or_null(i);
  if (view == nullptr || view->is_omitted()) return kNotKnown;
  int64_t value = 0;
  EDDY_RETURN_IF_ERROR(read_int(*view, name, value));
  if (value == kNotKnown) {
    return invalid_argument(std::string(name) + " must not be " + std::to_string(value));
  }
  return value;
}

int64_t half_spectrum(int64_t length) { return length < 0 ? kUnknownDim : length / 2 + 1; }

// The axis is an attribute before opset 20, then an input; it is never the last.
Status infer_dft(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  context.set_output(0, TensorType(x->element));
  const bool is_onesided = context.attributes().get_int("onesided", 0) != 0;
  const bool is_inverse = context.attributes().get_int("inverse", 0) != 0;
  if (!x->is_ranked) return Status::ok();
  const int rank = x->dims.rank();
  const int64_t parts = rank < 1 ? 0 : x->dims[rank - 1];
  if (rank < 2 || (parts >= 0 && parts != 1 && parts != 2)) {
    return invalid_argument("the input must be [..., length, ..., 1 or 2], not " +
                            to_string(x->dims));
  }
  if (is_onesided && parts == 2 && !is_inverse) {
    return invalid_argument("a onesided DFT takes real numbers, but the last axis has 2");
  }
  const bool is_early = context.opset_version() < 20;
  const int64_t given = context.attributes().get_int("axis", 1);
  EDDY_ASSIGN_OR_RETURN(const int64_t given_axis,
                        is_early ? Result<int64_t>(given) : read_scalar(context, 2, "axis", -2));
  EDDY_ASSIGN_OR_RETURN(const int64_t length, read_scalar(context, 1, "dft_length", -1));
  if (context.has_input(1) && length != kNotKnown && length < 1) {
    return invalid_argument("dft_length must be at least 1, not " + std::to_string(length));
  }
  Dims y = x->dims;
  const bool gives_real = is_onesided && is_inverse;
  y[rank - 1] = gives_real ? 1 : 2;
  if (!is_early && given_axis == kNotKnown) {
    for (int i = 0; i < rank - 1; ++i) y[i] = kUnknownDim;
    context.set_output(0, TensorType(x->element, y));
    return Status::ok();
  }
  EDDY_ASSIGN_OR_RETURN(const int axis, normalize_axis(given_axis, rank));
  if (axis == rank - 1) return invalid_argument("the last axis holds the parts of a number");
  if (length == kNotKnown) {
    y[axis] = kUnknownDim;
  } else if (context.has_input(1)) {
    y[axis] = length;
  } else if (gives_real && x->dims[axis] == 0) {
    return invalid_argument("half a spectrum has at least one value, but the input is " +
                            to_string(x->dims));
  } else if (gives_real) {
    y[axis] = x->dims[axis] < 0 ? kUnknownDim : 2 * (x->dims[axis] - 1);
  }
  if (is_onesided && !is_inverse && y[axis] == 0) {
    return invalid_argument("a onesided DFT takes at least one sample, but axis " +
                            std::to_string(axis) + " of " + to_string(x->dims) + " has none");
  }
  if (is_onesided && !is_inverse) y[axis] = half_spectrum(y[axis]);
  return set_checked_output(context, 0, x->element, y);
}

// signal [batch, length, 1 or 2], frame_step, window [frame], frame_length.
Status infer_stft(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  context.set_output(0, TensorType(x->element));
  EDDY_ASSIGN_OR_RETURN(const int64_t step, read_scalar(context, 1, "frame_step", 1));
  EDDY_ASSIGN_OR_RETURN(int64_t frame, read_scalar(context, 3, "frame_length", -1));
  const bool has_frame = context.has_input(3), has_window = context.has_input(2);
  if (!has_frame && !has_window) {
    return invalid_argument("STFT needs a window or frame_length");
  }
  if (has_window) {
    EDDY_ASSIGN_OR_RETURN(const TensorType* window, tensor_input(context, 2));
    if (window->element != x->element) {
      return invalid_argument("the window must have the signal's element type");
    }
    if (window->is_ranked) {
      if (window->dims.rank() != 1) {
        return invalid_argument("the window must have one dimension, not " +
                                to_string(window->dims));
      }
      const int64_t size = window->dims[0];
      if (has_frame && frame != kNotKnown && size >= 0 && size != frame) {
        return invalid_argument("the window has " + std::to_string(size) +
                                " values, but frame_length is " + std::to_string(frame));
      }
      if (!has_frame) frame = size < 0 ? kNotKnown : size;
    } else if (!has_frame) {
      frame = kNotKnown;
    }
  }
  if ((step != kNotKnown && step < 1) || (frame != kNotKnown && frame < 1)) {
    return invalid_argument("frame_step and frame_length must be at least 1");
  }
  if (!x->is_ranked) return Status::ok();
  if (x->dims.rank() != 3 || (x->dims[2] >= 0 && x->dims[2] != 1 && x->dims[2] != 2)) {
    return invalid_argument("the signal must be [batch, length, 1 or 2], not " +
                            to_string(x->dims));
  }
  const int64_t length = x->dims[1];
  if (frame != kNotKnown && length >= 0 && frame > length) {
    return invalid_argument("a frame of " + std::to_string(frame) + " does not fit a signal of " +
                            std::to_string(length));
  }
  const bool is_onesided = context.attributes().get_int("onesided", 1) != 0;
  const bool is_known = step != kNotKnown && frame != kNotKnown && length >= 0;
  const int64_t bins = frame == kNotKnown ? kUnknownDim : frame;
  return set_checked_output(context, 0, x->element,
                            Dims{x->dims[0], is_known ? (length - frame) / step + 1 : kUnknownDim,
                                 is_onesided ? half_spectrum(bins) : bins, 2});
}

Status infer_mel_weights(InferContext& context) {
  const int64_t type = context.attributes().get_int("output_datatype", 1);
  if (type <= 0 || type >= kNumElementTypes ||
      !kNumericTypes.contains(static_cast<ElementType>(type))) {
    return invalid_argument("attribute 'output_datatype' is " + std::to_string(type) +
                            ", which is no type of numbers");
  }
  static constexpr const char* kNames[] = {"num_mel_bins", "dft_length", "sample_rate",
                                           "lower_edge_hertz", "upper_edge_hertz"};
  for (size_t i = 0; i < 5; ++i) {
    EDDY_RETURN_IF_ERROR(expect_one_element(context, i, kNames[i]));
  }
  EDDY_ASSIGN_OR_RETURN(const int64_t bins, read_scalar(context, 0, kNames[0], 0));
  EDDY_ASSIGN_OR_RETURN(const int64_t length, read_scalar(context, 1, kNames[1], 0));
  if ((bins != kNotKnown && bins < 0) || (length != kNotKnown && length < 0)) {
    return invalid_argument("num_mel_bins and dft_length must not be negative");
  }
  return set_checked_output(context, 0, static_cast<ElementType>(type),
                            Dims{half_spectrum(length), bins < 0 ? kUnknownDim : bins});
}

OpDef dft(int since_version) {
  OpDef def = {.name = "DFT",
               .since_version = since_version,
               .inputs = {in("input", kFloatTypes), in("dft_length", kIndexTypes, kOptionalHost)},
               .attributes = {flag("inverse"), flag("onesided")},
               .infer = infer_dft};
  if (since_version < 20) {
    def.attributes.push_back(attribute("axis", kInt));
  } else {
    def.inputs.push_back(in("axis", kIndexTypes, kOptionalHost));
  }
  return def;
}

}  // namespace

Status add_signal_schemas(OpTable& table) {
  const TypeSet floats = kFloatTypes;
  return add_schemas(
      table,
      {dft(17),
       dft(20),
       {.name = "STFT",
        .since_version = 17,
        .inputs = {in("signal", floats), in("frame_step", kIndexTypes, kHost),
                   in("window", floats, InputFlag::kOptional),
                   in("frame_length", kIndexTypes, kOptionalHost)},
        .attributes = {flag("onesided")},
        .infer = infer_stft},
       {.name = "MelWeightMatrix",
        .since_version = 17,
        .inputs = {in("num_mel_bins", kIndexTypes, kHost), in("dft_length", kIndexTypes, kHost),
                   in("sample_rate", kIndexTypes, kHost), in("lower_edge_hertz", kFloatTypes),
                   in("upper_edge_hertz", kFloatTypes)},
        .attributes = {attribute("output_datatype", kInt)},
        .infer = infer_mel_weights}});
}

}  // namespace eddy
