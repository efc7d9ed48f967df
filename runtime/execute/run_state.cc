// long: the parts of one run refer to each other, and are made together.
#include "runtime/execute/run_state.h"

#include <algorithm>
#include <cstring>

#include "graph/ir/aliases.h"
#include "graph/ir/control_view.h"
#include "graph/ir/node_facts.h"
#include "runtime/device/no_waiting.h"
#include "runtime/execute/executable.h"

namespace eddy {

void* StreamScratch::reserve(size_t size_bytes) {
  if (!buffer_ || buffer_.capacity_bytes() < size_bytes) {
    buffer_.reset();
    Result<BufferRef> larger = allocator_.allocate(size_bytes);
    if (!larger.is_ok()) return nullptr;
    buffer_ = std::move(*larger);
  }
  return buffer_.data();
}

void StreamScratch::keep() {
  const bool is_kept = !kept_.empty() && kept_.back().get() == buffer_.get();
  if (buffer_ && !is_kept) kept_.push_back(buffer_);
}

namespace {

// How often a value is read, under any of its names. Results of `before` that only forward are
// names, not reads.
std::vector<uint32_t> count_reads(const Graph& graph) {
  std::vector<uint32_t> reads(graph.num_values(), 0);
  const auto read = [&](ValueId value) {
    if (!value.is_none()) ++reads[resolve_forwarded(graph, value).index()];
  };
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    for (ValueId value : graph.node(NodeId(n)).inputs) read(value);
  }
  for (uint32_t r = 0; r < graph.num_regions(); ++r) {
    const Region& region = graph.region(RegionId(r));
    const bool is_before = role(graph, RegionId(r)) == RegionRole::kBefore;
    for (size_t k = 0; k < region.results.size(); ++k) {
      const ValueInfo& info = graph.value(region.results[k]);
      const bool is_forwarding = is_before && k > 0 && info.region == RegionId(r);
      if (!is_forwarding) read(region.results[k]);
    }
  }
  return reads;
}

// True when the node may take over input i's buffer: nobody else reads the value, and it belongs
// to the region the node stands in (or to that loop's `before`).
bool may_take_input(const Graph& graph, const Node& node, size_t i,
                    const std::vector<uint32_t>& reads) {
  if (i >= node.inputs.size() || node.inputs[i].is_none()) return false;
  const ValueId value = resolve_forwarded(graph, node.inputs[i]);
  // What the node's own region forwards must outlive the node: `before` gives it to the loop's
  // outputs. (Seen from `after`, forwarding has been done.)
  for (ValueId result : graph.region(node.region).results) {
    if (resolve_forwarded(graph, result) == value) return false;
  }
  const ValueInfo& info = graph.value(value);
  if (reads[value.index()] != 1) return false;
  if (info.region == node.region) return info.origin == ValueOrigin::kNodeOutput || info.index > 0;
  return are_in_one_iteration(graph, info.region, node.region) &&
         info.origin == ValueOrigin::kParameter;
}

// The input that output 0 may overwrite where it stands, element for element; none: null.
ValueId find_in_place(const Graph& graph, const Node& node, const std::vector<uint32_t>& reads) {
  const ValueType& to = graph.value(node.outputs[0]).type;
  for (size_t i = 0; i < std::min<size_t>(node.inputs.size(), 64); ++i) {
    if ((node.op->in_place_inputs >> i & 1) == 0 || !may_take_input(graph, node, i, reads))
      continue;
    const ValueType& from = graph.value(node.inputs[i]).type;
    if (from.is_static_tensor() && from.tensor.dims == to.tensor.dims &&
        element_size_bytes(from.tensor.element) == element_size_bytes(to.tensor.element)) {
      return node.inputs[i];
    }
  }
  return {};
}

}  // namespace

