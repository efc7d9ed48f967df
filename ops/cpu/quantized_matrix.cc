#include "ops/cpu/quantized_matrix.h"

#include <algorithm>
#include <utility>

#include "graph/base/check.h"

namespace eddy::cpu {
namespace {

// Rows of B that are floats at a time: few rows of A read them from the first-level cache, many
// would pay for it with as many passes over C.
constexpr int64_t kShortBlock = 48;
constexpr int64_t kLongBlock = 1024;

}  // namespace

size_t QuantizedMatrix::size_bytes(int64_t k, int64_t n, const TileKernels& tiles) {
  const int64_t width = tiles.panel_width();
  return static_cast<size_t>((n + width - 1) / width * width * k);
}

void QuantizedMatrix::fill(const Source& source, std::byte* panels, const TileKernels& tiles) {
  const int64_t width = tiles.panel_width(), n = source.n;
  const auto* from = static_cast<const std::byte*>(source.b);
  std::byte* to = panels;
  for (int64_t first = 0; first < n; first += width) {
    const int64_t columns = std::min(width, n - first);
    for (int64_t i = 0; i < source.k; ++i, to += width) {
      std::copy_n(from + i * n + first, columns, to);
      std::fill(to + columns, to + width, std::byte{0});
    }
  }
}

QuantizedMatrix::QuantizedMatrix(const Source& source, const TileKernels& tiles,
                                 const LoopSet& loops)
    : QuantizedMatrix(source,
                      PackedConstants().memory(source.b, "", size_bytes(source.k, source.n, tiles),
                                               [&](std::byte* to) { fill(source, to, tiles); }),
                      tiles, loops) {}

QuantizedMatrix::QuantizedMatrix(const Source& source, PackedMemory panels,
                                 const TileKernels& tiles, const LoopSet& loops)
    : tiles_(tiles),
      loops_(source.is_signed ? loops.int8 : loops.uint8),
      k_(source.k),
      n_(source.n),
      has_columns_(source.has_columns),
      panels_(std::move(panels)) {
  EDDY_CHECK(panels_ != nullptr) << "out of memory packing a constant of " << k_ << " x " << n_;
  const auto padded = static_cast<size_t>(num_panels() * tiles.panel_width());
  const auto count = static_cast<size_t>(has_columns_ ? n_ : 1);
  scales_.assign(source.scale, source.scale + count);
  if (source.zero_or_null != nullptr) {
    const auto* zeros = static_cast<const uint8_t*>(source.zero_or_null);
    zeros_.assign(zeros, zeros + count);
  }
  if (!has_columns_) return;
  scales_.resize(padded, 0.0f);
  if (!zeros_.empty()) zeros_.resize(padded, 0);
}

int64_t QuantizedMatrix::block_rows(int64_t m) const {
  return std::min(k_, m <= tiles_.max_rows ? kShortBlock : kLongBlock);
}

size_t QuantizedMatrix::scratch_bytes(int64_t m) const {
  return static_cast<size_t>(block_rows(m) * tiles_.panel_width()) * sizeof(float);
}

void QuantizedMatrix::dequantize(int64_t panel, int64_t first, int64_t rows, float* to) const {
  EDDY_DCHECK(panel >= 0 && panel < num_panels()) << "panel " << panel << " of " << num_panels();
  EDDY_DCHECK(first >= 0 && first + rows <= k_) << "rows " << first << " to " << first + rows;
  const int64_t width = tiles_.panel_width();
  const std::byte* from = panels_.get() + (panel * k_ + first) * width;
  if (!has_columns_) {
    const void* zero = zeros_.empty() ? nullptr : zeros_.data();
    return loops_.dequantize(from, to, rows * width, scales_.data(), zero, false);
  }
  const float* scales = scales_.data() + panel * width;
  const void* zeros = zeros_.empty() ? nullptr : zeros_.data() + panel * width;
  for (int64_t i = 0; i < rows; ++i) {
    loops_.dequantize(from + i * width, to + i * width, width, scales, zeros, true);
  }
}

void QuantizedMatrix::multiply_block(int64_t m, const float* a, float* c, int64_t panel,
                                     int64_t first, int64_t rows, const float* block) const {
  const int64_t width = tiles_.panel_width();
  TileArgs t;
  t.b = &block;
  t.depth = rows;
  t.a_row = k_;
  t.b_row = width;
  t.c_row = n_;
  t.columns = static_cast<int>(std::min(width, n_ - panel * width));
  const int vectors = (t.columns + tiles_.width - 1) / tiles_.width;
  for (int64_t i = 0; i < m; i += tiles_.max_rows) {
    const int count = static_cast<int>(std::min<int64_t>(tiles_.max_rows, m - i));
    const float* row = a + i * k_ + first;
    t.a = &row;
    t.c = c + i * n_ + panel * width;
    t.add_or_null = first > 0 ? t.c : nullptr;
    tiles_.tile[count - 1][vectors - 1](t);
  }
}

void QuantizedMatrix::multiply(int64_t m, const float* a, float* c, void* scratch) const {
  if (k_ == 0) std::fill_n(c, m * n_, 0.0f);
  auto* block = static_cast<float*>(scratch);
  const int64_t block_rows = this->block_rows(m);
  for (int64_t p = 0; p < num_panels(); ++p) {
    for (int64_t first = 0; first < k_; first += block_rows) {
      const int64_t rows = std::min(block_rows, k_ - first);
      dequantize(p, first, rows, block);
      multiply_block(m, a, c, p, first, rows, block);
    }
  }
}

}  // namespace eddy::cpu
