#include "ops/cuda/cuda_kernels.h"

#include "ops/cuda/families.h"

namespace eddy {
namespace cuda {

std::string_view type_suffix(ElementType element) {
  switch (element) {
    case ElementType::kFloat:
      return "f32";
    case ElementType::kDouble:
      return "f64";
    case ElementType::kFloat16:
      return "f16";
    case ElementType::kBfloat16:
      return "bf16";
    case ElementType::kInt32:
      return "i32";
    case ElementType::kInt64:
      return "i64";
    case ElementType::kBool:
      return "b8";
    case ElementType::kInt8:
      return "i8";
    case ElementType::kUint8:
      return "u8";
    case ElementType::kInt16:
      return "i16";
    case ElementType::kUint16:
      return "u16";
    case ElementType::kUint32:
      return "u32";
    case ElementType::kUint64:
      return "u64";
    default:
      return "";
  }
}

Status no_cuda_kernel(const KernelInit& init) {
  const ElementType element =
      init.inputs.empty() ? ElementType::kUndefined : init.inputs[0].tensor.element;
  return unsupported(std::string(element_type_name(element)) +
                     " is not supported by the CUDA kernel of " + init.op.name);
}

}  // namespace cuda

void add_cuda_kernels(KernelRegistry& registry, CudaLauncher& launcher,
                      const CudaLibraries& libraries) {
  add_elementwise_cuda(registry, launcher);
  add_movement_cuda(registry, launcher);
  add_rows_cuda(registry, launcher);
  add_parts_cuda(registry, launcher);
  add_indices_cuda(registry, launcher);
  add_positions_cuda(registry, launcher);
  add_lines_cuda(registry, launcher);
  add_norms_cuda(registry, launcher);
  add_windows_cuda(registry, launcher, libraries.convolutions);
  add_quantize_cuda(registry, launcher);
  add_resize_cuda(registry, launcher);
  add_products_cuda(registry, launcher, libraries.products);
  add_recurrent_cuda(registry, launcher);
}

}  // namespace eddy
