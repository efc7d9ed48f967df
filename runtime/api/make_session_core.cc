#include "runtime/api/make_session_core.h"

#include <algorithm>
#include <map>

#include "graph/compile/choose_plan.h"
#include "graph/compile/device_choice.h"
#include "graph/program/fingerprint.h"
#include "graph/schedule/costs/cost_model.h"
#include "graph/schedule/costs/cost_table.h"
#include "graph/schedule/plan_graph.h"
#include "graph/simulate/fluid_machine.h"
#include "runtime/api/describe_session.h"
#include "runtime/api/file_watch.h"
#include "runtime/api/graph_to_run.h"
#include "runtime/api/host_predicate.h"
#include "runtime/api/place_nodes.h"
#include "runtime/api/plan_options.h"
#include "runtime/api/program_fingerprint.h"
#include "runtime/api/session_ranks.h"
#include "runtime/api/step_log.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/execute/host/device_pollers.h"
#include "runtime/execute/host/host_strands.h"
#include "runtime/net/net_kernel.h"
#include "runtime/net/rank_session.h"

namespace eddy {

namespace {

// Whether a device can drive loops, and may.
bool can_device_drive(const SessionCore& core) {
  const auto decides = [](const ExecutionDevice& each) { return can_decide_loops(*each.device); };
  return core.options.loops != Loops::kHost && std::ranges::any_of(core.devices, decides);
}

Status check_options(const SessionOptions& options) {
  if (!options.threads || options.num_threads == 0) return Status::ok();
  if (options.num_threads == options.threads->num_workers()) return Status::ok();
  return invalid_argument(
      "num_threads is " + std::to_string(options.num_threads) + ", but the shared threads have " +
      std::to_string(options.threads->num_workers()) + " workers; leave num_threads 0");
}

bool has_node_that_waits(const Graph& graph) {
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    if (node.kind == NodeKind::kExec && node.op->may_wait) return true;
  }
  return false;
}

// A stream more than there are workers waits for one; where nodes wait for something else, it is
// what goes on meanwhile.
uint32_t most_streams(const SessionCore& core) {
  if (core.options.max_streams > 0 || !core.starts_on_workers()) return core.options.max_streams;
  if (has_node_that_waits(core.graph())) return 0;
  return static_cast<uint32_t>(core.host().num_workers());
}

// Work that is worth a few tiles, of some ten microseconds each.
constexpr double kSharedNs = 40'000;

// By NodeId: whether the idle workers share the node's calls, by its operator and estimated cost.
// None where nodes wait for something else: what goes on meanwhile needs a stream.
std::vector<bool> shared_nodes(const SessionCore& core) {
  if (!core.has_one_device() || core.host().num_workers() < 2) return {};
  if (has_node_that_waits(core.graph())) return {};
  const std::vector<double> costs = estimate_costs_ns(core.graph(), core.options.costs.get());
  std::vector<bool> shared(core.graph().num_nodes(), false);
  for (uint32_t n = 0; n < core.graph().num_nodes(); ++n) {
    const Node& node = core.graph().node(NodeId(n));
    if (node.kind != NodeKind::kExec || costs[n] < kSharedNs) continue;
    const OpDef& op = *node.op;
    shared[n] = core.devices[0].kernels->has_tiles(op.domain, op.name, op.since_version);
  }
  return shared;
}

PlanOptions plan_options(const SessionCore& core) {
  PlanOptions plan = plan_options(core.options, waits_for_ranks(core));
  if (!plan.is_auto) return plan;
  plan.max_streams = most_streams(core);
  plan.splits = shared_nodes(core);
  if (core.host().num_workers() == 1) plan.policy = AssignPolicy::kSerial;
  return plan;
}

// A plan of what nothing is known about is not simulated, as estimates would decide; nor is one of
// several devices, because a machine is one.
Plan make_plan(const SessionCore& core, const PlanOptions& planning) {
  const SessionOptions& options = core.options;
  const int num_threads = core.host().num_workers();
  const bool is_one_stream = num_threads == 1 && !options.plan_for;
  if (options.assignment != Assignment::kAuto || is_one_stream || waits_for_ranks(core)) {
    return plan_graph(core.graph(), planning);
  }
  const bool is_known = options.costs || options.plan_for;
  if (is_known && core.has_one_device()) {
    const FluidMachine machine =
        options.plan_for ? *options.plan_for : cpu_machine(static_cast<uint32_t>(num_threads));
    return choose_plan(core.graph(), machine, {planning});
  }
  Plan plan = plan_graph(core.graph(), planning);
  plan.notices.push_back(std::string("assign auto: not simulated, because ") +
                         (is_known ? "several devices share the work" : "no costs are known") +
                         "; rank, one stream where little would overlap by estimates");
  return plan;
}

Status make_devices(SessionCore& core) {
  const SessionOptions& options = core.options;
  ExecutionDevice& host = core.devices.emplace_back();
  host.kernels = {std::shared_ptr<const void>(), &core.library.cpu_kernels()};
  if (options.make_device) {
    EDDY_ASSIGN_OR_RETURN(host.device, options.make_device());
  } else {
    host.device = std::make_shared<CpuDevice>(CpuDeviceOptions{
        options.num_threads, options.memory_limit_bytes, core.threads->workers(), options.memory});
  }
  if (options.make_devices.size() >= kMaxDevices) {
    return invalid_argument("make_devices has " + std::to_string(options.make_devices.size()) +
                            " devices, but a session has at most " +
                            std::to_string(kMaxDevices - 1) + " beside the host's CPU");
  }
  for (const MakeDevice& make : options.make_devices) {
    EDDY_ASSIGN_OR_RETURN(ExecutionDevice made, make());
    core.devices.push_back(std::move(made));
  }
  return Status::ok();
}

// "cpu", "cuda", and where there are more of a kind "cuda:1", "cuda:2".
std::vector<std::string> device_names(const SessionCore& core) {
  std::vector<std::string> names = {"cpu"};
  std::map<std::string, int> counts;
  for (size_t d = 1; d < core.devices.size(); ++d) {
    const std::string kind(core.devices[d].device->kind());
    const int count = counts[kind]++;
    names.push_back(count == 0 ? kind : kind + ":" + std::to_string(count));
  }
  return names;
}

// What executes a run's strands.
void set_runner(SessionCore& core, ExecutableOptions& options) {
  Device& host = core.host();
  if (core.is_host_driven()) {
    Scheduler& scheduler = core.scheduler();
    std::vector<Device*> devices;
    for (const ExecutionDevice& execution : core.devices) {
      Device* const each = devices.emplace_back(execution.device.get());
      if (!each->needs_polling()) continue;
      core.threads->device_pollers().add(*each);
      core.polled_devices.push_back(each);
    }
    // A virtual host has a time of its own.
    const InlineTimes::Now now =
        host.needs_polling() ? InlineTimes::no_time : InlineTimes::steady_now;
    if (host.needs_polling()) scheduler.ignore_clock_in_rounds();
    options.make_runner = [devices, &core, &scheduler, now](
                              const StrandCode& code, const Bindings& bindings,
                              const GraphCaptures& captures) -> std::unique_ptr<StrandRunner> {
      return std::make_unique<HostStrands>(
          code, bindings, scheduler,
          HostStrands::Options{devices, core.plan().stream_devices, captures, now,
                               [&core](const Status& why) { core.note_refusal(why); }});
    };
  } else {
    options.make_runner = [&host](const StrandCode& code, const Bindings& bindings,
                                  const GraphCaptures&) {
      return host.create_runner_or_null(code, bindings);
    };
  }
}

// `made_or_null`: the core's own program, whose kernels are not bound yet.
Result<std::unique_ptr<Executable>> make_executable(SessionCore& core,
                                                    CompiledProgram* made_or_null,
                                                    const PreparedGraph* prepared_or_null) {
  ExecutableOptions options;
  if (prepared_or_null != nullptr) options.packing_store = prepared_or_null->packings;
  options.observer_or_null = core.options.observer_or_null;
  if (core.options.times_operators) {
    core.operator_times_or_null = std::make_unique<OperatorTimes>(core.graph());
    options.operator_times_or_null = core.operator_times_or_null.get();
  }
  if (made_or_null == nullptr) {
    options.kernels = core.program->kernels;
  } else if (core.options.release_constants) {
    options.release_constants = [made_or_null](std::span<const ConstantId> unread) {
      made_or_null->graph.release_constants(unread);
    };
  }
  options.is_bound_by_session = [&core](const OpDef& op) {
    return is_host_predicate(op) || (core.ranks != nullptr && is_collective(op));
  };
  options.bind_by_session = [&core](const KernelInit& init) {
    if (!is_host_predicate(init.op)) return bind_collective(*core.ranks, init);
    return bind_host_predicate(core.library, &core, core.threads.get(), core.options.log, init);
  };
  options.is_non_blocking = [&core](const Node& node) {
    const auto* named =
        core.library.host_function_or_null(std::string(node.attributes.get_string("name", "")));
    return named != nullptr && named->options.is_non_blocking;
  };
  options.min_released_bytes = core.options.min_released_bytes;
  options.use_arenas = core.options.use_arenas;
  options.max_free_states = core.options.max_runs_in_flight;
  options.has_device_control = can_device_drive(core);
  options.only_loop_way = core.options.only_loop_way;
  options.locates_faults = core.options.locate_faults;
  options.are_loops_measured = core.options.loops == Loops::kAuto && core.options.measure_loops;
  options.file_waits.add = [&core](int file, std::function<void()> ready) {
    return core.threads->file_watch().add(file, std::move(ready));
  };
  options.file_waits.remove = [&core](uint64_t wait) {
    return core.threads->file_watch().remove(wait);
  };
  Device& host = core.host();
  options.shares_tiles = host.num_workers() > 1 && !host.needs_polling();
  options.is_host_driven = core.is_host_driven();
  set_runner(core, options);
  return Executable::create(core.graph(), core.plan(), core.devices, std::move(options));
}

// With several devices: one for each node of the graph, copies between them.
Status place_graph(SessionCore& core, CompiledProgram& made, PlanOptions& plan) {
  if (core.has_one_device()) return Status::ok();
  plan.devices = device_names(core);
  const PlaceNodesOptions options{
      // A host that computes a loop's predicate is one that drives it.
      .has_host_arithmetic = core.options.loops != Loops::kDevice,
      .drives_loops = can_device_drive(core),
      .merges_loops = core.options.merges_loops && can_device_drive(core)};
  EDDY_ASSIGN_OR_RETURN(PlacedNodes placed, place_nodes(std::move(made.graph), core.library.ops(),
                                                        core.devices, plan.devices, options));
  made.graph = std::move(placed.graph);
  core.placement = std::move(placed.text);
  plan.value_devices = std::move(placed.value_devices);
  return Status::ok();
}

}  // namespace

