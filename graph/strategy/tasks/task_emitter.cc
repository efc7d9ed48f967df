#include "graph/strategy/tasks/task_emitter.h"

#include <algorithm>

#include "graph/base/check.h"

namespace eddy {

TaskEmitter::TaskEmitter(const OperatorGraph& graph, const Topology& topology)
    : graph_(graph),
      topology_(topology),
      costs_(graph, topology),
      slots_(graph.operators.size()),
      groups_(eddy::weight_groups(graph)) {
  for (const Operator& op : graph.operators) {
    first_block_.push_back(num_blocks_);
    num_blocks_ += static_cast<uint32_t>(op.inputs.size()) + 1;
  }
  const uint64_t blocks = uint64_t{2} * num_blocks_ + groups_.size() + 1;
  EDDY_CHECK(blocks <= UINT32_MAX) << blocks << " blocks share 2^32 ranks";
  ranks_per_block_ =
      static_cast<uint32_t>(std::min<uint64_t>(UINT32_MAX / blocks, kMaxTasksPerBlock));
}

bool TaskEmitter::is_distinct_input(uint32_t op, size_t input) const {
  const std::vector<OperatorInput>& inputs = graph_.operators[op].inputs;
  return std::none_of(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(input),
                      [&](const OperatorInput& other) {
                        return other.producer == inputs[input].producer &&
                               other.dims == inputs[input].dims;
                      });
}

void TaskEmitter::fail_too_many() {
  if (!status_.is_ok()) return;  // it is reported once, and met millions of times
  fail(resource_exhausted("an operator, an input or a sum of gradients would make more than " +
                          std::to_string(ranks_per_block_) +
                          " tasks or dependencies; give the operators fewer parts"));
}

void TaskEmitter::fail_route(uint32_t from, uint32_t to, uint32_t op) {
  fail(invalid_argument("no link leads from '" + topology_.node(from).name + "' to '" +
                        topology_.node(to).name + "', which operator '" +
                        graph_.operators[op].name + "' needs; add one to the topology"));
}

}  // namespace eddy
