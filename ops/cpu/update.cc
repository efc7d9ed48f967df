// UpdateParameter of floats and doubles: one pass over memory, in tiles of elements.
#include "graph/base/check.h"
#include "ops/cpu/elementwise.h"
#include "ops/cpu/tiles.h"
#include "ops/reference/parts/outputs.h"
#include "ops/schema/eddy/update_parameter.h"

namespace eddy {
namespace {

using namespace cpu;
using In = UpdateInputs;

constexpr int64_t kTileWork = kTileElements / 2;  // elements, of which each reads up to four

struct UpdateState : KernelState {
  UpdateForm form;
  UpdateLoop loop = nullptr;
};

Tiles tiles_of(const KernelArgs& args) {
  return Tiles::of(args.inputs[In::kX].count(), 1, kTileWork);
}

bool run_elements(const KernelArgs& args, int64_t first, int64_t end) {
  const auto& state = static_cast<const UpdateState&>(*args.state);
  const auto size = static_cast<int64_t>(element_size_bytes(args.inputs[In::kX].element));
  const auto input = [&](uint32_t i) {
    return static_cast<const std::byte*>(args.inputs[i].data) + first * size;
  };
  UpdateCall call{};
  call.form = &state.form;
  call.rate = args.inputs[In::kRate].data;
  call.share_or_null = args.has_input(In::kShare) ? args.inputs[In::kShare].data : nullptr;
  call.x = input(In::kX);
  call.gradient = input(In::kGradient);
  call.count = end - first;
  const auto states = static_cast<uint32_t>(num_states(state.form.rule));
  for (uint32_t i = 0; i <= states; ++i) {
    if (!has_output(args, i)) {
      return args.fail(invalid_argument("UpdateParameter needs all of its outputs"));
    }
    EDDY_DCHECK(args.outputs[i].count() >= end) << "elements up to " << end;
    void* const to = static_cast<std::byte*>(args.outputs[i].data) + first * size;
    (i == 0 ? call.next_x : call.next_states[i - 1]) = to;
    if (i > 0) call.states[i - 1] = input(In::kStates + i - 1);
  }
  state.loop(call);
  return true;
}

Result<BoundKernel> bind_update(const KernelInit& init) {
  const ElementType element = init.inputs[In::kX].tensor.element;
  auto state = std::make_unique<UpdateState>();
  EDDY_ASSIGN_OR_RETURN(state->form, parse_update(init.attributes));
  const UpdateLoops& loops = loop_set().update[static_cast<size_t>(state->form.rule)];
  if (element == ElementType::kFloat) state->loop = loops.of_float;
  if (element == ElementType::kDouble) state->loop = loops.of_double;
  if (state->loop == nullptr) return no_fast_kernel(init);
  BoundKernel kernel;
  kernel.run = run_all_units<tiles_of, run_elements>;
  if (fills_tiles(init.inputs[In::kX], kTileWork)) set_tiles<tiles_of, run_elements>(kernel);
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_update_cpu(KernelRegistry& registry) {
  registry.add({.op = "UpdateParameter",
                .bind = bind_update,
                .provider = "cpu",
                .domain = "eddy",
                .has_tiles = true});
}

}  // namespace eddy
