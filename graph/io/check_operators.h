// check_operators: lists, before anything is built, the operators of a model that Eddy does not
// have. Internal to graph/io.
//
// Walks the graph, the graphs in its attributes and the bodies of the functions it calls, each
// body once. Errors: kUnsupported with the first few operators (name, domain, opset, node, path
// of regions) and how many more there are. Cost: O(nodes in the file).
#pragma once

#include <string>

#include "graph/base/status.h"
#include "graph/io/function_table.h"
#include "graph/io/opset_table.h"
#include "graph/ir/op.h"

namespace eddy {

// True for the operators that the importer itself turns into nodes or constants: If, Loop, Scan ...
bool is_import_operator(const OpKey& key);
// True for an Identity that the exporter put in: another name for its input.
bool is_forward(const OnnxNode& node);
// True where the importer has a meaning for the node, which calls no function of the file.
bool is_known_operator(const OnnxNode& node, const OpKey& key, const OpTable& ops);
// The node's name for a message: its own, else its first output's, else its operator's.
std::string node_label(const OnnxNode& node);

Status check_operators(const OnnxModel& model, const FunctionTable& functions, const OpTable& ops);

}  // namespace eddy
