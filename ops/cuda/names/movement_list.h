// Every kernel of movement.cu: X(name, params, body). A kernel is called eddy_<name>; see
// kernel_list.h.
#pragma once

#include "ops/cuda/names/kernel_list.h"

#define EDDY_CUDA_CAST_FROM(X, from)                             \
  X(Cast_##from##_f32, ElementwiseParams, run_cast<f32, from>)   \
  X(Cast_##from##_f64, ElementwiseParams, run_cast<f64, from>)   \
  X(Cast_##from##_f16, ElementwiseParams, run_cast<f16, from>)   \
  X(Cast_##from##_bf16, ElementwiseParams, run_cast<bf16, from>) \
  X(Cast_##from##_i8, ElementwiseParams, run_cast<i8, from>)     \
  X(Cast_##from##_u8, ElementwiseParams, run_cast<u8, from>)     \
  X(Cast_##from##_i16, ElementwiseParams, run_cast<i16, from>)   \
  X(Cast_##from##_u16, ElementwiseParams, run_cast<u16, from>)   \
  X(Cast_##from##_i32, ElementwiseParams, run_cast<i32, from>)   \
  X(Cast_##from##_u32, ElementwiseParams, run_cast<u32, from>)   \
  X(Cast_##from##_i64, ElementwiseParams, run_cast<i64, from>)   \
  X(Cast_##from##_u64, ElementwiseParams, run_cast<u64, from>)   \
  X(Cast_##from##_b8, ElementwiseParams, run_cast<b8, from>)

#define EDDY_CUDA_CASTS(X)     \
  EDDY_CUDA_CAST_FROM(X, f32)  \
  EDDY_CUDA_CAST_FROM(X, f64)  \
  EDDY_CUDA_CAST_FROM(X, f16)  \
  EDDY_CUDA_CAST_FROM(X, bf16) \
  EDDY_CUDA_CAST_FROM(X, i8)   \
  EDDY_CUDA_CAST_FROM(X, u8)   \
  EDDY_CUDA_CAST_FROM(X, i16)  \
  EDDY_CUDA_CAST_FROM(X, u16)  \
  EDDY_CUDA_CAST_FROM(X, i32)  \
  EDDY_CUDA_CAST_FROM(X, u32)  \
  EDDY_CUDA_CAST_FROM(X, i64)  \
  EDDY_CUDA_CAST_FROM(X, u64)  \
  EDDY_CUDA_CAST_FROM(X, b8)

// Whole rows, in words of up to 16 bytes.
#define EDDY_CUDA_ROW_MOVES(X, size, word)       \
  X(Concat_##size, JoinParams, run_concat<word>) \
  X(Split_##size, JoinParams, run_split<word>)   \
  X(Gather_##size, GatherParams, run_gather<word>)

// Single elements.
#define EDDY_CUDA_MOVES(X, size, word)                                      \
  EDDY_CUDA_ROW_MOVES(X, size, word)                                        \
  X(GatherElements_##size, ElementsParams, run_gather_elements<word>)       \
  X(GatherTuples_##size, TuplesParams, run_gather_tuples<word>)             \
  X(ScatterElements_##size, ElementsParams, run_scatter_elements_set<word>) \
  X(ScatterTuples_##size, TuplesParams, run_scatter_tuples_set<word>)       \
  X(Pad_##size, PadParams, run_pad<word>)                                   \
  X(Trilu_##size, PositionParams, run_trilu<word>)                          \
  X(Fill_##size, PositionParams, run_fill<word>)                            \
  X(OneHot_##size##_f32, PositionParams, run_one_hot<word, f32>)            \
  X(OneHot_##size##_i32, PositionParams, run_one_hot<word, i32>)            \
  X(OneHot_##size##_i64, PositionParams, run_one_hot<word, i64>)

#define EDDY_CUDA_SCATTER_REDUCE(X, type)                                            \
  X(ScatterElementsReduce_##type, ElementsParams, run_scatter_elements_reduce<type>) \
  X(ScatterTuplesReduce_##type, TuplesParams, run_scatter_tuples_reduce<type>)

#define EDDY_CUDA_MOVEMENT(X)                  \
  EDDY_CUDA_CASTS(X)                           \
  EDDY_CUDA_MOVES(X, 1, uint8_t)               \
  EDDY_CUDA_MOVES(X, 2, uint16_t)              \
  EDDY_CUDA_MOVES(X, 4, uint32_t)              \
  EDDY_CUDA_MOVES(X, 8, uint64_t)              \
  EDDY_CUDA_ROW_MOVES(X, 16, Word16)           \
  EDDY_CUDA_SCATTER_REDUCE(X, f32)             \
  EDDY_CUDA_SCATTER_REDUCE(X, f64)             \
  EDDY_CUDA_SCATTER_REDUCE(X, f16)             \
  EDDY_CUDA_SCATTER_REDUCE(X, bf16)            \
  EDDY_CUDA_SCATTER_REDUCE(X, i32)             \
  EDDY_CUDA_SCATTER_REDUCE(X, i64)             \
  X(Range_f32, PositionParams, run_range<f32>) \
  X(Range_f64, PositionParams, run_range<f64>) \
  X(Range_i16, PositionParams, run_range<i16>) \
  X(Range_i32, PositionParams, run_range<i32>) \
  X(Range_i64, PositionParams, run_range<i64>)
