#include "tools/gpu/host_difference.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace eddy {
namespace {

template <typename T>
std::string compare_floats(std::span<const T> expected, std::span<const T> found,
                           const HostTolerance& tolerance) {
  double largest = 0;
  for (const T value : expected) {
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(static_cast<double>(value)));
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto a = static_cast<double>(expected[i]);
    const auto b = static_cast<double>(found[i]);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double allowed = tolerance.relative * std::fabs(a) + tolerance.of_largest * largest;
    if (std::fabs(a - b) <= allowed) continue;
    return "element " + std::to_string(i) + " is " + std::to_string(b) + ", expected " +
           std::to_string(a);
  }
  return "";
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
  switch (expected.element_type()) {
    case ElementType::kFloat:
      return compare_floats(expected.values<float>(), found.values<float>(), tolerance);
    case ElementType::kDouble:
      return compare_floats(expected.values<double>(), found.values<double>(), tolerance);
    case ElementType::kString: {
      const auto* const texts = expected.view().as<std::string>();
      const bool is_same =
          std::equal(texts, texts + *expected.dims().count(), found.view().as<std::string>());
      return is_same ? "" : "other text";
    }
    default: {
      const size_t size_bytes = expected.view().size_bytes();
      const bool is_same =
          size_bytes == 0 || std::memcmp(expected.view().data, found.view().data, size_bytes) == 0;
      return is_same ? "" : "other values";
    }
  }
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
