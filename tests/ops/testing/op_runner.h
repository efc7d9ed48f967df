// run_op: one operator through schema and registry, without graph or executor.
//
//   OpCall call;
//   call.op = "Add";
//   call.inputs = {a, b};
//   auto result = run_op(call, KernelSet::kCpu);     // Result<std::vector<TestValue>>
//
// A function of other operators (OpDef::expand) runs as the nodes that it stands for. Types are
// inferred by the operator's schema, outputs allocated by its result and checked against it after a
// value kernel has run. Failures of schema, bind and kernel come back as a Status.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "graph/base/status.h"
#include "graph/ir/attributes.h"
#include "graph/ir/builder.h"
#include "ops/contract/registry.h"
#include "tests/ops/testing/test_tensor.h"

namespace eddy::testing {

// The shape information that bind() receives; the kernel must be right with any.
enum class Known { kShapes, kRanks, kNothing };

enum class KernelSet { kReference, kCpu };

struct OpCall {
  std::string op;
  std::string domain;
  int opset = 17;
  Attributes attributes;
  std::vector<TestValue> inputs;  // TestValue::omitted() where an optional one is left out
  size_t num_outputs = 1;

  Known known = Known::kShapes;
  // Inputs that bind() sees as constants. Host-value inputs that are not constant reach the
  // schema only after binding.
  uint64_t constant_inputs = 0;
  // Output 0 is written over this input's buffer (a copy; the call's own tensors stay).
  int in_place_input = -1;
};

// The definition that serves a call; a test failure when there is none.
const OpDef* find_op(const OpCall& call);

// The schema's result types of the call, with everything about the inputs known.
Result<std::vector<ValueType>> infer_op(const OpCall& call);
// The same for given input types, without values: "float[2,?]" of inferred output 0.
Result<std::vector<ValueType>> infer_op_types(const OpCall& call,
                                              const std::vector<ValueType>& inputs);

// A graph of the call alone, a node by the operator's name, with inputs "input_0" (of types[0]) to
// "output_0"; constant inputs are constants, omitted ones are not there.
Result<Graph> graph_of_call(GraphBuilder& builder, const OpCall& call,
                            const std::vector<ValueType>& types);

Result<std::vector<TestValue>> run_op(const OpCall& call, KernelSet kernels);
// The same with kernels of the test's own.
Result<std::vector<TestValue>> run_op(const OpCall& call, const KernelRegistry& kernels);

// The same in two steps, for operators that are no functions: a kernel that is bound once runs
// calls which differ from that one in values and in what `known` left open. Its constants stay
// alive.
Result<BoundKernel> bind_op(const OpCall& call, KernelSet kernels);
Result<std::vector<TestValue>> run_bound(const OpCall& call, const BoundKernel& kernel);

// The first output, which must be a tensor; a test failure and an empty tensor otherwise.
TestTensor run_one(const OpCall& call, KernelSet kernels);

// True when shapes, types and values agree: numbers |a - b| <= atol + rtol * |b|, NaN equals NaN,
// strings and integers exactly.
::testing::AssertionResult is_close(const TestTensor& actual, const TestTensor& expected,
                                    double rtol, double atol);
::testing::AssertionResult is_same_bits(const TestTensor& actual, const TestTensor& expected);

// Runs the call by the CPU kernels, with shapes, only ranks, and nothing known when binding, and
// expects the reference's values each time and the same bits among the three.
void compare_with_reference(const OpCall& call, double rtol = 0, double atol = 0);
void compare_with_reference(const OpCall& call, const KernelRegistry& kernels, double rtol,
                            double atol);

}  // namespace eddy::testing
