// The parts of the movement family; movement.cc adds them all.
#pragma once

#include "ops/contract/registry.h"

namespace eddy {

void add_movement_locate_reference(KernelRegistry& registry);  // Slice, Transpose, Pad, ...
void add_movement_make_reference(KernelRegistry& registry);    // Constant, Range, OneHot, ...
void add_movement_view_reference(KernelRegistry& registry);    // Identity, Reshape, Shape, ...

}  // namespace eddy
