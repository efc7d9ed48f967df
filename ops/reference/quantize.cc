#include "ops/reference/families.h"

namespace eddy {

void add_quantize_reference(KernelRegistry&) {  }

}  // namespace eddy