RunState::RunState(const Executable& executable, Allocator& allocator)
    : executable_(executable), allocator_(allocator) {
  const Graph& graph = executable.graph();
  slots_.resize(graph.num_values(), nullptr);
  exec_nodes_.resize(graph.num_nodes());
  loops_.resize(graph.num_nodes());
  cases_.resize(graph.num_nodes());
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const NodeKind kind = graph.node(NodeId(n)).kind;
    if (kind == NodeKind::kWhile) loops_[n] = std::make_unique<LoopState>(*this, NodeId(n));
    if (kind == NodeKind::kCaseOf) cases_[n] = std::make_unique<CaseState>(*this, NodeId(n));
  }
  for (uint32_t v = 0; v < graph.num_values(); ++v) make_slot(ValueId(v));
  make_taken_slots();
  if (executable.uses_arenas()) make_arenas();
  for (size_t i = 0; i < graph.outputs().size(); ++i) outputs_.emplace_back();
  find_targets();
  for (uint32_t stream = 0; stream < executable.workspaces().size(); ++stream) {
    // Where memory is short, the kernel that gets none says so.
    const size_t size = executable.workspaces()[stream];
    if (size > 0) scratch(stream).reserve(size);
  }
  for (uint32_t v = 0; v < graph.num_values(); ++v) put_back(ValueId(v));
  const std::vector<uint32_t> reads = count_reads(graph);
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (loops_[n]) loops_[n]->connect();
    if (cases_[n]) cases_[n]->connect();
    if (graph.node(NodeId(n)).kind == NodeKind::kExec) make_node(NodeId(n), reads);
  }
  make_faults();
  if (executable.locates_faults()) leave_breadcrumbs();
}

RunState::~RunState() = default;

const Graph& RunState::graph() const { return executable_.graph(); }

Slot* RunState::make_slot(ValueId value) {
  Slot*& slot = slots_[value.index()];
  if (slot != nullptr) return slot;
  const Graph& graph = executable_.graph();
  const ValueId root = resolve_forwarded(graph, value);
  const ValueInfo& info = graph.value(value);
  if (graph.value(root).origin == ValueOrigin::kConstant) {
    return slot = &executable_.constant_slot(root, executable_.value_device(value));
  }
  if (root != value) return slot = make_slot(root);
  const Region& region = graph.region(info.region);
  const bool is_iteration =
      info.origin == ValueOrigin::kParameter && info.index == 0 && !region.owner.is_none();
  if (is_iteration) return slot = &loops_[region.owner.index()]->iteration_slot();
  slot = &storage_.emplace_back();
  if (info.type.is_static_tensor()) {
    slot->set_tensor(info.type.tensor.element, info.type.tensor.dims.span());
  }
  return slot;
}

Slot& RunState::slot_for(ValueId from, ValueId to) {
  const uint32_t device = executable_.value_device(to);
  const ValueId root = resolve_forwarded(graph(), from);
  const bool is_constant = graph().value(root).origin == ValueOrigin::kConstant;
  return is_constant && device != 0 ? executable_.constant_slot(root, device) : slot(from);
}

// Where memory is short every value asks for its own, and the one that gets none says so.
void RunState::make_arenas() {
  for (const MemoryArena& arena : executable_.plan().memory.arenas) {
    Result<BufferRef> buffer = executable_.memory_of(arena.device).allocate(arena.size_bytes);
    if (!buffer.is_ok()) return arenas_.clear();
    arenas_.push_back(std::move(*buffer));
  }
}

// In an arena; null: elsewhere, or there are none.
const ValueMemory* RunState::place_or_null(ValueId value) const {
  return arenas_.empty() ? nullptr : executable_.plan().memory.block_or_null(value);
}

void* RunState::address(const ValueMemory& place, size_t i) const {
  return static_cast<char*>(arenas_[place.arena].data()) + place.offsets_bytes[i];
}

// At one address in every run of this state.
bool RunState::is_fixed(ValueId value) const {
  const ValueMemory* const place = place_or_null(value);
  return place != nullptr && place->offsets_bytes.size() == 1;
}

void RunState::put_back(ValueId value) {
  const ValueMemory* const place = place_or_null(value);
  if (place == nullptr) return;
  slot(value).buffer.reset();
  slot(value).view.data = address(*place, 0);
}

void RunState::start_turns(Transfers& transfers, ValueId value, NodeId loop) {
  const ValueMemory* const place = place_or_null(value);
  if (place == nullptr || place->loop != loop) return;
  transfers.add_start(slot(value), address(*place, 0));
}

bool RunState::hand_on(Transfers& transfers, ValueId to, ValueId from, Program::Moment moment,
                       NodeId loop) {
  const ValueMemory* const place = place_or_null(to);
  if (place == nullptr) return false;
  const ValueMemory* const source = place_or_null(from);
  const bool alternates = place->offsets_bytes.size() == 2;
  if (moment == Program::Moment::kEnter) start_turns(transfers, to, loop);
  if (source != nullptr && has_same_place(*place, *source, moment, loop)) {
    Slot& made = slot(resolve_views(graph(), from));
    if (alternates && moment == Program::Moment::kAdvance) transfers.add_turn(slot(to), made);
    if (alternates && moment == Program::Moment::kWithin) transfers.add_point(slot(to), made);
    return true;
  }
  std::vector<const void*> places;
  for (size_t i = 0; source != nullptr && i < source->offsets_bytes.size(); ++i) {
    places.push_back(address(*source, i));
  }
  transfers.add_copy(slot(to), slot_for(from, to), place->size_bytes, address(*place, 0),
                     std::move(places));
  return true;
}

