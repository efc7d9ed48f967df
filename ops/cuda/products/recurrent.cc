// The host's half of LSTM, GRU and RNN: one product of all inputs with their weights, then a launch
// for each step (two for a GRU that resets before its linear part).
#include "ops/cuda/products/product_plan.h"
#include "ops/reference/parts/outputs.h"
#include "ops/schema/products/recurrent_rules.h"

namespace eddy {
namespace {

using cuda::RecurrentParams;

struct RecurrentState : KernelState {
  CudaLauncher* launcher = nullptr;
  RecurrentRules rules;
  ProductKernels product;          // of the inputs, in the type of sums
  std::vector<CudaFunction> step;  // one launch each
  size_t sum_bytes = 4;
};

const RecurrentState& state_of(const KernelArgs& args) {
  return *static_cast<const RecurrentState*>(args.state);
}

const void* input_or_null(const KernelArgs& args, uint32_t i) {
  return args.has_input(i) ? args.inputs[i].data : nullptr;
}

// The sizes and strides of either layout; `lengths` stay on the device.
void set_shape(const KernelArgs& args, const RecurrentRules& rules, RecurrentParams& p) {
  const TensorView& x = args.inputs[0];
  p.sequence = x.dims[rules.batch_first ? 1 : 0];
  p.batch = x.dims[rules.batch_first ? 0 : 1];
  p.hidden = args.inputs[2].dims[2];
  p.directions = rules.num_directions;
  const int64_t d = p.directions, h = p.hidden;
  p.x_rows = p.sequence * p.batch;
  p.x_step = rules.batch_first ? 1 : p.batch;
  p.x_batch = rules.batch_first ? p.sequence : 1;
  p.y_direction = rules.batch_first ? h : p.batch * h;
  p.y_step = rules.batch_first ? d * h : d * p.batch * h;
  p.y_batch = rules.batch_first ? p.sequence * d * h : h;
  p.state_batch = rules.batch_first ? d * h : h;
  p.state_direction = rules.batch_first ? h : p.batch * h;
}

void set_rules(const RecurrentRules& rules, RecurrentParams& p) {
  p.first_direction_is_backwards = rules.runs_backwards(0) ? 1 : 0;
  p.has_clip = rules.has_clip ? 1 : 0;
  p.clip = rules.clip;
  p.input_forget = rules.input_forget ? 1 : 0;
  p.linear_before_reset = rules.linear_before_reset ? 1 : 0;
  for (size_t d = 0; d < 2; ++d) {
    for (size_t f = 0; f < kMaxActivations; ++f) {
      const Activation& from = rules.activations[d][f];
      p.activations[d][f] = {static_cast<int32_t>(from.kind), from.alpha, from.beta};
    }
  }
}

bool set_pointers(const KernelArgs& args, RecurrentParams& p) {
  const RecurrentRules& rules = state_of(args).rules;
  const bool is_lstm = rules.kind == RecurrentKind::kLstm;
  p.recurrence = args.inputs[2].data;
  p.bias = input_or_null(args, 3);
  p.lengths = static_cast<const int32_t*>(input_or_null(args, 4));
  p.initial_h = input_or_null(args, 5);
  p.initial_c = is_lstm ? input_or_null(args, 6) : nullptr;
  p.peephole = is_lstm ? input_or_null(args, 7) : nullptr;
  p.y = p.sequence > 0 && has_output(args, 0) ? args.outputs[0].data : nullptr;
  p.y_h = has_output(args, 1) ? args.outputs[1].data : nullptr;
  p.y_c = is_lstm && has_output(args, 2) ? args.outputs[2].data : nullptr;
  return p.lengths == nullptr || (p.fault = cuda::fault_or_null(args)) != nullptr;
}

// Scratch: the inputs' part of the gates, h twice, then c or z and r * h.
bool set_scratch(const KernelArgs& args, RecurrentParams& p) {
  const RecurrentState& state = state_of(args);
  const auto cells = static_cast<size_t>(p.directions * p.batch * p.hidden);
  const auto gates = static_cast<size_t>(p.directions * p.x_rows * p.hidden) *
                     static_cast<size_t>(num_gates(state.rules.kind));
  auto* memory =
      static_cast<std::byte*>(args.scratch->reserve((gates + 4 * cells) * state.sum_bytes + 64));
  if (memory == nullptr) {
    return args.fail(resource_exhausted("no device memory for the gates of " +
                                        std::to_string(p.sequence) + " steps"));
  }
  p.before = memory;
  std::byte* const cell = memory + gates * state.sum_bytes;
  const size_t each = cells * state.sum_bytes;
  p.h = cell;
  if (state.rules.kind == RecurrentKind::kLstm) p.c = cell + 2 * each;
  p.update = cell + 2 * each;
  p.reset_h = cell + 3 * each;
  return true;
}

// X times W transposed, of each direction.
bool multiply_inputs(const KernelArgs& args, const RecurrentParams& p) {
  const RecurrentState& state = state_of(args);
  const int64_t input = args.inputs[0].dims[2];
  const int64_t gates = num_gates(state.rules.kind) * p.hidden;
  ProductPlan plan;
  plan.set_sizes(p.x_rows, gates, input);
  plan.set_a(input, 1);
  plan.set_b(1, input);
  plan.add_batch_axis(p.directions, 0, gates * input, p.x_rows * gates);
  plan.params().out = const_cast<void*>(p.before);
  plan.params().a = args.inputs[0].data;
  plan.params().b = args.inputs[1].data;
  return plan.launch(args, *state.launcher, state.product, false);
}

bool run_recurrent(const KernelArgs& args) {
  const RecurrentState& state = state_of(args);
  RecurrentParams p{};
  set_shape(args, state.rules, p);
  set_rules(state.rules, p);
  if (!set_pointers(args, p)) return false;
  if (p.batch == 0 || p.hidden == 0) return true;
  if (!set_scratch(args, p) || !multiply_inputs(args, p)) return false;
  const uint64_t groups = static_cast<uint64_t>((p.hidden + 7) / 8);
  const uint64_t items = static_cast<uint64_t>(p.directions * p.batch) * groups;
  // Without steps one step is launched all the same: it passes the state on.
  const int64_t num_steps = std::max<int64_t>(p.sequence, 1);
  for (p.step = 0; p.step < num_steps; ++p.step) {
    p.is_last = p.step + 1 == num_steps ? 1 : 0;
    for (CudaFunction function : state.step) {
      if (!cuda::launch_blocks(args, *state.launcher, function, items, p)) return false;
    }
  }
  return true;
}

std::vector<const char*> step_kernels(const RecurrentRules& rules) {
  switch (rules.kind) {
    case RecurrentKind::kLstm:
      return {"LstmStep"};
    case RecurrentKind::kRnn:
      return {"RnnStep"};
    case RecurrentKind::kGru:
      break;
  }
  if (rules.linear_before_reset) return {"GruStep"};
  return {"GruGates", "GruCandidate"};
}

template <RecurrentKind kKind>
Result<BoundKernel> bind_recurrent(const KernelInit& init, CudaLauncher& launcher) {
  auto state = std::make_unique<RecurrentState>();
  state->launcher = &launcher;
  EDDY_RETURN_IF_ERROR(parse_recurrent(kKind, init.attributes, state->rules));
  const std::string suffix = cuda::input_suffix(init);
  for (const char* name : step_kernels(state->rules)) {
    cuda::LaunchState found;
    EDDY_RETURN_IF_ERROR(
        cuda::find_typed_kernel(init, launcher, std::string(name) + "_" + suffix, found));
    state->step.push_back(found.function);
  }
  const ElementType element = init.inputs[0].tensor.element;
  state->sum_bytes = element == ElementType::kDouble ? 8 : 4;
  const bool is_half = element_size_bytes(element) == 2;
  EDDY_RETURN_IF_ERROR(state->product.find(init, launcher, is_half ? "Sums" : "MatMul", suffix));
  const bool has_lengths =
      init.inputs.size() > 4 && init.inputs[4].tensor.element != ElementType::kUndefined;
  return cuda::bound(run_recurrent, std::move(state), has_lengths);
}

}  // namespace

void add_recurrent_cuda(KernelRegistry& registry, CudaLauncher& launcher) {
  cuda::add_kernel(registry, launcher, "LSTM", bind_recurrent<RecurrentKind::kLstm>);
  cuda::add_kernel(registry, launcher, "GRU", bind_recurrent<RecurrentKind::kGru>);
  cuda::add_kernel(registry, launcher, "RNN", bind_recurrent<RecurrentKind::kRnn>);
}

}  // namespace eddy
