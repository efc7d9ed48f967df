#include "tools/gpu/rival_image.h"

// Made of rival_kernels.cu by eddy_cuda_image.
extern "C" const unsigned long long eddy_rival_image[];

namespace eddy {

const void* rival_image() { return eddy_rival_image; }

}  // namespace eddy
