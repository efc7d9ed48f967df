// Every kernel of products.cu: X(name, body), of blocks; see kernel_list.h.
#pragma once

#include "ops/cuda/names/kernel_list.h"

#define EDDY_CUDA_PRODUCT_OF(X, type)    \
  X(MatMulTile_##type, MatMulTile<type>) \
  X(MatMulRows_##type, MatMulRows<type>)
#define EDDY_CUDA_PRODUCT_OF_FLOAT(X, type)          \
  EDDY_CUDA_PRODUCT_OF(X, type)                      \
  X(ConvTile_##type, ConvTile<type>)                 \
  X(LstmStep_##type, BlockRecurrent<LstmStep, type>) \
  X(RnnStep_##type, BlockRecurrent<RnnStep, type>)   \
  X(GruStep_##type, BlockRecurrent<GruStep, type>)   \
  X(GruGates_##type, BlockRecurrent<GruGates, type>) \
  X(GruCandidate_##type, BlockRecurrent<GruCandidate, type>)
#define EDDY_CUDA_BYTE_PRODUCT(X, a, b) \
  X(ByteTile_##a##_##b, ByteTile<a, b>) \
  X(ByteRows_##a##_##b, ByteRows<a, b>)

// Sums: results as wide as the sums, with which the steps of recurrences go on.
#define EDDY_CUDA_PRODUCTS(X)                     \
  EDDY_CUDA_PRODUCT_OF_FLOAT(X, f32)              \
  EDDY_CUDA_PRODUCT_OF_FLOAT(X, f64)              \
  EDDY_CUDA_PRODUCT_OF_FLOAT(X, f16)              \
  EDDY_CUDA_PRODUCT_OF_FLOAT(X, bf16)             \
  EDDY_CUDA_PRODUCT_OF(X, i32)                    \
  EDDY_CUDA_PRODUCT_OF(X, i64)                    \
  EDDY_CUDA_PRODUCT_OF(X, u32)                    \
  EDDY_CUDA_PRODUCT_OF(X, u64)                    \
  EDDY_CUDA_BYTE_PRODUCT(X, i8, i8)               \
  EDDY_CUDA_BYTE_PRODUCT(X, i8, u8)               \
  EDDY_CUDA_BYTE_PRODUCT(X, u8, i8)               \
  EDDY_CUDA_BYTE_PRODUCT(X, u8, u8)               \
  X(DequantizeTile_i8, DequantizeTile<i8>)        \
  X(DequantizeRows_i8, DequantizeRows<i8>)        \
  X(DequantizeTile_u8, DequantizeTile<u8>)        \
  X(DequantizeRows_u8, DequantizeRows<u8>)        \
  X(MatMulTensor_f32, TensorTile)                 \
  X(SumsTile_f16, TileProduct<SumProduct<f16>>)   \
  X(SumsRows_f16, RowProduct<SumProduct<f16>>)    \
  X(SumsTile_bf16, TileProduct<SumProduct<bf16>>) \
  X(SumsRows_bf16, RowProduct<SumProduct<bf16>>)
