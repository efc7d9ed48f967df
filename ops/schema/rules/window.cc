#include "ops/schema/rules/window.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "graph/base/check.h"

namespace eddy {
namespace {

// Far above any real window, and small enough that no sum or product of two of them overflows.
constexpr int64_t kMaxKernel = int64_t{1} << 30;
// The limit of paddings, strides and dilations. Libraries prepare for millions by the minute.
constexpr int64_t kMaxAttribute = int64_t{1} << 16;
constexpr int64_t kMaxInput = int64_t{1} << 32;

// One value of an attribute that has one for each axis, checked against its bounds.
Status check_values(std::string_view name, std::span<const int64_t> values, int count,
                    int64_t lowest, int64_t highest) {
  if (values.empty()) return Status::ok();
  if (values.size() != static_cast<size_t>(count)) {
    return invalid_argument(std::string(name) + " must have " + std::to_string(count) +
                            " values, not " + std::to_string(values.size()));
  }
  for (int64_t value : values) {
    if (value < lowest || value > highest) {
      return invalid_argument(std::string(name) + " must hold values of " + std::to_string(lowest) +
                              ".." + std::to_string(highest) + ", not " + std::to_string(value));
    }
  }
  return Status::ok();
}

Status parse_auto_pad(const Attributes& attributes, AutoPad& mode) {
  const std::string_view name = attributes.get_string("auto_pad", "NOTSET");
  if (name == "NOTSET" || name.empty())
    mode = AutoPad::kNotSet;
  else if (name == "VALID")
    mode = AutoPad::kValid;
  else if (name == "SAME_UPPER")
    mode = AutoPad::kSameUpper;
  else if (name == "SAME_LOWER")
    mode = AutoPad::kSameLower;
  else
    return invalid_argument("auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, not " +
                            std::string(name));
  return Status::ok();
}

// The kernel's size on axis i, or 0 where it is not known yet.
Status kernel_size(std::span<const int64_t> kernel_shape, const Dims* kernel_or_null, int i,
                   int64_t& size) {
  const int64_t given = kernel_shape.empty() ? kUnknownDim : kernel_shape[static_cast<size_t>(i)];
  const int64_t weight = kernel_or_null ? (*kernel_or_null)[i] : kUnknownDim;
  if (given >= 0 && weight >= 0 && given != weight) {
    return invalid_argument("kernel_shape says " + std::to_string(given) + " for spatial axis " +
                            std::to_string(i) + " but the weight has " + std::to_string(weight));
  }
  size = std::max(given, weight);
  if (size < 0)
    size = 0;
  else if (size == 0) {
    return invalid_argument("the kernel is empty on spatial axis " + std::to_string(i));
  } else if (size > kMaxKernel) {
    return invalid_argument("the kernel is too large on spatial axis " + std::to_string(i) + ": " +
                            std::to_string(size));
  }
  return Status::ok();
}

bool is_same(AutoPad mode) { return mode == AutoPad::kSameUpper || mode == AutoPad::kSameLower; }

Status too_large(int i, int64_t input) {
  return invalid_argument("input of size " + std::to_string(input) + " on spatial axis " +
                          std::to_string(i) + " is too large");
}

}  // namespace

Status parse_windows(const Attributes& attributes, int rank, const Dims* kernel_or_null,
                     Windows& windows) {
  EDDY_DCHECK(rank > 0 && rank <= kMaxSpatialRank) << rank << " spatial axes";
  EDDY_DCHECK(kernel_or_null == nullptr || kernel_or_null->rank() == rank)
      << "a kernel of rank " << kernel_or_null->rank();
  const auto kernel_shape = attributes.get_ints("kernel_shape");
  const auto strides = attributes.get_ints("strides");
  const auto dilations = attributes.get_ints("dilations");
  const auto pads = attributes.get_ints("pads");
  EDDY_RETURN_IF_ERROR(check_values("kernel_shape", kernel_shape, rank, 1, kMaxKernel));
  EDDY_RETURN_IF_ERROR(check_values("strides", strides, rank, 1, kMaxAttribute));
  EDDY_RETURN_IF_ERROR(check_values("dilations", dilations, rank, 1, kMaxAttribute));
  EDDY_RETURN_IF_ERROR(check_values("pads", pads, 2 * rank, 0, kMaxAttribute));
  EDDY_RETURN_IF_ERROR(parse_auto_pad(attributes, windows.auto_pad));
  const auto is_padding = [](int64_t pad) { return pad != 0; };
  if (windows.auto_pad != AutoPad::kNotSet && std::any_of(pads.begin(), pads.end(), is_padding)) {
    return invalid_argument("auto_pad " + std::string(attributes.get_string("auto_pad", "")) +
                            " decides the paddings: leave pads out");
  }
  windows.ceil_mode = attributes.get_int("ceil_mode", 0) != 0;
  windows.rank = rank;
  for (int i = 0; i < rank; ++i) {
    const auto at = static_cast<size_t>(i);
    WindowAxis& axis = windows[i];
    EDDY_RETURN_IF_ERROR(kernel_size(kernel_shape, kernel_or_null, i, axis.kernel));
    if (!strides.empty()) axis.stride = strides[at];
    if (!dilations.empty()) axis.dilation = dilations[at];
    if (!pads.empty() && windows.auto_pad == AutoPad::kNotSet) {
      axis.pad_begin = pads[at];
      axis.pad_end = pads[at + static_cast<size_t>(rank)];
    }
  }
  return Status::ok();
}

namespace {

// SAME pads so that the last window still begins inside; the odd one goes to the named side.
void pad_same(const Windows& windows, int64_t input, WindowAxis& axis, int64_t output) {
  EDDY_DCHECK(is_same(windows.auto_pad) && axis.stride > 0) << "nothing says how to pad";
  const int64_t needed = (output - 1) * axis.stride + axis.extent() - input;
  const int64_t total = std::max<int64_t>(needed, 0);
  axis.pad_begin = windows.auto_pad == AutoPad::kSameUpper ? total / 2 : total - total / 2;
  axis.pad_end = total - axis.pad_begin;
}

// A window of stride 1 whose paddings make up for its extent keeps any size.
bool keeps_size(const Windows& windows, const WindowAxis& axis) {
  if (axis.stride != 1) return false;
  return is_same(windows.auto_pad) ||
         (axis.kernel > 0 && axis.pad_begin + axis.pad_end == axis.extent() - 1);
}

}  // namespace

Status resolve_axis(const Windows& windows, int i, int64_t input, WindowAxis& axis,
                    int64_t& output) {
  EDDY_DCHECK(i < windows.rank) << "spatial axis " << i << " of " << windows.rank;
  axis = windows[i];
  if (input < 0 || axis.kernel == 0) {
    output = keeps_size(windows, axis) ? input : kUnknownDim;
    return Status::ok();
  }
  if (input > kMaxInput) return too_large(i, input);
  if (is_same(windows.auto_pad)) {
    output = (input + axis.stride - 1) / axis.stride;
    pad_same(windows, input, axis, output);
    return Status::ok();
  }
  const int64_t room = input + axis.pad_begin + axis.pad_end - axis.extent();
  output = std::max<int64_t>(room + axis.stride, 0) / axis.stride;
  if (windows.ceil_mode && room > -axis.stride && room % axis.stride != 0 &&
      output * axis.stride < input + axis.pad_begin) {
    ++output;  // one more, unless it would begin in the padding at the end
  }
  if (output == 0) {
    return invalid_argument("the kernel spans " + std::to_string(axis.extent()) +
                            " elements on spatial axis " + std::to_string(i) +
                            " but the padded input has only " +
                            std::to_string(input + axis.pad_begin + axis.pad_end));
  }
  return Status::ok();
}

Status check_pads(const Windows& windows) {
  for (int i = 0; i < windows.rank; ++i) {
    const WindowAxis& axis = windows[i];
    if (axis.pad_begin < axis.extent() && axis.pad_end < axis.extent()) continue;
    return invalid_argument("pads of " + std::to_string(axis.pad_begin) + " and " +
                            std::to_string(axis.pad_end) + " on spatial axis " + std::to_string(i) +
                            " must be smaller than the window's " + std::to_string(axis.extent()));
  }
  return Status::ok();
}

Status parse_transposed_windows(const Attributes& attributes, int rank, const Dims* kernel_or_null,
                                TransposedWindows& windows) {
  EDDY_RETURN_IF_ERROR(parse_windows(attributes, rank, kernel_or_null, windows.windows));
  const auto padding = attributes.get_ints("output_padding");
  const auto shape = attributes.get_ints("output_shape");
  EDDY_RETURN_IF_ERROR(check_values("output_padding", padding, rank, 0, kMaxAttribute));
  EDDY_RETURN_IF_ERROR(check_values("output_shape", shape, rank, 0, kMaxKernel));
  windows.has_output_shape = !shape.empty();
  std::copy(padding.begin(), padding.end(), windows.output_padding.begin());
  std::copy(shape.begin(), shape.end(), windows.output_shape.begin());
  return Status::ok();
}

Status resolve_transposed_axis(const TransposedWindows& transposed, int i, int64_t input,
                               WindowAxis& axis, int64_t& output) {
  const Windows& windows = transposed.windows;
  const auto at = static_cast<size_t>(i);
  EDDY_DCHECK(i < windows.rank) << "spatial axis " << i << " of " << windows.rank;
  axis = windows[i];
  if (transposed.has_output_shape)
    output = transposed.output_shape[at];
  else
    output = kUnknownDim;
  if (input < 0 || axis.kernel == 0) return Status::ok();
  if (input > kMaxInput) return too_large(i, input);
  const int64_t full =
      input == 0 ? 0 : axis.stride * (input - 1) + transposed.output_padding[at] + axis.extent();
  if (!transposed.has_output_shape) {
    output = is_same(windows.auto_pad) ? input * axis.stride : full - axis.pad_begin - axis.pad_end;
    if (output < 0) {
      return invalid_argument("pads remove more than the " + std::to_string(full) +
                              " elements of the result on spatial axis " + std::to_string(i));
    }
  }
  if (transposed.has_output_shape || is_same(windows.auto_pad)) {
    const int64_t total = std::max<int64_t>(full - output, 0);
    axis.pad_begin = windows.auto_pad == AutoPad::kSameUpper ? total / 2 : total - total / 2;
    axis.pad_end = total - axis.pad_begin;
  }
  return Status::ok();
}

}  // namespace eddy
