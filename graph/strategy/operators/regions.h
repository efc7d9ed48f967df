// regions: which part of each input a part of an operator's output reads, by the operator's type.
//
// set_regions() fills an operator's input dims, reduction, weights, flops and read elements from
// its type, shape and attributes, given the shapes of its inputs:
//
//   elementwise    the same region of every input; dimensions of extent 1 broadcast
//   matmul, Gemm,  rows: the same ones; all of in_features, or the share of a cut sum. A second
//   MatMul         input of shape [in_features, columns] is the other factor: the same columns.
//                  Several inputs whose last dimensions add up to in_features are read whole
//                  along that dimension (a recurrent cell's input and state). A first input of
//                  more dimensions than the output is read as flattened behind dimension 0.
//   conv1d, conv2d windows: with halos, "same" padding of what the shapes leave open (half of it
//   Conv, pools    before, the odd one after); convolutions read all channels, pools their own
//   Concat, Softmax, LayerNormalization, Transpose, Reduce*, Reshape, Flatten and operators that
//                  ONNX's schema lets overwrite an input (elementwise): their own rule
//   others         all of every input
//
// Errors (invalid argument), naming the operator and both shapes: inputs that do not fit the type,
// a shape of the wrong rank, a missing in_features or kernel, sizes whose product overflows;
// kUnsupported for a type that is neither one of the four nor in the operator table.
// Cost: O(inputs * rank).
#pragma once

#include <cstdint>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/strategy/operators/operator_graph.h"

namespace eddy {

struct OperatorAttributes {
  std::vector<int64_t> kernel = {};  // by spatial dimension; one entry serves all
  std::vector<int64_t> stride = {};  // the same; empty: 1
  std::vector<int64_t> axes = {};    // axis of Softmax, Concat, Reduce*; negative: from the end
  std::vector<int64_t> perm = {};    // Transpose
  int64_t in_features = 0;           // 0: from the input
  int64_t in_channels = 0;           // of a convolution without inputs
  int64_t groups = 1;
};

// `op` has its name, type, shape and inputs' producers; `shapes` those of the inputs. `ops_or_null`
// says which ONNX operators there are; null: any name is believed.
Status set_regions(Operator& op, const OperatorAttributes& attributes,
                   const std::vector<Dims>& shapes, const OpTable* ops_or_null);

}  // namespace eddy
