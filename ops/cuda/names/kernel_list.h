// Every kernel of elementwise.cu and activations.cu: X(name, body). A kernel is called eddy_<name>
// and takes one ElementwiseParams; those of EDDY_CUDA_ROWS take one RowParams. The device's source,
// the host's table of tests and the registry agree by this list, and by movement_list.h,
// line_list.h and product_list.h for the other sources.
#pragma once

#include "ops/schema/unary_list.h"

// X(op, type) for each type.
#define EDDY_CUDA_FLOATS(X, op) X(op, f32) X(op, f64) X(op, f16) X(op, bf16)
#define EDDY_CUDA_NUMBERS(X, op) EDDY_CUDA_FLOATS(X, op) X(op, i32) X(op, i64)
#define EDDY_CUDA_BYTES(X, op) X(op, i8) X(op, u8)
#define EDDY_CUDA_UNSIGNED(X, op) X(op, u8) X(op, u16) X(op, u32) X(op, u64)
#define EDDY_CUDA_BITS(X, op) EDDY_CUDA_UNSIGNED(X, op) X(op, i8) X(op, i16) X(op, i32) X(op, i64)

#define EDDY_CUDA_BOOL(X, op) X(op, b8)

// The kernels of a row of unary_list.h.
#define EDDY_CUDA_UNARY_ROW(X, name, since, types, kernels, ...) EDDY_CUDA_##kernels(X, name)

#define EDDY_CUDA_BINARY(X) \
  EDDY_CUDA_NUMBERS(X, Add) \
  EDDY_CUDA_NUMBERS(X, Sub) \
  EDDY_CUDA_NUMBERS(X, Mul) \
  EDDY_CUDA_FLOATS(X, Div)  \
  EDDY_CUDA_FLOATS(X, Pow)  \
  EDDY_CUDA_NUMBERS(X, Max) \
  EDDY_CUDA_NUMBERS(X, Min) \
  X(And, b8) X(Or, b8) X(Xor, b8)

#define EDDY_CUDA_COMPARE(X)        \
  EDDY_CUDA_NUMBERS(X, Equal)       \
  X(Equal, b8)                      \
  EDDY_CUDA_NUMBERS(X, Less)        \
  EDDY_CUDA_NUMBERS(X, LessOrEqual) \
  EDDY_CUDA_NUMBERS(X, Greater)     \
  EDDY_CUDA_NUMBERS(X, GreaterOrEqual)

#define EDDY_CUDA_UNARY(X) EDDY_COMMON_UNARY(EDDY_CUDA_UNARY_ROW, X)

// The kernels of activations.cu.
#define EDDY_CUDA_OTHER_UNARY(X)                                                               \
  EDDY_OTHER_UNARY(EDDY_CUDA_UNARY_ROW, X)                                                     \
  X(Abs, i8)                                                                                   \
  X(Neg, i8) X(Relu, i8) X(Sign, i8) EDDY_CUDA_FLOATS(X, ClipTo) EDDY_CUDA_FLOATS(X, DivideBy) \
      EDDY_CUDA_FLOATS(X, GeluTanh)

#define EDDY_CUDA_OTHER_BINARY(X)                                                             \
  EDDY_CUDA_BYTES(X, Add)                                                                     \
  EDDY_CUDA_BYTES(X, Sub)                                                                     \
  EDDY_CUDA_BYTES(X, Mul)                                                                     \
  EDDY_CUDA_BYTES(X, Max)                                                                     \
  EDDY_CUDA_BYTES(X, Min)                                                                     \
  X(Pow, i32)                                                                                 \
  X(Pow, i64)                                                                                 \
  EDDY_CUDA_NUMBERS(X, PRelu)                                                                 \
  EDDY_CUDA_FLOATS(X, Fmod)                                                                   \
  EDDY_CUDA_NUMBERS(X, ClipLow) EDDY_CUDA_BYTES(X, ClipLow) EDDY_CUDA_NUMBERS(X, ClipHigh)    \
      EDDY_CUDA_BYTES(X, ClipHigh) EDDY_CUDA_BITS(X, BitwiseAnd) EDDY_CUDA_BITS(X, BitwiseOr) \
          EDDY_CUDA_BITS(X, BitwiseXor) EDDY_CUDA_UNSIGNED(X, ShiftLeft)                      \
              EDDY_CUDA_UNSIGNED(X, ShiftRight)

