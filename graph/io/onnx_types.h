// ONNX's types to Eddy's. Internal to graph/io.
//
// Errors: kUnsupported for maps, opaque and sparse types, ranks above kMaxRank and more than
// kMaxWrappers layers; kInvalidArgument for element types and sizes that do not exist.
#pragma once

#include <functional>
#include <string_view>

#include "graph/base/status.h"
#include "graph/io/onnx_model.h"
#include "graph/ir/types.h"

namespace eddy {

Result<ElementType> to_element_type(int32_t data_type);

// `symbol` gives the dimension that stands for a name. A size of -1 counts as unknown, as some
// exporters write it.
using SymbolFunction = std::function<int64_t(std::string_view)>;
Result<ValueType> to_value_type(const OnnxType& type, const SymbolFunction& symbol);

}  // namespace eddy
