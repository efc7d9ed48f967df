// Fast Softmax and LogSoftmax of floats along the middle of [outer, count, inner].
//
// inner = 1: each row is contiguous. Otherwise a band of the `inner` lanes is worked on at a time,
// with the maxima and sums of its lanes in scratch memory.
#include <algorithm>
#include <string>

#include "graph/base/check.h"
#include "ops/cpu/elementwise.h"
#include "ops/cpu/families.h"
#include "ops/cpu/tiles.h"
#include "ops/reference/parts/axes.h"

namespace eddy {
namespace {

using namespace cpu;

constexpr float kNoParameters[2] = {};

struct SoftmaxState : KernelState {
  SoftmaxLoops loops;
  ReduceLoops max;
  ReduceLoops sum;
  BinaryLoop subtract = nullptr;
  BinaryLoop divide = nullptr;
  UnaryLoop exp = nullptr;
  UnaryLoop log = nullptr;
  bool is_log = false;
  bool has_axis = false;
  int since_version = 13;
  int64_t axis = -1;
};

void run_row(const SoftmaxState& s, const float* in, float* out, int64_t count) {
  const float greatest = s.max.fold(in, count);
  if (s.is_log) {
    float total = s.loops.exp_sum_only(in, count, greatest);
    s.log(&total, &total, 1, kNoParameters);
    // Two subtractions: the greatest may be so large that adding the logarithm would lose it.
    s.loops.subtract(in, out, count, greatest);
    s.loops.subtract(out, out, count, total);
  } else {
    const float total = s.loops.exp_sum(in, out, count, greatest);
    s.loops.scale(out, out, count, 1.0f / total);
  }
}

// Elements of a tile: exponentials are no light work.
constexpr int64_t kTileWork = kTileElements / 2;
constexpr int64_t kLanes = 64;  // whole vectors

// The lines of a tensor, in units that are worked on by themselves: rows, or bands of lanes.
struct Lines {
  AxisSplit split;
  int64_t width = 1;  // lanes of a band
  int64_t bands = 1;  // of [count, inner]

  Lines(const KernelArgs& args, const SoftmaxState& s)
      : split(split_softmax(args.inputs[0].shape(), s.since_version, s.has_axis, s.axis)) {
    EDDY_DCHECK(split.outer * split.count * split.inner == args.inputs[0].count())
        << "elements fall out of lines";
    if (split.inner <= 1) return;
    const int64_t wanted = kTileWork / std::max<int64_t>(split.count, 1);
    width = std::max<int64_t>((wanted + kLanes - 1) / kLanes, 1) * kLanes;
    width = std::min(width, split.inner);
    bands = (split.inner + width - 1) / width;
  }
};

// Exponentials of the lanes' differences to their maxima, summed in `totals`; they are left in
// `out` for Softmax and pass through `row` for LogSoftmax.
void sum_lanes(const SoftmaxState& s, const AxisSplit& split, int64_t width, const float* in,
               float* out, const float* greatest, float* totals, float* row) {
  for (int64_t j = 0; j < split.count; ++j) {
    float* const to = out + j * split.inner;
    s.subtract(in + j * split.inner, greatest, to, width);
    float* const exponentials = s.is_log ? row : to;
    s.exp(to, exponentials, width, kNoParameters);
    (j == 0 ? s.sum.start_row : s.sum.fold_row)(exponentials, totals, width);
  }
}

// A band of `width` lanes; `scratch` has room for three rows of it.
void run_lanes(const SoftmaxState& s, const AxisSplit& split, int64_t width, const float* in,
               float* out, float* scratch) {
  float* const greatest = scratch;
  float* const totals = scratch + width;
  float* const row = totals + width;
  for (int64_t j = 0; j < split.count; ++j) {
    (j == 0 ? s.max.start_row : s.max.fold_row)(in + j * split.inner, greatest, width);
  }
  sum_lanes(s, split, width, in, out, greatest, totals, row);
  if (s.is_log) s.log(totals, totals, width, kNoParameters);
  const BinaryLoop finish = s.is_log ? s.subtract : s.divide;
  for (int64_t j = 0; j < split.count; ++j) {
    float* const lane = out + j * split.inner;
    finish(lane, totals, lane, width);
  }
}

Tiles tiles_of(const KernelArgs& args) {
  const Lines lines(args, *static_cast<const SoftmaxState*>(args.state));
  if (args.inputs[0].count() == 0) return {};
  return Tiles::of(lines.split.outer * lines.bands, lines.split.count * lines.width, kTileWork);
}

bool run_units(const KernelArgs& args, int64_t first, int64_t end) {
  const auto& s = *static_cast<const SoftmaxState*>(args.state);
  const Lines lines(args, s);
  const AxisSplit& split = lines.split;
  EDDY_DCHECK(end <= split.outer * lines.bands) << "units " << first << " to " << end;
  const float* from = args.inputs[0].as<float>();
  float* to = args.outputs[0].mutable_as<float>();
  const int64_t step = split.count * split.inner;
  if (split.inner == 1) {
    for (int64_t o = first; o < end; ++o) run_row(s, from + o * step, to + o * step, step);
    return true;
  }
  const size_t scratch_bytes = static_cast<size_t>(lines.width) * 3 * sizeof(float);
  auto* const scratch = static_cast<float*>(args.scratch->reserve(scratch_bytes));
  if (scratch == nullptr) {
    return args.fail(
        resource_exhausted("no memory for " + std::to_string(scratch_bytes) + " bytes of scratch"));
  }
  for (int64_t unit = first; unit < end; ++unit) {
    const int64_t lane = unit % lines.bands * lines.width;
    const int64_t at = unit / lines.bands * step + lane;
    run_lanes(s, split, std::min(lines.width, split.inner - lane), from + at, to + at, scratch);
  }
  return true;
}

Result<BoundKernel> bind_softmax(const KernelInit& init) {
  if (init.inputs[0].tensor.element != ElementType::kFloat) return no_fast_kernel(init);
  const LoopSet& set = loop_set();
  auto state = std::make_unique<SoftmaxState>();
  state->loops = set.softmax;
  state->max = set.reduce[static_cast<int>(ReduceOp::kMax)];
  state->sum = set.reduce[static_cast<int>(ReduceOp::kSum)];
  state->subtract = set.binary[static_cast<int>(BinaryOp::kSub)][0].both;
  state->divide = set.binary[static_cast<int>(BinaryOp::kDiv)][0].both;
  state->exp = set.unary[static_cast<int>(UnaryOp::kExp)][0];
  state->log = set.unary[static_cast<int>(UnaryOp::kLog)][0];
  EDDY_CHECK(state->subtract && state->divide && state->exp && state->log) << "a loop is missing";
  state->is_log = init.op.name == "LogSoftmax";
  state->since_version = init.op.since_version;
  state->has_axis = init.attributes.has("axis");
  state->axis = init.attributes.get_int("axis", -1);
  BoundKernel kernel;
  kernel.run = run_all_units<tiles_of, run_units>;
  if (fills_tiles(init.inputs[0], kTileWork)) set_tiles<tiles_of, run_units>(kernel);
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_softmax_cpu(KernelRegistry& registry) {
  registry.add({.op = "Softmax", .bind = bind_softmax, .has_tiles = true});
  registry.add({.op = "LogSoftmax", .bind = bind_softmax, .has_tiles = true});
}

}  // namespace eddy
