// FluidCosts: what a program (graph/program/program.h) asks of a machine: the table that the fluid
// model reads beside it.
//
// Decisions are those of a scenario: a trace gives the values of successive executions (from the
// start again when it ends); a distribution is drawn from by seed, sample, the control's name and
// which execution this is, as in scenario.h.
//
// check_fluid_costs checks that a program can be simulated by a table. Errors (invalid argument;
// each names its place): what find_malformed finds; a table of another program's size; an event
// that is not recorded exactly once and before its waits; a further stream that does not begin with
// a wait; demands that are negative, not finite or beyond the machine; decisions that are none.
// Threads: plain data. Cost: near linear.
#pragma once

#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/program/program.h"
#include "graph/simulate/fluid_machine.h"
#include "graph/simulate/scenario.h"

namespace eddy {

struct FluidCosts {
  struct Loop {
    std::string name;
    Decision decision = {};  // trips; its time and device are not read
    FluidDemand enter = {.units = 0};
    FluidDemand test = {.units = 0};
    FluidDemand advance = {.units = 0};
    FluidDemand leave = {.units = 0};
  };
  struct Case {
    std::string name;
    Decision decision = {};  // values; one that names no block runs none
    FluidDemand select = {.units = 0};
    FluidDemand finish = {.units = 0};
  };
  // By the program's lists. What streams retain and rows cost nothing.
  std::vector<FluidDemand> launches;
  std::vector<Loop> loops;
  std::vector<Case> cases;
};

Status check_fluid_costs(const Program& program, const FluidCosts& costs,
                         const FluidMachine& machine);

}  // namespace eddy
