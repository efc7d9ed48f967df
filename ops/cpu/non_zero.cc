// NonZero: elements are counted, then the coordinates of those that are not zero are written while
// a counter of the axes runs beside them.
#include <algorithm>

#include "graph/base/check.h"
#include "ops/cpu/elementwise.h"
#include "ops/cpu/families.h"

namespace eddy {
namespace {

// A scalar has no coordinates: its result is [0, 1] or [0, 0].
template <typename T>
Status non_zero(ValueContext& context) {
  const TensorView in = context.tensor(0);
  const T* const values = in.as<T>();
  const int64_t count = in.count();
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) found += values[i] != T(0);
  EDDY_ASSIGN_OR_RETURN(const TensorView out,
                        context.allocate(0, ElementType::kInt64, {in.rank, found}));
  if (in.rank == 0 || found == 0) return Status::ok();
  auto* const rows = out.mutable_as<int64_t>();
  const int last = in.rank - 1;
  const int64_t row_size = in.dims[last];
  int64_t index[kMaxRank] = {};
  int64_t next = 0;
  for (int64_t row = 0; row < count / row_size; ++row) {
    for (int64_t i = 0; i < row_size; ++i) {
      if (values[row * row_size + i] == T(0)) continue;
      for (int d = 0; d < last; ++d) rows[d * found + next] = index[d];
      rows[last * found + next++] = i;
    }
    for (int d = last - 1; d >= 0 && ++index[d] == in.dims[d]; --d) index[d] = 0;
  }
  EDDY_DCHECK(next == found) << next << " of " << found << " places are written";
  return Status::ok();
}

ValueKernelFunction function_of(ElementType element) {
  switch (element) {
    case ElementType::kFloat:
      return non_zero<float>;
    case ElementType::kInt32:
      return non_zero<int32_t>;
    case ElementType::kInt64:
      return non_zero<int64_t>;
    case ElementType::kBool:
      return non_zero<uint8_t>;  // bytes of a caller, which may be any
    default:
      return nullptr;
  }
}

Result<BoundKernel> bind_non_zero(const KernelInit& init) {
  BoundKernel kernel;
  kernel.run_value = function_of(init.inputs[0].tensor.element);
  if (kernel.run_value == nullptr) return cpu::no_fast_kernel(init);
  return kernel;
}

}  // namespace

void add_non_zero_cpu(KernelRegistry& registry) {
  registry.add({.op = "NonZero", .bind = bind_non_zero});
}

}  // namespace eddy
