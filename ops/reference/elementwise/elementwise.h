// The parts of the elementwise family's reference kernels, each in a file of its own.
#pragma once

#include "ops/contract/registry.h"

namespace eddy {

void add_binary_reference(KernelRegistry& registry);  // two inputs, variadic ones, Where, PRelu
void add_unary_reference(KernelRegistry& registry);   // one input, and Clip
void add_cast_reference(KernelRegistry& registry);    // Cast, CastLike
void add_update_reference(KernelRegistry& registry);  // UpdateParameter

}  // namespace eddy
