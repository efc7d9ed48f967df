// The parts of the indexing family; indexing.cc adds them all.
#pragma once

#include "ops/contract/registry.h"

namespace eddy {

void add_indexing_scatter_reference(
    KernelRegistry& registry);                                // Scatter, ScatterElements, ScatterND
void add_indexing_order_reference(KernelRegistry& registry);  // TopK, CumSum, CumProd
void add_indexing_select_reference(KernelRegistry& registry);  // NonZero, Compress, Unique

}  // namespace eddy
