#include "ops/cpu/cpu_kernels.h"

#include "ops/cpu/families.h"
#include "ops/reference/reference_kernels.h"

namespace eddy {

void add_cpu_kernels(KernelRegistry& registry) {
  add_reference_kernels(registry);
  add_elementwise_cpu(registry);
  add_reduction_cpu(registry);
  add_softmax_cpu(registry);
  add_quantize_cpu(registry);
  add_movement_cpu(registry);
  add_sequence_cpu(registry);
  add_indexing_cpu(registry);
  add_matmul_cpu(registry);
  add_matmul_integer_cpu(registry);
  add_dequantize_matmul_cpu(registry);
  add_conv_cpu(registry);
  add_pool_cpu(registry);
  add_resize_cpu(registry);
  add_recurrent_cpu(registry);
  add_normalization_cpu(registry);
}

}  // namespace eddy
