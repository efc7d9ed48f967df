#include "ops/reference/elementwise/elementwise.h"

#include "ops/reference/families.h"

namespace eddy {

void add_elementwise_reference(KernelRegistry& registry) {
  add_binary_reference(registry);
  add_unary_reference(registry);
  add_cast_reference(registry);
  add_update_reference(registry);
}

}  // namespace eddy
