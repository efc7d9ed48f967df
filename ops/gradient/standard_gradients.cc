#include "ops/gradient/standard_gradients.h"

#include "ops/gradient/families.h"

namespace eddy {

Status add_standard_gradients(GradientTable& table) {
  EDDY_RETURN_IF_ERROR(add_unary_gradients(table));
  EDDY_RETURN_IF_ERROR(add_elementwise_gradients(table));
  EDDY_RETURN_IF_ERROR(add_reduction_gradients(table));
  EDDY_RETURN_IF_ERROR(add_product_gradients(table));
  EDDY_RETURN_IF_ERROR(add_moving_gradients(table));
  EDDY_RETURN_IF_ERROR(add_indexing_gradients(table));
  EDDY_RETURN_IF_ERROR(add_normalization_gradients(table));
  EDDY_RETURN_IF_ERROR(add_convolution_gradients(table));
  EDDY_RETURN_IF_ERROR(add_pool_gradients(table));
  EDDY_RETURN_IF_ERROR(add_resize_gradients(table));
  EDDY_RETURN_IF_ERROR(add_recurrent_gradients(table));
  EDDY_RETURN_IF_ERROR(add_update_gradients(table));
  EDDY_RETURN_IF_ERROR(add_cheap_operators(table));
  EDDY_RETURN_IF_ERROR(add_sequence_gradients(table));
  return add_flat_operators(table);
}

}  // namespace eddy
