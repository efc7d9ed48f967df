#include "runtime/execute/executable.h"

#include <algorithm>
#include <numeric>

#include "graph/base/check.h"
#include "graph/ir/aliases.h"
#include "graph/ir/node_facts.h"
#include "graph/loops/device_loops.h"
#include "graph/loops/unrolling.h"
#include "graph/schedule/costs/cost_model.h"
#include "runtime/device/compile.h"
#include "runtime/execute/upload.h"

namespace eddy {
namespace {

constexpr double kInlineBudgetNs = 10'000;
constexpr double kBriefNs = 2'000;

// The host's memory beside a device with staging memory: tensors there, strings in the host's own.
class StagedHostMemory : public Allocator {
 public:
  StagedHostMemory(Allocator& staging, Allocator& host) : staging_(staging), host_(host) {}

  Result<BufferRef> allocate(size_t size_bytes) override { return staging_.allocate(size_bytes); }
  Result<BufferRef> allocate_strings(size_t count) override {
    return host_.allocate_strings(count);
  }
  MemoryStatistics statistics() const override { return staging_.statistics(); }
  // Buffers name their own owner, so none comes back here.
  void release(Buffer* buffer) noexcept override { buffer->owner->release(buffer); }

 private:
  Allocator& staging_;
  Allocator& host_;
};

// The largest scratch memory of the nodes on each of the machine's streams.
std::vector<size_t> find_workspaces(const Plan& plan, std::span<const BoundKernel* const> kernels) {
  std::vector<size_t> sizes(plan.num_streams, 0);
  for (const Program::Block& block : plan.program.blocks) {
    for (const Program::Step& step : block.steps) {
      if (step.op != Program::Op::kLaunch) continue;
      if (sizes.size() <= step.stream) sizes.resize(step.stream + 1, 0);
      const BoundKernel& kernel = *kernels[node_of(plan.program, step).index()];
      sizes[step.stream] = std::max(sizes[step.stream], kernel.scratch_bytes);
    }
  }
  return sizes;
}

// Which constants are not read, as far as kernels are bound.
class ConstantReads {
 public:
  explicit ConstantReads(const Graph& graph)
      : graph_(graph),
        num_pending_(graph.num_constants(), 0),
        is_read_(graph.num_constants(), false) {
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
      const Node& node = graph.node(NodeId(n));
      for (const ValueId input : node.inputs) {
        if (node.kind == NodeKind::kExec) {
          count(input);
        } else {
          read(input);
        }
      }
    }
    for (uint32_t r = 0; r < graph.num_regions(); ++r) {
      for (const ValueId result : graph.region(RegionId(r)).results) read(result);
    }
    for (uint32_t c = 0; c < graph.num_constants(); ++c) {
      if (num_pending_[c] == 0 && !is_read_[c]) unread_.push_back(ConstantId(c));
    }
  }

  // The node's kernel is there. Bytes of the constants that it reads no more.
  size_t bind(NodeId id, uint64_t unread) {
    size_t sum_bytes = 0;
    const std::vector<ValueId>& inputs = graph_.node(id).inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ConstantId constant = constant_of(inputs[i]);
      if (constant.is_none()) continue;
      EDDY_DCHECK(num_pending_[constant.index()] > 0) << "a node is bound twice";
      --num_pending_[constant.index()];
      if (i >= 64 || (unread >> i & 1) == 0) {
        is_read_[constant.index()] = true;
        continue;
      }
      sum_bytes += graph_.constant(constant).view().size_bytes();
      if (num_pending_[constant.index()] == 0 && !is_read_[constant.index()]) {
        unread_.push_back(constant);
      }
    }
    return sum_bytes;
  }

  // Grows; each constant once.
  const std::vector<ConstantId>& unread() const { return unread_; }
  std::vector<ConstantId> take_unread() { return std::move(unread_); }

 private:
  ConstantId constant_of(ValueId value) const {
    const bool is_constant =
        !value.is_none() && graph_.value(value).origin == ValueOrigin::kConstant;
    return is_constant ? graph_.value(value).constant : ConstantId();
  }
  void count(ValueId value) {
    if (const ConstantId id = constant_of(value); !id.is_none()) ++num_pending_[id.index()];
  }
  void read(ValueId value) {
    if (const ConstantId id = constant_of(value); !id.is_none()) is_read_[id.index()] = true;
  }

