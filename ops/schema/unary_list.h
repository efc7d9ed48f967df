// The operators of one input that do something to each element and keep its type: all that schemas,
// CPU loops, CUDA kernels and fused nodes need of one beside its expression.
//
//   ROW(X, name, since, types, kernels, attributes...)
//
// name         of the operator; its struct in ops/cuda/device/unary_ops.h and its UnaryOp are
// called so, too since        the opset that defines it types        what it takes: a TypeSet of
// graph/ir/element_type.h kernels      what there are CUDA kernels of: FLOATS, NUMBERS, BITS or
// BOOL of ops/cuda/names/kernel_list.h attributes   up to two of floats in the order of its
// documentation, {name, default}
//
// X is passed on. Preprocessor only: sources of the device read it, too. unary_operators.h has the
// same as data.
#pragma once

// Kernels in ops/cuda/images/elementwise.cu.
#define EDDY_COMMON_UNARY(ROW, X)                             \
  ROW(X, Abs, 6, kNumericTypes, NUMBERS)                      \
  ROW(X, Neg, 6, kSignedTypes, NUMBERS)                       \
  ROW(X, Relu, 6, kSignedTypes, NUMBERS)                      \
  ROW(X, Not, 1, kBoolType, BOOL)                             \
  ROW(X, Ceil, 6, kFloatTypes, FLOATS)                        \
  ROW(X, Cos, 7, kFloatTypes, FLOATS)                         \
  ROW(X, Erf, 9, kFloatTypes, FLOATS)                         \
  ROW(X, Exp, 6, kFloatTypes, FLOATS)                         \
  ROW(X, Floor, 6, kFloatTypes, FLOATS)                       \
  ROW(X, LeakyRelu, 6, kFloatTypes, FLOATS, {"alpha", 0.01f}) \
  ROW(X, Log, 6, kFloatTypes, FLOATS)                         \
  ROW(X, Reciprocal, 6, kFloatTypes, FLOATS)                  \
  ROW(X, Round, 11, kFloatTypes, FLOATS)                      \
  ROW(X, Sigmoid, 6, kFloatTypes, FLOATS)                     \
  ROW(X, Sin, 7, kFloatTypes, FLOATS)                         \
  ROW(X, Softplus, 1, kFloatTypes, FLOATS)                    \
  ROW(X, Sqrt, 6, kFloatTypes, FLOATS)                        \
  ROW(X, Tanh, 6, kFloatTypes, FLOATS)

// Kernels in ops/cuda/images/activations.cu. Erf and its kin: the standard once allowed integers,
// without a definition of their result.
#define EDDY_OTHER_UNARY(ROW, X)                                               \
  ROW(X, Sign, 9, kNumericTypes, NUMBERS)                                      \
  ROW(X, BitwiseNot, 18, kIntTypes, BITS)                                      \
  ROW(X, Acos, 7, kFloatTypes, FLOATS)                                         \
  ROW(X, Acosh, 9, kFloatTypes, FLOATS)                                        \
  ROW(X, Asin, 7, kFloatTypes, FLOATS)                                         \
  ROW(X, Asinh, 9, kFloatTypes, FLOATS)                                        \
  ROW(X, Atan, 7, kFloatTypes, FLOATS)                                         \
  ROW(X, Atanh, 9, kFloatTypes, FLOATS)                                        \
  ROW(X, Celu, 12, kFloatTypes, FLOATS, {"alpha", 1.0f})                       \
  ROW(X, Cosh, 9, kFloatTypes, FLOATS)                                         \
  ROW(X, Elu, 6, kFloatTypes, FLOATS, {"alpha", 1.0f})                         \
  ROW(X, Gelu, 20, kFloatTypes, FLOATS)                                        \
  ROW(X, HardSigmoid, 6, kFloatTypes, FLOATS, {"alpha", 0.2f}, {"beta", 0.5f}) \
  ROW(X, HardSwish, 14, kFloatTypes, FLOATS)                                   \
  ROW(X, Mish, 18, kFloatTypes, FLOATS)                                        \
  ROW(X, Selu, 6, kFloatTypes, FLOATS, {"alpha", 1.67326319217681884765625f},  \
      {"gamma", 1.05070102214813232421875f})                                   \
  ROW(X, Shrink, 9, kNumericTypes, FLOATS, {"bias", 0.0f}, {"lambd", 0.5f})    \
  ROW(X, Sinh, 9, kFloatTypes, FLOATS)                                         \
  ROW(X, Softsign, 1, kFloatTypes, FLOATS)                                     \
  ROW(X, Swish, 24, kFloatTypes, FLOATS, {"alpha", 1.0f})                      \
  ROW(X, Tan, 7, kFloatTypes, FLOATS)                                          \
  ROW(X, ThresholdedRelu, 10, kFloatTypes, FLOATS, {"alpha", 1.0f})

#define EDDY_UNARY_OPERATORS(ROW, X) EDDY_COMMON_UNARY(ROW, X) EDDY_OTHER_UNARY(ROW, X)
