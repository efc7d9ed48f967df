#include "ops/reference/families.h"

namespace eddy {

void add_normalization_reference(KernelRegistry&) {  }

}  // namespace eddy
