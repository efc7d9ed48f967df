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

// By a block a row, or by a warp: Group is Block or Warp.
#define EDDY_CUDA_GROUP_OF(X, Group, type)                     \
  X(Group##ReduceSum_##type, Group##Reduce<ReduceSum, type>)   \
  X(Group##ReduceProd_##type, Group##Reduce<ReduceProd, type>) \
  X(Group##ReduceMax_##type, Group##Most<ReduceMax, type>)     \
  X(Group##ReduceMin_##type, Group##Most<ReduceMin, type>)     \
  X(Group##ArgMax_##type, Group##Arg<ArgMax, type>)            \
  X(Group##ArgMin_##type, Group##Arg<ArgMin, type>)
#define EDDY_CUDA_GROUP_OF_FLOAT(X, Group, type)                         \
  EDDY_CUDA_GROUP_OF(X, Group, type)                                     \
  X(Group##ReduceMean_##type, Group##Reduce<ReduceMean, type>)           \
  X(Group##ReduceL1_##type, Group##Reduce<ReduceL1, type>)               \
  X(Group##ReduceL2_##type, Group##Reduce<ReduceL2, type>)               \
  X(Group##ReduceLogSum_##type, Group##Reduce<ReduceLogSum, type>)       \
  X(Group##ReduceSumSquare_##type, Group##Reduce<ReduceSumSquare, type>) \
  X(Group##Softmax_##type, Group##Softmax<Softmax, type>)                \
  X(Group##LogSoftmax_##type, Group##Softmax<LogSoftmax, type>)

#define EDDY_CUDA_BLOCK_OF_ANY(X, type)    \
  X(BlockCumSum_##type, BlockCumSum<type>) \
  X(TopK_##type, BlockTopK<type>)
#define EDDY_CUDA_BLOCK_OF(X, type)  \
  EDDY_CUDA_GROUP_OF(X, Block, type) \
  EDDY_CUDA_GROUP_OF(X, Warp, type)  \
  EDDY_CUDA_BLOCK_OF_ANY(X, type)
#define EDDY_CUDA_BLOCK_OF_FLOAT(X, type)           \
  EDDY_CUDA_GROUP_OF_FLOAT(X, Block, type)          \
  EDDY_CUDA_GROUP_OF_FLOAT(X, Warp, type)           \
  EDDY_CUDA_BLOCK_OF_ANY(X, type)                   \
  X(ChannelConv3_##type, BlockChannelConv<type, 3>) \
  X(ChannelConv5_##type, BlockChannelConv<type, 5>) \
  X(ChannelConv7_##type, BlockChannelConv<type, 7>) \
  X(LayerNorm_##type, BlockLayerNorm<type>)         \
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
