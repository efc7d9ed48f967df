// Trainer: a model whose parameters change from step to step.
//
//   EDDY_ASSIGN_OR_RETURN(auto trainer, Trainer::create(library, std::move(graph), rules,
//                                                       {.loss = "loss"}, {}));
//   EDDY_ASSIGN_OR_RETURN(double loss, trainer->step({{"x", x}, {"y", y}}, 0.1f));
//   EDDY_RETURN_IF_ERROR(trainer->save("trained.onnx"));
//
// A step is one run of the graph of make_training_step() (ops/gradient/training_step.h): forward
// pass, gradients and update. Parameters and states lie in two buffers that take turns: a step
// reads one and writes the other, so nothing is copied between steps.
//
// Errors: those of make_training_step, of sessions and of runs; kUnsupported for a loss that is
// neither float nor double; kRunFailed for one that is not finite, with the step and the first node
// of the root that made such a number. A step that fails changes nothing, and may be repeated with
// other inputs. Threads: used by one thread at a time; while a step is under way nothing but
// wait() and cancel() may be called. Ownership: borrows the library, which must outlive it.
// Destruction cancels a step that is under way and waits for its callback.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "ops/gradient/training_step.h"
#include "runtime/api/session.h"

namespace eddy {

class Trainer {
 public:
  using Callback = std::function<void(const Result<double>& loss)>;

  // `options.loss` is an output of one element.
  static Result<std::unique_ptr<Trainer>> create(const Library& library, Graph model,
                                                 const GradientTable& rules,
                                                 const TrainingOptions& options,
                                                 const SessionOptions& session_options);
  // A training that was made otherwise (model_training.h): `step` goes with `model`, whose
  // initializers are its parameters. Where it has no rate, step()'s is not looked at.
  static Result<std::unique_ptr<Trainer>> create(const Library& library, Graph model,
                                                 TrainingStep step,
                                                 const SessionOptions& session_options);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // One step, waited for: the loss before its update. Inputs: those of the model, by name.
  Result<double> step(const NamedTensors& inputs, float rate);
  // The same, begun. The callback is called once, on the session's callback thread, and may begin
  // the next step. A failure here: no step was begun, and the callback is not called.
  Status step_async(NamedTensors inputs, float rate, Callback callback);
  // Until no step is under way and the last callback has returned; not in a callback.
  void wait();
  void cancel();

  int64_t num_steps() const;  // that succeeded
  const GradientReport& report() const;
  // The parameter as it is now; valid until the next step begins. Without data: no such parameter.
  TensorView parameter(const std::string& name) const;
  std::vector<std::string> parameter_names() const;
  // kRunFailed with the first parameter that is not finite: a loss may be, whose gradient is not.
  Status check_parameters() const;
  // Another output of the model in the last step, made with the parameters before its update; valid
  // until the next step begins. Without data: no such tensor, no step yet, or the last one failed.
  TensorView output(const std::string& name) const;

  // The model with the parameters as they are: for a session that runs it, and as an ONNX file.
  // The optimizer's states are not in it: save_state() keeps them.
  Result<Graph> model() const;
  Status save(const std::string& path) const;
  // Takes the parameters from a file that save() has written, or any with initializers of these
  // names, types and shapes; states and the count of steps start anew. A failure changes nothing.
  Status load(const std::string& path);

  // What a later trainer of the same model and options needs to go on as this one would: the
  // parameters, the optimizer's states and the count of steps, as initializers of an ONNX file. A
  // failure to load changes nothing.
  //
  // Conditions are what else its steps depend on (the data, their order, ...), as names and values
  // without line breaks. They are kept, and the trainer's own with them (the seed of what the model
  // draws); a state of others is refused by the name of the first that differs, unless `any`.
  using Conditions = std::vector<std::pair<std::string, std::string>>;
  Status save_state(const std::string& path, const Conditions& conditions = {}) const;
  Status load_state(const std::string& path, const Conditions& conditions = {}, bool any = false);

 private:
  struct State;
  explicit Trainer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace eddy
