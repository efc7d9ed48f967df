// Softmax and normalizations. With n the normalized values and m the mean over the axes that are
// normalized, the adjoint of the input is scale * inverse deviation * (g - m(g) - n * m(g * n)),
// without m(g) where no mean is taken off (Ioffe & Szegedy 2015, Ba et al. 2016).
#include "ops/gradient/families.h"
#include "ops/gradient/parts.h"
#include "ops/gradient/term.h"

namespace eddy {
namespace {

// Before opset 13 all axes from `axis` on are one. Empty after fail().
std::vector<int64_t> softmax_axes(GradientContext& c) {
  if (c.opset_version() >= 13) return {c.attributes().get_int("axis", -1)};
  const int rank = c.rank_or_fail(c.input_type(0), "the input");
  if (rank < 0) return {};
  return axes_between(place_of(c.attributes().get_int("axis", 1), rank), rank);
}

Term sum_term(Term value, const std::vector<int64_t>& axes) {
  return {value.context(), sum_over(value.context(), value.value(), axes)};
}
Term mean_term(Term value, const std::vector<int64_t>& axes) {
  return {value.context(), mean_over(value.context(), value.value(), axes)};
}

void softmax_gradient(GradientContext& c) {
  const std::vector<int64_t> axes = softmax_axes(c);
  const Term g{c, c.gradient()}, y{c, c.output()};
  const Term weighted = g * y;
  c.set_gradient(0, (weighted - y * sum_term(weighted, axes)).value());
}

void log_softmax_gradient(GradientContext& c) {
  const std::vector<int64_t> axes = softmax_axes(c);
  const Term g{c, c.gradient()}, y{c, c.output()};
  c.set_gradient(0, (g - apply("Exp", y) * sum_term(g, axes)).value());
}

// What a normalization computed on its way; `shift` and `inverse` stretch over x.
struct Normalized {
  Term values;
  Term inverse;
};

Normalized normalize(Term x, const std::vector<int64_t>& axes, bool takes_mean, double epsilon) {
  const Term centred = takes_mean ? x - mean_term(x, axes) : x;
  const Term deviation = apply("Sqrt", mean_term(centred * centred, axes) + epsilon);
  const Term inverse = apply("Reciprocal", deviation);
  return {centred * inverse, inverse};
}

Term input_adjoint(Term g, const Normalized& n, const std::vector<int64_t>& axes, bool takes_mean) {
  const Term along = n.values * mean_term(g * n.values, axes);
  return n.inverse * (takes_mean ? g - mean_term(g, axes) - along : g - along);
}

bool only_first_output(GradientContext& c) {
  for (size_t o = 1; o < c.num_outputs(); ++o) {
    if (c.gradient(o).is_none()) continue;
    c.fail(unsupported("the gradient of " + c.op_name() + "'s output " + std::to_string(o) +
                       " is not known; use output 0 alone"));
    return false;
  }
  return !c.gradient().is_none();
}

// LayerNormalization, RMSNormalization: scale and B stretch over x from the right.
void layer_gradient(GradientContext& c, bool takes_mean) {
  if (!only_first_output(c)) return;
  const int64_t axis = c.attributes().get_int("axis", -1);
  std::vector<int64_t> axes = axes_between(axis, 0);
  if (axis >= 0) {
    const int rank = c.rank_or_fail(c.input_type(0), "the input");
    if (rank < 0) return;
    axes = axes_between(axis, rank);
  }
  const Term g{c, c.gradient()};
  if (c.wants(0) || c.wants(1)) {
    const double epsilon = static_cast<double>(c.attributes().get_float("epsilon", 1e-5f));
    const Normalized n = normalize({c, c.input(0)}, axes, takes_mean, epsilon);
    if (c.wants(0)) {
      const Term scaled = g * Term(c, c.input(1));
      c.set_gradient(0, input_adjoint(scaled, n, axes, takes_mean).value());
    }
    if (c.wants(1)) c.set_gradient(1, c.sum_to((g * n.values).value(), 1));
  }
  if (c.wants(2)) c.set_gradient(2, c.sum_to(g.value(), 2));
}

void layer_normalization_gradient(GradientContext& c) { layer_gradient(c, true); }
void rms_normalization_gradient(GradientContext& c) { layer_gradient(c, false); }

// Values by channel, axis 1 of x.
class Channels {
 public:
  Channels(GradientContext& c, int rank) : c_(c), rank_(rank) {}

