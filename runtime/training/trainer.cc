#include "runtime/training/trainer.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "graph/base/check.h"
#include "graph/io/export.h"
#include "graph/io/import.h"
#include "graph/ir/builder.h"
#include "ops/gradient/keyed_random.h"
#include "runtime/training/rebuilt_model.h"

namespace eddy {
namespace {

// Of floating-point types; others have no such elements.
bool is_finite(const TensorView& view) {
  const auto all = [&](const auto* data) {
    const int64_t count = view.count();
    return std::all_of(data, data + count, [](auto x) { return std::isfinite(x); });
  };
  if (view.element == ElementType::kFloat) return all(static_cast<const float*>(view.data));
  if (view.element == ElementType::kDouble) return all(static_cast<const double*>(view.data));
  return true;
}

double loss_in(const TensorView& view) {
  EDDY_DCHECK(view.element == ElementType::kFloat || view.element == ElementType::kDouble)
      << "a loss of type " << element_type_name(view.element);
  return view.element == ElementType::kDouble ? *static_cast<const double*>(view.data)
                                              : double{*static_cast<const float*>(view.data)};
}

size_t index_of(const std::vector<ValueDescription>& all, const std::string& name) {
  const auto at = std::ranges::find(all, name, &ValueDescription::name);
  return static_cast<size_t>(at - all.begin());
}

// The initializer of that name and type.
Result<Constant> find_constant(const Graph& graph, const std::string& path, std::string_view name,
                               const TensorType& type) {
  for (uint32_t v = 0; v < graph.num_values(); ++v) {
    const ValueInfo& info = graph.value(ValueId(v));
    if (info.origin != ValueOrigin::kConstant || info.name != name) continue;
    const Constant& constant = graph.constant(info.constant);
    if (constant.element == type.element && constant.dims == type.dims) return constant;
  }
  return invalid_argument(path + ": it has no initializer '" + std::string(name) + "' of type " +
                          to_string(type));
}

// The initializer of that name, if it holds bytes.
TensorView bytes_or_none(const Graph& graph, std::string_view name) {
  static constexpr int64_t kNone = 0;
  for (uint32_t v = 0; v < graph.num_values(); ++v) {
    const ValueInfo& info = graph.value(ValueId(v));
    if (info.origin != ValueOrigin::kConstant || info.name != name) continue;
    const Constant& constant = graph.constant(info.constant);
    if (constant.element == ElementType::kUint8) return constant.view();
  }
  return {nullptr, &kNone, 1, ElementType::kUint8};
}

constexpr char kStepsName[] = "training.steps";

constexpr char kConditionsName[] = "training.conditions";

// A line for each: name, tab, value.
std::string text_of(const Trainer::Conditions& conditions) {
  std::string text;
  for (const auto& [name, value] : conditions) text += name + "\t" + value + "\n";
  return text;
}

// Of a file's bytes, whatever they are.
Trainer::Conditions conditions_in(std::string_view text) {
  Trainer::Conditions conditions;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t tab = std::min(line.size(), line.find('\t'));
    conditions.emplace_back(line.substr(0, tab), line.substr(std::min(line.size(), tab + 1)));
  }
  return conditions;
}

// The first condition that differs, or is there on one side alone.
Status compare_conditions(const std::string& path, const Trainer::Conditions& kept,
                          const Trainer::Conditions& now) {
  const auto value_of = [](const Trainer::Conditions& all, const std::string& name) {
    const auto at = std::ranges::find(all, name, &Trainer::Conditions::value_type::first);
    return at == all.end() ? std::string("none") : at->second;
  };
  for (const Trainer::Conditions* const all : {&kept, &now}) {
    for (const auto& [name, value] : *all) {
      const std::string was = value_of(kept, name), is = value_of(now, name);
      if (was == is) continue;
      return invalid_argument(path + ": its training had another " + name + ": " + was +
                              ", and now " + is);
    }
  }
  return Status::ok();
}

std::string optimizer_name(Optimizer optimizer) {
  constexpr const char* kNames[] = {"sgd", "momentum", "nesterov", "adam", "adagrad"};
  static_assert(std::size(kNames) == static_cast<size_t>(Optimizer::kAdagrad) + 1,
                "a name for each");
  return kNames[static_cast<size_t>(optimizer)];
}

// In a file of states, as its own name: which optimizer they are of.
std::string optimizer_mark(const std::string& optimizer) {
  return "training.optimizer." + optimizer;
}

}  // namespace