  const Graph& graph_;
  std::vector<uint32_t> num_pending_;  // readers not bound yet
  std::vector<bool> is_read_;
  std::vector<ConstantId> unread_;
};

}  // namespace

Executable::Executable(const Graph& graph, const Plan& plan, std::vector<ExecutionDevice> devices,
                       ExecutableOptions options)
    : graph_(graph),
      plan_(plan),
      devices_(std::move(devices)),
      options_(std::move(options)),
      node_devices_(graph.num_nodes(), 0),
      releases_(plan_releases(graph, plan)),
      output_routes_(find_output_routes(graph)),
      host_memory_(&host().allocator()) {
  is_only_copied_out_.resize(output_routes_.size(), false);
  if (num_devices() == 1) return;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    node_devices_[n] = device_named(graph.node(NodeId(n)).device);
  }
  const std::vector<uint32_t> uses = count_uses(graph);
  for (size_t i = 0; i < output_routes_.size(); ++i) {
    std::vector<OutputRoute>& routes = output_routes_[i];
    is_only_copied_out_[i] =
        routes.size() == 1 && routes[0].turns.empty() && graph.outputs()[i] == routes[0].made &&
        copy_to_host_or_null(graph, routes[0].made) != nullptr && uses[routes[0].made.index()] == 1;
    if (is_only_copied_out_[i]) continue;
    // Copies write no pageable memory, so such outputs are copied when the run is done.
    std::erase_if(routes, [&](const OutputRoute& route) {
      const ValueInfo& made = graph.value(route.made);
      return graph.node(made.producer).kind == NodeKind::kExec && device_of(made.producer) != 0;
    });
  }
  if (Staging* const staging = first_staging_or_null(devices_)) {
    staged_memory_ = std::make_unique<StagedHostMemory>(staging->staging(), host().allocator());
    host_memory_ = staged_memory_.get();
  }
}

Result<std::unique_ptr<Executable>> Executable::create(const Graph& graph, const Plan& plan,
                                                       std::vector<ExecutionDevice> devices,
                                                       ExecutableOptions options) {
  EDDY_CHECK(!devices.empty()) << "nothing to run on";
  EDDY_DCHECK(devices.size() == 1 || devices.size() == plan.devices.size())
      << devices.size() << " devices for a plan of " << plan.devices.size();
  std::unique_ptr<Executable> executable(
      new Executable(graph, plan, std::move(devices), std::move(options)));
  EDDY_RETURN_IF_ERROR(executable->check_devices());
  EDDY_RETURN_IF_ERROR(executable->bind());
  return executable;
}

// What one device copies to the host another one must be able to read.
Status Executable::check_devices() const {
  if (num_devices() == 1) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(const BufferRef probe, host_memory_->allocate(1));
  for (uint32_t d = 1; d < num_devices(); ++d) {
    Staging* const staging = device(d).staging_or_null();
    if (staging != nullptr && !staging->is_staging(probe.data(), 1)) {
      return unsupported("device " + plan_.devices[d] +
                         " cannot be used beside the ones before it: its copies read and write its "
                         "own page-locked memory only, and the host's values live in another "
                         "device's (Staging, runtime/device/staging.h); use one of them, or "
                         "sessions of their own");
    }
    if (!locates_faults() || (staging != nullptr && staging->can_copy_words())) continue;
    return unsupported("faults can't be located: device " + plan_.devices[d] +
                       " lacks the kernel that leaves breadcrumbs (eddy info says which kernels "
                       "there are)");
  }
  return Status::ok();
}

// The host's where there is none of that name.
uint32_t Executable::device_named(std::string_view name) const {
  const auto found = std::ranges::find(plan_.devices, name);
  const auto index = static_cast<uint32_t>(found - plan_.devices.begin());
  return index < num_devices() ? index : 0;
}

