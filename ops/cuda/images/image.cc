#include "ops/cuda/images/image.h"

extern "C" {
// Made of the sources of the device by eddy_cuda_image.
extern const unsigned long long eddy_cuda_activations[];
extern const unsigned long long eddy_cuda_elementwise[];
extern const unsigned long long eddy_cuda_lines[];
extern const unsigned long long eddy_cuda_movement[];
extern const unsigned long long eddy_cuda_products[];
extern const unsigned long long eddy_cuda_loop_image[];
extern const int eddy_cuda_loop_image_toolkit;
}

namespace eddy {

std::vector<const void*> cuda_images() {
  return {eddy_cuda_activations, eddy_cuda_elementwise, eddy_cuda_lines, eddy_cuda_movement,
          eddy_cuda_products};
}

const void* cuda_loop_image() { return eddy_cuda_loop_image; }

int cuda_image_toolkit() { return eddy_cuda_loop_image_toolkit; }

}  // namespace eddy
