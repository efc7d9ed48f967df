#include "runtime/execute/run_slots.h"

#include "graph/base/check.h"
#include "graph/ir/aliases.h"
#include "graph/ir/control_view.h"

namespace eddy {

void RunSlots::make_slots() {
  const Graph& graph = this->graph();
  EDDY_DCHECK(slots_.empty() && outputs_.empty()) << "a run has its slots";
  slots_.resize(graph.num_values(), nullptr);
  for (uint32_t v = 0; v < graph.num_values(); ++v) make_slot(ValueId(v));
  if (executable().uses_arenas()) make_arenas();
  for (size_t i = 0; i < graph.outputs().size(); ++i) outputs_.emplace_back();
  find_targets();
  for (uint32_t v = 0; v < graph.num_values(); ++v) put_back(ValueId(v));
}

Slot* RunSlots::make_slot(ValueId value) {
  EDDY_DCHECK(value.index() < slots_.size()) << "value " << value.index() << " is not the graph's";
  Slot*& slot = slots_[value.index()];
  if (slot != nullptr) return slot;
  const Graph& graph = this->graph();
  const ValueId root = resolve_forwarded(graph, value);
  const ValueInfo& info = graph.value(value);
  if (graph.value(root).origin == ValueOrigin::kConstant) {
    return slot = &executable().constant_slot(root, executable().value_device(value));
  }
  if (root != value) return slot = make_slot(root);
  const Region& region = graph.region(info.region);
  const bool is_iteration =
      info.origin == ValueOrigin::kParameter && info.index == 0 && !region.owner.is_none();
  if (is_iteration) return slot = &progress(region.owner).iteration_slot();
  return slot = &add_slot(value);
}

Slot& RunSlots::add_slot(ValueId value) {
  const ValueType& type = graph().value(value).type;
  Slot& slot = storage_.emplace_back();
  if (type.is_static_tensor()) slot.set_tensor(type.tensor.element, type.tensor.dims.span());
  return slot;
}

Slot& RunSlots::slot_for(ValueId from, ValueId to) {
  const uint32_t device = executable().value_device(to);
  const ValueId root = resolve_forwarded(graph(), from);
  const bool is_constant = graph().value(root).origin == ValueOrigin::kConstant;
  return is_constant && device != 0 ? executable().constant_slot(root, device) : slot(from);
}

// Where memory is short every value asks for its own, and the one that gets none says so.
void RunSlots::make_arenas() {
  for (const MemoryArena& arena : executable().plan().memory.arenas) {
    Result<BufferRef> buffer = executable().memory_of(arena.device).allocate(arena.size_bytes);
    if (!buffer.is_ok()) return arenas_.clear();
    arenas_.push_back(std::move(*buffer));
  }
}

const ValueMemory* RunSlots::place_or_null(ValueId value) const {
  return arenas_.empty() ? nullptr : executable().plan().memory.block_or_null(value);
}

void* RunSlots::address(const ValueMemory& place, size_t i) const {
  EDDY_DCHECK(place.arena < arenas_.size() && i < place.offsets_bytes.size())
      << "place " << i << " of " << place.offsets_bytes.size() << " in arena " << place.arena;
  return static_cast<char*>(arenas_[place.arena].data()) + place.offsets_bytes[i];
}

bool RunSlots::is_fixed(ValueId value) const {
  const ValueMemory* const place = place_or_null(value);
  return place != nullptr && place->offsets_bytes.size() == 1;
}

void RunSlots::put_back(ValueId value) {
  const ValueMemory* const place = place_or_null(value);
  if (place == nullptr) return;
  slot(value).buffer.reset();
  slot(value).view.data = address(*place, 0);
}

void RunSlots::start_turns(Transfers& transfers, ValueId value, NodeId loop) {
  const ValueMemory* const place = place_or_null(value);
  if (place == nullptr || place->loop != loop) return;
  transfers.add_start(slot(value), address(*place, 0));
}

bool RunSlots::hand_on(Transfers& transfers, ValueId to, ValueId from, Program::Moment moment,
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
  EDDY_DCHECK(source == nullptr || source->size_bytes == place->size_bytes)
      << source->size_bytes << " bytes are handed to a name of " << place->size_bytes;
  std::vector<const void*> places;
  for (size_t i = 0; source != nullptr && i < source->offsets_bytes.size(); ++i) {
    places.push_back(address(*source, i));
  }
  transfers.add_copy(slot(to), slot_for(from, to), place->size_bytes, address(*place, 0),
                     std::move(places));
  return true;
}

void RunSlots::set_tail(NodeId node, const LoopProgress::Tail& tail) {
  RunBase::set_tail(node, tail);
  for (auto& [value, targets] : targets_) {
    for (OutputTarget& target : targets.all) {
      for (OutputGate& gate : target.gates) {
        if (gate.node == node) gate.iteration = &tail.iteration;
      }
    }
  }
}

Result<int64_t> RunSlots::trip_limit(NodeId loop) {
  const ValueId limit = graph().node(loop).inputs[0];
  if (limit.is_none()) return INT64_MAX;
  const TensorView& view = slot(limit).view;
  if (view.count() == 1 && view.data != nullptr) return *view.as<int64_t>();
  return run_failed("the trip limit must be one int64, but has " + std::to_string(view.count()) +
                    " elements");
}

}  // namespace eddy
