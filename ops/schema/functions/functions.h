// The operators that the standard defines as functions of others, one function a family, each in
// <family>.cc. Their OpDefs have rules as any other's, and `expand`, which builds the
// nodes that a node stands for (graph/ir/expansion.h): no kernel is needed on any device.
//
// An operator is defined so where the nodes cost little more than a kernel would. Where speed or
// precision asks for one, it has a kernel instead and stands in its family's file: Attention,
// RMSNormalization, RotaryEmbedding.
//
// Internal to ops/schema. add_function_schemas of families.h calls them all.
#pragma once

#include "graph/ir/op.h"

namespace eddy {

// SwiGLU
Status add_activation_functions(OpTable& table);
// CausalConvWithState
Status add_convolution_functions(OpTable& table);
// opsets 1 to 6 of Add and its kin, Cast, Concat, LpPool, Pad, PRelu, Reshape, Split, Tile ...
Status add_early_functions(OpTable& table);
// Einsum
Status add_einsum_functions(OpTable& table);
// GroupNormalization, LpNormalization, MeanVarianceNormalization
Status add_normalization_functions(OpTable& table);
// AffineGrid, CenterCropPad, Upsample
Status add_image_functions(OpTable& table);
// NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss
Status add_loss_functions(OpTable& table);
// MaxUnpool
Status add_pool_functions(OpTable& table);
// ConvInteger, QLinearConv, QLinearMatMul
Status add_quantized_functions(OpTable& table);
// BlackmanWindow, HammingWindow, HannWindow
Status add_signal_functions(OpTable& table);
// ai.onnx.preview.training.Adagrad, Adam, Momentum
Status add_training_functions(OpTable& table);

}  // namespace eddy
