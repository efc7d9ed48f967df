// fused_kernel_source: the source of one kernel that applies an Expression to each element.
//
// Why text, compiled when a program is bound, and not templates: a chain of n operators over t
// types has (operators × t)^n forms, so a fixed set of templates serves only chains known in
// advance, and an interpreter in the kernel pays a branch and a trip through local memory for each
// step. Text serves all chains with straight-line code in registers. Its cost, some 100 ms a kernel
// once a machine, is paid when binding and cached on disk (kernel_compiler.h).
// Sources: TVM (OSDI 2018) and XLA generate code for fused elementwise operators likewise; NVIDIA's
// NVRTC guide for the compiler.
//
// The same bits as from one kernel a node: each step is rounded to its type by store(), the
// functions are those of scalar_ops.h and unary_ops.h, and nothing is contracted into a fused
// multiply-add across steps: both these kernels and those of elementwise.cu and activations.cu are
// compiled with --fmad=false (functions of the device's library use theirs explicitly).
//
// Contract: pure; equal expressions of equal types have equal sources and names. Errors:
// kInvalidArgument for what names no function of elements, or types that do not meet it: the
// program of an eddy.Fused node may come from a file. Cost: O(steps).
#pragma once

#include <span>
#include <string>

#include "graph/base/status.h"
#include "graph/ir/expression.h"
#include "graph/ir/types.h"

namespace eddy::cuda {

struct KernelSource {
  std::string name;  // of the kernel: "eddy_fused_" and 32 digits that stand for the text
  std::string text;  // C++, which includes headers of ops/cuda (kernel_headers.h)
  // It decides loops: then it is loaded as the device's assembler, whose calls the driver resolves.
  bool decides = false;
};

// The text of one function, `EDDY_HD static void <name>(<inputs>, <result>&…)`, that an expression
// is. `outputs`: one for each of its results.
Result<std::string> expression_function(const std::string& name, const Expression& expression,
                                        std::span<const ElementType> inputs,
                                        std::span<const ElementType> outputs);

Result<KernelSource> fused_kernel_source(const Expression& expression,
                                         std::span<const ElementType> inputs,
                                         std::span<const ElementType> outputs);

}  // namespace eddy::cuda
