// MatMul and Gemm for float. A constant B is packed when the kernel is bound; everything else is
// decided in the call, so shapes may change from one call to the next at no cost.
#include "graph/base/check.h"
#include "ops/cpu/families.h"
#include "ops/cpu/gemm.h"
#include "ops/reference/product.h"

namespace eddy {
namespace {

using cpu::GemmArgs;
using cpu::PackedMatrix;

struct PackedState : KernelState {
  std::shared_ptr<const PackedMatrix> matrix;
};

int64_t product_of(const int64_t* dims, int count) {
  int64_t product = 1;
  for (int i = 0; i < count; ++i) product *= dims[i];
  return product;
}

// A[..., m, k] times one constant B[k, n]: all rows of A at once.
bool run_packed_matmul(const KernelArgs& args) {
  const PackedMatrix& b = *static_cast<const PackedState&>(*args.state).matrix;
  const TensorView& a = args.inputs[0];
  const int64_t k = b.depth(), n = b.columns();
  EDDY_DCHECK(a.rank > 0 && a.dims[a.rank - 1] == k) << "A does not have " << k << " columns";
  b.multiply({.m = product_of(a.dims, a.rank - 1),
              .a = a.as<float>(),
              .a_row = k,
              .c = args.outputs[0].mutable_as<float>(),
              .c_row = n});
  return true;
}

// Tiles of rows: products of about so many terms each, hundreds of microseconds.
constexpr int64_t kTileTerms = 4'000'000;
constexpr int64_t kRowStep = 24;  // whole register tiles

struct RowTiles {
  RowTiles(int64_t rows, int64_t terms_of_a_row) : num_rows(rows) {
    const int64_t wanted = kTileTerms / std::max<int64_t>(terms_of_a_row, 1);
    rows_each = std::max<int64_t>((wanted + kRowStep - 1) / kRowStep * kRowStep, kRowStep);
  }
  uint32_t count() const { return static_cast<uint32_t>((num_rows + rows_each - 1) / rows_each); }
  int64_t first(uint32_t tile) const { return tile * rows_each; }
  int64_t rows_of(uint32_t tile) const { return std::min(rows_each, num_rows - first(tile)); }

