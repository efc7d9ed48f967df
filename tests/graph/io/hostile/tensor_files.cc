#include "tests/graph/io/hostile/hostile_files.h"
#include "tests/graph/io/model_writer.h"

namespace eddy::hostile {
namespace {

using namespace test;  // NOLINT: the vocabulary of model_writer.h

std::string with_initializer(const WireWriter& tensor) {
  return model(graph({.nodes = {node("Identity", {"w"}, {"y"})},
                      .outputs = {untyped("y")},
                      .initializers = {tensor}}));
}

struct TensorParts {
  std::vector<int64_t> dims;
  int64_t type = 1;
  uint32_t data_field = 9;
  std::string data;
};

WireWriter tensor_of(const TensorParts& parts) {
  WireWriter proto;
  for (int64_t dim : parts.dims) proto.integer(1, dim);
  proto.integer(2, parts.type);
  proto.bytes(8, "w");
  proto.bytes(parts.data_field, parts.data);
  return proto;
}

std::string with_input_type(int64_t element, const std::vector<int64_t>& dims) {
  WireWriter shape;
  for (int64_t dim : dims) {
    WireWriter d;
    d.integer(1, dim);
    shape.message(1, d);
  }
  WireWriter tensor;
  tensor.integer(1, element);
  tensor.message(2, shape);
  WireWriter type;
  type.message(1, tensor);
  WireWriter value;
  value.bytes(1, "x");
  value.message(2, type);
  return model(graph({.inputs = {value}, .outputs = {untyped("x")}}));
}

std::string with_other_type(uint32_t field) {
  WireWriter type;
  type.bytes(field, "");
  WireWriter value;
  value.bytes(1, "x");
  value.message(2, type);
  return model(graph({.inputs = {value}, .outputs = {untyped("x")}}));
}

void add_dimensions(HostileFiles& files) {
  const auto add = [&](const char* name, const TensorParts& parts, const char* says) {
    files.push_back({name, with_initializer(tensor_of(parts)), says});
  };
  constexpr int64_t kBig = int64_t{1} << 40;
  add("dimension_negative", {.dims = {-1}, .data = "abcd"}, "a dimension has size -1");
  add("dimension_int64_min", {.dims = {INT64_MIN}, .data = "abcd"}, "a dimension has size -9223");
  add("dimensions_overflow", {.dims = {kBig, kBig}, .data = "abcd"}, "more than 68719476736");
  add("dimensions_overflow_to_zero", {.dims = {int64_t{1} << 32, int64_t{1} << 32}, .data = ""},
      "more than 68719476736");
  add("dimensions_overflow_to_one", {.dims = {3, 0x5555555555555555 + 1, 1}, .data = "abcd"},
      "more than 68719476736");
  add("dimension_int64_max", {.dims = {INT64_MAX}, .data = "abcd"}, "more than 68719476736");
  add("dimensions_empty_but_huge", {.dims = {int64_t{1} << 61, 0}, .data = ""},
      "empty, but its other dimensions are too large");
  files.push_back({"input_empty_but_huge", with_input_type(1, {kBig, 0, kBig}), "too large"});
  add("rank_9", {.dims = std::vector<int64_t>(9, 1), .data = "abcd"}, "rank 9 is not supported");
  add("rank_10000", {.dims = std::vector<int64_t>(10000, 1), .data = "abcd"},
      "rank 10000 is not supported");
  files.push_back({"input_rank_100", with_input_type(1, std::vector<int64_t>(100, 2)), "rank 100"});
  files.push_back({"input_dimension_negative", with_input_type(1, {-7}), "input 'x'"});
}

void add_types(HostileFiles& files) {
  for (const int64_t type : {0, 99, -1}) {
    files.push_back({"element_type_" + std::to_string(type),
                     with_initializer(tensor_of({.dims = {1}, .type = type, .data = "abcd"})),
                     "element type"});
  }
  files.push_back({"input_element_type_77", with_input_type(77, {1}), "input 'x'"});
  files.push_back({"input_map", with_other_type(5), "map"});
  files.push_back({"input_opaque", with_other_type(7), "opaque"});
  files.push_back({"input_sparse", with_other_type(8), "sparse"});
  files.push_back({"input_without_type",
                   model(graph({.inputs = {untyped("x")}, .outputs = {untyped("x")}})),
                   "graph input 'x'"});
}

void add_data(HostileFiles& files) {
  const auto add = [&](const char* name, const TensorParts& parts, const char* says) {
    files.push_back({name, with_initializer(tensor_of(parts)), says});
  };
  add("raw_too_short", {.dims = {4}, .data = "abcd"}, "has 4 bytes, but float[4] takes 16");
  add("raw_too_long", {.dims = {1}, .data = "abcdefgh"}, "has 8 bytes, but float[1] takes 4");
  add("raw_for_no_elements", {.dims = {0}, .data = "abcd"}, "has 4 bytes, but float[0] takes 0");
  add("raw_claims_gigabytes", {.dims = {int64_t{1} << 32}, .data = "abcd"},
      "has 4 bytes, but float[4294967296]");
  add("raw_strings", {.dims = {1}, .type = 8, .data = "abcd"}, "strings can't be raw");
  add("float_data_too_few", {.dims = {1 << 30}, .data_field = 4, .data = "abcd"},
      "float_data holds 1 numbers where the shape needs 1073741824");
  add("int32_data_too_few", {.dims = {1 << 30}, .type = 3, .data_field = 5, .data = "\x01"},
      "int32_data holds 1 numbers");
  add("int64_data_too_many", {.dims = {1}, .type = 7, .data_field = 7, .data = "\x01\x02"},
      "int64_data holds 2 numbers");
  add("double_data_too_few", {.dims = {2}, .type = 11, .data_field = 10, .data = "abcdefgh"},
      "double_data holds 1 numbers");
  add("four_bits_too_few", {.dims = {1 << 30}, .type = 21, .data_field = 5, .data = "\x01"},
      "int32_data holds 1 numbers");
  add("strings_too_few", {.dims = {1 << 30}, .type = 8, .data_field = 6, .data = "abcd"},
      "string_data holds 1 numbers");
  add("wrong_field_for_type", {.dims = {1}, .type = 1, .data_field = 7, .data = "\x01"},
      "float_data holds 0 numbers");
  WireWriter segment = tensor_of({.dims = {1}, .data = "abcd"});
  segment.bytes(3, "");
  files.push_back({"segment", with_initializer(segment), "tensors in segments"});
  WireWriter location = tensor_of({.dims = {1}, .data = "abcd"});
  location.integer(14, 7);
  files.push_back({"data_location_7", with_initializer(location), "7 is not a location"});
}

// One value of a sparse tensor.
WireWriter sparse_tensor(int64_t size, int64_t index) {
  WireWriter sparse;
  sparse.message(1, tensor<float>("s", {1}, {1.0f}));
  sparse.message(2, tensor<int64_t>("", {1}, {index}));
  sparse.integer(3, size);
  return sparse;
}

void add_sparse(HostileFiles& files) {
  const auto add = [&](const std::string& name, int64_t size, int64_t index, const char* says) {
    const WireWriter sparse = sparse_tensor(size, index);
    WireWriter inner = graph({.outputs = {untyped("s")}});
    inner.message(15, sparse);
    files.push_back({"sparse_initializer_" + name, model(inner), says});
    WireWriter attribute;
    attribute.bytes(1, "sparse_value");
    attribute.message(22, sparse);
    attribute.integer(20, 11);
    files.push_back({"sparse_constant_" + name,
                     model(graph({.nodes = {node("Constant", {}, {"y"}, {attribute})},
                                  .outputs = {untyped("y")}})),
                     says});
  };
  add("bomb", int64_t{1} << 40, 0, "more than 68719476736 elements");
  add("gigabytes", int64_t{1} << 30, 0, "store the tensor with all its elements");
  add("index_outside", 4, 4, "index 0 is 4, outside of the shape [4]");
  add("index_int64_min", 4, INT64_MIN, "index 0 is -9223372036854775808, outside");
}

}  // namespace

HostileFiles tensor_files() {
  HostileFiles files;
  add_dimensions(files);
  add_types(files);
  add_data(files);
  add_sparse(files);
  return files;
}

}  // namespace eddy::hostile
