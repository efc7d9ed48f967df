// Transfers: how values pass from a region's results to the parameters or outputs they become,
// all at once (parallel assignment: results may repeat, permute or be captured values).
//
//   nothing  both are the same slot
//   swap     the source is a temporary of the region, used once: exchange memory
//   share    anything else: add a reference, through a temporary slot
//   same     a fixed value from outside the loop, again and again: nothing once it is in place
//
// To a planned name, which has a place of its own (graph/schedule/plan/memory_plan.h):
//
//   nothing  it stands where the source stands
//   copy     the bytes; aside first where another copy writes over them
//   turn     the two places of a carried value change names
//   point    the slot stands where the source stands now
//
// The source's old contents after a swap are whatever the destination held; a temporary is
// always written again before it is read. Its type and shape are given back where they are known,
// because the node that writes it then never sets them.
//
// Errors: kResourceExhausted where a volatile source is copied; temporaries then refer to nothing.
#pragma once

#include <deque>
#include <vector>

#include "graph/base/status.h"
#include "runtime/execute/values/slot.h"

namespace eddy {

class Transfers {
 public:
  // `is_temporary`: the source belongs to the region and nothing reads it after the transfer.
  // `is_fixed`: both hold tensors of one known type and shape. `from_type`: the source's.
  void add(Slot& to, Slot& from, bool is_temporary, bool is_fixed, const ValueType& from_type);
  // The source never changes while these transfers are in use; both hold tensors of one known
  // type and shape.
  void add_unchanging(Slot& to, Slot& from);
  // `places`: where `from` may stand in an arena.
  void add_copy(Slot& to, const Slot& from, size_t size_bytes, const void* to_place,
                std::vector<const void*> places);
  void add_turn(Slot& to, Slot& from) { turns_.push_back({&to, &from}); }
  void add_point(Slot& to, Slot& from) { points_.push_back({&to, &from}); }
  // Before all else the slot stands there.
  void add_start(Slot& slot, void* place) { starts_.push_back({&slot, place}); }
  // Turns repeated sources into shares. Call once, after the last add().
  void finish();
  Status run(Allocator& allocator) {
    if (!shares_.empty()) [[unlikely]] {
      EDDY_RETURN_IF_ERROR(read_shares(allocator));
    }
    for (const Start& start : starts_) start.slot->view.data = start.place;
    if (!copies_.empty()) copy();
    for (const Move& move : points_) move.to->view.data = move.from->view.data;
    for (const Move& move : turns_) std::swap(move.to->view.data, move.from->view.data);
    for (const Move& move : fixed_) move.to->swap_memory(*move.from);
    for (const Move& move : swaps_) move.to->swap(*move.from);
    for (const Known& known : known_) {
      known.slot->set_tensor(known.type.element, known.type.dims.span());
    }
    if (!shares_.empty()) [[unlikely]]
      write_shares();
    for (const Move& move : unchanging_) {
      if (move.to->view.data == move.from->view.data) continue;
      EDDY_RETURN_IF_ERROR(move.to->share(*move.from, allocator));
    }
    return Status::ok();
  }

 private:
  struct Move {
    Slot* to;
    Slot* from;
  };
  struct Known {
    Slot* slot;
    TensorType type;
  };
  struct Start {
    Slot* slot;
    void* place;
  };
  struct Copy {
    Slot* to;
    const Slot* from;
    size_t size_bytes;
    const void* to_place;
    std::vector<const void*> places;
    std::vector<char> aside;  // empty: nothing writes over the source
  };
  void copy();
  Status read_shares(Allocator& allocator);
  void write_shares();

  std::vector<Move> fixed_;
  std::vector<Move> swaps_;
  std::vector<Known> known_;  // sources of swaps_ whose shape never changes
  std::vector<Move> shares_;
  std::vector<Move> unchanging_;
  std::vector<Start> starts_;
  std::vector<Copy> copies_;
  std::vector<Move> points_;
  std::vector<Move> turns_;
  std::deque<Slot> temporaries_;  // one for each share
  bool is_finished_ = false;
};

}  // namespace eddy
