// Operators that keep the elements (Identity, Reshape, ...), Dropout, Shape and Size.
#include <algorithm>
#include <random>

#include "ops/reference/movement/movement_parts.h"
#include "ops/reference/parts/number.h"
#include "ops/reference/parts/storage.h"
#include "ops/schema/movement/movement_rules.h"
#include "ops/schema/rules/index_rules.h"

namespace eddy {
namespace {

template <typename T>
struct CopyAll {
  static bool run(const KernelArgs& args) {
    const T* in = args.inputs[0].as<T>();
    T* out = args.outputs[0].mutable_as<T>();
    if (in != out) std::copy_n(in, args.inputs[0].count(), out);
    return true;
  }
};

Result<BoundKernel> bind_view(const KernelInit& init) {
  return bind_storage<CopyAll>(init, init.inputs[0].tensor.element);
}

Status share_input(ValueContext& context) {
  if (context.kind(0) == ValueKind::kNone) {
    context.set_none(0);
  } else {
    context.share(0, 0);
  }
  return Status::ok();
}

// A sequence or optional is shared; a tensor is copied where the executor does not share it.
Result<BoundKernel> bind_identity(const KernelInit& init) {
  if (init.inputs[0].is_tensor()) return bind_view(init);
  return BoundKernel{.run_value = share_input, .state = nullptr};
}

// ---- Shape and Size ----

struct ShapeState : KernelState {
  int64_t start = 0, end = INT64_MAX;
};

bool run_shape(const KernelArgs& args) {
  const auto& state = static_cast<const ShapeState&>(*args.state);
  const TensorView& in = args.inputs[0];
  const SliceRange range = resolve_slice_range(in.rank, state.start, state.end, 1);
  std::copy_n(in.dims + range.start, range.count, args.outputs[0].mutable_as<int64_t>());
  return true;
}

Result<BoundKernel> bind_shape(const KernelInit& init) {
  auto state = std::make_unique<ShapeState>();
  state->start = init.attributes.get_int("start", 0);
  state->end = init.attributes.get_int("end", INT64_MAX);
  return BoundKernel{.run = run_shape, .state = std::move(state)};
}

bool run_size(const KernelArgs& args) {
  args.outputs[0].mutable_as<int64_t>()[0] = args.inputs[0].count();
  return true;
}

Result<BoundKernel> bind_size(const KernelInit&) {
  return BoundKernel{.run = run_size, .state = nullptr};
}

// ---- Dropout ----

struct DropoutState : KernelState {
  bool is_training = false;  // by the attribute of opsets 1 to 6; later ones have an input
  float ratio = 0.5f;
  int64_t seed = 0;
};

// Uniform in [0, 1) from two draws of the generator, 53 bits.
double uniform(std::mt19937& generator) {
  const uint32_t high = static_cast<uint32_t>(generator()) >> 5;
  const uint32_t low = static_cast<uint32_t>(generator()) >> 6;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

void set_mask(const KernelArgs& args, int64_t i, bool keep) {
  if (args.num_outputs > 1 && !args.outputs[1].is_omitted())
    store_number(args.outputs[1], i, Number::of_int(keep));
}

// The same mask in every run: bits do not change from run to run.
bool drop(const KernelArgs& args, double ratio, int64_t seed) {
  if (Status status = check_dropout_ratio(ratio); !status.is_ok()) {
    return args.fail(std::move(status));
  }
  std::mt19937 generator(static_cast<uint32_t>(seed));
  const double scale = 1.0 / (1.0 - ratio);
  const int64_t count = args.inputs[0].count();
  for (int64_t i = 0; i < count; ++i) {
    const bool keep = uniform(generator) >= ratio;
    const double value = load_number(args.inputs[0], i).to_double();
    store_number(args.outputs[0], i, Number::of_double(keep ? value * scale : 0.0));
    set_mask(args, i, keep);
  }
  return true;
}

template <typename T>
struct Dropout {
  static bool run(const KernelArgs& args) {
    const auto& state = static_cast<const DropoutState&>(*args.state);
    bool training = state.is_training;
    if (args.has_input(2)) {
      if (args.inputs[2].count() != 1) {
        return args.fail(invalid_argument("training_mode must have one element"));
      }
      training = args.inputs[2].as<bool>()[0];
    }
    double ratio = state.ratio;
    if (training && args.has_input(1)) {
      if (args.inputs[1].count() != 1) {
        return args.fail(invalid_argument("ratio must have one element"));
      }
      ratio = load_number(args.inputs[1], 0).to_double();
    }
    if (training && ratio != 0) return drop(args, ratio, state.seed);
    CopyAll<T>::run(args);
    if (args.num_outputs > 1 && !args.outputs[1].is_omitted()) {
      for (int64_t i = 0; i < args.inputs[0].count(); ++i) set_mask(args, i, true);
    }
    return true;
  }
};

Result<BoundKernel> bind_dropout(const KernelInit& init) {
  auto state = std::make_unique<DropoutState>();
  state->is_training = init.op.since_version < 7 && init.attributes.get_int("is_test", 0) == 0;
  state->ratio = init.attributes.get_float("ratio", 0.5f);
  state->seed = init.attributes.get_int("seed", 0);
  return bind_storage<Dropout>(init, init.inputs[0].tensor.element, std::move(state));
}

}  // namespace

void add_movement_view_reference(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, BindFunction bind) {
    registry.add({.op = op, .bind = bind, .provider = "reference"});
  };
  add("Identity", bind_identity);
  for (std::string_view op : {"Reshape", "Squeeze", "Unsqueeze", "Flatten"}) add(op, bind_view);
  add("Shape", bind_shape);
  add("Size", bind_size);
  add("Dropout", bind_dropout);
  for (std::string_view op : {"ToDevice", "ToHost", "Await", "CheckedCall"}) {
    registry.add({.op = op, .bind = bind_identity, .provider = "reference", .domain = "eddy"});
  }
}

}  // namespace eddy