Status Executable::bind() {
  constants_.resize(graph_.num_values());
  for (uint32_t v = 0; v < graph_.num_values(); ++v) {
    const ValueInfo& info = graph_.value(ValueId(v));
    if (info.origin != ValueOrigin::kConstant) continue;
    constants_[v] = std::make_unique<Slot>();
    constants_[v]->borrow(graph_.constant(info.constant).view());
  }
  const std::vector<double> costs_ns = estimate_costs_ns(graph_);
  for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
    const Node& node = graph_.node(NodeId(n));
    const bool is_host = calls_host_function(node);
    const bool may_block = is_host && !(options_.is_non_blocking && options_.is_non_blocking(node));
    // What another device does is not done by the thread that issues it.
    const bool is_issued = device_of(NodeId(n)) != 0;
    is_cheap_.push_back(!may_block && (is_issued || costs_ns[n] < kInlineBudgetNs));
  }
  EDDY_RETURN_IF_ERROR(options_.kernels != nullptr ? bind_with_shared() : bind_nodes());
  forget_unread_constants();
  is_brief_ = num_devices() == 1 && graph_.num_regions() == 1 && plan_.num_streams == 1 &&
              std::accumulate(costs_ns.begin(), costs_ns.end(), 0.0) < kBriefNs;
  for (uint32_t n = 0; n < graph_.num_nodes() && is_brief_; ++n) {
    is_brief_ = is_node_plain(NodeId(n));
  }
  EDDY_DCHECK(kernels_.size() == graph_.num_nodes() && is_cheap_.size() == graph_.num_nodes())
      << kernels_.size() << " kernels";
  workspaces_ = find_workspaces(plan_, kernels_);
  if (has_device_control()) judge();
  return Status::ok();
}

// Nodes that read the largest constants come first: a constant and its packed form are there at
// once, and what others have packed before is still small then.
std::vector<NodeId> Executable::binding_order() const {
  std::vector<std::pair<size_t, NodeId>> order;
  for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
    const Node& node = graph_.node(NodeId(n));
    if (node.kind != NodeKind::kExec) continue;
    size_t largest = 0;
    for (const ValueId value : node.inputs) {
      if (value.is_none() || graph_.value(value).origin != ValueOrigin::kConstant) continue;
      largest = std::max(largest, constant_slot(value).view.size_bytes());
    }
    order.emplace_back(largest, NodeId(n));
  }
  std::ranges::stable_sort(order, std::ranges::greater(), &std::pair<size_t, NodeId>::first);
  std::vector<NodeId> nodes;
  for (const auto& [bytes, id] : order) nodes.push_back(id);
  return nodes;
}

Status Executable::bind_nodes() {
  constexpr size_t kReleaseBytes = 8 << 20;
  auto bound = std::make_shared<BoundKernels>();
  bound->kernels.resize(graph_.num_nodes());
  for (const BoundKernel& kernel : bound->kernels) kernels_.push_back(&kernel);
  bool are_shareable = num_devices() == 1;
  PackedConstants packed(options_.packing_store);
  ConstantReads reads(graph_);
  std::deque<Uploader> uploaders;  // by device
  for (const ExecutionDevice& device : devices_) {
    uploaders.emplace_back(device);
    device_constants_.emplace_back(graph_.num_constants());
  }
  EDDY_RETURN_IF_ERROR(upload_passed_constants(uploaders));
  size_t num_released = 0;  // of reads.unread()
  const bool releases_early =
      options_.release_constants != nullptr && options_.packing_store.find_or_null == nullptr;
  size_t num_packed_bytes = kReleaseBytes;  // reading the file has touched all of it
  for (const NodeId id : binding_order()) {
    EDDY_ASSIGN_OR_RETURN(BoundKernel kernel, bind_node(id, &packed));
    uint64_t unread = kernel.unread_constants;
    keep_kernel(id, std::move(kernel), *bound);
    are_shareable &= unread == 0 || kernels_[id.index()] == &bound->kernels[id.index()];
    EDDY_RETURN_IF_ERROR(upload_constants(id, uploaders, unread));
    num_packed_bytes += reads.bind(id, unread);
    if (num_packed_bytes < kReleaseBytes || !releases_early) continue;
    options_.release_constants(std::span(reads.unread()).subspan(num_released));
    num_released = reads.unread().size();
    num_packed_bytes = 0;
  }
  bound->unread_constants = reads.take_unread();
  bound_ = std::move(bound);
  if (are_shareable) shared_kernels_ = bound_;
  for (uint32_t d = 1; d < num_devices(); ++d) EDDY_RETURN_IF_ERROR(uploaders[d].finish());
  return Status::ok();
}

