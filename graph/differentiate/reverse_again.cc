// The part of Reverse about loops whose iterations are made again.
#include <algorithm>

#include "graph/base/check.h"
#include "graph/differentiate/reverse.h"

namespace eddy {
namespace {

void append(std::vector<Value>& values, const std::vector<Value>& more) {
  values.insert(values.end(), more.begin(), more.end());
}

std::vector<Value> all_of(ValueSpan values) { return {values.begin(), values.end()}; }

}  // namespace

// The carried values and numbers of one iteration, for what makes it again.
void Reverse::stand_for_state(const LoopView& loop, const std::vector<Value>& states,
                              Value number) {
  const std::vector<Kept>& items = kept_.state(source_.region(loop.before_id()).owner);
  EDDY_DCHECK(states.size() == items.size()) << states.size() << " of " << items.size() << " kept";
  for (size_t i = 0; i < items.size(); ++i) {
    forward_.stand_for(ValueId(items[i].index), states[i]);
  }
  forward_.stand_for(loop.iteration(), number);
  forward_.stand_for(loop.after_iteration(), number);
}

// `before`, for the last time it ran; what loops inside keep is on tapes of its own.
void Reverse::make_last_again(const LoopView& loop, const std::vector<Value>& states, Value trips) {
  stand_for_state(loop, states, trips);
  Tapes outer = forward_.tapes();
  forward_.tapes() = forward_.empty_tapes(kept_.tapes(loop.before_id()));
  forward_.make_again(loop.before_id());
  forward_.derive(loop.before_id());
  tapes_ = forward_.tapes();
  forward_.tapes() = std::move(outer);
  live_.insert(loop.before_id());
}

// What `before` forwards is what `after` receives.
void Reverse::hand_over(const LoopView& loop) {
  EDDY_DCHECK(loop.received().size() >= loop.num_forwarded()) << "a value that nothing receives";
  for (size_t k = 0; k < loop.num_forwarded(); ++k) {
    forward_.stand_for(loop.received()[k], forward_.of(loop.forwarded()[k]));
  }
}

std::vector<Value> Reverse::pop_states(NodeId id) {
  const std::vector<Kept>& items = kept_.state(id);
  std::vector<Value> states(items.size());
  for (size_t i = items.size(); i-- > 0;) states[i] = pop(items[i]);
  return states;
}

// `after`, then `before`, of one iteration: adjoints of next values and sums become adjoints of
// carried ones and sums.
std::vector<Value> Reverse::reverse_iteration(const LoopView& loop, const LoopParts& parts,
                                              ValueSpan given, Value place,
                                              const Iteration* after_or_null,
                                              const Iteration* before_or_null) {
  const std::vector<Value> between = reverse_region(loop.after_id(), parts, parts.next,
                                                    parts.received, given, after_or_null, place);
  return reverse_region(loop.before_id(), parts, parts.forwarded, parts.carried, between,
                        before_or_null);
}

void Reverse::start_adjoints(const LoopParts& parts, ValueSpan adjoints, WhileOptions& options) {
  EDDY_DCHECK(adjoints.size() == parts.carried.size() + parts.captures.size())
      << adjoints.size() << " adjoints of a loop";
  options.initial.insert(options.initial.end(), adjoints.begin(), adjoints.end());
  for (const ValueId value : parts.carried) {
    options.carried_types.push_back(forward_.type_of(value));
  }
  for (const ValueId value : parts.captures) {
    options.carried_types.push_back(forward_.type_of(value));
  }
}

void Reverse::loop_again(NodeId id) {
  const LoopView loop(source_, id);
  const RegionId outer = loop.node().region;
  const LoopParts parts = begin_loop(id);
  const Value trips = handed_on({Kept::What::kTrips, id.index()}, outer);
  std::vector<Value> last;
  for (const Kept& item : kept_.state(id)) {
    last.push_back(handed_on(item.as(Kept::Form::kLast), outer));
  }
  std::vector<Value> adjoints;
  for (const ValueId output : parts.outputs) adjoints.push_back(take_sum(output));
  append(adjoints, sums_or_zeros(parts.captures));
  Sums outer_sums = std::move(sums_);
  Tapes outer_tapes = tapes_;
  make_last_again(loop, last, trips);
  adjoints =
      reverse_region(loop.before_id(), parts, parts.forwarded, parts.carried, adjoints, nullptr);
  tapes_ = outer_tapes;
  const auto made = kept_.policy(id).has_segments() ? segments(id, parts, adjoints, trips)
                                                    : iterations(id, parts, adjoints, trips);
  sums_ = std::move(outer_sums);
  tapes_ = std::move(outer_tapes);
  if (builder_.status().is_ok()) finish_loop(parts, made);
}

// One by one, each made again in the region that is its reverse.
std::vector<Value> Reverse::iterations(NodeId id, const LoopParts& parts,
                                       std::vector<Value> adjoints, Value trips) {
  const LoopView loop(source_, id);
  std::vector<Value> rows;
  for (const Kept& item : kept_.state(id)) {
    if (!kept_.has_state_rows(id)) break;
    rows.push_back(handed_on(item.as(Kept::Form::kRows), loop.node().region));
  }
  Waiting waiting = begin_waiting(loop.after_id(), parts);
  WhileOptions options{.name = loop.node().name + "/grad",
                       .trip_limit = trips,
                       .num_scan_outputs = waiting.num_rows()};
  options.rebuild_on_widening = true;
  start_adjoints(parts, adjoints, options);
  append(options.initial, in_order(tapes_, parts.tapes));
  for (const ElementType type : parts.tapes) options.carried_types.push_back(tape_type(type));
  std::vector<Value> made = builder_.while_loop(
      options,
      [&](Value, ValueSpan given) {
        return WhileTest{builder_.scalar(true), all_of(given)};
      },
      [&](Value iteration, ValueSpan given) {
        const Value place = op("Sub", {op("Sub", {trips, builder_.scalar(int64_t{1})}), iteration});
        tapes_ = tapes_of(parts.tapes, given.subspan(adjoints.size()));
        std::vector<Value> states;
        for (const Value each : rows) states.push_back(row(each, place));
        if (rows.empty()) states = pop_states(id);
        const std::vector<Value> left = in_order(tapes_, parts.tapes);
        stand_for_state(loop, states, place);
        Tapes outer = forward_.tapes();
        forward_.tapes() = forward_.empty_tapes(kept_.inner_tapes(loop));
        forward_.make_again(loop.before_id());
        hand_over(loop);
        forward_.make_again(loop.after_id());
        tapes_ = forward_.tapes();
        forward_.tapes() = std::move(outer);
        live_.insert(loop.before_id());
        live_.insert(loop.after_id());
        std::vector<Value> results = let_wait(waiting, [&] {
          return reverse_iteration(loop, parts, given, place, nullptr, nullptr);
        });
        append(results, left);
        append_rows(waiting, results);
        return results;
      });
  add_waited(waiting, parts, made);
  return made;
}

// From the last segment to the first: what it ends with is where the one behind it began.
std::vector<Value> Reverse::segments(NodeId id, const LoopParts& parts, std::vector<Value> adjoints,
                                     Value trips) {
  const LoopView loop(source_, id);
  const Kept number{Kept::What::kTrips, id.index()};  // of an iteration
  // Those that grow have a name of their own, by which advice knows that nothing keeps less.
  const bool grows = kept_.policy(id).kind == SavePolicy::Kind::kGrow;
  WhileOptions options{.name = loop.node().name + (grows ? "/growing" : "/segments")};
  options.rebuild_on_widening = true;
  start_adjoints(parts, adjoints, options);
  append(options.initial, in_order(tapes_, parts.tapes));
  for (const ElementType type : parts.tapes) options.carried_types.push_back(tape_type(type));
  options.initial.push_back(trips);
  std::vector<Value> made = builder_.while_loop(
      options,
      [&](Value, ValueSpan given) {
        return WhileTest{op("Greater", {given.back(), builder_.scalar(int64_t{0})}), all_of(given)};
      },
      [&](Value, ValueSpan given) {
        tapes_ = tapes_of(parts.tapes, given.subspan(adjoints.size()));
        const Value start = pop(number);
        const std::vector<Value> states = pop_states(id);
        const std::vector<Value> left = in_order(tapes_, parts.tapes);
        const Value length = op("Sub", {given.back(), start});
        const std::vector<Value> kept = make_segment_again(id, states, start, length);
        std::vector<Value> results;
        if (!builder_.status().is_ok()) return results;
        results = reverse_segment(id, parts, given.first(adjoints.size()), kept, start, length);
        append(results, left);
        results.push_back(start);
        return results;
      });
  if (!made.empty()) made.pop_back();
  return made;
}

std::vector<Value> Reverse::make_segment_again(NodeId id, const std::vector<Value>& states,
                                               Value start, Value length) {
  const LoopView loop(source_, id);
  const std::set<ElementType> types = kept_.inner_tapes(loop);
  const bool uses_rows = kept_.uses_rows(id);
  EDDY_DCHECK(states.size() == kept_.state(id).size()) << states.size() << " values of a state";
  const auto num_states = static_cast<std::ptrdiff_t>(states.size());
  WhileOptions options{
      .name = loop.node().name + "/again", .initial = states, .trip_limit = length};
  options.rebuild_on_widening = true;
  for (const Kept& item : kept_.state(id)) {
    options.carried_types.push_back(forward_.type_of(ValueId(item.index)));
  }
  const Tapes empty = forward_.empty_tapes(types);
  append(options.initial, in_order(empty, types));
  for (const ElementType type : types) options.carried_types.push_back(tape_type(type));
  if (uses_rows) {
    options.num_scan_outputs =
        static_cast<uint32_t>(kept_.of(loop.before_id()).size() + kept_.of(loop.after_id()).size());
  }
  Tapes outer = forward_.tapes();
  const auto made = builder_.while_loop(
      options,
      [&](Value, ValueSpan given) {
        return WhileTest{builder_.scalar(true), all_of(given)};
      },
      [&](Value iteration, ValueSpan given) {
        stand_for_state(loop, all_of(given.first(states.size())), op("Add", {start, iteration}));
        forward_.tapes() = tapes_of(types, given.subspan(states.size()));
        forward_.make_again(loop.before_id());
        if (!uses_rows) forward_.push_kept(loop.before_id());
        hand_over(loop);
        forward_.make_again(loop.after_id());
        if (!uses_rows) forward_.push_kept(loop.after_id());
        std::vector<Value> results;
        for (const Kept& item : kept_.state(id)) {
          const uint32_t k = source_.value(ValueId(item.index)).index - 1;
          results.push_back(forward_.of(loop.next()[k]));
        }
        append(results, in_order(forward_.tapes(), types));
        if (!uses_rows) return results;
        append(results, forward_.kept_values(loop.before_id()));
        append(results, forward_.kept_values(loop.after_id()));
        return results;
      });
  forward_.tapes() = std::move(outer);
  return made.empty() ? made : std::vector<Value>(made.begin() + num_states, made.end());
}

std::vector<Value> Reverse::reverse_segment(NodeId id, const LoopParts& parts, ValueSpan adjoints,
                                            const std::vector<Value>& kept, Value start,
                                            Value length) {
  const LoopView loop(source_, id);
  const std::set<ElementType> types = kept_.inner_tapes(loop);
  const bool uses_rows = kept_.uses_rows(id);
  EDDY_DCHECK(kept.size() >= types.size()) << kept.size() << " values for the tapes";
  const ValueSpan stacked = ValueSpan(kept).subspan(types.size());
  Waiting waiting = begin_waiting(loop.after_id(), parts);
  WhileOptions options{.name = loop.node().name + "/grad",
                       .trip_limit = length,
                       .num_scan_outputs = waiting.num_rows()};
  options.rebuild_on_widening = true;
  start_adjoints(parts, adjoints, options);
  append(options.initial, in_order(tapes_of(types, kept), types));
  for (const ElementType type : types) options.carried_types.push_back(tape_type(type));
  std::vector<Value> made = builder_.while_loop(
      options,
      [&](Value, ValueSpan given) {
        return WhileTest{builder_.scalar(true), all_of(given)};
      },
      [&](Value iteration, ValueSpan given) {
        tapes_ = tapes_of(types, given.subspan(adjoints.size()));
        const Value at = op("Sub", {op("Sub", {length, builder_.scalar(int64_t{1})}), iteration});
        const Value place = op("Add", {start, at});
        std::vector<Value> before_rows, after_rows;
        for (size_t i = 0; i < stacked.size() && uses_rows; ++i) {
          const bool is_of_before = i < kept_.of(loop.before_id()).size();
          (is_of_before ? before_rows : after_rows).push_back(row(stacked[i], at));
        }
        const Iteration before{uses_rows ? &before_rows : nullptr, place};
        const Iteration after{uses_rows ? &after_rows : nullptr, place};
        std::vector<Value> results = let_wait(
            waiting, [&] { return reverse_iteration(loop, parts, given, place, &after, &before); });
        append(results, in_order(tapes_, types));
        append_rows(waiting, results);
        return results;
      });
  if (!builder_.status().is_ok()) return {};
  add_waited(waiting, parts, made);
  made.resize(adjoints.size());
  return made;
}

}  // namespace eddy
