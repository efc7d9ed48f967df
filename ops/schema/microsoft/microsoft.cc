#include "ops/schema/microsoft/microsoft.h"

#include "ops/schema/families.h"

namespace eddy {

Status add_microsoft_schemas(OpTable& table) {
  EDDY_RETURN_IF_ERROR(add_microsoft_activations(table));
  EDDY_RETURN_IF_ERROR(add_microsoft_fusions(table));
  EDDY_RETURN_IF_ERROR(add_microsoft_normalizations(table));
  EDDY_RETURN_IF_ERROR(add_microsoft_quantized(table));
  EDDY_RETURN_IF_ERROR(add_microsoft_attention(table));
  EDDY_RETURN_IF_ERROR(add_microsoft_group_query(table));
  EDDY_RETURN_IF_ERROR(add_microsoft_collectives(table));
  return add_microsoft_matmul_bits(table);
}

}  // namespace eddy
