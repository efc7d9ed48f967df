// The bodies of matrix products and of convolutions as products, for the device and for tests on
// the host.
//
// TileProduct: a block makes 64 × 64 results, a thread 4 × 4 of them; slabs of 16 of the depth pass
// through shared memory. A loader defines what an operand's element is: a strided matrix, bytes
// less their zero points, the input under a convolution's window (implicit GEMM).
// RowProduct: products of at most four rows (a decoder's step), bound by reading B: a block makes
// 16 columns, 16 threads share the depth of each.
//
// Sums of floats of up to 32 bits are held in float, of doubles in double, of integers as words
// that wrap; one order for each shape, so the same bits from run to run.
// Source of the tiling: Volkov and Demmel, "Benchmarking GPUs to Tune Dense Linear Algebra" (2008).
#pragma once

#include "ops/cuda/device/block_inl.h"
#include "ops/cuda/windows/window_inl.h"

namespace eddy::cuda {

template <typename T>
using product_t = std::conditional_t<std::is_floating_point_v<computed_t<T>>, computed_t<T>,
                                     std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>;

// alpha * sum + beta * c + bias. Factors of integers are 1 (others are refused when binding), and
// they have no bias.
template <typename T, typename Sum>
EDDY_HD T finish_product(Sum sum, float alpha, float beta, const T* addend_or_null,
                         const T* bias_or_null) {
  if constexpr (is_real<T>) {
    Sum value = static_cast<Sum>(alpha) * sum;
    if (addend_or_null != nullptr) {
      value += static_cast<Sum>(beta) * static_cast<Sum>(load(*addend_or_null));
    }
    if (bias_or_null != nullptr) value += static_cast<Sum>(load(*bias_or_null));
    return store<T>(static_cast<computed_t<T>>(value));
  } else {
    if (addend_or_null != nullptr) sum += static_cast<Sum>(*addend_or_null);
    return static_cast<T>(sum);
  }
}

// The matrices of batch `index`, in elements from the start.
EDDY_HD void locate_batch(const ProductParams& p, uint64_t index, int64_t& a, int64_t& b,
                          int64_t& out) {
  a = b = out = 0;
  for (int i = p.batch_rank - 1; i >= 0; --i) {
    const auto at = static_cast<int64_t>(index % p.batch_dims[i]);
    index /= p.batch_dims[i];
    a += at * p.a_batch[i];
    b += at * p.b_batch[i];
    out += at * p.out_batch[i];
  }
}

// A product of strided matrices. A product has the number of matrices and their size, and gives
// elements of either side and takes results of matrix `index`.
template <typename T>
struct MatrixProduct {
  using Params = ProductParams;
  using Sum = product_t<T>;
  const Params& p;
  int64_t a_start = 0, b_start = 0, out_start = 0;

  EDDY_HD static uint64_t num_batches(const Params& p) { return p.num_batches; }
  EDDY_HD static int64_t rows(const Params& p) { return p.m; }
  EDDY_HD static int64_t columns(const Params& p) { return p.n; }
  EDDY_HD static int64_t depth(const Params& p) { return p.k; }
  // Whether neighbours along the depth (A), along the columns (B) are neighbours in memory.
  EDDY_HD static bool is_a_by_depth(const Params& p) { return p.a_column == 1; }
  EDDY_HD static bool is_b_by_column(const Params& p) { return p.b_column == 1; }

  EDDY_HD MatrixProduct(const Params& params, uint64_t index) : p(params) {
    locate_batch(p, index, a_start, b_start, out_start);
  }
  EDDY_HD Sum a(int64_t row, int64_t k) const {
    return static_cast<Sum>(
        load(static_cast<const T*>(p.a)[a_start + row * p.a_row + k * p.a_column]));
  }
  EDDY_HD Sum b(int64_t k, int64_t column) const {
    return static_cast<Sum>(
        load(static_cast<const T*>(p.b)[b_start + k * p.b_row + column * p.b_column]));
  }
  EDDY_HD void store_result(int64_t row, int64_t column, Sum sum) const {
    const T* const c = p.c == nullptr ? nullptr
                                      : static_cast<const T*>(p.c) + out_start + row * p.c_row +
                                            column * p.c_column;
    const T* const bias = p.bias == nullptr ? nullptr
                                            : static_cast<const T*>(p.bias) + row * p.bias_row +
                                                  column * p.bias_column;
    static_cast<T*>(p.out)[place_of(row, column)] =
        finish_product<T>(sum, p.alpha, p.beta, c, bias);
  }
  EDDY_HD int64_t place_of(int64_t row, int64_t column) const {
    return out_start + row * p.out_row + column * p.out_column;
  }
};

// The same with results as wide as the sums.
template <typename T>
struct SumProduct : MatrixProduct<T> {
  using Base = MatrixProduct<T>;
  using Sum = typename Base::Sum;
  EDDY_HD SumProduct(const ProductParams& params, uint64_t index) : Base(params, index) {}
  EDDY_HD void store_result(int64_t row, int64_t column, Sum sum) const {
    static_cast<Sum*>(this->p.out)[this->place_of(row, column)] = sum;
  }
};

// MatMulInteger: bytes less their zero points, as 32-bit words.
template <typename A, typename B>
struct ByteProduct : MatrixProduct<int32_t> {
  using Base = MatrixProduct<int32_t>;
  using Sum = uint32_t;
  EDDY_HD ByteProduct(const ProductParams& params, uint64_t index) : Base(params, index) {}

