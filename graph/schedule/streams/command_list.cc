#include "graph/schedule/streams/command_list.h"

#include "graph/base/check.h"

namespace eddy {

std::vector<Program::Step> command_list(std::span<const uint32_t> issue_order,
                                        const StreamAssignment& assignment, const SyncPlan& plan) {
  std::vector<Program::Step> commands;
  commands.reserve(issue_order.size() + assignment.further.size() + plan.records.size() +
                   plan.waits.size());
  // Records and waits are in issue order, so one pass over each is enough.
  auto record = plan.records.begin();
  auto wait = plan.waits.begin();
  for (uint32_t node : issue_order) {
    const uint32_t stream = assignment.stream_of_node[node];
    for (; wait != plan.waits.end() && wait->node == node; ++wait) {
      commands.push_back({Program::Op::kWait, stream, wait->event});
    }
    assignment.for_each_stream_of(node, [&](uint32_t s) {
      commands.push_back({Program::Op::kLaunch, s, node});
    });
    for (; record != plan.records.end() && record->node == node; ++record) {
      commands.push_back({Program::Op::kRecord, stream, record->event});
    }
  }
  EDDY_CHECK(wait == plan.waits.end() && record == plan.records.end())
      << "the sync plan is not in issue order";
  return commands;
}

}  // namespace eddy
