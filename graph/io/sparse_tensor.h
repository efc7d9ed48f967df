// decode_sparse: a SparseTensorProto as a dense tensor: zeros (empty strings), and the values where
// the indices say. Internal to graph/io.
//
// Indices are int64: [n], positions in the dense tensor's row-major order, or [n, rank],
// coordinates; they ascend and none comes twice, as the standard asks. With no values they may be
// left out.
//
// Errors: those of layout_of; kInvalidArgument for a dense tensor of rank 0, for values and indices
// of other types, shapes or counts, and for an index that lies outside, comes twice or out of
// order; the message names its place in the list.
// Memory: a few bytes of a file stand for any number of zeros, so callers charge the dense size
// (dense_bytes) before they call decode_sparse.
// Threads: pure. Cost: O(elements of the dense tensor + n * rank).
#pragma once

#include "graph/base/status.h"
#include "graph/io/decode_tensor.h"
#include "graph/io/onnx_model.h"

namespace eddy {

// Of the dense tensor.
Result<TensorLayout> layout_of(const OnnxSparseTensor& sparse, const ImportLimits& limits);

// More than can be counted is UINT64_MAX, which no budget has.
inline uint64_t dense_bytes(const TensorLayout& layout, uint64_t copies) {
  uint64_t bytes = static_cast<uint64_t>(layout.count);
  const bool is_too_large =
      __builtin_mul_overflow(bytes, copies, &bytes) ||
      __builtin_mul_overflow(bytes, element_size_bytes(layout.element), &bytes);
  return is_too_large ? UINT64_MAX : bytes;
}

// `layout` is that of the dense tensor; `indices_or_null` may be null where there are no values.
Result<DecodedTensor> decode_sparse(const TensorLayout& layout, const DecodedTensor& values,
                                    const DecodedTensor* indices_or_null);

}  // namespace eddy
