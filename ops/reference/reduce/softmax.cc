// Softmax, LogSoftmax and Hardmax along the middle of [outer, count, inner], in double.
#include <cmath>
#include <string>

#include "ops/reference/families.h"
#include "ops/reference/parts/axes.h"
#include "ops/reference/parts/number.h"

namespace eddy {
namespace {

enum class Kind { kSoftmax, kLogSoftmax, kHardmax };

struct SoftmaxState : KernelState {
  Kind kind = Kind::kSoftmax;
  int since_version = 13;
  bool has_axis = false;
  int64_t axis = -1;
};

// One lane of `count` elements, `stride` apart from `start` on. Reads the whole lane before it
// writes the first element: input and output may be one buffer.
struct Lane {
  const TensorView& in;
  int64_t start, count, stride;

  double at(int64_t j) const { return load_number(in, start + j * stride).to_double(); }
};

double greatest_of(const Lane& lane) {
  double greatest = -HUGE_VAL;
  for (int64_t j = 0; j < lane.count; ++j) {
    const double x = lane.at(j);
    if (std::isnan(x)) return x;
    if (x > greatest) greatest = x;
  }
  return greatest;
}

void write_lane(const Lane& lane, const TensorView& out, Kind kind) {
  const double greatest = greatest_of(lane);
  double total = 0;
  int64_t first = -1;
  for (int64_t j = 0; j < lane.count; ++j) {
    total += std::exp(lane.at(j) - greatest);
    if (first < 0 && lane.at(j) == greatest) first = j;
  }
  for (int64_t j = 0; j < lane.count; ++j) {
    const double x = lane.at(j) - greatest;
    const double y = kind == Kind::kSoftmax      ? std::exp(x) / total
                     : kind == Kind::kLogSoftmax ? x - std::log(total)
                                                 : (j == first ? 1.0 : 0.0);
    store_number(out, lane.start + j * lane.stride, Number::of_double(y));
  }
}

bool run_softmax(const KernelArgs& args) {
  const auto& state = *static_cast<const SoftmaxState*>(args.state);
  const TensorView& in = args.inputs[0];
  const AxisSplit split =
      split_softmax(in.shape(), state.since_version, state.has_axis, state.axis);
  if (split.count == 0) return true;
  for (int64_t o = 0; o < split.outer; ++o) {
    for (int64_t i = 0; i < split.inner; ++i) {
      const Lane lane{in, o * split.count * split.inner + i, split.count, split.inner};
      write_lane(lane, args.outputs[0], state.kind);
    }
  }
  return true;
}

Result<BoundKernel> bind_softmax(const KernelInit& init) {
  const ElementType element = init.inputs[0].tensor.element;
  if (!kFloatTypes.contains(element)) {
    return unsupported(std::string(element_type_name(element)) +
                       " is not supported by the reference kernel of " + init.op.name);
  }
  auto state = std::make_unique<SoftmaxState>();
  state->kind = init.op.name == "Softmax"      ? Kind::kSoftmax
                : init.op.name == "LogSoftmax" ? Kind::kLogSoftmax
                                               : Kind::kHardmax;
  state->since_version = init.op.since_version;
  state->has_axis = init.attributes.has("axis");
  state->axis = init.attributes.get_int("axis", -1);
  return BoundKernel{.run = run_softmax, .state = std::move(state)};
}

}  // namespace

void add_softmax_reference(KernelRegistry& registry) {
  for (std::string_view name : {"Softmax", "LogSoftmax", "Hardmax"}) {
    registry.add({.op = name, .bind = bind_softmax, .provider = "reference"});
  }
}

}  // namespace eddy
