#include "runtime/execute/program.h"

#include <algorithm>

#include "graph/schedule/cost_model.h"
#include "runtime/execute/lowering.h"

namespace eddy {
namespace {

constexpr double kInlineBudgetNs = 10'000;

bool is_host_predicate(const Node& node) {
  return node.op->domain == "eddy" && node.op->name == "HostPredicate";
}

// The largest scratch memory of the nodes of each strand, strands numbered as lowering forks them.
class WorkspaceFinder {
 public:
  WorkspaceFinder(const Graph& graph, const Plan& plan, std::span<const BoundKernel> kernels)
      : graph_(graph), plan_(plan), kernels_(kernels) {}

  std::vector<size_t> find() {
    region(Graph::kRoot, 0);
    return std::move(sizes_);
  }

 private:
  void region(RegionId id, uint32_t strand) {
    const RegionPlan& plan = plan_.regions[id.index()];
    for (uint32_t stream = 1; stream < plan.num_streams; ++stream) {
      nodes(plan, stream, ++num_strands_);
    }
    nodes(plan, 0, strand);
  }

  void nodes(const RegionPlan& plan, uint32_t stream, uint32_t strand) {
    for (const PlanCommand& command : plan.commands) {
      if (command.stream != stream || command.kind != PlanCommand::Kind::kLaunch) continue;
      if (sizes_.size() <= strand) sizes_.resize(strand + 1, 0);
      sizes_[strand] = std::max(sizes_[strand], kernels_[command.node.index()].scratch_bytes);
      for (RegionId inner : graph_.node(command.node).regions) region(inner, strand);
    }
  }

  const Graph& graph_;
  const Plan& plan_;
  const std::span<const BoundKernel> kernels_;
  uint32_t num_strands_ = 0;
  std::vector<size_t> sizes_;
};

}  // namespace

Program::Program(const Graph& graph, const Plan& plan, Device& device, ProgramOptions options)
    : graph_(graph),
      plan_(plan),
      device_(device),
      options_(std::move(options)),
      releases_(plan_releases(graph, plan)),
      output_routes_(find_output_routes(graph)) {}

Program::~Program() = default;

Result<std::unique_ptr<Program>> Program::create(const Graph& graph, const Plan& plan,
                                                 Device& device, const KernelRegistry& registry,
                                                 ProgramOptions options) {
  std::unique_ptr<Program> program(new Program(graph, plan, device, std::move(options)));
  EDDY_RETURN_IF_ERROR(program->bind(registry));
  return program;
}

Status Program::bind(const KernelRegistry& registry) {
  constants_.resize(graph_.num_values());
  for (uint32_t v = 0; v < graph_.num_values(); ++v) {
    const ValueInfo& info = graph_.value(ValueId(v));
    if (info.origin != ValueOrigin::kConstant) continue;
    constants_[v] = std::make_unique<Slot>();
    constants_[v]->borrow(graph_.constant(info.constant).view());
  }
  kernels_.resize(graph_.num_nodes());
  const std::vector<double> costs_ns = estimate_costs_ns(graph_);
  for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
    const Node& node = graph_.node(NodeId(n));
    const bool is_host = node.kind == NodeKind::kExec && is_host_predicate(node);
    const bool may_block = is_host && !(options_.is_non_blocking && options_.is_non_blocking(node));
    is_cheap_.push_back(!may_block && costs_ns[n] < kInlineBudgetNs);
  }
  PackedConstants packed;
  // A model's file and what is packed of it need not be in memory side by side.
  constexpr size_t kEvictBytes = 8 << 20;
  size_t num_unevicted_bytes = kEvictBytes;  // reading the file has touched all of it
  for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
    if (graph_.node(NodeId(n)).kind != NodeKind::kExec) continue;
    Status status = bind_node(registry, NodeId(n), packed);
    if (!status.is_ok()) return std::move(status.prepend_path(graph_.path(NodeId(n))));
    num_unevicted_bytes += packed_bytes(NodeId(n));
    if (num_unevicted_bytes < kEvictBytes || !options_.evict_constants) continue;
    options_.evict_constants();
    num_unevicted_bytes = 0;
  }
  find_unread_constants();
  workspaces_ = WorkspaceFinder(graph_, plan_, kernels_).find();
  return Status::ok();
}

