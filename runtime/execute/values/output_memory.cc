#include "runtime/execute/values/output_memory.h"

#include <algorithm>

#include "graph/base/check.h"

namespace eddy {
namespace {

// The owner of buffers that stand for callers' memory: nothing to give back.
class ForeignMemory : public BufferOwner {
 public:
  void release(Buffer*) noexcept override {}
};

ForeignMemory& foreign_memory() {
  static ForeignMemory memory;
  return memory;
}

}  // namespace

bool is_callers_memory(const BufferRef& buffer) {
  return buffer && buffer.get()->owner == &foreign_memory();
}

OutputMemory::OutputMemory() {
  buffer_.owner = &foreign_memory();
  buffer_.capacity_bytes = 0;  // so that it is not writable by the common rule
}

void OutputMemory::bind(void* data, size_t size_bytes) {
  EDDY_CHECK(!is_held()) << "memory of the caller is still referred to";
  buffer_.data = data;
  size_bytes_ = data == nullptr ? 0 : size_bytes;
}

bool OutputMemory::give_to(BufferRef& holder) {
  if (is_only_in(holder)) return true;
  if (is_held()) return false;
  buffer_.references.fetch_add(1, std::memory_order_relaxed);
  holder = BufferRef(&buffer_);
  return true;
}

void OutputMemory::take_from(Slot& slot) const {
  if (!is_in(slot.buffer)) return;
  slot.buffer.reset();
  slot.view.data = nullptr;
}

bool OutputTarget::may_take(size_t size_bytes) const {
  return memory->fits(size_bytes) && std::ranges::all_of(gates, &OutputGate::is_open);
}

bool OutputTarget::give_to(BufferRef& holder, size_t size_bytes) const {
  if (!may_take(size_bytes)) return false;
  for (Slot* slot : passed) memory->take_from(*slot);
  return memory->give_to(holder);
}

bool OutputTargets::give_in_place(Slot& slot, size_t size_bytes) {
  if (in_place_or_null == nullptr) return false;
  for (const OutputTarget& target : all) {
    if (!target.memory->is_only_in(in_place_or_null->buffer) || !target.may_take(size_bytes)) {
      continue;
    }
    slot.swap_memory(*in_place_or_null);
    return true;
  }
  return false;
}

bool OutputTargets::give_to(Slot& slot, size_t size_bytes) {
  if (give_in_place(slot, size_bytes)) return true;
  for (const OutputTarget& target : all) {
    BufferRef memory;
    const bool had_it = target.memory->is_in(slot.buffer);
    if (!target.give_to(had_it ? slot.buffer : memory, size_bytes)) continue;
    if (!had_it) {
      if (!spare && !is_callers_memory(slot.buffer)) spare.swap(slot.buffer);
      slot.buffer = std::move(memory);
    }
    slot.view.data = slot.buffer.data();
    return true;
  }
  if (spare && !slot.buffer.is_writable(size_bytes)) {
    slot.buffer.swap(spare);
    spare.reset();
    slot.view.data = slot.buffer.data();
  }
  return false;
}

}  // namespace eddy
