// Reductions of integers and bools, and ReduceLogSumExp of floats, by the vectorised elementwise
// loops: a chunk of the input is prepared (absolute values, squares, exponentials) and joined with
// as many totals.
//
// Sums and products of integers wrap, whatever their order; their means, norms and logarithms are
// in reduction_exact.cc. The order of every sum depends on the shape alone.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "graph/base/check.h"
#include "ops/cpu/elementwise.h"
#include "ops/cpu/families.h"
#include "ops/cpu/reduce_groups.h"
#include "ops/reference/parts/axes.h"

namespace eddy {
namespace {

using namespace cpu;

constexpr int64_t kChunk = 256;

enum class Prepare : uint8_t { kNothing, kAbs, kSquare, kExp };
struct Row {
  std::string_view name;
  BinaryOp join;
  Prepare prepare;
};
constexpr Row kRows[] = {
    {"ReduceSum", BinaryOp::kAdd, Prepare::kNothing},
    {"ReduceMax", BinaryOp::kMax, Prepare::kNothing},
    {"ReduceMin", BinaryOp::kMin, Prepare::kNothing},
    {"ReduceProd", BinaryOp::kMul, Prepare::kNothing},
    {"ReduceL1", BinaryOp::kAdd, Prepare::kAbs},
    {"ReduceSumSquare", BinaryOp::kAdd, Prepare::kSquare},
    {"ReduceLogSumExp", BinaryOp::kAdd, Prepare::kExp},  // of floats only
};

struct TypedState : KernelState {
  LoopType element = LoopType::kInt32;
  Row row = {};
  ReduceAxes axes;
};

int64_t size_of(LoopType type) {
  switch (type) {
    case LoopType::kFloat:
    case LoopType::kInt32:
      return 4;
    case LoopType::kDouble:
    case LoopType::kInt64:
      return 8;
    default:
      return 1;
  }
}

BinaryLoops binary(BinaryOp op, LoopType type) {
  return loop_set().binary[static_cast<int>(op)][static_cast<int>(type)];
}
UnaryLoop unary(UnaryOp op, LoopType type) {
  return loop_set().unary[static_cast<int>(op)][static_cast<int>(type)];
}

// Folds rows into totals of the same type.
class Folder {
 public:
  Folder(LoopType element, BinaryOp join, Prepare prepare)
      : size_(size_of(element)), prepare_(prepare) {
    if (element == LoopType::kBool) {
      join_ = binary(join == BinaryOp::kMax ? BinaryOp::kOr : BinaryOp::kAnd, element).both;
      return;
    }
    join_ = binary(join, element).both;
    alter_ = unary(prepare == Prepare::kExp ? UnaryOp::kExp : UnaryOp::kAbs, element);
    square_ = binary(BinaryOp::kMul, element).both;
    shift_each_ = binary(BinaryOp::kSub, element).both;
    shift_all_ = binary(BinaryOp::kSub, element).right_scalar;
  }

  // `maxima_or_null`: what exponents are shifted by, one for each total.
  void run(const Groups& groups, const void* in, void* totals, const void* maxima_or_null) {
    const auto* from = static_cast<const std::byte*>(in);
    auto* to = static_cast<std::byte*>(totals);
    const auto* maxima = static_cast<const std::byte*>(maxima_or_null);
    groups.visit_rows([&](int64_t at, int64_t place, bool is_first) {
      const std::byte* const row = from + at * size_;
      std::byte* const target = to + place * size_;
      const std::byte* const shift = maxima ? maxima + place * size_ : nullptr;
      if (groups.row().is_reduced) {
        fold_row(row, groups.row().count, shift, target, is_first);
      } else {
        fold_each(row, groups.row().count, shift, target, is_first);
      }
    });
  }

 private:
  // Every element has a total of its own.
  void fold_each(const std::byte* row, int64_t count, const std::byte* shift, std::byte* totals,
                 bool is_first) {
    for (int64_t i = 0; i < count; i += kChunk) {
      const int64_t n = std::min(kChunk, count - i);
      const void* chunk =
          prepared(row + i * size_, n, shift ? shift + i * size_ : nullptr, shift_each_);
      std::byte* const to = totals + i * size_;
      if (is_first) {
        std::memcpy(to, chunk, static_cast<size_t>(n * size_));
      } else {
        join_(to, chunk, to, n);
      }
    }
  }

  // All elements have one total: as many partial ones as a chunk has, joined pairwise at the end.
  void fold_row(const std::byte* row, int64_t count, const std::byte* shift, std::byte* total,
                bool is_first) {
    EDDY_DCHECK(count > 0) << "a row of nothing is folded";
    int64_t width = std::min(kChunk, count);
    for (int64_t i = 0; i < count; i += kChunk) {
      const int64_t n = std::min(kChunk, count - i);
      const void* chunk = prepared(row + i * size_, n, shift, shift_all_);
      if (i == 0) {
        std::memcpy(parts_, chunk, static_cast<size_t>(n * size_));
      } else {
        join_(parts_, chunk, parts_, n);
      }
    }
    while (width > 1) {
      const int64_t half = width / 2;
      join_(parts_, parts_ + (width - half) * size_, parts_, half);
      width -= half;
    }
    if (is_first) {
      std::memcpy(total, parts_, static_cast<size_t>(size_));
    } else {
      join_(total, parts_, total, 1);
    }
  }

