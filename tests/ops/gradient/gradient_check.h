// expect_gradient: a rule against central differences.
//
//   OpCall call;  call.op = "Mul";  call.inputs = {a, b};   // doubles
//   expect_gradient(call);
//
// The loss is the sum of all floating-point outputs times random weights; its gradient for every
// input of doubles is compared with (loss(x + h) - loss(x - h)) / 2h, element by element, to 1e-6
// relative, and every node of the gradient must have a rule of its own, or be flat. This is done
// with shapes that are known, symbolic, unknown and without rank; in the last case the rule may
// refuse, if it says that it needs the rank. Inputs named in constant_inputs are constants, all
// others the graph's inputs.
#pragma once

#include <string>

#include "graph/differentiate/differentiate.h"
#include "tests/ops/gradient/graph_runner.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {

const OpTable& gradient_ops();
const GradientTable& gradient_rules();

enum class Shapes { kStatic, kSymbolic, kUnknown, kUnranked };

// A call as a graph with the output "loss", and values for its inputs.
struct LossGraph {
  Graph graph;
  NamedValues inputs;  // those of doubles have a gradient
};
Result<LossGraph> make_loss(const OpCall& call, Shapes shapes, uint64_t seed);

// Compares "<name>.grad" of every input of doubles with differences of `output`, weighted by the
// input `seed` if that is given. Empty, or what differs first.
std::string compare_with_differences(const GradientGraph& gradient, const NamedValues& inputs,
                                     const std::string& output, const std::string& seed,
                                     double tolerance);

void expect_gradient(const OpCall& call, uint64_t seed = 1);
// Gradients of all that expect_gradient() looks at, with static and with unknown shapes.
void expect_second_order(const OpCall& call, uint64_t seed = 1);

}  // namespace eddy::testing
