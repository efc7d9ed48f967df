// Resize: for each output element, the weighted sum over the taps of all axes at once.
#include "ops/reference/families.h"
#include "ops/reference/parts/typed_kernel.h"
#include "ops/reference/windows/resize_call.h"

namespace eddy {
namespace {

// The taps of every position of every axis, in scratch memory.
struct Taps {
  int64_t count = 1;  // of one position
  int64_t* indices = nullptr;
  double* weights = nullptr;
  bool* is_inside = nullptr;
};

bool fill_taps(const KernelArgs& args, const ResizeCall& call, std::array<Taps, kMaxRank>& taps) {
  size_t size_bytes = 0;
  for (size_t i = 0; i < static_cast<size_t>(call.rank); ++i) {
    taps[i].count = call.is_resized[i] ? call.axes[i].num_taps(call.rules) : 1;
    size_bytes += static_cast<size_t>(call.axes[i].output * (taps[i].count * 16 + 8));
  }
  auto* memory = static_cast<char*>(args.scratch->reserve(size_bytes + 64));
  if (memory == nullptr) return args.fail(resource_exhausted("no memory for Resize's weights"));
  for (size_t i = 0; i < static_cast<size_t>(call.rank); ++i) {
    const int64_t output = call.axes[i].output, count = taps[i].count;
    taps[i].indices = reinterpret_cast<int64_t*>(memory);
    taps[i].weights = reinterpret_cast<double*>(memory + output * count * 8);
    taps[i].is_inside = reinterpret_cast<bool*>(memory + output * count * 16);
    memory += output * (count * 16 + 8);
    for (int64_t o = 0; o < output; ++o) {
      taps[i].indices[o * count] = o;
      taps[i].weights[o * count] = 1;
      taps[i].is_inside[o] =
          !call.is_resized[i] || call.axes[i].fill(call.rules, o, taps[i].indices + o * count,
                                                   taps[i].weights + o * count);
    }
  }
  return true;
}

template <typename T>
T from_double(double value) {
  if constexpr (is_floating<T>)
    return round_from<T>(value);
  else
    return saturate<T>(value);
}

template <typename T>
class Sampler {
 public:
  Sampler(const ResizeCall& call, const std::array<Taps, kMaxRank>& taps, const T* x)
      : call_(call), taps_(taps), x_(x) {}

  // The output element at position `at`.
  T sample(const std::array<int64_t, kMaxRank>& at) const {
    for (size_t i = 0; i < static_cast<size_t>(call_.rank); ++i) {
      if (!taps_[i].is_inside[at[i]]) return from_double<T>(call_.rules.extrapolation_value);
    }
    if (call_.rules.mode == ResizeMode::kNearest) return x_[nearest_index(at)];
    return from_double<T>(sum(at, 0, 0));
  }

 private:
  int64_t nearest_index(const std::array<int64_t, kMaxRank>& at) const {
    int64_t index = 0;
    for (size_t i = 0; i < static_cast<size_t>(call_.rank); ++i) {
      index = index * call_.axes[i].input + taps_[i].indices[at[i] * taps_[i].count];
    }
    return index;
  }
  double sum(const std::array<int64_t, kMaxRank>& at, int axis, int64_t index) const {
    if (axis == call_.rank) return static_cast<double>(x_[index]);
    const auto i = static_cast<size_t>(axis);
    const Taps& taps = taps_[i];
    double total = 0;
    for (int64_t t = at[i] * taps.count; t < (at[i] + 1) * taps.count; ++t) {
      if (taps.weights[t] == 0) continue;
      const int64_t next = index * call_.axes[i].input + taps.indices[t];
      total += taps.weights[t] * sum(at, axis + 1, next);
    }
    return total;
  }

  const ResizeCall& call_;
  const std::array<Taps, kMaxRank>& taps_;
  const T* x_;
};

template <typename T>
struct Resize {
  static bool run(const KernelArgs& args) {
    const TensorView& y = args.outputs[0];
    if (y.count() == 0) return true;
    ResizeCall call;
    Status status = make_resize_call(args, call);
    if (!status.is_ok()) return args.fail(std::move(status));
    std::array<Taps, kMaxRank> taps;
    if (!fill_taps(args, call, taps)) return false;
    const Sampler<T> sampler(call, taps, args.inputs[0].as<T>());
    std::array<int64_t, kMaxRank> at{};
    const int64_t count = y.count();
    for (int64_t place = 0; place < count; ++place) {
      y.mutable_as<T>()[place] = sampler.sample(at);
      for (int i = call.rank - 1; i >= 0; --i) {
        const auto axis = static_cast<size_t>(i);
        if (++at[axis] < y.dims[i]) break;
        at[axis] = 0;
      }
    }
    return true;
  }
};

Result<BoundKernel> bind_resize(const KernelInit& init) {
  auto state = std::make_unique<ResizeState>();
  state->attributes = init.attributes;
  state->since_version = init.op.since_version;
  return bind_typed<Resize, float, double, Float16, Bfloat16, int8_t, uint8_t, int16_t, uint16_t,
                    int32_t, uint32_t, int64_t, uint64_t>(init, 0, std::move(state));
}

}  // namespace

void add_resize_reference(KernelRegistry& registry) {
  registry.add({.op = "Resize", .since_version = 10, .bind = bind_resize, .provider = "reference"});
}

}  // namespace eddy
