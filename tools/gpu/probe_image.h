// The kernel of probe_kernels.h as the driver takes it; null in a build without a CUDA toolkit.
#pragma once

namespace eddy {

const void* probe_image();

}  // namespace eddy
