// Content check: follows a program in the order of issue and sees whether every name that is read
// still stands where it was written. Internal to the checker; program_proof.h has what it is
// worth.
//
// A state holds the names whose bytes are intact. What is written, by a launch or by a copy, ends
// all others whose bytes it may meet. Names that alternate with one loop stand at their places of
// the same iteration, so the two halves of such a pair never meet; when the loop is entered anew or
// advances, only what is handed on outlives it. States of branches are united; a loop is followed
// until the state at its head grows no more, and the state is kept, so that inner loops are
// followed again only when something new reaches them.
#pragma once

#include <vector>

#include "graph/program/program.h"
#include "graph/proof/program_violation.h"

namespace eddy {

// The arena memory that commands touch directly, as names; ascending.
struct TouchedMemory {
  std::vector<uint32_t> reads;
  std::vector<uint32_t> writes;
};

struct ReachingWrites {
  std::vector<ProgramViolation> violations;
  std::vector<TouchedMemory> launches;  // as in Program
  std::vector<TouchedMemory> rows;
  std::vector<TouchedMemory> loops;  // without what their blocks touch
  std::vector<TouchedMemory> turns;  // by loop: of this, what happens between two iterations
  std::vector<TouchedMemory> cases;
};

ReachingWrites find_reaching_writes(const Program& program);

}  // namespace eddy
