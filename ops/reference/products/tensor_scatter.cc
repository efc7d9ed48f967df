// TensorScatter: rows of a cache are overwritten by those of an update, from a place of its own for
// each of the batch; circular places begin anew at the cache's end.
#include <algorithm>
#include <string>

#include "ops/reference/families.h"
#include "ops/reference/parts/axes.h"
#include "ops/reference/parts/storage.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

struct ScatterState : KernelState {
  int64_t axis = -2;
  bool is_circular = false;
};

template <typename T>
struct TensorScatter {
  static bool run(const KernelArgs& args) {
    const auto& state = static_cast<const ScatterState&>(*args.state);
    const TensorView &cache = args.inputs[0], &update = args.inputs[1];
    T* out = args.outputs[0].mutable_as<T>();
    if (out != cache.as<T>()) std::copy_n(cache.as<T>(), cache.count(), out);
    const AxisSplit to = split_at_axis(cache.shape(), state.axis);
    const AxisSplit from = split_at_axis(update.shape(), state.axis);
    if (from.count == 0 || to.outer == 0) return true;
    const int64_t each = to.outer / cache.dims[0];  // lines of one of the batch
    for (int64_t line = 0; line < to.outer; ++line) {
      const int64_t b = line / each;
      const int64_t start = args.has_input(2) ? args.inputs[2].as<int64_t>()[b] : 0;
      if (start < 0 || (!state.is_circular && start > to.count - from.count)) {
        return args.fail(run_failed("write_indices[" + std::to_string(b) + "] is " +
                                    std::to_string(start) + ", but " + std::to_string(from.count) +
                                    " rows go into " + std::to_string(to.count)));
      }
      for (int64_t j = 0; j < from.count; ++j) {
        const int64_t place = (start % to.count + j) % to.count;
        std::copy_n(update.as<T>() + (line * from.count + j) * from.inner, from.inner,
                    out + (line * to.count + place) * to.inner);
      }
    }
    return true;
  }
};

Result<BoundKernel> bind_tensor_scatter(const KernelInit& init) {
  auto state = std::make_unique<ScatterState>();
  state->axis = init.attributes.get_int("axis", -2);
  state->is_circular = init.attributes.get_string("mode", "linear") == "circular";
  return bind_storage<TensorScatter>(init, init.inputs[0].tensor.element, std::move(state));
}

}  // namespace

void add_tensor_scatter_reference(KernelRegistry& registry) {
  registry.add({.op = "TensorScatter",
                .since_version = 24,
                .bind = bind_tensor_scatter,
                .provider = "reference"});
}

}  // namespace eddy
