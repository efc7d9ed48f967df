#include "ops/cuda/products/product_plan.h"

#include <algorithm>
#include <utility>

#include "graph/base/check.h"
#include "ops/cuda/products/tensor_tile_inl.h"

namespace eddy {
namespace {

constexpr int64_t kMaxRows = cuda::kFewRows;
constexpr int64_t kColumns = 16;  // RowProduct
constexpr int64_t kSide = 64;     // TileProduct
// Of TensorTile. At 256 it is the faster one beside cuBLASLt (a round of nas_rnn with 64 rows 22.5
// µs in place of 25.8, H200); at 512 its first form was not (lstm 143 in place of 122), and the
// present one has not been measured.
constexpr int64_t kMostTensorDepth = 256;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

Status ProductKernels::find(const KernelInit& init, CudaLauncher& launcher, const std::string& name,
                            const std::string& suffix) {
  const auto find_one = [&](const std::string& kind, CudaFunction& function) {
    cuda::LaunchState state;
    EDDY_RETURN_IF_ERROR(
        cuda::find_typed_kernel(init, launcher, name + kind + "_" + suffix, state));
    function = state.function;
    return Status::ok();
  };
  if (name + suffix == "MatMulf32") EDDY_RETURN_IF_ERROR(find_one("Tensor", tensor));
  EDDY_RETURN_IF_ERROR(find_one("Tile", tile));
  return find_one("Rows", rows);
}

ProductPlan ProductPlan::of(const TensorView& a, const TensorView& b) {
  const BatchedProduct product(a, b);
  ProductPlan plan;
  bool is_one_b = true;
  int64_t count = 1;
  for (int i = product.batch_rank - 1; i >= 0; --i) {
    const auto at = static_cast<size_t>(i);
    if (product.batch_dims[at] == 1) continue;
    // A's matrices must follow one another, too.
    is_one_b = is_one_b && product.b_strides[at] == 0 && product.a_strides[at] == count;
    count *= product.batch_dims[at];
  }
  plan.set_sizes(is_one_b ? product.m * count : product.m, product.n, product.k);
  plan.set_a(product.k, 1);
  plan.set_b(product.n, 1);
  int64_t out_stride = product.num_batches * product.m * product.n;
  for (int i = 0; i < product.batch_rank && !is_one_b; ++i) {
    const auto at = static_cast<size_t>(i);
    out_stride /= std::max<int64_t>(product.batch_dims[at], 1);
    plan.add_batch_axis(product.batch_dims[at], product.a_strides[at] * product.m * product.k,
                        product.b_strides[at] * product.k * product.n, out_stride);
  }
  return plan;
}

ProductPlan ProductPlan::of(const PermutedProduct& product) {
  // Matrices that follow one another and meet one of B are one tall matrix; those of one row are
  // its rows, however far apart they lie.
  int64_t m = product.m, a_row = product.a_row, y_row = product.y_row;
  int num_axes = product.num_axes;
  for (; num_axes > 0; --num_axes) {
    const PermutedProduct::Axis& axis = product.axes[static_cast<size_t>(num_axes - 1)];
    if (axis.size == 1) continue;
    const bool is_row = m == 1;
    const bool follows = axis.a == m * a_row && axis.y == m * y_row;
    if (axis.b != 0 || !(follows || is_row)) break;
    if (is_row) a_row = axis.a, y_row = axis.y;
    m *= axis.size;
  }
  ProductPlan plan;
  plan.set_sizes(m, product.n, product.k);
  plan.set_a(a_row, product.a_column);
  plan.set_b(product.b_row, product.b_column);
  plan.params_.out_row = y_row;
  plan.params_.out_column = product.y_column;
  for (int i = 0; i < num_axes; ++i) {
    const PermutedProduct::Axis& axis = product.axes[static_cast<size_t>(i)];
    plan.add_batch_axis(axis.size, axis.a, axis.b, axis.y);
  }
  return plan;
}

void ProductPlan::set_sizes(int64_t m, int64_t n, int64_t k) {
  EDDY_DCHECK(m >= 0 && n >= 0 && k >= 0) << m << " x " << n << " x " << k;
  params_.m = m;
  params_.n = n;
  params_.k = k;
  params_.out_row = n;
  params_.out_column = 1;
}
void ProductPlan::set_a(int64_t row, int64_t column) {
  params_.a_row = row;
  params_.a_column = column;
}
void ProductPlan::set_b(int64_t row, int64_t column) {
  params_.b_row = row;
  params_.b_column = column;
}

void ProductPlan::add_batch_axis(int64_t count, int64_t a_stride, int64_t b_stride,
                                 int64_t out_stride) {
  if (count == 1) return;
  params_.num_batches *= static_cast<uint64_t>(count);
  if (params_.batch_rank > 0) {  // walked like the axis before: one axis
    const int last = params_.batch_rank - 1;
    if (params_.a_batch[last] == count * a_stride && params_.b_batch[last] == count * b_stride &&
        params_.out_batch[last] == count * out_stride) {
      params_.batch_dims[last] *= static_cast<uint64_t>(count);
      params_.a_batch[last] = a_stride;
      params_.b_batch[last] = b_stride;
      params_.out_batch[last] = out_stride;
      return;
    }
  }
  EDDY_DCHECK(params_.batch_rank < cuda::kMaxBatchAxes)
      << "more than " << cuda::kMaxBatchAxes << " axes";
  params_.batch_dims[params_.batch_rank] = static_cast<uint64_t>(count);
  params_.a_batch[params_.batch_rank] = a_stride;
  params_.b_batch[params_.batch_rank] = b_stride;
  params_.out_batch[params_.batch_rank++] = out_stride;
}

void ProductPlan::swap_sides() {
  cuda::ProductParams& p = params_;
  std::swap(p.m, p.n);
  std::swap(p.a, p.b);
  std::swap(p.a_row, p.b_column);
  std::swap(p.a_column, p.b_row);
  std::swap(p.c_row, p.c_column);
  std::swap(p.bias_row, p.bias_column);
  std::swap(p.out_row, p.out_column);
  for (int i = 0; i < p.batch_rank; ++i) std::swap(p.a_batch[i], p.b_batch[i]);
}

bool ProductPlan::suits_tensor_tile(int64_t most_additions) const {
  const cuda::ProductParams& p = params_;
  const bool is_wide = std::min(p.m, p.n) > kMaxRows;
  if (!is_wide || p.k > kMostTensorDepth || !cuda::TensorTile::fits(p)) return false;
  const double additions = static_cast<double>(p.num_batches) * static_cast<double>(p.m) *
                           static_cast<double>(p.n) * static_cast<double>(p.k);
  return additions <= static_cast<double>(most_additions);
}

bool ProductPlan::launch_tensor(const KernelArgs& args, CudaLauncher& launcher,
                                const ProductKernels& kernels) const {
  const uint64_t items = cuda::TensorTile::num_items(params_);
  return cuda::launch_blocks(args, launcher, kernels.tensor, items, params_);
}

bool ProductPlan::launch(const KernelArgs& args, CudaLauncher& launcher,
                         const ProductKernels& kernels, bool may_swap) {
  const cuda::ProductParams& p = params_;
  if (may_swap && p.n <= kMaxRows && p.m > kMaxRows) swap_sides();
  if (p.m == 0 || p.n == 0) return true;
  if (p.m <= kMaxRows) {
    const uint64_t items = p.num_batches * static_cast<uint64_t>(divide_up(p.n, kColumns));
    return cuda::launch_blocks(args, launcher, kernels.rows, items, p);
  }
  const uint64_t items =
      p.num_batches * static_cast<uint64_t>(divide_up(p.m, kSide) * divide_up(p.n, kSide));
  return cuda::launch_blocks(args, launcher, kernels.tile, items, p);
}

}  // namespace eddy
