// Command graph: a command list as happens-before steps. Internal to the checker.
//
// Command c happens after previous[c], the one before it on its stream, and after cause[c]: the
// record that a wait names, or the launch before it in a joint launch. After a joint launch all
// its streams go on from its last command. Both are smaller than c, so the list's order is
// topological, or kNone.
//
// Errors: what is malformed is reported as a violation; the graph is then not to be used.
// Cost: O(commands + nodes + highest id).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/base/check.h"
#include "graph/program/program.h"
#include "graph/proof/order_violation.h"

namespace eddy {

struct CommandGraph {
  static constexpr uint32_t kNone = UINT32_MAX;

  std::span<const Program::Step> commands;
  std::vector<uint32_t> previous;
  std::vector<uint32_t> cause;
  std::vector<uint32_t> launch_of_node;  // the last of a joint launch
  uint32_t num_streams = 0;
  uint32_t num_events = 0;

  uint32_t stream(uint32_t command) const { return commands[command].stream; }
  // Whether the command after this launch is another of the same joint launch.
  bool is_joint_next(uint32_t launch) const {
    EDDY_DCHECK(commands[launch].op == Program::Op::kLaunch);
    const uint32_t next = launch + 1;
    return next < commands.size() && commands[next].op == Program::Op::kLaunch &&
           cause[next] == launch;
  }
};

CommandGraph read_command_graph(uint32_t num_nodes, std::span<const Program::Step> commands,
                                std::vector<Violation>& violations);

}  // namespace eddy
