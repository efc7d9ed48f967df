#include "ops/reference/families.h"

namespace eddy {

void add_reduction_reference(KernelRegistry&) {  }

}  // namespace eddy
