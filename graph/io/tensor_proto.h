// Tensors and types as protobuf messages: the writing side of decode_tensor and onnx_types.
// Internal to graph/io.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "graph/io/wire_writer.h"
#include "graph/ir/tensor_view.h"
#include "graph/ir/types.h"

namespace eddy {

// TensorProto: strings as string_data, everything else as raw data, 4-bit elements packed.
WireWriter tensor_proto(const TensorView& tensor, std::string_view name);
// External data without a location: the bytes stand behind the model (ExportOptions::place).
WireWriter placed_tensor_proto(const TensorView& tensor, std::string_view name, uint64_t offset);

// TypeProto. `symbol_name` names symbolic dimensions.
using SymbolNameFunction = std::function<std::string(int64_t)>;
WireWriter type_proto(const ValueType& type, const SymbolNameFunction& symbol_name);

}  // namespace eddy
