// MatMul for float, eddy.SplitMatMul, eddy.PackMatrix and eddy.PackedMatMul. A constant B is packed
// when the kernel is bound; everything else is decided in the call, so shapes may change from one
// call to the next at no cost.
#include <algorithm>
#include <optional>

#include "graph/base/check.h"
#include "ops/cpu/batch_units.h"
#include "ops/cpu/cpu_kernels.h"
#include "ops/cpu/elementwise.h"
#include "ops/cpu/families.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/large_product.h"
#include "ops/cpu/product_tiles.h"
#include "ops/cpu/tiles.h"
#include "ops/reference/products/product.h"
#include "ops/schema/products/packed_matrix.h"

namespace eddy {
namespace {

using cpu::GemmArgs;
using cpu::LargeProduct;
using cpu::PackedMatrix;
using cpu::ProductTiles;

struct PackedState : KernelState {
  std::shared_ptr<const PackedMatrix> matrix;
};

int64_t product_of(const int64_t* dims, int count) {
  int64_t product = 1;
  for (int i = 0; i < count; ++i) product *= dims[i];
  return product;
}

int64_t num_rows(const TensorView& a) { return product_of(a.dims, a.rank - 1); }

const PackedMatrix& packed_of(const KernelArgs& args) {
  return *static_cast<const PackedState&>(*args.state).matrix;
}

// A[..., m, k] times one constant B[k, n], all of A's rows as one m.
ProductTiles product_of_packed(const KernelArgs& args) {
  return packed_of(args).product_tiles(num_rows(args.inputs[0]));
}
cpu::Tiles tiles_of_packed(const KernelArgs& args) { return product_of_packed(args).tiles(); }

bool run_packed(const KernelArgs& args, int64_t first, int64_t) {
  const PackedMatrix& b = packed_of(args);
  const TensorView& a = args.inputs[0];
  const int64_t k = b.depth(), n = b.columns();
  EDDY_DCHECK(a.rank > 0 && a.dims[a.rank - 1] == k) << "A does not have " << k << " columns";
  const ProductTiles::Part part = product_of_packed(args).part(first);
  b.multiply({.m = part.end_row - part.first_row,
              .a = a.as<float>() + part.first_row * k,
              .a_row = k,
              .c = args.outputs[0].mutable_as<float>() + part.first_row * n,
              .c_row = n,
              .first_panel = part.first_panel,
              .end_panel = part.end_panel});
  return true;
}
bool run_packed_matmul(const KernelArgs& args) {
  const PackedMatrix& b = packed_of(args);
  b.multiply({.m = num_rows(args.inputs[0]),
              .a = args.inputs[0].as<float>(),
              .a_row = b.depth(),
              .c = args.outputs[0].mutable_as<float>(),
              .c_row = b.columns()});
  return true;
}

cpu::BatchUnits units_of(const BatchedProduct& p) { return {p.num_batches, p.m, p.n, p.k}; }

bool run_batches(const KernelArgs& args, int64_t first, int64_t end) {
  const BatchedProduct p(args.inputs[0], args.inputs[1]);
  const cpu::BatchUnits units = units_of(p);
  EDDY_DCHECK(end <= units.count()) << "units " << first << " to " << end;
  if (p.m == 0 || p.n == 0 || first >= end) return true;
  BatchIterator i(p, first / units.per_batch);
  for (int64_t unit = first; unit < end; ++unit) {
    const int64_t row = unit % units.per_batch * units.rows_each;
    cpu::gemm({.m = std::min(units.rows_each, p.m - row),
               .n = p.n,
               .k = p.k,
               .a = args.inputs[0].as<float>() + (i.a() * p.m + row) * p.k,
               .a_row = p.k,
               .b = args.inputs[1].as<float>() + i.b() * p.k * p.n,
               .b_row = p.n,
               .c = args.outputs[0].mutable_as<float>() + (i.index() * p.m + row) * p.n,
               .c_row = p.n});
    if ((unit + 1) % units.per_batch == 0) i.next();
  }
  return true;
}
cpu::Tiles tiles_of_batches(const BatchedProduct& p) { return units_of(p).tiles(); }
cpu::Tiles tiles_of_batches(const KernelArgs& args) {
  return tiles_of_batches(BatchedProduct(args.inputs[0], args.inputs[1]));
}

// By one B all rows of A are multiplied at once.
GemmArgs args_of_one_b(const KernelArgs& args) {
  const TensorView &a = args.inputs[0], &b = args.inputs[1];
  const int64_t k = a.dims[a.rank - 1], n = b.rank == 2 ? b.dims[1] : 1;
  EDDY_DCHECK(b.rank <= 2 && k == b.dims[0]) << k << " columns of A, " << b.dims[0] << " rows of B";
  return {.m = num_rows(a),
          .n = n,
          .k = k,
          .a = a.as<float>(),
          .a_row = k,
          .b = b.as<float>(),
          .b_row = n,
          .c = args.outputs[0].mutable_as<float>(),
          .c_row = n};
}

std::optional<LargeProduct> large_or_none(const KernelArgs& args) {
  const GemmArgs one = args_of_one_b(args);
  if (!LargeProduct::suits(one.m, one.n, one.k)) return std::nullopt;
  return LargeProduct(one);
}
bool run_large_part(const KernelArgs&, const cpu::LargeCall& call, uint32_t tile) {
  call.product.run(call.shared, call.product.part(tile), nullptr, false);
  return true;
}

bool run_matmul(const KernelArgs& args) {
  if (args.inputs[1].rank > 2) {
    return run_batches(args, 0, tiles_of_batches(args).num_units);
  }
  if (const auto large = large_or_none(args)) {
    return cpu::run_large<run_large_part>(args, *large);
  }
  cpu::gemm(args_of_one_b(args));
  return true;
}

bool is_float(const KernelInit& init, size_t input) {
  return init.inputs[input].tensor.element == ElementType::kFloat;
}

// Whether a batch of products is several tiles, as far as is known.
bool has_tiles_of_batches(const KernelInit& init) {
  const TensorType &a = init.inputs[0].tensor, &b = init.inputs[1].tensor;
  if (!a.is_ranked || !b.is_ranked || a.dims.rank() == 0 || b.dims.rank() < 3) return false;
  if (!a.is_static() || !b.is_static()) {
    return cpu::BatchUnits::kMinTerms * (cpu::likely_count(a) + cpu::likely_count(b)) >
           cpu::BatchUnits::kBatchTerms;
  }
  const BatchedProduct p({nullptr, a.dims.data(), a.dims.rank(), a.element},
                         {nullptr, b.dims.data(), b.dims.rank(), b.element});
  return tiles_of_batches(p).count() > 1;
}

// Whether the product is known to be small, by the rows of A (or of the result).
bool is_one_tile(const TensorType& a, const PackedMatrix& b) {
  if (!a.is_static() || a.dims.rank() == 0) return false;
  return b.product_tiles(product_of(a.dims.begin(), a.dims.rank() - 1)).tiles().count() < 2;
}

Result<BoundKernel> bind_matmul(const KernelInit& init) {
  if (!is_float(init, 0)) return unsupported("the tiled MatMul handles float only");
  BoundKernel kernel;
  kernel.run = run_matmul;
  if (has_tiles_of_batches(init)) cpu::set_tiles<tiles_of_batches, run_batches>(kernel);
  const TensorView& b = init.constants[1];
  const TensorType& b_type = init.inputs[1].tensor;
  if (b.is_omitted() && b_type.is_ranked && b_type.dims.rank() == 2 &&
      cpu::may_be_large(init.inputs[0].tensor, b_type)) {
    cpu::set_large_tiles<large_or_none, run_large_part>(kernel);
  }
  // A vector needs no packing; the dot products read it as it is.
  if (b.is_omitted() || b.rank != 2 || b.dims[1] < 2) return kernel;
  auto state = std::make_unique<PackedState>();
  state->matrix = cpu::pack_matrix(init, b.as<float>(), b.dims[0], b.dims[1], b.dims[1], 1);
  kernel.unread_constants = 1 << 1;
  kernel.run = run_packed_matmul;
  if (!is_one_tile(init.inputs[0].tensor, *state->matrix)) {
    cpu::set_tiles<tiles_of_packed, run_packed>(kernel);
  }
  kernel.state = std::move(state);
  return kernel;
}

// eddy.SplitMatMul by a constant B: each part of the result begins with a panel.
bool run_split_part(const KernelArgs& args, const ProductTiles::Part& part) {
  const PackedMatrix& b = packed_of(args);
  const int64_t k = b.depth(), width = b.tiles().panel_width();
  int64_t column = 0;
  for (uint32_t i = 0; i < args.num_outputs; ++i) {
    const TensorView& y = args.outputs[i];
    const int64_t columns = y.dims[y.rank - 1], panel = column / width;
    EDDY_DCHECK(column % width == 0) << "column " << column << " begins no panel";
    const int64_t first = std::max(panel, part.first_panel);
    const int64_t end = std::min((column + columns + width - 1) / width, part.end_panel);
    column += columns;
    if (first >= end) continue;
    b.multiply({.m = part.end_row - part.first_row,
                .a = args.inputs[0].as<float>() + part.first_row * k,
                .a_row = k,
                .c = y.mutable_as<float>() + part.first_row * columns,
                .c_row = columns,
                .bias_or_null = args.has_input(2) ? args.inputs[2].as<float>() : nullptr,
                .first_panel = first,
                .end_panel = end,
                .c_panel = panel});
  }
  return true;
}
bool run_split(const KernelArgs& args, int64_t first, int64_t) {
  return run_split_part(args, product_of_packed(args).part(first));
}
bool run_split_whole(const KernelArgs& args) {
  const PackedMatrix& b = packed_of(args);
  return run_split_part(args, {0, num_rows(args.inputs[0]), 0, b.num_panels(), 0, b.columns()});
}

Result<BoundKernel> bind_split_matmul(const KernelInit& init) {
  const TensorView& b = init.constants[1];
  if (!is_float(init, 0) || b.is_omitted()) return cpu::no_fast_kernel(init);
  const std::span<const int64_t> sizes = init.attributes.get_ints("split");
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    if (sizes[i] % columns_in_panel() != 0) return cpu::no_fast_kernel(init);
  }
  auto state = std::make_unique<PackedState>();
  state->matrix = cpu::pack_matrix(init, b.as<float>(), b.dims[0], b.dims[1], b.dims[1], 1);
  BoundKernel kernel;
  kernel.unread_constants = 1 << 1;
  kernel.run = run_split_whole;
  if (!is_one_tile(init.inputs[0].tensor, *state->matrix)) {
    cpu::set_tiles<tiles_of_packed, run_split>(kernel);
  }
  kernel.state = std::move(state);
  return kernel;
}

// eddy.PackMatrix: by panels.
struct PackState : KernelState {
  bool is_turned = false;
};

PackedMatrix::Source source_of(const KernelArgs& args) {
  const TensorView& b = args.inputs[0];
  const bool is_turned = static_cast<const PackState&>(*args.state).is_turned;
  const int64_t columns = b.dims[1];
  if (is_turned) return {b.as<float>(), columns, b.dims[0], 1, columns};
  return {b.as<float>(), b.dims[0], columns, columns, 1};
}
cpu::Tiles tiles_of_pack(const KernelArgs& args) {
  const PackedMatrix::Source source = source_of(args);
  const int64_t width = cpu::tile_kernels().panel_width();
  const int64_t num_panels = (source.n + width - 1) / width;
  return cpu::Tiles::of(std::max<int64_t>(num_panels, 1), source.k * width, cpu::kTileElements);
}
bool run_pack(const KernelArgs& args, int64_t first, int64_t end) {
  const PackedMatrix::Source source = source_of(args);
  const TensorView& to = args.outputs[0];
  const int64_t width = cpu::tile_kernels().panel_width();
  const int64_t num_panels = (source.n + width - 1) / width;
  PackedMatrix::fill_panels(source, first, std::min(end, num_panels),
                            static_cast<std::byte*>(to.data));
  if (end < num_panels) return true;
  EDDY_DCHECK(to.count() == num_panels * width * source.k + kPackedSlack)
      << to.count() << " elements for " << num_panels << " panels";
  std::fill_n(to.mutable_as<float>() + num_panels * width * source.k, kPackedSlack, 0.0f);
  return true;
}

bool is_by_these_panels(const KernelInit& init) {
  return is_float(init, 0) && init.attributes.get_int("width", 0) == columns_in_panel();
}

Result<BoundKernel> bind_pack_matrix(const KernelInit& init) {
  if (!is_by_these_panels(init)) return cpu::no_fast_kernel(init);
  auto state = std::make_unique<PackState>();
  state->is_turned = init.attributes.get_int("turned", 0) != 0;
  BoundKernel kernel;
  cpu::set_tiles<tiles_of_pack, run_pack>(kernel);
  kernel.state = std::move(state);
  return kernel;
}

// eddy.PackedMatMul, over what the call is given.
PackedMatrix packed_operand(const KernelArgs& args) {
  const TensorView &a = args.inputs[0], &b = args.inputs[1], &y = args.outputs[0];
  const PackedMemory panels(PackedMemory(), static_cast<const std::byte*>(b.data));
  return {a.dims[a.rank - 1], y.dims[y.rank - 1], panels};
}
bool run_packed_operand(const KernelArgs& args, const PackedMatrix& b,
                        const ProductTiles::Part& part) {
  const int64_t k = b.depth(), n = b.columns();
  b.multiply({.m = part.end_row - part.first_row,
              .a = args.inputs[0].as<float>() + part.first_row * k,
              .a_row = k,
              .c = args.outputs[0].mutable_as<float>() + part.first_row * n,
              .c_row = n,
              .bias_or_null = args.has_input(2) ? args.inputs[2].as<float>() : nullptr,
              .first_panel = part.first_panel,
              .end_panel = part.end_panel});
  return true;
}
cpu::Tiles tiles_of_packed_operand(const KernelArgs& args) {
  return packed_operand(args).product_tiles(num_rows(args.inputs[0])).tiles();
}
bool run_packed_operand_tiles(const KernelArgs& args, int64_t first, int64_t) {
  const PackedMatrix b = packed_operand(args);
  return run_packed_operand(args, b, b.product_tiles(num_rows(args.inputs[0])).part(first));
}
bool run_packed_operand_whole(const KernelArgs& args) {
  const PackedMatrix b = packed_operand(args);
  return run_packed_operand(args, b,
                            {0, num_rows(args.inputs[0]), 0, b.num_panels(), 0, b.columns()});
}

Result<BoundKernel> bind_packed_matmul(const KernelInit& init) {
  if (!is_by_these_panels(init)) return cpu::no_fast_kernel(init);
  BoundKernel kernel;
  kernel.run = run_packed_operand_whole;
  const TensorType &a = init.inputs[0].tensor, &y = init.outputs[0].tensor;
  const int64_t terms = cpu::likely_count(a) * std::max<int64_t>(y.dims[y.dims.rank() - 1], 1);
  if (!a.is_static() || terms > cpu::kFloatProductGrain.terms) {
    cpu::set_tiles<tiles_of_packed_operand, run_packed_operand_tiles>(kernel);
  }
  return kernel;
}

}  // namespace

void add_matmul_cpu(KernelRegistry& registry) {
  add_matmul_words_cpu(registry);
  add_matmul_gemm_cpu(registry);
  registry.add({.op = "MatMul", .bind = bind_matmul, .provider = "tile", .has_tiles = true});
  registry.add({.op = "SplitMatMul",
                .bind = bind_split_matmul,
                .provider = "tile",
                .domain = "eddy",
                .has_tiles = true});
  registry.add({.op = "PackMatrix",
                .bind = bind_pack_matrix,
                .provider = "tile",
                .domain = "eddy",
                .has_tiles = true});
  registry.add({.op = "PackedMatMul",
                .bind = bind_packed_matmul,
                .provider = "tile",
                .domain = "eddy",
                .has_tiles = true});
}

}  // namespace eddy
