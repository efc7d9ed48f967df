// eddy simulate: prints when each task of a graph runs, and again after each edit of the file.
#include "tools/command/simulate.h"

#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "graph/base/json_document.h"
#include "graph/io/file_bytes.h"
#include "graph/simulate/task_session.h"
#include "graph/simulate/timeline_svg.h"
#include "graph/strategy/files/operator_file.h"
#include "tools/command/model.h"
#include "tools/command/number_check.h"
#include "tools/command/output_paths.h"
#include "tools/command/rank_simulation.h"
#include "tools/command/subcommand.h"
#include "tools/command/text_file.h"

namespace eddy {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 32;

constexpr char kFileFormats[] =
    R"(Files, as JSON; graph/strategy/README.md says more about loops and branches:
  tasks      {"tasks": [{"id", "exe_time", "device", "deps": [id...]}...], "edits": [...]?}
  operators  {"operators": [{"name", "type", "shape", "inputs"?, "exe_by_tile"?...}...],
              "topology": {"devices": [...], "links" or "bandwidth"...}, "strategy"?, "edits"?}
  a loop     {"name", "type": "while", "inputs"?, "before": [operator...]?, "body": [operator...],
              "trips": n or "distribution": [[trips, probability]...] or "trace": [trips...],
              "decision": {"time"?, "device"?}?, "carried": [{"name", "next", "initial"?}...]?},
              among the operators; "carried" are read by name: "initial" made them, then "next" did
  a branch   {"name", "type": "case", "inputs"?, "branches": [[operator...]...],
              "probabilities": [p...] or "distribution": [[branch, probability]...] or
              "trace": [branch...], "decision"?}
  an edit    {"op": "set_exe", "id", "exe_time"}, {"op": "set_device", "id", "device"},
             {"op": "add_dep" or "remove_dep", "from", "to"}, {"op": "add_task", "task"},
             {"op": "remove_task", "id"}, {"op": "batch", "ops": [edit...]}, {"op": "undo"}
             of tasks; {"op": "set_config", "operator", ...} and batches of operators
Operators of a loop or branch read those of their own list, of lists around and, in a body, of its
"before". A model's loops and branches need --costs of eddy measure --whole, which saw their trips.
With --json, "estimated" lists the operators whose times come from a roofline.)";

std::string edit_title(size_t index, const TaskFile::Batch& batch) {
  if (batch.is_batch) return fmt::format("edit {} (batch of {})", index, batch.edits.size());
  if (batch.is_undo) return fmt::format("edit {} (undo)", index);
  const FileEdit& edit = batch.edits.at(0);
  const bool is_dep = edit.op == FileEdit::Op::kAddDep || edit.op == FileEdit::Op::kRemoveDep;
  return fmt::format("edit {} ({} {}{})", index, edit_name(edit.op), edit.task.id,
                     is_dep ? fmt::format(" -> {}", edit.to) : "");
}

Status in_file(const SimulateArguments& arguments, Status status) {
  status.prepend_message(input_name(arguments));
  return status;
}

template <TimeValue Time>
Outcome simulate_tasks(const SimulateArguments& arguments, const TaskFile& file, Console& console) {
  TaskSession<Time> session(arguments.full ? DeltaMode::kFull : DeltaMode::kAuto);
  Status status = session.start(file);
  if (!status.is_ok()) return in_file(arguments, std::move(status));
  std::vector<uint32_t> slots;
  std::vector<int64_t> ids;
  const auto view = [&] {
    slots.clear();
    for (const auto& [id, slot] : session.slots()) {
      slots.push_back(slot);
      if (slot >= ids.size()) ids.resize(slot + size_t{1});
      ids[slot] = id;
    }
    const auto& graph = session.simulation().graph();
    const auto device_name = [&file](uint32_t device) { return file.device_names[device]; };
    return TimelineView<Time>{
        graph,
        session.simulation().timeline(),
        slots,
        [&ids](uint32_t slot) { return std::to_string(ids[slot]); },
        device_name,
        [&graph, &file](uint32_t slot) {
          return file.device_names[graph.task(slot).device].starts_with("link:");
        }};
  };
  TimelineSaying saying(arguments, console);
  saying.add(view(), "initial");
  for (size_t i = 0; i < file.edits.size(); ++i) {
    status = session.apply(file.edits[i], fmt::format("edit {}", i));
    if (!status.is_ok()) return in_file(arguments, std::move(status));
    saying.add(view(), edit_title(i, file.edits[i]));
    if (i % 64 == 63) console.progress(fmt::format("edit {} of {}", i + 1, file.edits.size()));
  }
  return saying.finish(view());
}

