#include "graph/simulate/json_fields.h"

#include <cmath>

namespace eddy {
namespace {

using Json = nlohmann::json;

bool is_int64(const Json& value) {
  return value.is_number_integer() &&
         !(value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX));
}

std::string quoted(const char* key) { return "\"" + std::string(key) + "\""; }

}  // namespace

Status JsonFields::check_object() const {
  return object_.is_object() ? Status::ok() : fail("must be a JSON object");
}

const Json* JsonFields::find_or_null(const char* key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

Result<std::string> JsonFields::text(const char* key) const {
  const Json* value = find_or_null(key);
  if (value == nullptr || !value->is_string()) return fail("needs the string " + quoted(key));
  return value->get<std::string>();
}

Result<double> JsonFields::number_or(const char* key, double fallback) const {
  const Json* value = find_or_null(key);
  if (value == nullptr) return fallback;
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    return fail(quoted(key) + " must be a finite number");
  }
  return value->get<double>();
}

Result<int64_t> JsonFields::integer_or(const char* key, int64_t fallback) const {
  const Json* value = find_or_null(key);
  if (value == nullptr) return fallback;
  if (!is_int64(*value)) return fail(quoted(key) + " must be an integer");
  return value->get<int64_t>();
}

Result<bool> JsonFields::flag_or(const char* key, bool fallback) const {
  const Json* value = find_or_null(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) return fail(quoted(key) + " must be true or false");
  return value->get<bool>();
}

Result<std::vector<int64_t>> JsonFields::integers(const char* key, bool may_be_single) const {
  const Json* value = find_or_null(key);
  if (value == nullptr) return std::vector<int64_t>();
  if (may_be_single && is_int64(*value)) return std::vector<int64_t>{value->get<int64_t>()};
  if (!value->is_array()) {
    return fail(quoted(key) + " must be a list of integers");
  }
  std::vector<int64_t> integers;
  for (const Json& entry : *value) {
    if (!is_int64(entry)) return fail(quoted(key) + " must be a list of integers");
    integers.push_back(entry.get<int64_t>());
  }
  return integers;
}

Result<const Json*> JsonFields::list(const char* key, bool is_needed) const {
  static const Json kEmpty = Json::array();
  const Json* value = find_or_null(key);
  if (value == nullptr && !is_needed) return &kEmpty;
  if (value == nullptr || !value->is_array()) return fail("needs the list " + quoted(key));
  return value;
}

Result<std::string> JsonFields::name_of(const Json& value, const std::string& where) {
  if (value.is_string()) return value.get<std::string>();
  if (is_int64(value)) return std::to_string(value.get<int64_t>());
  return invalid_argument(where + ": a name must be a string or an integer");
}

}  // namespace eddy
