// prove_program: an independent proof that nested commands keep every order and every content.
//
// It reads the commands alone (nested_command.h) and shares no code with the planner but
// graph/base. Two claims together mean that every run reads what was written for it, in every
// order of completion that streams, records and waits allow:
//
//   Order     In each region, two commands that touch one name, one byte of an arena or one
//             stream of the machine, one of them changing it, are connected by a path
//             (prove_order). A loop or branch counts as one command that touches all that its
//             regions touch, because each region begins behind its entry and ends before its
//             exit, which is proved too; so iterations and regions of one loop follow each other.
//             Of an open loop two consecutive iterations are laid out one behind the other, with
//             `before` as one command between them, and every two commands in them that conflict
//             are connected: a value's name has one place in both. Where references are let go
//             of early, a passed-on name is read before the turn to the next iteration.
//   Content   Where all conflicting accesses are ordered, every run equals one that goes
//             command by command. That one is followed (content_check.h): each name's possible
//             places, through every branch and as many iterations as it takes until nothing
//             changes, so every pair of branches in consecutive iterations is in it. A name that
//             is read while its place may have been written for another is a violation.
//
// Also violations: a block outside its arena or off alignment; a rotating block without a block
// to spare; one launch that reads and writes the same bytes other than in place where it may;
// arena memory that leaves the graph or that a reader keeps; a region that does not start on the
// stream of its control node; an event of the machine that two regions may use at once; and all
// that prove_order finds wrong with records and waits.
//
// Errors: none; a malformed list (nested_shape.h) is an unsafe one. At most Proof::kMaxViolations
// are kept. Cost: near linear in commands and uses, times the depth of nesting.
#pragma once

#include <memory>
#include <vector>

#include "graph/proof/happens_before.h"
#include "graph/program/program.h"
#include "graph/proof/program_violation.h"

namespace eddy {

struct ProgramProof {
  std::vector<ProgramViolation> violations;
  bool is_safe() const { return violations.empty(); }
};

ProgramProof prove_program(const Program& program);

// Who proves many lists that differ in records and waits only follows their contents once:
// check_contents (content_check.h) sees neither. `contents` must be those of such a list.
// At the first `max_violations` the proof ends: who only asks whether there is one says 1.
struct ContentCheck;
ProgramProof prove_program(const Program& program, const ContentCheck& contents,
                         size_t max_violations = Proof::kMaxViolations);

// Who changes the records and waits of one region at a time asks for what depends on them only: a
// proof that was safe before is safe then exactly when prove_again() of that region is. (What a
// region touches, and with it the proof of every other region, depends on no record or wait.)
//
//   ProgramProver prover(commands, contents, 1);
//   if (prover.prove().is_safe()) … commands.regions[r].commands lose a wait …
//   prover.prove_again(r)   // and are as they were before another region changes
//
// Cost of prove_again(): prove_order's of the one region.
class ProgramProver {
 public:
  // Both must outlive it.
  ProgramProver(const Program& program, const ContentCheck& contents,
               size_t max_violations = Proof::kMaxViolations);
  ~ProgramProver();

  ProgramProof prove();
  ProgramProof prove_again(uint32_t region);

 private:
  class Prover;
  const std::unique_ptr<Prover> prover_;
};

}  // namespace eddy
