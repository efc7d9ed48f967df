// CheckedCall: the rule of a function of other operators, asked again once sizes are known.
//
//   BiasGelu(x[?,?], bias[?])  is  y = CheckedCall(x, , , x, bias);  Gelu(Add(y, bias))
//
// The nodes that a function stands for (expansion.h) take what they take: an Add broadcasts. The
// function's own rule may allow less, and where it depends on sizes that are not known yet, the
// builder puts this operator of domain "eddy" in front of the nodes. It hands one input of the
// function on, and its own rule is the function's, so the run, and each pass that learns sizes,
// refuses what known sizes would have been refused for, by the name of the function's node.
//
// Inputs: the value that is handed on; up to two whose content the function's rule reads (those
// with InputFlag::kHostValue: what decides shapes, and indices and lengths of a range); then all
// inputs of the function, whose shapes are read. Attributes: the function's, and `checked`,
// `checked_domain`, `checked_opset` and `checked_outputs`, which say what is called.
//
// simplify drops it where nothing is left to ask. ops/schema/eddy has its definition; a table
// without it gives no checks. Errors: those of the function's rule. Threads: pure.
#pragma once

#include "graph/ir/graph.h"
#include "graph/ir/op.h"

namespace eddy {

inline constexpr const char* kCheckedCall = "CheckedCall";
inline constexpr size_t kCheckedHostValues = 2;

bool is_checked_call(const Node& node);

// The node that checks a call, which hands input `passed` on.
Node make_checked_call(const OpDef& checked_call, const Node& call, size_t num_outputs,
                       size_t passed);

// The rule of CheckedCall.
Status infer_checked_call(const OpTable& ops, InferContext& context);

// Whether a rule that has accepted what is known will accept any sizes that are not. By trials:
// with sizes that no rule asks for by chance, and with few. False where a rank, or content that
// decides shapes, is not known.
bool holds_for_all_sizes(const OpDef& def, const InferContext& known);
// The same of the rule that a CheckedCall asks.
bool is_settled_check(const OpTable& ops, const InferContext& context);

}  // namespace eddy
