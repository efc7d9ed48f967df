// One function per operator family, each defined in <family>.cc of a folder below: its reference
// kernels.
#pragma once

#include "ops/contract/registry.h"

namespace eddy {

// arithmetic, comparisons, logic, activations, Cast, Where
void add_elementwise_reference(KernelRegistry& registry);
// Reduce*, ArgMax, ArgMin
void add_reduction_reference(KernelRegistry& registry);
// Softmax, LogSoftmax
void add_softmax_reference(KernelRegistry& registry);
// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear
void add_quantize_reference(KernelRegistry& registry);
// Constant, Shape, Reshape, Transpose, Concat, Slice, Pad, Tile, ...
void add_movement_reference(KernelRegistry& registry);
// sequences and optionals
void add_sequence_reference(KernelRegistry& registry);
// Gather*, Scatter*, OneHot, TopK, NonZero, ...
void add_indexing_reference(KernelRegistry& registry);
// MatMul, Gemm, MatMulInteger
void add_matmul_reference(KernelRegistry& registry);
// com.microsoft.MatMulNBits
void add_matmul_bits_reference(KernelRegistry& registry);
// Conv, ConvTranspose
void add_conv_reference(KernelRegistry& registry);
// DeformConv
void add_deform_conv_reference(KernelRegistry& registry);
// MaxPool, AveragePool, GlobalMaxPool, GlobalAveragePool
void add_pool_reference(KernelRegistry& registry);
// Resize
void add_resize_reference(KernelRegistry& registry);
// LSTM, GRU, RNN
void add_recurrent_reference(KernelRegistry& registry);
// BatchNormalization, LayerNormalization, InstanceNormalization, LRN
void add_normalization_reference(KernelRegistry& registry);

// GridSample
void add_grid_sample_reference(KernelRegistry& registry);
// MaxRoiPool, NonMaxSuppression, RoiAlign
void add_regions_reference(KernelRegistry& registry);
// Random*, Bernoulli, Multinomial
void add_random_reference(KernelRegistry& registry);
// DFT, STFT, MelWeightMatrix
void add_signal_reference(KernelRegistry& registry);
// StringConcat, StringNormalizer, StringSplit, TfIdfVectorizer
void add_text_reference(KernelRegistry& registry);
// Col2Im
void add_columns_reference(KernelRegistry& registry);
// Attention, RotaryEmbedding, TensorScatter
void add_attention_reference(KernelRegistry& registry);
void add_tensor_scatter_reference(KernelRegistry& registry);
// LinearAttention
void add_linear_attention_reference(KernelRegistry& registry);

// ai.onnx.ml.LabelEncoder, CategoryMapper, OneHotEncoder
void add_ml_label_reference(KernelRegistry& registry);
// ai.onnx.ml.ArrayFeatureExtractor, Binarizer, FeatureVectorizer, Imputer, Normalizer, Scaler
void add_ml_feature_reference(KernelRegistry& registry);
// ai.onnx.ml.Linear*
void add_ml_linear_reference(KernelRegistry& registry);
// ai.onnx.ml.SVM*
void add_ml_svm_reference(KernelRegistry& registry);
// ai.onnx.ml.TreeEnsemble*
void add_ml_tree_reference(KernelRegistry& registry);

// eddy.AllReduce and what else talks to other ranks: refusals
void add_collective_reference(KernelRegistry& registry);
// eddy.BlockChannels, UnblockChannels, BlockedConv, BlockedPool
void add_blocked_reference(KernelRegistry& registry);

}  // namespace eddy
