// VirtualCommandBuffer: command buffers whose strands are lanes of a virtual device: which strand
// runs its next command is a choice, for every command.
//
// Jumps belong to the command behind them, a strand's end to the one before: whoever waits for a
// fork's last record may fork it again at once. A launch that fails, a decision below 0, a lost
// device or a strand that is killed stops the run (RunControl), and strands end as the seam says.
//
// When all live strands wait for each other the run can never end: it fails with kInternal, and
// the message is the wait graph. Kept as violations of whoever recorded the commands: a strand
// forked while it lives, an event reset while a strand waits for it, or recorded twice in a round.
//
// start() and run_here() both only queue the main strand; whoever waits moves the device.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/command_code.h"
#include "runtime/virtual/virtual_engine.h"

namespace eddy {

class VirtualCommandBuffer : public CommandCode {
 public:
  explicit VirtualCommandBuffer(VirtualEngine& engine);
  ~VirtualCommandBuffer() override;

  void finish() override;
  void start(RunControl& control) override;
  void run_here(RunControl& control) override { start(control); }
  StrandState strand_state(uint32_t strand) const override;

 private:
  using Guard = std::unique_lock<std::mutex>;

  struct Strand : VirtualLane {
    Strand(VirtualCommandBuffer& b, uint32_t i) : buffer(b), index(i) {}
    void step(Guard& guard) override { buffer.step(*this, guard); }
    std::string waits_for() const override { return buffer.describe(*this); }
    void stop_waiting() override { buffer.wake_all(); }

    VirtualCommandBuffer& buffer;
    const uint32_t index;
    // Under the engine's lock, or of whoever steps the strand.
    uint32_t counter = 0;  // next command
    std::atomic<StrandState> state{StrandState::kIdle};
  };
  struct BufferEvent {
    uint64_t num_records = 0;
    bool is_done = false;
    std::vector<Strand*> parked;
  };

  void step(Strand& strand, Guard& guard);
  // One command of each kind; the lock is held when they return, and the strand is ready.
  void run_work(Strand& strand, const Command& command, Guard& guard);
  void decide(Strand& strand, const Command& command, Guard& guard);
  void fork(Strand& parent, uint32_t index);
  void reset_event(uint32_t event);
  void record_event(Strand& strand, uint32_t event);
  bool wait_or_park(Strand& strand, uint32_t event);
  bool may_go_on(Strand& strand);
  void skip_jumps(Strand& strand);
  void end_strand(Strand& strand, Guard& guard);
  void wake_all();
  void end_if_deadlocked();
  std::string describe(const Strand& strand) const;
  std::string recorder_of(uint32_t event) const;

  VirtualEngine& engine_;
  std::deque<Strand> strands_;  // [0] is the main one; addresses are stable
  // Under the engine's lock.
  std::deque<BufferEvent> events_;
  uint32_t num_live_ = 0;
  uint32_t num_parked_ = 0;
  RunControl* control_ = nullptr;
};

}  // namespace eddy
