#include "ops/gradient/windows.h"

#include <algorithm>

namespace eddy {

std::optional<Windows> windows_of(GradientContext& c, const TensorType& image, const Dims* kernel) {
  const int rank = c.rank_or_fail(image, "the image");
  if (rank < 0) return std::nullopt;
  Windows windows;
  if (Status status = parse_windows(c.attributes(), rank - 2, kernel, windows); !status.is_ok()) {
    c.fail(std::move(status));
    return std::nullopt;
  }
  if (windows.auto_pad == AutoPad::kNotSet || windows.auto_pad == AutoPad::kValid) return windows;
  for (int i = 0; i < windows.rank; ++i) {
    const int64_t size = image.dims[i + 2];
    if (windows[i].kernel < 1 || size < 0) {
      c.fail(unsupported("the gradient of " + c.op_name() +
                         " with auto_pad needs the sizes of its image: declare its shape"));
      return std::nullopt;
    }
    int64_t output = 0;
    WindowAxis axis = windows[i];
    if (Status status = resolve_axis(windows, i, size, axis, output); !status.is_ok()) {
      c.fail(std::move(status));
      return std::nullopt;
    }
    windows[i] = axis;
  }
  return windows;
}

WindowLists lists_of(const Windows& windows) {
  WindowLists lists;
  std::vector<int64_t> ends;
  for (int i = 0; i < windows.rank; ++i) {
    lists.strides.push_back(windows[i].stride);
    lists.dilations.push_back(windows[i].dilation);
    lists.kernel.push_back(windows[i].kernel);
    lists.pads.push_back(windows[i].pad_begin);
    ends.push_back(windows[i].pad_end);
  }
  lists.pads.insert(lists.pads.end(), ends.begin(), ends.end());
  return lists;
}

Value spread_windows(GradientContext& c, Value g, Value kernel, const Windows& windows,
                     int64_t group, Value sizes) {
  const WindowLists lists = lists_of(windows);
  Value image =
      c.op("ConvTranspose", {g, kernel},
           {{"strides", lists.strides}, {"dilations", lists.dilations}, {"group", group}});
  // Elements behind the last window belong to none.
  const size_t rank = static_cast<size_t>(windows.rank);
  std::vector<int64_t> behind(2 * rank + 4, 0);
  bool has_rest = false;
  for (size_t i = 0; i < rank; ++i) {
    behind[rank + 4 + i] = lists.strides[i] - 1;
    has_rest |= behind[rank + 4 + i] > 0;
  }
  if (has_rest) image = c.op("Pad", {image, c.int64s(behind)});
  const std::span begins = std::span(lists.pads).first(rank);
  const Value ends = c.op("Add", {sizes, c.int64s(begins)});
  return c.op("Slice", {image, c.int64s(begins), ends,
                        c.int64s(axes_between(2, static_cast<int64_t>(rank) + 2))});
}

Value spatial_sizes(GradientContext& c, size_t i) {
  const TensorType& type = c.input_type(i);
  const bool all_known =
      type.is_ranked && type.dims.rank() > 2 &&
      std::ranges::all_of(type.dims.span().subspan(2), [](int64_t d) { return d >= 0; });
  if (all_known) return c.int64s(type.dims.span().subspan(2));
  return c.op("Slice", {c.input_shape(i), c.int64s({2}), c.int64s({INT64_MAX})});
}

}  // namespace eddy
