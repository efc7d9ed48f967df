// Every kernel of elementwise.cu: X(name, body). A kernel is called eddy_<name> and takes one
// ElementwiseParams; those of EDDY_CUDA_ROWS take one RowParams. The device's source, the host's
// table of tests and the registry agree by this list, and by movement_list.h, line_list.h and
// product_list.h for the other sources.
#pragma once

// X(op, type) for each type.
#define EDDY_CUDA_FLOATS(X, op) X(op, f32) X(op, f64) X(op, f16) X(op, bf16)
#define EDDY_CUDA_NUMBERS(X, op) EDDY_CUDA_FLOATS(X, op) X(op, i32) X(op, i64)

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

#define EDDY_CUDA_UNARY(X)        \
  EDDY_CUDA_NUMBERS(X, Abs)       \
  EDDY_CUDA_NUMBERS(X, Neg)       \
  EDDY_CUDA_NUMBERS(X, Relu)      \
  EDDY_CUDA_FLOATS(X, Ceil)       \
  EDDY_CUDA_FLOATS(X, Cos)        \
  EDDY_CUDA_FLOATS(X, Erf)        \
  EDDY_CUDA_FLOATS(X, Exp)        \
  EDDY_CUDA_FLOATS(X, Floor)      \
  EDDY_CUDA_FLOATS(X, LeakyRelu)  \
  EDDY_CUDA_FLOATS(X, Log)        \
  EDDY_CUDA_FLOATS(X, Reciprocal) \
  EDDY_CUDA_FLOATS(X, Round)      \
  EDDY_CUDA_FLOATS(X, Sigmoid)    \
  EDDY_CUDA_FLOATS(X, Sin)        \
  EDDY_CUDA_FLOATS(X, Softplus)   \
  EDDY_CUDA_FLOATS(X, Sqrt)       \
  EDDY_CUDA_FLOATS(X, Tanh)       \
  X(Not, b8)

// X(size in bytes, word).
#define EDDY_CUDA_WORDS(X) X(1, uint8_t) X(2, uint16_t) X(4, uint32_t) X(8, uint64_t)

#define EDDY_CUDA_REDUCE(X)         \
  EDDY_CUDA_NUMBERS(X, ReduceSum)   \
  EDDY_CUDA_NUMBERS(X, ReduceProd)  \
  EDDY_CUDA_FLOATS(X, ReduceMean)   \
  EDDY_CUDA_FLOATS(X, ReduceL1)     \
  EDDY_CUDA_FLOATS(X, ReduceL2)     \
  EDDY_CUDA_FLOATS(X, ReduceLogSum) \
  EDDY_CUDA_FLOATS(X, ReduceSumSquare)

#define EDDY_CUDA_EXTREME(X) EDDY_CUDA_NUMBERS(X, ReduceMax) EDDY_CUDA_NUMBERS(X, ReduceMin)
#define EDDY_CUDA_ARG(X) EDDY_CUDA_NUMBERS(X, ArgMax) EDDY_CUDA_NUMBERS(X, ArgMin)
#define EDDY_CUDA_SOFTMAX(X) EDDY_CUDA_FLOATS(X, Softmax) EDDY_CUDA_FLOATS(X, LogSoftmax)

// X(name, body), of RowParams.
#define EDDY_CUDA_ROWS(X)      \
  EDDY_CUDA_REDUCE(X##_REDUCE) \
  EDDY_CUDA_EXTREME(X##_EXTREME) EDDY_CUDA_ARG(X##_ARG) EDDY_CUDA_SOFTMAX(X##_SOFTMAX)

// X(name, body): all others, as functions of (params, first, step).
#define EDDY_CUDA_KERNELS(X)   \
  EDDY_CUDA_BINARY(X##_BINARY) \
  EDDY_CUDA_COMPARE(X##_COMPARE) EDDY_CUDA_UNARY(X##_UNARY) EDDY_CUDA_WORDS(X##_WORDS)
