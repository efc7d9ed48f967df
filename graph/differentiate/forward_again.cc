// The part of ForwardCopy about loops whose iterations are made again: what they hand on, and how
// the way back gets nodes once more.
#include <utility>

#include "graph/base/check.h"
#include "graph/differentiate/forward.h"
#include "graph/ir/control_view.h"

namespace eddy {

void ForwardCopy::nodes_unrecorded(RegionId region) {
  const bool outer = std::exchange(records_, false);
  nodes(region);
  records_ = outer;
}

void ForwardCopy::make_again(RegionId region) {
  const RegionId outer_region = std::exchange(only_again_, region);
  const bool outer = std::exchange(is_again_, true);
  nodes(region);
  is_again_ = outer;
  only_again_ = outer_region;
}

void ForwardCopy::derive(RegionId region) {
  const bool outer = std::exchange(is_again_, true);
  for (const NodeId id : kept_.derived(region)) exec(id);
  is_again_ = outer;
}

// Counters: the iteration in which the next segment begins; for segments that grow, how long that
// one will be.
void ForwardCopy::record_states(NodeId id) {
  const LoopView loop(source_, id);
  Extras extras;
  extras.tapes = kept_.tapes(loop.node());
  extras.before = kept_.state(id);
  const SavePolicy& policy = kept_.policy(id);
  if (policy.has_segments()) {
    extras.num_counters = policy.kind == SavePolicy::Kind::kGrow ? 2 : 1;
  } else if (kept_.has_state_rows(id)) {
    extras.before_rows = extras.before;
  }
  const std::set<ElementType>& types = extras.tapes;
  WhileOptions options = options_of(id, extras);
  for (size_t k = 0; k < extras.num_counters; ++k) {
    options.initial.push_back(builder_.scalar(static_cast<int64_t>(k)));  // from 0 on; 1 long
  }
  Tapes outer = tapes_;
  const auto made = builder_.while_loop(
      options,
      [&](Value iteration, ValueSpan carried) {
        define(loop.iteration(), iteration);
        define_all(loop.carried(), carried);
        nodes_unrecorded(loop.before_id());
        WhileTest test{value(loop.predicate()), values(loop.forwarded())};
        const ValueSpan extra = carried.subspan(loop.num_carried());  // tapes, counters
        test.forwarded.insert(test.forwarded.end(), extra.begin(), extra.end());
        for (const Kept& item : extras.before) {
          test.forwarded.push_back(value(ValueId(item.index)));
        }
        test.forwarded.push_back(iteration);
        return test;
      },
      [&](Value iteration, ValueSpan forwarded) {
        define(loop.after_iteration(), iteration);
        define_all(loop.received(), forwarded);
        nodes_unrecorded(loop.after_id());
        ValueSpan rest = forwarded.subspan(loop.num_forwarded());
        EDDY_DCHECK(rest.size() == types.size() + extras.num_counters + extras.before.size() + 1)
            << rest.size() << " values behind the loop's own";  // and the iteration
        tapes_ = tapes_of(types, rest);
        const ValueSpan counters = rest.subspan(types.size(), extras.num_counters);
        const ValueSpan states =
            rest.subspan(types.size() + extras.num_counters, extras.before.size());
        std::vector<Value> next_counters;
        if (policy.has_segments()) {
          next_counters = begin_segment(id, extras, iteration, counters, states);
        } else if (extras.before_rows.empty()) {
          push_states(id, states);
        }
        EDDY_DCHECK(next_counters.size() == extras.num_counters)
            << next_counters.size() << " counters of " << extras.num_counters;
        std::vector<Value> results = values(loop.next());
        for (const Value tape : in_order(tapes_, types)) results.push_back(tape);
        results.insert(results.end(), next_counters.begin(), next_counters.end());
        for (const ValueId row : loop.rows()) results.push_back(value(row));
        if (!extras.before_rows.empty())
          results.insert(results.end(), states.begin(), states.end());
        return results;
      });
  tapes_ = std::move(outer);
  if (builder_.status().is_ok()) take_outputs(id, extras, made);
}

void ForwardCopy::push_states(NodeId id, ValueSpan states) {
  const std::vector<Kept>& items = kept_.state(id);
  EDDY_DCHECK(states.size() == items.size()) << states.size() << " of " << items.size() << " kept";
  for (size_t i = 0; i < items.size(); ++i) push(kept_.element(items[i]), states[i]);
}

// Of loops that save every K-th state.
Value ForwardCopy::segment_length(const SavePolicy& policy) {
  EDDY_DCHECK(policy.kind == SavePolicy::Kind::kEvery) << "no length is said";
  if (policy.every_input.empty()) return builder_.scalar(policy.every);
  return builder_.op("Max", {lengths_.at(policy.every_input), builder_.scalar(int64_t{1})});
}

// Pushes the state, and where it is of, if a segment begins with this iteration. Returns counters.
std::vector<Value> ForwardCopy::begin_segment(NodeId id, const Extras& extras, Value iteration,
                                              ValueSpan counters, ValueSpan states) {
  const SavePolicy& policy = kept_.policy(id);
  EDDY_DCHECK(counters.size() == (policy.kind == SavePolicy::Kind::kGrow ? 2u : 1u))
      << counters.size() << " counters of " << to_string(policy);
  const Tapes before = tapes_;
  CaseOptions options;
  options.name = source_.node(id).name + "/save";
  options.selector = builder_.op("Not", {builder_.op("Equal", {iteration, counters[0]})});
  options.pass_through = in_order(tapes_, extras.tapes);
  options.pass_through.insert(options.pass_through.end(), counters.begin(), counters.end());
  const CaseBody begin = [&] {
    tapes_ = before;
    push_states(id, states);
    push(ElementType::kInt64, iteration);
    std::vector<Value> results = in_order(tapes_, extras.tapes);
    const bool grows = policy.kind == SavePolicy::Kind::kGrow;
    const Value length = grows ? counters[1] : segment_length(policy);
    results.push_back(builder_.op("Add", {counters[0], length}));
    if (grows) results.push_back(builder_.op("Add", {length, builder_.scalar(int64_t{1})}));
    return results;
  };
  const std::vector<Value> made = builder_.case_of(options, std::span(&begin, 1));
  tapes_ = before;
  if (!builder_.status().is_ok()) return {counters.begin(), counters.end()};
  tapes_ = tapes_of(extras.tapes, made);
  return {made.begin() + static_cast<std::ptrdiff_t>(extras.tapes.size()), made.end()};
}

}  // namespace eddy
