// BitCast: the same bytes. Cast and CastLike: numbers by way of Number, strings by their decimal
// form.
//
// A number becomes text as NumPy writes it: integers in full, floats with the fewest digits that
// read back the same ("0.1", "1e-05", "inf", "nan"). Text becomes a number when all of it is
// one (surrounding blanks aside); anything else is an error that quotes it.
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>

#include "graph/ir/half.h"
#include "ops/reference/elementwise/elementwise.h"
#include "ops/reference/parts/number.h"
#include "ops/reference/parts/small_float.h"

namespace eddy {
namespace {

struct CastState : KernelState {
  SmallFloatRounding rounding;
};

bool run_numbers(const KernelArgs& args) {
  const TensorView& out = args.outputs[0];
  const int64_t count = out.count();
  for (int64_t i = 0; i < count; ++i) store_number(out, i, load_number(args.inputs[0], i));
  return true;
}

bool run_to_small_floats(const KernelArgs& args) {
  const SmallFloatRounding rounding = static_cast<const CastState*>(args.state)->rounding;
  const TensorView& out = args.outputs[0];
  const int64_t count = out.count();
  for (int64_t i = 0; i < count; ++i) {
    const float value = double_to_float_odd(load_number(args.inputs[0], i).to_double_odd());
    out.mutable_as<uint8_t>()[i] = to_small_float(out.element, value, rounding);
  }
  return true;
}

// Of elements of less than a byte, which have one each in memory: the sign's bit stands in all
// higher ones.
uint8_t extended(uint8_t byte, int num_bits, bool is_signed) {
  const auto mask = static_cast<uint8_t>((1u << num_bits) - 1);
  const bool is_negative = is_signed && (byte >> (num_bits - 1) & 1) != 0;
  return is_negative ? static_cast<uint8_t>(byte | ~mask) : static_cast<uint8_t>(byte & mask);
}

// Any byte but 0 is true, which is 1 in memory.
bool run_bit_cast(const KernelArgs& args) {
  const TensorView& out = args.outputs[0];
  if (out.size_bytes() == 0) return true;
  std::memcpy(out.data, args.inputs[0].data, out.size_bytes());
  const int num_bits = element_bits(out.element);
  if (out.element != ElementType::kBool && num_bits >= 8) return true;
  const bool is_signed = out.element == ElementType::kInt4 || out.element == ElementType::kInt2;
  auto* bytes = out.mutable_as<uint8_t>();
  for (int64_t i = 0; i < out.count(); ++i) {
    bytes[i] = num_bits < 8 ? extended(bytes[i], num_bits, is_signed) : bytes[i] != 0;
  }
  return true;
}

Result<BoundKernel> bind_bit_cast(const KernelInit&) {
  return BoundKernel{.run = run_bit_cast, .state = nullptr};
}

template <typename T>
std::string shortest_digits(T value) {
  char text[64];
  // NumPy switches to an exponent below 1e-4 and from 1e16 on.
  const T magnitude = std::fabs(value);
  const bool is_plain = magnitude == 0 || (magnitude >= T(1e-4) && magnitude < T(1e16));
  const auto end =
      std::to_chars(text, text + sizeof(text), value,
                    is_plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string digits(text, end.ptr);
  if (is_plain && digits.find('.') == std::string::npos) digits += ".0";
  return digits;
}

std::string text_of(const TensorView& view, int64_t i) {
  const Number number = load_number(view, i);
  if (view.element == ElementType::kBool) return number.unsigned_value != 0 ? "True" : "False";
  if (number.kind == Number::Kind::kSigned) return std::to_string(number.signed_value);
  if (number.kind == Number::Kind::kUnsigned) return std::to_string(number.unsigned_value);
  const double value = number.float_value;
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return view.element == ElementType::kDouble ? shortest_digits(value)
                                              : shortest_digits(static_cast<float>(value));
}

bool run_to_text(const KernelArgs& args) {
  const TensorView& out = args.outputs[0];
  const int64_t count = out.count();
  for (int64_t i = 0; i < count; ++i) {
    out.mutable_as<std::string>()[i] = text_of(args.inputs[0], i);
  }
  return true;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// Reads all of `text` as T; false when it is none.
template <typename T>
bool read_all(std::string_view text, T& value) {
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  return end.ec == std::errc() && end.ptr == text.data() + text.size();
}

bool read_float(std::string_view text, double& value) {
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ptr != text.data() + text.size() || text.empty()) return false;
  if (end.ec == std::errc()) return true;
  if (end.ec != std::errc::result_out_of_range) return false;
  // Too large or too small for a double: from_chars leaves the value alone, so the sign of the
  // exponent decides.
  const bool is_tiny =
      text.find("e-") != std::string_view::npos || text.find("E-") != std::string_view::npos;
  value = is_tiny ? 0.0 : HUGE_VAL;
  if (text[0] == '-') value = -value;
  return true;
}

bool read_number(std::string_view text, ElementType to, Number& number) {
  text = trimmed(text);
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  int64_t integer = 0;
  uint64_t natural = 0;
  const bool is_integer = kIntTypes.contains(to) || kSmallIntTypes.contains(to);
  if (is_integer && read_all(text, integer)) {
    number = Number::of_int(integer);
    return true;
  }
  if (is_integer && read_all(text, natural)) {
    number = Number::of_uint(natural);
    return true;
  }
  double value = 0;
  if (!read_float(text, value)) return false;
  number = Number::of_double(value);
  return true;
}

bool run_from_text(const KernelArgs& args) {
  const TensorView& out = args.outputs[0];
  const auto* texts = args.inputs[0].as<std::string>();
  const int64_t count = out.count();
  for (int64_t i = 0; i < count; ++i) {
    Number number;
    if (!read_number(texts[i], out.element, number)) {
      return args.fail(run_failed("element " + std::to_string(i) + " is \"" +
                                  texts[i].substr(0, 40) + "\", which can't be read as " +
                                  std::string(element_type_name(out.element))));
    }
    store_number(out, i, number);
  }
  return true;
}

bool run_texts(const KernelArgs& args) {
  const TensorView& out = args.outputs[0];
  const int64_t count = out.count();
  for (int64_t i = 0; i < count; ++i) {
    out.mutable_as<std::string>()[i] = args.inputs[0].as<std::string>()[i];
  }
  return true;
}

SmallFloatRounding small_float_rounding(const Attributes& attributes) {
  using Direction = SmallFloatRounding::Direction;
  const std::string_view mode = attributes.get_string("round_mode", "up");
  return {attributes.get_int("saturate", 1) != 0, mode == "down"      ? Direction::kDown
                                                  : mode == "nearest" ? Direction::kNearest
                                                                      : Direction::kUp};
}

Result<BoundKernel> bind_cast(const KernelInit& init) {
  constexpr TypeSet kSupported = kCastTypes | TypeSet{ElementType::kString};
  const ElementType from = init.inputs[0].tensor.element;
  const ElementType to = init.outputs[0].tensor.element;
  for (ElementType element : {from, to}) {
    if (!kSupported.contains(element)) {
      return unsupported(std::string(element_type_name(element)) +
                         " is not supported by the reference kernel of " + init.op.name);
    }
  }
  const bool from_text = from == ElementType::kString;
  const bool to_text = to == ElementType::kString;
  BoundKernel kernel;
  kernel.run = from_text && to_text ? run_texts
               : from_text          ? run_from_text
               : to_text            ? run_to_text
                                    : run_numbers;
  if (!from_text && kSmallFloatTypes.contains(to)) {
    auto state = std::make_unique<CastState>();
    state->rounding = small_float_rounding(init.attributes);
    kernel.run = run_to_small_floats;
    kernel.state = std::move(state);
  }
  return kernel;
}

}  // namespace

void add_cast_reference(KernelRegistry& registry) {
  for (std::string_view name : {"Cast", "CastLike"}) {
    registry.add({.op = name, .bind = bind_cast, .provider = "reference"});
  }
  registry.add(
      {.op = "BitCast", .since_version = 26, .bind = bind_bit_cast, .provider = "reference"});
}

}  // namespace eddy
