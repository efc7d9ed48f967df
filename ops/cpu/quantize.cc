#include "ops/cpu/families.h"

namespace eddy {

void add_quantize_cpu(KernelRegistry&) {  }

}  // namespace eddy
