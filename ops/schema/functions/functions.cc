#include "ops/schema/functions/functions.h"

#include "ops/schema/families.h"

namespace eddy {

Status add_function_schemas(OpTable& table) {
  EDDY_RETURN_IF_ERROR(add_activation_functions(table));
  EDDY_RETURN_IF_ERROR(add_convolution_functions(table));
  EDDY_RETURN_IF_ERROR(add_early_functions(table));
  EDDY_RETURN_IF_ERROR(add_einsum_functions(table));
  EDDY_RETURN_IF_ERROR(add_normalization_functions(table));
  EDDY_RETURN_IF_ERROR(add_image_functions(table));
  EDDY_RETURN_IF_ERROR(add_loss_functions(table));
  EDDY_RETURN_IF_ERROR(add_quantized_functions(table));
  EDDY_RETURN_IF_ERROR(add_pool_functions(table));
  EDDY_RETURN_IF_ERROR(add_signal_functions(table));
  return add_training_functions(table);
}

}  // namespace eddy
