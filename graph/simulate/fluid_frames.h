// Frames: what a stream's issuer is in the middle of, and what it does next. Internal to
// fluid_model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/simulate/fluid_model.h"

namespace eddy {

inline constexpr uint32_t kNoInstance = UINT32_MAX;

// A region's list, a loop or a case.
struct FluidFrame {
  enum class Kind : uint8_t { kRegion, kLoop, kCase };
  Kind kind = Kind::kRegion;
  uint32_t id = 0;
  double scale = 1;
  uint32_t stream = 0;              // kRegion: of the region
  uint32_t instance = kNoInstance;  // kRegion, where it has several streams
  uint32_t at = 0;  // kRegion: the next command; beyond them, the next end to wait for
  // Of an open region: what the iteration before left, and the next step on the way in.
  // Of a loop whose `after` is open: the last iteration's, and on the way out the next end.
  uint32_t previous = kNoInstance;
  uint32_t stale = kNoInstance;  // and what the one before that left
  bool is_entering = false;
  uint32_t entered = 0;
  uint32_t phase = 0;        // kLoop, kCase
  uint64_t rounds_left = 0;  // kLoop
  double round_scale = 1;    // kLoop: of each of them
  int64_t value = 0;         // kCase
};

// An event of an instance that a frame's next step waits for.
struct FluidWait {
  uint32_t instance = kNoInstance;  // none: the step is no wait
  uint32_t event = 0;
  explicit operator bool() const { return instance != kNoInstance; }
};

// Events of an instance behind those of the plan: each further stream's end and, in an open
// region, that it has begun.
inline uint32_t end_event(const FluidRegion& region, uint32_t stream) {
  return region.num_events + stream;
}
inline uint32_t begun_event(const FluidRegion& region, uint32_t stream) {
  return region.num_events + region.num_streams + stream;
}
inline uint32_t num_instance_events(const FluidRegion& region) {
  return region.num_events + (region.is_open ? 2 : 1) * region.num_streams;
}

inline constexpr uint32_t kLoopEnter = 0, kLoopRound = 1, kLoopTest = 2, kLoopTested = 3,
                          kLoopAdvance = 4, kLoopTails = 5;

// The commands of each stream of each region, and what a frame's next step is. Borrows the program.
class FluidLists {
 public:
  struct Item {
    Program::Step command;
    uint32_t position;  // in its region's list
  };

  explicit FluidLists(const FluidProgram& program);

  const std::vector<Item>& of(const FluidFrame& frame) const {
    return lists_[frame.id][frame.stream];
  }
  // Of the next command in its region's list; UINT32_MAX behind the last.
  uint32_t position(const FluidFrame& frame) const;
  FluidWait next_wait(const FluidFrame& frame) const;
  double host_cost(const FluidFrame& frame, const FluidMachine::Costs& host) const;

 private:
  static FluidWait entry_wait(const FluidFrame& frame, const FluidRegion& region);
  uint32_t joins_left(const FluidFrame& frame) const;
  double host_cost_of_loop(const FluidFrame& frame, const FluidMachine::Costs& host) const;

  const FluidProgram& program_;
  std::vector<std::vector<std::vector<Item>>> lists_;  // by region and stream
};

// Depends on seed, sample, name and execution only.
int64_t choose_value(const Decision& decision, const std::string& name, uint64_t execution,
                     const FluidOptions& options);

}  // namespace eddy
