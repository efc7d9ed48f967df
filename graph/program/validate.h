// find_malformed: what is wrong with a program's shape, before anything follows it.
//
// Every id names something that is there. Each launch, row, loop and case stands in one place; each
// block belongs to one loop or case, the root to none, none lies inside itself or deeper than
// kMaxBlockDepth. A block begins with kBegin and ends as its owner demands (program.h), both on its
// main stream; its steps stand on its streams. Waits for the iteration before stand in the `after`
// of pipelined loops, rows in the `after` of their loop. A name has one maker. A program that
// passes can be followed without looking at ids again.
//
// Errors: none; the first defect is returned. Cost: near linear.
#pragma once

#include <optional>
#include <string>

#include "graph/program/program.h"

namespace eddy {

inline constexpr uint32_t kMaxBlockDepth = 1000;

struct ProgramDefect {
  uint32_t block = 0;
  uint32_t node = Program::kNone;  // the graph's
  std::string text;
};

// None: well formed.
std::optional<ProgramDefect> find_malformed(const Program& program);

}  // namespace eddy
