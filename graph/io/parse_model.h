// parse_model: protobuf bytes to the structs of onnx_model.h; likewise for single tensors.
//
// The file is hostile until proved otherwise: lengths, nesting, message counts, memory and names
// are checked (a name is UTF-8 without control characters, so that messages stay one line).
//
// Errors: kInvalidArgument with the byte offset and the path of the field, "offset 57
// (graph.node[3].attribute[0].i): expected a number, found bytes"; kResourceExhausted for a limit.
// Threads: pure. Cost: O(file size) without raw tensor bytes, which are not touched.
#pragma once

#include <cstddef>
#include <span>

#include "graph/base/status.h"
#include "graph/io/import_limits.h"
#include "graph/io/memory_budget.h"
#include "graph/io/onnx_model.h"

namespace eddy {

Result<OnnxModel> parse_model(std::span<const std::byte> bytes, const ImportLimits& limits);
// The same, charged to a budget that goes on to be used; the file has been added to it.
Result<OnnxModel> parse_model(std::span<const std::byte> bytes, const ImportLimits& limits,
                              MemoryBudget& budget);
Result<OnnxTensor> parse_tensor(std::span<const std::byte> bytes, const ImportLimits& limits);

Result<OnnxValue> parse_value(std::span<const std::byte> bytes, const ImportLimits& limits);

}  // namespace eddy
