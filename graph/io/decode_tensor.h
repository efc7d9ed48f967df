// decode_tensor: the elements of a TensorProto as a TensorView.
//
// Raw little-endian bytes are not copied: the view then points into the file, wherever they
// stand, so call is_borrowable before keeping it (the others must be copied by bytes, which needs
// no alignment). Everything else is decoded into storage owned by the result: typed fields, small
// types packed in int32_data, 4-bit elements (unpacked, int4 sign-extended), bools other than 0
// and 1 (made 1), strings.
//
// Errors: kInvalidArgument when sizes and shape do not agree, kUnsupported for segments and ranks
// above kMaxRank, kResourceExhausted above limits.max_elements.
// Threads: pure. Cost: O(1) for raw data (O(size) for bool), else O(elements).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/io/import_limits.h"
#include "graph/io/onnx_model.h"
#include "graph/ir/tensor_view.h"

namespace eddy {

struct DecodedTensor {
  ElementType element = ElementType::kUndefined;
  Dims dims;
  const void* data = nullptr;  // into the file, `bytes` or `strings`
  bool is_borrowable = false;  // in the file, and aligned to the element
  std::vector<std::byte> bytes;
  std::vector<std::string> strings;

  TensorView view() const { return {const_cast<void*>(data), dims.data(), dims.rank(), element}; }
};

// Element type and shape alone, checked.
struct TensorLayout {
  ElementType element = ElementType::kUndefined;
  Dims dims;
  int64_t count = 0;
  size_t file_bytes = 0;  // as raw data; 0 for strings
};
Result<TensorLayout> layout_of(const OnnxTensor& tensor, const ImportLimits& limits);

Result<DecodedTensor> decode_tensor(const OnnxTensor& tensor, const ImportLimits& limits);
// The same with the raw data of an external file; its size must be layout.file_bytes.
Result<DecodedTensor> decode_raw(const TensorLayout& layout, std::span<const std::byte> raw);

}  // namespace eddy
