// eddy.PermutedMatMul for float: products whose operands and result lie with their axes in other
// orders, with the bits of Transpose, MatMul and Transpose. What goes by register tiles is read and
// written where it lies; for the library, matrix by matrix is copied. What has no column next to
// another, in A, B or the result, and what has a bias or an addend, is left to the reference.
#include <algorithm>
#include <memory>

#include "graph/base/check.h"
#include "ops/cpu/batch_units.h"
#include "ops/cpu/elementwise.h"
#include "ops/cpu/families.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/strided_copy.h"
#include "ops/reference/products/permuted_product.h"

namespace eddy {
namespace {

struct PermutedState : KernelState {
  ProductOrders orders;
};

PermutedProduct product_of(const KernelArgs& args) {
  const auto& state = static_cast<const PermutedState&>(*args.state);
  return {args.inputs[0], args.inputs[1], args.outputs[0], state.orders};
}

cpu::BatchUnits units_of(const PermutedProduct& p) {
  int64_t num_batches = 1;
  for (int i = 0; i < p.num_axes; ++i) num_batches *= p.axes[static_cast<size_t>(i)].size;
  cpu::BatchUnits units(num_batches, p.m, p.n, p.k);
  // Two matrices are one product for MatMul.
  if (p.num_axes == 0) units.rows_each = p.m, units.per_batch = 1;
  return units;
}

cpu::Tiles tiles_of_permuted(const KernelArgs& args) { return units_of(product_of(args)).tiles(); }

// Where the matrices of a batch begin, in elements.
struct Place {
  int64_t a = 0, b = 0, y = 0;

  Place(const PermutedProduct& p, int64_t batch) {
    for (int i = p.num_axes - 1; i >= 0; --i) {
      const PermutedProduct::Axis& axis = p.axes[static_cast<size_t>(i)];
      const int64_t at = batch % axis.size;
      batch /= axis.size;
      a += at * axis.a;
      b += at * axis.b;
      y += at * axis.y;
    }
  }
};

// One product of a batch, or a block of its rows.
class Part {
 public:
  Part(const PermutedProduct& p, const KernelArgs& args, const Place& place, int64_t row,
       int64_t rows)
      : p_(p),
        rows_(rows),
        a_(args.inputs[0].as<float>() + place.a + row * p.a_row),
        b_(args.inputs[1].as<float>() + place.b),
        y_(args.outputs[0].mutable_as<float>() + place.y + row * p.y_row) {}

  static bool is_in_place(const PermutedProduct& p, int64_t rows) {
    return p.n > 1 && p.k > 0 && cpu::is_for_tiles(rows, p.n, p.k);
  }
  static int64_t scratch_floats(const PermutedProduct& p, int64_t rows) {
    if (!is_in_place(p, rows)) return round_up(rows * p.k) + round_up(p.k * p.n) + rows * p.n;
    return is_b_turned(p) ? p.k * cpu::tile_kernels().panel_width() : 0;
  }

  void run(float* scratch) const {
    if (!is_in_place(p_, rows_)) return run_on_copies(scratch);
    const bool is_turned = p_.a_column != 1 && p_.k != 1;
    cpu::gemm_by_tiles({.m = rows_,
                        .n = p_.n,
                        .k = p_.k,
                        .a = a_,
                        .a_row = is_turned ? p_.a_column : p_.a_row,
                        .transpose_a = is_turned,
                        .b = b_,
                        .b_row = is_b_turned(p_) ? p_.b_column : p_.b_row,
                        .transpose_b = is_b_turned(p_),
                        .c = y_,
                        .c_row = p_.y_row},
                       scratch);
  }

 private:
  // A side of one element has any distance.
  static bool is_b_turned(const PermutedProduct& p) { return p.b_column != 1 && p.n != 1; }
  static int64_t round_up(int64_t floats) { return (floats + 15) / 16 * 16; }

