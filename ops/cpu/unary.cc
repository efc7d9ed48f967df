// Fast elementwise operators of one input, Clip, IsNaN and IsInf: one flat loop over the elements.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "graph/base/check.h"
#include "ops/cpu/elementwise.h"
#include "ops/reference/parts/activation.h"
#include "ops/reference/parts/small_float.h"
#include "ops/schema/unary_operators.h"

namespace eddy {
namespace {

using namespace cpu;

struct UnaryState : KernelState {
  UnaryLoop loop = nullptr;
  int64_t count = -1;  // where known
  // Two of the loop's element type; all zero bits serve types without parameters.
  alignas(8) std::byte parameters[16] = {};
};

const UnaryState& state_of(const KernelArgs& args) {
  return *static_cast<const UnaryState*>(args.state);
}

bool run_flat(const KernelArgs& args) {
  const UnaryState& s = state_of(args);
  EDDY_DCHECK(args.inputs[0].count() == s.count && args.outputs[0].count() == s.count)
      << "bound for " << s.count << " elements";
  s.loop(args.inputs[0].data, args.outputs[0].data, s.count, s.parameters);
  return true;
}
bool run_any(const KernelArgs& args) {
  const UnaryState& s = state_of(args);
  EDDY_DCHECK(args.inputs[0].count() == args.outputs[0].count()) << "elements come or go";
  s.loop(args.inputs[0].data, args.outputs[0].data, args.outputs[0].count(), s.parameters);
  return true;
}

// Tiles of so many elements: tens of microseconds of the slower loops.
constexpr int64_t kTileElements = 65'536;

uint32_t count_tiles(const KernelArgs& args) {
  return static_cast<uint32_t>((args.outputs[0].count() + kTileElements - 1) / kTileElements);
}
bool run_tile(const KernelArgs& args, uint32_t tile) {
  const UnaryState& s = state_of(args);
  const int64_t first = tile * kTileElements;
  EDDY_DCHECK(tile < count_tiles(args)) << "tile " << tile << " of " << count_tiles(args);
  const int64_t count = std::min(kTileElements, args.outputs[0].count() - first);
  s.loop(static_cast<const char*>(args.inputs[0].data) +
             first * static_cast<int64_t>(element_size_bytes(args.inputs[0].element)),
         static_cast<char*>(args.outputs[0].data) +
             first * static_cast<int64_t>(element_size_bytes(args.outputs[0].element)),
         count, s.parameters);
  return true;
}
// All tiles in order, so that the last elements of each are what they are there.
bool run_all_tiles(const KernelArgs& args) {
  const uint32_t num_tiles = count_tiles(args);
  for (uint32_t tile = 0; tile < num_tiles; ++tile) run_tile(args, tile);
  return true;
}

// A UnaryOp is the operator's place in kUnaryOperators.
std::optional<UnaryOp> find_op(std::string_view name) {
  const auto* const found = std::ranges::find(kUnaryOperators, name, &UnaryOperator::name);
  if (found == std::end(kUnaryOperators)) return std::nullopt;
  return static_cast<UnaryOp>(found - std::begin(kUnaryOperators));
}

static_assert(std::size(kUnaryOperators) == static_cast<size_t>(UnaryOp::kGeluTanh),
              "the operators of the list come first");
bool has_loop(size_t op) {
  return std::ranges::any_of(loop_set().unary[op], [](UnaryLoop loop) { return loop != nullptr; });
}

Result<BoundKernel> bind_unary(const KernelInit& init) {
  std::optional<UnaryOp> op = find_op(init.op.name);
  const std::optional<LoopType> type = loop_type(init.inputs[0].tensor.element);
  if (!op || !type) return no_fast_kernel(init);
  if (op == UnaryOp::kGelu) {
    EDDY_ASSIGN_OR_RETURN(const bool by_tanh, is_gelu_by_tanh(init.attributes));
    if (by_tanh) op = UnaryOp::kGeluTanh;
  }
  auto state = std::make_unique<UnaryState>();
  state->loop = loop_set().unary[static_cast<int>(*op)][static_cast<int>(*type)];
  if (state->loop == nullptr) return no_fast_kernel(init);
  state->count = known_count(init.outputs[0]);
  if (*type == LoopType::kFloat) {
    const ActivationParameters p = activation_parameters(init.op.name, init.attributes);
    auto* parameters = reinterpret_cast<float*>(state->parameters);
    parameters[0] = p.a;
    parameters[1] = p.b;
  }
  BoundKernel kernel;
  kernel.run = state->count >= 0 ? run_flat : run_any;
  if (state->count == 1 && single_unary(*op, *type) != nullptr) {
    kernel.run = single_unary(*op, *type);
  }
  if (state->count > kTileElements) {
    kernel.run = run_all_tiles;
    kernel.count_tiles = count_tiles;
    kernel.run_tile = run_tile;
  }
  kernel.state = std::move(state);
  return kernel;
}

template <typename T>
constexpr T lowest() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::lowest();
}
template <typename T>
constexpr T highest() {
  return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::max();
}

// Limits from inputs 1 and 2.
template <typename T>
bool run_clip(const KernelArgs& args) {
  const UnaryState& s = state_of(args);
  const int64_t count = args.outputs[0].count();
  if (count == 0) return true;
  EDDY_DCHECK((!args.has_input(1) || args.inputs[1].count() == 1) &&
              (!args.has_input(2) || args.inputs[2].count() == 1))
      << "a limit has not one element";
  const T limits[2] = {args.has_input(1) ? *args.inputs[1].as<T>() : lowest<T>(),
                       args.has_input(2) ? *args.inputs[2].as<T>() : highest<T>()};
  s.loop(args.inputs[0].data, args.outputs[0].data, count, limits);
  return true;
}

KernelFunction clip_function(LoopType type) {
  switch (type) {
    case LoopType::kFloat:
      return run_clip<float>;
    case LoopType::kDouble:
      return run_clip<double>;
    case LoopType::kInt32:
      return run_clip<int32_t>;
    case LoopType::kInt64:
      return run_clip<int64_t>;
    default:
      return nullptr;
  }
}

Result<BoundKernel> bind_clip(const KernelInit& init) {
  const std::optional<LoopType> type = loop_type(init.inputs[0].tensor.element);
  if (!type || clip_function(*type) == nullptr) return no_fast_kernel(init);
  const bool by_attributes = init.op.since_version < 11;
  if (by_attributes && *type != LoopType::kFloat) return no_fast_kernel(init);
  auto state = std::make_unique<UnaryState>();
  state->loop = loop_set().unary[static_cast<int>(UnaryOp::kClip)][static_cast<int>(*type)];
  auto* limits = reinterpret_cast<float*>(state->parameters);
  limits[0] = init.attributes.get_float("min", std::numeric_limits<float>::lowest());
  limits[1] = init.attributes.get_float("max", std::numeric_limits<float>::max());
  BoundKernel kernel;
  kernel.run = by_attributes ? run_any : clip_function(*type);
  kernel.state = std::move(state);
  return kernel;
}

// IsNaN and IsInf of bytes, by the byte: what the type's table of numbers answers.
struct ByteTestState : KernelState {
  std::array<bool, 256> answers = {};
};

bool run_byte_test(const KernelArgs& args) {
  const auto& answers = static_cast<const ByteTestState*>(args.state)->answers;
  const auto* const x = args.inputs[0].as<uint8_t>();
  auto* const y = args.outputs[0].mutable_as<bool>();
  const int64_t count = args.outputs[0].count();
  for (int64_t i = 0; i < count; ++i) y[i] = answers[x[i]];
  return true;
}

// None for other types than those of 8 bits.
Result<BoundKernel> bind_byte_test(const KernelInit& init) {
  const ElementType element = init.inputs[0].tensor.element;
  if (!kFloat8Types.contains(element)) return no_fast_kernel(init);
  const bool is_nan = init.op.name == "IsNaN";
  const ActivationParameters wanted = activation_parameters(init.op.name, init.attributes);
  const auto numbers = small_float_values(element);
  auto state = std::make_unique<ByteTestState>();
  for (size_t byte = 0; byte < 256; ++byte) {
    const float x = numbers[byte];
    const bool counts = x > 0 ? wanted.detects_positive : wanted.detects_negative;
    state->answers[byte] = is_nan ? std::isnan(x) : std::isinf(x) && counts;
  }
  return BoundKernel{.run = run_byte_test, .state = std::move(state)};
}

struct IsNanState : KernelState {
  CastLoop loop = nullptr;
};

bool run_is_nan(const KernelArgs& args) {
  static_cast<const IsNanState*>(args.state)
      ->loop(args.inputs[0].data, args.outputs[0].data, args.outputs[0].count());
  return true;
}

Result<BoundKernel> bind_is_nan(const KernelInit& init) {
  auto state = std::make_unique<IsNanState>();
  const std::optional<LoopType> type = loop_type(init.inputs[0].tensor.element);
  if (type == LoopType::kFloat) state->loop = loop_set().is_nan_float;
  if (type == LoopType::kDouble) state->loop = loop_set().is_nan_double;
  if (state->loop == nullptr) return bind_byte_test(init);
  BoundKernel kernel;
  kernel.run = run_is_nan;
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

UnaryLoop cpu::float_loop_or_null(std::string_view name) {
  const std::optional<UnaryOp> op = find_op(name);
  if (!op) return nullptr;
  return loop_set().unary[static_cast<int>(*op)][static_cast<int>(LoopType::kFloat)];
}

void add_unary_cpu(KernelRegistry& registry) {
  for (size_t op = 0; op < std::size(kUnaryOperators); ++op) {
    if (!has_loop(op)) continue;
    registry.add({.op = kUnaryOperators[op].name, .bind = bind_unary, .has_tiles = true});
  }
  registry.add({.op = "Clip", .bind = bind_clip});
  registry.add({.op = "IsInf", .bind = bind_byte_test});
  registry.add({.op = "IsNaN", .bind = bind_is_nan});
}

}  // namespace eddy
