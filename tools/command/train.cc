// eddy train: a model's initializers, trained on rows of .npy files.
//
// Each step takes the next rows of a shuffle that --seed decides; a new one begins where fewer than
// a batch are left. Ctrl-C ends the training after the step under way, and saves; a
// failure saves --state alone.
#include <cstring>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "graph/base/fingerprint.h"
#include "graph/base/random.h"
#include "graph/io/tensor_file.h"
#include "ops/gradient/standard_gradients.h"
#include "runtime/training/model_training.h"
#include "runtime/training/trainer.h"
#include "tools/command/counted.h"
#include "tools/command/model.h"
#include "tools/command/number_check.h"
#include "tools/command/output_paths.h"
#include "tools/command/saving.h"
#include "tools/command/subcommand.h"

namespace eddy {
namespace {

struct TrainArguments {
  std::string model;
  std::string output;
  std::string log;
  std::string resume;             // a state to go on from
  std::string state;              // where it is written
  bool is_own = false;            // the model's training_info says how, no optimizer
  bool resumes_any = false;       // also one of other data, seed or batch
  std::vector<std::string> data;  // NAME=FILE
  std::string optimizer = "sgd";
  TrainingOptions options;
  int64_t batch = 0;
  int64_t steps = 0;
  double rate = 0;
  uint64_t seed = 1;
  int threads = 0;
  SavingArguments saving;
};

struct Column {
  std::string name;
  std::string path;
  HostValue rows;

