#include "tools/gpu/host_difference.h"

#include <algorithm>
#include <cmath>

#include "ops/reference/parts/number.h"
#include "tools/command/compare.h"

namespace eddy {
namespace {

// The largest of floats; 0: of anything else.
double largest_of(const TensorView& view) {
  if (!kFloatTypes.contains(view.element)) return 0;
  double largest = 0;
  for (int64_t i = 0; i < view.count(); ++i) {
    const double value = std::fabs(load_number(view, i).to_double());
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  return largest;
}

std::string compare(const Tensor& expected, const Tensor& found, const HostTolerance& tolerance) {
  if (expected.kind() != found.kind()) return "another kind of value";
  if (expected.kind() == ValueKind::kSequence) {
    if (expected.elements().size() != found.elements().size()) return "another length";
    for (size_t i = 0; i < expected.elements().size(); ++i) {
      const std::string difference =
          compare(expected.elements()[i], found.elements()[i], tolerance);
      if (!difference.empty()) return "[" + std::to_string(i) + "] " + difference;
    }
    return "";
  }
  if (!expected.is_tensor()) return "";
  if (expected.element_type() != found.element_type() || !(expected.dims() == found.dims())) {
    return "another type or shape";
  }
  const Tolerance allowed = {tolerance.relative,
                             tolerance.of_largest * largest_of(expected.view())};
  return find_difference(found.view(), expected.view(), allowed).value_or("");
}

}  // namespace

std::string host_difference(const NamedTensors& expected, const NamedTensors& found,
                            const HostTolerance& tolerance) {
  if (expected.size() != found.size()) return "another number of outputs";
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string difference = compare(expected[i].second, found[i].second, tolerance);
    if (!difference.empty()) return "output " + expected[i].first + ": " + difference;
  }
  return "";
}

}  // namespace eddy
