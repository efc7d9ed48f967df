// Conv and ConvTranspose. With x the image, y = Conv(x, W):
//
//   x's adjoint   ConvTranspose(g, W), cut or padded to x's size; with strides of 1 that is a Conv
//                 by W turned around
//   W's adjoint   Conv(x, g) with batch and channels swapped, strides and dilations swapped; groups
//                 side by side as channels
//
// ConvTranspose is Conv with x and g in each other's place, and so are its adjoints.
#include <algorithm>

#include "graph/base/check.h"
#include "ops/gradient/families.h"
#include "ops/gradient/windows.h"

namespace eddy {
namespace {

Value swapped(GradientContext& c, Value value, int rank) {
  EDDY_DCHECK(rank >= 2) << "an image of " << rank << " axes";
  std::vector<int64_t> perm = axes_between(0, rank);
  std::swap(perm[0], perm[1]);
  return c.op("Transpose", {value}, {{"perm", perm}});
}

// [N, G * C, ...] as [C, G * N, ...].
Value image_by_channel(GradientContext& c, Value image, int64_t group, int rank) {
  if (group == 1) return swapped(c, image, rank);
  const Value sizes = c.op("Shape", {image}, {{"start", int64_t{2}}});
  const Value split = c.op("Concat", {c.int64s({0, group, -1}), sizes}, {{"axis", int64_t{0}}});
  std::vector<int64_t> perm = axes_between(0, rank + 1);
  std::swap(perm[0], perm[2]);  // [N, G, C] -> [C, G, N]
  const Value turned = c.op("Transpose", {c.op("Reshape", {image, split})}, {{"perm", perm}});
  const Value joined = c.op("Concat", {c.int64s({0, -1}), sizes}, {{"axis", int64_t{0}}});
  return c.op("Reshape", {turned, joined});
}

// The adjoint of W for y = Conv(image, W), where `g` is y's.
Value kernel_adjoint(GradientContext& c, Value image, Value g, const Windows& windows,
                     int64_t group) {
  const WindowLists lists = lists_of(windows);
  const int rank = windows.rank + 2;
  const Value made = c.op("Conv", {image_by_channel(c, image, group, rank), swapped(c, g, rank)},
                          {{"strides", lists.dilations},
                           {"dilations", lists.strides},
                           {"pads", lists.pads},
                           {"group", group}});
  const Value kernel = swapped(c, made, rank);
  // Elements behind the last window would make further taps.
  if (std::ranges::all_of(lists.strides, [](int64_t stride) { return stride == 1; })) {
    return kernel;
  }
  const std::vector<int64_t> begins(lists.strides.size(), 0);
  return c.op("Slice",
              {kernel, c.int64s(begins), spatial_sizes(c, 1), c.int64s(axes_between(2, rank))});
}

Value bias_adjoint(GradientContext& c, int rank) {
  std::vector<int64_t> axes = axes_between(2, rank);
  axes.insert(axes.begin(), 0);
  return c.op("ReduceSum", {c.gradient(), c.int64s(axes)}, {{"keepdims", int64_t{0}}});
}

// Whether each element of the image is a window over g, of as many taps.
bool is_window_of_g(const Windows& windows, int64_t group) {
  for (int i = 0; i < windows.rank; ++i) {
    const int64_t reach = (windows[i].kernel - 1) * windows[i].dilation;
    const bool fits = windows[i].pad_begin <= reach && windows[i].pad_end <= reach;
    if (windows[i].stride != 1 || !fits) return false;
  }
  return group == 1;
}

// The adjoint of the image for y = Conv(image, W) with strides of 1.
Value image_adjoint(GradientContext& c, Value g, Value w, const Windows& windows) {
  const int rank = windows.rank + 2;
  const WindowLists lists = lists_of(windows);
  EDDY_DCHECK(std::ranges::count(lists.strides, 1) == windows.rank) << "windows leave elements out";
  std::vector<int64_t> pads = lists.pads;
  for (size_t i = 0; i < pads.size(); ++i) {
    const size_t axis = i % lists.kernel.size();
    pads[i] = (lists.kernel[axis] - 1) * lists.dilations[axis] - pads[i];
  }
  Value turned = swapped(c, w, rank);
  if (std::ranges::any_of(lists.kernel, [](int64_t size) { return size > 1; })) {
    const std::vector<int64_t> last(lists.kernel.size(), -1), first(lists.kernel.size(), INT64_MIN);
    turned = c.op("Slice", {turned, c.int64s(last), c.int64s(first),
                            c.int64s(axes_between(2, rank)), c.int64s(last)});
  }
  return c.op("Conv", {g, turned}, {{"dilations", lists.dilations}, {"pads", pads}});
}

Dims kernel_dims(GradientContext& c) {
  Dims kernel;
  const TensorType& type = c.input_type(1);
  for (int i = 2; type.is_ranked && i < type.dims.rank(); ++i) kernel.push_back(type.dims[i]);
  return kernel;
}

void conv_gradient(GradientContext& c) {
  if (c.rank_or_fail(c.input_type(1), "W") < 0) return;
  const Dims kernel = kernel_dims(c);
  const auto windows = windows_of(c, c.input_type(0), &kernel);
  if (!windows) return;
  const int64_t group = c.attributes().get_int("group", 1);
  const Value g = c.gradient();
  if (c.wants(0)) {
    c.set_gradient(0, is_window_of_g(*windows, group)
                          ? image_adjoint(c, g, c.input(1), *windows)
                          : spread_windows(c, g, c.input(1), *windows, group, spatial_sizes(c, 0)));
  }
  if (c.wants(1)) c.set_gradient(1, kernel_adjoint(c, c.input(0), g, *windows, group));
  if (c.wants(2)) c.set_gradient(2, bias_adjoint(c, windows->rank + 2));
}

// y is the image of a convolution that gives x.
void conv_transpose_gradient(GradientContext& c) {
  const Attributes& given = c.attributes();
  if (c.rank_or_fail(c.input_type(1), "W") < 0) return;
  const std::string_view auto_pad = given.get_string("auto_pad", "NOTSET");
  if (given.has("output_shape") || (auto_pad != "NOTSET" && auto_pad != "VALID")) {
    c.fail(unsupported(
        "the gradient of ConvTranspose is known for pads, not for output_shape or auto_pad"));
    return;
  }
  const Dims kernel = kernel_dims(c);
  TensorType any(c.element(), c.input_type(1).dims);  // of that rank: sizes do not matter here
  for (int i = 0; i < any.dims.rank(); ++i) any.dims[i] = kUnknownDim;
  const auto windows = windows_of(c, any, &kernel);
  if (!windows) return;
  const WindowLists lists = lists_of(*windows);
  const int64_t group = given.get_int("group", 1);
  const Value g = c.gradient();
  if (c.wants(0)) {
    c.set_gradient(0, c.op("Conv", {g, c.input(1)},
                           {{"strides", lists.strides},
                            {"dilations", lists.dilations},
                            {"pads", lists.pads},
                            {"group", group}}));
  }
  if (c.wants(1)) c.set_gradient(1, kernel_adjoint(c, g, c.input(0), *windows, group));
  if (c.wants(2)) c.set_gradient(2, bias_adjoint(c, windows->rank + 2));
}

}  // namespace

Status add_convolution_gradients(GradientTable& table) {
  const GradientReads x{.inputs = 2, .input_shapes = 1}, none{};
  const GradientReads w{.inputs = 1, .input_shapes = 2};
  return add_rules(table, {{.op = "Conv", .reads = {x, w, none}, .build = conv_gradient},
                           {.op = "ConvTranspose",
                            .reads = {GradientReads{.inputs = 2}, w, none},
                            .build = conv_transpose_gradient}});
}

}  // namespace eddy
