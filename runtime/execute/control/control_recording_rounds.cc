// The rounds of a loop that is recorded: its iterations, and what carries their values on.
#include <algorithm>

#include "graph/ir/aliases.h"
#include "graph/ir/node_facts.h"
#include "graph/ir/region_tree.h"
#include "graph/loops/unrolling.h"
#include "runtime/execute/control/control_recording.h"
#include "runtime/execute/executable.h"

namespace eddy {

// By a fault that a kernel reports, or a selector without a branch.
bool ControlRecording::may_stop_itself() const {
  const RegionTree regions(graph());
  for (uint32_t n = 0; n < graph().num_nodes(); ++n) {
    const Node& node = graph().node(NodeId(n));
    if (!regions.is_inside(node.region, top_)) continue;
    if (node.kind == NodeKind::kExec && state_.executable().kernel(NodeId(n)).may_fault)
      return true;
    if (node.kind != NodeKind::kCaseOf) continue;
    const CaseView view(graph(), NodeId(n));
    if (node.default_region < 0 && !view.has_pass_through()) return true;
  }
  return false;
}

// How many iterations a round holds is seen once there is one.
Status ControlRecording::record_rounds(const Node& node, const LoopWords& words,
                                       const Addresses& first, bool unrolls) {
  LoopTest test{words};
  const ValueId predicate = LoopView(graph(), node).predicate();
  EDDY_ASSIGN_OR_RETURN(test.predicate, decision_address(predicate));
  if (unrolls) {
    EDDY_ASSIGN_OR_RETURN(void* const go_on, device_memory(sizeof(uint32_t)));
    test.go_on = static_cast<uint32_t*>(go_on);
  }
  EDDY_RETURN_IF_ERROR(capture_.begin_while(test));
  EDDY_RETURN_IF_ERROR(record_iteration(node, words, first));
  uint32_t num_iterations = 1;
  if (unrolls) {
    EDDY_ASSIGN_OR_RETURN(num_iterations, iterations_a_round(node));
  }
  for (uint32_t i = 1; i < num_iterations; ++i) {
    EDDY_RETURN_IF_ERROR(capture_.begin_again());
    EDDY_RETURN_IF_ERROR(record_iteration(node, words, first));
  }
  most_iterations_ = std::max(most_iterations_, num_iterations);
  return capture_.end_while();
}

// By what the first iteration has become.
Result<uint32_t> ControlRecording::iterations_a_round(const Node& node) {
  const Result<uint32_t> num_launches = capture_.count_launches();
  if (num_launches.status().code() == StatusCode::kUnsupported) {
    why_not_unrolled_ = node.name + ": " + num_launches.status().message();
    return 1u;
  }
  EDDY_RETURN_IF_ERROR(num_launches.status());
  if (!unrolls_) {
    const uint32_t least = capture_.least_launches(), most = std::max(*num_launches, 1u);
    return (least + most - 1) / most;
  }
  const uint32_t with_test = *num_launches + 1;
  const uint32_t num_iterations = Unrolling::iterations_a_round(with_test);
  if (num_iterations == 1) {
    why_not_unrolled_ = "an iteration of " + node.name + " is " + std::to_string(with_test) +
                        " launches, a round holds " + std::to_string(Unrolling::kLaunchesOfARound);
  }
  return num_iterations;
}

// Whether the loop's test can be recorded on the values that the body has made, where they are
// made: all its nodes are calls that the device runs, and none writes over what is still to be
// carried or stacked. Views would stay there when the loop has ended, and the iteration's number is
// not yet the next one's.
Result<bool> ControlRecording::can_test_before_copies(const LoopView& loop) {
  if (state_.executable().locates_faults()) return false;
  const Region& before = graph().region(loop.before_id());
  std::vector<TensorView> written;
  for (const NodeId id : before.nodes) {
    const Node& node = graph().node(id);
    if (node.kind != NodeKind::kExec) return false;
    if (copy_to_host_or_null(graph(), node.outputs[0]) != nullptr) continue;
    if (row_copy_or_null(graph(), node.outputs[0]) != nullptr) continue;
    const bool reads_number = std::ranges::any_of(node.inputs, [&](ValueId input) {
      return !input.is_none() && is_iteration(graph(), input);
    });
    const bool may_fault = state_.executable().kernel(id).may_fault;
    if (node.op->is_view || reads_number || may_fault) return false;
    for (const ValueId output : node.outputs) written.push_back(state_.slot(output).view);
  }
  const auto is_written = [&](const void* data, size_t size_bytes) {
    const auto begin = reinterpret_cast<uintptr_t>(data);
    return std::ranges::any_of(written, [&](const TensorView& view) {
      const auto other = reinterpret_cast<uintptr_t>(view.data);
      return begin < other + std::max<size_t>(view.size_bytes(), 1) &&
             other < begin + std::max<size_t>(size_bytes, 1);
    });
  };
  for (size_t k = 0; k < loop.num_carried(); ++k) {
    const ValueId parameter = loop.carried()[k];
    if (is_carried_idly(loop, k, uses_)) continue;
    const TensorView value = state_.slot_for(loop.next()[k], parameter).view;
    const void* next = value.data;
    if (kept_decisions_.contains(parameter.index())) {
      EDDY_ASSIGN_OR_RETURN(next, decision_address(loop.next()[k]));
    }
    if (is_written(next, value.size_bytes())) return false;
  }
  return std::ranges::none_of(rows_, [&](const Rows& rows) {
    return is_written(state_.slot(resolve_forwarded(graph(), rows.made)).view.data, rows.row_bytes);
  });
}

// The parameters are the values of the next iteration, which are not in their homes yet.
void ControlRecording::point_to_next(const LoopView& loop) {
  std::vector<std::pair<ValueId, void*>> next;
  for (size_t k = 0; k < loop.num_carried(); ++k) {
    const ValueId parameter = loop.carried()[k];
    if (is_carried_idly(loop, k, uses_) || !homes_.contains(parameter.index())) continue;
    next.emplace_back(parameter, state_.slot_for(loop.next()[k], parameter).view.data);
  }
  for (const auto& [parameter, data] : next) point(parameter, data);
}

void ControlRecording::point_to_homes(const LoopView& loop) {
  for (const ValueId parameter : loop.carried()) {
    const auto at = homes_.find(parameter.index());
    if (at != homes_.end()) point(parameter, at->second.data());
  }
}

// From the homes to the homes, and the next predicate. Where the predicate can be made of the
// values that the body has left, one launch behind it moves them, counts and tests.
Status ControlRecording::record_iteration(const Node& node, const LoopWords& words,
                                          const Addresses& first) {
  const LoopView loop(graph(), node);
  EDDY_RETURN_IF_ERROR(record_region(loop.after_id(), nullptr));
  EDDY_ASSIGN_OR_RETURN(const bool tests_first, can_test_before_copies(loop));
  Addresses again;
  if (tests_first) {
    point_to_next(loop);
    EDDY_RETURN_IF_ERROR(record_region(loop.before_id(), &again));
    point_to_homes(loop);
  }
  EDDY_RETURN_IF_ERROR(copy_next(loop, words));
  EDDY_RETURN_IF_ERROR(capture_.advance_counter(words));
  if (!tests_first) EDDY_RETURN_IF_ERROR(record_region(loop.before_id(), &again));
  // The loop ends with what any of them has made.
  if (first != again) return internal_error("a loop's test writes elsewhere another time");
  return Status::ok();
}

}  // namespace eddy
