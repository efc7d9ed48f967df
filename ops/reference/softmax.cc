#include "ops/reference/families.h"

namespace eddy {

void add_softmax_reference(KernelRegistry&) {  }

}  // namespace eddy
