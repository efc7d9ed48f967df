#include "ops/cpu/gemm.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "graph/base/check.h"
#include "ops/cpu/onednn/sgemm.h"
#include "ops/cpu/transpose/transpose.h"

namespace eddy::cpu {
namespace {

// Above this many multiply-adds oneDNN's blocking pays for its set-up. Measured on a Xeon with
// AVX-512, tiles to oneDNN: 64 x 64 x 256 1.0, 128 x 128 x 64 1.0, 192 x 192 x 64 1.1; with a B
// that is turned over first 0.94, 0.92 and 1.06.
constexpr int64_t kSmallProduct = int64_t{1} << 20;

// Rows of B that a panel keeps in the second-level cache while many rows of A pass.
constexpr int64_t kDepthBlock = 1024;

void fill_without_product(const GemmArgs& g) {
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = 0; j < g.n; ++j) {
      const float start = g.accumulate ? g.c[i * g.c_row + j] : 0.0f;
      g.c[i * g.c_row + j] = start + (g.bias_or_null ? g.bias_or_null[j] : 0.0f);
    }
  }
}

void gemm_by_library(const GemmArgs& g) {
  float beta = g.accumulate ? 1.0f : 0.0f;
  if (g.bias_or_null) {
    GemmArgs start = g;
    start.k = 0;
    fill_without_product(start);
    beta = 1.0f;
  }
  onednn::sgemm({.m = g.m,
                 .n = g.n,
                 .k = g.k,
                 .a = g.a,
                 .a_row = g.a_row,
                 .transpose_a = g.transpose_a,
                 .b = g.b,
                 .b_row = g.b_row,
                 .transpose_b = g.transpose_b,
                 .beta = beta,
                 .c = g.c,
                 .c_row = g.c_row});
}

// What the result begins with, when that is one row: the bias, or what C holds. A product with
// both keeps `is_simple` false.
struct Start {
  const float* row_or_null;
  bool is_simple;
  explicit Start(const GemmArgs& g)
      : row_or_null(g.accumulate ? g.c : g.bias_or_null),
        is_simple(!(g.accumulate && g.bias_or_null)) {}
};

// Products with one contiguous vector: each result is the sum of two vectors' products.
bool run_as_dots(const GemmArgs& g, const TileKernels& tiles) {
  const Start start(g);
  if (!start.is_simple || g.transpose_a) return false;
  const bool is_column = g.n == 1 && (g.transpose_b || g.b_row == 1) && g.c_row == 1;
  if (is_column && !g.bias_or_null) {
    tiles.dot_rows(g.m, g.k, g.a, g.a_row, g.b, start.row_or_null, g.c);
    return true;
  }
  if (g.m != 1 || !g.transpose_b) return false;
  tiles.dot_rows(g.n, g.k, g.b, g.b_row, g.a, start.row_or_null, g.c);
  return true;
}

}  // namespace

namespace {

// Of as few panels as there must be, all of about the same width: tiles of few vectors wait for
// their sums.
int64_t even_panel_width(int64_t n, const TileKernels& tiles) {
  const int64_t vectors = (n + tiles.width - 1) / tiles.width;
  const int64_t panels = (vectors + tiles.max_vectors - 1) / tiles.max_vectors;
  return (vectors + panels - 1) / panels * tiles.width;
}

}  // namespace

bool is_for_tiles(int64_t m, int64_t n, int64_t k) {
  const bool is_small = m * n <= kSmallProduct && m * n * k <= kSmallProduct;
  return is_small || m <= tile_kernels().max_rows;
}

