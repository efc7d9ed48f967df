// LSTM, GRU, RNN: where they hand adjoints back they are a loop over their steps, of standard
// nodes, that is differentiated like any other; elsewhere they stay as they are.
//
//   products of W and all X before the loop; step: h -> R h, gates, h'; rows are Y
//
// Every form is one of this loop: a direction backwards reverses time before and after it (by
// ReverseSequence where lengths are given), and a step beyond an item's length keeps its state and
// gives zeros. Source: ONNX operators LSTM, GRU, RNN, opset 7 to 22. Cost: one product [batch,
// hidden] x [hidden, gates * hidden] a step, forward, and two backward.
#include <algorithm>

#include "graph/base/check.h"
#include "graph/ir/expansion.h"
#include "ops/gradient/families.h"
#include "ops/gradient/parts.h"
#include "ops/schema/products/recurrent_rules.h"

namespace eddy {
namespace {

struct Step {
  Value h, c;  // c: of LSTM only
};

class Recurrent {
 public:
  Recurrent(GraphBuilder& builder, const Node& call, ValueSpan inputs, const RecurrentRules& rules)
      : b_(builder), call_(call), inputs_(inputs.begin(), inputs.end()), rules_(rules) {
    EDDY_DCHECK(inputs.size() > 2 && inputs.size() <= 8) << inputs.size() << " inputs";
    inputs_.resize(8);  // those left out are none
    element_ = b_.type(inputs_[0]).tensor.element;
  }

  // Y, Y_h, and of LSTM Y_c.
  std::vector<Value> build() {
    x_ = rules_.batch_first ? transpose(inputs_[0], {1, 0, 2}) : inputs_[0];
    steps_ = op("Squeeze", {sizes(x_, 0, 1), b_.int64s({0})});
    zeros_ = op("Expand", {number(0), state_shape()});
    std::vector<Value> y, h, c;
    for (int d = 0; d < rules_.num_directions; ++d) {
      direction_ = d;
      const std::vector<Value> made = direction();
      if (made.empty()) return {};
      EDDY_DCHECK(made.size() == (is_lstm() ? 3 : 2)) << made.size() << " results of a direction";
      y.push_back(op("Unsqueeze", {made.back(), b_.int64s({1})}));
      h.push_back(op("Unsqueeze", {made[0], b_.int64s({0})}));
      if (is_lstm()) c.push_back(op("Unsqueeze", {made[1], b_.int64s({0})}));
    }
    const auto state = [&](const std::vector<Value>& parts) {
      const Value all = concat(parts, 0);
      return rules_.batch_first ? transpose(all, {1, 0, 2}) : all;
    };
    const Value all = concat(y, 1);
    std::vector<Value> outputs = {rules_.batch_first ? transpose(all, {2, 0, 1, 3}) : all,
                                  state(h)};
    if (is_lstm()) outputs.push_back(state(c));
    return outputs;
  }

 private:
  bool is_lstm() const { return rules_.kind == RecurrentKind::kLstm; }
  bool has(size_t i) const { return !inputs_[i].is_none(); }

  Value op(std::string_view name, std::span<const Value> inputs, Attributes attributes = {}) {
    return b_.op(name, inputs, std::move(attributes), options(name, 1));
  }
  Value op(std::string_view name, std::initializer_list<Value> inputs, Attributes attributes = {}) {
    return op(name, std::span(inputs.begin(), inputs.size()), std::move(attributes));
  }
  OpOptions options(std::string_view name, int num_outputs) const {
    return {.name = call_.name + "/" + std::string(name),
            .opset_version = std::max(call_.opset_version, Expansion::kOldestInner),
            .num_outputs = num_outputs,
            .device = call_.device};
  }
  Value number(double value) {
    if (element_ == ElementType::kDouble) return b_.scalar(value);
    const Value single = b_.scalar(static_cast<float>(value));
    if (element_ == ElementType::kFloat) return single;
    return op("Cast", {single}, {{"to", static_cast<int64_t>(element_)}});
  }
  Value transpose(Value value, std::vector<int64_t> perm) {
    return op("Transpose", {value}, {{"perm", std::move(perm)}});
  }
  Value concat(const std::vector<Value>& values, int64_t axis) {
    return values.size() == 1 ? values[0] : op("Concat", values, {{"axis", axis}});
  }
  // Sizes that types tell are constants, so that states have fixed shapes and are kept as rows.
  Value sizes(Value value, int begin, int end) {
    const TensorType& type = b_.type(value).tensor;
    std::vector<int64_t> known;
    for (int axis = begin; type.is_ranked && axis < std::min(end, type.dims.rank()); ++axis) {
      if (type.dims[axis] >= 0) known.push_back(type.dims[axis]);
    }
    if (std::ssize(known) == end - begin) return b_.vector(std::span<const int64_t>(known));
    return op("Shape", {value}, {{"start", int64_t{begin}}, {"end", int64_t{end}}});
  }
  Value state_shape() {
    const Dims& batch = b_.type(x_).tensor.dims;
    const Dims& hidden = b_.type(inputs_[2]).tensor.dims;
    if (batch.rank() == 3 && hidden.rank() == 3 && batch[1] >= 0 && hidden[2] >= 0) {
      return b_.int64s({batch[1], hidden[2]});
    }
    return concat({sizes(x_, 1, 2), sizes(inputs_[2], 2, 3)}, 0);
  }
  Value add(Value a, Value b) { return a.is_none() ? b : b.is_none() ? a : op("Add", {a, b}); }

