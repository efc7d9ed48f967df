// RaceChecker: what happens before what in a trace of the virtual device, by vector clocks.
//
// It does not depend on plans. It reads which values each step of a run touches off the graph, and
// what is ordered off what the device did: the order of each lane, forks, records and the waits
// that they released, and what the host saw. Two steps that touch one value or one piece of memory,
// at least one of them writing, with nothing that orders them are a race, also when this time they
// happened to run in the right order.
//
// A step that reads a value which nothing has made yet fails: it would read through a null pointer.
//
// A value's slot and its elements' memory (in granules of 64 bytes) are watched apart: a wrong
// order may move a reference that another step reads, or overwrite bytes that another step still
// needs. A writer that holds the only reference to pooled memory comes after all readers through
// other slots: they have released it before, and the count orders that (runtime/device/buffer.h).
//
// Idea: Flanagan and Freund, "FastTrack", PLDI 2009: the last write and the reads since, as
// epochs. Threads: any; one lock. Cost: some 100 ns a value a step.
#pragma once

#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/base/numbering.h"
#include "graph/program/program.h"
#include "runtime/execute/step_observer.h"
#include "runtime/execute/values/slot.h"
#include "runtime/virtual/virtual_device.h"

namespace eddy::check {

class RaceChecker : public StepObserver, public DeviceWatcher {
 public:
  // Sets the device with the lanes that the steps run on; null before there is one. Forgets all
  // accesses seen so far.
  void reset(const VirtualDevice* device_or_null);
  // "Mix_3[2] of strand 1 writes 'x', which Row_1[2] of strand 0 reads: nothing orders them".
  // At most kMaxRaces, each pair of nodes once.
  static constexpr size_t kMaxRaces = 10;
  std::vector<std::string> races() const;
  uint64_t num_accesses() const;

  // A failure when a value that the step reads has no memory yet.
  static Status check_made(RunState& state, const ::eddy::Step& step);

  Status before(RunState& state, const ::eddy::Step& step) override;
  void after(RunState& state, const ::eddy::Step& step, int32_t decision) override;

  void on_record(LaneNumber lane, const EventPoint& point) override;
  void on_wait(LaneNumber lane, const EventPoint& point) override;
  void on_issue(LaneNumber lane, uint64_t item) override;
  void on_begin(LaneNumber lane, uint64_t item) override;
  void on_idle_seen(LaneNumber lane) override;
  void on_point_seen(const EventPoint& point) override;
  void on_start(LaneNumber main_strand) override;
  void on_end(LaneNumber strand) override;
  void on_allocate(const void* data, size_t size_bytes) override;

 private:
  using Clock = std::vector<uint32_t>;  // by lane; absent entries are 0
  struct Access {
    LaneNumber lane = 0;
    uint32_t time = 0;  // of its lane; 0: no access
    const RunState* state = nullptr;
    ::eddy::Step step = {};
  };
  struct Shadow {
    Access write;
    std::vector<Access> reads;  // since the write, the last of each lane
    void clear() {
      write = {};
      reads.clear();
    }
  };
  enum class What : uint8_t { kRead, kWrite };
  struct Toucher {
    RaceChecker& checker;
    RunState& state;
    const Access now;
    void slot(What what, ValueId value) const;
    void own_slot(What what, const Slot& slot, ValueId value) const;
    void memory(What what, ValueId value) const;
    void memory(What what, const Slot& slot, ValueId value) const;
    void result(ValueId value, RegionId region, bool is_own_parameter) const;
    void copies(std::span<const ValueId> to, std::span<const ValueId> from, Program::Moment moment,
                NodeId loop) const;
  };

  Shadow& shadow(uintptr_t key);
  void forget(uintptr_t key);
  Clock& clock(LaneNumber lane);
  static void join(Clock& into, const Clock& from);
  void join_lanes(LaneNumber into, LaneNumber from);
  void tick(LaneNumber lane);
  static bool is_before(const Access& access, const Clock& now);
  void touch(What what, uintptr_t key, const Access& now, ValueId value);
  void report(const Access& first, const Access& now, bool first_writes, What what, ValueId value);
  Toucher toucher(RunState& state, const ::eddy::Step& step);
  void touch_before(const Toucher& touch, const ::eddy::Step& step);
  void touch_after(const Toucher& touch, const ::eddy::Step& step, int32_t decision);

  mutable std::mutex mutex_;
  // Under the mutex.
  const VirtualDevice* device_ = nullptr;
  std::vector<Clock> clocks_;                                                        // by lane
  std::unordered_map<const void*, std::vector<std::pair<uint64_t, Clock>>> points_;  // young last
  using Issued = std::unordered_map<uint64_t, Clock>;                                // by item
  Issued issued_;
  std::vector<Issued::node_type> spare_;                 // for the next ones
  Numbering<uintptr_t> places_;                          // slots and granules
  std::vector<Shadow> shadows_;                          // by place
  std::vector<std::pair<uint32_t, uint32_t>> reported_;  // nodes
  std::vector<std::string> races_;
  uint64_t num_accesses_ = 0;
};

}  // namespace eddy::check
