// find_reaching_writes: which write reaches each read. It follows a program in the order of issue
// and checks that every name that is read still stands where its writer put it. Internal to the
// proof; program_proof.h has what it is worth.
//
// A state holds references: "this name may stand at the memory of that written name". A write
// ends the references of all others whose blocks overlap its own. A storage with several blocks
// takes turns: its writer takes a block at which no holder stands, so a reference that is tagged
// with a holder ("stands where that loop parameter stands") survives. States of branches are
// united; a loop is followed until the state at its head grows no more, and the state is kept, so
// that inner loops are followed again only when something new reaches them.
#pragma once

#include <vector>

#include "graph/program/program.h"
#include "graph/proof/program_proof.h"

namespace eddy {

// The arena memory that commands touch directly, as written names; ascending.
struct TouchedMemory {
  std::vector<uint32_t> reads;
  // Read where a holder stands: never the block that the writer takes meanwhile.
  std::vector<uint32_t> held;
  std::vector<uint32_t> writes;
};

struct ReachingWrites {
  std::vector<ProgramViolation> violations;
  std::vector<TouchedMemory> launches;  // as in Program
  std::vector<TouchedMemory> rows;
  std::vector<TouchedMemory> loops;  // without what their blocks touch
  std::vector<TouchedMemory> cases;
};

ReachingWrites find_reaching_writes(const Program& program);

}  // namespace eddy
