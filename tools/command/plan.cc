// eddy plan: plans a model or a bare graph, and shows the plan, without running it.
#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "graph/compile/plan_dot.h"
#include "graph/compile/plan_svg.h"
#include "graph/compile/plan_text.h"
#include "graph/io/file_bytes.h"
#include "graph/program/print.h"
#include "graph/program/step_nodes.h"
#include "graph/schedule/costs/cost_model.h"
#include "graph/schedule/costs/cost_table.h"
#include "graph/schedule/plan/value_text.h"
#include "runtime/api/saved_plan.h"
#include "tools/command/counted.h"
#include "tools/command/dag/dag_drawing.h"
#include "tools/command/model.h"
#include "tools/command/output_paths.h"
#include "tools/command/plan_memory_report.h"
#include "tools/command/plan_prediction.h"
#include "tools/command/rank_plan.h"
#include "tools/command/subcommand.h"
#include "tools/command/text_file.h"

namespace eddy {
namespace {

struct PlanArguments {
  std::string model;
  std::string dag;
  ModelArguments shared;
  std::string dot;
  std::string svg;
  std::string svg_over = "rank";
  std::string machine;
  std::string save;
  bool steps = false;
  RankArguments ranks;
};

Status write_pictures(const PlanArguments& arguments, const DrawnRegion& drawing,
                      const std::string& title) {
  if (!arguments.dot.empty()) {
    EDDY_RETURN_IF_ERROR(write_file(arguments.dot, plan_dot(drawing)));
  }
  if (!arguments.svg.empty()) {
    EDDY_RETURN_IF_ERROR(write_file(arguments.svg, plan_svg(drawing, title)));
  }
  return Status::ok();
}

constexpr uint64_t kMaxDagBytes = uint64_t{1} << 32;

AssignPolicy policy_of(const std::string& name) {
  if (name == "matching") return AssignPolicy::kMatching;
  if (name == "serial") return AssignPolicy::kSerial;
  return AssignPolicy::kRank;
}

std::string totals_text(const DrawnRegion& drawing) {
  const DrawnTotals totals = count_drawn(drawing);
  return fmt::format("{} in {}, {}, {}", counted(totals.nodes, "node"),
                     counted(totals.regions, "region"), counted(totals.records, "record"),
                     counted(totals.waits, "wait"));
}

void say_text(const std::string& text, Console& console) {
  console.say(std::string_view(text).substr(0, text.size() - (text.ends_with('\n') ? 1 : 0)));
}

Outcome plan_dag_file(const PlanArguments& arguments, Console& console) {
  auto text = read_text_or_input(arguments.dag, kMaxDagBytes,
                                 "; --dag takes a JSON file, or - for standard input");
  if (!text.is_ok()) return text.take_status();
  const auto in_file = [&arguments](Status status) {
    status.prepend_message(arguments.dag == "-" ? "standard input" : arguments.dag);
    return status;
  };
  auto file = parse_dag_file(*text);
  if (!file.is_ok()) return in_file(file.take_status());
  DagPlanOptions options;
  options.policy = policy_of(arguments.shared.assign);
  options.max_streams = arguments.shared.streams;
  options.rank_by_costs = arguments.shared.rank_by == "costs";
  auto plan = plan_dag(*file, options);
  if (!plan.is_ok()) return in_file(plan.take_status());
  const bool is_auto = arguments.shared.assign == "auto";
  const std::string assignment = is_auto ? "rank" : arguments.shared.assign;

  if (!arguments.dot.empty() || !arguments.svg.empty() || !console.is_json()) {
    const DrawnRegion drawing = draw_dag_plan(*file, *plan);
    const std::string title = fmt::format("{}, assignment {}", totals_text(drawing), assignment);
    Status status = write_pictures(arguments, drawing, title);
    if (!status.is_ok()) return status;
    if (!console.is_json()) say_text(plan_text(drawing), console);
  }
  for (const DagPlan::Step& step : plan->steps) {
    console.remark(
        fmt::format("{}: {}", step.name, duration_text(static_cast<double>(step.duration_ns))));
  }
  const bool is_safe = plan->proof.is_safe();
  if (console.is_json()) {
    console.print_text(to_json(*plan));
  } else {
    for (const std::string& notice : plan->notices) console.say("notice: " + notice);
    console.say(fmt::format("{} after reduction, matching {}; assignment {}{}",
                            counted(plan->reduced_edges, "edge"), plan->matching, assignment,
                            is_auto ? " (what auto takes for a bare graph)" : ""));
    console.say(is_safe ? "proof: safe" : "proof: UNSAFE");
  }
  if (is_safe) return Outcome::success();
  return Outcome::differs("the plan is unsafe: " + plan->proof.violations[0].to_string());
}

Json node_json(const Graph& graph, NodeId id, uint32_t stream, const Json& rank) {
  const Node& node = graph.node(id);
  const char* kind = node.kind == NodeKind::kWhile    ? "while"
                     : node.kind == NodeKind::kCaseOf ? "case-of"
                                                      : node.op->name.c_str();
  Json json = {{"name", node.name}, {"kind", kind}, {"stream", stream}, {"rank", rank}};
  for (const RegionId region : node.regions) json["regions"].push_back(region.index());
  return json;
}

// The JSON of a pipelined block: how the next iteration is ordered behind its streams, which go on;
// nodes by their place.
Json open_json(const Graph& graph, const Plan& plan, RegionId id,
               const std::map<NodeId, uint32_t>& place) {
  const Program::Block& block = plan.program.blocks[id.index()];
  const std::vector<uint32_t> beside = find_step_nodes(block);
  Json waits = Json::array();  // each with the edge it serves; to null: the turn
  for (const DrawnNextWait& wait : draw_region(graph, plan, id).next_waits) {
    const bool is_turn = wait.to == DrawnNextWait::kTurn;
    waits.push_back({{"event", wait.event},
                     {"edge", {wait.from, is_turn ? Json() : Json(wait.to)}},
                     {"text", wait.text}});
  }
  const auto place_of = [&](uint32_t step) {
    while (!is_node(block.steps[step].op)) ++step;
    return Json(place.at(node_of(plan.program, block.steps[step])));
  };
  Json previous = Json::array();  // node, event
  Json takes = Json::array();
  Json end_waits = Json::array();
  bool has_begun = false;
  for (uint32_t i = 1; i < block.steps.size(); ++i) {
    const Program::Step& step = block.steps[i];
    has_begun |= step.op != Program::Op::kWaitPrevious;
    if (step.op == Program::Op::kWaitPrevious) {
      previous.push_back({has_begun ? place_of(beside[i]) : Json(nullptr), step.operand});
    } else if (step.op == Program::Op::kWait && beside[i] == Program::kNone) {
      end_waits.push_back(step.operand);
    } else if (step.op == Program::Op::kRetain) {
      Json values = Json::array();
      for (const Program::Alias& alias : plan.program.launches[step.operand].aliases) {
        values.push_back(value_text(graph, ValueId(alias.from)));
      }
      const Program::Step& next = block.steps[i + 1];
      const bool is_recorded = next.op == Program::Op::kRecord && next.stream == step.stream;
      takes.push_back({{"stream", step.stream},
                       {"before", place_of(i)},
                       {"values", std::move(values)},
                       {"event", is_recorded ? Json(next.operand) : Json()}});
    }
  }
  return {{"end_waits", std::move(end_waits)},
          {"previous_waits", std::move(previous)},
          {"takes", std::move(takes)},
          {"waits", std::move(waits)}};
}

// Nodes in issue order; records, waits and the edges that waits serve name nodes by their place in
// it, as do those that wait for the region's entry and those that its exit waits for. Ranks by cost
// are in nanoseconds.
Json region_json(const Graph& graph, const Plan& plan, RegionId id) {
  const Region& region = graph.region(id);
  const RegionPlan& region_plan = plan.regions[id.index()];
  std::map<NodeId, Json> rank_of;
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    rank_of[region.nodes[i]] = region_plan.cost_ranks.empty() ? Json(region_plan.ranks[i])
                                                              : Json(region_plan.cost_ranks[i]);
  }
  const Program::Block& block = plan.program.blocks[id.index()];
  std::map<NodeId, uint32_t> place;
  Json nodes = Json::array();
  for (const Program::Step& step : block.steps) {
    if (!is_node(step.op)) continue;
    const NodeId node = node_of(plan.program, step);
    place[node] = static_cast<uint32_t>(nodes.size());
    nodes.push_back(node_json(graph, node, step.stream, rank_of[node]));
    if (!plan.devices.empty()) {
      nodes.back()["device"] = plan.devices[plan.stream_devices[step.stream]];
    }
  }
  const DrawnRegion drawn = draw_region(graph, plan, id);
  Json records = Json::array();
  Json waits = Json::array();
  Json wait_edges = Json::array();
  for (const auto& [event, node] : drawn.records) records.push_back({event, node});
  for (const DrawnWait& wait : drawn.waits) {
    waits.push_back({wait.to, wait.event});
    wait_edges.push_back({wait.from, wait.to});
  }
  const bool overlaps = is_pipelined(plan.program, block);
  Json open = overlaps ? open_json(graph, plan, id, place) : Json();
  const std::string path = region.owner.is_none() ? "" : graph.path(region.owner);
  return {{"path", path},
          {"region", region.name},
          {"num_streams", block.streams.size()},
          {"streams", block.streams},
          {"nodes", std::move(nodes)},
          {"records", std::move(records)},
          {"waits", std::move(waits)},
          {"wait_edges", std::move(wait_edges)},
          {"entry_waits", drawn.entry_waits},
          {"exit_waits", drawn.exit_waits},
          {"open", std::move(open)}};
}

ProgramNames names_of(const Graph& graph, const Program& program) {
  return {[&graph](uint32_t node) { return one_line(graph.node(NodeId(node)).name); },
          [&](uint32_t name) {
            return one_line(value_text(graph, value_of_name(graph, program, name)));
          }};
}

// A region's steps, each with its stream.
Json steps_json(const Graph& graph, const Program& program, RegionId id) {
  const ProgramNames names = names_of(graph, program);
  Json steps = Json::array();
  for (const Program::Step& step : program.blocks[id.index()].steps) {
    steps.push_back({step.stream, step_text(program, step, names)});
  }
  return steps;
}

// Null without a table.
Json coverage_json(const Graph& graph, const CostTable* costs_or_null) {
  if (costs_or_null == nullptr) return nullptr;
  const CostCoverage coverage = cost_coverage(graph, *costs_or_null);
  return {{"measured", coverage.num_measured}, {"estimated", coverage.num_estimated}};
}

Json model_plan_json(const Session& session, const std::vector<LoopReport>& notes,
                     const DrawnRegion& drawing, const CostTable* costs_or_null,
                     const std::optional<Prediction>& prediction, bool wants_steps) {
  const Graph& graph = session.graph();
  Json regions = Json::array();
  for (uint32_t r = 0; r < graph.num_regions(); ++r) {
    regions.push_back(region_json(graph, session.plan(), RegionId(r)));
    if (!wants_steps) continue;
    regions.back()["steps"] = steps_json(graph, session.plan().program, RegionId(r));
  }
  Json loops = Json::array();
  for (const LoopReport& note : notes) {
    loops.push_back({{"path", note.path}, {"driven", note.driven}, {"reason", note.reason}});
  }
  const DrawnTotals totals = count_drawn(drawing);
  return {
      {"assignment", session.plan().assignment},
      {"regions", std::move(regions)},
      {"loops", std::move(loops)},
      {"totals", {{"nodes", totals.nodes}, {"records", totals.records}, {"waits", totals.waits}}},
      {"memory", memory_json(graph, session.plan())},
      {"num_streams", session.plan().num_streams},
      {"placement", session.placement_text()},
      {"fingerprint", session.fingerprint()},
      {"costs", coverage_json(session.graph(), costs_or_null)},
      {"simulated", prediction ? prediction_json(*prediction) : Json()},
      {"notices", session.plan().notices},
      {"proof", session.plan().is_proved ? "safe" : "unproved"}};
}

void say_model_plan(const Session& session, const std::vector<LoopReport>& notes,
                    const DrawnRegion& drawing, const std::optional<Prediction>& prediction,
                    bool wants_steps, Console& console) {
  say_text(plan_text(drawing), console);
  if (wants_steps) {
    const Program& program = session.plan().program;
    console.say("steps, each behind its stream:");
    say_text(print_program(program, names_of(session.graph(), program)), console);
  }
  for (const LoopReport& note : notes) {
    console.say(one_line(
        fmt::format("loop {}: driven by the {}: {}", note.path, note.driven, note.reason)));
  }
  for (const LoopReport& note : session.branch_reports()) {
    console.say(one_line(
        fmt::format("branch {}: decided by the {}: {}", note.path, note.driven, note.reason)));
  }
  if (!session.placement_text().empty()) say_text(session.placement_text(), console);
  console.say(memory_totals(session.graph()));
  for (const std::string& line : memory_lines(session.graph(), session.plan())) {
    console.say(one_line(line));
  }
  console.say(fmt::format("{} on {}; assignment {}", totals_text(drawing),
                          counted(session.plan().num_streams, "stream"),
                          session.plan().assignment));
  // Apart, so that what goes to standard output is the same each time.
  console.remark(
      fmt::format("planned in {}", duration_text(static_cast<double>(session.plan_ns()))));
  for (const std::string& notice : session.plan().notices) console.say("notice: " + notice);
  if (prediction) console.say(prediction_text(*prediction));
  console.say(session.plan().is_proved ? "proof: safe" : "proof: none");
}

// --save: what `eddy run FILE` loads instead of the model.
Status save_model_plan(const Library& library, const PlanArguments& arguments,
                       const SessionOptions& options) {
  if (arguments.save.empty()) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(Graph graph, import_file(library, arguments.model));
  return save_plan(library, std::move(graph), options, arguments.save);
}

Outcome plan_model(const PlanArguments& arguments, Console& console) {
  auto options = make_session_options(arguments.shared);
  if (!options.is_ok()) return options.take_status();
  if (!arguments.machine.empty()) {
    auto machine = read_machine(arguments.machine);
    if (!machine.is_ok()) return machine.take_status();
    options->plan_for = std::move(machine).value();
  }
  const Library library;
  console.progress("loading " + one_line(arguments.model));
  auto model = load_model(library, arguments.model, *options);
  if (!model.is_ok()) return model.take_status();
  const Session& session = *model->session;
  for (const std::string& warning : model->warnings) console.remark(one_line(warning));
  if (Status saved = save_model_plan(library, arguments, *options); !saved.is_ok()) return saved;
  const std::vector<LoopReport> notes = session.loop_reports();
  DrawnRegion drawing = draw_plan(session.graph(), session.plan(), [&](NodeId id) {
    const std::string path = session.graph().path(id);
    const auto note = std::find_if(notes.begin(), notes.end(),
                                   [&](const LoopReport& report) { return report.path == path; });
    return note == notes.end() ? "" : note->driven + "-driven";
  });
  if (drawing.name.empty()) drawing.name = "root";
  const std::string title =
      fmt::format("{}: {}, assignment {}", arguments.model.substr(arguments.model.rfind('/') + 1),
                  totals_text(drawing), session.plan().assignment);
  const bool is_over_time = arguments.svg_over == "time" && !arguments.svg.empty();
  auto predicted = predict_session(session, *options, is_over_time);
  if (!predicted.is_ok()) return predicted.take_status();
  const std::optional<Prediction>& prediction = *predicted;
  PlanArguments pictures = arguments;
  if (is_over_time) {
    if (!prediction) {
      return Outcome::usage("--svg-over time needs times: give --costs or --machine");
    }
    const std::string name = arguments.model.substr(arguments.model.rfind('/') + 1);
    Status status =
        write_file(arguments.svg,
                   prediction_svg(session, *prediction, name + ", " + session.plan().assignment));
    if (!status.is_ok()) return status;
    pictures.svg.clear();
  }
  Status status = write_pictures(pictures, drawing, title);
  if (!status.is_ok()) return status;
  if (console.is_json()) {
    console.print(model_plan_json(session, notes, drawing, options->costs.get(), prediction,
                                  arguments.steps));
  } else {
    say_model_plan(session, notes, drawing, prediction, arguments.steps, console);
  }
  return Outcome::success();
}

// The first given option that has no meaning for a bare graph; empty: none.
std::string option_for_models(const CLI::App& app) {
  static constexpr std::string_view kOfBareGraphs[] = {
      "--dag", "--assign", "--streams", "--rank-by", "--dot", "--svg", "--svg-over", "--json"};
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (option->count() > 0 && std::ranges::count(kOfBareGraphs, name) == 0) return name;
  }
  return "";
}

