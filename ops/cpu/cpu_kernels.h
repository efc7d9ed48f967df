// add_cpu_kernels: what a CPU session runs. The reference kernels first, then the fast ones, so
// that lookup (later additions first) falls back to the plain loop where no fast kernel fits.
#pragma once

#include <cstdint>
#include <string>

#include "ops/contract/registry.h"

namespace eddy {

void add_cpu_kernels(KernelRegistry& registry);

// How many channels of an image lie beside each other where its kernels like them best: the floats
// of a vector (graph/compile/lay_out_images.h).
int64_t channels_in_block();
// How many columns of a packed matrix lie beside each other (graph/compile/pack_before_loops.h).
int64_t columns_in_panel();

// What decides the bits of their results beside types, shapes and values: the libraries they call
// and the vector instructions they use on this processor. One line, the same on equal machines.
std::string describe_cpu_kernels();

}  // namespace eddy
