#include "ops/cpu/families.h"

namespace eddy {

void add_softmax_cpu(KernelRegistry&) {  }

}  // namespace eddy
