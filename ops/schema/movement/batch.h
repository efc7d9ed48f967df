// The batch rules of the movement family, one function an operator; movement.cc has the table.
#pragma once

#include "graph/ir/batch_rule.h"

namespace eddy {

// batch.cc: elements go elsewhere, or are made by shapes.
Status batch_concat(BatchContext& context);
Status batch_split(BatchContext& context);
Status batch_slice(BatchContext& context);
Status batch_gather(BatchContext& context);
Status batch_transpose(BatchContext& context);
Status batch_pad(BatchContext& context);
Status batch_expand(BatchContext& context);
Status batch_tile(BatchContext& context);
Status batch_trilu(BatchContext& context);
Status batch_constant_of_shape(BatchContext& context);
Status batch_one_hot(BatchContext& context);

// batch_view.cc: the same elements under another shape, or the shape itself.
Status batch_identity(BatchContext& context);
Status batch_reshape(BatchContext& context);
Status batch_squeeze(BatchContext& context);
Status batch_unsqueeze(BatchContext& context);
Status batch_flatten(BatchContext& context);
Status batch_dropout(BatchContext& context);
Status batch_shape(BatchContext& context);
Status batch_size(BatchContext& context);

}  // namespace eddy