void gemm_by_tiles(const GemmArgs& g, float* turned_or_null) {
  const TileKernels& tiles = tile_kernels();
  const int64_t width = even_panel_width(g.n, tiles);
  EDDY_DCHECK(!g.transpose_b || turned_or_null != nullptr) << "no memory for panels of B";
  const int64_t a_row = g.transpose_a ? 1 : g.a_row;
  TileArgs t;
  t.depth = g.k;
  t.a_row = a_row;
  t.a_step = g.transpose_a ? g.a_row : 1;
  t.b_row = g.transpose_b ? width : g.b_row;
  t.c_row = g.c_row;
  for (int64_t j = 0; j < g.n; j += width) {
    t.columns = static_cast<int>(std::min(width, g.n - j));
    if (g.transpose_b) {
      transpose_words(g.b + j * g.b_row, g.b_row, turned_or_null, width, g.k, t.columns);
    }
    const int vectors = (t.columns + tiles.width - 1) / tiles.width;
    const bool is_edge = t.columns % tiles.width != 0;
    t.bias_or_null = g.bias_or_null ? g.bias_or_null + j : nullptr;
    const float* b = g.transpose_b ? turned_or_null : g.b + j;
    t.b = &b;
    int rows = 0;
    for (int64_t i = 0; i < g.m; i += rows) {
      rows = tiles.next_rows(g.m - i, vectors, t);
      const float* a = g.a + i * a_row;
      t.a = &a;
      t.c = g.c + i * g.c_row + j;
      t.add_or_null = g.accumulate ? t.c : nullptr;
      tiles.run(t, rows, vectors, is_edge);
    }
  }
}

void gemm(const GemmArgs& g) {
  EDDY_DCHECK(g.m >= 0 && g.n >= 0 && g.k >= 0) << g.m << " x " << g.n << " x " << g.k;
  if (g.m == 0 || g.n == 0) return;
  if (g.k == 0) return fill_without_product(g);
  EDDY_DCHECK(g.m == 1 || g.c_row >= g.n) << "rows of C overlap: " << g.c_row << " of " << g.n;
  EDDY_DCHECK(g.b_row >= (g.transpose_b ? g.k : g.n)) << "rows of B overlap: " << g.b_row;
  const TileKernels& tiles = tile_kernels();
  if (run_as_dots(g, tiles)) return;
  if (!g.transpose_b && is_for_tiles(g.m, g.n, g.k)) return gemm_by_tiles(g, nullptr);
  gemm_by_library(g);
}

size_t PackedMatrix::size_bytes(int64_t k, int64_t n, const TileKernels& tiles) {
  const int64_t width = tiles.panel_width();
  // The tiles may read a vector beyond the last row.
  return static_cast<size_t>((n + width - 1) / width * width * k) * sizeof(float) + 64;
}

void PackedMatrix::fill_panels(const Source& source, int64_t first, int64_t end, std::byte* panels,
                               const TileKernels& tiles) {
  const int64_t width = tiles.panel_width();
  for (int64_t panel = first; panel < end; ++panel) {
    float* to = reinterpret_cast<float*>(panels) + panel * width * source.k;
    const float* from = source.b + panel * width * source.column_step;
    const int64_t columns = std::min(width, source.n - panel * width);
    if (columns == width && source.row_step == 1) {
      transpose_words(from, source.column_step, to, width, source.k, width);
      continue;
    }
    for (int64_t i = 0; i < source.k; ++i, to += width, from += source.row_step) {
      if (source.column_step == 1) {
        std::copy_n(from, columns, to);
      } else {
        for (int64_t j = 0; j < columns; ++j) to[j] = from[j * source.column_step];
      }
      std::fill(to + columns, to + width, 0.0f);
    }
  }
}

void PackedMatrix::fill(const Source& source, std::byte* panels, const TileKernels& tiles) {
  const int64_t width = tiles.panel_width(), num_panels = (source.n + width - 1) / width;
  fill_panels(source, 0, num_panels, panels, tiles);
  std::memset(reinterpret_cast<float*>(panels) + num_panels * width * source.k, 0, 64);
}

PackedMatrix::PackedMatrix(const float* b, int64_t k, int64_t n, int64_t row_step,
                           int64_t column_step, const TileKernels& tiles)
    : PackedMatrix(k, n,
                   PackedConstants().memory(b, "", size_bytes(k, n, tiles),
                                            [&](std::byte* to) {
                                              fill({b, k, n, row_step, column_step}, to, tiles);
                                            }),
                   tiles) {}

PackedMatrix::PackedMatrix(int64_t k, int64_t n, PackedMemory panels, const TileKernels& tiles)
    : tiles_(tiles),
      k_(k),
      n_(n),
      panel_size_(k * tiles.panel_width()),
      panels_(std::move(panels)) {
  EDDY_CHECK(k >= 0 && n >= 0) << "a constant of " << k << " x " << n;
  EDDY_CHECK(panels_ != nullptr) << "out of memory packing a constant of " << k << " x " << n;
}

