// The kernels' parameters: plain structs, the same for the device, the host and the tests.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/contract/device_fault.h"

namespace eddy::cuda {

inline constexpr int kMaxAxes = 8;
inline constexpr int kMaxInputs = 3;
inline constexpr uint32_t kBlockThreads = 256;

// An elementwise kernel with broadcasting, or (one input) a strided copy.
template <int kCount>
struct BroadcastParams {
  static constexpr int kInputs = kCount;
  void* out;
  const void* in[kCount];
  uint64_t count;  // of the output's elements, > 0
  // The output's axes, innermost last, merged as far as every input allows; at least one.
  int32_t rank;
  // Every pointer of a contiguous operand is a multiple of 16 bytes: packs may be moved.
  int32_t is_aligned;
  uint64_t dims[kMaxAxes];
  int64_t strides[kCount][kMaxAxes];  // in elements of each input; 0 repeats
  float a;                            // attributes (LeakyRelu's alpha)
  float b;
};
using ElementwiseParams = BroadcastParams<kMaxInputs>;
static_assert(sizeof(ElementwiseParams) == 312, "kernels and their launches agree on this");
// The parameters of a kernel made from a chain of elementwise nodes (fused_inl.h).
inline constexpr int kMaxFusedInputs = 20;
inline constexpr int kMaxFusedOutputs = 4;
struct FusedParams : BroadcastParams<kMaxFusedInputs> {
  void* more_out[kMaxFusedOutputs - 1];  // of the results behind the first
};
static_assert(sizeof(FusedParams) == 1560, "as above; far below the 4 KiB that a launch takes");

// A loop as one kernel (persistent_inl.h).
inline constexpr int kMaxLoopInputs = 48;
inline constexpr int kMaxLoopOutputs = 24;
struct LoopParams {
  const void* in[kMaxLoopInputs];
  void* out[kMaxLoopOutputs];
  uint64_t given;  // bit i: the host's bool i
  int64_t limit;
  const volatile uint32_t* stop;  // not 0: no further iteration begins
  volatile int64_t* progress;     // {iterations, whether the loop is over}
};
static_assert(sizeof(LoopParams) == 608, "as above");

// A kernel that makes one result (a reduction) or one row (Softmax) of each row of the input. The
// kept axes give a row's begin, the reduced ones the places of its elements; innermost last.
struct RowParams {
  void* out;
  const void* in;
  uint64_t count;   // of rows, > 0
  uint64_t length;  // of a row; 0 for reductions of nothing
  int32_t num_kept;
  int32_t num_reduced;
  uint64_t kept_dims[kMaxAxes];
  int64_t kept_strides[kMaxAxes];  // in elements
  uint64_t reduced_dims[kMaxAxes];
  int64_t reduced_strides[kMaxAxes];
  int32_t takes_last;  // ArgMax, ArgMin: of equals
  int32_t reserved[3];
};
static_assert(sizeof(RowParams) == 312, "as above");

// Concat and Split: rows of one tensor and rows of its parts, side by side, in words.
inline constexpr int kMaxParts = 16;
struct JoinParams {
  void* whole;
  void* parts[kMaxParts];
  uint64_t ends[kMaxParts];  // where part i ends in a row of this launch's parts
  uint64_t outer;            // rows
  uint64_t row;              // words of a row of the whole
  uint64_t first;            // where these parts begin in it
  int32_t num_parts;
  int32_t reserved;
};
static_assert(sizeof(JoinParams) == 296, "as above");

// Gather: of [outer, size, inner] words, [outer, num_indices, inner].
struct GatherParams {
  void* out;
  const void* data;
  const void* indices;
  DeviceFault* fault;
  uint64_t count;  // of the output's words
  uint64_t num_indices;
  uint64_t inner;
  int64_t size;
  int32_t axis;
  int32_t has_wide_indices;  // int64, else int32
};
static_assert(sizeof(GatherParams) == 72, "as above");

// GatherElements and ScatterElements: dims are the indices', strides the data's.
struct ElementsParams {
  void* out;
  const void* data;
  const void* updates;
  const void* indices;
  DeviceFault* fault;
  uint64_t count;  // of indices; ScatterElements: of lines along the axis
  int32_t rank;
  int32_t axis;
  int64_t size;  // of the data's axis
  uint64_t dims[kMaxAxes];
  int64_t strides[kMaxAxes];
  int32_t has_wide_indices;
  int32_t reduction;  // Reduction of ops/reference/parts/combine.h
};
static_assert(sizeof(ElementsParams) == 200, "as above");

// GatherND and ScatterND: tuples of `length` indices, each naming a slice of the data.
struct TuplesParams {
  void* out;
  const void* data;
  const void* updates;
  const void* indices;  // int64
  DeviceFault* fault;
  uint64_t num_tuples;
  uint64_t slice;             // elements
  uint64_t tuples_per_batch;  // GatherND
  int64_t batch_stride;       // elements of the data
  int32_t length;
  int32_t first_axis;  // that the first index of a tuple counts
  int64_t sizes[kMaxAxes];
  int64_t strides[kMaxAxes];
  int32_t reduction;
  int32_t reserved;
};
static_assert(sizeof(TuplesParams) == 216, "as above");

// Pad, and Tile as padding that wraps.
struct PadParams {
  void* out;
  const void* in;
  const void* fill;  // one element on the device; null: the bits below
  uint64_t fill_bits;
  uint64_t count;
  int32_t rank;
  int32_t mode;             // PadMode
  uint64_t dims[kMaxAxes];  // of the output
  int64_t sizes[kMaxAxes];  // of the input
  int64_t before[kMaxAxes];
  int64_t strides[kMaxAxes];  // of the input
};
static_assert(sizeof(PadParams) == 304, "as above");

// Trilu, OneHot, Range and fills: what a position alone decides.
struct PositionParams {
  void* out;
  const void* in;
  const void* other;  // Trilu: k (int64) or null; OneHot: [off, on]
  uint64_t count;
  int64_t rows;
  int64_t columns;
  int64_t depth;
  int64_t inner;
  uint64_t start;  // bits: Range's start, a fill's word
  uint64_t delta;
  int32_t is_upper;
  int32_t reserved;
};
static_assert(sizeof(PositionParams) == 88, "as above");

// Windows on up to three spatial axes; fewer are preceded by axes of 1.
inline constexpr int kMaxSpatialAxes = 3;
struct WindowParams {
  int64_t in[kMaxSpatialAxes];
  int64_t out[kMaxSpatialAxes];
  int64_t kernel[kMaxSpatialAxes];
  int64_t stride[kMaxSpatialAxes];
  int64_t dilation[kMaxSpatialAxes];
  int64_t pad[kMaxSpatialAxes];      // before
  int64_t pad_end[kMaxSpatialAxes];  // after
};

struct PoolParams {
  void* out;
  const void* in;
  int64_t* indices;  // MaxPool's second output, or null
  uint64_t count;    // of the output's elements
  int32_t counts_padding;
  int32_t is_column_major;
  int64_t last_channels;  // how many, of images [n, ..., c]; 0: of images [n, c, ...]
  WindowParams window;
};
static_assert(sizeof(PoolParams) == 216, "as above");

// Conv and ConvTranspose. For the transposed one the window lies on the output (window.in) and
// steps once for each element of the input (window.out).
struct ConvParams {
  void* out;
  const void* in;
  const void* weights;
  const void* bias;    // or null
  const void* addend;  // or null; lies as the result
  int64_t batch;
  int64_t groups;
  int64_t channels;  // of the input, in a group
  int64_t filters;   // of the output, in a group
  uint64_t count;    // of the output's elements
  int32_t ends_in_relu;
  int32_t is_channels_last;  // images are [n, ..., c] and weights [filters, taps, channels]
  WindowParams window;
};
static_assert(sizeof(ConvParams) == 256, "as above");

// MatMul, Gemm, MatMulInteger, eddy.DequantizeMatMul, eddy.PermutedMatMul: out[m, n] = alpha * sum
// over k of a * b + beta * c + bias, strided. c lies as the result does where there are batches.
inline constexpr int kMaxBatchAxes = 6;
// Of products that have a kernel of their own (RowProduct).
inline constexpr int kFewRows = 4;
struct ProductParams {
  void* out;
  const void* a;
  const void* b;
  const void* c;  // or null; MatMulInteger: A's zero points; DequantizeMatMul: B's scales
  int64_t m, n, k;
  int64_t a_row, a_column, b_row, b_column, c_row, c_column, out_row, out_column;
  uint64_t num_batches;
  uint64_t batch_dims[kMaxBatchAxes];
  int64_t a_batch[kMaxBatchAxes];  // elements
  int64_t b_batch[kMaxBatchAxes];
  int64_t out_batch[kMaxBatchAxes];
  int32_t batch_rank;
  float alpha;
  float beta;
  int32_t reserved;
  const void* bias;  // or null
  int64_t bias_row, bias_column;
  const void* b_zero;   // of bytes: B's zero points, or null
  int64_t a_zero_step;  // 0: one for all rows
  int64_t a_zero_rows;  // rows of one matrix, where several are one tall matrix
  int64_t b_zero_step;
};
static_assert(sizeof(ProductParams) == 392, "as above");

// LayerNormalization (a row of `length`), InstanceNormalization (a plane of it); scale and bias are
// broadcast to the input by strides (LayerNormalization) or belong to row % channels.
struct NormParams {
  void* out;
  const void* in;
  const void* scale;
  const void* bias;  // or null
  float* mean_out;   // or null
  float* factor_out;
  uint64_t count;  // of rows
  uint64_t length;
  uint64_t channels;
  double epsilon;
  int32_t rank;
  int32_t is_row_alike;  // scale and bias are as each row: they lie [length]
  uint64_t dims[kMaxAxes];
  int64_t strides[2][kMaxAxes];
};
static_assert(sizeof(NormParams) == 280, "as above");

// BatchNormalization with given moments: [outer, channels, inner].
struct ChannelParams {
  void* out;
  const void* in;
  const void* scale;
  const void* bias;
  const void* mean;
  const void* variance;
  uint64_t count;
  uint64_t channels;
  uint64_t inner;
  double epsilon;
};
static_assert(sizeof(ChannelParams) == 80, "as above");

// CumSum and TopK: lines of `length` elements, [outer, length, inner].
struct LineParams {
  void* out;
  const void* in;
  int64_t* indices;  // TopK's second output, or null
  uint64_t num_lines;
  uint64_t length;
  uint64_t inner;
  uint64_t k;
  int32_t is_largest;
  int32_t is_exclusive;
  int32_t is_reverse;
  int32_t reserved;
};
static_assert(sizeof(LineParams) == 72, "as above");

// QuantizeLinear and DequantizeLinear: the scale of element (o, j, i) of [outer, count, inner] is
// o * outer_step + j / block_size * block_step + i * inner_step.
struct QuantizeParams {
  void* out;
  const void* in;
  const void* scale;
  const void* zero;  // or null
  uint64_t count;
  uint64_t axis;
  uint64_t inner;
  int64_t block_size;
  int64_t outer_step;
  int64_t block_step;
  int64_t inner_step;
  // DynamicQuantizeLinear
  float* extremes;  // scratch: two for each block of the first launch
  float* scale_out;
  uint8_t* zero_out;
  uint64_t num_extremes;  // pairs
};
static_assert(sizeof(QuantizeParams) == 120, "as above");

// Resize: sizes and scales of each axis; an axis that is not resized is copied.
struct ResizeAxisParams {
  int64_t in;
  int64_t out;
  int64_t stride;  // of the input
  double scale;
  double roi_begin;
  double roi_end;
  int64_t num_taps;  // 0: not resized
};
struct ResizeParams {
  void* out;
  const void* in;
  uint64_t count;
  int32_t rank;
  // ResizeMode, ResizeCoordinates, ResizeRounding of ops/schema/windows/resize_rules.h.
  int32_t mode;
  int32_t coordinates;
  int32_t rounding;
  int32_t excludes_outside;
  int32_t antialiases;
  double cubic_coefficient;
  double extrapolation;
  ResizeAxisParams axes[kMaxAxes];
};
static_assert(sizeof(ResizeParams) == 512, "as above");

// One step of LSTM, GRU or RNN for all directions and batch items. Numbers are those of
// ops/schema/products/recurrent_rules.h; S is the type sums are held in.
inline constexpr int kMaxGates = 4;
struct ActivationParams {
  int32_t kind;
  float alpha;
  float beta;
};
struct RecurrentParams {
  const void* before;      // S: [direction, x row, gate, hidden], inputs times their weights
  const void* recurrence;  // T: [direction, gate, hidden, hidden]
  const void* bias;        // T: [direction, 2, gate, hidden] or null
  const void* peephole;    // T: [direction, 3, hidden] or null
  const void* initial_h;   // T, or null: zeros
  const void* initial_c;
  void* h;        // S: two of [direction, batch, hidden]; the step's parity selects the one read
  void* c;        // S: [direction, batch, hidden]
  void* update;   // S: GRU's z, likewise
  void* reset_h;  // S: GRU's r * h, likewise
  void* y;        // T, or null
  void* y_h;      // T, or null; written by the last step
  void* y_c;
  const int32_t* lengths;  // or null: all `sequence`
  DeviceFault* fault;
  int64_t sequence, batch, hidden, directions;
  int64_t x_step, x_batch;  // rows of `before`
  int64_t x_rows;
  int64_t y_step, y_batch, y_direction;
  int64_t state_batch, state_direction;
  int64_t step;
  int32_t is_last;
  int32_t first_direction_is_backwards;
  int32_t has_clip;
  float clip;
  int32_t input_forget;
  int32_t linear_before_reset;
  ActivationParams activations[2][3];
};
static_assert(sizeof(RecurrentParams) == 320, "as above");

}  // namespace eddy::cuda