// Refuses what is not for them.
Outcome simulate_ranks(const SimulateArguments& arguments, Console& console) {
  for (const auto& [is_given, option] : {std::pair(arguments.search, "--search"),
                                         {arguments.full, "--full"},
                                         {!arguments.emit_tasks.empty(), "--emit-tasks"},
                                         {!arguments.topology.empty(), "--topology"},
                                         {!arguments.strategy.empty(), "--strategy"}}) {
    if (is_given) return Outcome::usage(fmt::format("{} is not for several ranks", option));
  }
  if (!arguments.file.ends_with(".onnx")) {
    return Outcome::usage("--ranks takes an ONNX model; " + input_name(arguments) + " is none");
  }
  return simulate_over_ranks(arguments, console);
}

Outcome simulate_file(const SimulateArguments& arguments, Console& console,
                      Interrupts& interrupts) {
  const Status status = check_output_paths(
      {{"--svg", arguments.svg},
       {"--emit-tasks", arguments.emit_tasks},
       {"--output", arguments.output}},
      {arguments.file, arguments.topology, arguments.strategy, arguments.costs, arguments.links});
  if (!status.is_ok()) return Outcome::usage(status.message());
  if (arguments.ranks.num_ranks > 0) return simulate_ranks(arguments, console);
  if (!arguments.links.empty())
    return Outcome::usage("--links is for several ranks; give --ranks N");
  if (arguments.file.ends_with(".onnx")) return simulate_model(arguments, console, interrupts);
  if (!arguments.topology.empty() || !arguments.costs.empty() || !arguments.dims.empty() ||
      !arguments.shapes.empty()) {
    return Outcome::usage("--topology, --costs, --dim and --shape take a model; " +
                          input_name(arguments) + " is none, or holds its own");
  }
  auto text = read_text_or_input(
      arguments.file, kMaxFileBytes,
      "; eddy simulate takes a task file or an operator-graph file, or - for standard input");
  if (!text.is_ok()) return text.take_status();
  auto document = parse_json_document(*text);
  if (!document.is_ok()) return in_file(arguments, document.take_status());
  if (is_operator_file(*document)) {
    if (!arguments.strategy.empty()) {
      auto strategy = read_strategy_file(arguments.strategy);
      if (!strategy.is_ok()) return strategy.take_status();
      (*document)["strategy"] = std::move(*strategy);
    }
    return simulate_operators(arguments, *document, console, interrupts);
  }
  for (const auto& [is_given, option] : {std::pair(arguments.search, "--search"),
                                         {!arguments.emit_tasks.empty(), "--emit-tasks"},
                                         {!arguments.strategy.empty(), "--strategy"}}) {
    if (is_given) return Outcome::usage(fmt::format("{} takes an operator-graph file", option));
  }
  if (!document->is_object() || !document->contains("tasks")) {
    return in_file(arguments, invalid_argument("needs \"tasks\" (a task file) or \"operators\" (an "
                                               "operator-graph file) in one JSON object"));
  }
  auto file = read_task_file(*document);
  if (!file.is_ok()) return in_file(arguments, file.take_status());
  *document = nullptr;  // its memory is many times that of the file
  if (file->is_exact) return simulate_tasks<int64_t>(arguments, *file, console);
  return simulate_tasks<double>(arguments, *file, console);
}

}  // namespace