struct Trainer::State {
  struct Kept {
    TrainingBinding binding;  // its `initial` is one of the buffers
    OwnedTensor other;
    size_t input, output;

    const OwnedTensor& current(int turn) const { return turn == 0 ? binding.initial : other; }
    const OwnedTensor& next(int turn) const { return turn == 0 ? other : binding.initial; }
  };

  State(const Library& library, Graph model) : library(&library), model(std::move(model)) {}

  const Library* library;
  Graph model;
  std::vector<Kept> kept;
  std::string rate_name, step_name;
  std::string optimizer = "of the model";
  uint64_t seed = 0;  // of what the model draws; 0: nothing
  GradientReport report;
  float rate = 0;
  int64_t count = 1;  // of the step to come
  int turn = 0;
  size_t loss_output = 0;
  std::unique_ptr<Session> session;
  std::unique_ptr<Call> call;  // before the session
  NamedTensors inputs;         // of the step under way
  std::mutex mutex;
  std::condition_variable ended;
  int num_under_way = 0;  // steps begun whose callback has not returned

  Status make_call();
  Status bind(const NamedTensors& given, float new_rate);
  Result<double> finish(const Status& run, const NamedTensors& given);
  Result<Graph> as_in_steps() const;
  Status explain(double loss, const NamedTensors& given) const;
  ParameterViews parameters() const;
  Conditions with_own(Conditions conditions) const {
    if (seed != 0) conditions.emplace_back("seed of random numbers", std::to_string(seed));
    return conditions;
  }
  // Of a file's initializers: all or none.
  Status take_from(const Graph& graph, const std::string& path, bool with_states);
  void add_under_way(int change) {
    std::lock_guard lock(mutex);
    num_under_way += change;
    EDDY_DCHECK(num_under_way >= 0) << "a step ends that was not begun";
    if (num_under_way == 0) ended.notify_all();
  }
};

Status Trainer::State::make_call() {
  EDDY_ASSIGN_OR_RETURN(call, session->prepare());
  for (Kept& each : kept) {
    each.input = index_of(session->inputs(), each.binding.input);
    each.output = index_of(session->outputs(), each.binding.output);
  }
  const auto scalar = [&](const std::string& name, void* data, ElementType element) {
    return call->bind_input(index_of(session->inputs(), name),
                            TensorView{data, nullptr, 0, element});
  };
  if (!rate_name.empty()) EDDY_RETURN_IF_ERROR(scalar(rate_name, &rate, ElementType::kFloat));
  if (step_name.empty()) return Status::ok();
  return scalar(step_name, &count, ElementType::kInt64);
}

// The step's inputs, and the buffers as its turn has them.
Status Trainer::State::bind(const NamedTensors& given, float new_rate) {
  if (!std::isfinite(new_rate)) return invalid_argument("the rate must be a finite number");
  std::vector<std::string> expected;
  for (const ValueDescription& input : session->inputs()) {
    const bool is_own = input.name == rate_name || input.name == step_name ||
                        std::ranges::any_of(kept, [&](const Kept& each) {
                          return each.binding.input == input.name;
                        });
    if (!is_own) expected.push_back(input.name);
  }
  for (const std::string& name : expected) {
    if (std::ranges::count(given, name, &NamedTensors::value_type::first) == 1) continue;
    return invalid_argument("a step needs input '" + name + "' once");
  }
  for (const auto& [name, tensor] : given) {
    if (std::ranges::find(expected, name) == expected.end()) {
      return invalid_argument("a step has no input '" + name + "' to give");
    }
    EDDY_RETURN_IF_ERROR(call->bind_input(index_of(session->inputs(), name), tensor));
  }
  for (const Kept& each : kept) {
    EDDY_RETURN_IF_ERROR(call->bind_input(each.input, each.current(turn).view()));
    EDDY_RETURN_IF_ERROR(call->bind_output(each.output, each.next(turn).view()));
  }
  rate = new_rate;
  return Status::ok();
}

