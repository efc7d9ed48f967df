// eddy.PermutedMatMul for float: products whose operands and result lie with their axes in other
// orders, with the bits of Transpose, MatMul and Transpose. What goes by register tiles is read and
// written where it lies; for the library, matrix by matrix is copied. What has no column next to
// another, in A, B or the result, and what has a bias, an addend, a factor or operands that lie in
// a larger tensor, is left to the reference.
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

// A side of one element has any distance.
bool is_b_turned(const PermutedProduct& p) { return p.b_column != 1 && p.n != 1; }

bool is_in_place(const PermutedProduct& p, int64_t rows) {
  return p.n > 1 && p.k > 0 && cpu::is_for_tiles(rows, p.n, p.k);
}

// How the products are cut into units: into the blocks of rows that MatMul has; or, where all of
// these go by the library and B is turned over, into blocks of columns, so that each turns over
// its own part. (Few columns are added up in another order there.)
struct Cut {
  bool is_by_columns;
  cpu::BatchUnits units;

  explicit Cut(const PermutedProduct& p)
      : is_by_columns(false), units(num_batches(p), p.m, p.n, p.k) {
    // Two matrices are one product for MatMul.
    if (p.num_axes == 0) units.rows_each = p.m, units.per_batch = 1;
    const int64_t last = p.m - (units.per_batch - 1) * units.rows_each;
    constexpr int64_t kFewColumns = 32;
    const cpu::BatchUnits columns(num_batches(p), p.n, p.m, p.k);
    const int64_t last_columns = p.n - (columns.per_batch - 1) * columns.rows_each;
    is_by_columns = is_b_turned(p) && units.per_batch > 1 && last_columns >= kFewColumns &&
                    !is_in_place(p, units.rows_each) && !is_in_place(p, last);
    if (is_by_columns) units = columns;
  }

  static int64_t num_batches(const PermutedProduct& p) {
    int64_t count = 1;
    for (int i = 0; i < p.num_axes; ++i) count *= p.axes[static_cast<size_t>(i)].size;
    return count;
  }
};

// Rows and columns of one product.
struct Block {
  int64_t row = 0, rows, column = 0, columns;

  Block(const PermutedProduct& p, const Cut& cut, int64_t unit) : rows(p.m), columns(p.n) {
    int64_t& first = cut.is_by_columns ? column : row;
    int64_t& count = cut.is_by_columns ? columns : rows;
    first = unit % cut.units.per_batch * cut.units.rows_each;
    count = std::min(cut.units.rows_each, count - first);
  }
};

cpu::Tiles tiles_of_permuted(const KernelArgs& args) { return Cut(product_of(args)).units.tiles(); }

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

// One product of a batch, or a block of it.
class Part {
 public:
  Part(const PermutedProduct& p, const KernelArgs& args, const Place& place, const Cut& cut,
       const Block& block)
      : p_(p),
        is_in_place_(!cut.is_by_columns && is_in_place(p, block.rows)),
        rows_(block.rows),
        columns_(block.columns),
        a_(args.inputs[0].as<float>() + place.a + block.row * p.a_row),
        b_(args.inputs[1].as<float>() + place.b + block.column * p.b_column),
        y_(args.outputs[0].mutable_as<float>() + place.y + block.row * p.y_row + block.column) {}

  int64_t scratch_floats() const {
    if (!is_in_place_) {
      return round_up(rows_ * p_.k) + round_up(p_.k * columns_) + rows_ * columns_;
    }
    return is_b_turned(p_) ? p_.k * cpu::tile_kernels().panel_width() : 0;
  }

  void run(float* scratch) const {
    if (!is_in_place_) return run_on_copies(scratch);
    const bool is_turned = p_.a_column != 1 && p_.k != 1;
    cpu::gemm_by_tiles({.m = rows_,
                        .n = columns_,
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
  static int64_t round_up(int64_t floats) { return (floats + 15) / 16 * 16; }

  // As Transpose, MatMul and Transpose make it, in the cache; what lies as they would make it
  // stays.
  void run_on_copies(float* scratch) const {
    float* const a = scratch;
    float* const b = a + round_up(rows_ * p_.k);
    float* const y = b + round_up(p_.k * columns_);
    const bool has_plain_a = p_.a_row == p_.k && p_.a_column == 1;
    const bool has_plain_b = p_.b_row == p_.n && p_.b_column == 1;
    const bool has_plain_y = p_.y_row == p_.n;
    if (!has_plain_a) copy(a_, p_.a_row, p_.a_column, a, rows_, p_.k);
    if (!has_plain_b) copy(b_, p_.b_row, p_.b_column, b, p_.k, columns_);
    cpu::gemm({.m = rows_,
               .n = columns_,
               .k = p_.k,
               .a = has_plain_a ? a_ : a,
               .a_row = p_.k,
               .b = has_plain_b ? b_ : b,
               .b_row = has_plain_b ? p_.n : columns_,
               .c = has_plain_y ? y_ : y,
               .c_row = has_plain_y ? p_.n : columns_});
    if (has_plain_y) return;
    for (int64_t i = 0; i < rows_; ++i) std::copy_n(y + i * columns_, columns_, y_ + i * p_.y_row);
  }

  static void copy(const float* from, int64_t row, int64_t column, float* to, int64_t rows,
                   int64_t columns) {
    StridedCopy copy;
    copy.add_axis(rows, row);
    copy.add_axis(columns, column);
    copy.run(reinterpret_cast<const uint32_t*>(from), reinterpret_cast<uint32_t*>(to));
  }

  const PermutedProduct& p_;
  const bool is_in_place_;
  const int64_t rows_, columns_;
  const float *a_, *b_;
  float* y_;
};

bool run_permuted(const KernelArgs& args, int64_t first, int64_t end) {
  const PermutedProduct p = product_of(args);
  const Cut cut(p);
  EDDY_DCHECK(end <= cut.units.count()) << "units " << first << " to " << end;
  if (p.m == 0 || p.n == 0 || first >= end) return true;
  EDDY_DCHECK(p.y_column == 1 || p.n == 1) << "columns " << p.y_column << " apart";
  const auto part = [&](int64_t unit) {
    return Part(p, args, Place(p, unit / cut.units.per_batch), cut, Block(p, cut, unit));
  };
  // Of whole blocks and of the last one, which may be by tiles where the others are not.
  const int64_t floats =
      std::max(part(0).scratch_floats(), part(cut.units.per_batch - 1).scratch_floats());
  float* scratch = nullptr;
  if (floats > 0) {
    scratch = static_cast<float*>(args.scratch->reserve(static_cast<size_t>(floats) * 4));
    if (scratch == nullptr) {
      return args.fail(resource_exhausted("no memory for the matrices of a product"));
    }
  }
  for (int64_t unit = first; unit < end; ++unit) part(unit).run(scratch);
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
  return Cut(PermutedProduct(shape(a), shape(b), shape(y), orders)).units.tiles().count() < 2;
}

Result<BoundKernel> bind_permuted(const KernelInit& init) {
  auto state = std::make_unique<PermutedState>();
  state->orders = ProductOrders::of(init.attributes);
  const bool has_more =
      init.inputs.size() > 2 || state->orders.is_placed() || state->orders.alpha != 1;
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
