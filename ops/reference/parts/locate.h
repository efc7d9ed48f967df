// bind_locate: reference kernels for operators that move elements. Such an operator is one
// function that returns, for every element of output 0, which element of an input it copies; the
// rest (types, fill values, the loop) is shared.
//
//   bool locate_transpose(const KernelArgs& args, int64_t* sources);
//
// Threads and errors: as KernelFunction. Cost: 8 bytes of scratch for each output element.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include "graph/base/check.h"
#include "ops/reference/parts/list_source.h"
#include "ops/reference/parts/storage.h"

namespace eddy {

// The output element is not copied but zero (or the state's fill input).
inline constexpr int64_t kFill = -1;

// One operator's parameters; each uses those it has.
struct LocateState : KernelState {
  std::array<ListSource, 4> lists;  // in the order of the operator's inputs or attributes
  int64_t axis = 0;
  int64_t other = 0;  // batch_dims, block size, diagonal
  bool flag = false;  // CRD, upper
  PadMode mode = PadMode::kConstant;
  uint32_t source_input = 0;         // the input whose elements are copied
  uint32_t fill_input = UINT32_MAX;  // the input whose element 0 fills
  std::array<uint64_t, 2> fill{};    // else these bytes do (an empty string, for strings)
  TensorView constants;              // copied from instead of an input, unless omitted
  uint64_t constant_bytes = 0;       // what `constants` views where bind made it
};

// Fills sources[0 .. outputs[0].count()) with element indices or kFill; false after args.fail().
using LocateFunction = bool (*)(const KernelArgs& args, int64_t* sources);

inline const LocateState& locate_state(const KernelArgs& args) {
  return static_cast<const LocateState&>(*args.state);
}

// Counts through the coordinates of a shape in row-major order.
class Coordinates {
 public:
  explicit Coordinates(const TensorView& view) : view_(view) {}
  int64_t operator[](int axis) const { return at_[static_cast<size_t>(axis)]; }
  void next() {
    for (int axis = view_.rank - 1; axis >= 0; --axis) {
      if (++at_[static_cast<size_t>(axis)] < view_.dims[axis]) return;
      at_[static_cast<size_t>(axis)] = 0;
    }
  }

 private:
  const TensorView& view_;
  std::array<int64_t, kMaxRank> at_{};
};

// Row-major strides in elements.
inline std::array<int64_t, kMaxRank> strides_of(const TensorView& view) {
  std::array<int64_t, kMaxRank> strides{};
  int64_t stride = 1;
  for (int axis = view.rank - 1; axis >= 0; --axis) {
    strides[static_cast<size_t>(axis)] = stride;
    stride *= view.dims[axis];
  }
  return strides;
}

template <typename T, LocateFunction locate>
bool run_locate(const KernelArgs& args) {
  const LocateState& state = locate_state(args);
  const int64_t count = args.outputs[0].count();
  auto* sources = static_cast<int64_t*>(args.scratch->reserve(static_cast<size_t>(count) * 8 + 1));
  if (sources == nullptr) return args.fail(resource_exhausted("out of scratch memory"));
  if (!locate(args, sources)) return false;
  const TensorView& from =
      state.constants.is_omitted() ? args.inputs[state.source_input] : state.constants;
  const T* in = from.as<T>();
  EDDY_DCHECK(std::all_of(sources, sources + count, [&](int64_t at) {
    return at == kFill || (at >= 0 && at < from.count());
  })) << "an element is taken from outside its tensor";
  T* out = args.outputs[0].mutable_as<T>();
  T fill{};
  if (args.has_input(state.fill_input)) {
    fill = args.inputs[state.fill_input].as<T>()[0];
  } else if constexpr (!std::is_same_v<T, std::string>) {
    std::memcpy(&fill, state.fill.data(), sizeof(T));
  }
  for (int64_t i = 0; i < count; ++i) out[i] = sources[i] == kFill ? fill : in[sources[i]];
  return true;
}

template <LocateFunction locate>
struct LocateKernel {
  template <typename T>
  struct For {
    static bool run(const KernelArgs& args) { return run_locate<T, locate>(args); }
  };
};

template <LocateFunction locate>
Result<BoundKernel> bind_locate(const KernelInit& init, std::unique_ptr<LocateState> state) {
  const ElementType element = init.outputs[0].tensor.element;
  return bind_storage<LocateKernel<locate>::template For>(init, element, std::move(state));
}

}  // namespace eddy
