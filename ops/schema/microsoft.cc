#include "ops/schema/microsoft.h"

#include "ops/schema/families.h"

namespace eddy {

Status add_microsoft_schemas(OpTable& table) {
  return add_microsoft_matmul_bits(table);
}

}  // namespace eddy