  Term stretched(Value by_channel) const {
    const std::vector<int64_t> axes = axes_between(1, rank_ - 1);
    return {c_, axes.empty() ? by_channel : c_.op("Unsqueeze", {by_channel, c_.int64s(axes)})};
  }
  Value summed(Term value) const {
    std::vector<int64_t> axes = axes_between(2, rank_);
    axes.insert(axes.begin(), 0);
    return c_.op("ReduceSum", {value.value(), c_.int64s(axes)}, {{"keepdims", int64_t{0}}});
  }

 private:
  GradientContext& c_;
  const int rank_;
};

void instance_normalization_gradient(GradientContext& c) {
  const int rank = c.rank_or_fail(c.input_type(0), "the input");
  if (rank < 0) return;
  const Channels channels(c, rank);
  const std::vector<int64_t> axes = axes_between(2, rank);
  const Term g{c, c.gradient()};
  if (c.wants(0) || c.wants(1)) {
    const double epsilon = static_cast<double>(c.attributes().get_float("epsilon", 1e-5f));
    const Normalized n = normalize({c, c.input(0)}, axes, true, epsilon);
    if (c.wants(0)) {
      const Term scaled = g * channels.stretched(c.input(1));
      c.set_gradient(0, input_adjoint(scaled, n, axes, true).value());
    }
    if (c.wants(1)) c.set_gradient(1, channels.summed(g * n.values));
  }
  if (c.wants(2)) c.set_gradient(2, channels.summed(g));
}

// Sums over `size` neighbouring channels of a value [N, C, ...]: a convolution of ones along C of
// its [N, 1, C, rest].
Term neighbours(GradientContext& c, Term value, int64_t size, int64_t before) {
  const Value flat = c.op("Reshape", {value.value(), c.int64s({0, 0, -1})});
  const Value ones = c.op("Expand", {c.number(1), c.int64s({1, 1, size, 1})});
  const Value sums = c.op("Conv", {c.op("Unsqueeze", {flat, c.int64s({1})}), ones},
                          {{"pads", std::vector<int64_t>{before, 0, size - 1 - before, 0}}});
  return {c, reshape_to_input(c, sums, 0)};
}

// y = x s^-beta with s = bias + alpha / size (sum of squares over the window): the way back adds
// over all windows that cover a channel.
void lrn_gradient(GradientContext& c) {
  const auto number = [&](const char* name, float otherwise) {
    return static_cast<double>(c.attributes().get_float(name, otherwise));
  };
  const int64_t size = c.attributes().get_int("size", 1), before = (size - 1) / 2;
  const double alpha = number("alpha", 1e-4f) / static_cast<double>(size);
  const double beta = number("beta", 0.75f);
  const Term g{c, c.gradient()}, x{c, c.input(0)};
  const Term s = neighbours(c, x * x, size, before) * alpha + number("bias", 1);
  const Term scaled = g * apply("Pow", s, s.number(-beta));
  const Term covered = neighbours(c, scaled * x / s, size, size - 1 - before);
  c.set_gradient(0, (scaled - x * covered * (2 * alpha * beta)).value());
}

// What comes back through the running mean and variance, which follow those of the batch: of x,
// and of the running ones before.
void running_gradient(GradientContext& c, const Channels& channels,
                      const std::vector<int64_t>& axes) {
  const double keep = static_cast<double>(c.attributes().get_float("momentum", 0.9f));
  for (const size_t o : {1, 2}) {
    if (c.gradient(o).is_none()) continue;
    const Term g{c, c.gradient(o)};
    if (c.wants(o + 2)) c.set_gradient(o + 2, (g * keep).value());
    if (!c.wants(0)) continue;
    // As a function of x, to be averaged: x itself, or its distance from the mean squared.
    const Term x{c, c.input(0)};
    const Term each = channels.stretched((g * (1 - keep)).value());
    const Term ones{c, zeros_of(c, c.input_shape(0))};
    const Term count{c, sum_over(c, (ones + 1.0).value(), axes)};
    const Term slope = o == 1 ? ones + 1.0 : (x - mean_term(x, axes)) * 2.0;
    c.set_gradient(0, (each * slope / count).value());
  }
}

// With the statistics of the batch; those that are given only shift the running ones.
void train_batch_gradient(GradientContext& c, const Channels& channels, int rank) {
  std::vector<int64_t> axes = axes_between(2, rank);
  axes.insert(axes.begin(), 0);
  running_gradient(c, channels, axes);
  if (c.gradient().is_none()) return;
  const Term g{c, c.gradient()};
  const double epsilon = static_cast<double>(c.attributes().get_float("epsilon", 1e-5f));
  const Normalized n = normalize({c, c.input(0)}, axes, true, epsilon);
  if (c.wants(0)) {
    const Term scaled = g * channels.stretched(c.input(1));
    c.set_gradient(0, input_adjoint(scaled, n, axes, true).value());
  }
  if (c.wants(1)) c.set_gradient(1, channels.summed(g * n.values));
  if (c.wants(2)) c.set_gradient(2, channels.summed(g));
}

void batch_normalization_gradient(GradientContext& c) {
  const int rank = c.rank_or_fail(c.input_type(0), "the input");
  if (rank < 0) return;
  const Channels channels(c, rank);
  if (c.attributes().get_int("training_mode", 0) != 0) {
    return train_batch_gradient(c, channels, rank);
  }
  if (!only_first_output(c)) return;
  const double epsilon = static_cast<double>(c.attributes().get_float("epsilon", 1e-5f));
  const Term g{c, c.gradient()};
  const Term spread{c, c.input(4)};
  const Term inverse = apply("Reciprocal", apply("Sqrt", spread + epsilon));
  const Term scaled = g * channels.stretched((inverse * Term(c, c.input(1))).value());
  if (c.wants(0)) c.set_gradient(0, scaled.value());
  const Term centred = Term(c, c.input(0)) - channels.stretched(c.input(3));
  if (c.wants(1)) {
    c.set_gradient(1, channels.summed(g * centred * channels.stretched(inverse.value())));
  }
  if (c.wants(2)) c.set_gradient(2, channels.summed(g));
  if (c.wants(3)) c.set_gradient(3, channels.summed(-scaled));
  if (c.wants(4)) {
    const Term slope = channels.stretched((inverse * inverse * -0.5).value());
    c.set_gradient(4, channels.summed(scaled * centred * slope));
  }
}

}  // namespace

Status add_normalization_gradients(GradientTable& table) {
  const GradientReads y{.outputs = 1};
  const GradientReads x_scale{.inputs = 3, .input_shapes = 2}, none{.input_shapes = 4};
  const GradientReads batch{.inputs = bits({0, 1, 3, 4}), .input_shapes = 1};
  return add_rules(
      table,
      {{.op = "Softmax", .reads = {y}, .build = softmax_gradient},
       {.op = "LogSoftmax", .reads = {y}, .build = log_softmax_gradient},
       {.op = "LayerNormalization",
        .reads = {x_scale, x_scale, none},
        .build = layer_normalization_gradient},
       {.op = "RMSNormalization", .reads = {x_scale, x_scale}, .build = rms_normalization_gradient},
       {.op = "InstanceNormalization",
        .reads = {GradientReads{.inputs = 3}, GradientReads{.inputs = 1}, GradientReads{}},
        .build = instance_normalization_gradient},
       {.op = "LRN",
        .reads = {GradientReads{.inputs = 1, .input_shapes = 1}},
        .build = lrn_gradient},
       {.op = "BatchNormalization",
        .reads = {batch, batch, batch, batch, batch},
        .build = batch_normalization_gradient}});
}

}  // namespace eddy
