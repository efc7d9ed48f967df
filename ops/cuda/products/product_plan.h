// ProductPlan: from shapes to the launch of one matrix product by our own kernels.
//
// Matrices of A that meet one matrix of B are one tall matrix; a product with few columns is that
// of the transposes. Products of at most four rows go to the kernel made for them.
// Cost: O(batch axes). Threads: a plan belongs to one call.
#pragma once

#include "ops/cuda/launch/launch.h"
#include "ops/reference/products/permuted_product.h"
#include "ops/reference/products/product.h"

namespace eddy {

// The two kernels of one kind of product; of float32 matrices one more.
struct ProductKernels {
  CudaFunction tile = nullptr;
  CudaFunction rows = nullptr;
  CudaFunction tensor = nullptr;

  // eddy_<name>Tile_<suffix> and …Rows_….
  Status find(const KernelInit& init, CudaLauncher& launcher, const std::string& name,
              const std::string& suffix);
};

class ProductPlan {
 public:
  ProductPlan() {
    params_.alpha = params_.beta = 1;
    params_.num_batches = 1;
  }
  // A [..., m, k] times B [..., k, n], as MatMul has it.
  static ProductPlan of(const TensorView& a, const TensorView& b);
  // A and B with their axes in other orders into Y, as eddy.PermutedMatMul has it.
  static ProductPlan of(const PermutedProduct& product);
  // One product of strided matrices into a contiguous one.
  void set_sizes(int64_t m, int64_t n, int64_t k);
  void set_a(int64_t row, int64_t column);
  void set_b(int64_t row, int64_t column);
  // Several, outermost first; strides in elements.
  void add_batch_axis(int64_t count, int64_t a_stride, int64_t b_stride, int64_t out_stride);

  // For pointers, factors and what one kind of product has beyond the others.
  cuda::ProductParams& params() { return params_; }
  const cuda::ProductParams& params() const { return params_; }

  // By the kernel on tensor cores, for products that it takes, of so many additions.
  bool suits_tensor_tile(int64_t most_additions) const;
  bool launch_tensor(const KernelArgs& args, CudaLauncher& launcher,
                     const ProductKernels& kernels) const;
  // Makes it the product of the transposes, where that has few rows; c and zero points with it.
  // `may_swap` false: what the operands mean differs.
  bool launch(const KernelArgs& args, CudaLauncher& launcher, const ProductKernels& kernels,
              bool may_swap);

 private:
  void swap_sides();

  cuda::ProductParams params_{};
};

}  // namespace eddy