  // Of this direction, without that axis.
  Value of_direction(size_t input, int64_t axis = 0) {
    if (!has(input)) return {};
    const Value place = b_.scalar(static_cast<int64_t>(direction_));
    return op("Gather", {inputs_[input], place}, {{"axis", axis}});
  }
  Value initial(size_t input) {
    return has(input) ? of_direction(input, rules_.batch_first ? 1 : 0) : zeros_;
  }
  // Equal parts along the last axis.
  std::vector<Value> split(Value value, int count) {
    if (value.is_none()) return std::vector<Value>(static_cast<size_t>(count));
    if (count == 1) return {value};
    const Attributes attributes = {{"axis", int64_t{-1}},
                                   {"num_outputs", static_cast<int64_t>(count)}};
    return b_.ops("Split", std::span(&value, 1), attributes, options("Split", count));
  }
  // The steps of axis 0 from last to first, of each item its own.
  Value reversed(Value value) {
    if (!rules_.runs_backwards(direction_)) return value;
    if (!has(4)) {
      return op("Slice",
                {value, b_.int64s({-1}), b_.int64s({INT64_MIN}), b_.int64s({0}), b_.int64s({-1})});
    }
    const Value lengths = op("Cast", {inputs_[4]}, {{"to", int64_t{7}}});  // int64
    const Value some = op("Max", {lengths, b_.scalar(int64_t{1})});
    return op("ReverseSequence", {value, some},
              {{"time_axis", int64_t{0}}, {"batch_axis", int64_t{1}}});
  }

  Value activate(int function, Value x) {
    EDDY_DCHECK(function < num_activations(rules_.kind)) << "activation " << function;
    const Activation& f =
        rules_.activations[static_cast<size_t>(direction_)][static_cast<size_t>(function)];
    const AttributeValue alpha = f.alpha, beta = f.beta;
    const auto scaled = [&](Value value, double by) { return op("Mul", {value, number(by)}); };
    switch (f.kind) {
      case ActivationKind::kSigmoid:
        return op("Sigmoid", {x});
      case ActivationKind::kTanh:
        return op("Tanh", {x});
      case ActivationKind::kRelu:
        return op("Relu", {x});
      case ActivationKind::kAffine:
        return op("Add", {scaled(x, f.alpha), number(f.beta)});
      case ActivationKind::kLeakyRelu:
        return op("LeakyRelu", {x}, {{"alpha", alpha}});
      case ActivationKind::kThresholdedRelu:
        return op("ThresholdedRelu", {x}, {{"alpha", alpha}});
      case ActivationKind::kScaledTanh:
        return scaled(op("Tanh", {scaled(x, f.beta)}), f.alpha);
      case ActivationKind::kHardSigmoid:
        return op("HardSigmoid", {x}, {{"alpha", alpha}, {"beta", beta}});
      case ActivationKind::kElu:
        return op("Elu", {x}, {{"alpha", alpha}});
      case ActivationKind::kSoftsign:
        return op("Softsign", {x});
      case ActivationKind::kSoftplus:
        return op("Softplus", {x});
    }
    return x;
  }
  Value gate(int function, Value x) {
    if (rules_.has_clip) {
      const double bound = static_cast<double>(rules_.clip);
      x = op("Clip", {x, number(-bound), number(bound)});
    }
    return activate(function, x);
  }

