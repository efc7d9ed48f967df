// The parts of the movement family; movement.cc adds them all.
#pragma once

#include "ops/contract/registry.h"

namespace eddy {

void add_movement_strided_cpu(KernelRegistry& registry);  // Slice, Transpose, Expand, Tile, ...
void add_movement_pad_cpu(KernelRegistry& registry);
void add_movement_fill_cpu(KernelRegistry& registry);  // ConstantOfShape, EyeLike, OneHot, Trilu

}  // namespace eddy
