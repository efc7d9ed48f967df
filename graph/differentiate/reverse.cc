#include "graph/differentiate/reverse.h"

#include <algorithm>

#include "graph/base/check.h"

namespace eddy {
namespace {

void append(std::vector<Value>& values, const std::vector<Value>& more) {
  values.insert(values.end(), more.begin(), more.end());
}

std::vector<Value> all_of(ValueSpan values) { return {values.begin(), values.end()}; }

}  // namespace

Reverse::Reverse(const Graph& source, const GradientTable& rules, const Activity& activity,
                 const KeptValues& kept, ForwardCopy& forward, GraphBuilder& builder,
                 Options options)
    : source_(source),
      rules_(rules),
      activity_(activity),
      kept_(kept),
      forward_(forward),
      builder_(builder),
      opset_(options.opset),
      exact_(options.exact) {}

void Reverse::run(ValueId loss, Value seed) {
  EDDY_DCHECK(sums_.empty() && activity_.is_active(loss)) << "a loss that nothing leads to";
  tapes_ = forward_.tapes();
  add(loss, seed);
  region(Graph::kRoot);
}

void Reverse::region(RegionId id) {
  const std::vector<NodeId>& nodes = source_.region(id).nodes;
  for (auto at = nodes.rbegin(); at != nodes.rend(); ++at) {
    const NodeId node = *at;
    if (!builder_.status().is_ok()) return;
    if (!activity_.is_active(source_.node(node))) continue;
    Waiting* const waiting_or_null = waiting_or_null_;
    if (source_.node(node).kind == NodeKind::kWhile) waiting_or_null_ = nullptr;
    switch (source_.node(node).kind) {
      case NodeKind::kExec:
        exec(node);
        break;
      case NodeKind::kWhile:
        loop(node);
        break;
      case NodeKind::kCaseOf:
        branch(node);
        break;
    }
    waiting_or_null_ = waiting_or_null;
  }
}

Value Reverse::op(std::string_view name, std::initializer_list<Value> inputs,
                  Attributes attributes) {
  return builder_.op(name, inputs, std::move(attributes),
                     {.name = "grad/" + std::string(name), .opset_version = opset_});
}

Value Reverse::value(ValueId id) {
  const ValueInfo& info = source_.value(id);
  if (info.origin == ValueOrigin::kConstant || is_live(info.region)) return forward_.of(id);
  EDDY_CHECK(kept_.is_derived(id) || popped_.contains({Kept::What::kValue, id.index()}))
      << "'" << info.name << "' was not kept";
  return forward_.of(id);
}

Value Reverse::shape(ValueId id) {
  const ValueInfo& info = source_.value(id);
  if (info.type.is_static_tensor()) return builder_.vector(info.type.tensor.dims.span());
  if (is_live(info.region)) {
    return shape_of(builder_, forward_.of(id), {.name = "grad/Shape", .opset_version = opset_});
  }
  const auto at = popped_.find({Kept::What::kShape, id.index()});
  return at != popped_.end() ? at->second : op("Shape", {value(id)});
}

Value Reverse::handed_on(const Kept& item, RegionId region) {
  EDDY_DCHECK(is_live(region) || popped_.contains(item)) << item.index << " was not handed on";
  return is_live(region) ? forward_.handed_out(item) : popped_.at(item);
}

Value Reverse::row(Value rows, Value place) {
  return op("Gather", {rows, place}, {{"axis", int64_t{0}}});
}

// What is added has the shape of the value: what its own type doesn't say of that is said here, so
// that everything that follows is planned for it.
Value Reverse::with_shape_of(ValueId id, Value gradient) {
  if (!builder_.status().is_ok()) return gradient;
  const ValueType &own = source_.value(id).type, &found = builder_.type(gradient);
  if (!own.is_tensor() || !own.tensor.is_ranked || !found.is_tensor()) return gradient;
  const bool is_ranked = found.tensor.is_ranked;
  if (is_ranked && found.tensor.dims.rank() != own.tensor.dims.rank()) return gradient;
  std::vector<int64_t> dims;  // 0: as it is
  bool says_more = !is_ranked;
  for (int axis = 0; axis < own.tensor.dims.rank(); ++axis) {
    const int64_t dim = own.tensor.dims[axis];
    if (dim == 0) return gradient;
    dims.push_back(std::max<int64_t>(dim, 0));
    says_more |= dim > 0 && is_ranked && found.tensor.dims[axis] < 0;
  }
  return says_more ? op("Reshape", {gradient, builder_.vector(std::span<const int64_t>(dims))})
                   : gradient;
}

void Reverse::add(ValueId id, Value gradient) {
  if (!activity_.is_active(id)) return;
  gradient = with_shape_of(id, gradient);
  Value& sum = sums_[id];
  sum = sum.is_none()
            ? gradient
            : add_adjoints(builder_, sum, gradient, {.name = "grad/Add", .opset_version = opset_});
}

Value Reverse::take_sum(ValueId id) {
  const Value sum = sum_or_zeros(id);
  sums_.erase(id);
  return sum;
}

Value Reverse::take_or_none(ValueId id) {
  const auto at = sums_.find(id);
  if (at == sums_.end()) return {};
  const Value sum = at->second;
  sums_.erase(at);
  return sum;
}

Value Reverse::zeros(ValueId id) {
  const ValueType& type = source_.value(id).type;
  return zero_adjoint(builder_, type, type.is_optional() ? Value{} : shape(id),
                      {.name = "grad/zeros", .opset_version = opset_});
}

Value Reverse::sum_or_zeros(ValueId id) {
  const auto at = sums_.find(id);
  return at != sums_.end() ? at->second : zeros(id);
}

std::vector<Value> Reverse::sums_or_zeros(const std::vector<ValueId>& ids) {
  std::vector<Value> sums;
  for (const ValueId id : ids) sums.push_back(sum_or_zeros(id));
  return sums;
}

void Reverse::exec(NodeId id) {
  const Node& node = source_.node(id);
  const GradientRule* rule =
      rules_.find_or_null(node.op->domain, node.op->name, node.opset_version);
  EDDY_CHECK(rule != nullptr && rule->build != nullptr)
      << source_.path(id) << " hands nothing back and has no expansion";
  GradientContext::Call call{id, rule, activity_.wanted_inputs(node, *rule), {}, opset_};
  bool has_any = false;
  for (const ValueId output : node.outputs) {
    call.gradients.push_back(take_or_none(output));
    has_any |= !call.gradients.back().is_none();
  }
  if (!has_any || std::ranges::count(call.wants, true) == 0) return;
  GradientContext context(source_, builder_, *this, std::move(call));
  rule->build(context);
}

// Sequences of tensors of any rank give tensors of any; their rank is that of the source's value.
Value Reverse::with_rank(Value value, const Kept& item) {
  std::vector<int64_t> dims;  // 0: as it is
  if (item.form == Kept::Form::kRows) dims.push_back(0);
  if (item.what == Kept::What::kShape) {
    dims.push_back(0);
  } else if (item.what == Kept::What::kValue) {
    const TensorType& type = source_.value(ValueId(item.index)).type.tensor;
    const bool has_empty = std::ranges::count(type.dims.span(), 0) > 0;
    if (!type.is_ranked || has_empty) return value;
    for (const int64_t dim : type.dims) dims.push_back(std::max<int64_t>(dim, 0));
  }
  return op("Reshape", {value, builder_.vector(std::span<const int64_t>(dims))});
}

Value Reverse::pop(const Kept& item) {
  EDDY_DCHECK(tapes_.contains(kept_.element(item)))
      << "there is no tape of " << element_type_name(kept_.element(item));
  Value& tape = tapes_.at(kept_.element(item));
  const Value last = builder_.scalar(int64_t{-1});
  const Value value = op("SequenceAt", {tape, last});
  tape = op("SequenceErase", {tape, last});
  return with_rank(value, item);
}

// What is kept of the region, and what is derived from that, stands for the source's values.
void Reverse::take_kept(RegionId region, const Iteration& iteration) {
  live_.erase(region);
  const auto& kept = kept_.of(region);
  EDDY_DCHECK(iteration.rows_or_null == nullptr || iteration.rows_or_null->size() == kept.size())
      << iteration.rows_or_null->size() << " rows of " << kept.size();
  for (size_t i = kept.size(); i-- > 0;) {
    const Kept& item = kept[i];
    const Value value =
        iteration.rows_or_null != nullptr ? (*iteration.rows_or_null)[i] : pop(item);
    popped_[item] = value;
    const bool is_value = item.what == Kept::What::kValue && item.form == Kept::Form::kItself;
    if (is_value) forward_.stand_for(ValueId(item.index), value);
  }
  if (kept_.reads_iteration(region)) {
    forward_.stand_for(source_.region(region).parameters[0], iteration.number);
  }
  forward_.derive(region);
}

Reverse::LoopParts::LoopParts(const LoopView& loop, const Activity& activity) {
  for (size_t k = 0; k < loop.num_forwarded(); ++k) {
    if (!activity.is_active(loop.forwarded()[k])) continue;
    forwarded.push_back(loop.forwarded()[k]);
    received.push_back(loop.received()[k]);
    outputs.push_back(loop.outputs()[k]);
  }
  for (size_t k = 0; k < loop.num_carried(); ++k) {
    if (!activity.is_active(loop.carried()[k])) continue;
    carried.push_back(loop.carried()[k]);
    next.push_back(loop.next()[k]);
    initial.push_back(loop.initial()[k]);
  }
}

Reverse::LoopParts Reverse::begin_loop(NodeId id) {
  const LoopView loop(source_, id);
  LoopParts parts(loop, activity_);
  parts.captures = active_captures(source_, activity_, id);
  parts.tapes = kept_.tapes(loop.node());
  for (const ValueId stacked : loop.stacked()) parts.stacked.push_back(take_or_none(stacked));
  return parts;
}

// One region of a loop. `given` begins with the adjoints of `handed`, then come sums; returned are
// those of `wanted`, then sums. Rows' adjoints are those at `row_place`.
std::vector<Value> Reverse::reverse_region(RegionId id, const LoopParts& parts,
                                           const std::vector<ValueId>& handed,
                                           const std::vector<ValueId>& wanted, ValueSpan given,
                                           const Iteration* kept_or_null, Value row_place) {
  EDDY_DCHECK(given.size() >= handed.size() + parts.captures.size())
      << given.size() << " values for " << handed.size() << " adjoints and "
      << parts.captures.size() << " sums";
  sums_.clear();
  for (size_t k = 0; k < parts.captures.size(); ++k) {
    sums_[parts.captures[k]] = given[handed.size() + k];
  }
  if (kept_or_null != nullptr) take_kept(id, *kept_or_null);
  for (size_t k = 0; k < handed.size(); ++k) add(handed[k], given[k]);
  if (!row_place.is_none()) {
    const LoopView loop(source_, source_.region(id).owner);
    EDDY_DCHECK(parts.stacked.size() == loop.rows().size())
        << parts.stacked.size() << " adjoints of " << loop.rows().size() << " rows";
    for (size_t s = 0; s < parts.stacked.size(); ++s) {
      if (!parts.stacked[s].is_none()) add(loop.rows()[s], row(parts.stacked[s], row_place));
    }
  }
  region(id);
  std::vector<Value> results = sums_or_zeros(wanted);
  append(results, sums_or_zeros(parts.captures));
  return results;
}

// long: what both regions of one loop are given and hand on stands side by side.
void Reverse::loop(NodeId id) {
  if (kept_.policy(id).kind != SavePolicy::Kind::kAll) return loop_again(id);
  const LoopView loop(source_, id);
  const RegionId outer = loop.node().region;
  const LoopParts parts = begin_loop(id);
  const Value trips = handed_on({Kept::What::kTrips, id.index()}, outer);
  const auto rows_of = [&](RegionId region, Kept::Form form) {
    std::vector<Value> rows;
    for (const Kept& item : kept_.of(region)) rows.push_back(handed_on(item.as(form), outer));
    return rows;
  };
  const bool uses_rows = kept_.uses_rows(id);
  std::vector<Value> before_rows, after_rows, last;
  if (uses_rows) {
    before_rows = rows_of(loop.before_id(), Kept::Form::kRows);
    after_rows = rows_of(loop.after_id(), Kept::Form::kRows);
    last = rows_of(loop.before_id(), Kept::Form::kLast);
  }
  // Sequences of loops around could not be differentiated again (README: not yet).
  Waiting waiting = begin_waiting(loop.after_id(), parts, outer == Graph::kRoot);
  WhileOptions options{.name = loop.node().name + "/grad", .trip_limit = trips};
  options.num_scan_outputs = waiting.num_rows();
  options.rebuild_on_widening = true;
  const auto start = [&](ValueId value, Value initial) {
    options.initial.push_back(initial);
    options.carried_types.push_back(adjoint_type(forward_.type_of(value)));
  };
  for (const ValueId output : parts.outputs) start(output, take_sum(output));
  for (const ValueId capture : parts.captures) start(capture, sum_or_zeros(capture));
  append(options.initial, in_order(tapes_, parts.tapes));
  for (const ElementType type : parts.tapes) options.carried_types.push_back(tape_type(type));
  start_sequences(waiting, options);
  EDDY_DCHECK(options.carried_types.size() == options.initial.size())
      << options.carried_types.size() << " types for " << options.initial.size() << " values";
  append(options.initial, last);
  Sums outer_sums = std::move(sums_);
  Tapes outer_tapes = tapes_;
  // Behind the adjoints that a region is given, and its sums: tapes, then what is pushed.
  const auto take_tail = [&](ValueSpan given, const std::vector<ValueId>& handed) {
    const ValueSpan rest = given.subspan(handed.size() + parts.captures.size());
    tapes_ = tapes_of(parts.tapes, rest);
    waiting.sequences = all_of(rest.subspan(parts.tapes.size(), waiting.num_sequences()));
  };
  std::vector<Value> made = builder_.while_loop(
      options,
      [&](Value iteration, ValueSpan given) {
        take_tail(given, parts.forwarded);
        const ValueSpan residuals = given.last(last.size());
        const std::vector<Value> rows(residuals.begin(), residuals.end());
        Iteration kept{uses_rows ? &rows : nullptr};
        if (kept_.reads_iteration(loop.before_id())) kept.number = op("Sub", {trips, iteration});
        std::vector<Value> results =
            reverse_region(loop.before_id(), parts, parts.forwarded, parts.carried, given, &kept);
        append(results, in_order(tapes_, parts.tapes));
        append(results, waiting.sequences);
        return WhileTest{builder_.scalar(true), results};
      },
      [&](Value iteration, ValueSpan given) {
        take_tail(given, parts.next);
        const Value place = op("Sub", {op("Sub", {trips, builder_.scalar(int64_t{1})}), iteration});
        std::vector<Value> rows;
        for (const Value each : after_rows) rows.push_back(row(each, place));
        const Iteration kept{uses_rows ? &rows : nullptr, place};
        std::vector<Value> results = let_wait(waiting, [&] {
          return reverse_region(loop.after_id(), parts, parts.next, parts.received, given, &kept,
                                place);
        });
        append(results, in_order(tapes_, parts.tapes));
        append(results, waiting.sequences);
        for (const Value each : before_rows) results.push_back(row(each, place));
        append_rows(waiting, results);
        return results;
      });
  sums_ = std::move(outer_sums);
  tapes_ = std::move(outer_tapes);
  add_waited(waiting, parts, made);
  if (builder_.status().is_ok()) finish_loop(parts, made);
}

void Reverse::finish_loop(const LoopParts& parts, const std::vector<Value>& made) {
  const size_t num_carried = parts.carried.size();
  EDDY_DCHECK(made.size() >= num_carried + parts.captures.size() + parts.tapes.size())
      << made.size() << " outputs of a reversed loop";
  for (size_t k = 0; k < parts.captures.size(); ++k) {
    sums_[parts.captures[k]] = made[num_carried + k];
  }
  const ValueSpan tail = ValueSpan(made).subspan(num_carried + parts.captures.size());
  for (const auto& [type, tape] : tapes_of(parts.tapes, tail)) tapes_[type] = tape;
  for (size_t k = 0; k < num_carried; ++k) add(parts.initial[k], made[k]);
}

std::vector<Value> Reverse::reverse_branch(RegionId id, LoopView::Values outputs,
                                           const std::vector<Value>& adjoints,
                                           const std::vector<ValueId>& captures,
                                           const std::vector<Value>& sums, const Tapes& tapes) {
  EDDY_DCHECK(outputs.size() == adjoints.size() && captures.size() == sums.size())
      << adjoints.size() << " adjoints of " << outputs.size() << " outputs, " << sums.size()
      << " sums of " << captures.size() << " captures";
  sums_.clear();
  for (size_t k = 0; k < captures.size(); ++k) sums_[captures[k]] = sums[k];
  tapes_ = tapes;
  if (!id.is_none()) take_kept(id, {});
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (!adjoints[o].is_none()) add(outputs[o], adjoints[o]);
  }
  if (!id.is_none()) region(id);
  return sums_or_zeros(captures);
}

