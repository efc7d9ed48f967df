#include "ops/reference/windows/channels_last.h"

#include <array>
#include <optional>

#include "graph/base/check.h"
#include "ops/reference/parts/copy_elements.h"

namespace eddy {
namespace {

constexpr size_t kMostInputs = 4;

struct ChannelsLastState : KernelState {
  BoundKernel plain;
};

enum class To : uint8_t { kFirst, kLast };

// `first` is [n, c, h, w], `last` the same image.
void turn_over(const TensorView& first, const TensorView& last, To to) {
  const int64_t size = first.dims[2] * first.dims[3], channels = first.dims[1];
  for (int64_t n = 0; n < first.dims[0]; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t p = 0; p < size; ++p) {
        const int64_t in_first = (n * channels + c) * size + p;
        const int64_t in_last = (n * size + p) * channels + c;
        if (to == To::kFirst) copy_elements(last, in_last, first, in_first, 1);
        if (to == To::kLast) copy_elements(first, in_first, last, in_last, 1);
      }
    }
  }
}

size_t padded_bytes(const TensorView& view) { return (view.size_bytes() + 63) / 64 * 64; }

bool run_turned_over(const KernelArgs& args) {
  const BoundKernel& plain = static_cast<const ChannelsLastState&>(*args.state).plain;
  EDDY_CHECK(args.num_inputs <= kMostInputs) << args.num_inputs << " inputs";
  size_t bytes = padded_bytes(args.outputs[0]);
  for (uint32_t i = 0; i < args.num_inputs; ++i) {
    if (args.has_input(i)) bytes += padded_bytes(args.inputs[i]);
  }
  auto* memory = static_cast<std::byte*>(args.scratch->reserve(bytes + 64));
  if (memory == nullptr) return args.fail(resource_exhausted("no memory to turn images over"));
  const auto turned = [&](const TensorView& last, std::optional<ChannelsFirst>& sizes) {
    sizes.emplace(last);
    const TensorView first = sizes->view(memory);
    memory += padded_bytes(last);
    return first;
  };
  std::array<TensorView, kMostInputs> inputs;
  std::array<std::optional<ChannelsFirst>, kMostInputs> sizes;
  for (uint32_t i = 0; i < args.num_inputs; ++i) {
    inputs[i] = args.inputs[i];
    if (!args.has_input(i) || args.inputs[i].rank != 4) continue;
    inputs[i] = turned(args.inputs[i], sizes[i]);
    turn_over(inputs[i], args.inputs[i], To::kFirst);
  }
  std::optional<ChannelsFirst> output_sizes;
  TensorView output = turned(args.outputs[0], output_sizes);
  KernelArgs own = args;
  own.inputs = inputs.data();
  own.outputs = &output;
  own.state = plain.state.get();
  own.scratch = nullptr;  // it is in use; plain kernels of images need none
  if (!plain.run(own)) return false;
  turn_over(output, args.outputs[0], To::kLast);
  return true;
}

}  // namespace

BindFunction channels_last(BindFunction plain) {
  return [plain = std::move(plain)](const KernelInit& init) -> Result<BoundKernel> {
    auto state = std::make_unique<ChannelsLastState>();
    EDDY_ASSIGN_OR_RETURN(state->plain, plain(init));
    EDDY_CHECK(state->plain.run != nullptr) << init.op.name << " is no dense kernel";
    BoundKernel kernel;
    kernel.run = run_turned_over;
    kernel.state = std::move(state);
    return kernel;
  };
}

}  // namespace eddy
