// FluidProgram: a plan's commands with what each asks of a machine; what the fluid model runs.
//
// A region lists its commands in issue order, each on one of the region's streams: launches,
// records and waits of its events, loops and cases. Stream 0 of a region is the stream that its
// control node stands on; further streams start where the region is entered, and its end waits
// for them. A loop runs `before`, then its test, then `after`, and again; a case runs one of its
// regions or none. Every region but the root (0) belongs to one loop or case.
//
// The `after` of a loop may be open, as in a plan (graph/schedule/plan.h): the end of an iteration
// does not wait for its further streams. In the next one they begin anew, each behind its own
// last end, once stream 0 has passed the region's entry waits; that is when all of them have begun
// in the iteration before, so that stream 0 is at most one iteration ahead. The loop's leave waits
// for all of them.
//
// Decisions are those of a scenario: a trace gives the values of successive executions (from the
// start again when it ends); a distribution is drawn from by seed, sample, the control's name and
// which execution this is, as in scenario.h.
//
// check_fluid_program's errors (invalid argument; each names region and command): ids out of
// range, a region without or with two owners or inside itself, an open region that is no `after`
// or has one stream, an event that is not recorded
// exactly once and before its waits, demands that are negative, not finite or beyond the machine,
// decisions that are none.
// Threads: plain data. Cost: O(commands).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/program/program.h"
#include "graph/simulate/fluid_machine.h"
#include "graph/simulate/scenario.h"

namespace eddy {

struct FluidRegion {
  uint32_t num_streams = 1;
  uint32_t num_events = 0;
  std::vector<uint32_t> lanes = {};  // of each stream, for drawing; empty: the same numbers
  // kLaunch (operand: a kernel), kLoop, kCase, kRecord, kWait, and on stream 0 of an open region
  // kWaitPrevious: for the event of the iteration before, if any. Streams are the region's.
  std::vector<Program::Step> commands = {};
  bool is_open = false;
  std::vector<uint32_t> entry_waits = {};  // where open: events of the iteration before
};

struct FluidLoop {
  std::string name;
  uint32_t before = 0;
  uint32_t after = 0;
  Decision decision = {};  // trips; its time and device are not read
  FluidDemand enter = {.units = 0};
  FluidDemand test = {.units = 0};
  FluidDemand advance = {.units = 0};
  FluidDemand leave = {.units = 0};
};

struct FluidCase {
  std::string name;
  std::vector<uint32_t> regions = {};
  Decision decision = {};  // values; one that names no region runs none
  FluidDemand select = {.units = 0};
  FluidDemand finish = {.units = 0};
};

struct FluidProgram {
  std::vector<FluidRegion> regions;  // 0 is the root
  std::vector<FluidDemand> kernels;
  std::vector<FluidLoop> loops;
  std::vector<FluidCase> cases;
};

Status check_fluid_program(const FluidProgram& program, const FluidMachine& machine);

}  // namespace eddy
