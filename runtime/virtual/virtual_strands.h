// VirtualStrands: strands that are lanes of a virtual device: which strand executes its next
// command is a choice, for every command.
//
// Jumps and the begin of a round belong to the command behind them. Work that fails, a decision
// below 0, a lost device or a strand that is killed stops the run (RunControl), and strands end as
// the seam says.
//
// When all live strands wait for each other the run can never end: it fails with kInternal, and
// the message is the wait graph, which is kept as a violation, too.
//
// start() and run_here() both only queue the main strand; a thread that waits moves the device.
#pragma once

#include <deque>
#include <string>

#include "runtime/device/running_strands.h"
#include "runtime/virtual/virtual_engine.h"

namespace eddy {

class VirtualStrands : public RunningStrands {
 public:
  VirtualStrands(VirtualEngine& engine, const StrandCode& code, const Bindings& bindings);
  ~VirtualStrands() override;

  void start(RunControl& control) override;
  void resume(uint32_t strand, bool is_ok) override;
  void run_here(RunControl& control) override { start(control); }

 private:
  using Guard = std::unique_lock<std::mutex>;

  struct Lane : VirtualLane {
    Lane(VirtualStrands& o, uint32_t i) : owner(o), index(i) {}
    void step(Guard& guard) override { owner.step(index, guard); }
    std::string waits_for() const override { return owner.describe(index); }
    void stop_waiting() override { owner.release_waits(); }

    VirtualStrands& owner;
    const uint32_t index;
  };
  struct Agent;  // one step

  void step(uint32_t strand, Guard& guard);
  void enqueue(uint32_t strand) override;
  void complete(RunControl& control) override;
  int32_t run(uint32_t strand, const LaneWork& work, Guard& guard);
  bool start_in_lane(uint32_t strand, uint32_t at, Guard& guard);
  bool may_go_on(uint32_t strand);
  void see_record(uint32_t strand, uint32_t event);
  bool wait(uint32_t strand, uint32_t at);
  void skip_jumps(uint32_t& at) const;
  void end(uint32_t strand);
  void end_if_deadlocked();
  std::string describe(uint32_t strand) const;
  EventPoint point(uint32_t index, uint32_t count) { return {&event(index), count}; }

  VirtualEngine& engine_;
  std::deque<Lane> lanes_;  // by strand; under the engine's lock, as all of the run
  RunControl* completed_or_null_ = nullptr;  // by the step that has ended the run
};

}  // namespace eddy
