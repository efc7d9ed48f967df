// Reductions of integers and bools, and ReduceLogSumExp of floats, by the vectorised elementwise
// loops: a chunk of the input is prepared (absolute values, squares, exponentials) and joined with
// as many totals.
//
// Sums and products of integers wrap, whatever their order; means, norms and logarithms of integers
// are taken in double and cut. The order of every sum depends on the shape alone.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "ops/cpu/elementwise.h"
#include "ops/cpu/families.h"
#include "ops/cpu/reduce_groups.h"
#include "ops/reference/axes.h"

namespace eddy {
namespace {

using namespace cpu;

constexpr int64_t kChunk = 256;

enum class Prepare : uint8_t { kNothing, kAbs, kSquare, kExp };
enum class Finish : uint8_t { kNothing, kMean, kSqrt, kLog, kLogPlusMax };
struct Row {
  std::string_view name;
  BinaryOp join;
  Prepare prepare;
  Finish finish;
};
constexpr Row kRows[] = {
    {"ReduceSum", BinaryOp::kAdd, Prepare::kNothing, Finish::kNothing},
    {"ReduceMean", BinaryOp::kAdd, Prepare::kNothing, Finish::kMean},
    {"ReduceMax", BinaryOp::kMax, Prepare::kNothing, Finish::kNothing},
    {"ReduceMin", BinaryOp::kMin, Prepare::kNothing, Finish::kNothing},
    {"ReduceProd", BinaryOp::kMul, Prepare::kNothing, Finish::kNothing},
    {"ReduceL1", BinaryOp::kAdd, Prepare::kAbs, Finish::kNothing},
    {"ReduceL2", BinaryOp::kAdd, Prepare::kSquare, Finish::kSqrt},
    {"ReduceSumSquare", BinaryOp::kAdd, Prepare::kSquare, Finish::kNothing},
    {"ReduceLogSum", BinaryOp::kAdd, Prepare::kNothing, Finish::kLog},
    {"ReduceLogSumExp", BinaryOp::kAdd, Prepare::kExp, Finish::kLogPlusMax},
};

struct TypedState : KernelState {
  LoopType element = LoopType::kInt32;
  LoopType total = LoopType::kInt32;  // what sums are gathered in
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

// Folds rows of one element type into totals of another (or the same).
class Folder {
 public:
  Folder(LoopType element, LoopType total, BinaryOp join, Prepare prepare)
      : element_size_(size_of(element)),
        total_size_(size_of(total)),
        total_(total),
        prepare_(prepare) {
    if (total == LoopType::kBool) {
      join_ = binary(join == BinaryOp::kMax ? BinaryOp::kOr : BinaryOp::kAnd, total).both;
    } else {
      join_ = binary(join, total).both;
      const UnaryOp op = prepare == Prepare::kExp ? UnaryOp::kExp : UnaryOp::kAbs;
      alter_ = unary(op, total);
      square_ = binary(BinaryOp::kMul, total).both;
      shift_each_ = binary(BinaryOp::kSub, total).both;
      shift_all_ = binary(BinaryOp::kSub, total).right_scalar;
    }
    if (element != total) {
      widen_ = loop_set().cast[static_cast<int>(element)][static_cast<int>(total)];
    }
  }

