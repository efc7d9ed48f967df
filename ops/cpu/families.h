// One function per operator family, each defined in <family>.cc of this folder: its fast
// kernels. A family without any has an empty function.
#pragma once

#include "ops/contract/registry.h"

namespace eddy {

// arithmetic, comparisons, logic, activations, Cast, Where
void add_elementwise_cpu(KernelRegistry& registry);
// Reduce* of floats, ArgMax, ArgMin
void add_reduction_cpu(KernelRegistry& registry);
// the same of integers; ReduceLogSumExp
void add_typed_reduction_cpu(KernelRegistry& registry);
// means, norms, logarithms of integers
void add_exact_reduction_cpu(KernelRegistry& registry);
// Softmax, LogSoftmax
void add_softmax_cpu(KernelRegistry& registry);
// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear
void add_quantize_cpu(KernelRegistry& registry);
// Constant, Shape, Reshape, Transpose, Concat, Slice, Pad, Tile, ...
void add_movement_cpu(KernelRegistry& registry);
// sequences and optionals
void add_sequence_cpu(KernelRegistry& registry);
// Gather*, Scatter*, OneHot, TopK, NonZero, ...
void add_indexing_cpu(KernelRegistry& registry);
// MatMul, Gemm, eddy.PackMatrix, eddy.PackedMatMul
void add_matmul_cpu(KernelRegistry& registry);
// the same of int32 and int64
void add_matmul_gemm_cpu(KernelRegistry& registry);
void add_matmul_words_cpu(KernelRegistry& registry);
// eddy.PermutedMatMul
void add_matmul_permuted_cpu(KernelRegistry& registry);
// NonZero
void add_non_zero_cpu(KernelRegistry& registry);
// MatMulInteger
void add_matmul_integer_cpu(KernelRegistry& registry);
// eddy.DequantizeMatMul
void add_dequantize_matmul_cpu(KernelRegistry& registry);
// com.microsoft.MatMulNBits
void add_matmul_bits_cpu(KernelRegistry& registry);
// Conv, ConvTranspose
void add_conv_cpu(KernelRegistry& registry);
// MaxPool, AveragePool, LpPool, GlobalMaxPool, GlobalAveragePool, GlobalLpPool
void add_pool_cpu(KernelRegistry& registry);
void add_pool_indices_cpu(KernelRegistry& registry);
// Resize
void add_resize_cpu(KernelRegistry& registry);
// LSTM, GRU, RNN
void add_recurrent_cpu(KernelRegistry& registry);
// BatchNormalization, LayerNormalization, InstanceNormalization
void add_normalization_cpu(KernelRegistry& registry);
// LRN
void add_lrn_cpu(KernelRegistry& registry);

// DFT, STFT
void add_dft_cpu(KernelRegistry& registry);
// DeformConv
void add_deform_conv_cpu(KernelRegistry& registry);
// GridSample
void add_grid_sample_cpu(KernelRegistry& registry);
// MaxRoiPool, RoiAlign
void add_regions_cpu(KernelRegistry& registry);
// ImageDecoder
void add_image_decoder_cpu(KernelRegistry& registry);
// NonMaxSuppression
void add_suppression_cpu(KernelRegistry& registry);
// RegexFullMatch
void add_regex_cpu(KernelRegistry& registry);

// Attention, RotaryEmbedding
void add_attention_cpu(KernelRegistry& registry);

// ai.onnx.ml.TreeEnsemble*
void add_trees_cpu(KernelRegistry& registry);

// eddy.BlockChannels, UnblockChannels, BlockedConv, BlockedPool
void add_blocked_cpu(KernelRegistry& registry);

}  // namespace eddy
