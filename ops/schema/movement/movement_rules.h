// The shape rules of the movement family, one function an operator; movement.cc has the table.
//
// Each serves every opset of its operator: what was an attribute once and is an input now is
// read from wherever the OpDef admits it.
#pragma once

#include "graph/base/status.h"
#include "graph/ir/op.h"

namespace eddy {

// move.cc: elements go elsewhere.
Status infer_concat(InferContext& context);
Status infer_split(InferContext& context);
Status infer_slice(InferContext& context);
Status infer_gather(InferContext& context);
Status infer_transpose(InferContext& context);
Status infer_pad(InferContext& context);
Status infer_expand(InferContext& context);
Status infer_tile(InferContext& context);
Status infer_depth_to_space(InferContext& context);
Status infer_space_to_depth(InferContext& context);
Status infer_trilu(InferContext& context);

// view.cc: the same elements under another shape, or the shape itself.
Status infer_identity(InferContext& context);
Status infer_reshape(InferContext& context);
Status infer_squeeze(InferContext& context);
Status infer_unsqueeze(InferContext& context);
Status infer_flatten(InferContext& context);
Status infer_dropout(InferContext& context);
// The ratio must be in [0, 1).
Status check_dropout_ratio(double ratio);
Status infer_shape(InferContext& context);
Status infer_size(InferContext& context);

// make.cc: tensors from attributes and host values.
Status infer_constant(InferContext& context);
Status infer_constant_of_shape(InferContext& context);
Status infer_range(InferContext& context);
Status infer_eye_like(InferContext& context);
Status infer_one_hot(InferContext& context);

}  // namespace eddy
