// Reductions, one output element at a time over all that it covers. Floats are gathered in double,
// integers as 64-bit words that wrap; means, norms and logarithms of integers are exact and cut
// (exact_integer.h).
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "graph/base/check.h"
#include "ops/reference/families.h"
#include "ops/reference/parts/axes.h"
#include "ops/reference/parts/exact_integer.h"
#include "ops/reference/parts/number.h"

namespace eddy {
namespace {

enum class Kind { kL1, kL2, kLogSum, kLogSumExp, kMax, kMean, kMin, kProd, kSum, kSumSquare };
struct Row {
  std::string_view name;
  Kind kind;
};
constexpr Row kRows[] = {
    {"ReduceL1", Kind::kL1},         {"ReduceL2", Kind::kL2},
    {"ReduceLogSum", Kind::kLogSum}, {"ReduceLogSumExp", Kind::kLogSumExp},
    {"ReduceMax", Kind::kMax},       {"ReduceMean", Kind::kMean},
    {"ReduceMin", Kind::kMin},       {"ReduceProd", Kind::kProd},
    {"ReduceSum", Kind::kSum},       {"ReduceSumSquare", Kind::kSumSquare},
};

// The part of the input that one output element covers, visited in row-major order.
class Cover {
 public:
  Cover(const TensorView& input, uint32_t mask) {
    int64_t stride = 1;
    for (int axis = input.rank - 1; axis >= 0; --axis) {
      const int64_t dim = input.dims[axis];
      (mask & (1u << axis) ? reduced_ : kept_).add(dim, stride);
      stride *= dim;
    }
  }
  int64_t count() const { return reduced_.count; }
  // Position in the input of the j-th element that output element `o` covers.
  int64_t position(int64_t o, int64_t j) const { return kept_.offset(o) + reduced_.offset(j); }

