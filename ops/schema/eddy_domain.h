// add_eddy_schemas: the operators of domain "eddy", which express in an ONNX file what ONNX cannot.
//
//   HostPredicate   calls a host function of the session by name. Inputs: any values.
//                   Attributes: `name` (required, the function's name) and `type` (the type of
//                   the one output; a bool scalar when absent, so that it can drive a loop).
//   DequantizeMatMul   A times (B - zero_point) * scale, in float, as ONNX's DequantizeLinear and
//                   MatMul do it, with B kept in bytes: float A[..., k], int8 or uint8 B[k, n],
//                   float scale and, optional, zero_point of B's type: one value, or n. Made by
//                   graph/compile/simplify from constant weights.
//   PermutedMatMul  matrix products of A and B, each with its axes in an order of its own, plus a
//                   row `bias`, in an order again, plus `addend` of the result's shape: Transpose
//                   by `perm_a` and `perm_b`, MatMul, Add, Transpose by `perm_y`, Add. Floats; A
//                   and B have at least two axes. Made by graph/compile/fold_into_products for a
//                   device.
//   ConvRelu        Conv with `addend`, of the result's shape, added, and Relu at last. Made by
//                   graph/compile/fold_into_products, too.
//   Fused           what several elementwise operators make of each element, inputs broadcast as
//                   theirs would be. Attributes: `program` (graph/ir/expression.h, functions by the
//                   device's names) and `to` (the result's type). Made by graph/compile/fuse for a
//                   device; the CPU has no kernel of it.
//   BlockChannels, UnblockChannels   float images [n, c, h, w] with channels in blocks of `block`,
//                   [n, c / block, h, w, block] with zeros beyond the last one; and back to
//                   `channels` of them. Made by graph/compile/block_channels, as are the next two.
//   BlockedConv     Conv whose X is in such blocks, or in others of `x_block`, with
//                   `addend`, laid out as the result, added, bounded to `clamp` (two floats), and
//                   `activation`, an operator of one float (with its `alpha` and `beta`), at last.
//   BlockedPool     MaxPool or AveragePool (`kind`: max, average) of such; `global`: of all.
//   ToDevice, ToHost   the same tensor in the other memory: a device's, the host's. Made by
//                   graph/compile/place; on the CPU they are plain copies.
//   Await           the same tensor, once the host may read its bytes: stands on a CPU stream
//                   behind a ToHost whose result decides a shape.
//   AllReduce and what else talks to other ranks stand in collective.h.
//
// The kernel of HostPredicate comes from the session, which owns the functions. While and CaseOf of
// the same domain are control nodes of the graph, not operators.
#pragma once

#include "graph/base/status.h"
#include "graph/ir/op.h"

namespace eddy {

Status add_eddy_schemas(OpTable& table);

}  // namespace eddy
