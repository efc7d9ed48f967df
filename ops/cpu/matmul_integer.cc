// MatMulInteger, exact on every processor. A constant B is packed when the kernel is bound, any
// other in the call's scratch memory.
#include <algorithm>
#include <optional>
#include <string>

#include "graph/base/check.h"
#include "ops/cpu/byte_matrix.h"
#include "ops/cpu/families.h"
#include "ops/cpu/product_tiles.h"
#include "ops/reference/products/product.h"

namespace eddy {
namespace {

using cpu::ByteMatrix;
using cpu::ProductTiles;
using cpu::ZeroPoints;

// A constant B with two dimensions.
struct PackedBytes {
  PackedMemory memory;
  std::optional<ByteMatrix> matrix;
};

struct ByteState : KernelState {
  std::shared_ptr<const PackedBytes> packed;
};

bool is_signed(const TensorView& view) { return view.element == ElementType::kInt8; }

ZeroPoints zero_points(const KernelArgs& args, uint32_t input) {
  if (!args.has_input(input)) return {};
  const TensorView& view = args.inputs[input];
  return {view.data, is_signed(view), view.count()};
}

const uint8_t* bytes_at(const TensorView& view, int64_t offset) {
  return view.as<uint8_t>() + offset;
}

bool fail_memory(const KernelArgs& args) {
  return args.fail(resource_exhausted("no memory for the rows of MatMulInteger"));
}

// All rows of A times one constant B. Zero points for each row then count rows of one matrix.
bool run_constant(const KernelArgs& args) {
  const ByteMatrix& matrix = *static_cast<const ByteState&>(*args.state).packed->matrix;
  const TensorView& a = args.inputs[0];
  ByteMatrix::Product product{
      .a_is_signed = is_signed(a), .a_zero = zero_points(args, 2), .b_zero = zero_points(args, 3)};
  const int64_t rows = a.rank > 1 ? a.dims[a.rank - 2] : 1;
  EDDY_DCHECK(a.rank > 0 && a.dims[a.rank - 1] == matrix.depth())
      << "A does not have " << matrix.depth() << " columns";
  EDDY_DCHECK(product.a_zero.count <= 1 || product.a_zero.count == rows)
      << product.a_zero.count << " zero points for " << rows << " rows";
  EDDY_DCHECK(product.b_zero.count <= 1 || product.b_zero.count == matrix.columns())
      << product.b_zero.count << " zero points for " << matrix.columns() << " columns";
  int64_t batches = 1;
  for (int i = 0; i + 2 < a.rank; ++i) batches *= a.dims[i];
  const bool at_once = product.a_zero.count <= 1;
  product.m = at_once ? rows * batches : rows;
  product.scratch = args.scratch->reserve(matrix.scratch_bytes(product.m));
  if (product.scratch == nullptr) return fail_memory(args);
  for (int64_t i = 0; i < (at_once ? 1 : batches); ++i) {
    product.a = bytes_at(a, i * rows * matrix.depth());
    product.c = args.outputs[0].mutable_as<int32_t>() + i * rows * matrix.columns();
    matrix.multiply(product);
  }
  return true;
}

// Some microseconds in matrix registers, and some ten of reading B where rows are few.
constexpr int64_t kTileTerms = 8'000'000;
constexpr ProductTiles::Grain kGrain = {
    .terms = kTileTerms, .min_terms = 16, .row_step = 48, .cached_terms = 1'048'576};

// Of rows of A by one zero point for all, or none.
ProductTiles product_of_rows(const KernelArgs& args) {
  const ByteMatrix& matrix = *static_cast<const ByteState&>(*args.state).packed->matrix;
  const int64_t rows = matrix.depth() == 0 ? 0 : args.inputs[0].count() / matrix.depth();
  return {{rows, matrix.depth(), matrix.columns(), matrix.panel_width()}, kGrain};
}

bool run_part(const KernelArgs& args, const ProductTiles::Part& part) {
  const ByteMatrix& matrix = *static_cast<const ByteState&>(*args.state).packed->matrix;
  const TensorView& a = args.inputs[0];
  const int64_t rows = part.end_row - part.first_row;
  ByteMatrix::Product product{
      .m = rows,
      .a = bytes_at(a, part.first_row * matrix.depth()),
      .a_is_signed = is_signed(a),
      .a_zero = zero_points(args, 2),
      .b_zero = zero_points(args, 3),
      .c = args.outputs[0].mutable_as<int32_t>() + part.first_row * matrix.columns(),
      .scratch = args.scratch->reserve(matrix.scratch_bytes(rows)),
      .first_panel = part.first_panel,
      .end_panel = part.end_panel};
  if (product.scratch == nullptr) return fail_memory(args);
  matrix.multiply(product);
  return true;
}

// Where each row has a zero point of its own, the call is one tile.
uint32_t count_tiles(const KernelArgs& args) {
  return zero_points(args, 2).count > 1 ? 1 : product_of_rows(args).tiles().count();
}
bool run_tile(const KernelArgs& args, uint32_t tile) {
  if (zero_points(args, 2).count > 1) return run_constant(args);
  return run_part(args, product_of_rows(args).part(tile));
}

bool run_any(const KernelArgs& args) {
  const TensorView &a = args.inputs[0], &b = args.inputs[1];
  if (args.outputs[0].count() == 0) return true;
  const BatchedProduct p(a, b);
  const cpu::ByteTileKernels& tiles = cpu::byte_tile_kernels();
  const size_t packed_bytes = (ByteMatrix::size_bytes(p.k, p.n, tiles) + 63) / 64 * 64;
  // Rows need at most two bytes a value and three numbers each.
  const size_t row_bytes = static_cast<size_t>(p.m * (2 * p.k + 16)) + 128;
  auto* memory = static_cast<char*>(args.scratch->reserve(packed_bytes + row_bytes));
  if (memory == nullptr) return fail_memory(args);
  ByteMatrix::Product product{.m = p.m,
                              .a_is_signed = is_signed(a),
                              .a_zero = zero_points(args, 2),
                              .b_zero = zero_points(args, 3),
                              .scratch = memory + packed_bytes};
  for (BatchIterator i(p); !i.done(); i.next()) {
    const ByteMatrix matrix =
        ByteMatrix::pack(bytes_at(b, i.b() * p.k * p.n), is_signed(b), p.k, p.n, memory, tiles);
    product.a = bytes_at(a, i.a() * p.m * p.k);
    product.c = args.outputs[0].mutable_as<int32_t>() + i.index() * p.m * p.n;
    matrix.multiply(product);
  }
  return true;
}

// Null when memory is out.
std::shared_ptr<const PackedBytes> pack(const KernelInit& init, const TensorView& b,
                                        const std::string& layout) {
  const int64_t k = b.dims[0], n = b.dims[1];
  const cpu::ByteTileKernels& tiles = cpu::byte_tile_kernels();
  auto packed = std::make_shared<PackedBytes>();
  packed->memory = init.pack_bytes(
      b.data, "byte panels " + layout, ByteMatrix::size_bytes(k, n, tiles),
      [&](std::byte* to) { ByteMatrix::pack(b.data, is_signed(b), k, n, to, tiles); },
      [&](const std::byte* bytes) { return ByteMatrix::may_be_packed(k, n, bytes, tiles); });
  if (packed->memory == nullptr) return nullptr;
  packed->matrix = ByteMatrix::packed(is_signed(b), k, n, packed->memory.get(), tiles);
  return packed;
}

Result<BoundKernel> bind_matmul_integer(const KernelInit& init) {
  BoundKernel kernel;
  kernel.run = run_any;
  const TensorView& b = init.constants[1];
  if (b.is_omitted() || b.rank != 2) return kernel;
  auto state = std::make_unique<ByteState>();
  const std::string layout = std::to_string(b.dims[0]) + "x" + std::to_string(b.dims[1]) +
                             (is_signed(b) ? " signed" : " unsigned");
  state->packed = init.pack<PackedBytes>(b.data, layout, [&] { return pack(init, b, layout); });
  if (!state->packed) return resource_exhausted("no memory for the packed B of MatMulInteger");
  const Dims& a = init.inputs[0].tensor.dims;
  if (init.inputs[0].tensor.is_static() && a.rank() > 0) {
    const bool has_zero =
        init.inputs.size() > 2 && init.inputs[2].tensor.element != ElementType::kUndefined;
    const bool at_once = !has_zero || init.inputs[2].tensor.dims.count() == int64_t{1};
    const int64_t rows = a.rank() > 1 ? a[a.rank() - 2] : 1;
    const int64_t all_rows = a.count().value_or(0) / std::max<int64_t>(b.dims[0], 1);
    kernel.scratch_bytes = state->packed->matrix->scratch_bytes(at_once ? all_rows : rows);
  }
  kernel.state = std::move(state);
  kernel.run = run_constant;
  const int64_t likely_terms = cpu::likely_count(init.outputs[0].tensor) * b.dims[0];
  if (std::max(likely_terms, kGrain.min_terms * b.dims[0] * b.dims[1]) > kTileTerms) {
    kernel.count_tiles = count_tiles;
    kernel.run_tile = run_tile;
  }
  kernel.unread_constants = 1 << 1;
  return kernel;
}

}  // namespace

void add_matmul_integer_cpu(KernelRegistry& registry) {
  registry.add(
      {.op = "MatMulInteger", .bind = bind_matmul_integer, .provider = "tile", .has_tiles = true});
}

}  // namespace eddy
