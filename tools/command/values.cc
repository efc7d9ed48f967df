#include "tools/command/values.h"

#include <cmath>
#include <complex>

#include <fmt/format.h>

#include "graph/base/check.h"
#include "ops/reference/parts/number.h"

namespace eddy {
namespace {

Json real_json(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return value;
}

template <typename T>
Json complex_json(const TensorView& view, int64_t i) {
  const auto value = view.as<std::complex<T>>()[i];
  return Json::array({real_json(value.real()), real_json(value.imag())});
}

Json number_json(const TensorView& view, int64_t i) {
  const Number number = load_number(view, i);
  switch (number.kind) {
    case Number::Kind::kSigned:
      return number.signed_value;
    case Number::Kind::kUnsigned:
      return number.unsigned_value;
    case Number::Kind::kFloat:
      return real_json(number.float_value);
  }
  return nullptr;
}

// The shortest text that distinguishes floats.
std::string element_text(const TensorView& view, int64_t i) {
  if (view.element == ElementType::kFloat) return fmt::format("{}", view.as<float>()[i]);
  const Json json = element_json(view, i);
  if (json.is_number_float()) return fmt::format("{:.6g}", json.get<double>());
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Tensor borrow_value(const HostValue& value) {
  switch (value.kind) {
    case HostValue::Kind::kNone:
      return Tensor();
    case HostValue::Kind::kTensor:
      return Tensor::borrow(value.view());
    case HostValue::Kind::kSequence:
      break;
  }
  std::vector<Tensor> elements;
  for (const HostValue& element : value.elements) elements.push_back(borrow_value(element));
  return Tensor::sequence(value.element, std::move(elements));
}

HostValue copy_value(const Tensor& tensor) {
  if (tensor.kind() == ValueKind::kNone) return HostValue::none();
  if (tensor.is_tensor()) return HostValue::copy_of(tensor.view());
  std::vector<HostValue> elements;
  for (const Tensor& element : tensor.elements()) elements.push_back(copy_value(element));
  return HostValue::sequence(tensor.element_type(), std::move(elements));
}

Json element_json(const TensorView& view, int64_t i) {
  EDDY_DCHECK(i >= 0 && i < view.count()) << "element " << i << " of " << view.count();
  switch (view.element) {
    case ElementType::kString:
      return view.as<std::string>()[i];
    case ElementType::kBool:
      return view.as<uint8_t>()[i] != 0;
    case ElementType::kComplex64:
      return complex_json<float>(view, i);
    case ElementType::kComplex128:
      return complex_json<double>(view, i);
    default:
      return number_json(view, i);
  }
}

Json value_json(const Tensor& tensor) {
  if (tensor.kind() == ValueKind::kNone) return nullptr;
  if (!tensor.is_tensor()) {
    Json list = Json::array();
    for (const Tensor& element : tensor.elements()) list.push_back(value_json(element));
    return list;
  }
  const TensorView view = tensor.view();
  Json data = Json::array();
  for (int64_t i = 0; i < view.count(); ++i) data.push_back(element_json(view, i));
  return {{"dtype", element_type_name(view.element)},
          {"shape", std::vector<int64_t>(view.shape().begin(), view.shape().end())},
          {"data", std::move(data)}};
}

std::string shape_text(const Tensor& tensor) {
  if (tensor.kind() == ValueKind::kNone) return "nothing";
  if (tensor.is_tensor()) {
    return to_string(ValueType(TensorType(tensor.element_type(), tensor.dims())));
  }
  return fmt::format("sequence of {} {}", tensor.elements().size(),
                     element_type_name(tensor.element_type()));
}

std::string data_text(const Tensor& tensor, int64_t max_elements) {
  if (tensor.kind() == ValueKind::kNone) return "";
  if (!tensor.is_tensor()) {
    std::string text;
    for (const Tensor& element : tensor.elements()) {
      text += fmt::format("  {}\n{}", shape_text(element), data_text(element, max_elements));
    }
    return text;
  }
  const TensorView view = tensor.view();
  const int64_t count = view.count();
  const int64_t row = view.rank == 0 || count == 0 ? 1 : view.dims[view.rank - 1];
  EDDY_CHECK(row > 0) << "elements in rows of " << row;
  std::string text;
  for (int64_t i = 0; i < std::min(count, max_elements); ++i) {
    text += i % row == 0 ? "  " : " ";
    text += element_text(view, i);
    if (i % row == row - 1) text += '\n';
  }
  if (count > max_elements) {
    text += fmt::format("{}... {} more\n", text.back() == '\n' ? "  " : " ", count - max_elements);
  }
  return text;
}

}  // namespace eddy
