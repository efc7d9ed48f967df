// Values that the command makes up: by a seed, or all elements the same.
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <fmt/format.h>

#include "graph/base/check.h"
#include "ops/reference/parts/number.h"
#include "ops/reference/parts/small_float.h"
#include "tools/command/inputs.h"
#include "tools/command/machine_memory.h"

namespace eddy {
namespace {

// A tensor of zeros of the input's type, open dimensions counted as 1.
Result<HostValue> empty_tensor(const ValueDescription& input, const char* option) {
  if (!input.type.is_tensor()) {
    return unsupported(fmt::format("{}: cannot make up input {} ({}); give --input {}=FILE.pb",
                                   option, input.name, input.text, input.name));
  }
  Dims dims;
  const TensorType& type = input.type.tensor;
  if (type.is_ranked) {
    for (const int64_t dim : type.dims) dims.push_back(dim < 0 ? 1 : dim);
  }
  const std::optional<int64_t> count = dims.count();
  const size_t element_bytes = std::max<size_t>(element_size_bytes(type.element), 1);
  if (!count || static_cast<size_t>(*count) > machine_memory_bytes() / element_bytes) {
    return resource_exhausted(fmt::format("{}: input {} of type {} does not fit into memory",
                                          option, input.name, to_string(dims)));
  }
  return HostValue::tensor(type.element, dims);
}

bool equals_ignoring_case(std::string_view text, std::string_view word) {
  if (text.size() != word.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(text[i])) != word[i]) return false;
  }
  return true;
}

template <typename T>
std::optional<T> parse_whole(const std::string& text) {
  T value{};
  const char* first = text.data() + (text.starts_with('+') ? 1 : 0);
  const auto [end, error] = std::from_chars(first, text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_unsigned(ElementType type) {
  return kUnsignedIntTypes.contains(type) || type == ElementType::kUint4 ||
         type == ElementType::kUint2;
}

// The range of an integer type, as its bits allow.
bool fits(ElementType type, const Number& number) {
  EDDY_CHECK(kIntTypes.contains(type) || kSmallIntTypes.contains(type))
      << element_type_name(type) << " has no range of integers";
  const int bits = static_cast<int>(element_bits(type));
  if (is_unsigned(type)) {
    return number.kind == Number::Kind::kUnsigned &&
           (bits == 64 || number.unsigned_value >> bits == 0);
  }
  if (number.kind == Number::Kind::kUnsigned) return false;
  const int64_t highest = bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1;
  return number.signed_value <= highest && number.signed_value >= -highest - 1;
}

std::optional<Number> parse_number(ElementType type, const std::string& text) {
  if (type == ElementType::kBool) {
    if (equals_ignoring_case(text, "true") || text == "1") return Number::of_int(1);
    if (equals_ignoring_case(text, "false") || text == "0") return Number::of_int(0);
    return std::nullopt;
  }
  if (kFloatTypes.contains(type) || kSmallFloatTypes.contains(type)) {
    const std::optional<double> value = parse_whole<double>(text);
    return value ? std::optional(Number::of_double(*value)) : std::nullopt;
  }
  std::optional<Number> number;
  if (is_unsigned(type)) {
    if (const auto value = parse_whole<uint64_t>(text)) number = Number::of_uint(*value);
  } else if (const auto value = parse_whole<int64_t>(text)) {
    number = Number::of_int(*value);
  }
  return number && fits(type, *number) ? number : std::nullopt;
}

}  // namespace

Result<HostValue> random_value(const ValueDescription& input, Random& random) {
  EDDY_ASSIGN_OR_RETURN(HostValue value, empty_tensor(input, "--random-inputs"));
  if (!kCastTypes.contains(value.element)) {
    return unsupported(fmt::format(
        "--random-inputs: no random values of type {} for input {}; give --input {}=FILE",
        element_type_name(value.element), input.name, input.name));
  }
  const TensorView view = value.view();
  for (int64_t i = 0; i < view.count(); ++i) {
    Number number = Number::of_int(1);
    if (kFloatTypes.contains(view.element) || kSmallFloatTypes.contains(view.element)) {
      number = Number::of_double(random.uniform(-1.0f, 1.0f));
    } else if (view.element != ElementType::kBool) {
      number = Number::of_int(static_cast<int64_t>(random.below(10)));
    }
    store_number(view, i, number);
  }
  return value;
}

Result<HostValue> filled_value(const ValueDescription& input, const std::string& text) {
  EDDY_ASSIGN_OR_RETURN(HostValue value, empty_tensor(input, "--set"));
  if (value.element == ElementType::kString) {
    for (std::string& element : value.strings) element = text;
    return value;
  }
  if (!kCastTypes.contains(value.element)) {
    return unsupported(fmt::format("--set {}: values of type {} can only come from a file",
                                   input.name, element_type_name(value.element)));
  }
  const std::optional<Number> number = parse_number(value.element, text);
  if (!number) {
    return invalid_argument(fmt::format("--set {}={}: '{}' is no value of type {}", input.name,
                                        text, text, element_type_name(value.element)));
  }
  const TensorView view = value.view();
  for (int64_t i = 0; i < view.count(); ++i) store_number(view, i, *number);
  return value;
}

}  // namespace eddy
