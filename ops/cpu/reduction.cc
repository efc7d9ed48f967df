// Fast reductions of floats, and ArgMax/ArgMin.
//
// Reduced rows are folded to a number, kept rows are folded element by element into a row of the
// output. The order of a sum depends on the shape alone.
#include <cmath>
#include <cstring>
#include <string>

#include "graph/base/check.h"
#include "ops/cpu/elementwise.h"
#include "ops/cpu/families.h"
#include "ops/cpu/reduce_groups.h"
#include "ops/cpu/tiles.h"
#include "ops/reference/parts/axes.h"

namespace eddy {
namespace {

using namespace cpu;

enum class Finish : uint8_t { kNothing, kDivide, kSqrt, kLog };
struct Row {
  std::string_view name;
  ReduceOp op;
  Finish finish;
};
constexpr Row kRows[] = {
    {"ReduceSum", ReduceOp::kSum, Finish::kNothing},
    {"ReduceMean", ReduceOp::kSum, Finish::kDivide},
    {"ReduceMax", ReduceOp::kMax, Finish::kNothing},
    {"ReduceMin", ReduceOp::kMin, Finish::kNothing},
    {"ReduceProd", ReduceOp::kProd, Finish::kNothing},
    {"ReduceL1", ReduceOp::kSumAbs, Finish::kNothing},
    {"ReduceL2", ReduceOp::kSumSquare, Finish::kSqrt},
    {"ReduceSumSquare", ReduceOp::kSumSquare, Finish::kNothing},
    {"ReduceLogSum", ReduceOp::kSum, Finish::kLog},
};

struct ReduceState : KernelState {
  ReduceLoops loops;
  ReduceLoops join;  // of partial results: sums of squares are summed
  BinaryLoop divide = nullptr;
  UnaryLoop finish = nullptr;
  ReduceAxes axes;
  bool is_mean = false;
};

// Folds the input into the output; nothing is empty.
void fold_groups(const ReduceState& s, const Groups& g, const float* in, float* out) {
  g.visit_rows([&](int64_t at, int64_t place, bool is_first) {
    if (!g.row().is_reduced) {
      (is_first ? s.loops.start_row : s.loops.fold_row)(in + at, out + place, g.row().count);
      return;
    }
    const float part = s.loops.fold(in + at, g.row().count);
    if (is_first)
      out[place] = part;
    else
      s.join.fold_row(&part, out + place, 1);
  });
}

// Of a group of results: sums become means, norms, logarithms.
void finish(const ReduceState& s, const Groups& groups, float* result, int64_t count) {
  const float divisor = static_cast<float>(groups.reduced_count);
  const float no_parameters[2] = {};
  if (s.is_mean) s.divide(result, &divisor, result, count);
  if (s.finish != nullptr) s.finish(result, result, count, no_parameters);
}

bool run_reduce(const KernelArgs& args) {
  const auto& s = *static_cast<const ReduceState*>(args.state);
  const TensorView& in = args.inputs[0];
  const TensorView& out = args.outputs[0];
  Result<uint32_t> mask = s.axes.mask(in.rank, args.has_input(1) ? args.inputs[1] : TensorView());
  if (!mask.is_ok()) return args.fail(mask.take_status());
  const int64_t out_count = out.count();
  if (out_count == 0) return true;
  float* const result = out.mutable_as<float>();
  const Groups groups(in.shape(), *mask);
  EDDY_DCHECK(out_count * groups.reduced_count == in.count()) << "elements fall out of groups";
  if (groups.reduced_count == 0) {
    for (int64_t i = 0; i < out_count; ++i) result[i] = s.loops.fold(nullptr, 0);
  } else {
    fold_groups(s, groups, in.as<float>(), result);
  }
  finish(s, groups, result, out_count);
  return true;
}

// The outermost kept axes apart: what is reduced for one index is not split. Nothing where the
// outermost axis is reduced, or all are kept.
Tiles tiles_of(const KernelArgs& args) {
  const auto& s = *static_cast<const ReduceState*>(args.state);
  const TensorView& in = args.inputs[0];
  const Result<uint32_t> mask =
      s.axes.mask(in.rank, args.has_input(1) ? args.inputs[1] : TensorView());
  if (!mask.is_ok() || in.count() == 0) return {};
  const Groups groups(in.shape(), *mask);
  if (groups.rank < 2 || groups.groups[0].is_reduced) return {};
  return Tiles::of(groups.groups[0].count, in.count() / groups.groups[0].count);
}

bool run_units(const KernelArgs& args, int64_t first, int64_t end) {
  const auto& s = *static_cast<const ReduceState*>(args.state);
  const TensorView& in = args.inputs[0];
  Result<uint32_t> mask = s.axes.mask(in.rank, args.has_input(1) ? args.inputs[1] : TensorView());
  if (!mask.is_ok()) return args.fail(mask.take_status());
  Groups groups(in.shape(), *mask);
  Groups::Group& outermost = groups.groups[0];
  EDDY_DCHECK(!outermost.is_reduced && end <= outermost.count) << first << " to " << end;
  const float* const from = in.as<float>() + in.count() / outermost.count * first;
  float* const result = args.outputs[0].mutable_as<float>() + outermost.out_stride * first;
  outermost.count = end - first;
  fold_groups(s, groups, from, result);
  finish(s, groups, result, outermost.out_stride * outermost.count);
  return true;
}

bool run_reduce_in_tiles(const KernelArgs& args) {
  return tiles_of(args).count() < 2 ? run_reduce(args) : run_all_units<tiles_of, run_units>(args);
}

Result<BoundKernel> bind_reduce(const KernelInit& init) {
  if (init.inputs[0].tensor.element != ElementType::kFloat) return no_fast_kernel(init);
  auto state = std::make_unique<ReduceState>();
  const LoopSet& set = loop_set();
  for (const Row& row : kRows) {
    if (row.name != init.op.name) continue;
    const bool sums = row.op == ReduceOp::kSumAbs || row.op == ReduceOp::kSumSquare;
    state->loops = set.reduce[static_cast<int>(row.op)];
    state->join = set.reduce[static_cast<int>(sums ? ReduceOp::kSum : row.op)];
    state->is_mean = row.finish == Finish::kDivide;
    if (row.finish == Finish::kSqrt) state->finish = set.unary[static_cast<int>(UnaryOp::kSqrt)][0];
    if (row.finish == Finish::kLog) state->finish = set.unary[static_cast<int>(UnaryOp::kLog)][0];
  }
  state->divide = set.binary[static_cast<int>(BinaryOp::kDiv)][0].right_scalar;
  EDDY_ASSIGN_OR_RETURN(state->axes, ReduceAxes::of(init));
  BoundKernel kernel;
  kernel.run = run_reduce;
  if (fills_tiles(init.inputs[0])) {
    set_tiles<tiles_of, run_units>(kernel);
    kernel.run = run_reduce_in_tiles;
  }
  kernel.state = std::move(state);
  return kernel;
}

struct ArgState : KernelState {
  FoldLoop extreme = nullptr;
  bool greatest = true;
  bool takes_last = false;
  int64_t axis = 0;
};

// Where `value` (perhaps NaN) stands in the row; it is there.
int64_t find_in_row(const float* row, int64_t count, float value, bool takes_last) {
  EDDY_DCHECK(count > 0) << "there is nothing to find";
  const auto is_it = [&](float x) { return x == value || (std::isnan(value) && std::isnan(x)); };
  if (takes_last) {
    int64_t j = count - 1;
    while (j > 0 && !is_it(row[j])) --j;
    return j;
  }
  int64_t j = 0;
  while (j < count - 1 && !is_it(row[j])) ++j;
  return j;
}

// One pass, the best so far of each column in the output. A NaN beats every number.
template <typename T>
void search_columns(const ArgState& s, const AxisSplit& split, const T* in, int64_t* out) {
  const auto is_nan = [](T x) { return x != x; };
  for (int64_t i = 0; i < split.inner; ++i) {
    T best = in[i];
    int64_t place = 0;
    for (int64_t j = 1; j < split.count; ++j) {
      const T x = in[j * split.inner + i];
      const bool ties = x == best || (is_nan(x) && is_nan(best));
      const bool beats = !is_nan(best) && (is_nan(x) || (s.greatest ? x > best : x < best));
      if (beats || (ties && s.takes_last)) {
        best = x;
        place = j;
      }
    }
    out[i] = place;
  }
}

template <typename T>
bool run_arg(const KernelArgs& args) {
  const auto& s = *static_cast<const ArgState*>(args.state);
  const AxisSplit split = split_at_axis(args.inputs[0].shape(), s.axis);
  EDDY_DCHECK(split.outer * split.inner == args.outputs[0].count()) << "not one place a line";
  const T* in = args.inputs[0].as<T>();
  auto* out = args.outputs[0].mutable_as<int64_t>();
  for (int64_t o = 0; o < split.outer; ++o, in += split.count * split.inner, out += split.inner) {
    if constexpr (std::is_same_v<T, float>) {
      if (split.inner == 1) {
        *out = find_in_row(in, split.count, s.extreme(in, split.count), s.takes_last);
        continue;
      }
    }
    search_columns(s, split, in, out);
  }
  return true;
}

Result<BoundKernel> bind_arg(const KernelInit& init) {
  const ElementType element = init.inputs[0].tensor.element;
  auto state = std::make_unique<ArgState>();
  state->greatest = init.op.name == "ArgMax";
  const ReduceOp op = state->greatest ? ReduceOp::kMax : ReduceOp::kMin;
  state->extreme = loop_set().reduce[static_cast<int>(op)].fold;
  state->takes_last = init.attributes.get_int("select_last_index", 0) != 0;
  state->axis = init.attributes.get_int("axis", 0);
  BoundKernel kernel;
  if (element == ElementType::kFloat) kernel.run = run_arg<float>;
  if (element == ElementType::kInt32) kernel.run = run_arg<int32_t>;
  if (element == ElementType::kInt64) kernel.run = run_arg<int64_t>;
  if (kernel.run == nullptr) return no_fast_kernel(init);
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_reduction_cpu(KernelRegistry& registry) {
  add_typed_reduction_cpu(registry);
  add_exact_reduction_cpu(registry);
  for (const Row& row : kRows) {
    registry.add({.op = row.name, .bind = bind_reduce, .has_tiles = true});
  }
  registry.add({.op = "ArgMax", .bind = bind_arg});
  registry.add({.op = "ArgMin", .bind = bind_arg});
}

}  // namespace eddy
