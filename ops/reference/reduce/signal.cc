// DFT, STFT and MelWeightMatrix: each bin is the sum that defines it, in double.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <string>
#include <vector>

#include "ops/reference/families.h"
#include "ops/reference/parts/axes.h"
#include "ops/reference/parts/number.h"
#include "ops/schema/rules/index_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using Complex = std::complex<double>;

struct SignalState : KernelState {
  bool is_inverse = false, is_onesided = false;
  bool has_axis_input = false;
  int64_t axis = 1;
};

double number_at(const TensorView& view, int64_t i) { return load_number(view, i).to_double(); }
void set_number(const TensorView& view, int64_t i, double value) {
  store_number(view, i, Number::of_double(value));
}

// e^(-+ 2 pi i k / n) for every k.
std::vector<Complex> roots(int64_t n, bool is_inverse) {
  std::vector<Complex> all(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) {
    const double turn = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
    all[static_cast<size_t>(k)] = {std::cos(turn), is_inverse ? std::sin(turn) : -std::sin(turn)};
  }
  return all;
}

// Bin k of x, whose length is that of `roots`.
Complex bin_of(const std::vector<Complex>& x, const std::vector<Complex>& roots, int64_t k) {
  const auto n = static_cast<int64_t>(roots.size());
  Complex sum = 0;
  int64_t place = 0;  // j * k modulo n
  for (const Complex& value : x) {
    sum += value * roots[static_cast<size_t>(place)];
    place += k;
    if (place >= n) place -= n;
  }
  return sum;
}

// Element (o, j, i) of a tensor seen as [outer, count, inner, parts].
Complex complex_at(const TensorView& view, const AxisSplit& split, int64_t parts, int64_t o,
                   int64_t j, int64_t i) {
  const int64_t at = ((o * split.count + j) * split.inner + i) * parts;
  return {number_at(view, at), parts == 2 ? number_at(view, at + 1) : 0};
}

AxisSplit split_numbers(const TensorView& view, int64_t axis) {
  return split_at_axis(view.shape().first(static_cast<size_t>(view.rank - 1)), axis);
}

// The line of x as long as the transform: cut or filled with zeros, and of half a spectrum the
// other half, which mirrors it.
void read_line(const TensorView& x, const AxisSplit& from, int64_t o, int64_t i, bool is_half,
               std::vector<Complex>& line) {
  const int64_t parts = x.dims[x.rank - 1], n = static_cast<int64_t>(line.size());
  const int64_t given = std::min(from.count, is_half ? n / 2 + 1 : n);
  std::fill(line.begin(), line.end(), Complex(0));
  for (int64_t j = 0; j < given; ++j) {
    line[static_cast<size_t>(j)] = complex_at(x, from, parts, o, j, i);
  }
  for (int64_t j = 1; is_half && 2 * j < n; ++j) {
    line[static_cast<size_t>(n - j)] = std::conj(line[static_cast<size_t>(j)]);
  }
}

bool run_dft(const KernelArgs& args) {
  const auto& state = static_cast<const SignalState&>(*args.state);
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  int64_t axis = state.has_axis_input ? -2 : state.axis;
  if (state.has_axis_input && args.has_input(2)) {
    Status status = read_int(args.inputs[2], "axis", axis);
    if (!status.is_ok()) return args.fail(std::move(status));
  }
  if (axis < 0) axis += x.rank;
  const AxisSplit from = split_numbers(x, axis), to = split_numbers(y, axis);
  const bool gives_real = state.is_inverse && state.is_onesided;
  int64_t n = gives_real ? to.count : from.count;
  if (args.has_input(1)) {
    Status status = read_int(args.inputs[1], "dft_length", n);
    if (!status.is_ok()) return args.fail(std::move(status));
  }
  if (n < 1 || to.outer * to.inner == 0) return true;
  const std::vector<Complex> turns = roots(n, state.is_inverse);
  const double factor = state.is_inverse ? 1 / static_cast<double>(n) : 1;
  std::vector<Complex> line(static_cast<size_t>(n));
  const int64_t parts = gives_real ? 1 : 2;
  for (int64_t o = 0; o < to.outer; ++o) {
    for (int64_t i = 0; i < to.inner; ++i) {
      read_line(x, from, o, i, gives_real, line);
      for (int64_t k = 0; k < to.count; ++k) {
        const Complex bin = bin_of(line, turns, k) * factor;
        const int64_t at = ((o * to.count + k) * to.inner + i) * parts;
        set_number(y, at, bin.real());
        if (!gives_real) set_number(y, at + 1, bin.imag());
      }
    }
  }
  return true;
}

