// FluidCode: a program's steps as the host issues them: one flat list, in which loops and branches
// are jumps. Internal to fluid_model.
//
// Each stream of each block becomes a strand, but for main streams, whose steps stand where the
// loop or case that runs the block does (strand 0 begins with the root). A further strand goes
// through its list once in each round of its block. Records are counted, so a wait in round r needs
// r records, or r - lag; nothing is ever reset. What a pipelined loop needs besides stands here as
// waits: its `after` begins an iteration when each further strand has ended the last but one, and
// the loop is left when all have ended.
//
//   main      … kBegin · steps …                 loop   kEnter · before · kTest · after · kAdvance
//   further   kJoin · steps · kRest (again)      case   kSelect · branches, each kJump · kFinish
//
// Contract: check_fluid_costs has passed. Cost: O(steps * streams of a block).
#pragma once

#include <cstdint>
#include <vector>

#include "graph/program/program.h"

namespace eddy {

struct FluidCode {
  enum class Op : uint8_t {
    kLaunch,   // operand: a launch
    kRecord,   // an event
    kWait,     // an event, as of the round that counter `target` is at, less `lag`
    kBegin,    // the next round of block `operand`, whose counter has that number
    kJoin,     // the strand's next round, once block `operand` has begun it
    kRest,     // the round's end; on at `target`
    kEnter,    // a loop
    kTest,     // a loop; left: on at `target`
    kAdvance,  // a loop; on at `target`
    kLeave,    // a loop
    kSelect,   // a case; on at targets[target + branch]
    kJump,     // on at `target`
    kFinish,   // a case
    kEnd,      // of strand 0
  };
  struct Command {
    Op op = Op::kEnd;
    uint8_t lag = 0;
    uint32_t operand = 0;
    uint32_t target = 0;
    uint32_t position = 0;  // of the root's step that it is, or is inside
  };
  struct Strand {
    uint32_t first = 0;   // command
    uint32_t stream = 0;  // of the machine
    uint32_t round = 0;   // its counter
    uint32_t end = 0;     // the event of its end, where its block is pipelined
  };
  struct Further {  // strands of a block
    uint32_t first = 0;
    uint32_t count = 0;
  };

  explicit FluidCode(const Program& program);

  std::vector<Command> commands;
  std::vector<uint32_t> targets;
  std::vector<Strand> strands;
  std::vector<Further> further;  // by block
  uint32_t num_rounds = 0;       // counters: of blocks, then of strands
  uint32_t num_events = 0;
};

}  // namespace eddy
