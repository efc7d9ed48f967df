// The kernels as the driver takes them: fat binaries with code for sm_80 and sm_90 and PTX for what
// comes later, one for each source of the device. None in a build without nvcc (image_stub.cc).
#pragma once

#include <vector>

namespace eddy {

std::vector<const void*> cuda_images();
// The kernels of loop_control.h: linked code for sm_80 and sm_90, without PTX; null: none.
const void* cuda_loop_image();

}  // namespace eddy
