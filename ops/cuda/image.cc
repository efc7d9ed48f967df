#include "ops/cuda/image.h"

#include <cstdint>

extern "C" {
// Made of elementwise.cu and loop_control.cu by eddy_cuda_image; lengths count words.
extern const unsigned long long eddy_cuda_image[];
extern const uint32_t eddy_cuda_imageLength;
extern const unsigned long long eddy_cuda_loop_image[];
extern const uint32_t eddy_cuda_loop_imageLength;
}

namespace eddy {

CudaImage cuda_image() {
  return {eddy_cuda_image, eddy_cuda_imageLength * sizeof(unsigned long long)};
}

CudaImage cuda_loop_image() {
  return {eddy_cuda_loop_image, eddy_cuda_loop_imageLength * sizeof(unsigned long long)};
}

}  // namespace eddy
