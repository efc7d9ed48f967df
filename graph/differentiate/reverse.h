// Reverse: the way back, from the loss's adjoint to those of the parameters.
//
//   exec      its rule (gradient_rule.h)
//   while     a while: before' = reverse of `before`: adjoints of the forwarded values -> of the
//             carried ones, n + 1 times; after' = reverse of `after`, n times; n is the trip limit.
//             Zero trips, limits and loops left in their middle need no special case. Row s of
//             after' at iteration i is row n - 1 - i of the stacked adjoint.
//   case-of   a case-of on the same selector, and one region more where values pass through
//
// Adjoints of captured values are carried, or returned by branches, and added to there. What is
// kept of a region is read from the loop's rows (after': row n - 1 - i; before' gets its own as
// carried values, from the last one on) or popped off the tapes, in the order opposite to that of
// pushing. Zeros are made only where a region must return an adjoint to which nothing was added.
//
// Internal to graph/differentiate. Errors: the builder's. Cost: O(nodes x rules' nodes).
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "graph/differentiate/activity.h"
#include "graph/differentiate/forward.h"
#include "graph/differentiate/gradient_rule.h"
#include "graph/differentiate/kept_values.h"
#include "graph/ir/control_view.h"

namespace eddy {

class Reverse : public ForwardValues {
 public:
  // All are borrowed; the forward copy is complete. `opset` is that of the nodes that are added.
  Reverse(const Graph& source, const GradientTable& rules, const Activity& activity,
          const KeptValues& kept, ForwardCopy& forward, GraphBuilder& builder, int opset);

  void run(ValueId loss, Value seed);
  // Of a value of the root; zeros where nothing came back.
  Value adjoint(ValueId id) { return sum_or_zeros(id); }

  Value value(ValueId id) override;
  Value shape(ValueId id) override;
  Value take_sum(ValueId id) override;
  void add(ValueId id, Value gradient) override;

 private:
  using Sums = std::unordered_map<ValueId, Value>;  // of the region that is open
  struct LoopParts;

  void region(RegionId id);
  void exec(NodeId id);
  void loop(NodeId id);
  void branch(NodeId id);
  std::vector<Value> reverse_branch(RegionId id, LoopView::Values outputs,
                                    const std::vector<Value>& adjoints,
                                    const std::vector<ValueId>& captures,
                                    const std::vector<Value>& sums, const Tapes& tapes);
  void open_region(RegionId id, const LoopParts& parts, const std::vector<ValueId>& handed,
                   ValueSpan given);
  std::vector<Value> close_region(const LoopParts& parts, const std::vector<ValueId>& handed);
  void finish_loop(const LoopParts& parts, const std::vector<Value>& made);

  Value handed_on(const Kept& item, RegionId region);
  Value row(Value rows, Value place);
  void pop_kept(RegionId region);
  Value with_rank(Value value, const Kept& item);
  Value take_or_none(ValueId id);
  Value sum_or_zeros(ValueId id);
  Value zeros(ValueId id);
  std::vector<Value> sums_or_zeros(const std::vector<ValueId>& ids);
  Value op(std::string_view name, std::initializer_list<Value> inputs, Attributes attributes = {});

  const Graph& source_;
  const GradientTable& rules_;
  const Activity& activity_;
  const KeptValues& kept_;
  ForwardCopy& forward_;
  GraphBuilder& builder_;
  const int opset_;
  Sums sums_;
  Tapes tapes_;
  std::map<Kept, Value> popped_;
};

}  // namespace eddy
