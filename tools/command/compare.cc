#include "tools/command/compare.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/base/check.h"
#include "ops/reference/parts/number.h"
#include "tools/command/values.h"

namespace eddy {
namespace {

const char* kind_name(HostValue::Kind kind) {
  switch (kind) {
    case HostValue::Kind::kNone:
      return "nothing";
    case HostValue::Kind::kTensor:
      return "a tensor";
    case HostValue::Kind::kSequence:
      return "a sequence";
  }
  return "?";
}

// Two steps of bfloat16, the one type that is coarser than common tolerances.
constexpr double kBfloat16Step = 0x1p-7;

bool is_close(double found, double expected, const Tolerance& tolerance) {
  if (std::isnan(expected) || std::isnan(found)) return std::isnan(expected) && std::isnan(found);
  if (std::isinf(expected) || std::isinf(found)) return expected == found;
  return std::abs(found - expected) <= tolerance.atol + tolerance.rtol * std::abs(expected);
}

// How far element i is off: 0 when it agrees, NaN when it differs by no number.
double distance(const TensorView& found, const TensorView& expected, int64_t i,
                const Tolerance& tolerance) {
  const ElementType type = found.element;
  if (type == ElementType::kString) {
    return found.as<std::string>()[i] == expected.as<std::string>()[i] ? 0 : std::nan("");
  }
  if (kFloatTypes.contains(type)) {
    Tolerance allowed = tolerance;
    if (type == ElementType::kBfloat16 && allowed.rtol > 0) {
      allowed.rtol = std::max(allowed.rtol, kBfloat16Step);
    }
    const double a = load_number(found, i).to_double();
    const double b = load_number(expected, i).to_double();
    return is_close(a, b, allowed) ? 0 : a - b;
  }
  const size_t size = element_size_bytes(type);
  const auto at = [&](const TensorView& view) {
    return view.as<char>() + static_cast<size_t>(i) * size;
  };
  if (type == ElementType::kComplex64 || type == ElementType::kComplex128) {
    const auto part = [&](const TensorView& view, size_t k) -> double {
      if (type == ElementType::kComplex64) return view.as<float>()[2 * static_cast<size_t>(i) + k];
      return view.as<double>()[2 * static_cast<size_t>(i) + k];
    };
    for (const size_t k : {0u, 1u}) {
      if (!is_close(part(found, k), part(expected, k), tolerance)) {
        return part(found, k) - part(expected, k);
      }
    }
    return 0;
  }
  if (std::memcmp(at(found), at(expected), size) == 0) return 0;
  if (kFloat8Types.contains(type)) {
    const double a = load_number(found, i).to_double();
    const double b = load_number(expected, i).to_double();
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : std::nan("");
    return a == b ? std::nan("") : a - b;  // zeros of two signs
  }
  if (!kIntTypes.contains(type)) return std::nan("");
  const double off = load_number(found, i).to_double() - load_number(expected, i).to_double();
  return off == 0 ? std::nan("") : off;  // beyond 2^53 their doubles may be equal
}

std::string place(const TensorView& view, int64_t i) {
  std::vector<int64_t> index(static_cast<size_t>(view.rank));
  for (int32_t axis = view.rank - 1; axis >= 0; --axis) {
    EDDY_DCHECK(view.dims[axis] > 0) << "no element has a place in nothing";
    index[static_cast<size_t>(axis)] = i % view.dims[axis];
    i /= view.dims[axis];
  }
  return fmt::format("[{}]", fmt::join(index, ","));
}

std::string text_of(const TensorView& view, int64_t i) {
  return element_json(view, i).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<std::string> sequence_difference(const HostValue& found, const HostValue& expected,
                                               const Tolerance& tolerance) {
  if (found.elements.size() != expected.elements.size()) {
    return fmt::format("expected a sequence of {}, found one of {}", expected.elements.size(),
                       found.elements.size());
  }
  for (size_t i = 0; i < found.elements.size(); ++i) {
    if (auto text = find_difference(found.elements[i], expected.elements[i], tolerance)) {
      return fmt::format("element {} of the sequence: {}", i, *text);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> find_difference(const TensorView& found, const TensorView& expected,
                                           const Tolerance& tolerance) {
  EDDY_DCHECK(found.element == expected.element && found.count() == expected.count())
      << found.count() << " elements are held against " << expected.count();
  const int64_t count = expected.count();
  int64_t first = -1;
  int64_t num_different = 0;
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double off = distance(found, expected, i, tolerance);
    if (off == 0) continue;
    if (first < 0) first = i;
    ++num_different;
    if (std::abs(off) > largest) largest = std::abs(off);
  }
  if (first < 0) return std::nullopt;
  std::string text = fmt::format("at {} of [{}]: expected {}, found {}", place(expected, first),
                                 fmt::join(expected.shape(), ","), text_of(expected, first),
                                 text_of(found, first));
  if (num_different > 1) text += fmt::format(" ({} of {} elements differ", num_different, count);
  if (num_different > 1 && largest > 0) text += fmt::format(", by at most {:.3g}", largest);
  if (num_different > 1) text += ")";
  return text;
}

std::optional<std::string> find_difference(const HostValue& found, const HostValue& expected,
                                           const Tolerance& tolerance) {
  if (found.kind != expected.kind) {
    return fmt::format("expected {}, found {}", kind_name(expected.kind), kind_name(found.kind));
  }
  if (found.kind == HostValue::Kind::kNone) return std::nullopt;
  if (found.kind == HostValue::Kind::kSequence) {
    return sequence_difference(found, expected, tolerance);
  }
  if (found.element != expected.element || !(found.dims == expected.dims)) {
    return fmt::format("expected {}, found {}",
                       to_string(ValueType(TensorType(expected.element, expected.dims))),
                       to_string(ValueType(TensorType(found.element, found.dims))));
  }
  return find_difference(found.view(), expected.view(), tolerance);
}

}  // namespace eddy
