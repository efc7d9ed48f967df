// eddy run: loads an ONNX model, runs it, and shows or compares what came out.
#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "graph/differentiate/gradient_report.h"
#include "graph/io/tensor_file.h"
#include "runtime/mpi/job_board.h"
#include "runtime/mpi/mpi_library.h"
#include "runtime/net/world.h"
#include "runtime/trace/trace_recorder.h"
#include "tools/command/compare.h"
#include "tools/command/inputs.h"
#include "tools/command/model.h"
#include "tools/command/number_check.h"
#include "tools/command/output_paths.h"
#include "tools/command/rank_options.h"
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
};

struct RunReport {
  NamedTensors outputs;
  std::vector<int64_t> runs_ns;
  std::vector<std::string> differences;
  bool is_compared = false;
  std::vector<std::string> files;  // by output; empty where none was written
  bool has_ended = false;          // all runs went well
};

Result<NamedTensors> run_once(const RunArguments& arguments, Session& session,
                              const NamedTensors& inputs, TraceRecorder* trace_or_null,
                              RunReport& report) {
  RunOptions options;
  options.trace_or_null = trace_or_null;
  if (arguments.timeout_s > 0) {
    options.timeout = std::chrono::nanoseconds(static_cast<int64_t>(arguments.timeout_s * 1e9));
  }
  const int64_t start_ns = now_ns();
  auto outputs = session.run(inputs, options);
  report.runs_ns.push_back(now_ns() - start_ns);
  return outputs;
}

Status run_all(const RunArguments& arguments, Session& session, const NamedTensors& inputs,
               const Interrupts& interrupts, TraceRecorder* trace_or_null, Console& console,
               RunReport& report) {
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
    EDDY_ASSIGN_OR_RETURN(report.outputs,
                          run_once(arguments, session, inputs, trace_or_null, report));
  }
  return Status::ok();
}

void compare_outputs(const DataSet& data_set, const Tolerance& tolerance, RunReport& report) {
  for (size_t i = 0; i < data_set.outputs.size() && i < report.outputs.size(); ++i) {
    if (!data_set.outputs[i]) continue;
    report.is_compared = true;
    const auto& [name, tensor] = report.outputs[i];
    if (auto text = find_difference(copy_value(tensor), *data_set.outputs[i], tolerance)) {
      report.differences.push_back(fmt::format("output {} {}", name, *text));
    }
  }
}

// A name as a file's: letters, digits, '.', '_' and '-', not starting with a dot.
std::string file_stem(const std::string& name) {
  std::string stem = name.substr(0, 200);
  for (char& c : stem) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    if (!is_plain) c = '_';
  }
  if (stem.empty() || stem[0] == '.') stem.insert(stem.begin(), '_');
  return stem;
}

// .npy where NumPy has such values, else .pb.
Status write_outputs(const std::string& folder, RunReport& report) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return invalid_argument(
        fmt::format("--output-dir {}: cannot make this folder: {}", folder, error.message()));
  }
  std::set<std::string> stems;
  for (const auto& [name, tensor] : report.outputs) {
    std::string& file = report.files.emplace_back();
    if (tensor.kind() == ValueKind::kNone) continue;
    std::string stem = file_stem(name);
    while (!stems.insert(stem).second) stem += "_";
    const HostValue value = copy_value(tensor);
    const std::string path = (std::filesystem::path(folder) / stem).string();
    file = path + (format_npy(value).is_ok() ? ".npy" : ".pb");
    EDDY_RETURN_IF_ERROR(write_value(file, value));
  }
  return Status::ok();
}

Json output_json(const Tensor& tensor, const std::string& file) {
  if (file.empty()) return value_json(tensor);
  if (!tensor.is_tensor()) return {{"file", file}};
  const std::span<const int64_t> shape = tensor.dims().span();
  return {{"dtype", element_type_name(tensor.element_type())},
          {"shape", std::vector<int64_t>(shape.begin(), shape.end())},
          {"file", file}};
}

uint64_t arena_bytes(const Plan& plan) {
  uint64_t bytes = 0;
  for (const MemoryArena& arena : plan.memory.arenas) bytes += arena.size_bytes;
  return bytes;
}

Json report_json(const Model& model, const RunReport& report) {
  Json outputs = Json::object();
  for (size_t i = 0; i < report.outputs.size(); ++i) {
    const auto& [name, tensor] = report.outputs[i];
    outputs[name] = output_json(tensor, report.files.empty() ? "" : report.files[i]);
  }
  Json loops = Json::array();
  for (const LoopReport& loop : model.session->loop_reports()) {
    loops.push_back({{"path", loop.path},
                     {"iterations", loop.iterations},
                     {"driven", loop.driven},
                     {"reason", loop.reason}});
  }
  Json document = {
      {"outputs", std::move(outputs)},
      {"times_ns",
       {{"load", model.load_ns}, {"plan", model.session->plan_ns()}, {"runs", report.runs_ns}}},
      {"loops", std::move(loops)},
      {"fingerprint", model.session->fingerprint()},
      {"memory",
       {{"peak_bytes", model.session->memory().peak_bytes},
        {"arena_bytes", arena_bytes(model.session->plan())},
        {"workspace_bytes", model.session->workspace_bytes()}}}};
  if (report.is_compared) document["matched"] = report.differences.empty();
  if (!report.differences.empty()) document["differences"] = report.differences;
  return document;
}

