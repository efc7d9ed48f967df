// Small ONNX models for tests, put together message by message.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "graph/io/tensor_proto.h"
#include "graph/io/wire_writer.h"
#include "graph/ir/tensor_view.h"
#include "graph/ir/types.h"

namespace eddy::test {

using Names = std::vector<std::string>;
using Messages = std::vector<WireWriter>;

inline WireWriter attribute(std::string_view name, int64_t value) {
  WireWriter proto;
  proto.bytes(1, name);
  proto.integer(3, value);
  proto.integer(20, 2);
  return proto;
}

inline WireWriter attribute(std::string_view name, const std::vector<int64_t>& values) {
  WireWriter proto;
  proto.bytes(1, name);
  for (int64_t value : values) proto.integer(8, value);
  proto.integer(20, 7);
  return proto;
}

inline WireWriter float_attribute(std::string_view name, float value) {
  WireWriter proto;
  proto.bytes(1, name);
  proto.float32(2, value);
  proto.integer(20, 1);
  return proto;
}

inline WireWriter graph_attribute(std::string_view name, const WireWriter& graph) {
  WireWriter proto;
  proto.bytes(1, name);
  proto.message(6, graph);
  proto.integer(20, 5);
  return proto;
}

inline WireWriter tensor_attribute(std::string_view name, const WireWriter& tensor) {
  WireWriter proto;
  proto.bytes(1, name);
  proto.message(5, tensor);
  proto.integer(20, 4);
  return proto;
}

// Stands for the attribute `from` of the function around it.
inline WireWriter ref_attribute(std::string_view name, std::string_view from, int64_t type) {
  WireWriter proto;
  proto.bytes(1, name);
  proto.bytes(21, from);
  proto.integer(20, type);
  return proto;
}

inline WireWriter node(std::string_view op, const Names& inputs, const Names& outputs,
                       const Messages& attributes = {}, std::string_view name = "",
                       std::string_view domain = "") {
  WireWriter proto;
  for (const std::string& input : inputs) proto.bytes(1, input);
  for (const std::string& output : outputs) proto.bytes(2, output);
  if (!name.empty()) proto.bytes(3, name);
  proto.bytes(4, op);
  for (const WireWriter& a : attributes) proto.message(5, a);
  if (!domain.empty()) proto.bytes(7, domain);
  return proto;
}

inline WireWriter info(std::string_view name, const ValueType& type) {
  WireWriter proto;
  proto.bytes(1, name);
  proto.message(2, type_proto(type, [](int64_t dim) { return "s" + std::to_string(-dim); }));
  return proto;
}

inline WireWriter untyped(std::string_view name) {
  WireWriter proto;
  proto.bytes(1, name);
  return proto;
}

inline ValueType floats(std::initializer_list<int64_t> dims) {
  return tensor_type(ElementType::kFloat, dims);
}
inline ValueType int64s(std::initializer_list<int64_t> dims) {
  return tensor_type(ElementType::kInt64, dims);
}
inline ValueType bools(std::initializer_list<int64_t> dims) {
  return tensor_type(ElementType::kBool, dims);
}

template <typename T>
WireWriter tensor(std::string_view name, const std::vector<int64_t>& dims,
                  const std::vector<T>& values) {
  return tensor_proto({const_cast<T*>(values.data()), dims.data(),
                       static_cast<int32_t>(dims.size()), element_type_of<T>()},
                      name);
}

struct GraphParts {
  Messages nodes = {};
  Messages inputs = {};
  Messages outputs = {};
  Messages initializers = {};
  std::string name = "test";
};

inline WireWriter graph(const GraphParts& parts) {
  WireWriter proto;
  for (const WireWriter& n : parts.nodes) proto.message(1, n);
  proto.bytes(2, parts.name);
  for (const WireWriter& t : parts.initializers) proto.message(5, t);
  for (const WireWriter& i : parts.inputs) proto.message(11, i);
  for (const WireWriter& o : parts.outputs) proto.message(12, o);
  return proto;
}

struct FunctionParts {
  std::string name;
  Names inputs = {};
  Names outputs = {};
  Messages nodes = {};
  Names attributes = {};
  Messages defaults = {};
  std::string domain = "local";
};

inline WireWriter opset_import(std::string_view domain, int64_t version) {
  WireWriter proto;
  proto.bytes(1, domain);
  proto.integer(2, version);
  return proto;
}

inline WireWriter function(const FunctionParts& parts) {
  WireWriter proto;
  proto.bytes(1, parts.name);
  for (const std::string& input : parts.inputs) proto.bytes(4, input);
  for (const std::string& output : parts.outputs) proto.bytes(5, output);
  for (const std::string& a : parts.attributes) proto.bytes(6, a);
  for (const WireWriter& n : parts.nodes) proto.message(7, n);
  proto.message(9, opset_import("", 17));
  proto.bytes(10, parts.domain);
  for (const WireWriter& a : parts.defaults) proto.message(11, a);
  return proto;
}

inline std::string model(const WireWriter& graph, int64_t opset = 17,
                         const Messages& functions = {}) {
  WireWriter proto;
  proto.integer(1, 8);
  proto.message(7, graph);
  proto.message(8, opset_import("", opset));
  proto.message(8, opset_import("eddy", 1));
  proto.message(8, opset_import("local", 1));
  for (const WireWriter& f : functions) proto.message(25, f);
  return proto.data();
}

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace eddy::test
