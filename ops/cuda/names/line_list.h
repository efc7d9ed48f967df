// Every kernel of lines.cu: X(name, params, body) for threads, X(name, body) for blocks; see
// kernel_list.h.
#pragma once

#include "ops/cuda/names/kernel_list.h"

#define EDDY_CUDA_LINE_OF(X, type)                \
  X(CumSum_##type, LineParams, run_cum_sum<type>) \
  X(Resize_##type, ResizeParams, run_resize<type>)
#define EDDY_CUDA_LINE_OF_BYTE(X, type) \
  EDDY_CUDA_LINE_OF(X, type)            \
  X(MaxPool_##type, PoolParams, run_max_pool<type>)
#define EDDY_CUDA_LINE_OF_FLOAT(X, type)                    \
  EDDY_CUDA_LINE_OF_BYTE(X, type)                           \
  X(BatchNorm_##type, ChannelParams, run_batch_norm<type>)  \
  X(AveragePool_##type, PoolParams, run_average_pool<type>) \
  X(Conv_##type, ConvParams, run_conv<type>)                \
  X(ConvTranspose_##type, ConvParams, run_conv_transpose<type>)

#define EDDY_CUDA_QUANTIZE(X, byte, type)                               \
  X(Quantize_##byte##_##type, QuantizeParams, run_quantize<byte, type>) \
  X(Dequantize_##byte##_##type, QuantizeParams, run_dequantize<byte, type>)

#define EDDY_CUDA_LINE_THREADS(X)                                 \
  EDDY_CUDA_LINE_OF_FLOAT(X, f32)                                 \
  EDDY_CUDA_LINE_OF_FLOAT(X, f64)                                 \
  EDDY_CUDA_LINE_OF_FLOAT(X, f16)                                 \
  EDDY_CUDA_LINE_OF_FLOAT(X, bf16)                                \
  EDDY_CUDA_LINE_OF_BYTE(X, i8)                                   \
  EDDY_CUDA_LINE_OF_BYTE(X, u8)                                   \
  EDDY_CUDA_LINE_OF(X, i32)                                       \
  EDDY_CUDA_LINE_OF(X, i64)                                       \
  EDDY_CUDA_QUANTIZE(X, i8, f32)                                  \
  EDDY_CUDA_QUANTIZE(X, i8, f16)                                  \
  EDDY_CUDA_QUANTIZE(X, i8, bf16)                                 \
  EDDY_CUDA_QUANTIZE(X, u8, f32)                                  \
  EDDY_CUDA_QUANTIZE(X, u8, f16)                                  \
  EDDY_CUDA_QUANTIZE(X, u8, bf16)                                 \
  X(Dequantize_i32_f32, QuantizeParams, run_dequantize<i32, f32>) \
  X(QuantizeByExtremes, QuantizeParams, run_quantize_by_extremes)

#define EDDY_CUDA_BLOCK_OF(X, type)                        \
  X(BlockReduceSum_##type, BlockReduce<ReduceSum, type>)   \
  X(BlockReduceProd_##type, BlockReduce<ReduceProd, type>) \
  X(BlockReduceMax_##type, BlockMost<ReduceMax, type>)     \
  X(BlockReduceMin_##type, BlockMost<ReduceMin, type>)     \
  X(BlockArgMax_##type, BlockArg<ArgMax, type>)            \
  X(BlockArgMin_##type, BlockArg<ArgMin, type>)            \
  X(BlockCumSum_##type, BlockCumSum<type>)                 \
  X(TopK_##type, BlockTopK<type>)
#define EDDY_CUDA_BLOCK_OF_FLOAT(X, type)                            \
  EDDY_CUDA_BLOCK_OF(X, type)                                        \
  X(BlockReduceMean_##type, BlockReduce<ReduceMean, type>)           \
  X(BlockReduceL1_##type, BlockReduce<ReduceL1, type>)               \
  X(BlockReduceL2_##type, BlockReduce<ReduceL2, type>)               \
  X(BlockReduceLogSum_##type, BlockReduce<ReduceLogSum, type>)       \
  X(BlockReduceSumSquare_##type, BlockReduce<ReduceSumSquare, type>) \
  X(BlockSoftmax_##type, BlockSoftmax<Softmax, type>)                \
  X(BlockLogSoftmax_##type, BlockSoftmax<LogSoftmax, type>)          \
  X(WarpSoftmax_##type, WarpSoftmax<Softmax, type>)                  \
  X(WarpLogSoftmax_##type, WarpSoftmax<LogSoftmax, type>)            \
  X(LayerNorm_##type, BlockLayerNorm<type>)                          \
  X(InstanceNorm_##type, BlockInstanceNorm<type>)

#define EDDY_CUDA_LINE_BLOCKS(X)    \
  EDDY_CUDA_BLOCK_OF(X, i8)         \
  EDDY_CUDA_BLOCK_OF(X, u8)         \
  EDDY_CUDA_BLOCK_OF_FLOAT(X, f32)  \
  EDDY_CUDA_BLOCK_OF_FLOAT(X, f64)  \
  EDDY_CUDA_BLOCK_OF_FLOAT(X, f16)  \
  EDDY_CUDA_BLOCK_OF_FLOAT(X, bf16) \
  EDDY_CUDA_BLOCK_OF(X, i32)        \
  EDDY_CUDA_BLOCK_OF(X, i64)        \
  X(Extremes, BlockExtremes)
