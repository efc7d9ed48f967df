// Reverse: the way back, from the loss's adjoint to those of the parameters.
//
//   exec      its rule (gradient_rule.h)
//   while     a while: before' = reverse of `before`: adjoints of the forwarded values -> of the
//             carried ones, n + 1 times; after' = reverse of `after`, n times; n is the trip limit.
//             Zero trips, limits and loops left in their middle need no special case. Row s of
//             after' at iteration i is row n - 1 - i of the stacked adjoint.
//   case-of   a case-of on the same selector, and one region more where values pass through
//
// Adjoints of captured values are carried, or returned by branches, and added to there. Those of
// matrices that `after` multiplies rows by wait where rows are few: both factors are stacked (in
// branches: pushed on sequences), and one product behind the loop adds them all up. What is
// kept of a region is read from the loop's rows (after': row n - 1 - i; before' gets its own as
// carried values, from the last one on) or popped off the tapes, in the order opposite to that of
// pushing. Zeros are made only where a region must return an adjoint to which nothing was added.
//
// A loop that keeps less (save_policy.h) reverses to the reverse of its last `before`, made again
// from the last state, and a loop whose iteration k = n - 1, ..., 0 makes iteration k again and is
// after' and before' of it: what they read is at hand, on no tape but their own. Or, in segments,
// each iteration of a loop takes a state, a loop inside makes the segment again and keeps what
// `all` keeps, and another one is its reverse. Adjoints are added up in the same order, so they
// have the same bits.
//
// Internal to graph/differentiate. Errors: the builder's. Cost: O(nodes x rules' nodes).
#pragma once

#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/differentiate/activity.h"
#include "graph/differentiate/forward.h"
#include "graph/differentiate/gradient_rule.h"
#include "graph/differentiate/kept_values.h"
#include "graph/ir/control_view.h"

namespace eddy {

class Reverse : public ForwardValues {
 public:
  struct Options {
    int opset = 0;  // of the nodes that are added
    bool exact = false;
  };
  // All are borrowed; the forward copy is complete.
  Reverse(const Graph& source, const GradientTable& rules, const Activity& activity,
          const KeptValues& kept, ForwardCopy& forward, GraphBuilder& builder, Options options);

  void run(ValueId loss, Value seed);
  // Of a value of the root; zeros where nothing came back.
  Value adjoint(ValueId id) { return sum_or_zeros(id); }

  Value value(ValueId id) override;
  Value shape(ValueId id) override;
  Value take_sum(ValueId id) override;
  void add(ValueId id, Value gradient) override;
  bool add_later(ValueId id, Value left, Value right) override;

 private:
  using Sums = std::unordered_map<ValueId, Value>;  // of the region that is open
  // The values that the two reversed regions hand to each other.
  struct LoopParts {
    std::vector<ValueId> forwarded, received, outputs;  // active ones, place by place
    std::vector<ValueId> carried, next, initial;        // active ones, place by place
    std::vector<ValueId> captures;
    std::set<ElementType> tapes;
    std::vector<Value> stacked;  // adjoints of stacked rows; none: nothing came back

    LoopParts(const LoopView& loop, const Activity& activity);
  };
  // What stands in for an iteration of a region: its rows, or null for what is popped, and its
  // number.
  struct Iteration {
    const std::vector<Value>* rows_or_null = nullptr;
    Value number = {};
  };

  // Products of rows that wait for the end of the loop whose `after` is being reversed. A loop says
  // beforehand how many rows it stacks, by types: places that stay free stack a number. Branches
  // push theirs, so that only what was taken waits: two sequences for each matrix, which are never
  // empty, as they begin with a row of zeros.
  struct Waiting {
    struct Product {
      ValueId id;
      Value left, right;
    };
    const std::vector<ValueId>* captures;
    uint32_t num_places = 0;
    std::vector<Product> products = {};
    std::vector<ValueId> pushed = {};   // matrices that branches multiply rows by
    std::vector<Value> sequences = {};  // left and right of each, in the region that is open

    uint32_t num_rows() const { return 2 * num_places; }
    size_t num_sequences() const { return 2 * pushed.size(); }
  };

