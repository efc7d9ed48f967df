// eddy measure: what each operator of a model costs on the CPU, one session for each.
//
// Nodes of equal operator and shapes count as one. Each is run by itself, on values made up from
// the seed where the model has no constants, beside a session that does nothing: the difference is
// the operator's cost. After a warm-up run come rounds of both in turn.
//
// With --whole the model is run, too, and its steps watched (step_profile.h): operators then cost
// what they cost in their place, and the table holds trips and branches.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "graph/base/check.h"
#include "graph/io/file_bytes.h"
#include "graph/schedule/costs/cost_table.h"
#include "runtime/cpu/worker_pool.h"
#include "tools/command/inputs.h"
#include "tools/command/measure_runs.h"
#include "tools/command/model.h"
#include "tools/command/number_check.h"
#include "tools/command/output_paths.h"
#include "tools/command/step_profile.h"
#include "tools/command/subcommand.h"

namespace eddy {
namespace {

struct MeasureArguments {
  std::string model;
  std::vector<std::string> dims;
  std::vector<std::string> shapes;
  uint64_t seed = 1;
  int rounds = 15;
  bool is_whole = false;
  InputArguments inputs;  // of the whole model; the seed gives the others
  std::string output;
};

// A session that runs one node, and its prepared call.
struct Probe {
  std::vector<HostValue> values;
  std::unique_ptr<Session> session;
  std::unique_ptr<Call> call;
};

Result<Graph> one_node_graph(const Graph& graph, const Node& node, const OpTable& ops) {
  GraphBuilder builder(ops);
  std::map<ValueId, Value> made;
  std::vector<Value> inputs;
  for (const ValueId id : node.inputs) {
    if (id.is_none()) {
      inputs.push_back({});
      continue;
    }
    const ValueInfo& value = graph.value(id);
    Value& here = made[id];
    if (here.is_none()) {
      here = value.origin == ValueOrigin::kConstant
                 ? builder.constant(graph.constant(value.constant).view())
                 : builder.input(fmt::format("input{}", inputs.size()), value.type);
    }
    inputs.push_back(here);
  }
  const std::vector<Value> outputs =
      builder.ops(node.op->name, inputs, node.attributes,
                  {.domain = node.op->domain,
                   .opset_version = node.opset_version,
                   .num_outputs = static_cast<int>(node.outputs.size())});
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].is_none()) builder.output(fmt::format("output{}", i), outputs[i]);
  }
  return builder.finish();
}

// The graph as it is given.
SessionOptions as_given(int num_threads = 1) {
  SessionOptions options;
  options.num_threads = num_threads;
  options.simplify = options.folds_norms = options.blocks_channels = false;
  return options;
}

// Nothing but a value passed through: what a run costs by itself.
Result<Graph> empty_graph(const OpTable& ops) {
  GraphBuilder builder(ops);
  builder.output("y", builder.input("x", tensor_type(ElementType::kFloat, {})));
  return builder.finish();
}

Result<std::unique_ptr<Probe>> make_probe(const Library& library, Graph graph, uint64_t seed,
                                          bool uses_zeros, int num_threads = 1) {
  auto probe = std::make_unique<Probe>();
  EDDY_ASSIGN_OR_RETURN(probe->session,
                        Session::create(library, std::move(graph), as_given(num_threads)));
  Random random(seed);
  for (const ValueDescription& input : probe->session->inputs()) {
    auto value = uses_zeros ? filled_value(input, "0") : random_value(input, random);
    if (!value.is_ok()) return value.take_status();
    probe->values.push_back(std::move(value).value());
  }
  EDDY_ASSIGN_OR_RETURN(probe->call, probe->session->prepare());
  for (size_t i = 0; i < probe->values.size(); ++i) {
    EDDY_RETURN_IF_ERROR(probe->call->bind_input(i, probe->values[i].view()));
  }
  EDDY_RETURN_IF_ERROR(probe->call->run());
  return probe;
}

// Runs on random values, or on zeros where the operator does not take those (indices, say).
Result<std::unique_ptr<Probe>> probe_node(const Library& library, const Graph& graph,
                                          const Node& node, uint64_t seed, int num_threads = 1) {
  for (const bool uses_zeros : {false, true}) {
    EDDY_ASSIGN_OR_RETURN(Graph one, one_node_graph(graph, node, library.ops()));
    auto probe = make_probe(library, std::move(one), seed, uses_zeros, num_threads);
    if (probe.is_ok() || uses_zeros) return probe;
  }
  return internal_error("unreachable");
}

