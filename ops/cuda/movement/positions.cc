// The host's half of Pad, Tile, Trilu, OneHot, Range, ConstantOfShape: an element's position
// determines its value.
#include <array>
#include <cstring>

#include "graph/base/check.h"
#include "ops/cuda/launch/launch.h"
#include "ops/reference/parts/list_source.h"
#include "ops/reference/parts/locate.h"
#include "ops/reference/parts/number.h"

namespace eddy {
namespace {

using cuda::PadParams;
using cuda::PositionParams;

struct PositionState : cuda::LaunchState {
  std::array<ListSource, 2> lists;  // Pad: pads, axes
  PadMode mode = PadMode::kConstant;
  uint64_t bits = 0;  // Pad's value, ConstantOfShape's
  int64_t axis = -1;
  bool is_upper = true;
};

const PositionState& state_of(const KernelArgs& args) {
  return *static_cast<const PositionState*>(args.state);
}

template <typename Params>
bool launch(const KernelArgs& args, const Params& p) {
  return cuda::launch_threads(args, *state_of(args).launcher, state_of(args).function, p.count, p);
}

// The sizes of a padding; `in` may have fewer axes than the output (Tile's never has).
void fill_pad(const KernelArgs& args, PadParams& p) {
  const TensorView &in = args.inputs[0], &out = args.outputs[0];
  EDDY_DCHECK(in.rank == out.rank) << "ranks " << in.rank << " and " << out.rank;
  const auto strides = strides_of(in);
  p.out = out.data;
  p.in = in.data;
  p.count = cuda::count_of(out);
  p.rank = out.rank;
  for (int d = 0; d < out.rank; ++d) {
    p.dims[d] = static_cast<uint64_t>(out.dims[d]);
    p.sizes[d] = in.dims[d];
    p.strides[d] = strides[static_cast<size_t>(d)];
  }
}

bool run_pad(const KernelArgs& args) {
  const PositionState& state = state_of(args);
  IntList buffers[2];
  const IntList* const pads = state.lists[0].read_or_null(args, buffers[0]);
  const IntList* const axes = state.lists[1].read_or_null(args, buffers[1]);
  if (pads == nullptr || axes == nullptr) return false;
  PadAmounts amounts;
  Status status =
      resolve_pads(*pads, *axes, state.lists[1].is_given(), args.inputs[0].rank, amounts);
  if (!status.is_ok()) return args.fail(std::move(status));
  PadParams p{};
  fill_pad(args, p);
  for (int d = 0; d < p.rank; ++d) p.before[d] = amounts.before[static_cast<size_t>(d)];
  p.mode = static_cast<int32_t>(state.mode);
  p.fill_bits = state.bits;
  if (args.has_input(2)) {
    if (args.inputs[2].count() != 1) {
      return args.fail(invalid_argument("constant_value must have one element"));
    }
    p.fill = args.inputs[2].data;
  }
  return launch(args, p);
}

bool run_tile(const KernelArgs& args) {
  PadParams p{};
  fill_pad(args, p);
  p.mode = static_cast<int32_t>(PadMode::kWrap);
  return launch(args, p);
}

bool run_trilu(const KernelArgs& args) {
  const TensorView& out = args.outputs[0];
  if (args.has_input(1) && args.inputs[1].count() != 1) {
    return args.fail(invalid_argument("k must have one element"));
  }
  PositionParams p{};
  p.out = out.data;
  p.in = args.inputs[0].data;
  p.other = args.has_input(1) ? args.inputs[1].data : nullptr;
  p.count = cuda::count_of(out);
  EDDY_DCHECK(out.rank >= 2) << "a rank of " << out.rank;
  p.rows = out.dims[out.rank - 2];
  p.columns = out.dims[out.rank - 1];
  p.is_upper = state_of(args).is_upper ? 1 : 0;
  return launch(args, p);
}

bool run_one_hot(const KernelArgs& args) {
  const TensorView& out = args.outputs[0];
  if (args.inputs[2].count() != 2) return args.fail(invalid_argument("values must be [off, on]"));
  const int64_t given = state_of(args).axis;
  const int axis = static_cast<int>(given < 0 ? given + out.rank : given);
  EDDY_DCHECK(axis >= 0 && axis < out.rank) << "axis " << axis << " of " << out.rank;
  PositionParams p{};
  p.out = out.data;
  p.in = args.inputs[0].data;
  p.other = args.inputs[2].data;
  p.count = cuda::count_of(out);
  p.depth = out.dims[axis];
  p.inner = 1;
  for (int d = axis + 1; d < out.rank; ++d) p.inner *= out.dims[d];
  return launch(args, p);
}

// Its inputs are host values: its shape depends on them.
bool run_range(const KernelArgs& args) {
  PositionParams p{};
  p.out = args.outputs[0].data;
  p.count = cuda::count_of(args.outputs[0]);
  const size_t bytes = element_size_bytes(args.outputs[0].element);
  EDDY_DCHECK(bytes <= sizeof(p.start)) << "numbers of " << bytes << " bytes";
  std::memcpy(&p.start, args.inputs[0].data, bytes);
  std::memcpy(&p.delta, args.inputs[2].data, bytes);
  return launch(args, p);
}

bool run_fill(const KernelArgs& args) {
  PositionParams p{};
  p.out = args.outputs[0].data;
  p.count = cuda::count_of(args.outputs[0]);
  p.start = state_of(args).bits;
  return launch(args, p);
}

// State with the kernel of this name for elements of the output's size.
Result<std::unique_ptr<PositionState>> make_state(const KernelInit& init, CudaLauncher& launcher,
                                                  const std::string& kernel,
                                                  const std::string& suffix = "") {
  const ElementType element = init.outputs[0].tensor.element;
  const size_t bytes = element_size_bytes(element);
  if (element == ElementType::kString || bytes == 0 || bytes > 8) return cuda::no_cuda_kernel(init);
  auto state = std::make_unique<PositionState>();
  EDDY_RETURN_IF_ERROR(cuda::find_typed_kernel(
      init, launcher, kernel + "_" + std::to_string(bytes) + suffix, *state));
  return state;
}

Result<BoundKernel> bind_pad(const KernelInit& init, CudaLauncher& launcher) {
  EDDY_ASSIGN_OR_RETURN(auto state, make_state(init, launcher, "Pad"));
  EDDY_RETURN_IF_ERROR(parse_pad_mode(init.attributes.get_string("mode", "constant"),
                                      init.opset_version, state->mode));
  EDDY_ASSIGN_OR_RETURN(state->lists[0], ListSource::make(init, 1, "pads"));
  EDDY_ASSIGN_OR_RETURN(state->lists[1], ListSource::make(init, 3, "axes"));
  const ElementType element = init.outputs[0].tensor.element;
  if (init.attributes.has("value") && kNumberTypes.contains(element)) {
    store_number({&state->bits, nullptr, 0, element}, 0,
                 Number::of_double(init.attributes.get_float("value", 0)));
  }
  return cuda::bound(run_pad, std::move(state));
}

Result<BoundKernel> bind_tile(const KernelInit& init, CudaLauncher& launcher) {
  EDDY_ASSIGN_OR_RETURN(auto state, make_state(init, launcher, "Pad"));
  return cuda::bound(run_tile, std::move(state));
}

Result<BoundKernel> bind_trilu(const KernelInit& init, CudaLauncher& launcher) {
  EDDY_ASSIGN_OR_RETURN(auto state, make_state(init, launcher, "Trilu"));
  state->is_upper = init.attributes.get_int("upper", 1) != 0;
  return cuda::bound(run_trilu, std::move(state));
}

Result<BoundKernel> bind_one_hot(const KernelInit& init, CudaLauncher& launcher) {
  EDDY_ASSIGN_OR_RETURN(auto state,
                        make_state(init, launcher, "OneHot", "_" + cuda::input_suffix(init)));
  state->axis = init.attributes.get_int("axis", -1);
  return cuda::bound(run_one_hot, std::move(state));
}

Result<BoundKernel> bind_range(const KernelInit& init, CudaLauncher& launcher) {
  auto state = std::make_unique<PositionState>();
  EDDY_RETURN_IF_ERROR(
      cuda::find_typed_kernel(init, launcher, "Range_" + cuda::input_suffix(init), *state));
  return cuda::bound(run_range, std::move(state));
}

Result<BoundKernel> bind_constant_of_shape(const KernelInit& init, CudaLauncher& launcher) {
  EDDY_ASSIGN_OR_RETURN(auto state, make_state(init, launcher, "Fill"));
  if (const Constant* value = init.attributes.get_tensor_or_null("value")) {
    EDDY_CHECK(element_size_bytes(value->element) <= sizeof(state->bits))
        << "a value of " << element_type_name(value->element);
    std::memcpy(&state->bits, value->data, element_size_bytes(value->element));
  }
  return cuda::bound(run_fill, std::move(state));
}

}  // namespace

void add_positions_cuda(KernelRegistry& registry, CudaLauncher& launcher) {
  cuda::add_kernel(registry, launcher, "Pad", bind_pad);
  cuda::add_kernel(registry, launcher, "Tile", bind_tile);
  cuda::add_kernel(registry, launcher, "Trilu", bind_trilu);
  cuda::add_kernel(registry, launcher, "OneHot", bind_one_hot);
  cuda::add_kernel(registry, launcher, "Range", bind_range);
  cuda::add_kernel(registry, launcher, "ConstantOfShape", bind_constant_of_shape);
}

}  // namespace eddy
