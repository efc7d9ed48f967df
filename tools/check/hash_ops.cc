#include "tools/check/hash_ops.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "graph/base/check.h"

namespace eddy::check {
namespace {

// The attributes of a node that all kernels of this file keep.
struct MixState : KernelState {
  uint64_t id = 0;
  std::vector<int64_t> choices;
  int64_t early = 0;
  int64_t low = 0;
  int64_t range = 1;
};

const MixState& state_of(const KernelState* state) {
  EDDY_DCHECK(state != nullptr) << "a kernel that was not bound";
  return static_cast<const MixState&>(*state);
}

// Element type, shape and every byte, in order.
uint64_t absorb(uint64_t state, const TensorView& view) {
  state = mix(state, static_cast<uint64_t>(view.element) << 32 | static_cast<uint32_t>(view.rank));
  for (int64_t dim : view.shape()) state = mix(state, static_cast<uint64_t>(dim));
  const auto* bytes = view.as<unsigned char>();
  size_t left = view.size_bytes();
  for (; left >= 8; left -= 8, bytes += 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    state = mix(state, word);
  }
  uint64_t tail = 0;
  if (left > 0) std::memcpy(&tail, bytes, left);
  return left > 0 ? mix(state, tail) : state;
}

uint64_t absorb_from(const KernelArgs& args, uint32_t first) {
  uint64_t state = state_of(args.state).id;
  for (uint32_t i = first; i < args.num_inputs; ++i) state = absorb(state, args.inputs[i]);
  return state;
}

bool run_mix(const KernelArgs& args) {
  const uint64_t state = absorb_from(args, 1);
  const uint64_t* x = args.inputs[0].as<uint64_t>();
  uint64_t* y = args.outputs[0].mutable_as<uint64_t>();
  const int64_t count = args.inputs[0].count();
  for (int64_t i = 0; i < count; ++i) y[i] = mix(mix(state, static_cast<uint64_t>(i)), x[i]);
  return true;
}

bool run_words(const KernelArgs& args) {
  const uint64_t state = absorb_from(args, 0);
  for (uint32_t o = 0; o < args.num_outputs; ++o) {
    uint64_t* y = args.outputs[o].mutable_as<uint64_t>();
    for (int64_t i = 0; i < args.outputs[o].count(); ++i) {
      y[i] = mix(state, o * 16 + static_cast<uint64_t>(i));
    }
  }
  return true;
}

bool run_floats(const KernelArgs& args) {
  const uint64_t state = absorb_from(args, 0);
  EDDY_DCHECK(args.outputs[0].count() == 4) << args.outputs[0].count() << " floats";
  float* y = args.outputs[0].mutable_as<float>();
  for (uint64_t i = 0; i < 4; ++i) {
    y[i] = static_cast<float>(static_cast<int64_t>(mix(state, i)) >> 40) * 0x1.0p-23f;
  }
  return true;
}

int64_t choice(const MixState& state, uint64_t bits) {
  EDDY_DCHECK(!state.choices.empty()) << "nothing to choose from";
  return state.choices[bits % state.choices.size()];
}

bool run_trips(const KernelArgs& args) {
  *args.outputs[0].mutable_as<int64_t>() = choice(state_of(args.state), absorb_from(args, 0));
  return true;
}

bool run_go(const KernelArgs& args) {
  const MixState& state = state_of(args.state);
  const uint64_t bits = absorb_from(args, 1);
  const bool leaves_early =
      state.early > 0 && (bits >> 32) % static_cast<uint64_t>(state.early) == 0;
  const int64_t iteration = *args.inputs[0].as<int64_t>();
  *args.outputs[0].mutable_as<bool>() = !leaves_early && iteration < choice(state, bits);
  return true;
}

bool run_pick(const KernelArgs& args) {
  const MixState& state = state_of(args.state);
  const uint64_t bits = absorb_from(args, 0);
  EDDY_DCHECK(state.range > 0) << "a choice of " << state.range;
  const int64_t picked =
      state.low + static_cast<int64_t>(bits % static_cast<uint64_t>(state.range));
  const TensorView& output = args.outputs[0];
  switch (output.element) {
    case ElementType::kBool:
      *output.mutable_as<bool>() = picked != 0;
      return true;
    case ElementType::kInt32:
      *output.mutable_as<int32_t>() = static_cast<int32_t>(picked);
      break;
    default:
      *output.mutable_as<int64_t>() = picked;
  }
  return true;
}

Status run_resize(ValueContext& context) {
  uint64_t state = state_of(context.state()).id;
  for (size_t i = 0; i < context.num_inputs(); ++i) state = absorb(state, context.tensor(i));
  const Dims dims = {static_cast<int64_t>(state % 6)};
  EDDY_ASSIGN_OR_RETURN(const TensorView view, context.allocate(0, ElementType::kInt64, dims));
  for (int64_t i = 0; i < dims[0]; ++i) {
    view.mutable_as<uint64_t>()[i] = mix(state, static_cast<uint64_t>(i));
  }
  return Status::ok();
}

Status run_fold(ValueContext& context) {
  uint64_t state = mix(state_of(context.state()).id, context.length(0));
  for (size_t i = 0; i < context.length(0); ++i) state = absorb(state, context.element(0, i));
  EDDY_ASSIGN_OR_RETURN(const TensorView view, context.allocate(0, ElementType::kInt64, {3}));
  for (uint64_t i = 0; i < 3; ++i) view.mutable_as<uint64_t>()[i] = mix(state, i);
  return Status::ok();
}

std::unique_ptr<MixState> read_state(const Attributes& attributes) {
  auto state = std::make_unique<MixState>();
  state->id = static_cast<uint64_t>(attributes.get_int("id", 0));
  const auto choices = attributes.get_ints("choices");
  state->choices.assign(choices.begin(), choices.end());
  state->early = attributes.get_int("early", 0);
  state->low = attributes.get_int("low", 0);
  state->range = attributes.get_int("count", 1);
  return state;
}

BindFunction bind_dense(KernelFunction run) {
  return [run](const KernelInit& init) -> Result<BoundKernel> {
    auto state = read_state(init.attributes);
    if (state->choices.empty() && (run == run_trips || run == run_go)) {
      return invalid_argument("attribute 'choices' of " + init.op.name + " is empty");
    }
    if (state->range < 1) return invalid_argument("attribute 'count' of Pick must be positive");
    return BoundKernel{.run = run, .run_value = nullptr, .state = std::move(state)};
  };
}

BindFunction bind_value(ValueKernelFunction run) {
  return [run](const KernelInit& init) -> Result<BoundKernel> {
    return BoundKernel{.run = nullptr, .run_value = run, .state = read_state(init.attributes)};
  };
}

TypeSet all_but_string() { return kNumericTypes | kBoolType; }

InferFunction gives(const ValueType& type) {
  return [type](InferContext& context) {
    context.set_output(0, type);
    return Status::ok();
  };
}

Status infer_mix(InferContext& context) {
  context.set_output(0, context.input(0));
  return Status::ok();
}

Status infer_twins(InferContext& context) {
  context.set_output(0, tensor_type(ElementType::kInt64, {3}));
  context.set_output(1, tensor_type(ElementType::kInt64, {2}));
  return Status::ok();
}

Status infer_pick(InferContext& context) {
  const auto type = static_cast<ElementType>(
      context.attributes().get_int("type", static_cast<int64_t>(ElementType::kInt64)));
  if (!(kBoolType | TypeSet{ElementType::kInt32, ElementType::kInt64}).contains(type)) {
    return invalid_argument("attribute 'type' of Pick must be bool, int32 or int64");
  }
  context.set_output(0, tensor_type(type, {}));
  return Status::ok();
}

// An operator of this domain that reads any number of tensors after `first`.
OpDef hash_op(std::string name, std::vector<FormalInput> first, InferFunction infer) {
  OpDef def{.name = std::move(name),
            .domain = std::string(kHashDomain),
            .inputs = std::move(first),
            .attributes = {{"id", AttributeKind::kInt, true},
                           {"choices", AttributeKind::kInts},
                           {"early", AttributeKind::kInt},
                           {"low", AttributeKind::kInt},
                           {"count", AttributeKind::kInt},
                           {"type", AttributeKind::kInt}},
            .infer = std::move(infer)};
  return def;
}

Status add_dense(Library& library) {
  const FormalInput words{"x", {ElementType::kInt64}};
  const FormalInput more{"more", all_but_string(), InputFlag::kVariadic | InputFlag::kOptional};
  const FormalInput any{"x", all_but_string(), InputFlag::kVariadic};
  const auto int64s = [](Dims dims) { return gives(tensor_type(ElementType::kInt64, dims)); };
  const auto add = [&library](OpDef def, KernelFunction run) {
    return library.add_operator(std::move(def), bind_dense(run));
  };
  EDDY_RETURN_IF_ERROR(add(hash_op("Mix", {words, more}, infer_mix), run_mix));
  OpDef in_place = hash_op("MixInPlace", {words, more}, infer_mix);
  in_place.in_place_inputs = 1;
  EDDY_RETURN_IF_ERROR(add(std::move(in_place), run_mix));
  OpDef twins = hash_op("Twins", {any}, infer_twins);
  twins.min_outputs = twins.max_outputs = 2;
  EDDY_RETURN_IF_ERROR(add(std::move(twins), run_words));
  EDDY_RETURN_IF_ERROR(add(hash_op("Row", {any}, int64s({3})), run_words));
  EDDY_RETURN_IF_ERROR(add(hash_op("Trips", {any}, int64s({})), run_trips));
  EDDY_RETURN_IF_ERROR(
      add(hash_op("Floats", {any}, gives(tensor_type(ElementType::kFloat, {4}))), run_floats));
  EDDY_RETURN_IF_ERROR(add(hash_op("Go", {{"iteration", {ElementType::kInt64}}, more},
                                   gives(tensor_type(ElementType::kBool, {}))),
                           run_go));
  return add(hash_op("Pick", {any}, infer_pick), run_pick);
}

}  // namespace

Result<int64_t> choose_by_hash(std::span<const TensorView> inputs) {
  uint64_t state = 1;
  for (const TensorView& input : inputs) state = absorb(state, input);
  return static_cast<int64_t>(state % 3);
}

Status add_hash_ops(Library& library, const HostFunction& choose_or_empty) {
  EDDY_RETURN_IF_ERROR(add_dense(library));
  OpDef resize = hash_op("Resize", {{"x", all_but_string(), InputFlag::kVariadic}},
                         gives(tensor_type(ElementType::kInt64, {kUnknownDim})));
  resize.is_value_op = true;
  EDDY_RETURN_IF_ERROR(library.add_operator(std::move(resize), bind_value(run_resize)));
  OpDef fold = hash_op("Fold", {{"sequence", {ElementType::kInt64}}},
                       gives(tensor_type(ElementType::kInt64, {3})));
  fold.is_value_op = true;
  EDDY_RETURN_IF_ERROR(library.add_operator(std::move(fold), bind_value(run_fold)));
  return library.add_host_function(std::string(kChooseFunction),
                                   choose_or_empty ? choose_or_empty : choose_by_hash);
}

}  // namespace eddy::check