void PackedMatrix::multiply_panel(const Product& product, int64_t index, int64_t first,
                                  int64_t depth, bool accumulate) const {
  const int64_t width = tiles_.panel_width();
  const float* b = panel(index) + first * width;
  EDDY_DCHECK(first >= 0 && first + depth <= k_) << "rows " << first << " to " << first + depth;
  TileArgs t;
  t.b = &b;
  t.depth = depth;
  t.a_row = product.a_row;
  t.a_step = product.a_step;
  t.b_row = width;
  t.c_row = product.c_row;
  t.columns = static_cast<int>(std::min(width, n_ - index * width));
  t.bias_or_null =
      product.bias_or_null && first == 0 ? product.bias_or_null + index * width : nullptr;
  const int vectors = (t.columns + tiles_.width - 1) / tiles_.width;
  // What will be read next lies behind: each strip of rows fetches a part of that. Where there is
  // one strip of few rows, it fetches what it reads itself some pages later.
  // A matrix that the first-level cache holds is fetched by reading it.
  constexpr int64_t kDistance = 2048;
  constexpr int64_t kFirstLevelFloats = 8192;
  const bool is_small = num_panels() * panel_size_ <= kFirstLevelFloats;
  const float* const data_end = panel(0) + (is_small ? 0 : num_panels() * panel_size_);
  const bool is_stream = lines_ahead(product.m, t.columns) * kLineFloats >= t.columns;
  const float* ahead = b + (is_stream ? std::min(kDistance, depth * width) : depth * width);
  const float* const ahead_end = std::min(ahead + depth * width, data_end);
  int rows = 0;
  for (int64_t i = 0; i < product.m; i += rows) {
    rows = tiles_.next_rows(product.m - i, vectors, t);
    const float* a = product.a + i * product.a_row + first * product.a_step;
    t.a = &a;
    t.c = product.c + i * product.c_row + (index - product.c_panel) * width;
    t.add_or_null = accumulate ? t.c : nullptr;
    t.ahead_or_null = ahead < ahead_end && !product.reading.is_cached ? ahead : nullptr;
    ahead += depth * lines_ahead(rows, t.columns) * kLineFloats;
    tiles_.run(t, rows, vectors);
  }
}

void PackedMatrix::multiply(const Product& product) const {
  EDDY_DCHECK(product.m >= 0 && product.first_panel >= product.c_panel)
      << product.m << " rows from panel " << product.first_panel;
  if (product.m == 0) return;
  // One block when the panel is read once anyway.
  const int64_t block = product.m <= tiles_.max_rows ? std::max<int64_t>(k_, 1) : kDepthBlock;
  const int64_t end_panel = std::min(product.end_panel, num_panels());
  EDDY_DCHECK(product.m <= 1 || product.c_row >= std::min(end_panel * tiles_.panel_width(), n_) -
                                                     product.c_panel * tiles_.panel_width())
      << "rows of C overlap: " << product.c_row;
  for (int64_t i = product.first_panel; i < end_panel; ++i) {
    const int64_t p = product.reading.goes_back ? product.first_panel + end_panel - 1 - i : i;
    multiply_panel(product, p, 0, std::min(block, k_), product.accumulate);
    for (int64_t first = block; first < k_; first += block) {
      multiply_panel(product, p, first, std::min(block, k_ - first), true);
    }
  }
}

std::shared_ptr<const PackedMatrix> pack_matrix(const KernelInit& init, const float* b, int64_t k,
                                                int64_t n, int64_t row_step, int64_t column_step) {
  const std::string layout = std::to_string(k) + "x" + std::to_string(n) + " steps " +
                             std::to_string(row_step) + " " + std::to_string(column_step);
  return init.pack<PackedMatrix>(b, layout, [&] {
    const auto fill = [&](std::byte* to) {
      PackedMatrix::fill({b, k, n, row_step, column_step}, to);
    };
    return std::make_shared<const PackedMatrix>(
        k, n, init.pack_bytes(b, "float panels " + layout, PackedMatrix::size_bytes(k, n), fill));
  });
}

}  // namespace eddy::cpu
