// FluidSketch: a program for tests of the fluid model, as far as it matters to them; sketched()
// makes it whole, with its table of costs.
//
// Blocks lack their frames: those are made as the planner makes them. A further stream that begins
// with something else than a wait waits for the block's begin; one that ends with something else
// than a record records its end; the block's end waits for all of them, unless it is the `after`
// of a pipelined loop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/simulate/fluid_costs.h"

namespace eddy {

struct FluidSketch {
  struct Block {
    uint32_t num_streams = 1;
    uint32_t num_events = 0;
    std::vector<Program::Step> steps = {};   // streams: of the block; kLaunch: a kernel
    std::vector<uint32_t> entry_waits = {};  // events of the iteration before
  };
  struct Loop {
    FluidCosts::Loop costs;
    uint32_t before = 0;
    uint32_t after = 0;
    bool is_pipelined = false;
  };
  struct Case {
    FluidCosts::Case costs;
    std::vector<uint32_t> blocks;
  };
  std::vector<FluidDemand> kernels = {};
  std::vector<Block> blocks = {};  // 0 is the root
  std::vector<Loop> loops = {};
  std::vector<Case> cases = {};
};

struct PricedProgram {
  Program program;
  FluidCosts costs;
};

// Each kLaunch is a launch of its own, in the order of the blocks' steps, inner blocks at theirs.
PricedProgram sketched(const FluidSketch& sketch);

// A loop with a body of one kernel in `after`.
FluidSketch sketch_loop(const FluidDemand& kernel, Decision decision);

// Where the stream has no steps: false.
bool begins_unordered(const FluidSketch::Block& block, uint32_t stream);

}  // namespace eddy
