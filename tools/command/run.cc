// eddy run: loads an ONNX model, runs it, and shows or compares what came out.
#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "graph/differentiate/gradient_report.h"
#include "graph/io/tensor_file.h"
#include "runtime/mpi/job_board.h"
#include "runtime/mpi/mpi_library.h"
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
                   const std::string& hint_or_empty, Interrupts& interrupts, Console& console,
                   RunReport& report) {
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
    status.append_message("--memory raises it");
    status = with_saving_advice(std::move(status), session.graph());
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
  std::vector<HostValue> values;
  const DataSet* data_set_or_null() const { return data_set ? &*data_set : nullptr; }
};

Result<RunInputs> read_inputs(const InputArguments& arguments, const Session& session) {
  RunInputs inputs;
  EDDY_ASSIGN_OR_RETURN(inputs.data_set, read_data_set(arguments, session));
  EDDY_ASSIGN_OR_RETURN(inputs.values, make_inputs(arguments, session, inputs.data_set_or_null()));
  return inputs;
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
  const NamedTensors named = name_inputs(session, inputs.values);
  Outcome outcome = run_traced(
      arguments, session, [&](const RunOptions& options) { return session.run(named, options); },
      open_inputs_text(arguments.inputs, session, inputs.data_set_or_null()), interrupts, console,
      report);
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

// What fails until the run has ended fails on all ranks, and rank 0 says it. Where the world is
// lost, each that sees it says so, and ends the job.
Outcome say_shared(const Outcome& outcome, World& world, Console& console,
                   RankReport& rank_report) {
  if (outcome.status().code() == StatusCode::kDeviceLost) {
    const int code = console.finish(outcome);
    rank_report.end(code);
    world.abort(code);
    return outcome;
  }
  console.share_failures();
  // Said before this rank leaves the world: the first process to end ends the job.
  console.finish(outcome);
  return outcome;
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
  auto inputs = read_inputs(arguments.inputs, *model->session);
  const Status ready = agree_ready(options.ranks, inputs.is_ok() ? Status::ok() : inputs.status());
  if (!ready.is_ok()) return shared(ready);
  rank_report.reach(JobBoard::Stage::kRunning);
  RunReport report;
  Outcome outcome = run_session(arguments, *model, *inputs, console, interrupts, report);
  if (outcome.status().is_ok()) return show(*model, report, console);
  return report.has_ended ? outcome : shared(outcome);
}

// This rank's share of a batch, whose inputs all ranks read whole.
struct SplitRun {
  SplitModel model;
  std::optional<DataSet> data_set;
  std::string hint;
};

Result<SplitRun> prepare_split(const RunArguments& arguments, const Library& library,
                               const SessionOptions& options, const World& world) {
  SplitRun run;
  EDDY_ASSIGN_OR_RETURN(run.model, split_model(library, arguments.model, options, arguments.split));
  const ModelValues whole(run.model.inputs, run.model.outputs);
  EDDY_ASSIGN_OR_RETURN(run.data_set, read_data_set(arguments.inputs, whole));
  const DataSet* const data_set_or_null = run.data_set ? &*run.data_set : nullptr;
  EDDY_ASSIGN_OR_RETURN(const std::vector<HostValue> values,
                        make_inputs(arguments.inputs, whole, data_set_or_null));
  run.hint = open_inputs_text(arguments.inputs, whole, data_set_or_null);
  NamedTensors named;
  for (size_t i = 0; i < values.size(); ++i) {
    named.emplace_back(run.model.inputs[i].name, borrow_value(values[i]));
  }
  EDDY_RETURN_IF_ERROR(
      run.model.take_share(library, named, world.rank(), world.num_ranks(), options));
  // The parts are copies, and what all samples share is not.
  for (auto& [name, tensor] : run.model.share) {
    if (tensor.is_tensor()) tensor = Tensor::copy_of(tensor.view());
  }
  return run;
}

// Ranks run apart; each run ends with all outputs on rank 0 and one status on all ranks.
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
  const auto gathered = [&](const Result<NamedTensors>& own) -> Result<NamedTensors> {
    EDDY_ASSIGN_OR_RETURN(const std::vector<std::string> parts,
                          gather_at_first(world, own.is_ok() ? Status::ok() : own.status(),
                                          own.is_ok() && world.rank() > 0 ? split.pack(*own) : ""));
    return world.rank() > 0 ? NamedTensors() : split.join(*own, parts);
  };
  if (split.session == nullptr) {
    for (uint32_t i = 0; i < arguments.repeat; ++i) {
      auto outputs = gathered(NamedTensors());
      if (!outputs.is_ok()) return shared(Outcome::of_run(outputs.take_status()));
    }
    return Outcome::success();
  }
  RunReport report;
  const RunOnce once = [&](const RunOptions& of_run) {
    return gathered(split.session->run(split.share, of_run));
  };
  Outcome outcome =
      run_traced(arguments, *split.session, once, run->hint, interrupts, console, report);
  if (!outcome.status().is_ok()) return shared(outcome);
  if (world.rank() > 0) return Outcome::success();
  const Status finished = finish_run(arguments, run->data_set ? &*run->data_set : nullptr, report);
  if (!finished.is_ok()) return finished;
  const Model model{std::move(split.session), split.load_ns, {}};
  return show(model, report, console);
}

// Joins the other ranks; names of files are this rank's own from here on.
Outcome run_on_rank(RunArguments arguments, SessionOptions options, const LaunchedRank& launched,
                    Console& console, Interrupts& interrupts, RankReport& rank_report) {
  auto world = join_ranks(arguments.ranks);
  if (!world.is_ok()) return world.take_status();
  options.ranks.world = std::move(*world);
  const uint32_t num_ranks = options.ranks.world->num_ranks();
  if (arguments.ranks.num_ranks > 0 && arguments.ranks.num_ranks != num_ranks) {
    console.share_failures();
    Outcome outcome(invalid_argument(
        fmt::format("--ranks {}: mpirun has started {}; leave --ranks out, or give their number",
                    arguments.ranks.num_ranks, num_ranks)));
    console.finish(outcome);
    return outcome;
  }
  const uint32_t rank = options.ranks.world->rank();
  // The machine is shared.
  share_machine(options, launched.num_local);
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
  const std::optional<LaunchedRank> launched = find_launched_rank();
  if (!launched) return lead_ranks(arguments.ranks, console, interrupts);
  interrupts.be_patient();
  RankReport report(launched->rank);
  Outcome outcome =
      run_on_rank(arguments, std::move(options), *launched, console, interrupts, report);
  // Said before the report: a launcher that reads it is not waiting for a reason.
  report.end(console.finish(outcome));
  return outcome;
}

Outcome run_either(const RunArguments& arguments, Console& console, Interrupts& interrupts) {
  if (const auto launched = find_launched_rank()) console.set_rank(launched->rank);
  auto options = make_session_options(arguments.shared);
  if (!options.is_ok()) return options.take_status();
  if (arguments.timeout_s > 0) options->check = loading_deadline(arguments.timeout_s);
  if (!arguments.split.empty() && !wants_ranks(arguments.ranks)) {
    return Outcome::usage("--split is for several ranks; give --ranks N");
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
                 "its own; batch: the first one, too");
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
