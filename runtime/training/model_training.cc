#include "runtime/training/model_training.h"

#include <algorithm>
#include <cstring>

#include "graph/differentiate/expand_gradients.h"
#include "graph/io/import.h"
#include "graph/io/import_training.h"
#include "ops/gradient/keyed_random.h"
#include "ops/gradient/standard_gradients.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

// An output that no initializer gets, and that may be a loss.
Result<std::string> find_loss(const ImportedTraining& training) {
  std::vector<std::string> found;
  for (size_t i = 0; i < training.step.outputs().size(); ++i) {
    const std::string& name = training.step.output_names()[i];
    const ValueType& type = training.step.value(training.step.outputs()[i]).type;
    const bool is_one = type.is_tensor() && kFloatTypes.contains(type.tensor.element) &&
                        type.tensor.is_ranked && type.tensor.dims.count() == int64_t{1};
    const bool is_bound = std::ranges::count(training.updates, name, &ImportedUpdate::output) > 0;
    if (is_one && !is_bound) found.push_back(name);
  }
  if (found.size() == 1) return found[0];
  std::string names;
  for (const std::string& name : found) names += (names.empty() ? ": '" : ", '") + name + "'";
  return invalid_argument(found.empty()
                              ? "no output of the training is one number that could be its loss"
                              : "several outputs could be the loss" + names + "; name one");
}

// First values, by name of an output.
Result<NamedTensors> run_initialization(const Library& library, ImportedTraining& training) {
  if (!training.initialization.has_value()) return NamedTensors{};
  EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library, std::move(*training.initialization),
                                                      {.num_threads = 1}));
  return session->run({});
}

Status take_initial(const NamedTensors& made, ImportedUpdate& update) {
  for (const auto& [name, tensor] : made) {
    if (update.initial_output.empty() || name != update.initial_output) continue;
    const TensorView to = update.value.view();
    const bool fits = tensor.is_tensor() && tensor.element_type() == to.element &&
                      tensor.dims() == update.value.dims;
    if (!fits) {
      return invalid_argument("the initialization's '" + name + "' has another type than '" +
                              update.initializer + "', which it is bound to");
    }
    if (to.size_bytes() > 0) std::memcpy(to.data, tensor.view().data, to.size_bytes());
  }
  return Status::ok();
}

}  // namespace

Result<ModelTraining> read_model_training(const Library& library, const std::string& path,
                                          const ModelTrainingOptions& options) {
  EDDY_ASSIGN_OR_RETURN(ImportedTraining training, import_training(path, library.ops()));
  EDDY_ASSIGN_OR_RETURN(Graph model, import_onnx(path, library.ops()));
  std::string loss = options.loss;
  if (loss.empty()) {
    EDDY_ASSIGN_OR_RETURN(loss, find_loss(training));
  }
  EDDY_ASSIGN_OR_RETURN(const NamedTensors first, run_initialization(library, training));
  GradientTable rules;
  EDDY_RETURN_IF_ERROR(add_standard_gradients(rules));
  EDDY_ASSIGN_OR_RETURN(Graph graph,
                        expand_gradients(std::move(training.step), library.ops(), rules));
  std::string step_name;
  if (draws_by_key(graph)) {
    step_name = "training.step";
    EDDY_ASSIGN_OR_RETURN(graph, key_random_numbers(std::move(graph), library.ops(),
                                                    {.seed = options.seed, .step = step_name}));
  }
  TrainingStep step{std::move(graph), {}, {}, std::move(loss), "", std::move(step_name)};
  for (ImportedUpdate& update : training.updates) {
    EDDY_RETURN_IF_ERROR(take_initial(first, update));
    step.bindings.push_back(
        {update.initializer, update.output, std::move(update.value), update.is_of_model});
  }
  return ModelTraining{std::move(model), std::move(step)};
}

}  // namespace eddy
