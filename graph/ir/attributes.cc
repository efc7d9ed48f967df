#include "graph/ir/attributes.h"

#include <algorithm>

namespace eddy {
namespace {

template <typename T>
const T* get_if(const AttributeValue* value) {
  return value == nullptr ? nullptr : std::get_if<T>(value);
}

template <typename T>
std::span<const T> span_of(const AttributeValue* value) {
  const auto* list = get_if<std::vector<T>>(value);
  return list == nullptr ? std::span<const T>() : std::span<const T>(*list);
}

}  // namespace

void Attributes::set(std::string name, AttributeValue value) {
  for (Entry& entry : entries_) {
    if (entry.name == name) {
      entry.value = std::move(value);
      return;
    }
  }
  entries_.push_back({std::move(name), std::move(value)});
}

const AttributeValue* Attributes::find_or_null(std::string_view name) const {
  const auto it = std::find_if(entries_.begin(), entries_.end(),
                               [&](const Entry& entry) { return entry.name == name; });
  return it == entries_.end() ? nullptr : &it->value;
}

int64_t Attributes::get_int(std::string_view name, int64_t fallback) const {
  const auto* value = get_if<int64_t>(find_or_null(name));
  return value == nullptr ? fallback : *value;
}

float Attributes::get_float(std::string_view name, float fallback) const {
  const auto* value = get_if<float>(find_or_null(name));
  return value == nullptr ? fallback : *value;
}

std::string_view Attributes::get_string(std::string_view name, std::string_view fallback) const {
  const auto* value = get_if<std::string>(find_or_null(name));
  return value == nullptr ? fallback : std::string_view(*value);
}

std::span<const int64_t> Attributes::get_ints(std::string_view name) const {
  return span_of<int64_t>(find_or_null(name));
}

std::span<const float> Attributes::get_floats(std::string_view name) const {
  return span_of<float>(find_or_null(name));
}

std::span<const std::string> Attributes::get_strings(std::string_view name) const {
  return span_of<std::string>(find_or_null(name));
}

const Constant* Attributes::get_tensor_or_null(std::string_view name) const {
  return get_if<Constant>(find_or_null(name));
}

}  // namespace eddy
