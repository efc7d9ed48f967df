// in_order: the rule of an operator whose images lie in another order of axes, by that of the plain
// one.
//
//   .infer = in_order(ImageOrder::kChannelsLast, infer_conv)
//
// Images, and filters, are turned over into [n, c, h, w] and [f, c, h, w] for the plain rule, whose
// messages name sizes in that order; the result is turned back.
// Errors: kInvalidArgument for an image of another rank than 4, and those of the plain rule.
#pragma once

#include <cstdint>

#include "graph/ir/op.h"
#include "graph/ir/types.h"

namespace eddy {

enum class ImageOrder : uint8_t {
  kChannelsLast,  // [n, h, w, c]
  kSwapped,       // [c, n, h, w]
};

// An image of the order as [n, c, h, w], and back; of rank 4.
Dims plain_dims(const Dims& ordered, ImageOrder order);
Dims ordered_dims(const Dims& plain, ImageOrder order);

InferFunction in_order(ImageOrder order, Status (*plain)(InferContext&));

}  // namespace eddy
