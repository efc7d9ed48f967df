// bind_channels_last: the reference kernel of an operator whose images lie [n, h, w, c] is the
// plain one's between copies that turn images, and filters [f, h, w, c], over.
//
//   registry.add({…, .bind = channels_last(bind_conv_reference)});
//
// Also what asks for sizes in the plain order (ChannelsFirst).
#pragma once

#include "ops/contract/kernel.h"
#include "ops/schema/rules/channels_last.h"

namespace eddy {

// An image [n, h, w, c], or filters, as [n, c, h, w]: sizes without bytes.
class ChannelsFirst {
 public:
  explicit ChannelsFirst(const TensorView& last)
      : dims_(channels_first_dims(Dims(last.shape()))), element_(last.element) {}
  TensorView view(void* data = nullptr) const { return {data, dims_.data(), 4, element_}; }

 private:
  Dims dims_;
  ElementType element_;
};

// The plain kernel runs at once, in memory of the caller's.
BindFunction channels_last(BindFunction plain);

}  // namespace eddy
