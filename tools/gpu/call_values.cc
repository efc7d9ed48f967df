#include "tools/gpu/call_values.h"

#include <algorithm>
#include <string>

#include "graph/base/check.h"
#include "ops/reference/parts/number.h"
#include "tools/command/compare.h"

namespace eddy {
namespace {

// Integers are 0, 1 and 2.
void fill_numbers(const TensorView& view, Random& random) {
  const bool is_bool = view.element == ElementType::kBool;
  for (int64_t i = 0; i < view.count(); ++i) {
    const float value = random.uniform(0.25f, 3.0f);
    store_number(view, i, is_bool ? Number::of_int(value > 1.5f) : Number::of_double(value));
  }
}

ElementType element_of(const ConformanceInput& input, ElementType of_row) {
  if (input.of == ConformanceInput::Of::kOmitted) return ElementType::kUndefined;
  return input.type == ElementType::kUndefined ? of_row : input.type;
}

void fill(const ConformanceInput& input, const TensorView& view, Random& random) {
  const auto each = [&](auto next) {
    for (int64_t i = 0; i < view.count(); ++i) {
      store_number(view, i, Number::of_int(static_cast<int64_t>(next(i))));
    }
  };
  const auto limit = static_cast<uint64_t>(std::max<int64_t>(input.limit, 1));
  switch (input.of) {
    case ConformanceInput::Of::kBits:
      std::generate_n(static_cast<uint8_t*>(view.data), view.size_bytes(),
                      [&] { return static_cast<uint8_t>(random.below(256)); });
      return;
    case ConformanceInput::Of::kIndices:
      return each([&](int64_t) { return random.below(limit); });
    case ConformanceInput::Of::kLengths:
      return each([&](int64_t) { return 1 + random.below(limit); });
    case ConformanceInput::Of::kGiven:
      EDDY_CHECK(view.count() <= static_cast<int64_t>(input.given.size()))
          << input.given.size() << " values are given for " << view.count();
      return each([&](int64_t i) { return input.given[static_cast<size_t>(i)]; });
    default:
      fill_numbers(view, random);
  }
  if (input.of != ConformanceInput::Of::kDivisor) return;
  // A small number may have been rounded to zero.
  for (int64_t i = 0; i < view.count(); ++i) {
    if (load_number(view, i).to_double() == 0) store_number(view, i, Number::of_int(3));
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
  const auto difference = find_difference(actual, expected, {allowed, allowed});
  return difference ? run_failed(*difference) : Status::ok();
}

}  // namespace eddy