  // The last states, and Y as [steps, batch, hidden]; empty after an error.
  std::vector<Value> direction() {
    const int gates = num_gates(rules_.kind);
    const Value weights = transpose(of_direction(1), {1, 0});
    recurrent_ = split(transpose(of_direction(2), {1, 0}), is_gru() ? gates : 1);
    const std::vector<Value> biases = split(of_direction(3), 2);
    recurrent_bias_ = split(biases[1], gates);
    peepholes_ = split(of_direction(7), 3);
    Value bias = biases[0];
    if (!biases[1].is_none() && !is_linear_gru()) bias = add(bias, biases[1]);
    const Value products = reversed(add(op("MatMul", {x_, weights}), bias));
    const Value lengths =
        has(4) ? op("Cast", {inputs_[4]}, {{"to", int64_t{7}}}) : Value{};  // int64
    if (!b_.status().is_ok()) return {};
    WhileOptions options{.name = call_.name + "/steps", .trip_limit = steps_};
    options.initial = {initial(5)};
    if (is_lstm()) options.initial.push_back(initial(6));
    options.num_scan_outputs = 1;
    std::vector<Value> made = b_.while_loop(
        options,
        [&](Value, ValueSpan carried) {
          return WhileTest{b_.scalar(true), {carried.begin(), carried.end()}};
        },
        [&](Value place, ValueSpan state) {
          const Step old{state[0], is_lstm() ? state[1] : Value{}};
          Step next = step(op("Gather", {products, place}), old);
          Value row = next.h;
          if (!lengths.is_none()) {
            const Value inside = op("Unsqueeze", {op("Less", {place, lengths}), b_.int64s({1})});
            row = op("Where", {inside, next.h, number(0)});
            next.h = op("Where", {inside, next.h, old.h});
            if (is_lstm()) next.c = op("Where", {inside, next.c, old.c});
          }
          if (is_lstm()) return std::vector<Value>{next.h, next.c, row};
          return std::vector<Value>{next.h, row};
        });
    if (made.empty() || !b_.status().is_ok()) return {};
    made.back() = reversed(made.back());
    return made;
  }
  bool is_gru() const { return rules_.kind == RecurrentKind::kGru; }
  bool is_linear_gru() const { return is_gru() && rules_.linear_before_reset; }

  Step step(Value x, const Step& old) {
    if (is_gru()) return {gru(split(x, 3), old.h), {}};
    const Value sums = op("Add", {x, op("MatMul", {old.h, recurrent_[0]})});
    if (is_lstm()) return lstm(split(sums, 4), old);
    return {gate(0, sums), {}};
  }

  // Gates i, o, f, c; peepholes i, o, f. That of o looks at the new cell.
  Step lstm(const std::vector<Value>& sums, const Step& old) {
    const auto seen = [&](Value sum, size_t peephole, Value cell) {
      if (peepholes_[peephole].is_none()) return sum;
      return op("Add", {sum, op("Mul", {peepholes_[peephole], cell})});
    };
    const Value input = gate(0, seen(sums[0], 0, old.c));
    const Value forget =
        rules_.input_forget ? op("Sub", {number(1), input}) : gate(0, seen(sums[2], 2, old.c));
    const Value fresh = op("Mul", {input, gate(1, sums[3])});
    const Value cell = op("Add", {op("Mul", {forget, old.c}), fresh});
    const Value output = gate(0, seen(sums[1], 1, cell));
    return {op("Mul", {output, activate(2, cell)}), cell};
  }

  // Gates z, r, h.
  Value gru(const std::vector<Value>& x, Value h) {
    const auto product = [&](Value state, size_t k) {
      const Value made = op("MatMul", {state, recurrent_[k]});
      return is_linear_gru() ? add(made, recurrent_bias_[k]) : made;
    };
    const Value z = gate(0, op("Add", {x[0], product(h, 0)}));
    const Value reset = gate(0, op("Add", {x[1], product(h, 1)}));
    const Value state =
        is_linear_gru() ? op("Mul", {reset, product(h, 2)}) : product(op("Mul", {reset, h}), 2);
    const Value candidate = gate(1, op("Add", {x[2], state}));
    return op("Add", {op("Mul", {op("Sub", {number(1), z}), candidate}), op("Mul", {z, h})});
  }

  GraphBuilder& b_;
  const Node& call_;
  std::vector<Value> inputs_;  // X, W, R, B, sequence_lens, initial_h, initial_c, P
  const RecurrentRules& rules_;
  ElementType element_;
  Value x_, steps_, zeros_;
  // Of the direction that is built.
  int direction_ = 0;
  std::vector<Value> recurrent_, recurrent_bias_, peepholes_;
};

template <RecurrentKind kKind>
std::vector<Value> expand(GraphBuilder& builder, const Node& call, ValueSpan inputs) {
  RecurrentRules rules;
  if (Status status = parse_recurrent(kKind, call.attributes, rules); !status.is_ok()) {
    builder.fail(std::move(status.prepend_path(call.name)));
    return {};
  }
  return Recurrent(builder, call, inputs, rules).build();
}

}  // namespace

Status add_recurrent_gradients(GradientTable& table) {
  const Reads back = GradientReads{};
  const std::vector<Reads> reads = {back, back, back, back, kNothingBack, back, back, back};
  return add_rules(table, {{.op = "RNN", .reads = reads, .expand = expand<RecurrentKind::kRnn>},
                           {.op = "GRU", .reads = reads, .expand = expand<RecurrentKind::kGru>},
                           {.op = "LSTM", .reads = reads, .expand = expand<RecurrentKind::kLstm>}});
}

}  // namespace eddy
