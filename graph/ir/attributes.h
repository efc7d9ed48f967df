// Attributes: the named constants of a node, as ONNX has them (graphs excepted: those are
// regions). A Constant is a tensor whose bytes the graph owns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "graph/ir/tensor_view.h"
#include "graph/ir/types.h"

namespace eddy {

// A tensor with known bytes, aligned to its element; the graph, or the builder of the graph, owns
// the bytes.
struct Constant {
  ElementType element = ElementType::kUndefined;
  Dims dims;  // static
  const void* data = nullptr;

  // Valid while this Constant and its bytes live. Never write through it.
  TensorView view() const { return {const_cast<void*>(data), dims.data(), dims.rank(), element}; }
  TensorType type() const { return {element, dims}; }
};

using AttributeValue =
    std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                 std::vector<std::string>, Constant, ValueType>;

class Attributes {
 public:
  struct Entry {
    std::string name;
    AttributeValue value;
  };

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries) : entries_(entries) {}

  void set(std::string name, AttributeValue value);
  const AttributeValue* find_or_null(std::string_view name) const;
  bool has(std::string_view name) const { return find_or_null(name) != nullptr; }

  // The attribute when present and of that kind (OpDef rules have checked kinds), else `fallback`.
  int64_t get_int(std::string_view name, int64_t fallback) const;
  float get_float(std::string_view name, float fallback) const;
  std::string_view get_string(std::string_view name, std::string_view fallback) const;
  std::span<const int64_t> get_ints(std::string_view name) const;  // empty when absent
  std::span<const float> get_floats(std::string_view name) const;
  std::span<const std::string> get_strings(std::string_view name) const;
  const Constant* get_tensor_or_null(std::string_view name) const;

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;  // in the order given; few
};

}  // namespace eddy
