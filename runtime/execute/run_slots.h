// RunSlots: where the values of one run are: their slots, the arenas in which those stand that the
// plan has laid out, and memory that the caller has bound for outputs.
//
// What leaves a run never lives in an arena. Addresses of slots stay.
// Threads: a slot belongs to the strand that the plan lets touch it; memory is bound between runs.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/base/check.h"
#include "graph/ir/graph.h"
#include "graph/loops/output_routes.h"
#include "graph/schedule/plan/plan.h"
#include "runtime/execute/run_base.h"
#include "runtime/execute/values/loop_progress.h"
#include "runtime/execute/values/output_memory.h"
#include "runtime/execute/values/slot.h"
#include "runtime/execute/values/transfer.h"

namespace eddy {

class RunSlots : public RunBase {
 public:
  // The slot of a value: one of this run's, or the executable's for constants.
  Slot& slot(ValueId value) {
    EDDY_CHECK(value.index() < slots_.size()) << "there is no value " << value.index();
    return *slots_[value.index()];
  }
  // The slot from which `to` is given the value `from`: a constant's where `to` is at home.
  Slot& slot_for(ValueId from, ValueId to);
  // Adds how the value is handed on to `to`, where that has a place of the plan; false: it has
  // none. `loop`: the one that is entered or advances.
  bool hand_on(Transfers& transfers, ValueId to, ValueId from, Program::Moment moment, NodeId loop);
  // The value stands at its first place when the loop is entered, if it alternates with that.
  void start_turns(Transfers& transfers, ValueId value, NodeId loop);

  // The slot by which a node right inside a pipelined loop reads a value: the value's, or a
  // reference that the node's stream takes (Program::Op::kRetain).
  Slot& slot_read_by(NodeId node, ValueId value) {
    const auto taken = taken_slots_.find({node.index(), value.index()});
    return taken == taken_slots_.end() ? slot(value) : *taken->second;
  }

  bool is_taken(NodeId reader, ValueId value) const {
    return taken_slots_.contains({reader.index(), value.index()});
  }
  // From now on the node reads the value by `taken`.
  void read_by(NodeId node, ValueId value, Slot& taken) {
    taken_slots_[{node.index(), value.index()}] = &taken;
  }
  // Another slot of the run's own, for values like this one.
  Slot& add_slot(ValueId value);

  // How often a loop may run at most; known when it begins.
  Result<int64_t> trip_limit(NodeId loop);

  bool has_arenas() const { return !arenas_.empty(); }
  // A value that has a place of the plan stands there (again).
  void put_back(ValueId value);

  // The node runs on a strand that counts its loop's iterations by itself.
  void set_tail(NodeId node, const LoopProgress::Tail& tail);

  // The caller's memory for an output that is not copied, and a second one of that size, or null;
  // before a run. What the last run left in it is forgotten. Stays bound until it is unbound, which
  // ends every reference to it.
  void bind_output(size_t index, void* data, void* second_or_null, size_t size_bytes);
  void unbind_output(size_t index);
  // Copies a tensor, or elements of a sequence, that stand in memory of the caller into memory of
  // their own; how many bytes those are.
  Result<size_t> move_home(ValueId value);
  // Where a value that may be an output can be made; null: it stays.
  OutputTargets* targets_or_null(ValueId value);

 protected:
  using RunBase::RunBase;
  ~RunSlots() = default;

  // All of them, once all loops are watched.
  void make_slots();
  // In an arena; null: elsewhere, or there are none.
  const ValueMemory* place_or_null(ValueId value) const;
  // At one address in every run of this state.
  bool is_fixed(ValueId value) const;
  // A value that only goes on to the next iteration, in place of which its successor is made, stays
  // in the memory where it is first: no iteration need leave it alone.
  static void work_in_place(OutputTargets& targets, Slot& input, uint32_t num_reads);
  // Loops drop references to memory of the last run.
  virtual void reset_loops() = 0;

 private:
  Slot* make_slot(ValueId value);
  void* address(const ValueMemory& place, size_t i) const;
  void make_arenas();
  // One output's memory of the caller: one place, or two.
  using OutputPlaces = std::array<OutputMemory, 2>;

  void find_targets();
  OutputTarget make_target(const OutputRoute& route, OutputMemory& memory);
  void forget_output(size_t index, OutputMemory& memory);
  void tell_makers(size_t index);
  void take_everywhere(OutputMemory& memory);
  Status move_elements_home(ElementStack& elements, size_t& copied_bytes);

  std::deque<OutputPlaces> outputs_;                     // by output; before all that may hold them
  std::unordered_map<uint32_t, OutputTargets> targets_;  // by ValueId
  std::deque<Slot> storage_;
  std::vector<Slot*> slots_;                                    // by ValueId
  std::map<std::pair<uint32_t, uint32_t>, Slot*> taken_slots_;  // by NodeId of the reader, ValueId
  std::vector<BufferRef> arenas_;  // by the memory plan's; empty: every value has its own memory
};

}  // namespace eddy
