#include "ops/cpu/families.h"

namespace eddy {

void add_normalization_cpu(KernelRegistry&) {  }

}  // namespace eddy
