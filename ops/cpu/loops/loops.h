// LoopSet: contiguous inner loops of elementwise, reduction and softmax kernels, compiled once
// for each instruction set and picked at run time.
//
// A loop is the part worth vectorising; what surrounds it (broadcasting, axes, checks) is compiled
// once and calls it. Elements are passed untyped: the caller has looked the loop up by type.
// An output may be exactly one of the inputs; any other overlap is not allowed.
//
// Determinism: a result depends on its own element only (elementwise loops, whatever its place in
// the vector) or on the count (sums, whose partial sums stand in a fixed order). Instruction sets
// differ in the last bits.
// Errors: none; integer divisors are not 0 (the caller checks).
// Threads: pure functions.
#pragma once

#include <cstdint>

#include "ops/cpu/tile/tile.h"
#include "ops/schema/eddy/update_form.h"
#include "ops/schema/unary_list.h"

namespace eddy::cpu {

enum class LoopType : uint8_t { kFloat, kDouble, kInt32, kInt64, kBool, kInt8, kUint8 };
inline constexpr int kNumLoopTypes = 7;
template <typename T>
inline constexpr LoopType kLoopTypeOf = T::kNoLoops;
template <>
inline constexpr LoopType kLoopTypeOf<float> = LoopType::kFloat;
template <>
inline constexpr LoopType kLoopTypeOf<double> = LoopType::kDouble;
template <>
inline constexpr LoopType kLoopTypeOf<int32_t> = LoopType::kInt32;
template <>
inline constexpr LoopType kLoopTypeOf<int64_t> = LoopType::kInt64;
template <>
inline constexpr LoopType kLoopTypeOf<bool> = LoopType::kBool;
template <>
inline constexpr LoopType kLoopTypeOf<int8_t> = LoopType::kInt8;
template <>
inline constexpr LoopType kLoopTypeOf<uint8_t> = LoopType::kUint8;

enum class BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorMod,
  kFmod,
  kPow,
  kMax,
  kMin,
  kPrelu,
  kAnd,
  kOr,
  kXor,
  kEqual,
  kGreater,
  kGreaterOrEqual,
  kLess,
  kLessOrEqual,
};
inline constexpr int kNumBinaryOps = 18;

// out[i] = op(a[i], b[i]); in those named for it one operand is a single element.
using BinaryLoop = void (*)(const void* a, const void* b, void* out, int64_t count);
struct BinaryLoops {
  BinaryLoop both = nullptr;
  BinaryLoop right_scalar = nullptr;
  BinaryLoop left_scalar = nullptr;
};

enum class UnaryOp : uint8_t {
#define EDDY_UNARY_ENUMERATOR(X, name, ...) k##name,
  EDDY_UNARY_OPERATORS(EDDY_UNARY_ENUMERATOR, )
#undef EDDY_UNARY_ENUMERATOR
      kGeluTanh,
  kClip,
};
inline constexpr int kNumUnaryOps = static_cast<int>(UnaryOp::kClip) + 1;

// out[i] = op(in[i], p): p points at the operator's two parameters (alpha, beta; Clip: low, high),
// of the loop's element type.
using UnaryLoop = void (*)(const void* in, void* out, int64_t count, const void* p);

using CastLoop = void (*)(const void* in, void* out, int64_t count);

// out[i] = c[i] ? x[i] : y[i], for elements of 1, 4 and 8 bytes; a single element stands for
// all where its bit of `single` is set (1: condition, 2: x, 4: y).
using SelectLoop = void (*)(const bool* c, const void* x, const void* y, void* out, int64_t count,
                            unsigned single);

enum class ReduceOp : uint8_t { kSum, kMax, kMin, kProd, kSumAbs, kSumSquare };
inline constexpr int kNumReduceOps = 6;

// Folds `count` floats into one.
using FoldLoop = float (*)(const float* in, int64_t count);
// totals[i] = op(totals[i], in[i]); the first row of a reduction is `start`ed: op of in[i] alone.
using FoldRowLoop = void (*)(const float* in, float* totals, int64_t count);

