// ReduceMean, ReduceL2, ReduceLogSum and ReduceLogSumExp of int32 and int64: rows are gathered into
// exact totals in scratch memory (ops/reference/parts/exact_integer.h), which are then cut.
#include <limits>
#include <string>

#include "graph/base/check.h"
#include "ops/cpu/elementwise.h"
#include "ops/cpu/families.h"
#include "ops/cpu/reduce_groups.h"
#include "ops/reference/parts/axes.h"
#include "ops/reference/parts/exact_integer.h"

namespace eddy {
namespace {

using namespace cpu;

struct ExactState : KernelState {
  ReduceAxes axes;
};

// Adds each element to the total of its place: add(total, element, place).
template <typename T, typename Total, typename Add>
void gather(const Groups& groups, const T* in, const Total& none, Total* totals, const Add& add) {
  groups.visit_rows([&](int64_t at, int64_t place, bool is_first) {
    const T* const row = in + at;
    const int64_t count = groups.row().count;
    if (groups.row().is_reduced) {
      Total total = is_first ? none : totals[place];
      for (int64_t i = 0; i < count; ++i) add(total, row[i], place);
      totals[place] = total;
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      Total total = is_first ? none : totals[place + i];
      add(total, row[i], place + i);
      totals[place + i] = total;
    }
  });
}

// What the four have in common: totals of one type for `count` outputs, made into results.
struct Reduction {
  const Groups& groups;
  const KernelArgs& args;
  int64_t count;

  template <typename Total>
  Total* totals() const {
    return static_cast<Total*>(args.scratch->reserve(static_cast<size_t>(count) * sizeof(Total)));
  }
  template <typename T>
  const T* in() const {
    return args.inputs[0].as<T>();
  }
  template <typename T>
  T* out() const {
    return args.outputs[0].mutable_as<T>();
  }
  bool no_memory() const { return args.fail(resource_exhausted("no memory to reduce in")); }
};

struct Mean {
  static constexpr bool kIsLog = false;
  template <typename T>
  static bool reduce(const Reduction& r) {
    auto* const sums = r.totals<WideSum>();
    if (sums == nullptr) return r.no_memory();
    gather(r.groups, r.in<T>(), WideSum(0), sums, [](WideSum& sum, T x, int64_t) { sum += x; });
    for (int64_t i = 0; i < r.count; ++i) {
      r.out<T>()[i] = exact_mean<T>(sums[i], r.groups.reduced_count);
    }
    return true;
  }
};

struct Norm {
  static constexpr bool kIsLog = false;
  template <typename T>
  static bool reduce(const Reduction& r) {
    auto* const sums = r.totals<SquareSum>();
    if (sums == nullptr) return r.no_memory();
    gather(r.groups, r.in<T>(), SquareSum(), sums,
           [](SquareSum& sum, T x, int64_t) { sum.add(x); });
    for (int64_t i = 0; i < r.count; ++i) r.out<T>()[i] = exact_norm<T>(sums[i]);
    return true;
  }
};

struct LogSum {
  static constexpr bool kIsLog = true;
  template <typename T>
  static bool reduce(const Reduction& r) {
    auto* const sums = r.totals<WideSum>();
    if (sums == nullptr) return r.no_memory();
    gather(r.groups, r.in<T>(), WideSum(0), sums, [](WideSum& sum, T x, int64_t) { sum += x; });
    for (int64_t i = 0; i < r.count; ++i) r.out<T>()[i] = exact_log<T>(sums[i]);
    return true;
  }
};

struct LogSumExp {
  static constexpr bool kIsLog = true;
  template <typename T>
  static bool reduce(const Reduction& r) {
    auto* const sums = r.totals<double>();
    if (sums == nullptr) return r.no_memory();
    T* const greatest = r.out<T>();
    gather(r.groups, r.in<T>(), std::numeric_limits<T>::lowest(), greatest,
           [](T& most, T x, int64_t) { most = std::max(most, x); });
    gather(r.groups, r.in<T>(), 0.0, sums,
           [greatest](double& sum, T x, int64_t place) { sum += exp_below(x, greatest[place]); });
    for (int64_t i = 0; i < r.count; ++i) greatest[i] = exact_log_sum_exp(greatest[i], sums[i]);
    return true;
  }
};

template <typename Kind, typename T>
bool run_exact(const KernelArgs& args) {
  const auto& state = *static_cast<const ExactState*>(args.state);
  const TensorView& in = args.inputs[0];
  Result<uint32_t> mask =
      state.axes.mask(in.rank, args.has_input(1) ? args.inputs[1] : TensorView());
  if (!mask.is_ok()) return args.fail(mask.take_status());
  const int64_t count = args.outputs[0].count();
  if (count == 0) return true;
  const Groups groups(in.shape(), *mask);
  EDDY_DCHECK(count * groups.reduced_count == in.count()) << "elements fall out of groups";
  if (groups.reduced_count == 0) {
    std::fill_n(args.outputs[0].mutable_as<T>(), count,
                Kind::kIsLog ? std::numeric_limits<T>::lowest() : T(0));
    return true;
  }
  return Kind::template reduce<T>({groups, args, count});
}

template <typename Kind>
Result<BoundKernel> bind_exact(const KernelInit& init) {
  const ElementType element = init.inputs[0].tensor.element;
  BoundKernel kernel;
  if (element == ElementType::kInt32) kernel.run = run_exact<Kind, int32_t>;
  if (element == ElementType::kInt64) kernel.run = run_exact<Kind, int64_t>;
  if (kernel.run == nullptr) return no_fast_kernel(init);
  auto state = std::make_unique<ExactState>();
  EDDY_ASSIGN_OR_RETURN(state->axes, ReduceAxes::of(init));
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_exact_reduction_cpu(KernelRegistry& registry) {
  registry.add({.op = "ReduceMean", .bind = bind_exact<Mean>});
  registry.add({.op = "ReduceL2", .bind = bind_exact<Norm>});
  registry.add({.op = "ReduceLogSum", .bind = bind_exact<LogSum>});
  registry.add({.op = "ReduceLogSumExp", .bind = bind_exact<LogSumExp>});
}

}  // namespace eddy
