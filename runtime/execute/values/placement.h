// Placement: where a planned value is written (graph/schedule/plan/memory_plan.h).
//
// One block of the run's arena, or, for a value that a loop carries, one block more than there are
// loop parameters that may hold an earlier instance: the first block is taken at which none of
// them points. A slot with planned memory owns no buffer; the plan's proof stands for the
// reference counts.
//
// Threads: as the slots. Cost: a store; with one holder a comparison more.
#pragma once

#include <algorithm>
#include <vector>

#include "runtime/execute/values/slot.h"

namespace eddy {

// For more than one holder.
struct Rotation {
  std::vector<void*> blocks;
  std::vector<const Slot*> holders;

  void* choose() const {
    for (void* block : blocks) {
      const auto holds = [&](const Slot* slot) { return slot->view.data == block; };
      if (std::ranges::none_of(holders, holds)) return block;
    }
    return blocks.back();  // not reached: there is one block more than holders
  }
};

struct Placement {
  void* block = nullptr;  // null: not planned
  void* other_block = nullptr;
  const Slot* holder = nullptr;
  const Rotation* rotation = nullptr;
  size_t size_bytes = 0;

  bool is_planned() const { return block != nullptr; }
  void* choose() const {
    if (holder == nullptr) return block;
    if (rotation != nullptr) [[unlikely]]
      return rotation->choose();
    return holder->view.data == block ? other_block : block;
  }
  // The slot's memory becomes a block that may be written now.
  void* give_to(Slot& slot) const {
    if (slot.buffer) [[unlikely]]
      slot.buffer.reset();  // given by a transfer
    return slot.view.data = choose();
  }
};

}  // namespace eddy
