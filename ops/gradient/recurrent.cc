// RNN. A loop walks the steps from last to first: with a the adjoint of a step's sum before the
// activation, a_t = f'(h_t) (g_t + a_{t+1} R). Its rows give all else by products after the loop.
//
// Cost: one product [batch, hidden] x [hidden, hidden] a step, three products over all steps.
#include "ops/gradient/families.h"
#include "ops/gradient/parts.h"
#include "ops/gradient/term.h"
#include "ops/schema/recurrent_rules.h"

namespace eddy {
namespace {

// False after fail().
bool check_form(GradientContext& c, const RecurrentRules& rules) {
  const auto refuse = [&](const std::string& what, const char* instead) {
    c.fail(unsupported("the gradient of " + c.op_name() + " with " + what + " is not known; " +
                       instead));
    return false;
  };
  if (rules.num_directions != 1) return refuse("two directions", "use one RNN for each");
  if (rules.is_reverse) return refuse("direction=reverse", "reverse X and Y around it");
  if (rules.batch_first) return refuse("layout=1", "use layout=0");
  if (rules.has_clip) return refuse("clip", "leave it out");
  if (c.has_input(4)) return refuse("sequence_lens", "mask the loss instead");
  return true;
}

// f' by the output of f; nullopt after fail().
std::optional<Term> slope_of(GradientContext& c, const Activation& f, Term y) {
  switch (f.kind) {
    case ActivationKind::kTanh:
      return 1.0 - y * y;
    case ActivationKind::kSigmoid:
      return y * (1.0 - y);
    case ActivationKind::kRelu:
      return Term{c, c.cast((y > 0.0).value(), c.element())};
    default:
      c.fail(unsupported("the gradient of " + c.op_name() +
                         " is known with Tanh, Sigmoid and Relu only; use one of them"));
      return std::nullopt;
  }
}

Value without(GradientContext& c, Value value, int64_t axis) {
  return c.op("Squeeze", {value, c.int64s({axis})});
}
Value with(GradientContext& c, Value value, int64_t axis) {
  return c.op("Unsqueeze", {value, c.int64s({axis})});
}
Value transposed(GradientContext& c, Value matrix) {
  return c.op("Transpose", {matrix}, {{"perm", std::vector<int64_t>{1, 0}}});
}
// [steps, batch, n] as [steps * batch, n].
Value rows_of(GradientContext& c, Value value, Value last) {
  return c.op("Reshape", {value, c.op("Concat", {c.int64s({-1}), last}, {{"axis", int64_t{0}}})});
}

struct Walk {
  Value sums;     // a_t, [steps, batch, hidden]
  Value initial;  // of h before the first step, [batch, hidden]
};

// `g` and `slope` are [steps, batch, hidden], `last` [batch, hidden], `weights` R as a matrix.
Walk walk_back(GradientContext& c, Value g, Value slope, Value last, Value weights) {
  const Value steps = without(c, c.op("Shape", {g}, {{"end", int64_t{1}}}), 0);
  const Value newest = c.op("Sub", {steps, c.number(ElementType::kInt64, 1)});
  const Value always = c.cast(c.number(ElementType::kInt64, 1), ElementType::kBool);
  const std::vector<Value> made = c.while_loop(
      {.name = "steps", .initial = {last}, .trip_limit = steps, .num_scan_outputs = 1},
      [&](Value, ValueSpan carried) {
        return WhileTest{always, {carried[0]}};
      },
      [&](Value iteration, ValueSpan forwarded) {
        const Value t = c.op("Sub", {newest, iteration});
        const Value sum = c.op("Add", {c.op("Gather", {g, t}), forwarded[0]});
        const Value a = c.op("Mul", {sum, c.op("Gather", {slope, t})});
        return std::vector<Value>{c.op("MatMul", {a, weights}), a};
      });
  if (made.size() < 2) return {};
  const Value reversed = c.op(
      "Slice", {made[1], c.int64s({-1}), c.int64s({INT64_MIN}), c.int64s({0}), c.int64s({-1})});
  return {reversed, made[0]};
}

void rnn_gradient(GradientContext& c) {
  RecurrentRules rules;
  if (Status status = parse_recurrent(RecurrentKind::kRnn, c.attributes(), rules);
      !status.is_ok()) {
    return c.fail(std::move(status));
  }
  if (!check_form(c, rules)) return;
  const Value y = without(c, c.output(0), 1);
  const auto slope = slope_of(c, rules.activations[0][0], {c, y});
  if (!slope) return;
  const Value zeros = c.op("Mul", {y, c.number(0)});
  const Value g = c.gradient(0).is_none() ? zeros : without(c, c.gradient(0), 1);
  const Value weights = without(c, c.input(2), 0);
  const Value none = c.op("Expand", {c.number(0), c.op("Shape", {y}, {{"start", int64_t{1}}})});
  const Value last =
      c.num_outputs() < 2 || c.gradient(1).is_none() ? none : without(c, c.gradient(1), 0);
  const Walk walk = walk_back(c, g, slope->value(), last, weights);
  if (walk.sums.is_none()) return;
  const Value hidden = c.op("Shape", {y}, {{"start", int64_t{2}}});
  const Value sums = rows_of(c, walk.sums, hidden);
  if (c.wants(0)) {
    c.set_gradient(0, c.op("MatMul", {walk.sums, without(c, c.input(1), 0)}));
  }
  if (c.wants(1)) {
    const Value size = c.op("Shape", {c.input(0)}, {{"start", int64_t{2}}});
    const Value product = c.op("MatMul", {transposed(c, sums), rows_of(c, c.input(0), size)});
    c.set_gradient(1, with(c, product, 0));
  }
  if (c.wants(2)) {
    const Value first = c.has_input(5) ? c.input(5) : with(c, none, 0);
    const Value before = c.op("Slice", {y, c.int64s({0}), c.int64s({-1}), c.int64s({0})});
    const Value all = c.op("Concat", {first, before}, {{"axis", int64_t{0}}});
    const Value product = c.op("MatMul", {transposed(c, sums), rows_of(c, all, hidden)});
    c.set_gradient(2, with(c, product, 0));
  }
  if (c.wants(3)) {
    const Value each = sum_over(c, sums, {0});
    c.set_gradient(3, c.op("Concat", {each, each}, {{"axis", int64_t{1}}}));
  }
  if (c.wants(5)) c.set_gradient(5, with(c, walk.initial, 0));
}

}  // namespace

Status add_recurrent_gradients(GradientTable& table) {
  const GradientReads reads{.inputs = bits({0, 1, 2, 5}), .outputs = 1};
  return add_rules(table, {{.op = "RNN",
                            .reads = {reads, reads, reads, reads, kNothingBack, reads},
                            .build = rnn_gradient}});
}

}  // namespace eddy
