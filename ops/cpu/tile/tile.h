// TileKernels: register-tile loops for small dense products, one set for each instruction set.
//
// A tile computes a few rows by a few vectors of C in registers, summed over segments:
//
//   C[i][j] = init + sum over s, k of A_s[i][k] * B_s[k][j]
//
// A is read one element at a time at any strides, so rows of a matrix, shifted windows of a
// signal (convolution: one segment for each kernel tap) and transposed operands need no copy.
// Rows of B are contiguous in j; packed panels are b_row = panel width, zero-padded at the end.
//
// Determinism: the order of the sum depends on the tile's shape only. Different instruction sets
// differ in the last bits (the order in which partial sums meet, fused multiply-add).
// Errors: none; sizes are the caller's to check.
// Threads: pure functions.
#pragma once

#include <cstdint>

namespace eddy::cpu {

inline constexpr int kMaxTileRows = 6;
inline constexpr int kMaxTileVectors = 4;

struct TileArgs {
  // Per segment: where row 0, k 0 of A and of B begins.
  const float* const* a = nullptr;
  const float* const* b = nullptr;
  int64_t num_segments = 1;
  int64_t depth = 0;   // k of each segment
  int64_t a_row = 0;   // elements from one row of A to the next
  int64_t a_step = 1;  // elements from one k to the next
  int64_t b_row = 0;   // elements from one k to the next
  float* c = nullptr;
  int64_t c_row = 0;     // elements from one row of C to the next
  int64_t c_column = 1;  // elements from one column of C to the next
  int64_t c_vector = 0;  // elements from one vector of C to the next; 0: as columns follow
  int columns = 0;       // valid columns: in (width * (vectors - 1), width * vectors]
  const float* bias_or_null = nullptr;  // per column, contiguous; initial value of each row
  // Added besides, laid out as C, which it may be (then, as with `clamp`, c_column is 1).
  const float* add_or_null = nullptr;
  const float* clamp_or_null = nullptr;  // at last: the least value and the greatest
  // What will be read later and is perhaps not in the second-level cache yet: for each k of each
  // segment, lines_ahead() cache lines are fetched from here on.
  const float* ahead_or_null = nullptr;
  int64_t ahead_step = 0;  // elements from one k's lines to the next; 0: they follow each other
};

inline constexpr int64_t kLineFloats = 64 / sizeof(float);

// As many as a row of B has, where the few rows of a tile leave time for that.
constexpr int64_t lines_ahead(int64_t rows, int64_t columns) {
  return rows <= 3 ? (columns + kLineFloats - 1) / kLineFloats : 1;
}

// One LSTM cell with sigmoid gates and tanh for the cell and its output, without peepholes: from
// the gates before activation, in ONNX's order i, o, f, c, `gate_step` values from one to the next,
//   cell = f * cell + i * c;   hidden = o * tanh(cell).
struct LstmCellArgs {
  int64_t count = 0;
  const float* gates = nullptr;
  int64_t gate_step = 0;
  float* cell = nullptr;    // read and written
  float* hidden = nullptr;  // written
};

struct NormalizeArgs {
  int64_t count = 0;
  const float* x = nullptr;
  float mean = 0, factor = 1;
  const float* scale_or_null = nullptr;  // a row of `count`; null: 1
  const float* shift_or_null = nullptr;  // a row of `count`; null: `shift`
  float shift = 0;
  float* y = nullptr;
};

// A row of windows of one vector a position: depthwise convolutions and pools of images whose
// channels lie in blocks of a vector. Rows and columns are of taps; columns, strides and the width
// are counted in positions, a vector each.
struct WindowArgs {
  const float* x = nullptr;  // the row of the image that the first row of taps reads
  int64_t row_step = 0;      // elements from one row of taps to the next
  int64_t num_rows = 0, num_columns = 0;
  int64_t dilation = 1;                    // from one column to the next
  int64_t stride = 1;                      // from one window to the next
  int64_t first_column = 0;                // of the image, under the first window's first tap
  int64_t width = 0;                       // of the image: beside it windows have no taps
  const float* weights_or_null = nullptr;  // of products: a vector for each tap, row by row
  const float* start_or_null = nullptr;    // of products: one vector
  const float* divisors = nullptr;         // of sums: a number for each window
  float* y = nullptr;
  int64_t count = 0;                     // windows
  const float* add_or_null = nullptr;    // of products: laid out as y
  const float* clamp_or_null = nullptr;  // of products: the least value and the greatest
};

// Winograd's transforms for tiles of 6 x 6 inputs, one vector of channels at a time: F(m x m, r x
// r) has m x m outputs of a tile and windows of r x r, m + r = 7.
struct WinogradArgs {
  // Of inputs and weights: those in [first_row, end_row) x [first_column, end_column) of the tile
  // or window are there, the others are 0. Of outputs: as many are written, from the first on.
  int first_row = 0, end_row = 0, first_column = 0, end_column = 0;
  // The tile's first input, the window's first weight, or the first product.
  const float* from = nullptr;
  int64_t from_row = 0;  // elements from one row of these to the next; of products: from one to the
                         // next
  float* to = nullptr;   // the first product; the tile's first output
  int64_t to_row = 0;    // as from_row, the other way
  const float* bias_or_null = nullptr;   // of outputs: one vector
  const float* add_or_null = nullptr;    // of outputs: laid out as they
  const float* clamp_or_null = nullptr;  // of outputs: the least value and the greatest
};

enum class Isa : uint8_t { kBaseline, kAvx2, kAvx512 };

struct TileKernels {
  using Tile = void (*)(const TileArgs&);
  using DotRows = void (*)(int64_t rows, int64_t depth, const float* a, int64_t a_row,
                           const float* x, const float* add_or_null, float* y);
  using Activate = void (*)(float* values, int64_t count);