struct ReduceLoops {
  FoldLoop fold = nullptr;
  FoldRowLoop start_row = nullptr;
  FoldRowLoop fold_row = nullptr;
};

struct SoftmaxLoops {
  // out[i] = exp(in[i] - shift); returns the sum. In place allowed.
  float (*exp_sum)(const float* in, float* out, int64_t count, float shift);
  // The sum alone.
  float (*exp_sum_only)(const float* in, int64_t count, float shift);
  // out[i] = in[i] * factor, out[i] = in[i] - shift.
  void (*scale)(const float* in, float* out, int64_t count, float factor);
  void (*subtract)(const float* in, float* out, int64_t count, float shift);
};

// Linear quantization by bytes, signed or not. scale and zero are one element for all, or with
// `each` one for every element; a null zero is 0.
//   quantize:   out[i] = clamp(round(x[i] / scale) + zero), half to even; NaN gives zero
//   dequantize: out[i] = (q[i] - zero) * scale
using QuantizeLoop = void (*)(const float* x, void* out, int64_t count, const float* scale,
                              const void* zero_or_null, bool each);
using DequantizeLoop = void (*)(const void* q, float* out, int64_t count, const float* scale,
                                const void* zero_or_null, bool each);
struct QuantizeLoops {
  QuantizeLoop quantize = nullptr;
  DequantizeLoop dequantize = nullptr;
};

// A step of an optimizer for `count` elements, as update_form.h says; results and inputs may be
// one.
struct UpdateCall {
  const UpdateForm* form;
  const void* rate;           // one element
  const void* share_or_null;  // likewise; null: 1
  const void *x, *gradient, *states[2];
  void *next_x, *next_states[2];
  int64_t count;
};
using UpdateLoop = void (*)(const UpdateCall& call);
struct UpdateLoops {
  UpdateLoop of_float = nullptr;
  UpdateLoop of_double = nullptr;
};

// The largest elements of rows of windows, and where they lie: the first of them, the last NaN.
// Window i of row j has the elements x[j * x_row + i * stride + tap] for each of the taps.
struct MaxPlaceCall {
  const float* x = nullptr;
  const float* x_end = nullptr;  // nothing is read from there on
  const int64_t* taps = nullptr;
  int64_t num_taps = 0;  // 1 or more
  int64_t rows = 0, x_row = 0, y_row = 0;
  int64_t stride = 1;
  int64_t count = 0;        // windows in a row
  int64_t first_place = 0;  // of x[0]
  float* y = nullptr;
  int64_t* places = nullptr;
  int64_t room = 0;  // of y and places: what lies behind a row may be overwritten
};
using MaxPlaceLoop = void (*)(const MaxPlaceCall& call);

struct LoopSet {
  Isa isa = Isa::kBaseline;
  BinaryLoops binary[kNumBinaryOps][kNumLoopTypes];  // null where there is none
  UnaryLoop unary[kNumUnaryOps][kNumLoopTypes];      // likewise
  CastLoop cast[kNumLoopTypes][kNumLoopTypes];       // [from][to]
  CastLoop is_nan_float = nullptr;                   // to bools
  CastLoop is_nan_double = nullptr;
  // sums[i] += x[i] * factor[0], of int32 and int64, which wrap.
  BinaryLoop add_product_4 = nullptr;
  BinaryLoop add_product_8 = nullptr;
  SelectLoop select_1 = nullptr;  // by element size in bytes
  SelectLoop select_4 = nullptr;
  SelectLoop select_8 = nullptr;
  ReduceLoops reduce[kNumReduceOps];
  SoftmaxLoops softmax{};
  QuantizeLoops int8;
  QuantizeLoops uint8;
  UpdateLoops update[kNumUpdateRules];  // [UpdateRule]
  MaxPlaceLoop max_place = nullptr;
};

// The set for one instruction set, or null where this processor lacks it.
const LoopSet* loop_set_or_null(Isa isa);
// The best set for this processor.
const LoopSet& loop_set();

}  // namespace eddy::cpu
