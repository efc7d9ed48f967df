#include "ops/reference/windows/image_order.h"

#include <array>
#include <optional>

#include "graph/base/check.h"
#include "ops/reference/parts/copy_elements.h"

namespace eddy {
namespace {

constexpr size_t kMostInputs = 4;

struct OrderedState : KernelState {
  ImageOrder order;
  BoundKernel plain;
};

enum class To : uint8_t { kPlain, kOrdered };

// `plain` is [n, c, h, w], `ordered` the same image.
void turn_over(const TensorView& plain, const TensorView& ordered, ImageOrder order, To to) {
  const int64_t images = plain.dims[0], channels = plain.dims[1];
  const int64_t size = plain.dims[2] * plain.dims[3];
  const bool is_swapped = order == ImageOrder::kSwapped;
  for (int64_t n = 0; n < images; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t p = 0; p < size; ++p) {
        const int64_t in_plain = (n * channels + c) * size + p;
        const int64_t in_ordered =
            is_swapped ? (c * images + n) * size + p : (n * size + p) * channels + c;
        if (to == To::kPlain) copy_elements(ordered, in_ordered, plain, in_plain, 1);
        if (to == To::kOrdered) copy_elements(plain, in_plain, ordered, in_ordered, 1);
      }
    }
  }
}

size_t padded_bytes(const TensorView& view) { return (view.size_bytes() + 63) / 64 * 64; }

bool run_turned_over(const KernelArgs& args) {
  const auto& state = static_cast<const OrderedState&>(*args.state);
  const BoundKernel& plain = state.plain;
  EDDY_CHECK(args.num_inputs <= kMostInputs) << args.num_inputs << " inputs";
  size_t bytes = padded_bytes(args.outputs[0]);
  for (uint32_t i = 0; i < args.num_inputs; ++i) {
    if (args.has_input(i)) bytes += padded_bytes(args.inputs[i]);
  }
  auto* memory = static_cast<std::byte*>(args.scratch->reserve(bytes + 64));
  if (memory == nullptr) return args.fail(resource_exhausted("no memory to turn images over"));
  const auto turned = [&](const TensorView& ordered, std::optional<TurnedImage>& sizes) {
    sizes.emplace(ordered, state.order);
    const TensorView view = sizes->view(memory);
    memory += padded_bytes(ordered);
    return view;
  };
  std::array<TensorView, kMostInputs> inputs;
  std::array<std::optional<TurnedImage>, kMostInputs> sizes;
  for (uint32_t i = 0; i < args.num_inputs; ++i) {
    inputs[i] = args.inputs[i];
    if (!args.has_input(i) || args.inputs[i].rank != 4) continue;
    inputs[i] = turned(args.inputs[i], sizes[i]);
    turn_over(inputs[i], args.inputs[i], state.order, To::kPlain);
  }
  std::optional<TurnedImage> output_sizes;
  TensorView output = turned(args.outputs[0], output_sizes);
  KernelArgs own = args;
  own.inputs = inputs.data();
  own.outputs = &output;
  own.state = plain.state.get();
  own.scratch = nullptr;  // it is in use; plain kernels of images need none
  if (!plain.run(own)) return false;
  turn_over(output, args.outputs[0], state.order, To::kOrdered);
  return true;
}

}  // namespace

BindFunction in_order(ImageOrder order, BindFunction plain) {
  return [order, plain = std::move(plain)](const KernelInit& init) -> Result<BoundKernel> {
    auto state = std::make_unique<OrderedState>();
    state->order = order;
    EDDY_ASSIGN_OR_RETURN(state->plain, plain(init));
    EDDY_CHECK(state->plain.run != nullptr) << init.op.name << " is no dense kernel";
    BoundKernel kernel;
    kernel.run = run_turned_over;
    kernel.state = std::move(state);
    return kernel;
  };
}

}  // namespace eddy
