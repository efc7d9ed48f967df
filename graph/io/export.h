// export_onnx: a graph becomes an ONNX file that import_onnx() reads back as an equal graph, and
// that any ONNX viewer opens.
//
// Constants become initializers of the main graph. A while node whose `before` region only
// forwards becomes Loop (its predicate is the first carried value, or always true), any other
// eddy.While; a case-of on a bool with two regions becomes If, any other eddy.CaseOf. Written for
// the sake of the way back: names made unique by a '%' and a number, Identity nodes marked
// "eddy.forward" where ONNX wants a result to have a producer and a name of its own, and domain
// "eddy.onnx.<opset>" for operators that keep another opset than most of the graph. EDDY_DOMAIN.md
// describes all of this.
//
// Errors: kUnsupported for what ONNX can't express (an output with the name of another input, one
// custom domain in two versions); kResourceExhausted above protobuf's 2 GiB; kInvalidArgument
// when the file can't be written or the graph has released constants. Threads: pure. Cost: O(graph
// + bytes of constants).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

Status export_onnx(const Graph& graph, const std::string& path);

struct ExportOptions {
  // Where a constant's bytes stand in data that lie behind the model in one file
  // (ImportOptions::data_begin); nullopt: in the model. Asked for each initializer, in their order.
  std::function<std::optional<uint64_t>(ConstantId)> place = {};
};

// The file's content.
Result<std::string> format_onnx(const Graph& graph, const ExportOptions& options = {});

}  // namespace eddy