size_t Program::packed_bytes(NodeId node) const {
  const std::vector<ValueId>& inputs = graph_.node(node).inputs;
  size_t sum = 0;
  for (size_t i = 0; i < std::min<size_t>(inputs.size(), 64); ++i) {
    if ((kernels_[node.index()].unread_constants >> i & 1) == 0 || inputs[i].is_none()) continue;
    const ValueInfo& info = graph_.value(inputs[i]);
    if (info.origin == ValueOrigin::kConstant)
      sum += constants_[inputs[i].index()]->view.size_bytes();
  }
  return sum;
}

void Program::find_unread_constants() {
  std::vector<bool> is_read(graph_.num_constants(), false);
  const auto read = [&](ValueId value) {
    if (value.is_none() || graph_.value(value).origin != ValueOrigin::kConstant) return;
    is_read[graph_.value(value).constant.index()] = true;
  };
  for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
    const std::vector<ValueId>& inputs = graph_.node(NodeId(n)).inputs;
    const uint64_t unread = kernels_[n].unread_constants;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (i >= 64 || (unread >> i & 1) == 0) read(inputs[i]);
    }
  }
  for (uint32_t r = 0; r < graph_.num_regions(); ++r) {
    for (ValueId value : graph_.region(RegionId(r)).results) read(value);
  }
  for (uint32_t c = 0; c < is_read.size(); ++c) {
    if (!is_read[c]) unread_constants_.push_back(ConstantId(c));
  }
  for (uint32_t v = 0; v < graph_.num_values(); ++v) {
    const ValueInfo& info = graph_.value(ValueId(v));
    const bool is_unread = info.origin == ValueOrigin::kConstant && !is_read[info.constant.index()];
    if (is_unread) constants_[v]->view.data = nullptr;
  }
}

Status Program::bind_node(const KernelRegistry& registry, NodeId id, PackedConstants& packed) {
  const Node& node = graph_.node(id);
  std::vector<ValueType> inputs;
  std::vector<TensorView> constants;
  for (ValueId value : node.inputs) {
    inputs.push_back(value.is_none() ? ValueType() : graph_.value(value).type);
    const bool is_constant =
        !value.is_none() && graph_.value(value).origin == ValueOrigin::kConstant;
    constants.push_back(is_constant ? constant_slot(value).view : TensorView());
  }
  std::vector<ValueType> outputs;
  for (ValueId value : node.outputs) outputs.push_back(graph_.value(value).type);
  const KernelInit init{*node.op, node.attributes, node.opset_version, node.name,
                        inputs,   outputs,         constants,          &packed};
  const bool is_host = is_host_predicate(node);
  if (is_host && !options_.bind_host) {
    return unsupported("host functions are not available here");
  }
  EDDY_ASSIGN_OR_RETURN(kernels_[id.index()],
                        is_host ? options_.bind_host(init) : registry.bind(init));
  return Status::ok();
}

std::unique_ptr<RunState> Program::acquire() {
  {
    std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      auto state = std::move(free_.back());
      free_.pop_back();
      return state;
    }
  }
  return make_state(nullptr);
}

std::unique_ptr<RunState> Program::make_traced(TraceRecorder& recorder) {
  return make_state(&recorder);
}

std::unique_ptr<RunState> Program::make_state(TraceRecorder* trace_or_null) {
  auto state = std::make_unique<RunState>(*this, device_.allocator());
  state->commands = options_.make_commands();
  lower(plan_, *state, trace_or_null);
  return state;
}

void Program::release(std::unique_ptr<RunState> state) {
  std::lock_guard lock(mutex_);
  free_.push_back(std::move(state));
}

}  // namespace eddy
