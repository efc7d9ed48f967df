// Of RunSlots: memory that the caller has bound for outputs.
#include <algorithm>

#include "graph/base/check.h"
#include "runtime/execute/run_slots.h"

namespace eddy {

// Connects the maker of a value that may be an output with the memory bound for it.
void RunSlots::find_targets() {
  EDDY_DCHECK(executable().output_routes().size() == outputs_.size())
      << outputs_.size() << " outputs";
  for (size_t i = 0; i < outputs_.size(); ++i) {
    for (const OutputRoute& route : executable().output_routes()[i]) {
      for (OutputMemory& memory : outputs_[i]) {
        targets_[route.made.index()].all.push_back(make_target(route, memory));
      }
    }
  }
}

OutputTarget RunSlots::make_target(const OutputRoute& route, OutputMemory& memory) {
  OutputTarget target{&memory, {}, {}};
  for (const ValueId name : route.passed) target.passed.push_back(&slot(name));
  for (const OutputTurn& turn : route.turns) {
    const LoopProgress& loop = progress(turn.loop);
    target.gates.push_back({&loop.counter(), &loop.settled_trips(), turn.num_carried, turn.node,
                            turn.parameter.is_none() ? nullptr : &slot(turn.parameter)});
  }
  return target;
}

OutputTargets* RunSlots::targets_or_null(ValueId value) {
  const auto found = targets_.find(value.index());
  return found == targets_.end() ? nullptr : &found->second;
}

void RunSlots::bind_output(size_t index, void* data, void* second_or_null, size_t size_bytes) {
  EDDY_CHECK(index < outputs_.size()) << "output " << index << " of " << outputs_.size();
  OutputPlaces& places = outputs_[index];
  const std::array<void*, 2> wanted = {data, second_or_null};
  for (size_t p = 0; p < places.size(); ++p) {
    forget_output(index, places[p]);
    const bool is_same =
        places[p].data() == wanted[p] && (wanted[p] == nullptr || places[p].fits(size_bytes));
    if (is_same) continue;
    if (places[p].is_held()) take_everywhere(places[p]);
    places[p].bind(wanted[p], size_bytes);
    tell_makers(index);
  }
}

// Nearly always the maker's own slot is the only one that still has it, and may keep it.
void RunSlots::forget_output(size_t index, OutputMemory& memory) {
  if (!memory.is_held()) return;
  const std::vector<OutputRoute>& routes = executable().output_routes()[index];
  if (routes.size() == 1 && memory.is_only_in(slot(routes[0].made).buffer)) return;
  for (const OutputRoute& route : routes) {
    memory.take_from(slot(route.made));
    for (const ValueId name : route.passed) memory.take_from(slot(name));
  }
  if (memory.is_held()) take_everywhere(memory);
}

void RunSlots::unbind_output(size_t index) { bind_output(index, nullptr, nullptr, 0); }

Status RunSlots::move_elements_home(ElementStack& elements, size_t& copied_bytes) {
  const auto all = elements.in_order();
  const auto is_callers = [](const SequenceElement* each) {
    return is_callers_memory(each->buffer);
  };
  if (!std::ranges::any_of(all, is_callers)) return Status::ok();
  ElementStack moved;
  for (const SequenceElement* element : all) {
    Slot copy;
    if (is_callers(element)) {
      EDDY_RETURN_IF_ERROR(copy.copy(element->view(), allocator()));
      copied_bytes += element->view().size_bytes();
    }
    EDDY_RETURN_IF_ERROR(
        moved.push_back(is_callers(element) ? copy.as_element() : *element, allocator()));
  }
  elements.swap(moved);
  return Status::ok();
}

Result<size_t> RunSlots::move_home(ValueId value) {
  Slot& moved = slot(value);
  size_t copied_bytes = 0;
  EDDY_RETURN_IF_ERROR(move_elements_home(moved.elements, copied_bytes));
  if (!is_callers_memory(moved.buffer)) return copied_bytes;
  const BufferRef callers = std::move(moved.buffer);
  EDDY_RETURN_IF_ERROR(moved.copy(moved.view, allocator()));
  return copied_bytes + moved.view.size_bytes();
}

// Nodes know their targets only while something is bound, so that others pay nothing.
void RunSlots::tell_makers(size_t index) {
  for (const OutputRoute& route : executable().output_routes()[index]) {
    OutputTargets& targets = targets_.at(route.made.index());
    const auto is_bound = [](const OutputTarget& target) { return target.memory->is_bound(); };
    const bool is_any_bound = std::ranges::any_of(targets.all, is_bound);
    if (!is_any_bound) targets.spare.reset();
    if (targets.maker_or_null != nullptr)
      *targets.maker_or_null = is_any_bound ? &targets : nullptr;
  }
}

void RunSlots::take_everywhere(OutputMemory& memory) {
  for (Slot& slot : storage_) {
    memory.take_from(slot);
    const auto elements = slot.elements.in_order();
    const auto is_there = [&](const SequenceElement* each) { return memory.is_in(each->buffer); };
    if (!std::ranges::any_of(elements, is_there)) continue;
    ElementStack others;
    for (const SequenceElement* element : elements) {
      if (is_there(element) || others.push_back(*element, allocator()).is_ok()) continue;
      // Of a run that has ended: the next one makes them anew.
      others.clear();
      break;
    }
    slot.elements.swap(others);
  }
  for (auto& [value, targets] : targets_) {
    if (memory.is_in(targets.spare)) targets.spare.reset();
  }
  reset_loops();
}

void RunSlots::work_in_place(OutputTargets& targets, Slot& input, uint32_t num_reads) {
  targets.in_place_or_null = &input;
  for (OutputTarget& target : targets.all) {
    std::erase_if(target.gates, [&](const OutputGate& gate) {
      return num_reads == 1 && gate.num_carried == 1 && gate.carried_or_null == &input;
    });
  }
}

}  // namespace eddy