void Reverse::branch(NodeId id) {
  const CaseView choice(source_, id);
  const std::set<ElementType> types = kept_.tapes(choice.node());
  std::vector<ValueId> captures = active_captures(source_, activity_, id);
  for (const ValueId passed : choice.pass_through()) {
    if (activity_.is_active(passed) && std::ranges::count(captures, passed) == 0) {
      captures.push_back(passed);
    }
  }
  std::vector<Value> adjoints;
  for (const ValueId output : choice.outputs()) adjoints.push_back(take_or_none(output));
  const std::vector<Value> sums = sums_or_zeros(captures);
  Sums outer_sums = std::move(sums_);
  const Tapes outer_tapes = tapes_;
  CaseOptions options;
  options.name = choice.node().name + "/grad";
  options.selector = value(choice.selector());
  options.default_region = choice.node().default_region;
  Waiting* const waiting_or_null = waiting_or_null_;
  if (waiting_or_null != nullptr && pushed_matrices(id, *waiting_or_null->captures).empty()) {
    waiting_or_null_ = nullptr;
  }
  Waiting nothing{.captures = &captures};
  Waiting& waiting = waiting_or_null_ == nullptr ? nothing : *waiting_or_null_;
  const std::vector<Value> sequences = waiting.sequences;
  const bool is_in_branch = std::exchange(is_in_branch_, true);
  std::vector<CaseBody> bodies;
  const auto add_body = [&](RegionId region, CaseView::Values results) {
    bodies.push_back([&, region, results] {
      waiting.sequences = sequences;
      auto made = reverse_branch(region, results, adjoints, captures, sums, outer_tapes);
      append(made, in_order(tapes_, types));
      append(made, waiting.sequences);
      return made;
    });
  };
  for (size_t b = 0; b < choice.num_branches(); ++b) {
    add_body(choice.node().regions[b], choice.results(b));
  }
  if (choice.has_pass_through() && options.default_region < 0) {
    options.default_region = static_cast<int>(choice.num_branches());
    add_body(RegionId(), choice.pass_through());
  }
  const auto made = builder_.case_of(options, bodies);
  is_in_branch_ = is_in_branch;
  sums_ = std::move(outer_sums);
  tapes_ = outer_tapes;
  if (!builder_.status().is_ok()) return;
  EDDY_DCHECK(made.size() == captures.size() + types.size() + sequences.size())
      << made.size() << " outputs of a reversed branch";
  waiting.sequences = all_of(ValueSpan(made).last(sequences.size()));
  for (size_t k = 0; k < captures.size(); ++k) sums_[captures[k]] = made[k];
  for (const auto& [type, tape] : tapes_of(types, ValueSpan(made).subspan(captures.size()))) {
    tapes_[type] = tape;
  }
}

}  // namespace eddy
