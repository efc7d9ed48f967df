// The parts of the elementwise family's fast kernels, each in a file of its own.
#pragma once

#include <optional>

#include "ops/contract/registry.h"
#include "ops/cpu/loops/loops.h"

namespace eddy {

void add_binary_cpu(KernelRegistry& registry);  // two inputs, and variadic ones
void add_unary_cpu(KernelRegistry& registry);   // one input, and Clip
void add_select_cpu(KernelRegistry& registry);  // Where, Cast, CastLike
void add_update_cpu(KernelRegistry& registry);  // UpdateParameter

namespace cpu {

// The loops' name of an element type, where there are loops for it.
std::optional<LoopType> loop_type(ElementType element);

// Of floats, by the operator's name; null: there is none.
UnaryLoop float_loop_or_null(std::string_view op);

// "float16 is not supported by the CPU kernel of Add".
Status no_fast_kernel(const KernelInit& init);

// The element count of a type known when binding, or -1.
int64_t known_count(const ValueType& type);

// Kernels for a single element: a bare load, operation, store. Null where there is none; then the
// loop serves.
KernelFunction single_binary(BinaryOp op, LoopType type);
KernelFunction single_unary(UnaryOp op, LoopType type);
KernelFunction single_cast(LoopType from, LoopType to);
KernelFunction single_select(size_t size_bytes);

}  // namespace cpu
}  // namespace eddy
