#include "ops/reference/reference_kernels.h"

#include "ops/reference/families.h"

namespace eddy {

void add_reference_kernels(KernelRegistry& registry) {
  add_elementwise_reference(registry);
  add_reduction_reference(registry);
  add_softmax_reference(registry);
  add_quantize_reference(registry);
  add_movement_reference(registry);
  add_sequence_reference(registry);
  add_indexing_reference(registry);
  add_matmul_reference(registry);
  add_matmul_bits_reference(registry);
  add_conv_reference(registry);
  add_deform_conv_reference(registry);
  add_pool_reference(registry);
  add_resize_reference(registry);
  add_recurrent_reference(registry);
  add_normalization_reference(registry);
  add_grid_sample_reference(registry);
  add_regions_reference(registry);
  add_random_reference(registry);
  add_signal_reference(registry);
  add_text_reference(registry);
  add_columns_reference(registry);
  add_attention_reference(registry);
  add_tensor_scatter_reference(registry);
  add_linear_attention_reference(registry);
  add_ml_label_reference(registry);
  add_ml_feature_reference(registry);
  add_ml_linear_reference(registry);
  add_ml_svm_reference(registry);
  add_ml_tree_reference(registry);
  add_blocked_reference(registry);
  add_collective_reference(registry);
}

}  // namespace eddy