 private:
  // Some of the axes, innermost first.
  struct Axes {
    int rank = 0;
    int64_t count = 1;
    int64_t dims[kMaxRank] = {};
    int64_t strides[kMaxRank] = {};
    void add(int64_t dim, int64_t stride) {
      EDDY_DCHECK(rank < kMaxRank) << "more than " << kMaxRank << " axes";
      dims[rank] = dim;
      strides[rank++] = stride;
      count *= dim;
    }
    int64_t offset(int64_t i) const {
      int64_t offset = 0;
      for (int axis = 0; axis < rank; ++axis) {
        offset += i % dims[axis] * strides[axis];
        i /= dims[axis];
      }
      return offset;
    }
  };
  Axes kept_, reduced_;
};

struct ReduceState : KernelState {
  Kind kind = Kind::kSum;
  ReduceAxes axes;
};

bool is_float(const Number& n) { return n.kind == Number::Kind::kFloat; }
bool is_less(const Number& a, const Number& b) {
  if (is_float(a)) return a.float_value < b.float_value;
  return a.kind == Number::Kind::kSigned ? a.signed_value < b.signed_value
                                         : a.unsigned_value < b.unsigned_value;
}

// Greatest or least element; a NaN wins. Without elements: the type's lowest or highest value.
Number reduce_extreme(const TensorView& in, const Cover& cover, int64_t o, bool greatest) {
  const double end = greatest ? -HUGE_VAL : HUGE_VAL;
  if (cover.count() == 0) {
    return in.element == ElementType::kBool ? Number::of_uint(greatest ? 0 : 1)
                                            : Number::of_double(end);
  }
  Number best = load_number(in, cover.position(o, 0));
  for (int64_t j = 1; j < cover.count(); ++j) {
    const Number next = load_number(in, cover.position(o, j));
    if (is_float(best) && std::isnan(best.float_value)) return best;
    const bool is_nan = is_float(next) && std::isnan(next.float_value);
    if (is_nan || (greatest ? is_less(best, next) : is_less(next, best))) best = next;
  }
  return best;
}

// Sums and products; integers exactly, as words.
Number reduce_integers(const TensorView& in, const Cover& cover, int64_t o, Kind kind) {
  Number total = Number::of_int(kind == Kind::kProd ? 1 : 0);
  for (int64_t j = 0; j < cover.count(); ++j) {
    const Number next = load_number(in, cover.position(o, j));
    const bool is_negative = next.kind == Number::Kind::kSigned && next.signed_value < 0;
    const uint64_t x = next.unsigned_value;
    switch (kind) {
      case Kind::kProd:
        total.unsigned_value *= x;
        break;
      case Kind::kL1:
        total.unsigned_value += is_negative ? 0 - x : x;
        break;
      case Kind::kSumSquare:
        total.unsigned_value += x * x;
        break;
      default:
        total.unsigned_value += x;
        break;
    }
  }
  return total;
}

template <typename T>  // int64_t or uint64_t
T integer_at(const TensorView& in, const Cover& cover, int64_t o, int64_t j) {
  return load_number(in, cover.position(o, j)).to_integer<T>();
}

template <typename T>
T exact_log_sum_exp_of(const TensorView& in, const Cover& cover, int64_t o) {
  EDDY_DCHECK(cover.count() > 0) << "there is no greatest of nothing";
  T greatest = integer_at<T>(in, cover, o, 0);
  for (int64_t j = 1; j < cover.count(); ++j) {
    greatest = std::max(greatest, integer_at<T>(in, cover, o, j));
  }
  double total = 0;
  for (int64_t j = 0; j < cover.count(); ++j) {
    total += exp_below(integer_at<T>(in, cover, o, j), greatest);
  }
  return exact_log_sum_exp(greatest, total);
}

// Means, norms and logarithms.
template <typename T>
T reduce_exactly(const TensorView& in, const Cover& cover, int64_t o, Kind kind) {
  const bool is_log = kind == Kind::kLogSum || kind == Kind::kLogSumExp;
  if (cover.count() == 0) return is_log ? std::numeric_limits<T>::lowest() : T(0);
  if (kind == Kind::kLogSumExp) return exact_log_sum_exp_of<T>(in, cover, o);
  WideSum sum = 0;
  SquareSum squares;
  for (int64_t j = 0; j < cover.count(); ++j) {
    const T x = integer_at<T>(in, cover, o, j);
    sum += x;
    squares.add(x);
  }
  if (kind == Kind::kMean) return exact_mean<T>(sum, cover.count());
  return kind == Kind::kL2 ? exact_norm<T>(squares) : exact_log<T>(sum);
}

// A result of the widest type of its kind, as near as the element type comes.
Number reduce_exactly(const TensorView& in, const Cover& cover, int64_t o, Kind kind) {
  const int64_t bits = 8 * static_cast<int64_t>(element_size_bytes(in.element));
  if (kSignedIntTypes.contains(in.element)) {
    const int64_t highest = INT64_MAX >> (64 - bits);
    const auto exact = reduce_exactly<int64_t>(in, cover, o, kind);
    return Number::of_int(std::clamp(exact, -highest - 1, highest));
  }
  return Number::of_uint(
      std::min(reduce_exactly<uint64_t>(in, cover, o, kind), UINT64_MAX >> (64 - bits)));
}

double reduce_log_sum_exp(const TensorView& in, const Cover& cover, int64_t o) {
  const double greatest = reduce_extreme(in, cover, o, true).to_double();
  if (std::isinf(greatest)) return greatest;  // nothing but -inf, or an inf
  double total = 0;
  for (int64_t j = 0; j < cover.count(); ++j) {
    total += std::exp(load_number(in, cover.position(o, j)).to_double() - greatest);
  }
  return greatest + std::log(total);
}

double reduce_floats(const TensorView& in, const Cover& cover, int64_t o, Kind kind) {
  double total = kind == Kind::kProd ? 1 : 0;
  for (int64_t j = 0; j < cover.count(); ++j) {
    const double x = load_number(in, cover.position(o, j)).to_double();
    switch (kind) {
      case Kind::kL1:
        total += std::fabs(x);
        break;
      case Kind::kL2:
      case Kind::kSumSquare:
        total += x * x;
        break;
      case Kind::kProd:
        total *= x;
        break;
      default:
        total += x;
        break;
    }
  }
  switch (kind) {
    case Kind::kL2:
      return std::sqrt(total);
    case Kind::kLogSum:
      return std::log(total);
    case Kind::kMean:
      return total / static_cast<double>(cover.count());
    default:
      return total;
  }
}

Number reduce_one(const TensorView& in, const Cover& cover, int64_t o, Kind kind) {
  if (kind == Kind::kMax || kind == Kind::kMin) {
    return reduce_extreme(in, cover, o, kind == Kind::kMax);
  }
  if (kFloatTypes.contains(in.element)) {
    return Number::of_double(kind == Kind::kLogSumExp ? reduce_log_sum_exp(in, cover, o)
                                                      : reduce_floats(in, cover, o, kind));
  }
  const bool wraps =
      kind == Kind::kL1 || kind == Kind::kProd || kind == Kind::kSum || kind == Kind::kSumSquare;
  return wraps ? reduce_integers(in, cover, o, kind) : reduce_exactly(in, cover, o, kind);
}

bool run_reduce(const KernelArgs& args) {
  const auto& state = *static_cast<const ReduceState*>(args.state);
  const TensorView& in = args.inputs[0];
  const TensorView& out = args.outputs[0];
  Result<uint32_t> mask =
      state.axes.mask(in.rank, args.has_input(1) ? args.inputs[1] : TensorView());
  if (!mask.is_ok()) return args.fail(mask.take_status());
  const int64_t count = out.count();
  const Cover cover(in, *mask);
  EDDY_DCHECK(count == 0 || count * cover.count() == in.count()) << "elements fall out of groups";
  for (int64_t o = 0; o < count; ++o) {
    store_number(out, o, reduce_one(in, cover, o, state.kind));
  }
  return true;
}

Status check_numbers(const KernelInit& init) {
  const ElementType element = init.inputs[0].tensor.element;
  if (kNumberTypes.contains(element)) return Status::ok();
  return unsupported(std::string(element_type_name(element)) +
                     " is not supported by the reference kernel of " + init.op.name);
}

Result<BoundKernel> bind_reduce(const KernelInit& init) {
  EDDY_RETURN_IF_ERROR(check_numbers(init));
  auto state = std::make_unique<ReduceState>();
  for (const Row& row : kRows) {
    if (row.name == init.op.name) state->kind = row.kind;
  }
  EDDY_ASSIGN_OR_RETURN(state->axes, ReduceAxes::of(init));
  return BoundKernel{.run = run_reduce, .state = std::move(state)};
}

struct ArgState : KernelState {
  bool greatest = true;
  bool takes_last = false;
  int64_t axis = 0;
};

// The first (or last) place of the greatest (or least) element; a NaN counts as more extreme than
// any number.
bool run_arg(const KernelArgs& args) {
  const auto& state = *static_cast<const ArgState*>(args.state);
  const TensorView& in = args.inputs[0];
  const AxisSplit split = split_at_axis(in.shape(), state.axis);
  auto* out = args.outputs[0].mutable_as<int64_t>();
  const auto beats = [&](const Number& a, const Number& b) {
    if (is_float(a) && std::isnan(b.float_value)) return false;
    if (is_float(a) && std::isnan(a.float_value)) return true;
    return state.greatest ? is_less(b, a) : is_less(a, b);
  };
  for (int64_t o = 0; o < split.outer * split.inner; ++o) {
    const int64_t start = o / split.inner * split.count * split.inner + o % split.inner;
    int64_t best = 0;
    for (int64_t j = 1; j < split.count; ++j) {
      const Number champion = load_number(in, start + best * split.inner);
      const Number next = load_number(in, start + j * split.inner);
      if (beats(next, champion) || (state.takes_last && !beats(champion, next))) best = j;
    }
    out[o] = best;
  }
  return true;
}

Result<BoundKernel> bind_arg(const KernelInit& init) {
  EDDY_RETURN_IF_ERROR(check_numbers(init));
  auto state = std::make_unique<ArgState>();
  state->greatest = init.op.name == "ArgMax";
  state->takes_last = init.attributes.get_int("select_last_index", 0) != 0;
  state->axis = init.attributes.get_int("axis", 0);
  return BoundKernel{.run = run_arg, .state = std::move(state)};
}

}  // namespace

void add_reduction_reference(KernelRegistry& registry) {
  for (const Row& row : kRows) {
    registry.add({.op = row.name, .bind = bind_reduce, .provider = "reference"});
  }
  for (std::string_view name : {"ArgMax", "ArgMin"}) {
    registry.add({.op = name, .bind = bind_arg, .provider = "reference"});
  }
}

}  // namespace eddy
