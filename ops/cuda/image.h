// The kernels as the driver takes them: a fat binary with code for sm_80 and sm_90 and PTX for what
// comes later. Null in a build without nvcc (image_stub.cc).
#pragma once

#include <cstddef>

namespace eddy {

struct CudaImage {
  const void* data = nullptr;
  size_t size_bytes = 0;
};

CudaImage cuda_image();
// The kernels of loop_control.h: linked code for sm_80 and sm_90, without PTX.
CudaImage cuda_loop_image();

}  // namespace eddy
