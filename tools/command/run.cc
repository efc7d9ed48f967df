// eddy run: loads an ONNX model, runs it, and shows or compares what came out.
#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "graph/differentiate/gradient_report.h"
#include "graph/io/tensor_file.h"
#include "runtime/api/rank_values.h"
#include "runtime/net/gather.h"
#include "runtime/net/world.h"
#include "runtime/trace/trace_recorder.h"
#include "tools/command/compare.h"
#include "tools/command/inputs.h"
#include "tools/command/model.h"
#include "tools/command/number_check.h"
#include "tools/command/output_paths.h"
#include "tools/command/rank_options.h"
#include "tools/command/run_report.h"
#include "tools/command/share_machine.h"
#include "tools/command/split_batch.h"
#include "tools/command/subcommand.h"
#include "tools/command/values.h"

namespace eddy {
namespace {

struct RunArguments {
  std::string model;
  ModelArguments shared;
  RankArguments ranks;
  InputArguments inputs;
  uint32_t repeat = 1;
  std::string output_dir;
  std::string trace;
  double timeout_s = 0;
  Tolerance tolerance;
  std::string split;  // the dimension along which ranks share samples; empty: they do not
  bool has_inputs_on_root = false;  // rank 0 reads them for all; else each rank its own
  bool has_local_outputs = false;   // each rank's are shown; else rank 0's, or those of all joined
};

// One run, with the outputs that this process has of it.
using RunOnce = std::function<Result<NamedTensors>(const RunOptions&)>;

Result<NamedTensors> run_timed(const RunArguments& arguments, const RunOnce& once,
                               TraceRecorder* trace_or_null, RunReport& report) {
  RunOptions options;
  options.trace_or_null = trace_or_null;
  if (arguments.timeout_s > 0) {
    options.timeout = std::chrono::nanoseconds(static_cast<int64_t>(arguments.timeout_s * 1e9));
  }
  const int64_t start_ns = now_ns();
  auto outputs = once(options);
  report.runs_ns.push_back(now_ns() - start_ns);
  return outputs;
}

Status run_all(const RunArguments& arguments, const RunOnce& once, const Interrupts& interrupts,
               TraceRecorder* trace_or_null, Console& console, RunReport& report) {
  constexpr int64_t kShownNs = 100'000'000;
  int64_t shown_ns = 0;
  for (uint32_t i = 0; i < arguments.repeat; ++i) {
    // Of several ranks none leaves between runs: the next is cancelled, on all of them.
    if (interrupts.is_interrupted() && !arguments.ranks.is_one_of_several) {
      return cancelled("interrupted between runs");
    }
    if (const int64_t now = now_ns(); now - shown_ns > kShownNs) {
      console.progress(fmt::format("run {} of {}", i + 1, arguments.repeat));
      shown_ns = now;
    }
    report.outputs.clear();  // their memory is the next run's
    EDDY_ASSIGN_OR_RETURN(report.outputs, run_timed(arguments, once, trace_or_null, report));
  }
  return Status::ok();
}

// Runs `once`, which runs the session, and writes the trace whatever came of it.
Outcome run_traced(const RunArguments& arguments, Session& session, const RunOnce& once,
                   const NamedTensors& given, const std::string& hint_or_empty,
                   Interrupts& interrupts, Console& console, RunReport& report) {
  std::optional<TraceRecorder> trace;
  if (!arguments.trace.empty()) trace.emplace();
  const Interrupts::Attachment attachment(interrupts, session);
  Status status = run_all(arguments, once, interrupts, trace ? &*trace : nullptr, console, report);
  Status written = trace ? trace->write_json(arguments.trace) : Status::ok();
  if (trace && trace->num_dropped() > 0) {
    console.remark(fmt::format("trace: {} holds the last events; {} earlier ones had no room",
                               arguments.trace, trace->num_dropped()));
  }
  if (status.code() == StatusCode::kDeadlineExceeded) {
    status.append_message("give a larger --timeout");
  }
  const bool is_over_limit = status.code() == StatusCode::kResourceExhausted &&
                             status.message().find("of a limit of") != std::string::npos;
  if (is_over_limit) {
    status.append_message(find_launched_rank()
                              ? "--memory, of which each rank has its share, raises it"
                              : "--memory raises it");
    status = with_saving_advice(std::move(status), session.graph(), shapes_of(given));
  }
  const bool is_cancelled =
      status.code() == StatusCode::kCancelled || status.code() == StatusCode::kDeadlineExceeded;
  if (!hint_or_empty.empty() && !is_cancelled) status.prepend_message(hint_or_empty);
  if (!status.is_ok()) return Outcome::of_run(std::move(status));
  return written;
}

// Fails from `timeout_s` from now on.
std::function<Status()> loading_deadline(double timeout_s) {
  return [timeout_s, start_ns = now_ns()] {
    if (static_cast<double>(now_ns() - start_ns) < timeout_s * 1e9) return Status::ok();
    return deadline_exceeded(
        fmt::format("loading passed its deadline of {} s; give a larger --timeout", timeout_s));
  };
}

struct RunInputs {
  std::optional<DataSet> data_set;
  std::vector<HostValue> values;  // which `named` may borrow
  NamedTensors named;
  std::string hint;  // for runs that fail on what was made up
  const DataSet* data_set_or_null() const { return data_set ? &*data_set : nullptr; }
};

Result<RunInputs> read_inputs(const InputArguments& arguments, const ModelValues& model) {
  RunInputs inputs;
  EDDY_ASSIGN_OR_RETURN(inputs.data_set, read_data_set(arguments, model));
  EDDY_ASSIGN_OR_RETURN(inputs.values, make_inputs(arguments, model, inputs.data_set_or_null()));
  inputs.named = name_inputs(model, inputs.values);
  inputs.hint = open_inputs_text(arguments, model, inputs.data_set_or_null());
  return inputs;
}

// This rank's, or rank 0's.
Result<RunInputs> read_inputs_on_rank(const RunArguments& arguments, const ModelValues& model,
                                      World& world) {
  if (!arguments.has_inputs_on_root) return read_inputs(arguments.inputs, model);
  Result<RunInputs> own =
      world.rank() == 0 ? read_inputs(arguments.inputs, model) : Result<RunInputs>(RunInputs());
  auto spread = spread_values(world, own.is_ok() ? Result<NamedTensors>(own->named) : own.status());
  EDDY_RETURN_IF_ERROR(own.status());
  EDDY_ASSIGN_OR_RETURN(NamedTensors named, std::move(spread));
  own->named = std::move(named);
  return own;
}

Status finish_run(const RunArguments& arguments, const DataSet* data_set_or_null,
                  RunReport& report) {
  report.has_ended = true;
  if (data_set_or_null != nullptr) compare_outputs(*data_set_or_null, arguments.tolerance, report);
  return arguments.output_dir.empty() ? Status::ok() : write_outputs(arguments.output_dir, report);
}

Outcome run_session(const RunArguments& arguments, const Model& model, const RunInputs& inputs,
                    Console& console, Interrupts& interrupts, RunReport& report) {
  Session& session = *model.session;
  const RunOnce once = [&](const RunOptions& options) {
    return session.run(inputs.named, options);
  };
  Outcome outcome =
      run_traced(arguments, session, once, inputs.named, inputs.hint, interrupts, console, report);
  if (!outcome.status().is_ok()) return outcome;
  return finish_run(arguments, inputs.data_set_or_null(), report);
}

Outcome run_model(const RunArguments& arguments, const SessionOptions& options, Console& console,
                  Interrupts& interrupts) {
  const Library library;
  console.progress("loading " + one_line(arguments.model));
  auto model = load_model(library, arguments.model, options);
  if (!model.is_ok()) return model.take_status();
  for (const std::string& warning : model->warnings) console.remark(one_line(warning));
  auto inputs = read_inputs(arguments.inputs, *model->session);
  if (!inputs.is_ok()) return inputs.take_status();
  RunReport report;
  Outcome outcome = run_session(arguments, *model, *inputs, console, interrupts, report);
  if (!outcome.status().is_ok()) return outcome;
  return show(*model, report, console);
}

// Of local outputs: rank 0 says what each rank has to say, in their order. `text`: empty without
// samples; `own`: whether it is all there.
Outcome show_local(const Status& own, const std::string& text, const RunReport& report,
                   World& world, Console& console, RankReport& rank_report) {
  auto all = gather_at_first(world, own, text);
  if (!all.is_ok()) return say_shared(all.take_status(), world, console, rank_report);
  Json documents = Json::array();
  for (size_t r = 0; r < all->size(); ++r) {
    const std::string& said = (*all)[r];
    if (console.is_json()) {
      documents.push_back(said.empty() ? Json() : Json::parse(said));
    } else {
      console.say(fmt::format("rank {}:\n{}", r, said.empty() ? "no samples" : said));
    }
  }
  if (console.is_json()) console.print({{"ranks", std::move(documents)}});
  return verdict_of(report);
}

// As run_model, on one of several ranks.
Outcome run_model_on_rank(const RunArguments& arguments, const SessionOptions& options,
                          Console& console, Interrupts& interrupts, RankReport& rank_report) {
  const auto shared = [&](const Outcome& outcome) {
    return say_shared(outcome, *options.ranks.world, console, rank_report);
  };
  const Library library;
  auto model = load_model(library, arguments.model, options);
  if (!model.is_ok()) return shared(model.take_status());
  for (const std::string& warning : model->warnings) console.remark(one_line(warning));
  auto inputs = read_inputs_on_rank(arguments, *model->session, *options.ranks.world);
  const Status ready = agree_ready(options.ranks, inputs.is_ok() ? Status::ok() : inputs.status());
  if (!ready.is_ok()) return shared(ready);
  rank_report.reach(JobBoard::Stage::kRunning);
  RunReport report;
  Outcome outcome = run_session(arguments, *model, *inputs, console, interrupts, report);
  if (!outcome.status().is_ok() && !report.has_ended) return shared(outcome);
  if (arguments.has_local_outputs) {
    return show_local(outcome.status(), report_text(*model, report, console.is_json()), report,
                      *options.ranks.world, console, rank_report);
  }
  return outcome.status().is_ok() ? show(*model, report, console) : outcome;
}

// This rank's share of a batch.
struct SplitRun {
  SplitModel model;
  RunInputs inputs;  // of all samples
};

Result<SplitRun> prepare_split(const RunArguments& arguments, const Library& library,
                               const SessionOptions& options, World& world) {
  SplitRun run;
  auto model = split_model(library, arguments.model, options, arguments.split);
  // All ranks are at one of the two, or none is.
  const Status own = model.is_ok() ? Status::ok() : model.status();
  const Status ready = gather_at_first(world, own, "").status();
  EDDY_RETURN_IF_ERROR(own);
  EDDY_RETURN_IF_ERROR(ready);
  run.model = std::move(*model);
  const ModelValues whole(run.model.inputs, run.model.outputs);
  EDDY_ASSIGN_OR_RETURN(run.inputs, read_inputs_on_rank(arguments, whole, world));
  EDDY_RETURN_IF_ERROR(
      run.model.take_share(library, run.inputs.named, world.rank(), world.num_ranks(), options));
  // The parts are copies, and what all samples share is not.
  for (auto& [name, tensor] : run.model.share) {
    if (tensor.is_tensor()) tensor = Tensor::copy_of(tensor.view());
  }
  run.inputs.named.clear();
  run.inputs.values.clear();
  return run;
}

// Ranks run apart; each run ends with one status on all ranks, and all outputs on rank 0, where
// they are wanted there.
Outcome run_split_on_rank(const RunArguments& arguments, SessionOptions options, Console& console,
                          Interrupts& interrupts, RankReport& rank_report) {
  const RankOptions ranks = std::exchange(options.ranks, {});
  World& world = *ranks.world;
  const auto shared = [&](const Outcome& outcome) {
    return say_shared(outcome, world, console, rank_report);
  };
  const Library library;
  auto run = prepare_split(arguments, library, options, world);
  const Status ready = agree_ready(ranks, run.is_ok() ? Status::ok() : run.status());
  if (!ready.is_ok()) return shared(ready);
  SplitModel& split = run->model;
  for (const std::string& warning : split.warnings) console.remark(one_line(warning));
  rank_report.reach(JobBoard::Stage::kRunning);
  RunReport report;
  const RunOnce once = [&](const RunOptions& of_run) {
    return arguments.has_local_outputs ? split.run_apart(world, of_run) : split.run(world, of_run);
  };
  if (split.session == nullptr) {
    for (uint32_t i = 0; i < arguments.repeat; ++i) {
      auto outputs = once({});
      if (!outputs.is_ok()) return shared(Outcome::of_run(outputs.take_status()));
    }
    if (!arguments.has_local_outputs) return Outcome::success();
    return show_local(Status::ok(), "", report, world, console, rank_report);
  }
  Outcome outcome = run_traced(arguments, *split.session, once, run->inputs.named, run->inputs.hint,
                               interrupts, console, report);
  if (!outcome.status().is_ok()) return shared(outcome);
  const Model model{std::move(split.session), split.load_ns, {}};
  if (arguments.has_local_outputs) {
    // A data set's outputs are of all samples.
    const Status finished = finish_run(arguments, nullptr, report);
    return show_local(finished, report_text(model, report, console.is_json()), report, world,
                      console, rank_report);
  }
  if (world.rank() > 0) return Outcome::success();
  const Status finished = finish_run(arguments, run->inputs.data_set_or_null(), report);
  return finished.is_ok() ? show(model, report, console) : Outcome(finished);
}

// Names of files are this rank's own from here on.
Outcome run_on_rank(RunArguments arguments, SessionOptions options,
                    const std::shared_ptr<World>& world, const LaunchedRank& launched,
                    Console& console, Interrupts& interrupts, RankReport& rank_report) {
  options.ranks.world = world;
  const uint32_t rank = world->rank();
  // The machine is shared.
  share_machine(options, launched);
  arguments.ranks.is_one_of_several = true;
  arguments.inputs.may_lack_inputs = names_rank(arguments.model);
  arguments.model = file_of_rank(arguments.model, rank);
  for (std::string& file : arguments.inputs.files) file = file_of_rank(file, rank);
  arguments.inputs.folder = file_of_rank(arguments.inputs.folder, rank);
  for (std::string* const output : {&arguments.trace, &arguments.output_dir}) {
    if (rank > 0 && !names_rank(*output)) output->clear();
    *output = file_of_rank(*output, rank);
  }
  if (!arguments.split.empty()) {
    return run_split_on_rank(arguments, std::move(options), console, interrupts, rank_report);
  }
  return run_model_on_rank(arguments, options, console, interrupts, rank_report);
}

Outcome run_on_ranks(const RunArguments& arguments, SessionOptions options, Console& console,
                     Interrupts& interrupts) {
  auto ranks = make_rank_options(arguments.ranks, arguments.model);
  if (!ranks.is_ok()) return ranks.take_status();
  options.ranks = std::move(*ranks);
  if (const auto launched = find_launched_rank()) interrupts.be_patient(launched->rank);
  return run_as_ranks(arguments.ranks, console, interrupts,
                      [&](const auto& world, const LaunchedRank& launched, RankReport& report) {
                        return run_on_rank(arguments, options, world, launched, console, interrupts,
                                           report);
                      });
}

// Empty: they are right.
std::string why_no_rank_options(const RunArguments& arguments) {
  const bool has_ranks = wants_ranks(arguments.ranks);
  for (const auto& [is_given, option] : {std::pair(!arguments.split.empty(), "--split"),
                                         {arguments.has_inputs_on_root, "--inputs-on root"},
                                         {arguments.has_local_outputs, "--local-outputs"}}) {
    if (is_given && !has_ranks)
      return fmt::format("{} is for several ranks; give --ranks N", option);
  }
  if (!arguments.split.empty() && !arguments.has_inputs_on_root) {
    // Each rank takes its part of what all have.
    for (const std::string& item : arguments.inputs.files) {
      if (!names_rank(item)) continue;
      return fmt::format(
          "--split shares out inputs that every rank has whole, but --input {} names another file "
          "for each; give one file with all samples",
          item);
    }
  }
  if (arguments.has_local_outputs && !arguments.output_dir.empty() &&
      !names_rank(arguments.output_dir)) {
    return "--local-outputs: ranks would write to one folder; give --output-dir a name with {rank}";
  }
  return "";
}

Outcome run_either(const RunArguments& arguments, Console& console, Interrupts& interrupts) {
  if (const auto launched = find_launched_rank()) console.set_rank(launched->rank);
  auto options = make_session_options(arguments.shared);
  if (!options.is_ok()) return options.take_status();
  if (arguments.timeout_s > 0) options->check = loading_deadline(arguments.timeout_s);
  if (const std::string why = why_no_rank_options(arguments); !why.empty()) {
    return Outcome::usage(why);
  }
  if (!wants_ranks(arguments.ranks)) return run_model(arguments, *options, console, interrupts);
  if (arguments.shared.device != "cpu") {
    return Outcome::usage("--device " + arguments.shared.device +
                          " is for one rank; leave it out with --ranks");
  }
  return run_on_ranks(arguments, std::move(*options), console, interrupts);
}

}  // namespace

Action add_run(CLI::App& app) {
  auto arguments = std::make_shared<RunArguments>();
  app.add_option("MODEL", arguments->model, "an ONNX file")->required();
  app.add_option("--input", arguments->inputs.files, "NAME=FILE: an input from .npy or .pb")
      ->take_all()
      ->check(check_assignment("NAME=FILE"))
      ->allow_extra_args(false);
  app.add_option("--set", arguments->inputs.values,
                 "NAME=VALUE: a scalar input, or a full tensor of the value")
      ->take_all()
      ->check(check_assignment("NAME=VALUE"))
      ->allow_extra_args(false);
  app.add_option("--inputs", arguments->inputs.folder,
                 "a test_data_set folder; outputs are compared with its own");
  app.add_option("--random-inputs", arguments->inputs.seed, "a seed for all other inputs")
      ->check(check_seed());
  add_model_options(app, arguments->shared);
  add_planning_options(app, arguments->shared);
  add_rank_options(app, arguments->ranks);
  add_rank_run_options(app, arguments->ranks);
  app.add_option("--split", arguments->split,
                 "the dimension along which ranks share samples, each running all of the model on "
                 "its own; batch: the first one, too")
      ->check(check_filled("a dimension's name"));
  app.add_option_function<std::string>(
         "--inputs-on",
         [arguments](const std::string& where) { arguments->has_inputs_on_root = where == "root"; },
         "all: each rank reads its inputs; root: rank 0 reads them, and hands them to all")
      ->check(CLI::IsMember({"all", "root"}))
      ->default_str("all");
  app.add_flag("--local-outputs", arguments->has_local_outputs,
               "outputs stay on their ranks, each of which writes its own files and is shown; with "
               "--split those of its share, which are compared with nothing");
  app.add_option("--repeat", arguments->repeat, "how many times")
      ->check(CLI::Range(1u, 1u << 30))
      ->capture_default_str();
  app.add_option("--output-dir", arguments->output_dir, "write outputs to files in this folder");
  app.add_option("--trace", arguments->trace, "write a Chrome/Perfetto trace")
      ->check(check_file_name);
  app.add_option(
         "--timeout", arguments->timeout_s,
         "seconds after which loading, or a run, is cancelled; each run of --repeat has its own")
      ->check(check_seconds());
  app.add_option("--rtol", arguments->tolerance.rtol, "relative tolerance")
      ->check(check_tolerance())
      ->capture_default_str();
  app.add_option("--atol", arguments->tolerance.atol, "absolute tolerance")
      ->check(check_tolerance())
      ->capture_default_str();
  return [arguments](Console& console, Interrupts& interrupts) -> Outcome {
    const Status status = check_output_paths({{"--trace", arguments->trace}},
                                             files_read(arguments->model, arguments->inputs));
    if (!status.is_ok()) return Outcome::usage(status.message());
    return run_either(*arguments, console, interrupts);
  };
}

}  // namespace eddy
