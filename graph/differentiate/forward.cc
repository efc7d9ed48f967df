#include "graph/differentiate/forward.h"

#include <algorithm>

#include "graph/base/check.h"
#include "graph/ir/control_view.h"

namespace eddy {
namespace {

void append(std::vector<Value>& values, const std::vector<Value>& more) {
  values.insert(values.end(), more.begin(), more.end());
}

}  // namespace

std::vector<Value> in_order(const Tapes& tapes, const std::set<ElementType>& types) {
  std::vector<Value> values;
  for (const ElementType type : types) {
    EDDY_DCHECK(tapes.contains(type)) << "there is no tape of " << element_type_name(type);
    values.push_back(tapes.at(type));
  }
  return values;
}

Tapes tapes_of(const std::set<ElementType>& types, ValueSpan values) {
  EDDY_CHECK(values.size() >= types.size()) << values.size() << " tapes of " << types.size();
  Tapes tapes;
  size_t next = 0;
  for (const ElementType type : types) tapes[type] = values[next++];
  return tapes;
}

ValueType tape_type(ElementType element) { return ValueType::sequence_of(TensorType(element)); }

ForwardCopy::ForwardCopy(const Graph& source, GraphBuilder& builder, const Activity& activity,
                         const KeptValues& kept, const std::vector<ValueId>& parameters)
    : GraphCopier(source, builder), activity_(activity), kept_(kept), parameters_(parameters) {}

void ForwardCopy::run() {
  for (const ValueId id : source_.inputs()) {
    define(id, builder_.input(source_.value(id).name, type_of(id)));
  }
  add_lengths();
  for (const ValueId id : parameters_) {
    inputs_[id] = builder_.input(source_.value(id).name, source_.value(id).type);
  }
  // One constant for each that has a name, so that the result's parameters are whole, too.
  for (uint32_t v = 0; v < source_.num_values(); ++v) {
    const ValueInfo& info = source_.value(ValueId(v));
    const bool is_named = info.origin == ValueOrigin::kConstant && !info.name.empty();
    if (is_named && !inputs_.contains(ValueId(v))) inputs_[ValueId(v)] = value(ValueId(v));
  }
  tapes_ = empty_tapes(kept_.tapes(Graph::kRoot));
  nodes(Graph::kRoot);
  for (size_t i = 0; i < source_.outputs().size(); ++i) {
    builder_.output(source_.output_names()[i], value(source_.outputs()[i]));
  }
}

// What policies name; an input of the source, or one more.
void ForwardCopy::add_lengths() {
  for (uint32_t n = 0; n < source_.num_nodes(); ++n) {
    const std::string& name = kept_.policy(NodeId(n)).every_input;
    if (name.empty() || lengths_.contains(name)) continue;
    for (const ValueId id : source_.inputs()) {
      if (source_.value(id).name == name) lengths_[name] = value(id);
    }
    if (lengths_.contains(name)) continue;
    lengths_[name] = builder_.input(name, tensor_type(ElementType::kInt64, {}));
  }
}

Value ForwardCopy::value(ValueId id) {
  if (!id.is_none() && source_.value(id).origin == ValueOrigin::kConstant) {
    if (const auto at = inputs_.find(id); at != inputs_.end()) return at->second;
  }
  return GraphCopier::value(id);
}

Tapes ForwardCopy::empty_tapes(const std::set<ElementType>& types) {
  Tapes tapes;
  for (const ElementType element : types) {
    tapes[element] = builder_.op("SequenceEmpty", {}, {{"dtype", static_cast<int64_t>(element)}},
                                 {.name = "tape"});
  }
  return tapes;
}

void ForwardCopy::exec(NodeId id) {
  copy_exec(id);
  if (!is_again_ || !builder_.status().is_ok()) return;
  for (const ValueId output : source_.node(id).outputs) {
    if (!output.is_none()) builder_.set_name(GraphCopier::value(output), "");
  }
}

std::vector<NodeId> ForwardCopy::order(RegionId region) {
  return region == only_again_ ? kept_.again(region) : GraphCopier::order(region);
}

std::string ForwardCopy::name_of(NodeId id) {
  return source_.node(id).name + (is_again_ ? "/again" : "");
}

void ForwardCopy::loop(NodeId id) {
  if (!records_ || !activity_.is_active(source_.node(id))) {
    copy_loop(id);
  } else if (kept_.policy(id).kind == SavePolicy::Kind::kAll) {
    record_loop(id);
  } else {
    record_states(id);
  }
}

void ForwardCopy::branch(NodeId id) {
  if (records_ && activity_.is_active(source_.node(id)) && !kept_.tapes(source_.node(id)).empty()) {
    record_case(id);
  } else {
    copy_branch(id, value(source_.node(id).inputs[0]));
  }
}

void ForwardCopy::push(ElementType element, Value value) {
  EDDY_DCHECK(tapes_.contains(element)) << "there is no tape of " << element_type_name(element);
  Value& tape = tapes_.at(element);
  tape = builder_.op("SequenceInsert", {tape, value}, {}, {.name = "push"});
}

Value ForwardCopy::kept_value(const Kept& item) {
  if (item.form != Kept::Form::kItself || item.what == Kept::What::kTrips) return handed_out(item);
  const Value of = value(ValueId(item.index));
  return item.what == Kept::What::kValue ? of : shape_of(builder_, of, {});
}

std::vector<Value> ForwardCopy::kept_values(RegionId region) {
  std::vector<Value> values;
  for (const Kept& item : kept_.of(region)) values.push_back(kept_value(item));
  return values;
}

void ForwardCopy::push_kept(RegionId region) {
  for (const Kept& item : kept_.of(region)) push(kept_.element(item), kept_value(item));
}

// Without the initial values of counters, which follow.
WhileOptions ForwardCopy::options_of(NodeId id, const Extras& extras) {
  const LoopView loop(source_, id);
  WhileOptions options;
  options.name = name_of(id);
  options.trip_limit = value(loop.trip_limit());
  options.initial = values(loop.initial());
  options.carried_types = carried_types(id);
  for (const ElementType type : extras.tapes) options.carried_types.push_back(tape_type(type));
  append(options.initial, in_order(tapes_, extras.tapes));
  options.num_scan_outputs =
      loop.node().num_scan_outputs +
      static_cast<uint32_t>(extras.before_rows.size() + extras.after_rows.size());
  options.rebuild_on_widening = true;
  return options;
}

void ForwardCopy::record_loop(NodeId id) {
  const LoopView loop(source_, id);
  Extras extras;
  if (kept_.uses_rows(id)) {
    extras.before = extras.before_rows = kept_.of(loop.before_id());
    extras.after_rows = kept_.of(loop.after_id());
  } else {
    extras.tapes = kept_.tapes(loop.node());
  }
  const std::set<ElementType>& types = extras.tapes;
  Tapes outer = tapes_;
  const auto made = builder_.while_loop(
      options_of(id, extras),
      [&](Value iteration, ValueSpan carried) {
        define(loop.iteration(), iteration);
        define_all(loop.carried(), carried);
        tapes_ = tapes_of(types, carried.subspan(loop.num_carried()));
        nodes(loop.before_id());
        if (!kept_.uses_rows(id)) push_kept(loop.before_id());
        WhileTest test{value(loop.predicate()), values(loop.forwarded())};
        append(test.forwarded, in_order(tapes_, types));
        if (kept_.uses_rows(id)) append(test.forwarded, kept_values(loop.before_id()));
        test.forwarded.push_back(iteration);
        return test;
      },
      [&](Value iteration, ValueSpan forwarded) {
        define(loop.after_iteration(), iteration);
        define_all(loop.received(), forwarded);
        const ValueSpan rest = forwarded.subspan(loop.num_forwarded());
        EDDY_DCHECK(rest.size() == types.size() + extras.before.size() + 1)
            << rest.size() << " values behind the loop's own";  // tapes, kept, the iteration
        tapes_ = tapes_of(types, rest);
        nodes(loop.after_id());
        if (!kept_.uses_rows(id)) push_kept(loop.after_id());
        std::vector<Value> results = values(loop.next());
        append(results, in_order(tapes_, types));
        append(results, values(loop.rows()));
        if (!kept_.uses_rows(id)) return results;
        results.insert(results.end(), rest.begin(), rest.end() - 1);  // of `before`
        append(results, kept_values(loop.after_id()));
        return results;
      });
  tapes_ = std::move(outer);
  if (builder_.status().is_ok()) take_outputs(id, extras, made);
}

// Forwarded, tapes, counters, last ones of `before`, trips; then rows: the loop's, of `before`, of
// `after`.
void ForwardCopy::take_outputs(NodeId id, const Extras& extras, const std::vector<Value>& made) {
  const LoopView loop(source_, id);
  ValueSpan rest(made);
  const auto take = [&](size_t count) {
    const ValueSpan first = rest.first(count);
    rest = rest.subspan(count);
    return first;
  };
  const auto hand_on = [&](const std::vector<Kept>& items, Kept::Form form) {
    const ValueSpan values = take(items.size());
    for (size_t i = 0; i < items.size(); ++i) handed_on_[items[i].as(form)] = values[i];
  };
  define_all(loop.outputs(), take(loop.num_forwarded()));
  for (const auto& [type, tape] : tapes_of(extras.tapes, take(extras.tapes.size()))) {
    tapes_[type] = tape;
  }
  take(extras.num_counters);
  hand_on(extras.before, Kept::Form::kLast);
  handed_on_[{Kept::What::kTrips, id.index()}] = take(1)[0];
  define_all(loop.stacked(), take(loop.stacked().size()));
  hand_on(extras.before_rows, Kept::Form::kRows);
  hand_on(extras.after_rows, Kept::Form::kRows);
  EDDY_DCHECK(rest.empty()) << rest.size() << " outputs of " << loop.node().name << " are left";
}

void ForwardCopy::record_case(NodeId id) {
  const CaseView choice(source_, id);
  const std::set<ElementType> types = kept_.tapes(choice.node());
  const auto with_tapes = [&](std::vector<Value> results) {
    for (const Value tape : in_order(tapes_, types)) results.push_back(tape);
    return results;
  };
  CaseOptions options;
  options.name = choice.node().name;
  options.selector = value(choice.selector());
  options.default_region = choice.node().default_region;
  if (choice.has_pass_through()) options.pass_through = with_tapes(values(choice.pass_through()));
  const Tapes outer = tapes_;
  std::vector<CaseBody> bodies;
  for (size_t branch = 0; branch < choice.num_branches(); ++branch) {
    bodies.push_back([this, branch, &choice, &outer, &with_tapes] {
      tapes_ = outer;
      nodes(choice.node().regions[branch]);
      push_kept(choice.node().regions[branch]);
      return with_tapes(values(choice.results(branch)));
    });
  }
  const auto made = builder_.case_of(options, bodies);
  tapes_ = outer;
  if (!builder_.status().is_ok()) return;
  define_all(choice.outputs(), made);
  const ValueSpan tail = ValueSpan(made).subspan(choice.outputs().size());
  EDDY_DCHECK(tail.size() == types.size()) << tail.size() << " tapes of " << types.size();
  for (const auto& [type, tape] : tapes_of(types, tail)) tapes_[type] = tape;
}

}  // namespace eddy
