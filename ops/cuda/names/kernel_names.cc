#include "ops/cuda/names/kernel_names.h"

#include "ops/cuda/names/kernel_list.h"
#include "ops/cuda/names/line_list.h"
#include "ops/cuda/names/movement_list.h"
#include "ops/cuda/names/product_list.h"

namespace eddy::cuda {

std::vector<std::string> kernel_names() {
#define EDDY_NAME_OF(name, ...) "eddy_" #name,
#define EDDY_NAME_TYPED(op, type) "eddy_" #op "_" #type,
#define EDDY_NAME_BINARY(op, type) EDDY_NAME_TYPED(op, type)
#define EDDY_NAME_COMPARE(op, type) EDDY_NAME_TYPED(op, type)
#define EDDY_NAME_UNARY(op, type) EDDY_NAME_TYPED(op, type)
#define EDDY_NAME_TEST(op, type) EDDY_NAME_TYPED(op, type)
#define EDDY_NAME_TERNARY(op, type) EDDY_NAME_TYPED(op, type)
#define EDDY_NAME_REDUCE(op, type) EDDY_NAME_TYPED(op, type)
#define EDDY_NAME_EXTREME(op, type) EDDY_NAME_TYPED(op, type)
#define EDDY_NAME_ARG(op, type) EDDY_NAME_TYPED(op, type)
#define EDDY_NAME_SOFTMAX(op, type) EDDY_NAME_TYPED(op, type)
#define EDDY_NAME_WORDS(size, word) "eddy_Where_" #size, "eddy_Copy_" #size,
  return {EDDY_CUDA_KERNELS(EDDY_NAME) EDDY_CUDA_ROWS(EDDY_NAME) EDDY_CUDA_ACTIVATIONS(EDDY_NAME)
              EDDY_CUDA_DIVISION(EDDY_NAME_TYPED) EDDY_CUDA_MOVEMENT(EDDY_NAME_OF)
                  EDDY_CUDA_LINE_THREADS(EDDY_NAME_OF) EDDY_CUDA_LINE_BLOCKS(EDDY_NAME_OF)
                      EDDY_CUDA_PRODUCTS(EDDY_NAME_OF)};
}

}  // namespace eddy::cuda
