// bind_typed: binds the instance of a kernel template that fits an input's element type.
//
//   template <typename T> struct MatMul { static bool run(const KernelArgs& args); };
//   return bind_typed<MatMul, float, double, int32_t>(init, 0, make_state(init));
//
// Accumulator<T> is what sums of T are held in: double for floats, unsigned 64 bits (which wrap)
// for integers.
#pragma once

#include <memory>
#include <string>
#include <type_traits>

#include "graph/ir/half.h"
#include "ops/contract/kernel.h"

namespace eddy {

template <typename T>
inline constexpr bool is_floating =
    std::is_floating_point_v<T> || std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;

template <typename T>
using Accumulator = std::conditional_t<is_floating<T>, double, uint64_t>;

template <typename T>
Accumulator<T> accumulate_from(T value) {
  return static_cast<Accumulator<T>>(value);
}

template <typename T>
T round_from(Accumulator<T> sum) {
  if constexpr (is_floating<T> && !std::is_floating_point_v<T>)
    return T(static_cast<float>(sum));
  else
    return static_cast<T>(sum);
}

// Static, as gcc gives a template whose argument is a template of an unnamed namespace external
// linkage: two files' kernels of one name would silently become one.
template <template <typename> class Kernel, typename... Ts>
static Result<BoundKernel> bind_typed(const KernelInit& init, size_t input,
                                      std::unique_ptr<KernelState> state = nullptr) {
  const ElementType element = init.inputs[input].tensor.element;
  BoundKernel kernel;
  ((element == element_type_of<Ts>() ? void(kernel.run = &Kernel<Ts>::run) : void()), ...);
  if (kernel.run == nullptr) {
    return unsupported(std::string(element_type_name(element)) +
                       " is not supported by the reference kernel of " + init.op.name);
  }
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace eddy
