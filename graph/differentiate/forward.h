// ForwardCopy: the source's own nodes in the new graph, with what the way back needs of loops and
// branches beside them.
//
//   while     what is kept of it becomes rows (kept_values.h); or it carries the tapes in addition,
//             and each region pushes at its end. The last iteration number is forwarded, so it is a
//             result
//   case-of   each branch pushes on the tapes and returns them; passing through returns them too
//
// Loops and branches that hand nothing back are copied as they are. Initializers that are to be
// inputs become such. Internal to graph/differentiate. Errors: the builder's.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

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
  ValueType type_of(ValueId id) { return with_builder_symbols(source_.value(id).type); }
  // What loops of the open region hand on beside their own results: trips, rows, last ones.
  Value handed_out(const Kept& item) const { return handed_on_.at(item); }
  Tapes& tapes() { return tapes_; }

 protected:
  Value value(ValueId id) override;
  void loop(NodeId id) override;
  void branch(NodeId id) override;

 private:
  ValueType with_builder_symbols(ValueType type);
  void record_loop(NodeId id);
  void record_case(NodeId id);
  struct Extras;
  void take_outputs(NodeId id, const Extras& extras, const std::vector<Value>& made);
  Value kept_value(const Kept& item);
  std::vector<Value> kept_values(RegionId region);
  void push_kept(RegionId region);
  void push(ElementType element, Value value);

  const Activity& activity_;
  const KeptValues& kept_;
  const std::vector<ValueId>& parameters_;
  std::unordered_map<ValueId, Value> inputs_;  // or constants, by the source's named ones
  std::map<Kept, Value> handed_on_;
  Tapes tapes_;
};

// Those of the types given, in their order; and back.
std::vector<Value> in_order(const Tapes& tapes, const std::set<ElementType>& types);
Tapes tapes_of(const std::set<ElementType>& types, ValueSpan values);
// The type of a tape, whatever it holds.
ValueType tape_type(ElementType element);

}  // namespace eddy