  void region(RegionId id);
  void exec(NodeId id);
  void loop(NodeId id);
  LoopParts begin_loop(NodeId id);
  void branch(NodeId id);
  std::vector<Value> reverse_branch(RegionId id, LoopView::Values outputs,
                                    const std::vector<Value>& adjoints,
                                    const std::vector<ValueId>& captures,
                                    const std::vector<Value>& sums, const Tapes& tapes);
  std::vector<Value> reverse_region(RegionId id, const LoopParts& parts,
                                    const std::vector<ValueId>& handed,
                                    const std::vector<ValueId>& wanted, ValueSpan given,
                                    const Iteration* kept_or_null, Value row_place = {});
  void finish_loop(const LoopParts& parts, const std::vector<Value>& made);
  Waiting begin_waiting(RegionId after, const LoopParts& parts, bool branches_push = false) const;
  // Matrices whose products in the region may wait, once for each product.
  std::vector<ValueId> waiting_matrices(RegionId region,
                                        const std::vector<ValueId>& captures) const;
  // Those of a case-of, in branches of branches, too; once each.
  std::set<ValueId> pushed_matrices(NodeId id, const std::vector<ValueId>& captures) const;
  void start_sequences(const Waiting& waiting, WhileOptions& options);
  // What `reverse` returns, whose products may wait.
  template <typename Function>
  std::vector<Value> let_wait(Waiting& waiting, const Function& reverse) {
    waiting.products.clear();  // of an attempt with other types
    waiting_or_null_ = &waiting;
    const bool is_in_branch = std::exchange(is_in_branch_, false);
    std::vector<Value> results = reverse();
    is_in_branch_ = is_in_branch;
    waiting_or_null_ = nullptr;
    return results;
  }
  void append_rows(const Waiting& waiting, std::vector<Value>& results);
  // `made`: a reversed loop's outputs, the rows last.
  void add_waited(const Waiting& waiting, const LoopParts& parts, std::vector<Value>& made);

  Value handed_on(const Kept& item, RegionId region);
  bool is_live(RegionId region) const { return region == Graph::kRoot || live_.contains(region); }
  Value row(Value rows, Value place);
  void take_kept(RegionId region, const Iteration& iteration);
  Value pop(const Kept& item);
  Value with_rank(Value value, const Kept& item);
  Value with_shape_of(ValueId id, Value gradient);
  Value take_or_none(ValueId id);
  Value sum_or_zeros(ValueId id);
  Value zeros(ValueId id);
  std::vector<Value> sums_or_zeros(const std::vector<ValueId>& ids);
  Value op(std::string_view name, std::initializer_list<Value> inputs, Attributes attributes = {});

  // reverse_again.cc
  void loop_again(NodeId id);
  void stand_for_state(const LoopView& loop, const std::vector<Value>& states, Value number);
  void make_last_again(const LoopView& loop, const std::vector<Value>& states, Value trips);
  void hand_over(const LoopView& loop);
  std::vector<Value> pop_states(NodeId id);
  std::vector<Value> reverse_iteration(const LoopView& loop, const LoopParts& parts,
                                       ValueSpan given, Value place, const Iteration* after_or_null,
                                       const Iteration* before_or_null);
  std::vector<Value> iterations(NodeId id, const LoopParts& parts, std::vector<Value> adjoints,
                                Value trips);
  std::vector<Value> segments(NodeId id, const LoopParts& parts, std::vector<Value> adjoints,
                              Value trips);
  // Rows of `before` and of `after`, or tapes.
  std::vector<Value> make_segment_again(NodeId id, const std::vector<Value>& states, Value start,
                                        Value length);
  std::vector<Value> reverse_segment(NodeId id, const LoopParts& parts, ValueSpan adjoints,
                                     const std::vector<Value>& kept, Value start, Value length);
  void start_adjoints(const LoopParts& parts, ValueSpan adjoints, WhileOptions& options);

  const Graph& source_;
  const GradientTable& rules_;
  const Activity& activity_;
  const KeptValues& kept_;
  ForwardCopy& forward_;
  GraphBuilder& builder_;
  const int opset_;
  const bool exact_;
  Waiting* waiting_or_null_ = nullptr;  // of the region that is open
  bool is_in_branch_ = false;           // of that region
  Sums sums_;
  Tapes tapes_;
  std::map<Kept, Value> popped_;
  std::set<RegionId> live_;  // made again in the region that is open: nothing was popped
};

}  // namespace eddy
