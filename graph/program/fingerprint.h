// fingerprint: 128 bits that stand for all of a program: what was proved of one is proved of every
// other of the same fingerprint.
//
// It covers each member of Program; a new one belongs here, too. Threads: pure. Cost: some
// nanoseconds for a word of the program.
#pragma once

#include "graph/base/fingerprint.h"
#include "graph/program/program.h"

namespace eddy {

Fingerprint fingerprint(const Program& program);

}  // namespace eddy