Status Executable::bind_with_shared() {
  bound_ = shared_kernels_ = options_.kernels;
  EDDY_CHECK(num_devices() == 1 && bound_->kernels.size() == graph_.num_nodes())
      << bound_->kernels.size() << " kernels for " << graph_.num_nodes() << " nodes";
  for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
    const BoundKernel& shared = bound_->kernels[n];
    kernels_.push_back(&shared);
    const bool is_bound = shared.run != nullptr || shared.run_value != nullptr;
    if (graph_.node(NodeId(n)).kind != NodeKind::kExec || is_bound) continue;
    EDDY_ASSIGN_OR_RETURN(BoundKernel kernel, bind_node(NodeId(n), nullptr));
    kernels_[n] = &own_kernels_.emplace_back(std::move(kernel));
  }
  return Status::ok();
}

// What it takes is known before: shapes are fixed, and the kernel is Eddy's and answers at once.
bool Executable::is_node_plain(NodeId id) const {
  const Node& node = graph_.node(id);
  const auto is_text = [&](ValueId value) {
    return !value.is_none() && graph_.value(value).type.tensor.element == ElementType::kString;
  };
  const BoundKernel& kernel = *kernels_[id.index()];
  return is_static_node(graph_, node) && std::ranges::none_of(node.inputs, is_text) &&
         kernel.provider != kCustomProvider && kernel.start == nullptr && !is_of_session(id);
}

void Executable::keep_kernel(NodeId id, BoundKernel kernel, BoundKernels& shared) {
  const bool is_own =
      kernel.provider == kCustomProvider || kernel.start != nullptr || is_of_session(id);
  BoundKernel& kept = is_own ? own_kernels_.emplace_back() : shared.kernels[id.index()];
  kept = std::move(kernel);
  kernels_[id.index()] = &kept;
}

void Executable::forget_unread_constants() {
  std::vector<bool> is_unread(graph_.num_constants(), false);
  for (const ConstantId id : unread_constants()) is_unread[id.index()] = true;
  for (uint32_t v = 0; v < graph_.num_values(); ++v) {
    const ValueInfo& info = graph_.value(ValueId(v));
    if (info.origin != ValueOrigin::kConstant || !is_unread[info.constant.index()]) continue;
    constants_[v]->view.data = nullptr;
  }
}

// What `use` makes of what a kernel is bound by.
template <typename Use>
auto Executable::with_init(NodeId id, PackedConstants* packed_or_null, const Use& use) {
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
                        inputs,   outputs,         constants,          packed_or_null};
  return use(init);
}

Result<BoundKernel> Executable::bind_node(NodeId id, PackedConstants* packed_or_null) {
  Result<BoundKernel> kernel =
      with_init(id, packed_or_null, [&](const KernelInit& init) { return bind_kernel(id, init); });
  const OpDef& op = *graph_.node(id).op;
  if (kernel.is_ok() && kernel->run_value != nullptr && !op.is_value_op && !op.is_view) {
    kernel = internal_error("the kernel of " + op.name +
                            " makes its own outputs, which the operator's definition does not say");
  }
  if (kernel.is_ok()) return kernel;
  return std::move(kernel.take_status().prepend_path(graph_.path(id)));
}

bool Executable::is_of_session(NodeId id) const {
  return device_of(id) == 0 && options_.is_bound_by_session &&
         options_.is_bound_by_session(*graph_.node(id).op);
}

Result<BoundKernel> Executable::bind_kernel(NodeId id, const KernelInit& init) const {
  if (is_of_session(id)) return options_.bind_by_session(init);
  if (calls_host_function(graph_.node(id))) {
    return unsupported("host functions are not available here");
  }
  return devices_[device_of(id)].kernels->bind(init);
}