  EDDY_HD Sum a(int64_t row, int64_t k) const {
    const int32_t zero =
        p.c == nullptr ? 0 : static_cast<const A*>(p.c)[row % p.a_zero_rows * p.a_zero_step];
    const int32_t x = static_cast<const A*>(p.a)[a_start + row * p.a_row + k * p.a_column];
    return static_cast<Sum>(x - zero);
  }
  EDDY_HD Sum b(int64_t k, int64_t column) const {
    const int32_t zero =
        p.b_zero == nullptr ? 0 : static_cast<const B*>(p.b_zero)[column * p.b_zero_step];
    const int32_t x = static_cast<const B*>(p.b)[b_start + k * p.b_row + column * p.b_column];
    return static_cast<Sum>(x - zero);
  }
  EDDY_HD void store_result(int64_t row, int64_t column, Sum sum) const {
    static_cast<int32_t*>(p.out)[place_of(row, column)] = static_cast<int32_t>(sum);
  }
};

// eddy.DequantizeMatMul: floats times bytes less their zero points, scaled, by columns.
template <typename B>
struct DequantizeProduct : MatrixProduct<float> {
  using Base = MatrixProduct<float>;
  EDDY_HD DequantizeProduct(const ProductParams& params, uint64_t index) : Base(params, index) {}

  EDDY_HD Sum b(int64_t k, int64_t column) const {
    const int32_t zero =
        p.b_zero == nullptr ? 0 : static_cast<const B*>(p.b_zero)[column * p.b_zero_step];
    const int32_t x = static_cast<const B*>(p.b)[b_start + k * p.b_row + column * p.b_column];
    return static_cast<Sum>(x - zero) * static_cast<const float*>(p.c)[column * p.c_column];
  }
  EDDY_HD void store_result(int64_t row, int64_t column, Sum sum) const {
    static_cast<float*>(p.out)[place_of(row, column)] = sum;
  }
};

// A convolution: filters × (channels · taps) times (channels · taps) × positions. The depth is
// counted as the weights of a filter lie.
template <typename T>
struct ConvProduct {
  using Params = ConvParams;
  using Sum = product_t<T>;
  const Params& p;
  int64_t num_taps, in_size, out_size, group, image;
  ImageSteps x;
  const T* in;  // of the group

  EDDY_HD static uint64_t num_batches(const Params& p) {
    return static_cast<uint64_t>(p.batch * p.groups);
  }
  EDDY_HD static int64_t rows(const Params& p) { return p.filters; }
  EDDY_HD static int64_t columns(const Params& p) { return volume(p.window.out); }
  EDDY_HD static int64_t depth(const Params& p) { return p.channels * volume(p.window.kernel); }
  EDDY_HD static bool is_a_by_depth(const Params&) { return true; }
  EDDY_HD static bool is_b_by_column(const Params& p) { return p.is_channels_last == 0; }