#define EDDY_CUDA_OTHER_COMPARE(X) \
  EDDY_CUDA_BYTES(X, Equal)        \
  EDDY_CUDA_BYTES(X, Less)         \
  EDDY_CUDA_BYTES(X, LessOrEqual)  \
  EDDY_CUDA_BYTES(X, Greater)      \
  EDDY_CUDA_BYTES(X, GreaterOrEqual)

// Operators of integers that may fail, so no functions of elements (division_inl.h).
#define EDDY_CUDA_DIVISION(X)   \
  EDDY_CUDA_BITS(X, IntegerDiv) \
  EDDY_CUDA_BITS(X, Remainder)  \
  EDDY_CUDA_BITS(X, Modulo)

// Operators of one input, to bool.
#define EDDY_CUDA_TEST(X) EDDY_CUDA_FLOATS(X, IsNaN) EDDY_CUDA_FLOATS(X, IsInf)
// Operators of three inputs of one type.
#define EDDY_CUDA_TERNARY(X) EDDY_CUDA_NUMBERS(X, Clip) EDDY_CUDA_BYTES(X, Clip)

// X(size in bytes, word).
#define EDDY_CUDA_WORDS(X) X(1, uint8_t) X(2, uint16_t) X(4, uint32_t) X(8, uint64_t)

#define EDDY_CUDA_REDUCE(X)         \
  EDDY_CUDA_NUMBERS(X, ReduceSum)   \
  EDDY_CUDA_BYTES(X, ReduceSum)     \
  EDDY_CUDA_NUMBERS(X, ReduceProd)  \
  EDDY_CUDA_BYTES(X, ReduceProd)    \
  EDDY_CUDA_FLOATS(X, ReduceMean)   \
  EDDY_CUDA_FLOATS(X, ReduceL1)     \
  EDDY_CUDA_FLOATS(X, ReduceL2)     \
  EDDY_CUDA_FLOATS(X, ReduceLogSum) \
  EDDY_CUDA_FLOATS(X, ReduceSumSquare)

#define EDDY_CUDA_EXTREME(X)      \
  EDDY_CUDA_NUMBERS(X, ReduceMax) \
  EDDY_CUDA_BYTES(X, ReduceMax)   \
  EDDY_CUDA_NUMBERS(X, ReduceMin) \
  EDDY_CUDA_BYTES(X, ReduceMin)
#define EDDY_CUDA_ARG(X)       \
  EDDY_CUDA_NUMBERS(X, ArgMax) \
  EDDY_CUDA_BYTES(X, ArgMax)   \
  EDDY_CUDA_NUMBERS(X, ArgMin) \
  EDDY_CUDA_BYTES(X, ArgMin)
#define EDDY_CUDA_SOFTMAX(X) EDDY_CUDA_FLOATS(X, Softmax) EDDY_CUDA_FLOATS(X, LogSoftmax)

// X(name, body), of RowParams.
#define EDDY_CUDA_ROWS(X)      \
  EDDY_CUDA_REDUCE(X##_REDUCE) \
  EDDY_CUDA_EXTREME(X##_EXTREME) EDDY_CUDA_ARG(X##_ARG) EDDY_CUDA_SOFTMAX(X##_SOFTMAX)

// X(name, body): all others, as functions of (params, first, step).
#define EDDY_CUDA_KERNELS(X)   \
  EDDY_CUDA_BINARY(X##_BINARY) \
  EDDY_CUDA_COMPARE(X##_COMPARE) EDDY_CUDA_UNARY(X##_UNARY) EDDY_CUDA_WORDS(X##_WORDS)

// The same for activations.cu.
#define EDDY_CUDA_ACTIVATIONS(X)       \
  EDDY_CUDA_OTHER_BINARY(X##_BINARY)   \
  EDDY_CUDA_OTHER_COMPARE(X##_COMPARE) \
  EDDY_CUDA_OTHER_UNARY(X##_UNARY) EDDY_CUDA_TEST(X##_TEST) EDDY_CUDA_TERNARY(X##_TERNARY)
