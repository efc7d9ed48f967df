// The operators of domain "com.microsoft", version 1, as exporters write them, one function a
// family, each in microsoft_<family>.cc.
//
// All but MatMulNBits are functions of standard operators (functions.h): they need no kernel on any
// device. Attributes that choose a form which is not built are refused by name, as are the inputs
// that belong to it.
//
// Source: the page of contributed operators of ONNX Runtime, 1.30.
// Internal to ops/schema. add_microsoft_schemas of families.h calls them all.
#pragma once

#include "graph/ir/op.h"

namespace eddy {

inline constexpr const char* kMicrosoft = "com.microsoft";

// BiasGelu, FastGelu, Gelu, QuickGelu
Status add_microsoft_activations(OpTable& table);
// FusedConv, FusedMatMul, NhwcMaxPool
Status add_microsoft_fusions(OpTable& table);
// EmbedLayerNormalization, SkipLayerNormalization, SkipSimplifiedLayerNormalization; and
// SimplifiedLayerNormalization
Status add_microsoft_normalizations(OpTable& table);
// DynamicQuantizeMatMul, MatMulIntegerToFloat, QLinearAdd, QLinearMul, QLinearConcat,
// QLinearGlobalAveragePool
Status add_microsoft_quantized(OpTable& table);
// Attention, MultiHeadAttention, QAttention
Status add_microsoft_attention(OpTable& table);
// GroupQueryAttention, RotaryEmbedding
Status add_microsoft_group_query(OpTable& table);
// AllReduce, AllGather, AllToAll
Status add_microsoft_collectives(OpTable& table);
// MatMulNBits
Status add_microsoft_matmul_bits(OpTable& table);

}  // namespace eddy
