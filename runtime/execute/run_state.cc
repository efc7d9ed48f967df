#include "runtime/execute/run_state.h"

#include <algorithm>

#include "graph/base/check.h"
#include "graph/ir/aliases.h"
#include "graph/ir/control_view.h"
#include "graph/ir/node_facts.h"
#include "graph/ir/region_tree.h"
#include "runtime/execute/value_context.h"

namespace eddy {
namespace {

constexpr size_t kSmallOutputBytes = 64;  // a cache line

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

// True when the node may take over input i's buffer: no other node reads the value, and it belongs
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

// Elsewhere a node runs once, and two values in turn would have both of their blocks from the
// second run on.
bool is_in_loop(const Graph& graph, const Node& node) {
  const RegionTree regions(graph);
  for (RegionId region = node.region; region != Graph::kRoot; region = regions.parent(region)) {
    if (graph.node(regions.owner(region)).kind == NodeKind::kWhile) return true;
  }
  return false;
}

// The input that output 0 may overwrite where it stands, element for element, if its shape, where
// it is not known yet, turns out to be the output's; none: null.
ValueId find_in_place(const Graph& graph, const Node& node, const std::vector<uint32_t>& reads) {
  const ValueType& to = graph.value(node.outputs[0]).type;
  if (!to.is_tensor() || to.tensor.element == ElementType::kString) return {};
  for (size_t i = 0; i < std::min<size_t>(node.inputs.size(), 64); ++i) {
    if ((node.op->in_place_inputs >> i & 1) == 0 || !may_take_input(graph, node, i, reads))
      continue;
    const ValueType& from = graph.value(node.inputs[i]).type;
    if (!from.is_tensor() ||
        element_size_bytes(from.tensor.element) != element_size_bytes(to.tensor.element)) {
      continue;
    }
    const bool may_be_equal =
        !from.is_static_tensor() || !to.is_static_tensor() || from.tensor.dims == to.tensor.dims;
    if (may_be_equal) return node.inputs[i];
  }
  return {};
}

}  // namespace

RunState::RunState(const Executable& executable, Allocator& allocator)
    : RunSlots(executable, allocator) {
  const Graph& graph = executable.graph();
  exec_nodes_.resize(graph.num_nodes());
  loops_.resize(graph.num_nodes());
  cases_.resize(graph.num_nodes());
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const NodeKind kind = graph.node(NodeId(n)).kind;
    if (kind == NodeKind::kCaseOf) cases_[n] = std::make_unique<CaseState>(*this, NodeId(n));
    if (kind != NodeKind::kWhile) continue;
    loops_[n] = std::make_unique<LoopState>(*this, NodeId(n));
    watch(NodeId(n), *loops_[n]);
  }
  make_slots();
  for (const auto& loop : loops_) {
    if (loop) loop->make_takings();
  }
  for (uint32_t stream = 0; stream < executable.workspaces().size(); ++stream) {
    // Where memory is short, the kernel that gets none says so.
    const size_t size = executable.workspaces()[stream];
    if (size > 0) scratch(stream).reserve(size);
  }
  const std::vector<uint32_t> reads = count_reads(graph);
  make_exec_lists();
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (loops_[n]) loops_[n]->connect();
    if (cases_[n]) cases_[n]->connect();
    if (graph.node(NodeId(n)).kind == NodeKind::kExec) make_node(NodeId(n), reads);
  }
  make_faults();
  if (executable.locates_faults()) leave_breadcrumbs();
}

void RunState::make_exec_lists() {
  size_t num_nodes = 0, num_inputs = 0, num_outputs = 0, num_moving = 0;
  for (uint32_t n = 0; n < graph().num_nodes(); ++n) {
    const Node& node = graph().node(NodeId(n));
    if (node.kind != NodeKind::kExec) continue;
    ++num_nodes;
    num_inputs += node.inputs.size();
    num_outputs += node.outputs.size();
    for (const ValueId input : node.inputs) num_moving += may_move(NodeId(n), input) ? 1 : 0;
  }
  exec_storage_.reserve(num_nodes);
  exec_lists_.views.reserve(num_inputs + num_outputs);
  exec_lists_.input_slots.reserve(num_inputs);
  exec_lists_.out.reserve(num_outputs);
  exec_lists_.refresh.reserve(num_moving);
}

