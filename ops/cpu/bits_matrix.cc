#include "ops/cpu/bits_matrix.h"

#include <algorithm>
#include <string>

#include "graph/base/check.h"
#include "ops/cpu/packing/pack_bytes.h"

namespace eddy::cpu {
namespace {

// Rows of B that are floats at a time, multiples of the smallest block: few rows of A read them
// from the first-level cache, many would pay for it with as many passes over C.
constexpr int64_t kShortStrip = 48;
constexpr int64_t kLongStrip = 1024;

}  // namespace

BitsMatrix::BitsMatrix(const Source& source, const TileKernels& tiles,
                       const KernelInit* init_or_null)
    : tiles_(tiles),
      loops_(unpack_loops(tiles.isa).of(source.bits)),
      k_(source.k),
      n_(source.n),
      block_(source.block),
      bits_(source.bits) {
  EDDY_CHECK(bits_ == 2 || bits_ == 4 || bits_ == 8) << bits_ << " bits";
  const auto values = static_cast<size_t>(n_ * num_blocks());
  EDDY_CHECK(source.scales.size() == values && source.zeros.size() == values)
      << source.scales.size() << " scales of " << values;
  const int64_t width = panel_width();
  const auto padded = static_cast<size_t>(num_panels() * width);
  const std::string layout = "bits panels " + std::to_string(k_) + "x" + std::to_string(n_) +
                             " of " + std::to_string(bits_) + " in " + std::to_string(block_);
  packed_ = pack_bytes(init_or_null, source.b, layout, padded * static_cast<size_t>(packed_rows()),
                       [&](std::byte* to) { fill(source, reinterpret_cast<uint8_t*>(to)); });
  EDDY_CHECK(packed_ != nullptr) << "out of memory packing a constant of " << k_ << " x " << n_;
  scales_.resize(padded * static_cast<size_t>(num_blocks()));
  zeros_.resize(padded * static_cast<size_t>(num_blocks()));
  for (int64_t j = 0; j < n_; ++j) {
    for (int64_t block = 0; block < num_blocks(); ++block) {
      const auto at = static_cast<size_t>((j / width * num_blocks() + block) * width + j % width);
      const auto of = static_cast<size_t>(j * num_blocks() + block);
      scales_[at] = source.scales[of];
      zeros_[at] = source.zeros[of];
    }
  }
}

void BitsMatrix::fill(const Source& source, uint8_t* packed) const {
  const int64_t width = panel_width();
  std::fill_n(packed, num_panels() * packed_rows() * width, uint8_t{0});
  const auto flipped = [&source](uint8_t byte) { return static_cast<uint8_t>(byte ^ source.flip); };
  if (source.column_step == 1) {
    for (int64_t first = 0; first < n_; first += width, packed += packed_rows() * width) {
      const int64_t columns = std::min(width, n_ - first);
      for (int64_t row = 0; row < packed_rows(); ++row) {
        const uint8_t* const from = source.b + row * source.row_step + first;
        std::transform(from, from + columns, packed + row * width, flipped);
      }
    }
    return;
  }
  for (int64_t j = 0; j < n_; ++j) {
    const uint8_t* from = source.b + j * source.column_step;
    uint8_t* to = packed + j / width * packed_rows() * width + j % width;
    for (int64_t row = 0; row < packed_rows(); ++row) {
      to[row * width] = flipped(from[row * source.row_step]);
    }
  }
}

int64_t BitsMatrix::columns_of(int64_t panel) const {
  EDDY_DCHECK(panel >= 0 && panel < num_panels()) << "panel " << panel << " of " << num_panels();
  return std::min(panel_width(), n_ - panel * panel_width());
}

int64_t BitsMatrix::strip_rows(int64_t m) const {
  return m <= tiles_.max_rows ? kShortStrip : kLongStrip;
}

size_t BitsMatrix::scratch_bytes(int64_t m) const {
  return static_cast<size_t>(strip_rows(m) * panel_width()) * sizeof(float);
}

// `first` begins a byte. Where k ends within one, its other rows become floats that nobody reads.
void BitsMatrix::dequantize(int64_t panel, int64_t first, int64_t rows, float* to) const {
  EDDY_DCHECK(first % rows_each() == 0 && first + rows <= k_) << first << " and " << rows;
  const int64_t width = panel_width(), end = first + rows;
  const uint8_t* from = packed() + panel * packed_rows() * width;
  for (int64_t i = first; i < end;) {
    const int64_t block = panel * num_blocks() + i / block_;
    const int64_t last = std::min(end, (i / block_ + 1) * block_);
    const int64_t num_bytes = (last - i + rows_each() - 1) / rows_each();
    loops_.unpack(from + i / rows_each() * width, num_bytes, width, scales_.data() + block * width,
                  zeros_.data() + block * width, to + (i - first) * width);
    i = last;
  }
}

void BitsMatrix::multiply_strip(int64_t m, const float* a, float* c, int64_t c_row, int64_t first,
                                int64_t rows, int64_t columns, const float* strip,
                                const float* bias_or_null) const {
  TileArgs t;
  t.b = &strip;
  t.depth = rows;
  t.a_row = k_;
  t.b_row = panel_width();
  t.c_row = c_row;
  t.columns = static_cast<int>(columns);
  t.bias_or_null = first == 0 ? bias_or_null : nullptr;
  const int vectors = (t.columns + tiles_.width - 1) / tiles_.width;
  for (int64_t i = 0; i < m; i += tiles_.max_rows) {
    const int count = static_cast<int>(std::min<int64_t>(tiles_.max_rows, m - i));
    const float* row = a + i * k_ + first;
    t.a = &row;
    t.c = c + i * c_row;
    t.add_or_null = first > 0 ? t.c : nullptr;
    tiles_.tile[count - 1][vectors - 1](t);
  }
}

// A few rows of A: weights are used as soon as they are floats.
void BitsMatrix::multiply_unpacked(int64_t m, const float* a, int64_t panel,
                                   const float* bias_or_null, float* c, int64_t c_row,
                                   float* sums) const {
  EDDY_DCHECK(m > 0 && m * panel_width() <= strip_rows(m) * panel_width()) << m << " rows";
  const int64_t width = panel_width(), columns = columns_of(panel);
  for (int64_t i = 0; i < m; ++i) {
    float* row = sums + i * width;
    const int64_t given = bias_or_null == nullptr ? 0 : columns;
    std::copy_n(bias_or_null, given, row);
    std::fill(row + given, row + width, 0.0f);
  }
  loops_.product[m - 1]({.in = packed() + panel * packed_rows() * width,
                         .width = width,
                         .a = a,
                         .a_row = k_,
                         .depth = k_,
                         .block = block_,
                         .scale = scales_.data() + panel * num_blocks() * width,
                         .zero = zeros_.data() + panel * num_blocks() * width,
                         .c = sums});
  for (int64_t i = 0; i < m; ++i) std::copy_n(sums + i * width, columns, c + i * c_row);
}

void BitsMatrix::multiply(int64_t m, const float* a, int64_t panel, const float* bias_or_null,
                          float* c, int64_t c_row, void* scratch) const {
  const int64_t width = panel_width(), columns = columns_of(panel), most = strip_rows(m);
  auto* strip = static_cast<float*>(scratch);
  const float* bias = bias_or_null == nullptr ? nullptr : bias_or_null + panel * width;
  if (k_ == 0) {
    for (int64_t i = 0; i < m; ++i, c += c_row) {
      std::fill_n(c, columns, 0.0f);
      if (bias != nullptr) std::copy_n(bias, columns, c);
    }
    return;
  }
  if (m <= kMaxProductRows) {
    return multiply_unpacked(m, a, panel, bias, c, c_row, strip);
  }
  for (int64_t first = 0; first < k_; first += most) {
    const int64_t rows = std::min(most, k_ - first);
    dequantize(panel, first, rows, strip);
    multiply_strip(m, a, c, c_row, first, rows, columns, strip, bias);
  }
}

}  // namespace eddy::cpu