Result<double> Trainer::State::finish(const Status& run, const NamedTensors& given) {
  if (!run.is_ok()) return with_saving_advice(run, session->graph(), shapes_of(given));
  const double loss = loss_in(call->output(loss_output));
  if (!std::isfinite(loss)) return explain(loss, given);
  EDDY_DCHECK(turn == 0 || turn == 1) << "turn " << turn << " of two buffers";
  turn = 1 - turn;
  ++count;
  return loss;
}

ParameterViews Trainer::State::parameters() const {
  ParameterViews views;
  for (const Kept& each : kept) {
    if (each.binding.is_parameter) views[each.binding.input] = each.current(turn).view();
  }
  return views;
}

Status Trainer::State::take_from(const Graph& graph, const std::string& path, bool with_states) {
  std::vector<std::pair<const OwnedTensor*, Constant>> found;
  for (const Kept& each : kept) {
    if (!each.binding.is_parameter && !with_states) continue;
    const OwnedTensor& to = each.current(turn);
    EDDY_ASSIGN_OR_RETURN(const Constant constant,
                          find_constant(graph, path, each.binding.input, {to.element, to.dims}));
    found.emplace_back(&to, constant);
  }
  for (const auto& [to, constant] : found) {
    const TensorView from = constant.view();
    if (from.size_bytes() > 0) std::memcpy(to->bytes.get(), from.data, from.size_bytes());
  }
  return Status::ok();
}

// The model, which draws what the steps draw.
Result<Graph> Trainer::State::as_in_steps() const {
  if (seed == 0) return model.copy();
  return key_random_numbers(model.copy(), library->ops(), {.seed = seed, .step = step_name});
}

// Runs the forward pass again with all values of the root as outputs.
Status Trainer::State::explain(double loss, const NamedTensors& given) const {
  const std::string what =
      "the loss is " + std::to_string(loss) + " in step " + std::to_string(count);
  const auto failure = [&](const std::string& why) { return run_failed(what + why); };
  for (const auto& [name, tensor] : given) {
    if (tensor.is_tensor() && !is_finite(tensor.view())) {
      return failure("; input '" + name + "' holds numbers that are not finite");
    }
  }
  for (const auto& [name, view] : parameters()) {
    if (!is_finite(view)) return failure("; parameter '" + name + "' is not finite any more");
  }
  const std::string advice = "; a smaller rate or clipped gradients may help";
  const auto drawn = as_in_steps();
  if (!drawn.is_ok()) return failure(advice);
  auto probed = with_probes(*drawn, library->ops(), parameters());
  if (!probed.is_ok()) return failure(advice);
  auto probe = Session::create(*library, std::move(probed->graph), {.num_threads = 1});
  if (!probe.is_ok()) return failure(advice);
  NamedTensors wanted, all = given;
  if (!step_name.empty()) all.emplace_back(step_name, Tensor::scalar(count));
  for (const auto& item : all) {
    if (index_of((*probe)->inputs(), item.first) < (*probe)->inputs().size()) {
      wanted.push_back(item);
    }
  }
  const auto values = (*probe)->run(wanted);
  if (!values.is_ok()) return failure(advice);
  EDDY_DCHECK(values->size() == probed->makers.size())
      << values->size() << " values of " << probed->makers.size() << " nodes";
  for (size_t i = 0; i < values->size(); ++i) {
    const Tensor& value = (*values)[i].second;
    if (value.is_tensor() && !is_finite(value.view())) {
      return failure("; node '" + probed->makers[i] + "' was the first to make such a number" +
                     advice);
    }
  }
  return failure(advice);
}