std::string input_name(const SimulateArguments& arguments) {
  return arguments.file == "-" ? "standard input" : arguments.file;
}

std::string TimelineSaying::makespan_text(int64_t makespan) { return fmt::format("{}", makespan); }
std::string TimelineSaying::makespan_text(double makespan) { return fmt::format("{}", makespan); }

std::string TimelineSaying::picture_of(const TimelineView<int64_t>& view) const {
  return timeline_svg(view, input_name(arguments_));
}
std::string TimelineSaying::picture_of(const TimelineView<double>& view) const {
  return timeline_svg(view, input_name(arguments_));
}

void TimelineSaying::say_lines(const std::string& text) { text_ += text; }

void TimelineSaying::say_makespan(const std::string& title, const std::string& makespan) {
  text_ += fmt::format("{}: makespan {}\n", title, makespan);
}

Outcome TimelineSaying::finish_output(const std::string& picture) {
  if (!arguments_.svg.empty()) {
    Status status = write_file(arguments_.svg, picture);
    if (!status.is_ok()) return status;
  }
  if (console_.is_json()) {
    const std::string estimated =
        estimated_.empty() ? "" : ",\"estimated\":" + nlohmann::json(estimated_).dump();
    console_.print_text("{\"timelines\":[" + json_ + "]" + estimated + "}");
  } else {
    console_.say(std::string_view(text_).substr(0, text_.size() - (text_.ends_with('\n') ? 1 : 0)));
  }
  return Outcome::success();
}

namespace {

void add_strategy_options(CLI::App& app, SimulateArguments& arguments) {
  CLI::Option* search =
      app.add_flag("--search", arguments.search, "look for a better strategy of an operator graph");
  app.add_option("--budget", arguments.budget,
                 "of --search: seconds, or a number of steps: 5000steps")
      ->needs(search)
      ->capture_default_str();
  app.add_option("--seed", arguments.seed,
                 "of --search, and of the scenarios of loops and branches")
      ->check(check_seed())
      ->capture_default_str();
  app.add_option("--output", arguments.output, "write the strategy that --search found")
      ->check(check_file_name)
      ->needs(search);
  app.add_option("--topology", arguments.topology, "of a model: devices and links, a JSON file");
  app.add_option("--strategy", arguments.strategy,
                 "of a model, or in place of an operator graph's own: what --output wrote");
  app.add_option("--costs", arguments.costs, "of a model: what eddy measure wrote");
  add_shape_options(app, arguments.dims, arguments.shapes);
  add_rank_options(app, arguments.ranks);
  app.add_option("--links", arguments.links,
                 "of --ranks: what operations take, a JSON file with \"latency_ns\", "
                 "\"bytes_per_ns\" and \"operations\": {KIND: [[bytes, ns]...]}");
}

}  // namespace

Action add_simulate(CLI::App& app) {
  auto arguments = std::make_shared<SimulateArguments>();
  app.add_option("FILE", arguments->file,
                 "a task file, an operator-graph file or an ONNX model; - reads standard input")
      ->required();
  app.add_flag("--full", arguments->full,
               "simulate anew after each edit, not what the edit changes; same output");
  app.add_option("--svg", arguments->svg,
                 "write the last timeline, or that of the strategy found, as a picture")
      ->check(check_file_name);
  app.add_option("--emit-tasks", arguments->emit_tasks,
                 "write the task graph that an operator graph's strategy makes, as a task file")
      ->check(check_file_name);
  add_strategy_options(app, *arguments);
  app.footer(kFileFormats);
  return [arguments](Console& console, Interrupts& interrupts) {
    return simulate_file(*arguments, console, interrupts);
  };
}

}  // namespace eddy
