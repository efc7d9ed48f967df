#include "ops/cpu/families.h"

namespace eddy {

void add_reduction_cpu(KernelRegistry&) {  }

}  // namespace eddy
