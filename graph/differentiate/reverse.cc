#include "graph/differentiate/reverse.h"

#include <algorithm>

#include "graph/base/check.h"

namespace eddy {
namespace {

void append(std::vector<Value>& values, const std::vector<Value>& more) {
  values.insert(values.end(), more.begin(), more.end());
}

}  // namespace

Reverse::Reverse(const Graph& source, const GradientTable& rules, const Activity& activity,
                 const KeptValues& kept, ForwardCopy& forward, GraphBuilder& builder, int opset)
    : source_(source),
      rules_(rules),
      activity_(activity),
      kept_(kept),
      forward_(forward),
      builder_(builder),
      opset_(opset) {}

void Reverse::run(ValueId loss, Value seed) {
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
  }
}

Value Reverse::op(std::string_view name, std::initializer_list<Value> inputs,
                  Attributes attributes) {
  return builder_.op(name, inputs, std::move(attributes),
                     {.name = "grad/" + std::string(name), .opset_version = opset_});
}

Value Reverse::value(ValueId id) {
  const ValueInfo& info = source_.value(id);
  if (info.origin == ValueOrigin::kConstant || info.region == Graph::kRoot) return forward_.of(id);
  const auto at = popped_.find({Kept::What::kValue, id.index()});
  EDDY_CHECK(at != popped_.end()) << "'" << info.name << "' was not kept";
  return at->second;
}

Value Reverse::shape(ValueId id) {
  const ValueInfo& info = source_.value(id);
  if (info.type.is_static_tensor()) return builder_.vector(info.type.tensor.dims.span());
  if (info.region == Graph::kRoot) return op("Shape", {forward_.of(id)});
  const auto at = popped_.find({Kept::What::kShape, id.index()});
  return at != popped_.end() ? at->second : op("Shape", {value(id)});
}

Value Reverse::handed_on(const Kept& item, RegionId region) {
  return region == Graph::kRoot ? forward_.handed_out(item) : popped_.at(item);
}

Value Reverse::row(Value rows, Value place) {
  return op("Gather", {rows, place}, {{"axis", int64_t{0}}});
}