bool run_stft(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  int64_t step = 1, frame = args.has_input(2) ? args.inputs[2].count() : 0;
  Status status = read_int(args.inputs[1], "frame_step", step);
  if (status.is_ok() && args.has_input(3)) {
    status = read_int(args.inputs[3], "frame_length", frame);
  }
  if (!status.is_ok()) return args.fail(std::move(status));
  const int64_t frames = y.dims[1], bins = y.dims[2], parts = x.dims[2];
  if (frame < 1 || y.count() == 0) return true;
  const std::vector<Complex> turns = roots(frame, false);
  const AxisSplit split = split_numbers(x, 1);
  std::vector<Complex> line(static_cast<size_t>(frame));
  for (int64_t b = 0; b < x.dims[0]; ++b) {
    for (int64_t f = 0; f < frames; ++f) {
      for (int64_t j = 0; j < frame; ++j) {
        const double weight = args.has_input(2) ? number_at(args.inputs[2], j) : 1;
        line[static_cast<size_t>(j)] = weight * complex_at(x, split, parts, b, f * step + j, 0);
      }
      for (int64_t k = 0; k < bins; ++k) {
        const Complex bin = bin_of(line, turns, k);
        const int64_t at = ((b * frames + f) * bins + k) * 2;
        set_number(y, at, bin.real());
        set_number(y, at + 1, bin.imag());
      }
    }
  }
  return true;
}

// Triangles between neighbours on the mel scale, 2595 log10(1 + f / 700), over the bins of a
// spectrum; edges are rounded down to a bin.
bool run_mel_weights(const KernelArgs& args) {
  const TensorView& y = args.outputs[0];
  int64_t length = 0, rate = 0;
  Status status = read_int(args.inputs[1], "dft_length", length);
  if (status.is_ok()) status = read_int(args.inputs[2], "sample_rate", rate);
  if (!status.is_ok()) return args.fail(std::move(status));
  if (rate < 1) {
    return args.fail(run_failed("sample_rate must be at least 1, not " + std::to_string(rate)));
  }
  const int64_t bins = y.dims[0], bands = y.dims[1];
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(number_at(args.inputs[3], 0)), high = mel(number_at(args.inputs[4], 0));
  const double step = (high - low) / static_cast<double>(bands + 2);
  const auto edge = [&](int64_t i) {
    const double hertz = 700 * (std::pow(10, (low + static_cast<double>(i) * step) / 2595) - 1);
    return std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
  };
  for (int64_t band = 0; band < bands; ++band) {
    const double first = edge(band), middle = edge(band + 1), last = edge(band + 2);
    for (int64_t bin = 0; bin < bins; ++bin) {
      const double at = static_cast<double>(bin);
      double weight = 0;
      if (middle == first && at == middle) {
        weight = 1;
      } else if (at >= first && at <= middle && middle > first) {
        weight = (at - first) / (middle - first);
      } else if (at >= middle && at < last && last > middle) {
        weight = (last - at) / (last - middle);
      }
      set_number(y, bin * bands + band, weight);
    }
  }
  return true;
}

template <KernelFunction run>
Result<BoundKernel> bind_signal(const KernelInit& init) {
  auto state = std::make_unique<SignalState>();
  state->is_inverse = init.attributes.get_int("inverse", 0) != 0;
  state->is_onesided = init.attributes.get_int("onesided", 0) != 0;
  state->has_axis_input = init.opset_version >= 20;
  state->axis = init.attributes.get_int("axis", 1);
  return BoundKernel{.run = run, .state = std::move(state)};
}

}  // namespace

void add_signal_reference(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, BindFunction bind) {
    registry.add({.op = op, .since_version = 17, .bind = std::move(bind), .provider = "reference"});
  };
  add("DFT", bind_signal<run_dft>);
  add("STFT", bind_signal<run_stft>);
  add("MelWeightMatrix", bind_signal<run_mel_weights>);
}

}  // namespace eddy