  size_t row_bytes() const { return rows.bytes.size() / static_cast<size_t>(rows.dims[0]); }
};

Result<std::vector<Column>> read_columns(const std::vector<std::string>& data, const Graph& graph) {
  std::vector<Column> columns;
  for (const std::string& item : data) {
    const size_t at = item.find('=');
    Column column{item.substr(0, at), item.substr(at + 1), {}};
    ValueId input;
    for (const ValueId id : graph.inputs()) {
      if (graph.value(id).name == column.name) input = id;
    }
    if (input.is_none()) {
      return invalid_argument("--data names '" + column.name + "', which is no input of the model");
    }
    const ValueType& type = graph.value(input).type;
    EDDY_ASSIGN_OR_RETURN(column.rows, read_value(column.path, type));
    const HostValue& rows = column.rows;
    if (rows.dims.rank() == 0 || rows.dims[0] == 0) {
      return invalid_argument(column.path + ": it has no rows; the first dimension counts them");
    }
    if (type.tensor.element != rows.element) {
      return invalid_argument(
          fmt::format("{}: input '{}' is {}, but the file holds {}", column.path, column.name,
                      element_type_name(type.tensor.element), element_type_name(rows.element)));
    }
    if (!columns.empty() && columns[0].rows.dims[0] != rows.dims[0]) {
      return invalid_argument(fmt::format("{} has {} rows, but {} has {}", columns[0].path,
                                          columns[0].rows.dims[0], column.path, rows.dims[0]));
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

// The rows of each batch.
class Batches {
 public:
  Batches(size_t rows, size_t batch, uint64_t seed) : order_(rows), batch_(batch), random_(seed) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    next_ = rows;
  }

  // Passes over those that a training has seen that is resumed, unless it is interrupted.
  void skip(int64_t count, const Interrupts& interrupts) {
    for (int64_t i = 0; i < count && !interrupts.is_interrupted(); ++i) begin();
  }

  NamedTensors next(const std::vector<Column>& columns) {
    begin();
    NamedTensors values;
    for (const Column& column : columns) {
      Dims dims = column.rows.dims;
      dims[0] = static_cast<int64_t>(batch_);
      HostValue rows = HostValue::tensor(column.rows.element, dims);
      const size_t size = column.row_bytes();
      for (size_t i = 0; i < batch_ && size > 0; ++i) {
        std::memcpy(rows.bytes.data() + i * size,
                    column.rows.bytes.data() + order_[first_ + i] * size, size);
      }
      values.emplace_back(column.name, Tensor::copy_of(rows.view()));
    }
    return values;
  }

 private:
  void begin() {
    if (order_.size() - next_ < batch_) shuffle();
    first_ = next_;
    next_ += batch_;
  }
  void shuffle() {
    for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random_.next() % i]);
    next_ = 0;
  }

  std::vector<size_t> order_;
  const size_t batch_;
  Random random_;
  size_t first_ = 0, next_;  // of the batch, and of the one to come
};

// What the order and the content of batches depend on, for states.
Trainer::Conditions conditions_of(const TrainArguments& arguments,
                                  const std::vector<Column>& columns) {
  Trainer::Conditions conditions = {{"--batch", std::to_string(arguments.batch)},
                                    {"--seed", std::to_string(arguments.seed)}};
  for (const Column& column : columns) {
    Fingerprint digest;
    digest.add_bytes(column.rows.bytes.data(), column.rows.bytes.size());
    conditions.emplace_back(
        "--data " + one_line(column.name),
        fmt::format("{} rows with digest {}", column.rows.dims[0], digest.text()));
  }
  return conditions;
}

struct Trained {
  int64_t steps = 0;
  double first_loss = 0, last_loss = 0;
  bool is_interrupted = false;
};

// Steps until all are done, Ctrl-C, or a failure, which leaves what was trained before.
Status take_steps(const TrainArguments& arguments, const std::vector<Column>& columns,
                  Trainer& trainer, std::ofstream& log, Console& console, Interrupts& interrupts,
                  Trained& trained) {
  const Interrupts::Patience patience(interrupts);
  Batches batches(static_cast<size_t>(columns[0].rows.dims[0]),
                  static_cast<size_t>(arguments.batch), arguments.seed);
  batches.skip(trainer.num_steps(), interrupts);
  while (trained.steps < arguments.steps) {
    trained.is_interrupted = interrupts.is_interrupted();
    if (trained.is_interrupted) break;
    EDDY_ASSIGN_OR_RETURN(const double loss,
                          trainer.step(batches.next(columns), static_cast<float>(arguments.rate)));
    if (trained.steps == 0) trained.first_loss = loss;
    trained.last_loss = loss;
    ++trained.steps;
    if (log.is_open())
      log << Json{{"step", trainer.num_steps()}, {"loss", loss}}.dump() << std::endl;
    console.progress(
        fmt::format("step {} of {}: loss {:.6g}", trained.steps, arguments.steps, loss));
  }
  if (log.is_open() && !log.flush()) return invalid_argument(arguments.log + ": can't be written");
  return Status::ok();
}

Status open_log(const std::string& path, std::ofstream& log) {
  if (path.empty()) return Status::ok();
  log.open(path, std::ios::trunc);
  return log.is_open() ? Status::ok() : invalid_argument(path + ": can't be written");
}

Outcome report(const TrainArguments& arguments, const Trained& trained, Console& console) {
  if (console.is_json()) {
    console.print({{"steps", trained.steps},
                   {"first_loss", trained.first_loss},
                   {"last_loss", trained.last_loss},
                   {"interrupted", trained.is_interrupted},
                   {"output", arguments.output}});
  } else {
    console.say(fmt::format("{}: {}, loss {:.6g} -> {:.6g}", arguments.output,
                            counted(static_cast<size_t>(trained.steps), "step"), trained.first_loss,
                            trained.last_loss));
  }
  if (!trained.is_interrupted) return Outcome::success();
  return Outcome::of_run(cancelled("interrupted; what was trained is in " + arguments.output));
}

// By the model's own training, or by an optimizer.
Result<std::unique_ptr<Trainer>> make_trainer(const TrainArguments& arguments, Graph model,
                                              std::optional<TrainingStep> own,
                                              const Library& library) {
  const SessionOptions options{.num_threads = arguments.threads};
  if (own) return Trainer::create(library, std::move(model), std::move(*own), options);
  GradientTable rules;
  EDDY_RETURN_IF_ERROR(add_standard_gradients(rules));
  return Trainer::create(library, std::move(model), rules, arguments.options, options);
}

Outcome run_training(const TrainArguments& arguments, Graph graph, std::optional<TrainingStep> own,
                     Console& console, Interrupts& interrupts, const Library& library) {
  auto columns = read_columns(arguments.data, own ? own->graph : graph);
  if (!columns.is_ok()) return columns.take_status();
  const int64_t num_rows = columns->at(0).rows.dims[0];
  if (arguments.batch > num_rows) {
    return invalid_argument(fmt::format("--batch {} is more than the {} of the data",
                                        arguments.batch,
                                        counted(static_cast<size_t>(num_rows), "row")));
  }
  auto trainer = make_trainer(arguments, std::move(graph), std::move(own), library);
  if (!trainer.is_ok()) {
    Status status = trainer.take_status();
    status.prepend_message(arguments.model);
    return status;
  }
  if (arguments.saving.explains && !console.is_json()) {
    print_saving((*trainer)->report(), true, console);
  }
  const Trainer::Conditions conditions = conditions_of(arguments, *columns);
  if (!arguments.resume.empty()) {
    Status status = (*trainer)->load_state(arguments.resume, conditions, arguments.resumes_any);
    const bool differs = status.message().find("its training had another") != std::string::npos;
    if (differs) status.append_message("--resume-changed goes on with it");
    if (!status.is_ok()) return status;
  }
  std::ofstream log;
  if (Status status = open_log(arguments.log, log); !status.is_ok()) return status;
  Trained trained;
  Status ended = take_steps(arguments, *columns, **trainer, log, console, interrupts, trained);
  const Status finite = (*trainer)->check_parameters();
  if (ended.is_ok()) ended = finite;
  // A training that has failed may go on where it was; it has no result.
  if (ended.is_ok()) {
    if (Status status = (*trainer)->save(arguments.output); !status.is_ok()) return status;
  }
  if (!arguments.state.empty() && finite.is_ok() && (ended.is_ok() || trained.steps > 0)) {
    Status status = (*trainer)->save_state(arguments.state, conditions);
    if (!status.is_ok()) return status;
    if (!ended.is_ok()) {
      ended.append_message(fmt::format("{} has what {} trained before that, for --resume",
                                       arguments.state,
                                       counted(static_cast<size_t>(trained.steps), "step")));
    }
  }
  return ended.is_ok() ? report(arguments, trained, console) : Outcome::of_run(ended);
}

Outcome train(const TrainArguments& given, Console& console, Interrupts& interrupts) {
  TrainArguments arguments = given;
  std::vector<std::string> read = {arguments.model};
  for (const std::string& item : arguments.data) {
    const size_t at = item.find('=');
    if (at == 0 || at == std::string::npos || at + 1 == item.size()) {
      return Outcome::usage("--data takes NAME=FILE.npy, not '" + item + "'");
    }
    read.push_back(item.substr(at + 1));
  }
  // A training may go on in the file that it came from.
  const bool stays = arguments.resume == arguments.state;
  if (!arguments.resume.empty() && !stays) read.push_back(arguments.resume);
  const std::string& state = arguments.state;
  const Status paths = check_output_paths(
      {{"-o", arguments.output}, {"--log", arguments.log}, {"--state", state}}, read);
  if (!paths.is_ok()) return Outcome::usage(paths.message());
  const auto optimizer = optimizer_by_name(arguments.optimizer);
  if (!optimizer.has_value()) {
    return Outcome::usage("--optimizer is sgd, momentum, nesterov, adam or adagrad, not '" +
                          arguments.optimizer + "'");
  }
  arguments.options.optimizer = *optimizer;
  arguments.options.seed = arguments.seed;
  auto policies = arguments.saving.policies();
  if (!policies.is_ok()) return Outcome::usage(policies.status().message());
  arguments.options.save = std::move(*policies);
  const Library library;
  if (arguments.is_own) {
    auto own = read_model_training(library, arguments.model,
                                   {.loss = arguments.options.loss, .seed = arguments.seed});
    if (own.is_ok()) {
      return run_training(arguments, std::move(own->model), std::move(own->step), console,
                          interrupts, library);
    }
    if (own.status().code() != StatusCode::kNotFound) return own.take_status();
    return Outcome::usage(own.status().message() + " (--loss, --rate, --optimizer)");
  }
  ImportOptions import_options;
  import_options.warn = [&](std::string_view line) {
    console.remark(fmt::format("warning: {}: {}", arguments.model, line));
  };
  auto graph = import_file(library, arguments.model, import_options);
  if (!graph.is_ok()) return graph.take_status();
  return run_training(arguments, std::move(*graph), std::nullopt, console, interrupts, library);
}

}  // namespace

Action add_train(CLI::App& app) {
  auto arguments = std::make_shared<TrainArguments>();
  TrainArguments& a = *arguments;
  app.add_option("MODEL", a.model, "an ONNX file")->required();
  app.add_option("--loss", a.options.loss,
                 "the output to make small, of one element; a model with training_info may do "
                 "without");
  app.add_option("--data", a.data, "NAME=FILE.npy, an input's rows; once for each input")
      ->required()
      ->allow_extra_args(false);
  app.add_option("--batch", a.batch, "rows of a step")
      ->required()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  app.add_option("--steps", a.steps, "steps to take")
      ->required()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  const CLI::Option* const optimizer =
      app.add_option("--optimizer", a.optimizer, "sgd, momentum, nesterov, adam or adagrad")
          ->capture_default_str();
  const CLI::Option* const rate =
      app.add_option(
             "--rate", a.rate,
             "of learning; without it and --optimizer the model's training_info is followed")
          ->check(CLI::Range(0.0, 1e30));
  const CLI::Option* const clip =
      app.add_option("--clip", a.options.clip_norm, "bounds the norm of all gradients together")
          ->check(check_number("a bound above 0; leave it out to clip nothing", 1e-30, 1e30));
  app.add_option("--seed", a.seed, "of the rows' order, and of what the model draws at random")
      ->check(check_seed())
      ->capture_default_str();
  app.add_option("--threads", a.threads, "CPU workers; 0: one for each processor")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  add_saving_options(app, a.saving);
  app.add_flag("--exact", a.options.exact, "the same bits whatever loops save (as of gradient)");
  app.add_option("--log", a.log, "a file of JSON lines, one a step: step, loss")
      ->check(check_file_name);
  app.add_option("--state", a.state,
                 "an ONNX file for what --resume needs: parameters, optimizer states, steps taken")
      ->check(check_file_name);
  app.add_option("--resume", a.resume,
                 "goes on from such a file, with the same model, data, batch, seed and optimizer");
  app.add_flag("--resume-changed", a.resumes_any,
               "lets data, batch or seed differ from those of the state");
  app.add_option("-o,--output", a.output, "the ONNX file to write")
      ->required()
      ->check(check_file_name);
  return [arguments, optimizer, rate, clip](Console& console, Interrupts& interrupts) {
    arguments->is_own = optimizer->empty() && rate->empty();
    const bool changes_own = !clip->empty() || !arguments->saving.save.empty();
    if (arguments->is_own && changes_own) {
      return Outcome::usage(
          "--clip and --save are for trainings with --rate; what the model's "
          "training_info does is its own");
    }
    if (!arguments->is_own && (arguments->options.loss.empty() || rate->empty())) {
      return Outcome::usage(std::string(rate->empty() ? "--rate" : "--loss") +
                            " is required for a training with an optimizer");
    }
    return train(*arguments, console, interrupts);
  };
}

}  // namespace eddy
