// print_program: a program as text, one step a line, block in block; the same program gives the
// same text. step_text: one step of it.
//
//   streams 0 1
//   0  begin
//   0  launch left
//   0  record e0
//   1  wait e0
//   0  loop newton
//     before
//       streams 0
//       0  begin
//       …
//       0  test newton
//
// Contract: the program is well formed (validate.h). Cost: linear in the text.
#pragma once

#include <functional>
#include <string>

#include "graph/program/program.h"

namespace eddy {

struct ProgramNames {
  std::function<std::string(uint32_t)> node;   // of the graph's node
  std::function<std::string(uint32_t)> value;  // of a name
};

const char* op_name(Program::Op op);

// "launch left", "wait e3 of the iteration before", "retain h, c".
std::string step_text(const Program& program, const Program::Step& step, const ProgramNames& names);

std::string print_program(const Program& program, const ProgramNames& names);

}  // namespace eddy