  EDDY_HD ConvProduct(const Params& params, uint64_t index)
      : p(params),
        num_taps(volume(p.window.kernel)),
        in_size(volume(p.window.in)),
        out_size(volume(p.window.out)),
        group(static_cast<int64_t>(index) % p.groups),
        image(static_cast<int64_t>(index) / p.groups),
        x(image_steps(p.is_channels_last != 0, p.groups * p.channels, in_size)),
        in(static_cast<const T*>(p.in) + image * p.groups * p.channels * in_size +
           group * p.channels * x.channel) {}
  EDDY_HD Sum a(int64_t row, int64_t k) const {
    return load(
        static_cast<const T*>(p.weights)[(group * p.filters + row) * p.channels * num_taps + k]);
  }
  EDDY_HD Sum b(int64_t k, int64_t column) const {
    const WindowParams& w = p.window;
    const int64_t inner = p.is_channels_last != 0 ? p.channels : num_taps;
    const int64_t row = k / inner, rest = k - row * inner;
    const int64_t c = p.is_channels_last != 0 ? rest : row;
    int64_t at[kMaxSpatialAxes], tap[kMaxSpatialAxes];
    unravel(column, w.out, at);
    unravel(p.is_channels_last != 0 ? row : rest, w.kernel, tap);
    int64_t index = 0;
    for (int i = 0; i < kMaxSpatialAxes; ++i) {
      const int64_t place = at[i] * w.stride[i] + tap[i] * w.dilation[i] - w.pad[i];
      if (place < 0 || place >= w.in[i]) return 0;
      index = index * w.in[i] + place;
    }
    return load(in[c * x.channel + index * x.position]);
  }
  EDDY_HD void store_result(int64_t row, int64_t column, Sum sum) const {
    const int64_t filter = group * p.filters + row;
    if (p.bias != nullptr) sum += static_cast<Sum>(load(static_cast<const T*>(p.bias)[filter]));
    const int64_t filters = p.groups * p.filters;
    const ImageSteps y = image_steps(p.is_channels_last != 0, filters, out_size);
    const int64_t place = image * filters * out_size + filter * y.channel + column * y.position;
    static_cast<T*>(p.out)[place] =
        store<T>(static_cast<computed_t<T>>(finish_conv<T>(p, sum, place)));
  }
};

template <typename Product>
struct TileProduct {
  using Params = typename Product::Params;
  using Sum = typename Product::Sum;
  static constexpr int kSide = 64;   // of a block's results
  static constexpr int kDepth = 16;  // of a slab
  static constexpr int kOwn = 4;     // a thread's results are kOwn x kOwn
  static constexpr int kLoads = kSide * kDepth / kThreads;
  struct Shared {
    // One column more: neighbours along the depth fall into different banks.
    Sum a[kDepth][kSide + 1];
    Sum b[kDepth][kSide + 1];
  };
  struct Own {
    Sum sums[kOwn][kOwn];
  };

  EDDY_HD static void run(const Params& p, const Block& block, Shared& shared) {
    const int64_t rows = Product::rows(p), columns = Product::columns(p);
    const auto down = static_cast<uint64_t>((rows + kSide - 1) / kSide);
    const auto across = static_cast<uint64_t>((columns + kSide - 1) / kSide);
    const uint64_t num_tiles = Product::num_batches(p) * down * across;
    for (uint64_t tile = block.index; tile < num_tiles; tile += block.count) {
      const Product product(p, tile / (down * across));
      const uint64_t within = tile % (down * across);
      make_tile(product, block, shared, static_cast<int64_t>(within / across) * kSide,
                static_cast<int64_t>(within % across) * kSide);
    }
  }

  EDDY_HD static void make_tile(const Product& product, const Block& block, Shared& shared,
                                int64_t row, int64_t column) {
    PerThread<Own> own;
    block.each([&](int thread) { own[thread] = Own{}; });
    const int64_t depth = Product::depth(product.p);
    for (int64_t k = 0; k < depth; k += kDepth) {
      block.each([&](int thread) { load_slab(product, shared, thread, row, column, k); });
      block.each([&](int thread) { add_slab(shared, thread, own[thread]); });
    }
    block.each([&](int thread) {
      const int64_t rows = Product::rows(product.p), columns = Product::columns(product.p);
      for (int i = 0; i < kOwn; ++i) {
        for (int j = 0; j < kOwn; ++j) {
          const int64_t r = row + thread / 16 + 16 * i, c = column + thread % 16 + 16 * j;
          if (r < rows && c < columns) product.store_result(r, c, own[thread].sums[i][j]);
        }
      }
    });
  }

