#include "tests/graph/io/hostile/hostile_files.h"
#include "tests/graph/io/model_writer.h"

namespace eddy::hostile {
namespace {

using namespace test;  // NOLINT: the vocabulary of model_writer.h

std::string identity_model() {
  return model(graph({.nodes = {node("Identity", {"x"}, {"y"}, {}, "copy")},
                      .inputs = {info("x", floats({2}))},
                      .outputs = {info("y", floats({2}))}}));
}

// A model with `content` as its graph's bytes.
std::string with_graph(const std::string& content) {
  WireWriter proto;
  proto.integer(1, 8);
  proto.bytes(7, content);
  proto.message(8, opset_import("", 17));
  return proto.data();
}

std::string repeated(const std::string& text, size_t count) {
  std::string all;
  all.reserve(text.size() * count);
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

// `count` empty messages of one field.
std::string empty_messages(char tag, size_t count) {
  return repeated(std::string{tag, '\0'}, count);
}

// A message nested in itself `depth` times, by way of `fields`.
std::string nested(const std::vector<uint32_t>& fields, int depth) {
  std::string inner;
  for (int d = 0; d < depth; ++d) {
    for (auto field = fields.rbegin(); field != fields.rend(); ++field) {
      WireWriter outer;
      outer.bytes(*field, inner);
      inner = outer.data();
    }
  }
  return inner;
}

std::string named_node(std::string_view name) {
  return model(graph({.nodes = {node("Identity", {"x"}, {"y"}, {}, name)},
                      .inputs = {info("x", floats({2}))},
                      .outputs = {info("y", floats({2}))}}));
}

std::string with_type(const std::string& type) {
  WireWriter value;
  value.bytes(1, "x");
  value.bytes(2, type);
  return model(graph({.inputs = {value}, .outputs = {untyped("x")}}));
}

std::string node_with_attribute(const WireWriter& attribute) {
  return model(graph({.nodes = {node("Identity", {"x"}, {"y"}, {attribute})},
                      .inputs = {info("x", floats({2}))},
                      .outputs = {info("y", floats({2}))}}));
}

WireWriter written_attribute(int64_t type) {
  WireWriter proto;
  proto.bytes(1, "a");
  proto.integer(20, type);
  return proto;
}

WireWriter raw_field(uint32_t field, const std::string& bytes) {
  WireWriter proto;
  proto.bytes(field, bytes);
  return proto;
}

void add_other_formats(HostileFiles& files) {
  files.push_back({"empty", "", "has no graph"});
  files.push_back({"text", "a text, and no model\n", "this is no ONNX file"});
  files.push_back({"gzip", "\x1f\x8b\x08\x08 and so on", "this is no ONNX file"});
  files.push_back({"zip", "PK\x03\x04 and so on", "this is no ONNX file"});
  files.push_back({"elf", std::string("\x7f") + "ELF\x02\x01\x01", "this is no ONNX file"});
  files.push_back({"zeros", std::string(1000, '\0'), "not a field tag"});
  files.push_back({"no_graph", std::string("\x08\x08", 2), "has no graph"});
}

void add_numbers(HostileFiles& files) {
  const std::string ten_ff(10, '\xff');
  files.push_back({"varint_eleven_bytes", "\x08" + ten_ff + "\x01", "longer than 64 bits"});
  files.push_back({"varint_without_end", "\x08" + std::string(3, '\xff'), "ends inside a number"});
  files.push_back({"tag_without_end", "\xff\xff", "ends inside a number"});
  files.push_back({"tag_of_40_bits", "\x80\x80\x80\x80\x80\x01\x01", "not a field tag"});
  files.push_back({"field_zero", std::string("\x02\x00", 2), "not a field tag"});
  files.push_back({"length_2_to_63", "\x3a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
                   "longer than what is left"});
  files.push_back(
      {"length_2_to_64", "\x3a" + std::string(9, '\xff') + "\x01", "longer than what is left"});
  files.push_back({"length_one_too_many", "\x3a\x02\x0a", "longer than what is left"});
  files.push_back({"group_start", "\x3b\x08\x08\x3c", "not a field tag"});
  files.push_back({"group_end", "\x3c", "not a field tag"});
  files.push_back({"wire_type_6", "\x3e\x01", "not a field tag"});
  files.push_back({"wire_type_7", "\x3f\x01", "not a field tag"});
  files.push_back({"fixed64_cut", "\x39\x01\x02\x03", "ends inside a number"});
  files.push_back({"fixed32_cut", "\x3d\x01\x02", "ends inside a number"});
}

void add_wire_types(HostileFiles& files) {
  files.push_back({"version_is_text", std::string("\x0a\x01") + "8", "expected a number"});
  files.push_back({"graph_is_a_number", "\x38\x07", "expected bytes"});
  files.push_back({"two_graphs", identity_model() + identity_model(), "two graphs"});
  files.push_back({"node_is_a_number", with_graph("\x08\x01"), "(graph.node): expected bytes"});
  files.push_back({"name_is_a_number", with_graph("\x10\x01"), "(graph.name): expected bytes"});
  files.push_back({"float_is_a_number", node_with_attribute([] {
                     WireWriter proto;
                     proto.bytes(1, "a");
                     proto.integer(2, 1);
                     return proto;
                   }()),
                   "expected a 32-bit number"});
  files.push_back({"attribute_type_99", node_with_attribute(written_attribute(99)),
                   "attribute type 99 does not exist"});
  files.push_back({"attribute_type_negative", node_with_attribute(written_attribute(-5)),
                   "attribute type -5 does not exist"});
  files.push_back(
      {"packed_floats_cut", node_with_attribute(raw_field(7, "seven b")), "take 7 bytes"});
  files.push_back({"packed_integers_cut", node_with_attribute(raw_field(8, "\xff\xff")),
                   "packed numbers are cut off"});
}

void add_nesting(HostileFiles& files) {
  files.push_back({"graphs_100_deep", with_graph(nested({1, 5, 6}, 100)), "more than 64 deep"});
  files.push_back({"graphs_5000_deep", with_graph(nested({1, 5, 6}, 5000)), "more than 64 deep"});
  files.push_back({"types_100_deep", with_type(nested({4, 1}, 100)), "more than 64 deep"});
  files.push_back({"types_5000_deep", with_type(nested({9, 1}, 5000)), "more than 64 deep"});
  files.push_back({"types_6_deep", with_type(nested({4, 1}, 6)), "graph input 'x'"});
}

void add_names(HostileFiles& files) {
  files.push_back({"name_of_17_kib", named_node(std::string(17 << 10, 'n')), "a name of 17408"});
  files.push_back({"name_with_newline", named_node("two\nlines"), "without control characters"});
  files.push_back({"name_with_escape", named_node("\x1b[31mred"), "without control characters"});
  files.push_back({"name_with_zero", named_node(std::string("a\0b", 3)), "control characters"});
  files.push_back({"name_overlong_utf8", named_node("\xc0\xaf"), "must be UTF-8"});
  files.push_back({"name_cut_utf8", named_node("\xe2\x82"), "must be UTF-8"});
  files.push_back({"name_surrogate", named_node("\xed\xa0\x80"), "must be UTF-8"});
}

// Two bytes in the file, hundreds in memory.
void add_floods(HostileFiles& files) {
  constexpr size_t kMany = size_t{3} << 20;
  const char* const too_much = "would take more than";
  files.push_back({"flood_of_nodes", with_graph(empty_messages(0x0a, kMany)), too_much});
  files.push_back({"flood_of_initializers", with_graph(empty_messages(0x2a, kMany)), too_much});
  files.push_back({"flood_of_inputs", with_graph(empty_messages(0x5a, kMany)), too_much});
  files.push_back({"flood_of_opsets", empty_messages(0x42, kMany), "has no graph"});
  files.push_back({"flood_of_metadata", empty_messages(0x72, kMany), "has no graph"});
  files.push_back({"flood_of_attributes",
                   with_graph(raw_field(1, empty_messages(0x2a, kMany)).data()), too_much});
  files.push_back({"flood_of_names",
                   with_graph(raw_field(1, empty_messages(0x0a, 2 * kMany)).data()),
                   "operator ''"});
  WireWriter strings;
  for (size_t i = 0; i < kMany; ++i) strings.bytes(9, "");
  files.push_back({"flood_of_strings", node_with_attribute(strings), too_much});
  WireWriter tensor;
  tensor.bytes(7, std::string(size_t{8} << 20, '\x01'));  // int64_data
  files.push_back(
      {"flood_of_numbers", with_graph(raw_field(5, tensor.data()).data()), "element type 0"});
  const std::string shape = raw_field(1, raw_field(2, empty_messages(0x0a, kMany)).data()).data();
  files.push_back({"flood_of_dimensions", with_type(shape), "input 'x'"});
}

// A whole model cut in the middle of each kind of field.
void add_cuts(HostileFiles& files) {
  const std::string whole = identity_model();
  for (const size_t percent : {2, 10, 25, 40, 55, 70, 85, 95}) {
    files.push_back({"cut_at_" + std::to_string(percent) + "_percent",
                     whole.substr(0, std::max<size_t>(1, whole.size() * percent / 100)),
                     percent == 2 ? "ends inside a number" : ""});
  }
}

}  // namespace

HostileFiles wire_files() {
  HostileFiles files;
  add_other_formats(files);
  add_numbers(files);
  add_wire_types(files);
  add_nesting(files);
  add_names(files);
  add_floods(files);
  add_cuts(files);
  return files;
}

}  // namespace eddy::hostile