Result<Graph> make_graph_to_run(const Library& library, Graph graph,
                                const SessionOptions& options) {
  EDDY_RETURN_IF_ERROR(check_options(options));
  StepLog log(options);
  return make_graph_to_run(library, std::move(graph), options, {}, log);
}

namespace {

Status check(const SessionOptions& options) {
  return options.check ? options.check() : Status::ok();
}

// The core's own program: simplified, planned and proved; its kernels are not bound. `ranks`: set
// where the core has some.
Result<std::shared_ptr<CompiledProgram>> plan_program(SessionCore& core, Graph graph,
                                                      const Fingerprint& given,
                                                      const PreparedGraph* prepared_or_null,
                                                      ForRanks& ranks, StepLog& log) {
  const SessionOptions& options = core.options;
  Graph ready = std::move(graph);
  if (prepared_or_null == nullptr) {
    EDDY_ASSIGN_OR_RETURN(
        ready, make_graph_to_run(core.library, std::move(ready), options, core.devices, log));
  }
  if (core.ranks != nullptr) {
    EDDY_ASSIGN_OR_RETURN(ready, prepare_ranks(core, std::move(ready), ranks));
  }
  auto made = std::make_shared<CompiledProgram>(CompiledProgram{.graph = std::move(ready)});
  core.program = made;
  PlanOptions planning = plan_options(core);
  EDDY_RETURN_IF_ERROR(place_graph(core, *made, planning));
  if (!core.has_one_device()) {
    log.done("placed " + core.placement.substr(0, core.placement.find('\n')));
  }
  made->plan = make_plan(core, planning);
  log.done("planned " + count_text(made->graph.num_regions(), "region") + ", assignment " +
           made->plan.assignment);
  if (options.log) {
    for (const std::string& notice : made->plan.notices) options.log(notice);
  }
  if (options.costs && options.log) {
    const std::string text = cost_coverage(made->graph, *options.costs).text(made->graph);
    if (!text.empty()) options.log("costs: " + text);
  }
  EDDY_RETURN_IF_ERROR(check(options));
  // Before anything follows it: strands, simulations and recordings execute this very program.
  if (prepared_or_null != nullptr && fingerprint(made->plan.program) == prepared_or_null->proved) {
    EDDY_RETURN_IF_ERROR(check_plan(made->graph, made->plan));
    made->plan.is_proved = true;
    log.done("made the plan that was proved when it was saved");
  } else {
    EDDY_RETURN_IF_ERROR(prove_plan(made->graph, made->plan));
    log.done("proved the plan");
  }
  // While the constants are all there.
  made->made = prepared_or_null != nullptr ? prepared_or_null->made
                                           : simplified_fingerprint(given, made->graph);
  made->costs = options.costs;
  made->machine = options.plan_for;
  return made;
}

// Binds the kernels; of a program made here for the others that may run it, too.
Status bind_program(SessionCore& core, const std::shared_ptr<CompiledProgram>& made_or_null,
                    const PreparedGraph* prepared_or_null, const std::string& key) {
  EDDY_ASSIGN_OR_RETURN(core.executable,
                        make_executable(core, made_or_null.get(), prepared_or_null));
  if (made_or_null == nullptr) return Status::ok();
  if (core.options.release_constants) {
    made_or_null->graph.release_constants(core.executable->unread_constants());
  }
  made_or_null->kernels = core.executable->shared_kernels_or_null();
  if (key.empty() || made_or_null->kernels == nullptr) return Status::ok();
  auto shared = core.library.shared_programs().offer(key, made_or_null);
  if (shared == made_or_null) return Status::ok();
  // Another thread was faster: its program for this session, and nothing of this one is kept.
  core.executable.reset();
  core.program = std::move(shared);
  EDDY_ASSIGN_OR_RETURN(core.executable, make_executable(core, nullptr, nullptr));
  return Status::ok();
}

bool may_share(const SessionOptions& options) {
  return options.shares_program && !options.make_device && options.make_devices.empty() &&
         options.ranks.world == nullptr;
}

Result<std::unique_ptr<SessionCore>> make_core(const Library& library, Graph graph,
                                               const Fingerprint& given,
                                               const SessionOptions& options,
                                               const PreparedGraph* prepared_or_null,
                                               std::shared_ptr<RankSession> ranks) {
  EDDY_RETURN_IF_ERROR(check_options(options));
  EDDY_RETURN_IF_ERROR(check(options));
  StepLog log(options);
  auto core = std::make_unique<SessionCore>(library, options);
  core->ranks = std::move(ranks);
  EDDY_RETURN_IF_ERROR(make_devices(*core));
  core->tell_notices();
  std::string key;  // empty: this session's alone
  if (may_share(options)) {
    const Fingerprint named =
        prepared_or_null != nullptr ? prepared_or_null->named : named_fingerprint(given, graph);
    key = program_key(named, options, core->host().num_workers());
    core->program = library.shared_programs().find_or_null(key);
  }
  ForRanks for_ranks{{}, given};
  std::shared_ptr<CompiledProgram> made_or_null;
  if (core->program != nullptr) {
    log.done("found the program of another session");
  } else {
    EDDY_ASSIGN_OR_RETURN(made_or_null, plan_program(*core, std::move(graph), given,
                                                     prepared_or_null, for_ranks, log));
  }
  core->plan_ns = log.total_ns();
  for (const Program::Block& block : core->plan().program.blocks) {
    core->has_one_strand &= block.streams.size() == 1;
  }
  describe_values(*core);
  EDDY_RETURN_IF_ERROR(bind_program(*core, made_or_null, prepared_or_null, key));
  log.done("bound kernels");
  core->tell_notices();
  EDDY_RETURN_IF_ERROR(check(options));
  core->run_pool = std::make_unique<RunPool>(*core->executable);
  core->run_pool->release(core->run_pool->acquire());
  log.done("made a first run's state");
  EDDY_RETURN_IF_ERROR(describe_loops(*core));
  core->fingerprint =
      program_fingerprint(core->program->made, *core->executable, core->is_host_driven());
  EDDY_RETURN_IF_ERROR(check(options));
  if (core->ranks != nullptr) {
    EDDY_RETURN_IF_ERROR(agree_with_ranks(*core, for_ranks));
    log.done("agreed with " + count_text(for_ranks.world.num_ranks, "rank"));
  }
  return core;
}

}  // namespace

Result<std::unique_ptr<SessionCore>> make_session_core(const Library& library, Graph graph,
                                                       const Fingerprint& given,
                                                       const SessionOptions& options,
                                                       const PreparedGraph* prepared_or_null) {
  if (options.ranks.world == nullptr) {
    return make_core(library, std::move(graph), given, options, prepared_or_null, nullptr);
  }
  const std::shared_ptr<RankSession> ranks = RankSession::create(options.ranks);
  Result<std::unique_ptr<SessionCore>> core =
      make_core(library, std::move(graph), given, options, prepared_or_null, ranks);
  if (!core.is_ok()) ranks->refuse(core.status());
  return core;
}

}  // namespace eddy