void RunState::set_tail(NodeId node, const LoopState::Tail& tail) {
  tails_[node.index()] = &tail;
  for (auto& [value, targets] : targets_) {
    for (OutputTarget& target : targets.all) {
      for (OutputGate& gate : target.gates) {
        if (gate.node == node) gate.iteration = &tail.iteration;
      }
    }
  }
}

void RunState::make_node(NodeId id, const std::vector<uint32_t>& reads) {
  const Graph& graph = executable_.graph();
  const Node& node = graph.node(id);
  const BoundKernel& kernel = executable_.kernel(id);
  auto exec = std::make_unique<ExecNode>();
  exec->id = id;
  exec->node = &node;
  exec->state = this;
  exec->inputs.resize(node.inputs.size());
  exec->outputs.resize(node.outputs.size());
  const bool is_fixed = is_static_node(graph, node);
  if (kernel.run_value == nullptr && (node.op->is_view || !is_fixed)) {
    exec->shapes = std::make_unique<ExecNode::Shapes>(node.inputs.size(), node.outputs.size());
  }
  const uint32_t device = executable_.device_of(id);
  const bool is_host = device == 0;
  exec->memory = is_host ? &allocator_ : &executable_.memory(device);
  exec->output_memory = exec->memory;
  if (!is_host && executable_.value_device(node.outputs[0]) == 0) {
    exec->output_memory = &allocator_;
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) bind_input(*exec, i, device);
  for (size_t o = 0; o < node.outputs.size(); ++o) {
    Slot& output = slot(node.outputs[o]);
    exec->outputs[o] = output.view;
    const ValueMemory* const place = place_or_null(node.outputs[o]);
    exec->out.push_back({&output, &exec->outputs[o], is_fixed ? output.view.size_bytes() : 0,
                         place == nullptr ? 0 : place->size_bytes});
    exec->makes_strings |= output.view.element == ElementType::kString ||
                           graph.value(node.outputs[o]).type.tensor.element == ElementType::kString;
  }
  exec->use(kernel);
  exec->args.inputs = exec->inputs.data();
  exec->args.outputs = exec->outputs.data();
  exec->args.num_inputs = static_cast<uint32_t>(exec->inputs.size());
  exec->args.num_outputs = static_cast<uint32_t>(exec->outputs.size());
  exec->args.error = &exec->error;
  exec->may_append = node.op->may_append && is_host && may_take_input(graph, node, 0, reads) &&
                     !is_taken(id, node.inputs[0]);
  if (kernel.run_value != nullptr) {
    exec->work = run_value;
  } else if (node.op->is_view) {
    exec->work = run_view;
  } else {
    exec->work = is_fixed ? run_fixed : run_dynamic;
  }
  exec->may_be_recorded = !is_host && exec->work == run_fixed && !exec->has_host_values &&
                          executable_.observer_or_null() == nullptr;
  if (!is_host && node.op->domain == "eddy" && node.op->name == "ToDevice") {
    exec->reads_staging_of_or_null = executable_.device(device).staging_or_null();
    // A caller's memory and a loop's counter are read when the copy is issued.
    exec->may_be_recorded &= graph.value(node.inputs[0]).origin == ValueOrigin::kNodeOutput;
  }
  OutputTargets* const targets = targets_or_null(node.outputs[0]);
  if (is_fixed && targets != nullptr) {
    const ValueId in_place = find_in_place(graph, node, reads);
    if (!in_place.is_none() && !is_taken(id, in_place)) {
      work_in_place(*targets, slot(in_place), reads[node.outputs[0].index()]);
    }
  }
  if (executable_.releases_by_itself(id)) {
    for (ValueId value : executable_.releases(id)) exec->release.push_back(&slot(value));
    exec->min_released_bytes = executable_.min_released_bytes();
  }
  leave_still(*exec);
  exec_nodes_[id.index()] = std::move(exec);
}

// The node does nothing for outputs that do not move.
void RunState::leave_still(ExecNode& exec) {
  const std::vector<ValueId>& outputs = exec.node->outputs;
  const bool is_still_view = exec.work == run_view && !exec.has_host_values && is_fixed(outputs[0]);
  if (is_still_view && exec.release.empty()) exec.work = run_still;
  const auto may_move = [&](ValueId output) { return !is_fixed(output); };
  if (std::ranges::any_of(outputs, may_move)) exec.moving = exec.out;
}

