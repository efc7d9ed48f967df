// The batch rules of the indexing family, one function an operator; indexing.cc has the table.
#pragma once

#include "graph/ir/batch_rule.h"

namespace eddy {

Status batch_gather_elements(BatchContext& context);
Status batch_gather_nd(BatchContext& context);
Status batch_reverse_sequence(BatchContext& context);
Status batch_scatter_elements(BatchContext& context);
Status batch_scatter_nd(BatchContext& context);
Status batch_top_k(BatchContext& context);
Status batch_cum_sum(BatchContext& context);
Status batch_compress(BatchContext& context);

}  // namespace eddy
