// read_blocks: what the flat code of a command buffer does, as the nested blocks it was recorded
// as.
//
// Jumps alone say so: a kRepeat makes a while of what stands between its target and itself, cut
// into stretches by the tests that leave it; a kSwitch's table makes a case; a kFork's strand
// stands behind it. Whoever proves what a buffer will do reads it here, and not what its author
// meant.
//
// Errors: kInternal, naming the command: jumps that fit no such nesting. Threads: pure.
// Cost: O(commands) but for loops: near linear. Memory: 80 bytes a command.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/base/status.h"
#include "runtime/device/command_code.h"

namespace eddy {

struct CodeItem;
using CodeBlock = std::vector<CodeItem>;

struct CodeItem {
  enum class Kind : uint8_t { kLaunch, kReset, kRecord, kWait, kFork, kWhile, kCase };
  Kind kind = Kind::kLaunch;
  uint32_t command = 0;              // in the code: a launch, a case's switch; a while's first test
  uint32_t id = 0;                   // event; strand of a fork
  std::vector<uint32_t> tests = {};  // of a while: commands
  std::vector<CodeBlock> blocks = {};  // a fork's one, a while's stretches, a case's branches
};

// The main strand's.
Result<CodeBlock> read_blocks(const CommandCode::View& view);

}  // namespace eddy