  int64_t num_rows;
  int64_t rows_each;
};

RowTiles tiles_of(const KernelArgs& args) {
  const PackedMatrix& b = *static_cast<const PackedState&>(*args.state).matrix;
  const TensorView& a = args.inputs[0];
  return {product_of(a.dims, a.rank - 1), b.depth() * b.columns()};
}
uint32_t count_packed_tiles(const KernelArgs& args) { return tiles_of(args).count(); }
bool run_packed_tile(const KernelArgs& args, uint32_t tile) {
  const PackedMatrix& b = *static_cast<const PackedState&>(*args.state).matrix;
  const RowTiles tiles = tiles_of(args);
  EDDY_DCHECK(tile < tiles.count()) << "tile " << tile << " of " << tiles.count();
  const int64_t first = tiles.first(tile);
  b.multiply({.m = tiles.rows_of(tile),
              .a = args.inputs[0].as<float>() + first * b.depth(),
              .a_row = b.depth(),
              .c = args.outputs[0].mutable_as<float>() + first * b.columns(),
              .c_row = b.columns()});
  return true;
}
// All tiles in order: which loops a product takes depends on its rows.
bool run_packed_tiles(const KernelArgs& args) {
  const uint32_t num_tiles = count_packed_tiles(args);
  if (num_tiles < 2) return run_packed_matmul(args);
  for (uint32_t tile = 0; tile < num_tiles; ++tile) run_packed_tile(args, tile);
  return true;
}

bool run_matmul(const KernelArgs& args) {
  const TensorView &a = args.inputs[0], &b = args.inputs[1];
  const float* a_data = a.as<float>();
  const float* b_data = b.as<float>();
  float* c_data = args.outputs[0].mutable_as<float>();
  if (b.rank <= 2) {  // one B: all rows of A at once
    const int64_t k = a.dims[a.rank - 1], n = b.rank == 2 ? b.dims[1] : 1;
    EDDY_DCHECK(k == b.dims[0]) << k << " columns of A, " << b.dims[0] << " rows of B";
    cpu::gemm({.m = product_of(a.dims, a.rank - 1),
               .n = n,
               .k = k,
               .a = a_data,
               .a_row = k,
               .b = b_data,
               .b_row = n,
               .c = c_data,
               .c_row = n});
    return true;
  }
  const BatchedProduct p(a, b);
  if (p.m == 0 || p.n == 0) return true;
  for (BatchIterator i(p); !i.done(); i.next()) {
    cpu::gemm({.m = p.m,
               .n = p.n,
               .k = p.k,
               .a = a_data + i.a() * p.m * p.k,
               .a_row = p.k,
               .b = b_data + i.b() * p.k * p.n,
               .b_row = p.n,
               .c = c_data + i.index() * p.m * p.n,
               .c_row = p.n});
  }
  return true;
}

bool is_float(const KernelInit& init, size_t input) {
  return init.inputs[input].tensor.element == ElementType::kFloat;
}

// As far as known now.
bool is_one_tile(const KernelInit& init) {
  const TensorType& a = init.inputs[0].tensor;
  const TensorView& b = init.constants[1];
  if (!a.is_static() || a.dims.rank() == 0) return false;
  const int64_t rows = product_of(a.dims.begin(), a.dims.rank() - 1);
  return RowTiles(rows, b.dims[0] * b.dims[1]).count() < 2;
}

Result<BoundKernel> bind_matmul(const KernelInit& init) {
  if (!is_float(init, 0)) return unsupported("the tiled MatMul handles float only");
  BoundKernel kernel;
  kernel.run = run_matmul;
  const TensorView& b = init.constants[1];
  // A vector needs no packing; the dot products read it as it is.
  if (b.is_omitted() || b.rank != 2 || b.dims[1] < 2) return kernel;
  auto state = std::make_unique<PackedState>();
  state->matrix = cpu::pack_matrix(init, b.as<float>(), b.dims[0], b.dims[1], b.dims[1], 1);
  kernel.state = std::move(state);
  kernel.unread_constants = 1 << 1;
  kernel.run = run_packed_matmul;
  if (is_one_tile(init)) return kernel;
  kernel.run = run_packed_tiles;
  kernel.count_tiles = count_packed_tiles;
  kernel.run_tile = run_packed_tile;
  return kernel;
}

struct GemmState : KernelState {
  float alpha = 1, beta = 1;
  bool transpose_a = false, transpose_b = false;
  std::shared_ptr<const PackedMatrix> b_or_null;
};

// C of a Gemm, broadcast to the result; no data where it is omitted or beta is 0.
struct Addend {
  const float* data = nullptr;
  int64_t row_step = 0, column_step = 0;
  // A full row of values, the same for each row of the result.
  bool is_row = false;

