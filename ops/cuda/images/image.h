// The kernels as the driver takes them: fat binaries with code for sm_80 and sm_90 and PTX for what
// comes later, one for each source of the device. None in a build without nvcc (image_stub.cc).
#pragma once

#include <vector>

namespace eddy {

std::vector<const void*> cuda_images();
// The kernels of loop_control.h: linked code for sm_80, sm_90, sm_100 and sm_120, and no PTX, which
// linked code cannot have: what is later drives its loops from the host. Null: none.
const void* cuda_loop_image();
// The toolkit that made them: 13000 is CUDA 13.0; 0: none did. A driver for an older CUDA may
// refuse them, since code is compatible within one major version only.
int cuda_image_toolkit();

}  // namespace eddy
