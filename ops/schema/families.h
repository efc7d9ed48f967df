// One function per operator family, each defined in <family>.cc of a folder below.
//
// Each adds the OpDefs of its family and fails only when two definitions collide, which is a
// defect that the test of the standard table finds.
#pragma once

#include "graph/base/status.h"
#include "graph/ir/op.h"

namespace eddy {

// arithmetic, comparisons, logic, activations, Cast, Where
Status add_elementwise_schemas(OpTable& table);
// Reduce*, ArgMax, ArgMin
Status add_reduction_schemas(OpTable& table);
// Softmax, LogSoftmax
Status add_softmax_schemas(OpTable& table);
// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear
Status add_quantize_schemas(OpTable& table);
// Constant, Shape, Reshape, Transpose, Concat, Slice, Pad, Tile, ...
Status add_movement_schemas(OpTable& table);
// sequences and optionals
Status add_sequence_schemas(OpTable& table);
// Gather*, Scatter*, OneHot, TopK, NonZero, ...
Status add_indexing_schemas(OpTable& table);
// MatMul, Gemm, MatMulInteger
Status add_matmul_schemas(OpTable& table);
Status add_packed_product_schemas(OpTable& table);
// Conv, ConvTranspose, DeformConv
Status add_conv_schemas(OpTable& table);
// MaxPool, AveragePool, GlobalMaxPool, GlobalAveragePool
Status add_pool_schemas(OpTable& table);
// Resize
Status add_resize_schemas(OpTable& table);
// LSTM, GRU, RNN
Status add_recurrent_schemas(OpTable& table);
// BatchNormalization, LayerNormalization, InstanceNormalization, LRN
Status add_normalization_schemas(OpTable& table);

// operators that are functions of others (functions/, OpDef::expand)
Status add_function_schemas(OpTable& table);

// GridSample, ImageDecoder, MaxRoiPool, NonMaxSuppression, RoiAlign
Status add_image_schemas(OpTable& table);
// Random*, Bernoulli, Multinomial
Status add_random_schemas(OpTable& table);
// DFT, STFT, MelWeightMatrix
Status add_signal_schemas(OpTable& table);
// RegexFullMatch, StringConcat, StringNormalizer, StringSplit, TfIdfVectorizer
Status add_text_schemas(OpTable& table);
// Col2Im
Status add_columns_schemas(OpTable& table);
// Attention, RotaryEmbedding, TensorScatter
Status add_attention_schemas(OpTable& table);
// LinearAttention
Status add_linear_attention_schemas(OpTable& table);

// ai.onnx.ml.LabelEncoder, CategoryMapper, OneHotEncoder
Status add_ml_label_schemas(OpTable& table);
// ai.onnx.ml.ArrayFeatureExtractor, Binarizer, FeatureVectorizer, Imputer, Normalizer, Scaler
Status add_ml_feature_schemas(OpTable& table);
// ai.onnx.ml.Linear*, SVM*
Status add_ml_linear_schemas(OpTable& table);
// ai.onnx.ml.TreeEnsemble*
Status add_ml_tree_schemas(OpTable& table);
// ai.onnx.ml.CastMap, DictVectorizer, ZipMap: refusals
Status add_ml_map_schemas(OpTable& table);
// domain com.microsoft (microsoft/)
Status add_microsoft_schemas(OpTable& table);

// eddy.AllReduce, AllGather, ReduceScatter, Broadcast, AllToAll, Send, Recv, Barrier, Rank
Status add_collective_schemas(OpTable& table);
// eddy.BlockChannels, UnblockChannels, BlockedConv, BlockedPool
Status add_blocked_schemas(OpTable& table);
// eddy.HostPredicate, DequantizeMatMul, Fused, ToDevice, ...
Status add_eddy_schemas(OpTable& table);

}  // namespace eddy
