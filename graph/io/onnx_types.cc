#include "graph/io/onnx_types.h"

#include <iterator>
#include <string>
#include <string_view>

#include "graph/base/check.h"

namespace eddy {
namespace {

Result<Dims> to_dims(const OnnxType& type, const SymbolFunction& symbol) {
  if (type.dims.size() > kMaxRank) {
    return unsupported("a shape of rank " + std::to_string(type.dims.size()) +
                       " is not supported, at most " + std::to_string(kMaxRank));
  }
  Dims dims;
  for (const OnnxDim& dim : type.dims) {
    if (dim.kind == OnnxDim::Kind::kValue && dim.value < -1) {
      return invalid_argument("a dimension has size " + std::to_string(dim.value));
    }
    switch (dim.kind) {
      case OnnxDim::Kind::kUnknown:
        dims.push_back(kUnknownDim);
        break;
      case OnnxDim::Kind::kValue:
        dims.push_back(dim.value);
        break;
      case OnnxDim::Kind::kParam:
        dims.push_back(symbol(dim.param));
        EDDY_CHECK(dims[dims.rank() - 1] < kUnknownDim) << dim.param << " is no symbol";
        break;
    }
  }
  return dims;
}

}  // namespace

Result<ElementType> to_element_type(int32_t data_type) {
  static_assert(static_cast<int>(ElementType::kInt2) + 1 == kNumElementTypes,
                "the numbers of types have no gap");
  if (data_type <= 0 || data_type >= kNumElementTypes) {
    return invalid_argument("element type " + std::to_string(data_type) + " does not exist");
  }
  return static_cast<ElementType>(data_type);
}

Result<ValueType> to_value_type(const OnnxType& type, const SymbolFunction& symbol) {
  if (type.other != nullptr) {
    return unsupported(std::string("the type ") + type.other + " is not supported");
  }
  if (!type.is_tensor) return invalid_argument("the type says nothing of its elements");
  if (type.layers.size() > kMaxWrappers) {
    return unsupported("sequences and optionals nested " + std::to_string(type.layers.size()) +
                       " deep are not supported, at most " + std::to_string(kMaxWrappers));
  }
  EDDY_ASSIGN_OR_RETURN(const ElementType element, to_element_type(type.element));
  TensorType tensor(element);
  if (type.has_shape) {
    EDDY_ASSIGN_OR_RETURN(const Dims dims, to_dims(type, symbol));
    tensor = TensorType(element, dims);
  }
  ValueType result(tensor);
  for (auto layer = type.layers.rbegin(); layer != type.layers.rend(); ++layer) {
    result = *layer == OnnxType::Layer::kSequence ? ValueType::sequence_of(result)
                                                  : ValueType::optional_of(result);
  }
  return result;
}

}  // namespace eddy
