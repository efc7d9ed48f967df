#include "ops/cuda/launch/families.h"

namespace eddy {
namespace cuda {

Status no_cuda_kernel(const KernelInit& init) {
  const ElementType element =
      init.inputs.empty() ? ElementType::kUndefined : init.inputs[0].tensor.element;
  return unsupported(std::string(element_type_name(element)) +
                     " is not supported by the CUDA kernel of " + init.op.name);
}

}  // namespace cuda

}  // namespace eddy
