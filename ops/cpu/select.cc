// Where, Cast and CastLike.
#include "graph/base/check.h"
#include "ops/cpu/broadcast_plan.h"
#include "ops/cpu/elementwise.h"

namespace eddy {
namespace {

using namespace cpu;

struct SelectState : KernelState {
  SelectLoop loop = nullptr;
  int64_t size_bytes = 0;
  BroadcastPlan plan;  // where all shapes are known
};

void run_plan(const SelectState& s, const BroadcastPlan& plan, const KernelArgs& args) {
  const int64_t count = plan.row_count();
  EDDY_DCHECK(plan.num_inputs == 3) << plan.num_inputs << " inputs of Where";
  unsigned single = 0;
  for (int i = 0; i < 3; ++i) {
    if (plan.row_stride(i) == 0) single |= 1u << i;
  }
  const auto* condition = args.inputs[0].as<bool>();
  const auto* x = args.inputs[1].as<std::byte>();
  const auto* y = args.inputs[2].as<std::byte>();
  auto* out = args.outputs[0].mutable_as<std::byte>();
  for_each_row(plan, [&](const auto& offsets, int64_t out_offset) {
    s.loop(condition + offsets[0], x + offsets[1] * s.size_bytes, y + offsets[2] * s.size_bytes,
           out + out_offset * s.size_bytes, count, single);
  });
}

bool run_planned(const KernelArgs& args) {
  const auto& s = *static_cast<const SelectState*>(args.state);
  run_plan(s, s.plan, args);
  return true;
}

bool run_any(const KernelArgs& args) {
  const auto& s = *static_cast<const SelectState*>(args.state);
  const Dims inputs[3] = {Dims(args.inputs[0].shape()), Dims(args.inputs[1].shape()),
                          Dims(args.inputs[2].shape())};
  run_plan(s, plan_broadcast(Dims(args.outputs[0].shape()), inputs), args);
  return true;
}

Result<BoundKernel> bind_where(const KernelInit& init) {
  EDDY_CHECK(init.inputs.size() == 3) << init.inputs.size() << " inputs of Where";
  const ElementType element = init.inputs[1].tensor.element;
  const size_t size_bytes = element_size_bytes(element);
  auto state = std::make_unique<SelectState>();
  state->size_bytes = static_cast<int64_t>(size_bytes);
  const LoopSet& loops = loop_set();
  state->loop = element == ElementType::kString ? nullptr
                : size_bytes == 1               ? loops.select_1
                : size_bytes == 4               ? loops.select_4
                : size_bytes == 8               ? loops.select_8
                                                : nullptr;
  if (state->loop == nullptr) {
    return unsupported(std::string(element_type_name(element)) +
                       " is not supported by the CPU kernel of Where");
  }
  bool is_known = true;
  bool is_single = true;
  for (const ValueType& input : init.inputs) {
    is_known = is_known && known_count(input) >= 0;
    is_single = is_single && known_count(input) == 1;
  }
  BoundKernel kernel;
  kernel.run = is_single ? single_select(size_bytes) : is_known ? run_planned : run_any;
  if (is_known) {
    const Dims inputs[3] = {init.inputs[0].tensor.dims, init.inputs[1].tensor.dims,
                            init.inputs[2].tensor.dims};
    state->plan = plan_broadcast(init.outputs[0].tensor.dims, inputs);
  }
  kernel.state = std::move(state);
  return kernel;
}

struct CastState : KernelState {
  CastLoop loop = nullptr;
};

bool run_cast(const KernelArgs& args) {
  EDDY_DCHECK(args.inputs[0].count() == args.outputs[0].count()) << "elements come or go";
  static_cast<const CastState*>(args.state)
      ->loop(args.inputs[0].data, args.outputs[0].data, args.outputs[0].count());
  return true;
}

Result<BoundKernel> bind_cast(const KernelInit& init) {
  const std::optional<LoopType> from = loop_type(init.inputs[0].tensor.element);
  const std::optional<LoopType> to = loop_type(init.outputs[0].tensor.element);
  if (!from || !to) return no_fast_kernel(init);
  auto state = std::make_unique<CastState>();
  state->loop = loop_set().cast[static_cast<int>(*from)][static_cast<int>(*to)];
  BoundKernel kernel;
  kernel.run = run_cast;
  if (known_count(init.outputs[0]) == 1 && single_cast(*from, *to) != nullptr) {
    kernel.run = single_cast(*from, *to);
  }
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_select_cpu(KernelRegistry& registry) {
  registry.add({.op = "Where", .bind = bind_where});
  registry.add({.op = "Cast", .bind = bind_cast});
  registry.add({.op = "CastLike", .bind = bind_cast});
}

}  // namespace eddy