// Where input `i` comes from: constants from where the node runs, but for what the host reads.
void RunState::bind_input(ExecNode& exec, size_t i, uint32_t device) {
  const Graph& graph = executable_.graph();
  const ValueId value = exec.node->inputs[i];
  const bool is_read_there = device != 0 && !is_host_input(*exec.node, i);
  const bool is_constant = !value.is_none() && graph.value(value).origin == ValueOrigin::kConstant;
  Slot* from = value.is_none() ? nullptr : &slot_read_by(exec.id, value);
  if (is_constant && is_read_there) from = &executable_.constant_slot(value, device);
  exec.input_slots.push_back(from);
  if (from == nullptr) return;
  exec.inputs[i] = from->view;
  const bool is_host_value = has_flag(exec.node->op->input_flags(i), InputFlag::kHostValue);
  if (exec.shapes != nullptr) {
    exec.shapes->input_type_pointers[i] = &exec.shapes->input_types[i];
    const bool is_value = (is_constant && !is_read_there) || is_host_value;
    if (is_value) exec.shapes->values[i] = &exec.inputs[i];
  }
  exec.has_host_values |= !is_constant && is_host_value;
  const bool may_move = !is_fixed(value) || is_taken(exec.id, value);
  if (!is_constant && may_move) exec.refresh.push_back({&exec.inputs[i], from});
}

StreamScratch& RunState::scratch(uint32_t stream) {
  while (scratch_.size() <= stream) {
    const std::vector<uint32_t>& devices = executable_.plan().stream_devices;
    const size_t next = scratch_.size();
    scratch_.emplace_back(executable_.memory(next < devices.size() ? devices[next] : 0));
  }
  return scratch_[stream];
}

std::atomic<uint32_t>& RunState::current_node(uint32_t strand) {
  while (current_nodes_.size() <= strand) current_nodes_.emplace_back(UINT32_MAX);
  return current_nodes_[strand];
}

void RunState::reset() {
  {
    std::lock_guard lock(mutex_);
    error_ = Status();
    control.error = Status();
  }
  clear_faults();
  for (auto& loop : loops_) {
    if (loop) loop->reset();
  }
  for (DeviceLoop* const device : device_loops_) {
    if (device) device->forget();
  }
}

GraphCaptures RunState::captures() const {
  GraphCaptures captures;
  for (const auto& capture : captures_) captures.push_back(capture.get());
  return captures;
}

bool RunState::start_recording() {
  for (uint32_t d = 0; d < executable_.num_devices(); ++d) {
    captures_.push_back(executable_.device(d).create_capture_or_null());
  }
  const auto is_there = [](const auto& capture) { return capture != nullptr; };
  if (std::ranges::none_of(captures_, is_there)) captures_.clear();
  const auto can_decide = [](const auto& capture) { return capture && capture->can_decide(); };
  if (std::ranges::none_of(captures_, can_decide) || !executable_.has_device_control())
    return false;
  Result<BufferRef> word = allocator_.allocate(sizeof(uint32_t));
  if (!word.is_ok()) return false;  // then loops are driven from the host
  stop_word_ = std::move(*word);
  control.stop_word_or_null = static_cast<uint32_t*>(stop_word_.data());
  control.tell_device(0);
  clear_faults();
  device_loops_.resize(graph().num_nodes(), nullptr);
  return true;
}

void RunState::end_device_loops() {
  for (DeviceLoop* const device : device_loops_) {
    if (device) device->give_place_back();
  }
}

bool RunState::give_places_back(const void* native_stream) {
  bool has_given = false;
  for (DeviceLoop* const device : device_loops_) {
    if (device && device->is_on(native_stream)) has_given |= device->give_place_back();
  }
  return has_given;
}

Result<int64_t> RunState::trip_limit(NodeId loop) {
  const ValueId limit = graph().node(loop).inputs[0];
  if (limit.is_none()) return INT64_MAX;
  const TensorView& view = slot(limit).view;
  if (view.count() == 1 && view.data != nullptr) return *view.as<int64_t>();
  return run_failed("the trip limit must be one int64, but has " + std::to_string(view.count()) +
                    " elements");
}

