// The shapes of convolutions and pools whose images have their channels in blocks,
// [n, c / block, h, w, block], in the terms of plain ones.
//
// Errors: those of ops/reference/windows/conv_shape.h.
#pragma once

#include "ops/reference/windows/conv_shape.h"

namespace eddy {

// An image [n, c, h, w], in blocks or not, with that many channels.
class PlainImage {
 public:
  PlainImage(const TensorView& image, int64_t channels)
      : dims_{image.dims[0], channels, image.dims[2], image.dims[3]} {
    EDDY_DCHECK(image.rank == 4 || image.rank == 5) << "rank " << image.rank;
  }
  TensorView view() const { return {nullptr, dims_.data(), 4, ElementType::kFloat}; }

 private:
  Dims dims_;
};

inline Status make_blocked_conv_shape(const Attributes& attributes, const TensorView& x,
                                      const TensorView& w, const TensorView& y, ConvShape& shape) {
  const PlainImage in(x, w.dims[1] * attributes.get_int("group", 1)), out(y, w.dims[0]);
  return make_conv_shape(attributes, in.view(), w, out.view(), shape);
}

// ExpandedConv's two convolutions, each with the attributes of a BlockedConv.
struct ExpandedAttributes {
  Attributes inner, outer;

  ExpandedAttributes(const Attributes& given, int64_t channels) {
    constexpr std::string_view kInner = "inner_";
    for (const Attributes::Entry& entry : given.entries()) {
      if (entry.name.starts_with(kInner)) {
        inner.set(entry.name.substr(kInner.size()), entry.value);
      } else {
        outer.set(entry.name, entry.value);
      }
    }
    inner.set("block", given.get_int("block", 0));
    outer.set("group", channels);
  }
};

// What lies between them, for X [n, c / block, h, w, block].
inline Dims expanded_dims(const TensorView& x, const TensorView& y) {
  return {x.dims[0], y.dims[1], x.dims[2], x.dims[3], y.dims[4]};
}

// Grid of a pool, whose window is the whole image where it is global.
inline Status make_blocked_pool_grid(const Attributes& attributes, const TensorView& x,
                                     const TensorView& y, Grid& grid) {
  const PlainImage in(x, 1), out(y, 1);
  Windows windows;
  if (attributes.get_int("global", 0) != 0) {
    windows.rank = 2;
    windows[0].kernel = x.dims[2];
    windows[1].kernel = x.dims[3];
  } else {
    EDDY_RETURN_IF_ERROR(parse_windows(attributes, 2, nullptr, windows));
  }
  return make_grid(windows, in.view(), out.view(), grid);
}

}  // namespace eddy