class Measuring {
 public:
  Measuring(const MeasureArguments& arguments, const Library& library, Console& console,
            const Interrupts& interrupts)
      : arguments_(arguments), library_(library), console_(console), interrupts_(interrupts) {
    options_.rounds = arguments.rounds;
    options_.budget_s = 1;
    options_.min_sample_ns = 1e5;
  }

  Status run(const Graph& graph) {
    EDDY_ASSIGN_OR_RETURN(Graph nothing, empty_graph(library_.ops()));
    EDDY_ASSIGN_OR_RETURN(nothing_, make_probe(library_, std::move(nothing), 1, false));
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
      const Node& node = graph.node(NodeId(n));
      if (node.kind != NodeKind::kExec) continue;
      console_.progress(fmt::format("node {} of {}: {}", n + 1, graph.num_nodes(), node.op->name));
      EDDY_RETURN_IF_ERROR(measure(graph, NodeId(n)));
    }
    return Status::ok();
  }

  const CostTable& table() const { return table_; }
  const std::vector<std::string>& skipped() const { return skipped_; }

 private:
  Status measure(const Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    const std::string op = cost_op_name(*node.op);
    const std::string key = cost_key(graph, node);
    if (key.empty()) {
      skip(graph, id, "its shapes are not known; fix them with --dim or --shape");
      return Status::ok();
    }
    if (table_.find_or_null(op, key, "cpu") != nullptr) return Status::ok();
    auto probe = probe_node(library_, graph, node, arguments_.seed);
    if (!probe.is_ok()) {
      skip(graph, id, probe.status().message());
      return Status::ok();
    }
    Call& call = *(*probe)->call;
    EDDY_ASSIGN_OR_RETURN(
        const std::vector<Samples> samples,
        measure_runs({{"operator", [&call] { return call.run(); }},
                      {"nothing", [this] { return nothing_->call->run(); }}},
                     1, options_, [this] { return interrupts_.is_interrupted(); }));
    EDDY_CHECK(samples.size() == 2) << samples.size() << " contenders took part";
    const double dispatch = samples[1].median();
    const auto without = [dispatch](double ns) { return std::max(ns - dispatch, 0.0); };
    if (table_.dispatch_ns == 0 || dispatch < table_.dispatch_ns) table_.dispatch_ns = dispatch;
    MeasuredCost cost{op,
                      key,
                      "cpu",
                      without(samples[0].median()),
                      without(samples[0].low()),
                      without(samples[0].high()),
                      static_cast<uint32_t>(samples[0].ns.size())};
    EDDY_RETURN_IF_ERROR(measure_threads(graph, node, dispatch, cost));
    return table_.add(std::move(cost));
  }

  // With all threads, where tiles could be worth a wake.
  Status measure_threads(const Graph& graph, const Node& node, double dispatch,
                         MeasuredCost& cost) {
    constexpr double kWorthwhileNs = 20e3, kMinGain = 0.1;
    const int num_threads = usable_processors();
    if (num_threads == 1 || cost.ns < kWorthwhileNs) return Status::ok();
    EDDY_ASSIGN_OR_RETURN(const auto probe,
                          probe_node(library_, graph, node, arguments_.seed, num_threads));
    EDDY_ASSIGN_OR_RETURN(
        const std::vector<Samples> samples,
        measure_runs({{"operator, all threads", [&probe] { return probe->call->run(); }}}, 1,
                     options_, [this] { return interrupts_.is_interrupted(); }));
    const double all_ns = std::max(samples[0].median() - dispatch, 0.0);
    if (all_ns <= 0 || all_ns > cost.ns * (1 - kMinGain)) return Status::ok();
    cost.threads = static_cast<uint32_t>(num_threads);
    cost.all_ns = all_ns;
    return Status::ok();
  }

  void skip(const Graph& graph, NodeId id, const std::string& reason) {
    skipped_.push_back(one_line(fmt::format("{}: {}", graph.path(id), reason)));
  }

  const MeasureArguments& arguments_;
  const Library& library_;
  Console& console_;
  const Interrupts& interrupts_;
  MeasureOptions options_;
  std::unique_ptr<Probe> nothing_;
  CostTable table_;
  std::vector<std::string> skipped_;
};

Result<Graph> load_graph(const MeasureArguments& arguments, const Library& library) {
  ModelArguments model;
  model.dims = arguments.dims;
  model.shapes = arguments.shapes;
  EDDY_ASSIGN_OR_RETURN(const SessionOptions options, make_session_options(model));
  EDDY_ASSIGN_OR_RETURN(Graph graph, import_file(library, arguments.model));
  EDDY_RETURN_IF_ERROR(check_dims(graph, options, arguments.model));
  auto simple = Session::graph_to_run(library, std::move(graph), options);
  if (!simple.is_ok()) return std::move(simple.take_status().prepend_message(arguments.model));
  return simple;
}