// Which loops devices drive, and how.
void Executable::judge() {
  control_verdicts_ =
      find_device_loops(graph_, {[this](NodeId node) { return device_of(node); },
                                 [this](ValueId value) { return value_device(value); }});
  EDDY_DCHECK(control_verdicts_.size() == graph_.num_nodes()) << "a verdict for each node";
  std::vector<bool> decides;  // by device
  for (const ExecutionDevice& each : devices_) decides.push_back(can_decide_loops(*each.device));
  for (ControlVerdict& verdict : control_verdicts_) {
    if (!verdict.is_driven_by_device || decides[verdict.device]) continue;
    verdict = {false, false, "its device cannot decide loops by itself", verdict.device};
  }
  loop_choices_.resize(options_.are_loops_measured ? graph_.num_nodes() : 0);
  persistent_loops_.resize(graph_.num_nodes());
  for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
    ControlVerdict& verdict = control_verdicts_[n];
    if (!verdict.is_outermost || graph_.node(NodeId(n)).kind != NodeKind::kWhile) continue;
    if (device(verdict.device).compile_or_null() != nullptr && !locates_faults()) {
      const Status status = make_persistent(NodeId(n), persistent_loops_[n]);
      verdict.reason = status.is_ok() ? "persistent: all of it is one kernel"
                                      : verdict.reason + "; not persistent: " + status.message();
    }
    const bool has_kernel = persistent_loop_or_null(NodeId(n)) != nullptr;
    const std::string why_not = why_nothing_unrolled(graph_, NodeId(n));
    if (!has_kernel && !why_not.empty()) verdict.reason += "; not unrolled: " + why_not;
    if (loop_choices_.empty()) continue;
    loop_choices_[n] = std::make_unique<LoopChoice>(
        LoopChoice::Has{.kernel = has_kernel, .unrolled = why_not.empty()});
  }
}

Status Executable::make_persistent(NodeId loop, std::unique_ptr<PersistentLoop>& made) {
  Compile& compile = *device(control_verdict(loop).device).compile_or_null();
  PersistentFacts facts;
  facts.is_value_on_device = [this](ValueId value) { return value_device(value) != 0; };
  facts.constant = [this](ValueId value) {
    const bool is_constant = graph_.value(value).origin == ValueOrigin::kConstant;
    return is_constant ? constant_slot(value).view : TensorView();
  };
  facts.function_of = [&](NodeId node) {
    return with_init(node, nullptr,
                     [&](const KernelInit& init) { return compile.function_of(init); });
  };
  auto persistent = std::make_unique<PersistentLoop>();
  EDDY_ASSIGN_OR_RETURN(persistent->program, make_persistent_program(graph_, loop, facts));
  EDDY_ASSIGN_OR_RETURN(persistent->kernel, compile.prepare_loop(persistent->program.program));
  made = std::move(persistent);
  return Status::ok();
}

Status Executable::upload(ValueId value, uint32_t device, std::deque<Uploader>& uploaders) {
  const ConstantId id = graph_.value(value).constant;
  std::unique_ptr<Slot>& slot = device_constants_[device][id.index()];
  if (slot != nullptr) return Status::ok();
  const Constant& constant = graph_.constant(id);
  slot = std::make_unique<Slot>();
  slot->set_tensor(constant.element, constant.dims.span());
  return uploaders[device].copy(constant.view(), *slot);
}

Status Executable::upload_constants(NodeId id, std::deque<Uploader>& uploaders, uint64_t& unread) {
  const Node& node = graph_.node(id);
  for (size_t i = 0; device_of(id) != 0 && i < node.inputs.size(); ++i) {
    const ValueId value = node.inputs[i];
    const bool is_unread = i < 64 && (unread >> i & 1) != 0;
    if (value.is_none() || is_unread || is_host_input(node, i)) continue;
    if (graph_.value(value).origin != ValueOrigin::kConstant) continue;
    EDDY_RETURN_IF_ERROR(upload(value, device_of(id), uploaders));
    if (i < 64) unread |= uint64_t{1} << i;
  }
  return Status::ok();
}

Status Executable::upload_passed_constants(std::deque<Uploader>& uploaders) {
  Status status;
  for (uint32_t v = 0; v < graph_.num_values() && status.is_ok(); ++v) {
    if (value_device(ValueId(v)) == 0) continue;
    for (const AliasSource& source : alias_sources(graph_, ValueId(v))) {
      const ValueId root = resolve_forwarded(graph_, source.value);
      const bool is_passed = source.kind != AliasKind::kView && status.is_ok();
      if (!is_passed || !is_constant(graph_, root)) continue;
      status = upload(root, value_device(ValueId(v)), uploaders);
    }
  }
  return status;
}

// Observers read a node's values once it has run, so then a call of its own releases them; and it
// does for nodes of fixed shapes, which are to do nothing besides.
bool Executable::releases_by_itself(NodeId id) const {
  const Node& node = graph_.node(id);
  if (node.kind != NodeKind::kExec || observer_or_null() != nullptr) return false;
  return kernel(id).run_value != nullptr || node.op->is_view || !is_static_node(graph_, node);
}

}  // namespace eddy