  const void* prepared(const std::byte* from, int64_t count, const std::byte* shift,
                       BinaryLoop shift_loop) {
    const float no_parameters[4] = {};
    switch (prepare_) {
      case Prepare::kNothing:
        return from;
      case Prepare::kAbs:
        alter_(from, chunk_, count, no_parameters);
        break;
      case Prepare::kSquare:
        square_(from, from, chunk_, count);
        break;
      case Prepare::kExp:
        shift_loop(from, shift, chunk_, count);
        alter_(chunk_, chunk_, count, no_parameters);
        break;
    }
    return chunk_;
  }

  const int64_t size_;
  const Prepare prepare_;
  BinaryLoop join_ = nullptr, square_ = nullptr, shift_each_ = nullptr, shift_all_ = nullptr;
  UnaryLoop alter_ = nullptr;
  alignas(64) std::byte chunk_[kChunk * 8];
  alignas(64) std::byte parts_[kChunk * 8];
};

// What a reduction of nothing gives, cut to the type.
template <typename T>
T of_nothing(const Row& row) {
  using Limits = std::numeric_limits<T>;
  const T lowest = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  if (row.join == BinaryOp::kMin) return Limits::has_infinity ? Limits::infinity() : Limits::max();
  if (row.join == BinaryOp::kMul) return 1;
  return row.prepare == Prepare::kExp || row.join == BinaryOp::kMax ? lowest : T(0);
}

void fill_with_nothing(const TypedState& s, const TensorView& out) {
  const int64_t count = out.count();
  switch (s.element) {
    case LoopType::kFloat:
      return static_cast<void>(
          std::fill_n(out.mutable_as<float>(), count, of_nothing<float>(s.row)));
    case LoopType::kInt32:
      return static_cast<void>(
          std::fill_n(out.mutable_as<int32_t>(), count, of_nothing<int32_t>(s.row)));
    case LoopType::kInt64:
      return static_cast<void>(
          std::fill_n(out.mutable_as<int64_t>(), count, of_nothing<int64_t>(s.row)));
    default:
      return static_cast<void>(
          std::fill_n(out.mutable_as<bool>(), count, s.row.join == BinaryOp::kMin));
  }
}

// The greatest of each row first, in scratch memory, then what exceeds it.
bool run_log_sum_exp(const Groups& groups, const KernelArgs& args) {
  const TensorView& out = args.outputs[0];
  auto* const maxima = static_cast<float*>(args.scratch->reserve(out.size_bytes()));
  if (maxima == nullptr) return args.fail(resource_exhausted("no memory to reduce in"));
  const void* const in = args.inputs[0].data;
  Folder(LoopType::kFloat, BinaryOp::kMax, Prepare::kNothing).run(groups, in, maxima, nullptr);
  Folder(LoopType::kFloat, BinaryOp::kAdd, Prepare::kExp).run(groups, in, out.data, maxima);
  auto* const totals = out.mutable_as<float>();
  const int64_t count = out.count();
  for (int64_t i = 0; i < count; ++i) {  // of nothing but -inf, or with an inf: that
    totals[i] = std::isinf(maxima[i]) ? maxima[i] : maxima[i] + std::log(totals[i]);
  }
  return true;
}

bool run_typed(const KernelArgs& args) {
  const auto& s = *static_cast<const TypedState*>(args.state);
  const TensorView& in = args.inputs[0];
  const TensorView& out = args.outputs[0];
  Result<uint32_t> mask = s.axes.mask(in.rank, args.has_input(1) ? args.inputs[1] : TensorView());
  if (!mask.is_ok()) return args.fail(mask.take_status());
  if (out.count() == 0) return true;
  const Groups groups(in.shape(), *mask);
  EDDY_DCHECK(out.count() * groups.reduced_count == in.count()) << "elements fall out of groups";
  if (groups.reduced_count == 0) {
    fill_with_nothing(s, out);
    return true;
  }
  if (s.row.prepare == Prepare::kExp) return run_log_sum_exp(groups, args);
  Folder(s.element, s.row.join, s.row.prepare).run(groups, in.data, out.data, nullptr);
  return true;
}

Result<BoundKernel> bind_typed_reduce(const KernelInit& init) {
  const std::optional<LoopType> type = loop_type(init.inputs[0].tensor.element);
  auto state = std::make_unique<TypedState>();
  for (const Row& row : kRows) {
    if (row.name == init.op.name) state->row = row;
  }
  const bool is_exponential = state->row.prepare == Prepare::kExp;
  const bool is_extreme = state->row.join == BinaryOp::kMax || state->row.join == BinaryOp::kMin;
  const bool is_served = is_exponential ? type == LoopType::kFloat
                                        : type == LoopType::kInt32 || type == LoopType::kInt64 ||
                                              (type == LoopType::kBool && is_extreme);
  if (!is_served) return no_fast_kernel(init);
  state->element = *type;
  EDDY_ASSIGN_OR_RETURN(state->axes, ReduceAxes::of(init));
  BoundKernel kernel;
  kernel.run = run_typed;
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_typed_reduction_cpu(KernelRegistry& registry) {
  for (const Row& row : kRows) registry.add({.op = row.name, .bind = bind_typed_reduce});
}

}  // namespace eddy