// What looking adds to a step, by tests/bench/predict_bench.
constexpr LookingCosts kLooking = {.exec_ns = 3, .control_ns = 6};

// The mean over nodes of equal operator and types, by their executions in the best of the runs.
class WholeCosts {
 public:
  void add(const Graph& graph, const StepProfile& profile) {
    const NodeWork work = profile.work(graph, kLooking);
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
      const Node& node = graph.node(NodeId(n));
      const auto count = static_cast<double>(profile.executions(NodeId(n)));
      if (node.kind != NodeKind::kExec || count == 0) continue;
      const std::string key = cost_key(graph, node);
      if (key.empty()) continue;
      Sum& sum = sums_[{cost_op_name(*node.op), key}];
      sum.ns += count * work.nodes[n].solo_ns;
      sum.count += count;
    }
  }

  // The table's costs, with those seen here in their places.
  Result<CostTable> merged(const CostTable& table, const Graph& graph,
                           const StepProfile& profile) const {
    CostTable merged;
    merged.dispatch_ns = table.dispatch_ns;
    std::map<std::pair<std::string, std::string>, Sum> left = sums_;
    for (MeasuredCost cost : table.costs()) {
      const auto seen = left.find({cost.op, cost.shapes});
      if (seen != left.end()) {
        const double factor = cost.ns > 0 ? seen->second.ns / seen->second.count / cost.ns : 1;
        cost.all_ns *= factor;
        cost.ns = cost.low_ns = cost.high_ns = seen->second.ns / seen->second.count;
        left.erase(seen);
      }
      EDDY_RETURN_IF_ERROR(merged.add(std::move(cost)));
    }
    for (const auto& [names, sum] : left) {
      const double ns = sum.ns / sum.count;
      EDDY_RETURN_IF_ERROR(merged.add({names.first, names.second, "cpu", ns, ns, ns, 1, 0, 0}));
    }
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
      const std::vector<int64_t>& seen = profile.decisions()[n];
      if (!seen.empty()) merged.decisions[graph.path(NodeId(n))] = kept_decisions(seen);
    }
    return merged;
  }

 private:
  struct Sum {
    double ns = 0;
    double count = 0;
  };
  // Equal ones as one; of many the first.
  static std::vector<int64_t> kept_decisions(const std::vector<int64_t>& seen) {
    EDDY_CHECK(!seen.empty()) << "what was never decided has no record";
    constexpr size_t kMost = 10'000;
    const bool is_constant =
        std::ranges::all_of(seen, [&](int64_t value) { return value == seen[0]; });
    const size_t count = is_constant ? 1 : std::min(seen.size(), kMost);
    return {seen.begin(), seen.begin() + static_cast<ptrdiff_t>(count)};
  }

  std::map<std::pair<std::string, std::string>, Sum> sums_;
};

// What the options do not give comes from the seed; a folder that gives nothing is a mistake.
Result<std::vector<HostValue>> whole_inputs(const MeasureArguments& arguments,
                                            const Session& session) {
  EDDY_ASSIGN_OR_RETURN(const std::optional<DataSet> data_set,
                        read_data_set(arguments.inputs, session));
  if (data_set && !data_set->has_inputs()) {
    return invalid_argument(
        fmt::format("--inputs {}: the folder has no input_0.pb, ...; name one "
                    "that has",
                    arguments.inputs.folder));
  }
  InputArguments inputs = arguments.inputs;
  inputs.seed = arguments.seed;
  return make_inputs(inputs, session, data_set ? &*data_set : nullptr);
}

// The model on one stream, with `profile` as observer of its steps, and its inputs.
struct WholeModel {
  StepProfile profile;
  std::unique_ptr<Session> session;
  std::vector<HostValue> values;
};

Result<std::unique_ptr<WholeModel>> make_whole(const MeasureArguments& arguments,
                                               const Library& library, Graph graph) {
  auto whole = std::make_unique<WholeModel>();
  SessionOptions options = as_given();
  options.assignment = Assignment::kSerial;
  options.observer_or_null = &whole->profile;
  EDDY_ASSIGN_OR_RETURN(whole->session, Session::create(library, std::move(graph), options));
  EDDY_ASSIGN_OR_RETURN(whole->values, whole_inputs(arguments, *whole->session));
  return whole;
}