std::string times_text(const std::vector<int64_t>& runs_ns) {
  std::vector<int64_t> sorted = runs_ns;
  std::sort(sorted.begin(), sorted.end());
  const auto text = [](int64_t ns) { return duration_text(static_cast<double>(ns)); };
  if (sorted.size() == 1) return text(sorted[0]);
  return fmt::format("{} (best of {}; median {}, worst {})", text(sorted[0]), sorted.size(),
                     text(sorted[sorted.size() / 2]), text(sorted.back()));
}

void say_report(const Model& model, const RunReport& report, Console& console) {
  constexpr int64_t kMaxElements = 100;
  for (size_t i = 0; i < report.outputs.size(); ++i) {
    const auto& [name, tensor] = report.outputs[i];
    const bool is_in_file = !report.files.empty() && !report.files[i].empty();
    console.say(one_line(fmt::format("{}: {}{}", name, shape_text(tensor),
                                     is_in_file ? " in " + report.files[i] : "")));
    std::string data = is_in_file ? "" : data_text(tensor, kMaxElements);
    if (!data.empty()) data.pop_back();
    if (!data.empty()) console.say(data);
  }
  for (const LoopReport& loop : model.session->loop_reports()) {
    console.say(one_line(fmt::format("loop {}: {} iteration{}, driven by the {} ({})", loop.path,
                                     loop.iterations, loop.iterations == 1 ? "" : "s", loop.driven,
                                     loop.reason)));
  }
  console.say(fmt::format(
      "load {}, plan {}, run {}", duration_text(static_cast<double>(model.load_ns)),
      duration_text(static_cast<double>(model.session->plan_ns())), times_text(report.runs_ns)));
  if (report.is_compared && report.differences.empty()) console.say("outputs match");
}

// Runs, and writes the trace whatever came of it.
Outcome run_traced(const RunArguments& arguments, Session& session, const NamedTensors& inputs,
                   const std::string& hint_or_empty, Interrupts& interrupts, Console& console,
                   RunReport& report) {
  std::optional<TraceRecorder> trace;
  if (!arguments.trace.empty()) trace.emplace();
  const Interrupts::Attachment attachment(interrupts, session);
  Status status =
      run_all(arguments, session, inputs, interrupts, trace ? &*trace : nullptr, console, report);
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

Outcome run_session(const RunArguments& arguments, const Model& model, const RunInputs& inputs,
                    Console& console, Interrupts& interrupts, RunReport& report) {
  Session& session = *model.session;
  Outcome outcome =
      run_traced(arguments, session, name_inputs(session, inputs.values),
                 open_inputs_text(arguments.inputs, session, inputs.data_set_or_null()), interrupts,
                 console, report);
  if (!outcome.status().is_ok()) return outcome;
  report.has_ended = true;
  if (inputs.data_set) compare_outputs(*inputs.data_set, arguments.tolerance, report);
  if (!arguments.output_dir.empty()) {
    if (Status status = write_outputs(arguments.output_dir, report); !status.is_ok()) return status;
  }
  return Outcome::success();
}

Outcome show(const Model& model, const RunReport& report, Console& console) {
  if (console.is_json()) {
    console.print(report_json(model, report));
  } else {
    say_report(model, report, console);
  }
  if (report.differences.empty()) return Outcome::success();
  const size_t others = report.differences.size() - 1;
  return Outcome::differs(report.differences[0] +
                          (others == 0 ? "" : fmt::format(" (and {} more outputs)", others)));
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

// As run_model, on one of several ranks. What fails until the run has ended fails on all ranks, and
// rank 0 says it. Where the world is lost, each that sees it says so, and ends the job.
Outcome run_model_on_rank(const RunArguments& arguments, const SessionOptions& options,
                          Console& console, Interrupts& interrupts, RankReport& rank_report) {
  const auto shared = [&](const Outcome& outcome) {
    if (outcome.status().code() == StatusCode::kDeviceLost) {
      const int code = console.finish(outcome);
      rank_report.end(code);
      options.ranks.world->abort(code);
      return outcome;
    }
    console.share_failures();
    // Said before this rank leaves the world: the first process to end ends the job.
    console.finish(outcome);
    return outcome;
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
  app.add_option("--random-inputs", arguments->inputs.seed, "a seed for all other inputs");
  add_model_options(app, arguments->shared);
  add_planning_options(app, arguments->shared);
  add_rank_options(app, arguments->ranks);
  add_rank_run_options(app, arguments->ranks);
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
