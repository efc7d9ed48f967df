#include "ops/cuda/cuda_kernels.h"

#include "ops/cuda/launch/families.h"

namespace eddy {

void add_cuda_kernels(KernelRegistry& registry, CudaLauncher& launcher,
                      const CudaLibraries& libraries) {
  add_elementwise_cuda(registry, launcher);
  add_fused_cuda(registry, launcher);
  add_movement_cuda(registry, launcher);
  add_rows_cuda(registry, launcher, libraries.long_lines);
  add_parts_cuda(registry, launcher);
  add_indices_cuda(registry, launcher);
  add_positions_cuda(registry, launcher);
  add_lines_cuda(registry, launcher, libraries.long_lines);
  add_norms_cuda(registry, launcher, libraries.dnn);
  add_windows_cuda(registry, launcher, libraries.dnn);
  add_quantize_cuda(registry, launcher);
  add_resize_cuda(registry, launcher);
  add_products_cuda(registry, launcher, libraries.products);
  add_recurrent_cuda(registry, launcher);
}

}  // namespace eddy
