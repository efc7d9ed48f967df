// One function per family of gradient rules, each defined in <family>.cc of this folder.
//
// Each adds the rules of its family and fails only when two collide, which is a defect that the
// test of the standard table finds.
#pragma once

#include "graph/base/status.h"
#include "graph/differentiate/gradient_rule.h"

namespace eddy {

// Abs ... Tanh: of one input
Status add_unary_gradients(GradientTable& table);
// Add, Sub, Mul, Div, Pow, Mod, Max, Min, Sum, Mean, Where, Clip, PRelu, casts
Status add_elementwise_gradients(GradientTable& table);
// Reduce*, CumSum
Status add_reduction_gradients(GradientTable& table);
// MatMul, Gemm
Status add_product_gradients(GradientTable& table);
// Reshape ... Tile
Status add_moving_gradients(GradientTable& table);
// Gather*, Scatter*, Compress, TopK, OneHot
Status add_indexing_gradients(GradientTable& table);
// Softmax, LogSoftmax, BatchNormalization, LayerNormalization, LRN ...
Status add_normalization_gradients(GradientTable& table);
// Conv, ConvTranspose
Status add_convolution_gradients(GradientTable& table);
// MaxPool, AveragePool and the global ones
Status add_pool_gradients(GradientTable& table);
// Resize
Status add_resize_gradients(GradientTable& table);
// LSTM, GRU, RNN
Status add_recurrent_gradients(GradientTable& table);
// eddy.UpdateParameter
Status add_update_gradients(GradientTable& table);
// those that are computed again rather than kept
Status add_cheap_operators(GradientTable& table);
// Sequence*, SplitToSequence, ConcatFromSequence, Optional, OptionalGetElement
Status add_sequence_gradients(GradientTable& table);
// operators without a derivative, each with its reason
Status add_flat_operators(GradientTable& table);

}  // namespace eddy
