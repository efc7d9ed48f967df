#include "runtime/api/c/accelerators.h"

namespace eddy::c {

Refusal use_accelerator(AcceleratorOptions& wanted, std::vector<KernelEntry>, SessionOptions&) {
  return {EDDY_UNSUPPORTED, "option 'device' is '" + wanted.device +
                                "', but this libeddy.so is for the CPU alone; give 'cpu', or "
                                "install the one for GPUs (tools/install --cuda)"};
}

const char* devices_text() { return "cpu"; }

}  // namespace eddy::c