// The first given option that ranks do not take; empty: none.
std::string option_for_one_rank(const CLI::App& app, const PlanArguments& arguments) {
  for (const char* const name : {"--steps", "--machine", "--dot", "--save"}) {
    if (app.get_option(name)->count() > 0) return name;
  }
  if (arguments.svg_over == "time") return "--svg-over time";
  return arguments.shared.device == "cpu" ? "" : "--device " + arguments.shared.device;
}

Outcome plan_ranks(const CLI::App& app, const PlanArguments& arguments, Console& console) {
  if (const std::string name = option_for_one_rank(app, arguments); !name.empty()) {
    return Outcome::usage(name + " is for one rank; leave it out with --ranks");
  }
  auto options = make_session_options(arguments.shared);
  if (!options.is_ok()) return options.take_status();
  return plan_over_ranks({arguments.model, arguments.ranks, arguments.svg}, *options, console);
}

Outcome plan_either(const CLI::App& app, const PlanArguments& arguments, Console& console) {
  if (arguments.model.empty() && arguments.dag.empty()) {
    return Outcome::usage("name a MODEL or --dag FILE; see eddy plan --help");
  }
  const Status status = check_output_paths(
      {{"--dot", arguments.dot}, {"--svg", arguments.svg}},
      {arguments.model, arguments.dag, arguments.shared.costs, arguments.machine});
  if (!status.is_ok()) return Outcome::usage(status.message());
  if (arguments.ranks.num_ranks > 0 && arguments.dag.empty()) {
    return plan_ranks(app, arguments, console);
  }
  if (!arguments.ranks.agree.empty() || !arguments.ranks.replicated.empty()) {
    return Outcome::usage("--agree and --replicated are for --ranks; give their number");
  }
  if (arguments.dag.empty()) return plan_model(arguments, console);
  if (!arguments.shared.costs.empty()) {
    return Outcome::usage("--costs is for models; a DAG file has costs of its own (\"costs\")");
  }
  if (arguments.svg_over == "time") return Outcome::usage("--svg-over time is for models");
  if (const std::string name = option_for_models(app); !name.empty()) {
    return Outcome::usage(name +
                          " is for models; a DAG file takes --assign, --streams, --rank-by, --dot "
                          "and --svg");
  }
  return plan_dag_file(arguments, console);
}

}  // namespace

