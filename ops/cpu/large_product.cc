#include "ops/cpu/large_product.h"

#include <algorithm>

#include "graph/base/check.h"
#include "ops/cpu/transpose/transpose.h"

namespace eddy::cpu {
namespace {

constexpr int64_t kMinTerms = 8'000'000;
// Fewer rows do not pay for packing B, and a library has faster tiles for sums of few terms.
constexpr int64_t kMinPackedRows = 384, kMinPackedDepth = 256;
// Of tiles that are not packed, about: a library is nearly as fast by so many columns or rows as by
// all, but that it turns A^T over for each part.
constexpr int64_t kPart = 256;

bool is_packed(int64_t m, int64_t n, int64_t k) {
  return m >= kMinPackedRows && k >= kMinPackedDepth && n >= tile_kernels().panel_width();
}

// Parts of about the same size, of whole vectors; an even number of them, as threads are.
int64_t even_part(int64_t count, int64_t about) {
  constexpr int64_t kVector = 16;
  const int64_t parts = (count / about + 1) / 2 * 2;
  return ((count + parts - 1) / parts + kVector - 1) / kVector * kVector;
}

int64_t panels_of(const GemmArgs& args) {
  const int64_t width = tile_kernels().panel_width();
  return (args.n + width - 1) / width;
}

}  // namespace

bool LargeProduct::suits(int64_t m, int64_t n, int64_t k) {
  if (m * n * k < kMinTerms) return false;
  return is_packed(m, n, k) || n >= 2 * kPart || m >= 2 * kPart;
}

LargeProduct::LargeProduct(const GemmArgs& args)
    : args_(args),
      packs_(is_packed(args.m, args.n, args.k)),
      packed_tiles_({args.m, args.k, args.n, tile_kernels().panel_width()}, kFloatProductGrain),
      rows_each_(args.n < 2 * kPart ? even_part(args.m, kPart) : args.m),
      columns_each_(args.n < 2 * kPart ? args.n
                                       : even_part(args.n, args.transpose_a ? 2 * kPart : kPart)) {
  EDDY_DCHECK(suits(args.m, args.n, args.k)) << args.m << " x " << args.n << " x " << args.k;
}

uint32_t LargeProduct::num_tiles() const {
  if (packs_) return packed_tiles_.tiles().count();
  const int64_t rows = (args_.m + rows_each_ - 1) / rows_each_;
  return static_cast<uint32_t>(rows * ((args_.n + columns_each_ - 1) / columns_each_));
}

LargeProduct::Part LargeProduct::part(uint32_t tile) const {
  if (packs_) return packed_tiles_.part(tile);
  const int64_t across = (args_.n + columns_each_ - 1) / columns_each_;
  const int64_t row = tile / across * rows_each_, column = tile % across * columns_each_;
  return {.first_row = row,
          .end_row = std::min(row + rows_each_, args_.m),
          .first_panel = 0,
          .end_panel = 0,
          .first_column = column,
          .end_column = std::min(column + columns_each_, args_.n)};
}

size_t LargeProduct::b_bytes() const {
  return (PackedMatrix::size_bytes(args_.k, args_.n) + 63) / 64 * 64;
}

size_t LargeProduct::shared_bytes() const {
  if (!packs_) return 0;
  const int64_t turned = args_.transpose_a ? args_.m * args_.k : 0;
  return b_bytes() + static_cast<size_t>(turned) * sizeof(float);
}

void LargeProduct::pack(void* shared, uint32_t tile) const {
  if (args_.transpose_a) {
    auto* const turned = reinterpret_cast<float*>(static_cast<std::byte*>(shared) + b_bytes());
    const int64_t row = args_.m * tile / num_tiles(), end_row = args_.m * (tile + 1) / num_tiles();
    transpose_words(args_.a + row, args_.a_row, turned + row * args_.k, args_.k, end_row - row,
                    args_.k);
  }
  const int64_t panels = panels_of(args_), tiles = num_tiles();
  const int64_t first = panels * tile / tiles, end = panels * (tile + 1) / tiles;
  const bool turns = args_.transpose_b;
  auto* const to = static_cast<std::byte*>(shared);
  PackedMatrix::fill_panels(
      {args_.b, args_.k, args_.n, turns ? 1 : args_.b_row, turns ? args_.b_row : 1}, first, end,
      to);
  // What tiles may read behind the last panel.
  if (end == panels && first < end) {
    std::fill_n(to + PackedMatrix::size_bytes(args_.k, args_.n) - 64, 64, std::byte{0});
  }
}

void LargeProduct::run(const void* shared, const Part& part, const float* bias_or_null,
                       bool accumulate) const {
  EDDY_DCHECK(part.first_row <= part.end_row && part.end_row <= args_.m)
      << part.first_row << " to " << part.end_row << " of " << args_.m;
  if (packs_) {
    return run_packed(static_cast<const std::byte*>(shared), part, bias_or_null, accumulate);
  }
  GemmArgs some = args_;
  const int64_t row = part.first_row, column = part.first_column;
  some.m = part.end_row - row;
  some.n = part.end_column - column;
  some.a += row * (args_.transpose_a ? 1 : args_.a_row);
  some.b += column * (args_.transpose_b ? args_.b_row : 1);
  some.c += row * args_.c_row + column;
  some.bias_or_null = bias_or_null == nullptr ? nullptr : bias_or_null + column;
  some.accumulate = accumulate;
  gemm(some);
}

void LargeProduct::run_packed(const std::byte* packed, const Part& part, const float* bias_or_null,
                              bool accumulate) const {
  const bool turned = args_.transpose_a;
  const float* const a = turned ? reinterpret_cast<const float*>(packed + b_bytes()) : args_.a;
  const int64_t a_row = turned ? args_.k : args_.a_row;
  const PackedMatrix b(args_.k, args_.n, PackedMemory(PackedMemory(), packed));
  b.multiply({.m = part.end_row - part.first_row,
              .a = a + part.first_row * a_row,
              .a_row = a_row,
              .c = args_.c + part.first_row * args_.c_row,
              .c_row = args_.c_row,
              .bias_or_null = bias_or_null,
              .accumulate = accumulate,
              .first_panel = part.first_panel,
              .end_panel = part.end_panel});
}

bool may_be_large(const TensorType& rows, const TensorType& b) {
  if (!rows.is_static() || !b.is_static() || rows.dims.rank() == 0) return true;
  const int64_t row = std::max<int64_t>(rows.dims[rows.dims.rank() - 1], 1);
  const int64_t m = rows.dims.count().value_or(0) / row;
  return m * b.dims.count().value_or(0) >= kMinTerms;
}

}  // namespace eddy::cpu
