// channels_last: the rule of an operator whose images lie [n, h, w, c], by that of the plain one.
//
//   .infer = channels_last(infer_conv)
//
// Images, and filters [f, h, w, c], are turned over into [n, c, h, w] for the plain rule, whose
// messages name sizes in that order; the result is turned back.
// Errors: kInvalidArgument for an image of another rank than 4, and those of the plain rule.
#pragma once

#include "graph/ir/op.h"
#include "graph/ir/types.h"

namespace eddy {

// [n, h, w, c] as [n, c, h, w], and back; of rank 4.
Dims channels_first_dims(const Dims& last);
Dims channels_last_dims(const Dims& first);

InferFunction channels_last(Status (*plain)(InferContext&));

}  // namespace eddy
