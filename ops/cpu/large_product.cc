#include "ops/cpu/large_product.h"

#include <algorithm>

#include "graph/base/check.h"
#include "ops/cpu/transpose/transpose.h"

namespace eddy::cpu {
namespace {

// Fewer rows do not pay for packing B, and a library has faster tiles for sums of few terms.
constexpr int64_t kMinTerms = 8'000'000, kMinRows = 384, kMinDepth = 256;

int64_t panels_of(const GemmArgs& args) {
  const int64_t width = tile_kernels().panel_width();
  return (args.n + width - 1) / width;
}

}  // namespace

bool LargeProduct::suits(int64_t m, int64_t n, int64_t k) {
  return m >= kMinRows && k >= kMinDepth && n >= tile_kernels().panel_width() &&
         m * n * k >= kMinTerms;
}

LargeProduct::LargeProduct(const GemmArgs& args)
    : args_(args),
      tiles_({args.m, args.k, args.n, tile_kernels().panel_width()}, kFloatProductGrain) {
  EDDY_DCHECK(suits(args.m, args.n, args.k)) << args.m << " x " << args.n << " x " << args.k;
}

size_t LargeProduct::b_bytes() const {
  return (PackedMatrix::size_bytes(args_.k, args_.n) + 63) / 64 * 64;
}

size_t LargeProduct::shared_bytes() const {
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
  const auto* const packed = static_cast<const std::byte*>(shared);
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
  return m >= kMinRows && m * b.dims.count().value_or(0) >= kMinTerms;
}

}  // namespace eddy::cpu
