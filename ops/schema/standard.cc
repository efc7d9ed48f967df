#include "ops/schema/standard.h"

#include "ops/schema/families.h"

namespace eddy {

Status add_standard_schemas(OpTable& table) {
  EDDY_RETURN_IF_ERROR(add_elementwise_schemas(table));
  EDDY_RETURN_IF_ERROR(add_reduction_schemas(table));
  EDDY_RETURN_IF_ERROR(add_softmax_schemas(table));
  EDDY_RETURN_IF_ERROR(add_quantize_schemas(table));
  EDDY_RETURN_IF_ERROR(add_movement_schemas(table));
  EDDY_RETURN_IF_ERROR(add_sequence_schemas(table));
  EDDY_RETURN_IF_ERROR(add_indexing_schemas(table));
  EDDY_RETURN_IF_ERROR(add_matmul_schemas(table));
  EDDY_RETURN_IF_ERROR(add_conv_schemas(table));
  EDDY_RETURN_IF_ERROR(add_pool_schemas(table));
  EDDY_RETURN_IF_ERROR(add_resize_schemas(table));
  EDDY_RETURN_IF_ERROR(add_recurrent_schemas(table));
  EDDY_RETURN_IF_ERROR(add_normalization_schemas(table));
  EDDY_RETURN_IF_ERROR(add_image_schemas(table));
  EDDY_RETURN_IF_ERROR(add_random_schemas(table));
  EDDY_RETURN_IF_ERROR(add_signal_schemas(table));
  EDDY_RETURN_IF_ERROR(add_text_schemas(table));
  EDDY_RETURN_IF_ERROR(add_columns_schemas(table));
  EDDY_RETURN_IF_ERROR(add_attention_schemas(table));
  EDDY_RETURN_IF_ERROR(add_linear_attention_schemas(table));
  EDDY_RETURN_IF_ERROR(add_function_schemas(table));
  EDDY_RETURN_IF_ERROR(add_ml_label_schemas(table));
  EDDY_RETURN_IF_ERROR(add_ml_feature_schemas(table));
  EDDY_RETURN_IF_ERROR(add_ml_linear_schemas(table));
  EDDY_RETURN_IF_ERROR(add_ml_tree_schemas(table));
  EDDY_RETURN_IF_ERROR(add_ml_map_schemas(table));
  EDDY_RETURN_IF_ERROR(add_microsoft_schemas(table));
  EDDY_RETURN_IF_ERROR(add_blocked_schemas(table));
  EDDY_RETURN_IF_ERROR(add_collective_schemas(table));
  return add_eddy_schemas(table);
}

}  // namespace eddy