Action add_plan(CLI::App& app) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::Option* model = app.add_option("MODEL", arguments->model, "an ONNX file");
  CLI::Option* dag =
      app.add_option("--dag", arguments->dag, "a bare graph as JSON; - reads standard input");
  dag->excludes(model);
  add_model_options(app, arguments->shared);
  add_planning_options(app, arguments->shared);
  app.add_option("--dot", arguments->dot, "write the plan for Graphviz")->check(check_file_name);
  CLI::Option* svg = app.add_option("--svg", arguments->svg, "write the plan as a picture")
                         ->check(check_file_name);
  app.add_option("--svg-over", arguments->svg_over,
                 "what the picture's lanes run over: rank, or simulated time (of a model)")
      ->check(CLI::IsMember({"rank", "time"}))
      ->needs(svg)
      ->capture_default_str();
  app.add_flag("--steps", arguments->steps,
               "also print each step of the plan's program, in the order of issue")
      ->excludes(dag);
  app.add_option("--machine", arguments->machine,
                 "the machine that a model is planned for and simulated on, a JSON file")
      ->excludes(dag);
  app.add_option("--save", arguments->save,
                 "write the plan to a file that eddy run loads in the model's place, faster; it "
                 "holds for this Eddy and this kind of processor")
      ->check(check_file_name)
      ->excludes(dag);
  add_rank_options(app, arguments->ranks);
  return [arguments, &app](Console& console, Interrupts&) {
    return plan_either(app, *arguments, console);
  };
}

}  // namespace eddy