namespace {

// The next `count` elements, which stay where they are.
template <typename Element>
std::span<Element> take(std::vector<Element>& list, size_t count) {
  EDDY_CHECK(list.size() + count <= list.capacity()) << "exec nodes need longer lists";
  list.resize(list.size() + count);
  return std::span(list).last(count);
}

}  // namespace

void RunState::make_node(NodeId id, const std::vector<uint32_t>& reads) {
  const Graph& graph = this->graph();
  const Node& node = graph.node(id);
  EDDY_DCHECK(exec_nodes_[id.index()] == nullptr) << "node " << id.index() << " is made twice";
  const BoundKernel& kernel = executable().kernel(id);
  ExecNode* const exec = &exec_storage_.emplace_back();
  exec->id = id;
  exec->node = &node;
  exec->owner = this;
  exec->use(kernel);
  exec->inputs = take(exec_lists_.views, node.inputs.size());
  exec->input_slots = take(exec_lists_.input_slots, node.inputs.size());
  exec->out = take(exec_lists_.out, node.outputs.size());
  exec->args.inputs = exec->inputs.data();
  exec->args.num_inputs = static_cast<uint32_t>(exec->inputs.size());
  exec->args.outputs = take(exec_lists_.views, node.outputs.size()).data();
  exec->args.num_outputs = static_cast<uint32_t>(node.outputs.size());
  const bool is_fixed = is_static_node(graph, node);
  if (kernel.run_value != nullptr || node.op->is_view || !is_fixed) {
    exec->changing = std::make_unique<ExecNode::Changing>(node.inputs.size(), node.outputs.size());
  }
  const uint32_t device = executable().device_of(id);
  const bool is_host = device == 0;
  exec->output_memory = is_host ? &allocator() : &executable().memory(device);
  if (!is_host && executable().value_device(node.outputs[0]) == 0) {
    exec->output_memory = &allocator();
  }
  const size_t num_refreshed = exec_lists_.refresh.size();
  for (size_t i = 0; i < node.inputs.size(); ++i) bind_input(*exec, i, device);
  exec->refresh = std::span(exec_lists_.refresh).subspan(num_refreshed);
  for (size_t o = 0; o < node.outputs.size(); ++o) bind_result(*exec, o, is_fixed);
  exec->args.error = &exec->error;
  if (kernel.keeps_of_runs) exec->args.keep = &keeps_.emplace_back();
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
                          executable().observer_or_null() == nullptr;
  if (!is_host && node.op->domain == "eddy" && node.op->name == "ToDevice") {
    exec->reads_staging_of_or_null = executable().device(device).staging_or_null();
    // A caller's memory and a loop's counter are read when the copy is issued.
    exec->may_be_recorded &= graph.value(node.inputs[0]).origin == ValueOrigin::kNodeOutput;
  }
  OutputTargets* const targets = targets_or_null(node.outputs[0]);
  // A small one is written sooner than it changes places.
  const bool is_small = is_fixed && exec->out[0].size_bytes <= kSmallOutputBytes;
  const bool has_own_memory =
      is_host && !is_small && !exec->out[0].is_planned && is_in_loop(graph, node);
  if (has_own_memory || (is_fixed && targets != nullptr)) {
    const ValueId in_place = find_in_place(graph, node, reads);
    if (!in_place.is_none() && !is_taken(id, in_place)) {
      if (has_own_memory) exec->in_place_or_null = &slot(in_place);
      if (is_fixed && targets != nullptr) {
        work_in_place(*targets, slot(in_place), reads[node.outputs[0].index()]);
      }
    }
  }
  if (executable().releases_by_itself(id)) {
    for (ValueId value : executable().releases(id)) exec->changing->release.push_back(&slot(value));
    exec->changing->min_released_bytes = executable().min_released_bytes();
  }
  leave_still(*exec);
  exec_nodes_[id.index()] = exec;
}

