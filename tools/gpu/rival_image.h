// The kernel of rival_kernels.h as the driver takes it; null in a build without a CUDA toolkit.
#pragma once

namespace eddy {

const void* rival_image();

}  // namespace eddy