  EDDY_HD static void load_slab(const Product& product, Shared& shared, int thread, int64_t row,
                                int64_t column, int64_t k) {
    const auto& p = product.p;
    const int64_t rows = Product::rows(p), columns = Product::columns(p);
    const int64_t depth = Product::depth(p);
    const bool a_by_depth = Product::is_a_by_depth(p), b_by_column = Product::is_b_by_column(p);
    EDDY_UNROLL
    for (int i = 0; i < kLoads; ++i) {
      const int item = thread + kThreads * i;
      const int r = a_by_depth ? item / kDepth : item % kSide;
      const int ka = a_by_depth ? item % kDepth : item / kSide;
      const int c = b_by_column ? item % kSide : item / kDepth;
      const int kb = b_by_column ? item / kSide : item % kDepth;
      shared.a[ka][r] = row + r < rows && k + ka < depth ? product.a(row + r, k + ka) : Sum(0);
      shared.b[kb][c] =
          column + c < columns && k + kb < depth ? product.b(k + kb, column + c) : Sum(0);
    }
  }

  EDDY_HD static void add_slab(const Shared& shared, int thread, Own& own) {
    EDDY_UNROLL
    for (int k = 0; k < kDepth; ++k) {
      Sum a[kOwn], b[kOwn];
      EDDY_UNROLL
      for (int i = 0; i < kOwn; ++i) a[i] = shared.a[k][thread / 16 + 16 * i];
      EDDY_UNROLL
      for (int j = 0; j < kOwn; ++j) b[j] = shared.b[k][thread % 16 + 16 * j];
      EDDY_UNROLL
      for (int i = 0; i < kOwn; ++i) {
        EDDY_UNROLL
        for (int j = 0; j < kOwn; ++j) own.sums[i][j] += a[i] * b[j];
      }
    }
  }
};

template <typename Product>
struct RowProduct {
  using Params = typename Product::Params;
  using Sum = typename Product::Sum;
  static constexpr int kMaxRows = kFewRows;
  static constexpr int kColumns = 16;
  static constexpr int kSlices = kThreads / kColumns;  // of the depth
  struct Shared {
    Sum sums[kMaxRows][kSlices][kColumns];
  };

  EDDY_HD static void run(const Params& p, const Block& block, Shared& shared) {
    const int64_t columns = Product::columns(p);
    const auto across = static_cast<uint64_t>((columns + kColumns - 1) / kColumns);
    for (uint64_t item = block.index; item < Product::num_batches(p) * across;
         item += block.count) {
      const Product product(p, item / across);
      const int64_t column = static_cast<int64_t>(item % across) * kColumns;
      block.each([&](int thread) { add_slice(product, shared, thread, column); });
      block.each([&](int thread) {
        const int64_t c = column + thread % kColumns;
        const int row = thread / kColumns;
        if (row >= Product::rows(p) || c >= columns) return;
        Sum sum = 0;
        for (int slice = 0; slice < kSlices; ++slice) {
          sum += shared.sums[row][slice][thread % kColumns];
        }
        product.store_result(row, c, sum);
      });
    }
  }

  // Where B is stored by columns, neighbours along the depth belong to one column.
  EDDY_HD static void add_slice(const Product& product, Shared& shared, int thread,
                                int64_t column) {
    const bool by_column = Product::is_b_by_column(product.p);
    const int own = by_column ? thread % kColumns : thread / kSlices;
    const int slice = by_column ? thread / kColumns : thread % kSlices;
    const int64_t rows = Product::rows(product.p), depth = Product::depth(product.p);
    Sum sums[kMaxRows] = {};
    if (column + own < Product::columns(product.p)) {
      // Reads of several k are under way at once; sums keep their order.
      EDDY_UNROLL_BY_16
      for (int64_t k = slice; k < depth; k += kSlices) {
        const Sum b = product.b(k, column + own);
        EDDY_UNROLL
        for (int r = 0; r < kMaxRows; ++r) {
          if (r < rows) sums[r] += product.a(r, k) * b;
        }
      }
    }
    EDDY_UNROLL
    for (int r = 0; r < kMaxRows; ++r) shared.sums[r][slice][own] = sums[r];
  }
};

template <typename T>
using MatMulTile = TileProduct<MatrixProduct<T>>;
template <typename T>
using MatMulRows = RowProduct<MatrixProduct<T>>;
template <typename A, typename B>
using ByteTile = TileProduct<ByteProduct<A, B>>;
template <typename A, typename B>
using ByteRows = RowProduct<ByteProduct<A, B>>;
template <typename B>
using DequantizeTile = TileProduct<DequantizeProduct<B>>;
template <typename B>
using DequantizeRows = RowProduct<DequantizeProduct<B>>;
template <typename T>
using ConvTile = TileProduct<ConvProduct<T>>;

}  // namespace eddy::cuda
