// in_order: the reference kernel of an operator whose images lie in another order of axes is the
// plain one's between copies that turn images, and filters, over.
//
//   registry.add({…, .bind = in_order(ImageOrder::kChannelsLast, bind_conv_reference)});
//
// Also what asks for sizes in the plain order (TurnedImage).
#pragma once

#include "ops/contract/kernel.h"
#include "ops/schema/rules/image_order.h"

namespace eddy {

// An image of the order as [n, c, h, w]: sizes without bytes.
class TurnedImage {
 public:
  TurnedImage(const TensorView& ordered, ImageOrder order)
      : dims_(plain_dims(Dims(ordered.shape()), order)), element_(ordered.element) {}
  TensorView view(void* data = nullptr) const { return {data, dims_.data(), 4, element_}; }

 private:
  Dims dims_;
  ElementType element_;
};

// The plain kernel runs at once, in memory of the caller's.
BindFunction in_order(ImageOrder order, BindFunction plain);

}  // namespace eddy
