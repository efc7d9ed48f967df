// StrandCode: a program's steps as its strands execute them: flat, dense, and the same for all
// runs.
//
// A strand executes its commands in order; strand 0 is the main one, with which a run begins and
// ends. Loops and branches are jumps, so an interpreter needs one switch in a loop, nested loops
// cost no stack, and a strand can stop and go on at any command. What commands call is bound for
// each run (strand_runner.h).
//
//   while   … kTest (false: behind the loop) … kRepeat      case   kSelect, branches, each … kJump
//
// Strands order each other by events alone. A group of strands executes one block of the program,
// again and again: its main part stands among the commands of the strand that comes to the block,
// behind a kBegin; each other strand rests at its first command, a kWait, until the event is
// recorded in the group's next round, and ends each round with kRest: the record of an event, and
// back to the first command.
//
// An event counts its records; it is recorded once in each round of its group. So a wait in round r
// needs r records, or r - lag: those of an iteration before, where iterations overlap. Nothing is
// ever reset, and rounds need no events of their own.
//
// Plain data; make it by runtime/execute/resolve_program.h.
#pragma once

#include <cstdint>
#include <vector>

namespace eddy {

struct StrandCode {
  static constexpr uint32_t kNone = UINT32_MAX;

  enum class Op : uint8_t {
    kCall,    // `operand`: which call it is, for its binding
    kStart,   // the same, of a call that may answer later
    kTest,    // a call that decides; 0: go on at `target`
    kRepeat,  // go on at `target`: the loop's next iteration
    kJump,    // go on at `target`
    kSelect,  // a call that decides k: go on at targets[target + k]
    kBegin,   // round counter `operand`: its group's next round begins
    kRecord,  // event `operand`
    kWait,    // for event `operand`, of the round that counter `target` is at, less `lag`
    kRest,    // records event `operand`, and the strand rests; counter `target` is its own
    kEnd,     // of the main strand
  };
  struct Command {
    Op op = Op::kEnd;
    bool is_cheap = true;  // calls: below the inline budget, so the host may execute it itself
    uint8_t lag = 0;       // kWait
    uint32_t operand = 0;
    uint32_t target = 0;
  };
  static_assert(sizeof(Command) == 12, "commands are executed in order; keep them dense");

  static bool calls(Op op) {
    return op == Op::kCall || op == Op::kStart || op == Op::kTest || op == Op::kSelect;
  }

  struct Strand {
    uint32_t first = 0;  // command; of all but the main strand a kWait
    uint32_t stream = 0;
    uint32_t round = kNone;  // its counter; of the main strand: none
  };
  struct Event {
    uint32_t strand = kNone;  // that records it
    uint32_t round = kNone;   // that strand's counter
    // The machine's events that stand for it, by the parity of the round.
    uint32_t machine[2] = {kNone, kNone};
  };
  // Counts how often a strand has begun its part of a group's work.
  struct Round {
    bool overlaps = false;  // a round may begin while strands are in the one before
  };

  std::vector<Command> commands;
  std::vector<uint32_t> targets;
  std::vector<Strand> strands;
  std::vector<Event> events;
  std::vector<Round> rounds;
  uint32_t num_streams = 1;  // of the machine
};

}  // namespace eddy