Result<std::unique_ptr<Trainer>> Trainer::create(const Library& library, Graph model,
                                                 const GradientTable& rules,
                                                 const TrainingOptions& options,
                                                 const SessionOptions& session_options) {
  const bool draws = draws_by_key(model);
  Graph original = model.copy();
  EDDY_ASSIGN_OR_RETURN(TrainingStep step,
                        make_training_step(std::move(model), library.ops(), rules, options));
  EDDY_ASSIGN_OR_RETURN(auto trainer,
                        create(library, std::move(original), std::move(step), session_options));
  trainer->state_->optimizer = optimizer_name(options.optimizer);
  trainer->state_->seed = draws ? options.seed : 0;
  return trainer;
}

Result<std::unique_ptr<Trainer>> Trainer::create(const Library& library, Graph model,
                                                 TrainingStep step,
                                                 const SessionOptions& session_options) {
  auto state = std::make_unique<State>(library, std::move(model));
  const std::string loss = step.loss;
  state->rate_name = step.rate;
  state->step_name = step.step;
  state->report = std::move(step.report);
  for (TrainingBinding& binding : step.bindings) {
    const size_t size = binding.initial.view().size_bytes();
    OwnedTensor other{binding.initial.element, binding.initial.dims,
                      std::make_unique<std::byte[]>(size)};
    state->kept.push_back({std::move(binding), std::move(other), 0, 0});
  }
  EDDY_ASSIGN_OR_RETURN(state->session,
                        Session::create(library, std::move(step.graph), session_options));
  state->loss_output = index_of(state->session->outputs(), loss);
  if (state->loss_output == state->session->outputs().size()) {
    return invalid_argument("the loss '" + loss + "' must be an output of the model");
  }
  const ElementType element = state->session->outputs()[state->loss_output].type.tensor.element;
  if (element != ElementType::kFloat && element != ElementType::kDouble) {
    return unsupported("the loss '" + loss + "' must be float or double; cast it");
  }
  EDDY_RETURN_IF_ERROR(state->make_call());
  return std::unique_ptr<Trainer>(new Trainer(std::move(state)));
}

Trainer::Trainer(std::unique_ptr<State> state) : state_(std::move(state)) {
  EDDY_CHECK(state_->session != nullptr && state_->call != nullptr) << "steps have nothing to run";
}
Trainer::~Trainer() {
  cancel();
  wait();
}

Result<double> Trainer::step(const NamedTensors& inputs, float rate) {
  EDDY_RETURN_IF_ERROR(state_->bind(inputs, rate));
  return state_->finish(state_->call->run(), inputs);
}

Status Trainer::step_async(NamedTensors inputs, float rate, Callback callback) {
  state_->inputs = std::move(inputs);
  EDDY_RETURN_IF_ERROR(state_->bind(state_->inputs, rate));
  state_->add_under_way(1);
  Status begun = state_->call->submit(
      {}, [state = state_.get(), callback = std::move(callback)](const Status& run) {
        callback(state->finish(run, NamedTensors(state->inputs)));
        state->add_under_way(-1);
      });
  if (!begun.is_ok()) state_->add_under_way(-1);
  return begun;
}

void Trainer::wait() {
  std::unique_lock lock(state_->mutex);
  state_->ended.wait(lock, [this] { return state_->num_under_way == 0; });
}
void Trainer::cancel() { state_->call->cancel(); }

int64_t Trainer::num_steps() const { return state_->count - 1; }

const GradientReport& Trainer::report() const { return state_->report; }

TensorView Trainer::parameter(const std::string& name) const {
  for (const State::Kept& each : state_->kept) {
    const bool is_it = each.binding.is_parameter && each.binding.input == name;
    if (is_it) return each.current(state_->turn).view();
  }
  return {};
}

