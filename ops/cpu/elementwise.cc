#include "ops/cpu/elementwise.h"

#include <string>

#include "ops/cpu/families.h"

namespace eddy {
namespace cpu {

std::optional<LoopType> loop_type(ElementType element) {
  switch (element) {
    case ElementType::kFloat:
      return LoopType::kFloat;
    case ElementType::kDouble:
      return LoopType::kDouble;
    case ElementType::kInt32:
      return LoopType::kInt32;
    case ElementType::kInt64:
      return LoopType::kInt64;
    case ElementType::kBool:
      return LoopType::kBool;
    case ElementType::kInt8:
      return LoopType::kInt8;
    case ElementType::kUint8:
      return LoopType::kUint8;
    default:
      return std::nullopt;
  }
}

Status no_fast_kernel(const KernelInit& init) {
  const ElementType element =
      init.inputs.empty() ? ElementType::kUndefined : init.inputs[0].tensor.element;
  return unsupported(std::string(element_type_name(element)) +
                     " is not supported by the CPU kernel of " + init.op.name);
}

int64_t known_count(const ValueType& type) {
  return type.tensor.is_static() ? type.tensor.dims.count().value_or(-1) : -1;
}

}  // namespace cpu

void add_elementwise_cpu(KernelRegistry& registry) {
  add_binary_cpu(registry);
  add_unary_cpu(registry);
  add_select_cpu(registry);
  add_update_cpu(registry);
}

}  // namespace eddy