void Reverse::add(ValueId id, Value gradient) {
  if (!activity_.is_active(id)) return;
  Value& sum = sums_[id];
  sum = sum.is_none() ? gradient : op("Add", {sum, gradient});
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
  return make_zeros(builder_, source_.value(id).type.tensor.element, shape(id),
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

void Reverse::pop_kept(RegionId region) {
  const auto& kept = kept_.of(region);
  for (auto at = kept.rbegin(); at != kept.rend(); ++at) {
    const Kept& item = *at;
    Value& tape = tapes_.at(kept_.element(item));
    const Value last = builder_.scalar(int64_t{-1});
    Value value = op("SequenceAt", {tape, last});
    tape = op("SequenceErase", {tape, last});
    value = with_rank(value, item);
    popped_[item] = value;
  }
}

// The values that the two reversed regions hand to each other.
struct Reverse::LoopParts {
  std::vector<ValueId> forwarded, received, outputs;  // active ones, place by place
  std::vector<ValueId> carried, next, initial;        // active ones, place by place
  std::vector<ValueId> captures;
  std::set<ElementType> tapes;
  bool uses_rows = false;
  std::vector<Value> stacked;  // adjoints of stacked rows; none: nothing came back

  LoopParts(const LoopView& loop, const Activity& activity) {
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
};

// Adjoints of `handed` are the region's first parameters; then sums, then tapes.
void Reverse::open_region(RegionId id, const LoopParts& parts, const std::vector<ValueId>& handed,
                          ValueSpan given) {
  sums_.clear();
  const size_t num_captures = parts.captures.size();
  for (size_t k = 0; k < num_captures; ++k) sums_[parts.captures[k]] = given[handed.size() + k];
  tapes_ = tapes_of(parts.tapes, given.subspan(handed.size() + num_captures));
  if (!parts.uses_rows) pop_kept(id);
  for (size_t k = 0; k < handed.size(); ++k) add(handed[k], given[k]);
}

std::vector<Value> Reverse::close_region(const LoopParts& parts,
                                         const std::vector<ValueId>& handed) {
  std::vector<Value> results = sums_or_zeros(handed);
  append(results, sums_or_zeros(parts.captures));
  append(results, in_order(tapes_, parts.tapes));
  return results;
}

void Reverse::loop(NodeId id) {
  const LoopView loop(source_, id);
  const RegionId outer = loop.node().region;
  LoopParts parts(loop, activity_);
  parts.captures = active_captures(source_, activity_, id);
  parts.uses_rows = kept_.uses_rows(id);
  if (!parts.uses_rows) parts.tapes = kept_.tapes(loop.node());
  for (const ValueId stacked : loop.stacked()) parts.stacked.push_back(take_or_none(stacked));
  const Value trips = handed_on({Kept::What::kTrips, id.index()}, outer);
  const auto rows_of = [&](RegionId region, Kept::Form form) {
    std::vector<Value> rows;
    for (const Kept& item : kept_.of(region)) rows.push_back(handed_on(item.as(form), outer));
    return rows;
  };
  std::vector<Value> before_rows, after_rows, last;
  if (parts.uses_rows) {
    before_rows = rows_of(loop.before_id(), Kept::Form::kRows);
    after_rows = rows_of(loop.after_id(), Kept::Form::kRows);
    last = rows_of(loop.before_id(), Kept::Form::kLast);
  }
  WhileOptions options{.name = loop.node().name + "/grad", .trip_limit = trips};
  options.rebuild_on_widening = true;
  const auto start = [&](ValueId value, Value initial) {
    options.initial.push_back(initial);
    options.carried_types.push_back(forward_.type_of(value));
  };
  for (const ValueId output : parts.outputs) start(output, take_sum(output));
  for (const ValueId capture : parts.captures) start(capture, sum_or_zeros(capture));
  append(options.initial, in_order(tapes_, parts.tapes));
  for (const ElementType type : parts.tapes) options.carried_types.push_back(tape_type(type));
  append(options.initial, last);
  Sums outer_sums = std::move(sums_);
  Tapes outer_tapes = tapes_;
  const auto made = builder_.while_loop(
      options,
      [&](Value, ValueSpan given) {
        const ValueSpan residuals = given.last(last.size());
        for (size_t i = 0; i < last.size(); ++i) {
          popped_[kept_.of(loop.before_id())[i]] = residuals[i];
        }
        open_region(loop.before_id(), parts, parts.forwarded, given);
        region(loop.before_id());
        return WhileTest{builder_.scalar(true), close_region(parts, parts.carried)};
      },
      [&](Value iteration, ValueSpan given) {
        const Value place = op("Sub", {op("Sub", {trips, builder_.scalar(int64_t{1})}), iteration});
        for (size_t i = 0; i < after_rows.size(); ++i) {
          popped_[kept_.of(loop.after_id())[i]] = row(after_rows[i], place);
        }
        open_region(loop.after_id(), parts, parts.next, given);
        for (size_t s = 0; s < parts.stacked.size(); ++s) {
          if (!parts.stacked[s].is_none()) add(loop.rows()[s], row(parts.stacked[s], place));
        }
        region(loop.after_id());
        std::vector<Value> results = close_region(parts, parts.received);
        for (const Value rows : before_rows) results.push_back(row(rows, place));
        return results;
      });
  sums_ = std::move(outer_sums);
  tapes_ = std::move(outer_tapes);
  if (builder_.status().is_ok()) finish_loop(parts, made);
}

void Reverse::finish_loop(const LoopParts& parts, const std::vector<Value>& made) {
  const size_t num_carried = parts.carried.size();
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
  sums_.clear();
  for (size_t k = 0; k < captures.size(); ++k) sums_[captures[k]] = sums[k];
  tapes_ = tapes;
  if (!id.is_none()) pop_kept(id);
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
  std::vector<CaseBody> bodies;
  const auto add_body = [&](RegionId region, CaseView::Values results) {
    bodies.push_back([&, region, results] {
      auto made = reverse_branch(region, results, adjoints, captures, sums, outer_tapes);
      append(made, in_order(tapes_, types));
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
  sums_ = std::move(outer_sums);
  tapes_ = outer_tapes;
  if (!builder_.status().is_ok()) return;
  for (size_t k = 0; k < captures.size(); ++k) sums_[captures[k]] = made[k];
  for (const auto& [type, tape] : tapes_of(types, ValueSpan(made).subspan(captures.size()))) {
    tapes_[type] = tape;
  }
}

}  // namespace eddy
