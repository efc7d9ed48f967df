#include "examples/server/json_values.h"

#include <array>
#include <charconv>
#include <cmath>

#include <nlohmann/json.hpp>

#include "ops/reference/parts/number.h"

namespace eddy::server {
namespace {

using Json = nlohmann::json;

constexpr TypeSet kJsonTypes = kNumberTypes | TypeSet{ElementType::kString};
constexpr size_t kMaxErrorBytes = 600;

std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <typename T>
void append(std::string& json, T value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  EDDY_CHECK(end.ec == std::errc()) << "a number of more than " << digits.size() << " characters";
  json.append(digits.data(), end.ptr);
}

// The shortest text that is read as the same number.
template <typename T>
void append_float(std::string& json, T value) {
  if (std::isfinite(value)) return append(json, value);
  json += std::isnan(value) ? "\"NaN\"" : value < 0 ? "\"-Infinity\"" : "\"Infinity\"";
}

void append_element(std::string& json, const TensorView& view, int64_t i) {
  if (view.element == ElementType::kString) {
    json += quoted(view.as<std::string>()[i]);
    return;
  }
  const Number number = load_number(view, i);
  if (view.element == ElementType::kBool) {
    json += number.to_integer<int64_t>() != 0 ? "true" : "false";
  } else if (view.element == ElementType::kDouble) {
    append_float(json, number.float_value);
  } else if (number.kind == Number::Kind::kFloat) {
    append_float(json, number.to_float());
  } else if (number.kind == Number::Kind::kSigned) {
    append(json, number.signed_value);
  } else {
    append(json, number.unsigned_value);
  }
}

template <typename Range, typename Append>
void append_list(std::string& json, const Range& range, const Append& append_one) {
  json += '[';
  bool is_first = true;
  for (const auto& each : range) {
    if (!std::exchange(is_first, false)) json += ',';
    append_one(each);
  }
  json += ']';
}

void append_tensor(std::string& json, const TensorView& view) {
  json.append("{\"type\":\"").append(element_type_name(view.element)).append("\",\"shape\":");
  append_list(json, view.shape(), [&](int64_t size) { append(json, size); });
  json += ",\"data\":[";
  for (int64_t i = 0; i < view.count(); ++i) {
    if (i > 0) json += ',';
    append_element(json, view, i);
  }
  json += "]}";
}

Json dim_json(const Graph& graph, int64_t dim) {
  if (dim >= 0) return dim;
  return dim == kUnknownDim ? Json() : Json(graph.symbol(dim));
}

Json description_json(const Graph& graph, const ValueDescription& value) {
  const TensorType& type = value.type.tensor;
  Json shape;
  if (type.is_ranked) {
    shape = Json::array();
    for (const int64_t dim : type.dims) shape.push_back(dim_json(graph, dim));
  }
  return {{"name", value.name}, {"type", element_type_name(type.element)}, {"shape", shape}};
}

Json descriptions_json(const Graph& graph, std::span<const ValueDescription> values) {
  Json list = Json::array();
  for (const ValueDescription& value : values) list.push_back(description_json(graph, value));
  return list;
}

}  // namespace

Status check_have_json(std::span<const ValueDescription> values, std::string_view what) {
  for (const ValueDescription& value : values) {
    if (value.type.is_tensor() && kJsonTypes.contains(value.type.tensor.element)) continue;
    return unsupported(std::string(what) + " '" + value.name + "' is " + value.text +
                       ", which the server's JSON has no form for; serve a model whose inputs and "
                       "outputs are tensors of numbers, truth values or strings");
  }
  return Status::ok();
}

std::string outputs_json(const NamedTensors& outputs) {
  std::string json = "{\"outputs\":{";
  for (const auto& [name, tensor] : outputs) {
    if (json.back() != '{') json += ',';
    json += quoted(name) + ':';
    append_tensor(json, tensor.view());
  }
  return json + "}}\n";
}

std::string model_json(const Session& session) {
  const Json model = {{"inputs", descriptions_json(session.graph(), session.inputs())},
                      {"outputs", descriptions_json(session.graph(), session.outputs())},
                      {"fingerprint", session.fingerprint()}};
  return model.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string error_json(const std::string& message) {
  const bool is_short = message.size() <= kMaxErrorBytes;
  const std::string text = is_short ? message : message.substr(0, kMaxErrorBytes) + " ...";
  return "{\"error\":" + quoted(one_line(text)) + "}\n";
}

}  // namespace eddy::server
