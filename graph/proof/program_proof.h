// prove_program: an independent proof that a program keeps every order and every content.
//
// It reads the program alone and shares no code with the planner but graph/base and graph/program.
// Two claims together mean that every run reads what was written for it, in every order of
// completion that streams, records and waits allow:
//
//   Order     In each block, two steps that touch one name, one byte of an arena or one stream of
//             the machine, one of them changing it, are connected by a path (prove_order). A loop
//             or case counts as one step that touches all that its blocks touch, because each block
//             begins and ends on its stream, which is proved too; so iterations of one loop follow
//             each other. Of a pipelined loop two consecutive iterations are laid out one behind
//             the other (back_edge_order.h).
//   Content   Where all conflicting accesses are ordered, every run equals one that goes step by
//             step. That one is followed (reaching_writes.h) through every branch and as many
//             iterations as it takes until nothing changes.
//
// Also violations: a block of memory outside its arena or off alignment, or without one to spare;
// one launch that reads and writes the same bytes other than in place where it may; arena memory
// that leaves the graph; an event of the machine that two blocks may use at once; and all that
// prove_order finds wrong with records and waits.
//
// Errors: none; a malformed program (validate.h) is an unsafe one. At most Proof::kMaxViolations
// are kept. Cost: near linear in steps and uses, times the depth of nesting.
#pragma once

#include <memory>
#include <vector>

#include "graph/program/program.h"
#include "graph/proof/happens_before.h"
#include "graph/proof/program_violation.h"

namespace eddy {

struct ProgramProof {
  std::vector<ProgramViolation> violations;
  bool is_safe() const { return violations.empty(); }
};

ProgramProof prove_program(const Program& program);

// For proofs of many programs that differ in records and waits only: find_reaching_writes
// (reaching_writes.h) sees neither, so `contents` may be those of any of them. The proof ends at
// the first `max_violations`; 1 only asks whether there is one.
struct ReachingWrites;
ProgramProof prove_program(const Program& program, const ReachingWrites& contents,
                           size_t max_violations = Proof::kMaxViolations);

// For changes to the records and waits of one region at a time, only what depends on them is proved
// again: a proof that was safe before is safe then exactly when prove_again() of that region is.
// (What a region touches, and with it the proof of every other region, depends on no record or
// wait.)
//
//   ProgramProver prover(commands, contents, 1);
//   if (prover.prove().is_safe()) … commands.regions[r].commands lose a wait …
//   prover.prove_again(r)   // and are as they were before another region changes
//
// Cost of prove_again(): prove_order's of the one region.
class ProgramProver {
 public:
  // Both must outlive it.
  ProgramProver(const Program& program, const ReachingWrites& contents,
                size_t max_violations = Proof::kMaxViolations);
  ~ProgramProver();

  ProgramProof prove();
  ProgramProof prove_again(uint32_t region);

 private:
  class Prover;
  const std::unique_ptr<Prover> prover_;
};

}  // namespace eddy
