// A slow, plain machine that runs nested commands in a random legal order of completion, with
// random decisions, and looks into the memory: every byte of an arena remembers which instance of
// which name was written to it last.
//
// A launch takes time: it starts, others may go on, it ends. What it reads must be intact from
// its start to its end; what it writes is lost for others from its start on.
//
// Iterations of pipelined loops overlap as far as they may: the next one begins where `after`
// exits, and enters its own `after` once the tails of the last but one have ended. A name has one
// place in all of them, so each name knows in which iteration it was made: its readers must be of
// that one.
#pragma once

#include <cstdint>
#include <string>

#include "graph/program/program.h"

namespace eddy {

// Empty, or what went wrong. Adds how many commands began beside an earlier iteration's tail.
std::string simulate_nested(const Program& program, uint64_t seed,
                            uint64_t* num_early_or_null = nullptr);

// What it finds in the first of so many orders in which it finds something.
std::string simulate_often(const Program& program, uint64_t times,
                           uint64_t* num_early_or_null = nullptr);

}  // namespace eddy
