// make_training_step: a graph with its gradient and the update of its parameters, as one graph.
//
//   inputs  x, ..., w, w.momentum, rate, step     outputs  loss, ..., w.next, w.momentum.next
//
// The parameters are initializers of the model; they become inputs, and the result says which
// output is to be which input of the next step, and with what it starts. `rate` is a float; `step`
// counts from 1 (Adam has it, and a model that draws random numbers, which are then a function of
// the seed, the step, the iterations of loops around and the node: keyed_random.h). With g the
// gradient, scaled down where the norm of all gradients together exceeds clip_norm:
//
//   sgd        w' = w - rate g
//   momentum   v' = momentum v + g;  w' = w - rate v'
//   nesterov   v' = momentum v + g;  w' = w - rate (g + momentum v')
//   adagrad    h' = h + g g;         w' = w - rate g / (sqrt(h') + epsilon)
//   adam       v' = beta1 v + (1 - beta1) g;  h' = beta2 h + (1 - beta2) g g
//              w' = w - rate sqrt(1 - beta2^step) / (1 - beta1^step) v' / (sqrt(h') + epsilon)
//
// (ONNX's ai.onnx.preview.training, version 1.) The graph is taken over; its symbols, outputs and
// other inputs stay. Errors: those of differentiate(); kInvalidArgument for a loss without
// initializers behind it, a parameter that is an input, a name that is taken, or a number out of
// range. Cost: as differentiate(), and one pass over memory for each parameter
// (ops/schema/eddy/update_form.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/base/status.h"
#include "graph/differentiate/differentiate.h"
#include "graph/ir/owned_tensor.h"

namespace eddy {

enum class Optimizer : uint8_t { kSgd, kMomentum, kNesterov, kAdam, kAdagrad };

// "sgd", "momentum", "nesterov", "adam", "adagrad".
std::optional<Optimizer> optimizer_by_name(std::string_view name);

struct TrainingOptions {
  std::string loss;
  std::vector<std::string> wrt = {};   // initializers; empty: all that matter to the loss
  std::vector<std::string> stop = {};  // values that count as constants
  Optimizer optimizer = Optimizer::kSgd;
  double momentum = 0.9;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double clip_norm = 0;    // 0: gradients stay as they are
  uint64_t seed = 1;       // of what the model draws
  SavePolicies save = {};  // what loops keep for their way back
  bool exact = false;      // as DifferentiateOptions::exact
};

struct TrainingBinding {
  std::string input;
  std::string output;   // feeds the input of the next step
  OwnedTensor initial;  // of the first step
  bool is_parameter = false;
};

struct TrainingStep {
  Graph graph;
  std::vector<TrainingBinding> bindings;
  GradientReport report;
  std::string loss;
  std::string rate;  // input
  std::string step;  // input; empty: nothing depends on it
};

Result<TrainingStep> make_training_step(Graph graph, const OpTable& ops, const GradientTable& rules,
                                        const TrainingOptions& options);

}  // namespace eddy