  Isa isa;
  const char* name;
  int width;        // floats in a vector
  int max_rows;     // of a tile
  int max_vectors;  // of a tile
  int short_rows;   // of a tile of max_vectors that adds up at most kShortDepth terms
  // Tiles of few vectors have registers for more rows; 0 rows: none. [vectors - 1]
  struct Tall {
    int rows;
    Tile tile, tile_edge;
  };
  Tall tall[kMaxTileVectors];
  // [rows - 1][vectors - 1]. `tile` reads whole vectors of B (packed panels); `tile_edge` masks
  // the last vector, for B whose rows end at `columns`.
  Tile tile[kMaxTileRows][kMaxTileVectors];
  Tile tile_edge[kMaxTileRows][kMaxTileVectors];
  // y[i] = (add[i]) + sum over k of a[i * a_row + k] * x[k]; y may be add.
  DotRows dot_rows;
  Activate sigmoid;  // in place; within 4 units in the last place
  Activate tanh;
  void (*lstm_cell)(const LstmCellArgs& args);
  // Sum of x; sum of (x - mean) squared.
  float (*sum)(const float* x, int64_t count);
  float (*sum_squares)(const float* x, float mean, int64_t count);
  // y = (x - mean) * factor * scale + shift.
  void (*normalize)(const NormalizeArgs& args);

  // Of each window: the largest of the taps, or a NaN that is among them; their sum divided; the
  // sum of their products with the weights.
  void (*window_max)(const WindowArgs& args);
  void (*window_sum)(const WindowArgs& args);
  void (*window_product)(const WindowArgs& args);

  // Winograd's transforms by tiles of so many inputs on each axis, which are as many products.
  struct Winograd {
    void (*input)(const WinogradArgs& args);
    // By the width of windows and the number of outputs, less 2; null: there are none.
    void (*weights[4])(const WinogradArgs& args);
    void (*output[4])(const WinogradArgs& args);
  };
  Winograd winograd_4;  // windows of 3
  Winograd winograd_6;  // windows of 2 to 5
  const Winograd& winograd(int64_t inputs) const { return inputs == 4 ? winograd_4 : winograd_6; }

  int panel_width() const { return width * max_vectors; }

  // Up to here a tile that fills the registers loses more between its end and the next one's
  // beginning than it gains in between.
  static constexpr int64_t kShortDepth = 96;

  // The rows of the next tile of a product as `args`, where `left` are left: of a tall one, else an
  // even part of the rest.
  int next_rows(int64_t left, int64_t vectors, const TileArgs& args) const {
    const int rows = tall[vectors - 1].rows;
    if (rows > 0 && left >= rows) return rows;
    const int64_t depth = args.num_segments * args.depth;
    const bool is_short = depth <= kShortDepth && vectors == max_vectors;
    const int64_t most = is_short ? short_rows : max_rows;
    const int64_t parts = (left + most - 1) / most;
    return static_cast<int>((left + parts - 1) / parts);
  }
  void run(const TileArgs& args, int rows, int64_t vectors, bool is_edge = false) const {
    const Tall& t = tall[vectors - 1];
    const auto& set = is_edge ? tile_edge : tile;
    const Tile run = rows <= max_rows ? set[rows - 1][vectors - 1] : is_edge ? t.tile_edge : t.tile;
    run(args);
  }
};

// The set for one instruction set, or null where this processor lacks it.
const TileKernels* tile_kernels_or_null(Isa isa);
// The best set for this processor.
const TileKernels& tile_kernels();

}  // namespace eddy::cpu