void RunState::bind_result(ExecNode& exec, size_t o, bool is_fixed_shape) {
  const ValueId value = exec.node->outputs[o];
  Slot& output = slot(value);
  TensorView& view = exec.args.outputs[o];
  view = output.view;
  const ValueMemory* const place = place_or_null(value);
  size_t size_bytes = is_fixed_shape ? view.size_bytes() : 0;
  if (place != nullptr && !is_fixed_shape) size_bytes = place->size_bytes;
  exec.out[o] = {&output, &view, size_bytes, place != nullptr};
  if (OutputTargets* const targets = targets_or_null(value)) {
    targets->maker_or_null = &exec.out[o].targets_or_null;
  }
  exec.makes_strings |= view.element == ElementType::kString ||
                        graph().value(value).type.tensor.element == ElementType::kString;
}

// The node does nothing for outputs that do not move, if no shape is left to ask for.
void RunState::leave_still(ExecNode& exec) {
  const std::vector<ValueId>& outputs = exec.node->outputs;
  const bool is_still_view = exec.work == run_view && !exec.has_host_values &&
                             is_static_node(graph(), *exec.node) && is_fixed(outputs[0]);
  if (is_still_view && exec.changing->release.empty()) exec.work = run_still;
  const auto moves = [&](ValueId output) { return !is_fixed(output); };
  exec.has_moving_outputs = std::ranges::any_of(outputs, moves);
}

// The input is not always at one address.
bool RunState::may_move(NodeId reader, ValueId input) const {
  if (input.is_none() || graph().value(input).origin == ValueOrigin::kConstant) return false;
  return !is_fixed(input) || is_taken(reader, input);
}

// Where input `i` comes from: constants from where the node runs, but for what the host reads.
void RunState::bind_input(ExecNode& exec, size_t i, uint32_t device) {
  const Graph& graph = this->graph();
  const ValueId value = exec.node->inputs[i];
  const bool is_read_there = device != 0 && !is_host_input(*exec.node, i);
  const bool is_constant = !value.is_none() && graph.value(value).origin == ValueOrigin::kConstant;
  Slot* from = value.is_none() ? nullptr : &slot_read_by(exec.id, value);
  if (is_constant && is_read_there) from = &executable().constant_slot(value, device);
  exec.input_slots[i] = from;
  if (from == nullptr) return;
  exec.inputs[i] = from->view;
  const bool is_host_value = has_flag(exec.node->op->input_flags(i), InputFlag::kHostValue);
  if (exec.changing != nullptr && exec.kernel->run_value == nullptr) {
    exec.changing->input_type_pointers[i] = &exec.changing->input_types[i];
    const bool is_value = (is_constant && !is_read_there) || is_host_value;
    if (is_value) exec.changing->values[i] = &exec.inputs[i];
  }
  exec.has_host_values |= !is_constant && is_host_value;
  if (!may_move(exec.id, value)) return;
  take(exec_lists_.refresh, 1)[0] = {&exec.inputs[i], from};
}

StreamScratch& RunState::scratch(uint32_t stream) {
  while (scratch_.size() <= stream) {
    const std::vector<uint32_t>& devices = executable().plan().stream_devices;
    const size_t next = scratch_.size();
    scratch_.emplace_back(executable().memory(next < devices.size() ? devices[next] : 0));
  }
  return scratch_[stream];
}

void RunState::reset() {
  forget_errors();
  clear_faults();
  reset_loops();
  for (DeviceLoop* const device : device_loops_) {
    if (device) device->forget();
  }
}

void RunState::reset_loops() {
  for (const auto& loop : loops_) {
    if (loop) loop->reset();
  }
}

GraphCaptures RunState::captures() const {
  GraphCaptures captures;
  for (const auto& capture : captures_) captures.push_back(capture.get());
  return captures;
}

bool RunState::start_recording() {
  EDDY_DCHECK(captures_.empty() && device_loops_.empty()) << "a run records once";
  for (uint32_t d = 0; d < executable().num_devices(); ++d) {
    captures_.push_back(executable().device(d).create_capture_or_null());
  }
  const auto is_there = [](const auto& capture) { return capture != nullptr; };
  if (std::ranges::none_of(captures_, is_there)) captures_.clear();
  const auto can_decide = [](const auto& capture) { return capture && capture->can_decide(); };
  if (std::ranges::none_of(captures_, can_decide) || !executable().has_device_control())
    return false;
  Result<BufferRef> word = allocator().allocate(sizeof(uint32_t));
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

std::string RunState::why_by_host(NodeId loop) const {
  const Graph& graph = this->graph();
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

}  // namespace eddy