  // `maxima_or_null`: what exponents are shifted by, one for each total.
  void run(const Groups& groups, const void* in, void* totals, const void* maxima_or_null) {
    const auto* from = static_cast<const std::byte*>(in);
    auto* to = static_cast<std::byte*>(totals);
    const auto* maxima = static_cast<const std::byte*>(maxima_or_null);
    groups.visit_rows([&](int64_t at, int64_t place, bool is_first) {
      const std::byte* const row = from + at * element_size_;
      std::byte* const target = to + place * total_size_;
      const std::byte* const shift = maxima ? maxima + place * total_size_ : nullptr;
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
      const void* chunk = prepared(row + i * element_size_, n,
                                   shift ? shift + i * total_size_ : nullptr, shift_each_);
      std::byte* const to = totals + i * total_size_;
      if (is_first) {
        std::memcpy(to, chunk, static_cast<size_t>(n * total_size_));
      } else {
        join_(to, chunk, to, n);
      }
    }
  }

  // All elements have one total: as many partial ones as a chunk has, joined pairwise at the end.
  void fold_row(const std::byte* row, int64_t count, const std::byte* shift, std::byte* total,
                bool is_first) {
    int64_t width = std::min(kChunk, count);
    for (int64_t i = 0; i < count; i += kChunk) {
      const int64_t n = std::min(kChunk, count - i);
      const void* chunk = prepared(row + i * element_size_, n, shift, shift_all_);
      if (i == 0) {
        std::memcpy(parts_, chunk, static_cast<size_t>(n * total_size_));
      } else {
        join_(parts_, chunk, parts_, n);
      }
    }
    while (width > 1) {
      const int64_t half = width / 2;
      join_(parts_, parts_ + (width - half) * total_size_, parts_, half);
      width -= half;
    }
    if (is_first) {
      std::memcpy(total, parts_, static_cast<size_t>(total_size_));
    } else {
      join_(total, parts_, total, 1);
    }
  }

  const void* prepared(const std::byte* from, int64_t count, const std::byte* shift,
                       BinaryLoop shift_loop) {
    const float no_parameters[4] = {};
    const void* chunk = from;
    if (widen_ != nullptr) {
      widen_(from, chunk_, count);
      chunk = chunk_;
    }
    switch (prepare_) {
      case Prepare::kNothing:
        return chunk;
      case Prepare::kAbs:
        alter_(chunk, chunk_, count, no_parameters);
        break;
      case Prepare::kSquare:
        square_(chunk, chunk, chunk_, count);
        break;
      case Prepare::kExp:
        shift_loop(chunk, shift, chunk_, count);
        exponentiate(count);
        break;
    }
    return chunk_;
  }

  void exponentiate(int64_t count) {
    const float no_parameters[4] = {};
    if (total_ == LoopType::kFloat) {
      alter_(chunk_, chunk_, count, no_parameters);
      return;
    }
    auto* values = reinterpret_cast<double*>(chunk_);
    for (int64_t i = 0; i < count; ++i) values[i] = std::exp(values[i]);
  }

  const int64_t element_size_, total_size_;
  const LoopType total_;
  const Prepare prepare_;
  BinaryLoop join_ = nullptr, square_ = nullptr, shift_each_ = nullptr, shift_all_ = nullptr;
  UnaryLoop alter_ = nullptr;
  CastLoop widen_ = nullptr;  // null: totals are of the element type
  alignas(64) std::byte chunk_[kChunk * 8];
  alignas(64) std::byte parts_[kChunk * 8];
};

template <typename T>
void finish_all(Finish finish, int64_t reduced_count, const T* maxima, T* totals, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    switch (finish) {
      case Finish::kNothing:
        break;
      case Finish::kMean:
        totals[i] /= static_cast<T>(reduced_count);
        break;
      case Finish::kSqrt:
        totals[i] = std::sqrt(totals[i]);
        break;
      case Finish::kLog:
        totals[i] = std::log(totals[i]);
        break;
      case Finish::kLogPlusMax:  // of nothing but -inf, or with an inf: that
        totals[i] = std::isinf(maxima[i]) ? maxima[i] : maxima[i] + std::log(totals[i]);
        break;
    }
  }
}

// What a reduction of nothing gives, cut to the type.
template <typename T>
T of_nothing(const Row& row) {
  using Limits = std::numeric_limits<T>;
  const T lowest = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  if (row.join == BinaryOp::kMin) return Limits::has_infinity ? Limits::infinity() : Limits::max();
  if (row.join == BinaryOp::kMul) return 1;
  const bool is_log = row.finish == Finish::kLog || row.finish == Finish::kLogPlusMax;
  return is_log || row.join == BinaryOp::kMax ? lowest : T(0);
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

// Through totals of another type, or with maxima: both in scratch memory.
bool run_in_scratch(const TypedState& s, const Groups& groups, const KernelArgs& args) {
  const TensorView& out = args.outputs[0];
  const int64_t count = out.count();
  auto* memory = static_cast<std::byte*>(
      args.scratch->reserve(static_cast<size_t>(2 * count * size_of(s.total))));
  if (memory == nullptr) return args.fail(resource_exhausted("no memory to reduce in"));
  std::byte* const maxima = memory + count * size_of(s.total);
  if (s.row.prepare == Prepare::kExp) {
    Folder(s.element, s.total, BinaryOp::kMax, Prepare::kNothing)
        .run(groups, args.inputs[0].data, maxima, nullptr);
  }
  Folder(s.element, s.total, s.row.join, s.row.prepare)
      .run(groups, args.inputs[0].data, memory, maxima);
  if (s.total == LoopType::kFloat) {
    finish_all(s.row.finish, groups.reduced_count, reinterpret_cast<const float*>(maxima),
               reinterpret_cast<float*>(memory), count);
    std::memcpy(out.data, memory, out.size_bytes());
    return true;
  }
  finish_all(s.row.finish, groups.reduced_count, reinterpret_cast<const double*>(maxima),
             reinterpret_cast<double*>(memory), count);
  loop_set().cast[static_cast<int>(s.total)][static_cast<int>(s.element)](memory, out.data, count);
  return true;
}

bool run_typed(const KernelArgs& args) {
  const auto& s = *static_cast<const TypedState*>(args.state);
  const TensorView& in = args.inputs[0];
  const TensorView& out = args.outputs[0];
  Result<uint32_t> mask = s.axes.mask(in.rank, args.has_input(1) ? args.inputs[1] : TensorView());
  if (!mask.is_ok()) return args.fail(mask.take_status());
  if (out.count() == 0) return true;
  if (*mask == 0 && s.axes.no_op_if_empty) {
    std::memmove(out.data, in.data, out.size_bytes());
    return true;
  }
  const Groups groups(in.shape(), *mask);
  if (groups.reduced_count == 0) {
    fill_with_nothing(s, out);
    return true;
  }
  if (s.total != s.element || s.row.prepare == Prepare::kExp) {
    return run_in_scratch(s, groups, args);
  }
  Folder(s.element, s.total, s.row.join, s.row.prepare).run(groups, in.data, out.data, nullptr);
  return true;
}

Result<BoundKernel> bind_typed_reduce(const KernelInit& init) {
  const std::optional<LoopType> type = loop_type(init.inputs[0].tensor.element);
  auto state = std::make_unique<TypedState>();
  for (const Row& row : kRows) {
    if (row.name == init.op.name) state->row = row;
  }
  const bool is_extreme = state->row.join == BinaryOp::kMax || state->row.join == BinaryOp::kMin;
  const bool is_served = type == LoopType::kInt32 || type == LoopType::kInt64 ||
                         (type == LoopType::kBool && is_extreme) ||
                         (type == LoopType::kFloat && state->row.prepare == Prepare::kExp);
  if (!is_served) return no_fast_kernel(init);
  state->element = state->total = *type;
  if (state->row.finish != Finish::kNothing && type != LoopType::kFloat) {
    state->total = LoopType::kDouble;
  }
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
