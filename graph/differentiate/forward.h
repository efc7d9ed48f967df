// ForwardCopy: the source's own nodes in the new graph, with what the way back needs of loops and
// branches beside them.
//
//   while     what is kept of it becomes rows (kept_values.h); or it carries the tapes in addition,
//             and each region pushes at its end. The last iteration number is forwarded, so it is a
//             result
//   case-of   each branch pushes on the tapes and returns them; passing through returns them too
//
// A loop that keeps less (save_policy.h) hands on its carried values, as rows or pushed, and
// nothing is kept of what is inside. `after` pushes them: in every iteration, or where a segment
// begins, with the iteration's number; the last ones are results. The way back then asks for the
// nodes that make an iteration again.
//
// Loops and branches that hand nothing back are copied as they are. Initializers that are to be
// inputs become such. Internal to graph/differentiate. Errors: the builder's.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/base/check.h"
#include "graph/compile/copy_graph.h"
#include "graph/differentiate/activity.h"
#include "graph/differentiate/kept_values.h"

namespace eddy {

// A sequence for each element type that is kept.
using Tapes = std::map<ElementType, Value>;

class ForwardCopy : public GraphCopier {
 public:
  // `parameters`: constants of the source that become inputs. All are borrowed.
  ForwardCopy(const Graph& source, GraphBuilder& builder, const Activity& activity,
              const KeptValues& kept, const std::vector<ValueId>& parameters);

  // Inputs, nodes and outputs; the builder stays open for more.
  void run();

  // What stands for a value of the source in the region that is open.
  Value of(ValueId id) { return value(id); }
  ValueType type_of(ValueId id) { return with_symbols(source_.value(id).type); }
  // What loops of the open region hand on beside their own results: trips, rows, last ones.
  Value handed_out(const Kept& item) const {
    EDDY_DCHECK(handed_on_.contains(item)) << "a loop does not hand on value " << item.index;
    return handed_on_.at(item);
  }
  Tapes& tapes() { return tapes_; }

  // What the way back makes again, in the region that is open. Values of the source that are used
  // stand for what stand_for() has said, or were made again.
  void stand_for(ValueId id, Value value) { define(id, value); }
  void derive(RegionId region);
  // Of one region of a loop; loops inside it keep what they are to keep.
  void make_again(RegionId region);
  std::vector<Value> kept_values(RegionId region);
  void push_kept(RegionId region);
  Tapes empty_tapes(const std::set<ElementType>& types);

 protected:
  Value value(ValueId id) override;
  void exec(NodeId id) override;
  std::vector<NodeId> order(RegionId region) override;
  std::string name_of(NodeId id) override;
  void loop(NodeId id) override;
  void branch(NodeId id) override;

 private:
  void record_loop(NodeId id);
  void record_states(NodeId id);
  void record_case(NodeId id);
  // What a loop has beside its own.
  struct Extras {
    std::set<ElementType> tapes = {};
    size_t num_counters = 0;
    std::vector<Kept> before = {};       // forwarded; the last ones are results
    std::vector<Kept> before_rows = {};  // those, or none
    std::vector<Kept> after_rows = {};
  };
  WhileOptions options_of(NodeId id, const Extras& extras);
  void take_outputs(NodeId id, const Extras& extras, const std::vector<Value>& made);
  Value kept_value(const Kept& item);
  void push(ElementType element, Value value);
  void push_states(NodeId id, ValueSpan states);
  std::vector<Value> begin_segment(NodeId id, const Extras& extras, Value iteration,
                                   ValueSpan counters, ValueSpan states);
  void nodes_unrecorded(RegionId region);
  void add_lengths();
  Value segment_length(const SavePolicy& policy);

  const Activity& activity_;
  const KeptValues& kept_;
  const std::vector<ValueId>& parameters_;
  std::unordered_map<ValueId, Value> inputs_;          // or constants, by the source's named ones
  std::map<std::string, Value, std::less<>> lengths_;  // of segments, by their inputs
  std::map<Kept, Value> handed_on_;
  Tapes tapes_;
  bool records_ = true;       // else loops and branches are copied as they are
  bool is_again_ = false;     // what is copied is there already, under its names
  RegionId only_again_ = {};  // of which not all nodes are made again
};

// Those of the types given, in their order; and back.
std::vector<Value> in_order(const Tapes& tapes, const std::set<ElementType>& types);
Tapes tapes_of(const std::set<ElementType>& types, ValueSpan values);
// The type of a tape, whatever it holds.
ValueType tape_type(ElementType element);

}  // namespace eddy