std::string RunState::why_by_host(NodeId loop) const {
  const Graph& graph = executable_.graph();
  if (device_loops_.empty()) return "the word by which it would be stopped has no memory";
  for (NodeId at = loop; !at.is_none(); at = graph.region(graph.node(at).region).owner) {
    if (device_loops_[at.index()]) return device_loops_[at.index()]->why_by_host();
  }
  return "";
}

std::string RunState::how_by_device(NodeId loop) const {
  const bool is_there = !device_loops_.empty() && device_loops_[loop.index()] != nullptr;
  return is_there ? device_loops_[loop.index()]->how_by_device() : "";
}

bool RunState::fail(NodeId node, Status status) {
  if (NoWaiting::has_refused_here()) return false;  // it will be done again
  std::lock_guard lock(mutex_);
  if (error_.is_ok()) {
    error_ = std::move(status);
    tell_where(error_, node);
  }
  return false;
}

Status RunState::take_error() {
  std::lock_guard lock(mutex_);
  Status own = std::exchange(error_, Status());
  Status devices = std::exchange(control.error, Status());
  const uint32_t strand = std::exchange(control.failed_strand, RunControl::kNoStrand);
  if (!own.is_ok()) return own;
  if (devices.is_ok()) return internal_error("the run failed, and nothing has said why");
  if (strand < current_nodes_.size()) {
    const uint32_t node = current_node(strand).load(std::memory_order_relaxed);
    tell_where(devices, node == UINT32_MAX ? NodeId() : NodeId(node));
  }
  return devices;
}

bool RunState::fail(Status status) {
  std::lock_guard lock(mutex_);
  if (error_.is_ok()) error_ = std::move(status);
  return false;
}

int64_t RunState::iteration(NodeId loop, NodeId inner) const {
  const auto tail = tails_.find(inner.index());
  if (tail == tails_.end()) return loops_[loop.index()]->iteration();
  return tail->second->iteration.load(std::memory_order_relaxed);
}

int64_t RunState::issued_iteration(NodeId loop, NodeId inner) const {
  const LoopState& state = *loops_[loop.index()];
  const bool is_after = graph().node(inner).region == LoopView(graph(), loop).after_id();
  // A device does not count the iteration that a fault ends; a tail counts by itself.
  const bool is_counted_on =
      is_after && !state.is_driven_by_device() && !tails_.contains(inner.index());
  return is_counted_on ? state.begun() : iteration(loop, inner);
}

std::string RunState::iteration_path(NodeId id) const { return path_of(id, &RunState::iteration); }

std::string RunState::ended_path(NodeId id) const {
  return path_of(id, &RunState::issued_iteration);
}

std::string RunState::path_of(NodeId id, IterationOf iteration_of) const {
  std::string path = graph().node(id).name;
  NodeId inner = id;
  RegionId at = graph().node(id).region;
  while (!graph().region(at).owner.is_none()) {
    const NodeId owner_id = graph().region(at).owner;
    const Node& owner = graph().node(owner_id);
    const bool is_loop = owner.kind == NodeKind::kWhile;
    path = owner.name +
           (is_loop ? "[" + std::to_string((this->*iteration_of)(owner_id, inner)) + "]"
                    : "/" + graph().region(at).name) +
           "/" + path;
    inner = owner_id;
    at = owner.region;
  }
  return path;
}

namespace {

std::string_view state_text(StrandState state) {
  switch (state) {
    case StrandState::kIdle:
      return "not running";
    case StrandState::kQueued:
      return "waits for a worker";
    case StrandState::kRunning:
      return "running";
    case StrandState::kWaitingForStrand:
      return "waits for another strand";
    case StrandState::kWaitingForDevice:
      return "waits for the device";
    case StrandState::kWaitingForAnswer:
      return "waits for an answer";
  }
  return "?";
}

}  // namespace

std::string RunState::describe_strands(const StrandRunner& runner) const {
  std::string text;
  for (uint32_t strand = 0; strand < current_nodes_.size(); ++strand) {
    const uint32_t node = current_nodes_[strand].load(std::memory_order_relaxed);
    const StrandState state = runner.strand_state(strand);
    text += "  strand " + std::to_string(strand) + ": " + std::string(state_text(state));
    if (node != UINT32_MAX) {
      const Node& at = graph().node(NodeId(node));
      text += state == StrandState::kRunning ? ", at " : ", last at ";
      text += iteration_path(NodeId(node)) + " (" + at.op->name;
      const std::string_view function = at.attributes.get_string("name", "");
      if (at.op->name == "HostPredicate") text += " '" + std::string(function) + "'";
      text += ")";
    }
    text += "\n";
  }
  return text;
}

}  // namespace eddy