std::vector<std::string> Trainer::parameter_names() const {
  std::vector<std::string> names;
  for (const State::Kept& each : state_->kept) {
    if (each.binding.is_parameter) names.push_back(each.binding.input);
  }
  return names;
}

Status Trainer::check_parameters() const {
  for (const auto& [name, view] : state_->parameters()) {
    if (is_finite(view)) continue;
    return run_failed("parameter '" + name + "' is not finite after step " +
                      std::to_string(num_steps()) +
                      "; a smaller rate or clipped gradients may help");
  }
  return Status::ok();
}

TensorView Trainer::output(const std::string& name) const {
  return state_->call->output(index_of(state_->session->outputs(), name));
}

Result<Graph> Trainer::model() const {
  return with_parameters(state_->model, state_->library->ops(), state_->parameters());
}

Status Trainer::save(const std::string& path) const {
  EDDY_ASSIGN_OR_RETURN(const Graph graph, model());
  return export_onnx(graph, path);
}

Status Trainer::load(const std::string& path) {
  EDDY_ASSIGN_OR_RETURN(const Graph graph, import_onnx(path, state_->library->ops(), {}));
  EDDY_RETURN_IF_ERROR(state_->take_from(graph, path, /*with_states=*/false));
  for (State::Kept& each : state_->kept) {
    const OwnedTensor& current = each.current(state_->turn);
    if (!each.binding.is_parameter && current.view().size_bytes() > 0) {
      std::memset(current.bytes.get(), 0, current.view().size_bytes());
    }
  }
  state_->count = 1;
  return Status::ok();
}

Status Trainer::save_state(const std::string& path, const Conditions& conditions) const {
  GraphBuilder builder(state_->library->ops(), "training state");
  const auto add = [&](const std::string& name, const TensorView& view) {
    builder.output(name + ".saved", builder.constant(view, name));
  };
  for (const State::Kept& each : state_->kept) {
    add(each.binding.input, each.current(state_->turn).view());
  }
  int64_t steps = num_steps();
  add(kStepsName, {&steps, nullptr, 0, ElementType::kInt64});
  bool is_it = true;
  add(optimizer_mark(state_->optimizer), {&is_it, nullptr, 0, ElementType::kBool});
  std::string text = text_of(state_->with_own(conditions));
  const int64_t size = static_cast<int64_t>(text.size());
  add(kConditionsName, {text.data(), &size, 1, ElementType::kUint8});
  EDDY_ASSIGN_OR_RETURN(const Graph graph, builder.finish());
  return export_onnx(graph, path);
}

Status Trainer::load_state(const std::string& path, const Conditions& conditions, bool any) {
  EDDY_ASSIGN_OR_RETURN(const Graph graph, import_onnx(path, state_->library->ops(), {}));
  const auto steps = find_constant(graph, path, kStepsName, {ElementType::kInt64, Dims{}});
  if (!steps.is_ok()) {
    return invalid_argument(path + ": it holds no state of a training (of --state, save_state())");
  }
  const std::string mark = optimizer_mark(state_->optimizer);
  if (!find_constant(graph, path, mark, {ElementType::kBool, Dims{}}).is_ok()) {
    return invalid_argument(path + ": its state is of another optimizer than " + state_->optimizer);
  }
  const int64_t count = *steps->view().as<int64_t>();
  if (count < 0) return invalid_argument(path + ": it counts " + std::to_string(count) + " steps");
  if (!any) {
    const TensorView text = bytes_or_none(graph, kConditionsName);
    const std::string_view kept(static_cast<const char*>(text.data), text.size_bytes());
    EDDY_RETURN_IF_ERROR(
        compare_conditions(path, conditions_in(kept), state_->with_own(conditions)));
  }
  EDDY_RETURN_IF_ERROR(state_->take_from(graph, path, /*with_states=*/true));
  state_->count = count + 1;
  return Status::ok();
}

}  // namespace eddy
