#include "tools/gpu/call_values.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>

#include "ops/reference/half.h"

namespace eddy {
namespace {

void fill_numbers(const TensorView& view, Random& random) {
  for (int64_t i = 0; i < view.count(); ++i) {
    const float value = random.uniform(0.25f, 3.0f);
    const auto at = static_cast<size_t>(i);
    switch (view.element) {
      case ElementType::kFloat:
        view.mutable_as<float>()[at] = value;
        break;
      case ElementType::kDouble:
        view.mutable_as<double>()[at] = value;
        break;
      case ElementType::kFloat16:
        view.mutable_as<Float16>()[at] = value;
        break;
      case ElementType::kBfloat16:
        view.mutable_as<Bfloat16>()[at] = value;
        break;
      case ElementType::kInt32:
        view.mutable_as<int32_t>()[at] = static_cast<int32_t>(value);
        break;
      case ElementType::kInt64:
        view.mutable_as<int64_t>()[at] = static_cast<int64_t>(value);
        break;
      default:
        view.mutable_as<uint8_t>()[at] = value > 1.5f ? 1 : 0;
        break;
    }
  }
}

ElementType element_of(const ConformanceInput& input, ElementType of_row) {
  switch (input.of) {
    case ConformanceInput::Of::kElement:
    case ConformanceInput::Of::kDivisor:
      return of_row;
    case ConformanceInput::Of::kFloat:
      return ElementType::kFloat;
    case ConformanceInput::Of::kBools:
      return ElementType::kBool;
    case ConformanceInput::Of::kBytes:
      return ElementType::kUint8;
    case ConformanceInput::Of::kInt32:
      return ElementType::kInt32;
    case ConformanceInput::Of::kIndices:
    case ConformanceInput::Of::kGiven:
      return ElementType::kInt64;
    case ConformanceInput::Of::kOmitted:
      break;
  }
  return ElementType::kUndefined;
}

void fill(const ConformanceInput& input, const TensorView& view, Random& random) {
  const auto each = [&](auto* data, auto next) {
    for (int64_t i = 0; i < view.count(); ++i) {
      data[i] = static_cast<std::remove_reference_t<decltype(*data)>>(next(i));
    }
  };
  const auto limit = static_cast<uint64_t>(std::max<int64_t>(input.limit, 1));
  switch (input.of) {
    case ConformanceInput::Of::kBytes:
      return each(view.mutable_as<uint8_t>(), [&](int64_t) { return random.below(256); });
    case ConformanceInput::Of::kIndices:
      return each(view.mutable_as<int64_t>(), [&](int64_t) { return random.below(limit); });
    case ConformanceInput::Of::kInt32:
      return each(view.mutable_as<int32_t>(), [&](int64_t) { return 1 + random.below(limit); });
    case ConformanceInput::Of::kGiven:
      return each(view.mutable_as<int64_t>(),
                  [&](int64_t i) { return input.given[static_cast<size_t>(i)]; });
    default:
      fill_numbers(view, random);
  }
  if (input.of != ConformanceInput::Of::kDivisor) return;
  // A small number may have been rounded to zero.
  const auto replace = [&](auto* data) {
    each(data, [&](int64_t i) { return data[i] == 0 ? 3 : data[i]; });
  };
  if (view.element == ElementType::kInt32) replace(view.mutable_as<int32_t>());
  if (view.element == ElementType::kInt64) replace(view.mutable_as<int64_t>());
}

double number_at(const TensorView& view, int64_t index) {
  const auto at = static_cast<size_t>(index);
  switch (view.element) {
    case ElementType::kFloat:
      return view.as<float>()[at];
    case ElementType::kDouble:
      return view.as<double>()[at];
    case ElementType::kFloat16:
      return view.as<Float16>()[at];
    case ElementType::kBfloat16:
      return view.as<Bfloat16>()[at];
    case ElementType::kInt32:
      return view.as<int32_t>()[at];
    case ElementType::kInt64:
      return static_cast<double>(view.as<int64_t>()[at]);
    case ElementType::kInt8:
      return view.as<int8_t>()[at];
    default:
      return view.as<uint8_t>()[at];
  }
}

// Relative error allowed: a few units in the last place of the type.
double tolerance(ElementType element) {
  switch (element) {
    case ElementType::kFloat:
      return 2e-6;
    case ElementType::kDouble:
      return 1e-13;  // two orders of a long sum
    case ElementType::kFloat16:
      return 2e-3;
    case ElementType::kBfloat16:
      return 2e-2;
    default:
      return 0;
  }
}

}  // namespace

std::vector<OwnedTensor> make_inputs(const ConformanceCase& call, ElementType element,
                                     Random& random) {
  std::vector<OwnedTensor> inputs;
  for (const ConformanceInput& from : call.inputs) {
    OwnedTensor input{element_of(from, element), from.dims, nullptr};
    if (from.of != ConformanceInput::Of::kOmitted) {
      input.bytes = std::make_unique<std::byte[]>(input.view().size_bytes());
      fill(from, input.view(), random);
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

Status compare_values(const TensorView& actual, const TensorView& expected, double slack) {
  const double allowed = slack * tolerance(expected.element);
  for (int64_t i = 0; i < expected.count(); ++i) {
    const double a = number_at(actual, i);
    const double e = number_at(expected, i);
    if (std::isnan(a) != std::isnan(e) || std::fabs(a - e) > allowed * (1 + std::fabs(e))) {
      return run_failed("element " + std::to_string(i) + " is " + std::to_string(a) +
                        ", expected " + std::to_string(e));
    }
  }
  return Status::ok();
}

}  // namespace eddy