  // As Transpose, MatMul and Transpose make it, in the cache; what lies as they would make it
  // stays.
  void run_on_copies(float* scratch) const {
    float* const a = scratch;
    float* const b = a + round_up(rows_ * p_.k);
    float* const y = b + round_up(p_.k * p_.n);
    const bool has_plain_a = p_.a_row == p_.k && p_.a_column == 1;
    const bool has_plain_b = p_.b_row == p_.n && p_.b_column == 1;
    const bool has_plain_y = p_.y_row == p_.n;
    if (!has_plain_a) copy(a_, p_.a_row, p_.a_column, a, rows_, p_.k);
    if (!has_plain_b) copy(b_, p_.b_row, p_.b_column, b, p_.k, p_.n);
    cpu::gemm({.m = rows_,
               .n = p_.n,
               .k = p_.k,
               .a = has_plain_a ? a_ : a,
               .a_row = p_.k,
               .b = has_plain_b ? b_ : b,
               .b_row = p_.n,
               .c = has_plain_y ? y_ : y,
               .c_row = p_.n});
    if (has_plain_y) return;
    for (int64_t i = 0; i < rows_; ++i) std::copy_n(y + i * p_.n, p_.n, y_ + i * p_.y_row);
  }

  static void copy(const float* from, int64_t row, int64_t column, float* to, int64_t rows,
                   int64_t columns) {
    StridedCopy copy;
    copy.add_axis(rows, row);
    copy.add_axis(columns, column);
    copy.run(reinterpret_cast<const uint32_t*>(from), reinterpret_cast<uint32_t*>(to));
  }

  const PermutedProduct& p_;
  const int64_t rows_;
  const float *a_, *b_;
  float* y_;
};

bool run_permuted(const KernelArgs& args, int64_t first, int64_t end) {
  const PermutedProduct p = product_of(args);
  const cpu::BatchUnits units = units_of(p);
  EDDY_DCHECK(end <= units.count()) << "units " << first << " to " << end;
  if (p.m == 0 || p.n == 0 || first >= end) return true;
  EDDY_DCHECK(p.y_column == 1 || p.n == 1) << "columns " << p.y_column << " apart";
  // Of whole blocks and of the last one, which may be by tiles where the others are not.
  const int64_t last = p.m - (units.per_batch - 1) * units.rows_each;
  const int64_t floats =
      std::max(Part::scratch_floats(p, units.rows_each), Part::scratch_floats(p, last));
  float* scratch = nullptr;
  if (floats > 0) {
    scratch = static_cast<float*>(args.scratch->reserve(static_cast<size_t>(floats) * 4));
    if (scratch == nullptr) {
      return args.fail(resource_exhausted("no memory for the matrices of a product"));
    }
  }
  for (int64_t unit = first; unit < end; ++unit) {
    const Place place(p, unit / units.per_batch);
    const int64_t row = unit % units.per_batch * units.rows_each;
    Part(p, args, place, row, std::min(units.rows_each, p.m - row)).run(scratch);
  }
  return true;
}

bool is_column_last(const std::vector<int64_t>& order) {
  return order.empty() || order.back() + 1 == static_cast<int64_t>(order.size());
}

// Rows or columns of the operand lie next to each other.
bool has_neighbours(const std::vector<int64_t>& order) {
  if (is_column_last(order)) return true;
  return order.size() >= 2 && order[order.size() - 2] + 1 == static_cast<int64_t>(order.size());
}

// Whether the product is known to be small.
bool is_one_tile(const KernelInit& init, const ProductOrders& orders) {
  const auto shape = [](const TensorType& type) {
    return TensorView{nullptr, type.dims.data(), type.dims.rank(), type.element};
  };
  const TensorType &a = init.inputs[0].tensor, &b = init.inputs[1].tensor;
  const TensorType& y = init.outputs[0].tensor;
  if (!a.is_static() || !b.is_static() || !y.is_static()) return false;
  return units_of(PermutedProduct(shape(a), shape(b), shape(y), orders)).tiles().count() < 2;
}

Result<BoundKernel> bind_permuted(const KernelInit& init) {
  auto state = std::make_unique<PermutedState>();
  state->orders = ProductOrders::of(init.attributes);
  const bool has_more = init.inputs.size() > 2;
  if (init.inputs[0].tensor.element != ElementType::kFloat || has_more ||
      !has_neighbours(state->orders.a) || !has_neighbours(state->orders.b) ||
      !is_column_last(state->orders.y)) {
    return cpu::no_fast_kernel(init);
  }
  BoundKernel kernel;
  kernel.run = cpu::run_all_units<tiles_of_permuted, run_permuted>;
  if (!is_one_tile(init, state->orders)) {
    cpu::set_tiles<tiles_of_permuted, run_permuted>(kernel);
  }
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_matmul_permuted_cpu(KernelRegistry& registry) {
  registry.add({.op = "PermutedMatMul",
                .bind = bind_permuted,
                .provider = "tile",
                .domain = "eddy",
                .has_tiles = true});
}

}  // namespace eddy
