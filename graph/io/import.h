// import_onnx: an ONNX file becomes a graph.
//
// Reads opsets 1 to 28 of domain "" (also called "ai.onnx"), 1 to 5 of "ai.onnx.ml", domain eddy
// (EDDY_DOMAIN.md) and whatever else the OpTable holds; which definition of an operator holds is
// decided by (domain, operator, opset). If, Loop, Scan (8 and 9+) and SequenceMap become case-of
// and while nodes, FlexAttention products around its graphs; model-local functions are inlined;
// Constant nodes and initializers become constants, whose bytes stay in the (mapped) file where
// alignment allows.
//
//   - A graph input that has an initializer (a default, ONNX IR < 4) is a constant, not an input
//     of the graph; import_onnx_into() can override it.
//   - Inner definitions hide outer ones of the same name. Nodes may stand in any order.
//   - A '%' and a number at the end of a name are the exporter's and not kept.
//   - An omitted Loop condition means "always true", whatever the body's own condition is.
//   - Scan inputs of unequal length are an error of the run.
//
// The file must not be shortened while the graph lives (see file_bytes.h).
//
// Errors: kNotFound, kInvalidArgument, kResourceExhausted (ImportLimits), and kUnsupported: all
// unknown operators are collected into one message. Messages name the file, the node and the
// path of regions. Threads: pure. Cost: O(file size without tensor data + nodes built).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/io/file_bytes.h"
#include "graph/io/import_operators.h"
#include "graph/io/import_options.h"
#include "graph/ir/builder.h"
#include "graph/ir/graph.h"

namespace eddy {

Result<Graph> import_onnx(const std::string& path, const OpTable& ops,
                          const ImportOptions& options = {});

// From memory; the bytes are copied.
Result<Graph> import_onnx_bytes(std::span<const std::byte> bytes, const OpTable& ops,
                                const ImportOptions& options = {});
// The graph keeps the bytes, as long as constants stand in them.
Result<Graph> import_onnx_blob(std::shared_ptr<FileBytes> bytes, const OpTable& ops,
                               const ImportOptions& options = {});

// Adds the model's nodes to the builder's innermost open region, as if its text stood there, and
// returns its outputs in the file's order. Every graph input without a default must be given,
// others may be. The values' names are kept as they are. On failure the builder has failed, too,
// with the same status, which names the file, and nothing of what was added is taken back: give
// the builder up.
Result<std::vector<NamedValue>> import_onnx_into(GraphBuilder& builder, const std::string& path,
                                                 const OpTable& ops,
                                                 std::span<const NamedValue> inputs,
                                                 const ImportOptions& options = {});

}  // namespace eddy
