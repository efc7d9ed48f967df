// Optional outputs of dense kernels: a node may leave out any but the first.
#pragma once

#include "ops/contract/kernel.h"

namespace eddy {

inline bool has_output(const KernelArgs& args, uint32_t o) {
  return o < args.num_outputs && !args.outputs[o].is_omitted();
}

// Output o where the node has it, else null.
template <typename T>
T* output_or_null(const KernelArgs& args, uint32_t o) {
  return has_output(args, o) ? args.outputs[o].mutable_as<T>() : nullptr;
}

}  // namespace eddy
