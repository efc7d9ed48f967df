#include "graph/schedule/streams/stream_assignment.h"

#include <algorithm>

#include "graph/analysis/topological_order.h"
#include "graph/analysis/transitive_reduction.h"
#include "graph/base/check.h"
#include "graph/schedule/streams/chain_placement.h"
#include "graph/schedule/streams/matching_assignment.h"
#include "graph/schedule/streams/slots.h"

namespace eddy {
namespace {

StreamAssignment assign_serially(const Dag& dag, std::span<const uint32_t> issue_order,
                                 const StreamOptions& options) {
  const Slots slots(dag.num_nodes(), options);
  std::vector<uint32_t> stream_of_device(slots.num_devices(), UINT32_MAX);
  std::vector<uint32_t> device_of_stream;
  std::vector<uint32_t> stream_of_slot(slots.size());
  for (uint32_t node : issue_order) {
    slots.for_each_of(node, [&](uint32_t slot) {
      uint32_t& stream = stream_of_device[slots.device(slot)];
      if (stream == UINT32_MAX) {
        stream = static_cast<uint32_t>(device_of_stream.size());
        device_of_stream.push_back(slots.device(slot));
      }
      stream_of_slot[slot] = stream;
    });
  }
  return slots.assignment(std::move(stream_of_slot), std::move(device_of_stream));
}

}  // namespace

StreamAssignment assign_streams(const Dag& dag, std::span<const uint32_t> issue_order,
                                const StreamOptions& options) {
  EDDY_CHECK(issue_order.size() == dag.num_nodes()) << "the issue order names each node once";
  EDDY_DCHECK(is_topological(dag, issue_order)) << "the issue order is topological";
  switch (options.policy) {
    case AssignPolicy::kRank:
      return assign_by_rank(dag, issue_order, options);
    case AssignPolicy::kSerial:
      return assign_serially(dag, issue_order, options);
    case AssignPolicy::kMatching:
      return assign_by_matching(transitive_reduction(dag), issue_order, options).streams;
  }
  EDDY_CHECK(false) << "unknown policy";
  return {};
}

}  // namespace eddy
