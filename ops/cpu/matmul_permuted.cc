// eddy.PermutedMatMul for float: products whose operands and result lie with their axes in other
// orders, read and written where they are. What has no column next to another, in A, B or the
// result, and what has a bias or an addend, is left to the reference.
#include <memory>

#include "graph/base/check.h"
#include "ops/cpu/batch_units.h"
#include "ops/cpu/elementwise.h"
#include "ops/cpu/families.h"
#include "ops/cpu/gemm.h"
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
  return {num_batches, p.m, p.n, p.k};
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

bool run_permuted(const KernelArgs& args, int64_t first, int64_t end) {
  const PermutedProduct p = product_of(args);
  const cpu::BatchUnits units = units_of(p);
  EDDY_DCHECK(end <= units.count()) << "units " << first << " to " << end;
  if (p.m == 0 || p.n == 0) return true;
  // A side of one element has any distance.
  const bool is_a_turned = p.a_column != 1 && p.k != 1;
  const bool is_b_turned = p.b_column != 1 && p.n != 1;
  EDDY_DCHECK(!is_a_turned || p.a_row == 1 || p.m == 1) << "A has no neighbours";
  EDDY_DCHECK(!is_b_turned || p.b_row == 1 || p.k == 1) << "B has no neighbours";
  EDDY_DCHECK(p.y_column == 1 || p.n == 1) << "columns " << p.y_column << " apart";
  for (int64_t unit = first; unit < end; ++unit) {
    const Place place(p, unit / units.per_batch);
    const int64_t row = unit % units.per_batch * units.rows_each;
    cpu::gemm({.m = std::min(units.rows_each, p.m - row),
               .n = p.n,
               .k = p.k,
               .a = args.inputs[0].as<float>() + place.a + row * p.a_row,
               .a_row = is_a_turned ? p.a_column : p.a_row,
               .transpose_a = is_a_turned,
               .b = args.inputs[1].as<float>() + place.b,
               .b_row = is_b_turned ? p.b_column : p.b_row,
               .transpose_b = is_b_turned,
               .c = args.outputs[0].mutable_as<float>() + place.y + row * p.y_row,
               .c_row = p.y_row});
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
