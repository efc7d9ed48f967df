// TopK, CumSum and CumProd.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/base/check.h"
#include "ops/reference/movement/indexing_parts.h"
#include "ops/reference/parts/axes.h"
#include "ops/reference/parts/typed_kernel.h"
#include "ops/schema/rules/index_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

struct OrderState : KernelState {
  int64_t axis = -1;
  bool largest = true;
  bool exclusive = false;
  bool reverse = false;
};

// A total order: NaN is greater than every number.
template <typename T>
bool is_greater(T a, T b) {
  if constexpr (is_floating<T>) {
    const double x = static_cast<double>(a), y = static_cast<double>(b);
    if (std::isnan(x)) return !std::isnan(y);
    return x > y;
  } else {
    return a > b;
  }
}

// Equal elements keep their order: the smaller index comes first.
template <typename T>
struct TopK {
  static bool run(const KernelArgs& args) {
    const auto& state = static_cast<const OrderState&>(*args.state);
    const TensorView& in = args.inputs[0];
    const int axis = static_cast<int>(state.axis < 0 ? state.axis + in.rank : state.axis);
    const AxisSplit lines = split_at_axis(in.shape(), axis);
    const int64_t k = args.outputs[0].dims[axis];
    EDDY_DCHECK(k >= 0 && k <= lines.count) << k << " of " << lines.count << " elements";
    auto* order = static_cast<int64_t*>(
        args.scratch->reserve(static_cast<size_t>(lines.count) * sizeof(int64_t) + 1));
    if (order == nullptr) return args.fail(resource_exhausted("out of scratch memory"));
    for (int64_t line = 0; line < lines.outer * lines.inner; ++line) {
      const int64_t o = line / lines.inner, i = line % lines.inner;
      const T* from = in.as<T>() + o * lines.count * lines.inner + i;
      std::iota(order, order + lines.count, int64_t{0});
      std::sort(order, order + lines.count, [&](int64_t a, int64_t b) {
        const T x = from[a * lines.inner], y = from[b * lines.inner];
        if (state.largest ? is_greater(x, y) : is_greater(y, x)) return true;
        if (state.largest ? is_greater(y, x) : is_greater(x, y)) return false;
        return a < b;
      });
      for (int64_t j = 0; j < k; ++j) {
        const int64_t to = (o * k + j) * lines.inner + i;
        args.outputs[0].mutable_as<T>()[to] = from[order[j] * lines.inner];
        if (args.num_outputs > 1 && !args.outputs[1].is_omitted())
          args.outputs[1].mutable_as<int64_t>()[to] = order[j];
      }
    }
    return true;
  }
};

Result<BoundKernel> bind_top_k(const KernelInit& init) {
  auto state = std::make_unique<OrderState>();
  state->axis = init.attributes.get_int("axis", -1);
  state->largest = init.attributes.get_int("largest", 1) != 0;
  return bind_typed<TopK, float, double, Float16, Bfloat16, int8_t, int16_t, int32_t, int64_t,
                    uint8_t, uint16_t, uint32_t, uint64_t>(init, 0, std::move(state));
}

template <typename T, bool kIsProduct>
struct Cumulate {
  static bool run(const KernelArgs& args) {
    const auto& state = static_cast<const OrderState&>(*args.state);
    const TensorView& in = args.inputs[0];
    int64_t given = 0;
    Status status = read_int(args.inputs[1], "axis", given);
    if (!status.is_ok()) return args.fail(std::move(status));
    Result<int> axis = normalize_axis(given, in.rank);
    if (!axis.is_ok()) return args.fail(axis.take_status());
    const AxisSplit lines = split_at_axis(in.shape(), *axis);
    for (int64_t line = 0; line < lines.outer * lines.inner; ++line) {
      const int64_t o = line / lines.inner, i = line % lines.inner;
      Accumulator<T> sum = kIsProduct ? 1 : 0;
      for (int64_t j = 0; j < lines.count; ++j) {
        const int64_t step = state.reverse ? lines.count - 1 - j : j;
        const int64_t at = (o * lines.count + step) * lines.inner + i;
        const Accumulator<T> term = accumulate_from(in.as<T>()[at]);
        const Accumulator<T> before = sum;
        sum = kIsProduct ? sum * term : sum + term;
        args.outputs[0].mutable_as<T>()[at] = round_from<T>(state.exclusive ? before : sum);
      }
    }
    return true;
  }
};

template <typename T>
struct CumSum : Cumulate<T, false> {};
template <typename T>
struct CumProd : Cumulate<T, true> {};

template <template <typename> class Kernel>
Result<BoundKernel> bind_cumulate(const KernelInit& init) {
  auto state = std::make_unique<OrderState>();
  state->exclusive = init.attributes.get_int("exclusive", 0) != 0;
  state->reverse = init.attributes.get_int("reverse", 0) != 0;
  return bind_typed<Kernel, float, double, Float16, Bfloat16, int8_t, int16_t, int32_t, int64_t,
                    uint8_t, uint16_t, uint32_t, uint64_t>(init, 0, std::move(state));
}

}  // namespace

void add_indexing_order_reference(KernelRegistry& registry) {
  registry.add({.op = "TopK", .bind = bind_top_k, .provider = "reference"});
  registry.add({.op = "CumSum", .bind = bind_cumulate<CumSum>, .provider = "reference"});
  registry.add({.op = "CumProd", .bind = bind_cumulate<CumProd>, .provider = "reference"});
}

}  // namespace eddy
