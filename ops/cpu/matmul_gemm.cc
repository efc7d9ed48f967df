// Gemm for float: by a constant B that is packed when the kernel is bound, by one that may change
// in two steps where it is large, else at once.
#include <algorithm>
#include <optional>

#include "graph/base/check.h"
#include "ops/cpu/cpu_kernels.h"
#include "ops/cpu/families.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/large_product.h"
#include "ops/cpu/product_tiles.h"
#include "ops/cpu/tiles.h"

namespace eddy {
namespace {

using cpu::GemmArgs;
using cpu::LargeCall;
using cpu::LargeProduct;
using cpu::PackedMatrix;
using cpu::ProductTiles;

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

using Part = ProductTiles::Part;

// All of A times B, without what is added.
GemmArgs args_of(const KernelArgs& args) {
  const auto& s = static_cast<const GemmState&>(*args.state);
  const TensorView &a = args.inputs[0], &b = args.inputs[1], &y = args.outputs[0];
  const int64_t m = y.dims[0], n = y.dims[1], k = a.dims[s.transpose_a ? 0 : 1];
  EDDY_DCHECK(a.rank == 2 && y.rank == 2 && a.dims[s.transpose_a ? 1 : 0] == m)
      << "A does not have " << m << " rows";
  return {.m = m,
          .n = n,
          .k = k,
          .a = a.as<float>(),
          .a_row = s.transpose_a ? m : k,
          .transpose_a = s.transpose_a,
          .b = b.as<float>(),
          .b_row = s.transpose_b ? k : n,
          .transpose_b = s.transpose_b,
          .c = y.mutable_as<float>(),
          .c_row = n};
}

// A part of the result: where the call is a large one, of that, else by B as it was packed, or all.
void multiply(const KernelArgs& args, const Part& part, const LargeCall* large_or_null,
              const float* bias_or_null, bool accumulate) {
  const auto& s = static_cast<const GemmState&>(*args.state);
  if (large_or_null != nullptr) {
    return large_or_null->product.run(large_or_null->shared, part, bias_or_null, accumulate);
  }
  GemmArgs all = args_of(args);
  EDDY_DCHECK(part.first_row >= 0 && part.end_row <= all.m)
      << part.first_row << " to " << part.end_row << " of " << all.m;
  if (s.b_or_null) {
    EDDY_DCHECK(s.b_or_null->depth() == all.k && s.b_or_null->columns() == all.n)
        << "B was packed for another product";
    s.b_or_null->multiply({.m = part.end_row - part.first_row,
                           .a = all.a + part.first_row * (s.transpose_a ? 1 : all.k),
                           .a_row = s.transpose_a ? 1 : all.k,
                           .a_step = s.transpose_a ? all.m : 1,
                           .c = all.c + part.first_row * all.n,
                           .c_row = all.n,
                           .bias_or_null = bias_or_null,
                           .accumulate = accumulate,
                           .first_panel = part.first_panel,
                           .end_panel = part.end_panel});
    return;
  }
  all.bias_or_null = bias_or_null;
  all.accumulate = accumulate;
  cpu::gemm(all);
}

// y = alpha * A * B + beta * C. Without alpha, C is where the sums begin: as a bias where it is a
// row, else as what the result holds before.
bool run_part(const KernelArgs& args, const Part& part, const LargeCall* large_or_null) {
  const auto& s = static_cast<const GemmState&>(*args.state);
  const TensorView& y = args.outputs[0];
  const int64_t n = y.dims[1];
  const Addend c(args, s.beta, n);
  float* out = y.mutable_as<float>();
  if (s.alpha == 1) {
    const bool is_bias = c.data && c.is_row && s.beta == 1;
    const bool accumulate = c.data && !is_bias;
    for (int64_t i = part.first_row; accumulate && i < part.end_row; ++i) {
      for (int64_t j = part.first_column; j < part.end_column; ++j) {
        out[i * n + j] = s.beta * c.at(i, j);
      }
    }
    multiply(args, part, large_or_null, is_bias ? c.data : nullptr, accumulate);
    return true;
  }
  multiply(args, part, large_or_null, nullptr, false);
  for (int64_t i = part.first_row; i < part.end_row; ++i) {
    for (int64_t j = part.first_column; j < part.end_column; ++j) {
      out[i * n + j] = s.alpha * out[i * n + j] + (c.data ? s.beta * c.at(i, j) : 0.0f);
    }
  }
  return true;
}

// By a B that may change.
std::optional<LargeProduct> large_or_none(const KernelArgs& args) {
  const GemmArgs all = args_of(args);
  if (!LargeProduct::suits(all.m, all.n, all.k)) return std::nullopt;
  return LargeProduct(all);
}
bool run_large_part(const KernelArgs& args, const LargeCall& call, uint32_t tile) {
  return run_part(args, call.product.part(tile), &call);
}

bool run_gemm(const KernelArgs& args) {
  if (static_cast<const GemmState&>(*args.state).b_or_null == nullptr) {
    if (const auto large = large_or_none(args)) {
      return cpu::run_large<run_large_part>(args, *large);
    }
  }
  const TensorView& y = args.outputs[0];
  return run_part(args, {0, y.dims[0], 0, INT64_MAX, 0, y.dims[1]}, nullptr);
}

ProductTiles product_of_packed(const KernelArgs& args) {
  return static_cast<const GemmState&>(*args.state)
      .b_or_null->product_tiles(args.outputs[0].dims[0]);
}
cpu::Tiles tiles_of_packed(const KernelArgs& args) { return product_of_packed(args).tiles(); }
bool run_packed(const KernelArgs& args, int64_t first, int64_t) {
  return run_part(args, product_of_packed(args).part(first), nullptr);
}

Result<BoundKernel> bind_gemm(const KernelInit& init) {
  if (init.inputs[0].tensor.element != ElementType::kFloat)
    return unsupported("the tiled Gemm handles float only");
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
  if (state->b_or_null) {
    const TensorType& y = init.outputs[0].tensor;
    const bool is_small =
        y.is_static() && state->b_or_null->product_tiles(y.dims[0]).tiles().count() < 2;
    if (!is_small) cpu::set_tiles<tiles_of_packed, run_packed>(kernel);
  } else if (cpu::may_be_large(init.outputs[0].tensor, init.inputs[1].tensor)) {
    cpu::set_large_tiles<large_or_none, run_large_part>(kernel);
  }
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_matmul_gemm_cpu(KernelRegistry& registry) {
  registry.add({.op = "Gemm", .bind = bind_gemm, .provider = "tile", .has_tiles = true});
}

}  // namespace eddy