// Takes the model's steps from the run that was shortest.
Result<CostTable> measure_whole(WholeModel& whole, int rounds, const CostTable& table,
                                const Interrupts& interrupts) {
  Session& session = *whole.session;
  StepProfile& profile = whole.profile;
  EDDY_ASSIGN_OR_RETURN(auto call, session.prepare());
  for (size_t i = 0; i < whole.values.size(); ++i) {
    EDDY_RETURN_IF_ERROR(call->bind_input(i, whole.values[i].view()));
  }
  StepProfile best;
  for (int round = 0; round <= rounds; ++round) {
    if (interrupts.is_interrupted()) return cancelled("interrupted");
    profile.begin(session.graph().num_nodes());
    EDDY_RETURN_IF_ERROR(call->run());
    const bool is_warm = round > 0;
    if (round <= 1 || (is_warm && profile.total_ticks() < best.total_ticks())) best = profile;
  }
  WholeCosts costs;
  costs.add(session.graph(), best);
  return costs.merged(table, session.graph(), best);
}

void say_table(const CostTable& table, Console& console) {
  std::vector<MeasuredCost> costs = table.costs();
  std::sort(costs.begin(), costs.end(),
            [](const MeasuredCost& a, const MeasuredCost& b) { return a.ns > b.ns; });
  for (const MeasuredCost& cost : costs) {
    console.say(
        fmt::format("{:>9}  {:>9} .. {:>9}  {} {}", duration_text(cost.ns),
                    duration_text(cost.low_ns), duration_text(cost.high_ns), cost.op, cost.shapes) +
        (cost.threads == 0
             ? ""
             : fmt::format("; on {} threads {}", cost.threads, duration_text(cost.all_ns))));
  }
  console.say(fmt::format("a run beside its operators: {}", duration_text(table.dispatch_ns)));
}

Outcome measure_model(const MeasureArguments& arguments, Console& console,
                      const Interrupts& interrupts) {
  const Library library;
  auto graph = load_graph(arguments, library);
  if (!graph.is_ok()) return graph.take_status();
  const auto prepend = [&arguments](Status failed) {
    return std::move(failed.prepend_message("--whole: " + arguments.model));
  };
  // Measuring takes long: what can be refused is refused before.
  std::unique_ptr<WholeModel> whole;
  if (arguments.is_whole) {
    auto made = make_whole(arguments, library, graph->copy());
    if (!made.is_ok()) return prepend(made.take_status());
    whole = std::move(*made);
  }
  Measuring measuring(arguments, library, console, interrupts);
  Status status = measuring.run(*graph);
  if (!status.is_ok()) return Outcome::of_run(std::move(status));
  for (const std::string& reason : measuring.skipped()) {
    console.remark("not measured: " + reason);
  }
  CostTable table = measuring.table();
  if (whole != nullptr) {
    auto seen = measure_whole(*whole, arguments.rounds, table, interrupts);
    if (!seen.is_ok()) return Outcome::of_run(prepend(seen.take_status()));
    table = std::move(*seen);
  }
  const std::string json = to_json(table);
  if (!arguments.output.empty()) {
    status = write_file(arguments.output, json + "\n");
    if (!status.is_ok()) return status;
  }
  if (console.is_json()) {
    console.print_text(json);
  } else {
    say_table(table, console);
  }
  return Outcome::success();
}

}  // namespace

Action add_measure(CLI::App& app) {
  auto arguments = std::make_shared<MeasureArguments>();
  app.add_option("MODEL", arguments->model, "an ONNX file")->required();
  app.add_option("--random-inputs", arguments->seed, "seed of the values operators are run on")
      ->check(check_seed())
      ->capture_default_str();
  add_shape_options(app, arguments->dims, arguments->shapes);
  app.add_option("--repeat", arguments->rounds, "batches of runs for each operator")
      ->check(CLI::Range(3, 10000))
      ->capture_default_str();
  CLI::Option* whole =
      app.add_flag("--whole", arguments->is_whole,
                   "run the model, too: costs of operators in their place, trips, branches");
  app.add_option("--input", arguments->inputs.files, "of --whole: NAME=FILE, .npy or .pb")
      ->take_all()
      ->allow_extra_args(false)
      ->needs(whole)
      ->check(check_assignment("NAME=FILE"));
  app.add_option("--set", arguments->inputs.values, "of --whole: NAME=VALUE")
      ->take_all()
      ->allow_extra_args(false)
      ->needs(whole)
      ->check(check_assignment("NAME=VALUE"));
  app.add_option("--inputs", arguments->inputs.folder, "of --whole: a test_data_set folder")
      ->needs(whole);
  app.add_option("--output", arguments->output, "write the cost table, as JSON")
      ->check(check_file_name);
  return [arguments](Console& console, Interrupts& interrupts) -> Outcome {
    const Status status = check_output_paths({{"--output", arguments->output}},
                                             files_read(arguments->model, arguments->inputs));
    if (!status.is_ok()) return Outcome::usage(status.message());
    return measure_model(*arguments, console, interrupts);
  };
}

}  // namespace eddy