  Addend(const KernelArgs& args, float beta, int64_t columns) {
    if (!args.has_input(2) || beta == 0) return;
    const TensorView& c = args.inputs[2];
    const int64_t c_columns = c.rank > 0 ? c.dims[c.rank - 1] : 1;
    const int64_t c_rows = c.rank > 1 ? c.dims[c.rank - 2] : 1;
    EDDY_DCHECK(c.rank <= 2 && (c_columns == 1 || c_columns == columns))
        << "C has " << c_columns << " columns, the result " << columns;
    data = c.as<float>();
    row_step = c_rows == 1 ? 0 : c_columns;
    column_step = c_columns == 1 ? 0 : 1;
    is_row = row_step == 0 && c_columns == columns;
  }
  float at(int64_t i, int64_t j) const { return data[i * row_step + j * column_step]; }
};

void multiply(const GemmState& s, const KernelArgs& args, const float* bias_or_null,
              bool accumulate) {
  const TensorView &a = args.inputs[0], &y = args.outputs[0];
  const int64_t m = y.dims[0], n = y.dims[1], k = a.dims[s.transpose_a ? 0 : 1];
  EDDY_DCHECK(a.rank == 2 && y.rank == 2 && a.dims[s.transpose_a ? 1 : 0] == m)
      << "A does not have " << m << " rows";
  float* out = y.mutable_as<float>();
  if (s.b_or_null) {
    EDDY_DCHECK(s.b_or_null->depth() == k && s.b_or_null->columns() == n)
        << "B was packed for another product";
    s.b_or_null->multiply({.m = m,
                           .a = a.as<float>(),
                           .a_row = s.transpose_a ? 1 : k,
                           .a_step = s.transpose_a ? m : 1,
                           .c = out,
                           .c_row = n,
                           .bias_or_null = bias_or_null,
                           .accumulate = accumulate});
    return;
  }
  cpu::gemm({.m = m,
             .n = n,
             .k = k,
             .a = a.as<float>(),
             .a_row = s.transpose_a ? m : k,
             .transpose_a = s.transpose_a,
             .b = args.inputs[1].as<float>(),
             .b_row = s.transpose_b ? k : n,
             .transpose_b = s.transpose_b,
             .c = out,
             .c_row = n,
             .bias_or_null = bias_or_null,
             .accumulate = accumulate});
}

// y = alpha * A * B + beta * C. Without alpha, C is where the sums begin: as a bias where it is a
// row, else as what the result holds before.
bool run_gemm(const KernelArgs& args) {
  const auto& s = static_cast<const GemmState&>(*args.state);
  const TensorView& y = args.outputs[0];
  const int64_t m = y.dims[0], n = y.dims[1];
  const Addend c(args, s.beta, n);
  float* out = y.mutable_as<float>();
  if (s.alpha == 1) {
    const bool is_bias = c.data && c.is_row && s.beta == 1;
    const bool accumulate = c.data && !is_bias;
    for (int64_t i = 0; accumulate && i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) out[i * n + j] = s.beta * c.at(i, j);
    }
    multiply(s, args, is_bias ? c.data : nullptr, accumulate);
    return true;
  }
  multiply(s, args, nullptr, false);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      out[i * n + j] = s.alpha * out[i * n + j] + (c.data ? s.beta * c.at(i, j) : 0.0f);
    }
  }
  return true;
}

Result<BoundKernel> bind_gemm(const KernelInit& init) {
  if (!is_float(init, 0)) return unsupported("the tiled Gemm handles float only");
  auto state = std::make_unique<GemmState>();
  state->alpha = init.attributes.get_float("alpha", 1.0f);
  state->beta = init.attributes.get_float("beta", 1.0f);
  state->transpose_a = init.attributes.get_int("transA", 0) != 0;
  state->transpose_b = init.attributes.get_int("transB", 0) != 0;
  const TensorView& b = init.constants[1];
  if (!b.is_omitted()) {
    EDDY_CHECK(b.rank == 2) << "B of Gemm has " << b.rank << " dimensions";
    const int64_t rows = b.dims[0], columns = b.dims[1];
    const bool t = state->transpose_b;
    state->b_or_null = cpu::pack_matrix(init, b.as<float>(), t ? columns : rows, t ? rows : columns,
                                        t ? 1 : columns, t ? columns : 1);
  }
  BoundKernel kernel;
  if (state->b_or_null) kernel.unread_constants = 1 << 1;
  kernel.run = run_gemm;
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_matmul_cpu(KernelRegistry& registry) {
  add_matmul_words_cpu(registry);
  registry.add({.op = "MatMul", .bind = bind_matmul, .provider = "tile"});
  registry.add({.op = "Gemm", .bind = bind_gemm, .provider = "tile"});
}

}  // namespace eddy
