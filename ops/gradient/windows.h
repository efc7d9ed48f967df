// What gradients of convolutions and pools share: the geometry of a node, and the way back from
// windows to the elements that they cover.
#pragma once

#include <optional>
#include <vector>

#include "ops/gradient/parts.h"
#include "ops/schema/rules/window.h"

namespace eddy {

// The node's windows over an image of that type, paddings as numbers; `kernel` null: the attribute
// kernel_shape. nullopt after fail(): SAME needs sizes.
std::optional<Windows> windows_of(GradientContext& c, const TensorType& image, const Dims* kernel);

// strides, dilations, pads and group of the windows, as attributes.
struct WindowLists {
  std::vector<int64_t> strides, dilations, kernel;
  std::vector<int64_t> pads;  // all begins, then all ends
};
WindowLists lists_of(const Windows& windows);

// Each element of g times the kernel, added up where its window lies: ConvTranspose, cut or padded
// to the image's size. `sizes`: its spatial sizes as int64s.
Value spread_windows(GradientContext& c, Value g, Value kernel, const Windows& windows,
                     int64_t group, Value sizes);

// The spatial sizes of input i, from its shape.
Value spatial_sizes(GradientContext& c, size_t i);

}  // namespace eddy
