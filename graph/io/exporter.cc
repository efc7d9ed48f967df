#include "graph/io/exporter.h"

#include "graph/base/check.h"
#include "graph/io/export.h"
#include "graph/io/file_bytes.h"
#include "graph/io/onnx_model.h"
#include "graph/io/tensor_proto.h"
#include "graph/io/text.h"

namespace eddy {
namespace {

constexpr int64_t kIrVersion = 10;
constexpr size_t kMaxProtobufBytes = (size_t{1} << 31) - 1;

WireWriter entry_proto(std::string_view key, std::string_view value) {
  WireWriter proto;
  proto.bytes(1, key);
  proto.bytes(2, value);
  return proto;
}

WireWriter attribute_start(std::string_view name, OnnxAttributeType type) {
  WireWriter proto;
  proto.bytes(1, name);
  EDDY_CHECK(type != OnnxAttributeType::kUndefined) << name << " has no type";
  proto.integer(20, static_cast<int64_t>(type));
  return proto;
}

}  // namespace

WireWriter graph_attribute(std::string_view name, const WireWriter& graph) {
  WireWriter proto = attribute_start(name, OnnxAttributeType::kGraph);
  proto.message(6, graph);
  return proto;
}

WireWriter int_attribute(std::string_view name, int64_t value) {
  WireWriter proto = attribute_start(name, OnnxAttributeType::kInt);
  proto.integer(3, value);
  return proto;
}

Result<std::string> Exporter::run() {
  EDDY_RETURN_IF_ERROR(choose_names());
  EDDY_RETURN_IF_ERROR(choose_opsets());
  WireWriter model;
  model.integer(1, kIrVersion);
  model.bytes(2, "eddy");
  model.message(7, main_graph());
  for (const auto& [domain, version] : opsets_) {
    WireWriter opset;
    opset.bytes(1, domain);
    opset.integer(2, version);
    model.message(8, opset);
  }
  if (model.data().size() > kMaxProtobufBytes) {
    return resource_exhausted("the file would have " + std::to_string(model.data().size()) +
                              " bytes, but ONNX files end at 2 GiB");
  }
  return model.data();
}

WireWriter Exporter::main_graph() {
  WireWriter proto;
  proto.bytes(2, graph_.name());
  for (ValueId input : graph_.inputs()) {
    proto.message(11, value_info(name(input), graph_.value(input).type));
  }
  write_initializers(proto);
  write_nodes(graph_.root(), proto);
  for (size_t i = 0; i < graph_.outputs().size(); ++i) {
    const ValueId value = graph_.outputs()[i];
    const std::string& output = graph_.output_names()[i];
    if (name(value) != output) forward(name(value), output, proto);
    proto.message(12, value_info(output, graph_.value(value).type));
  }
  return proto;
}

void Exporter::write_initializers(WireWriter& proto) const {
  for (uint32_t v = 0; v < graph_.num_values(); ++v) {
    const ValueInfo& info = graph_.value(ValueId(v));
    if (info.origin != ValueOrigin::kConstant) continue;
    const TensorView view = graph_.constant(info.constant).view();
    const std::optional<uint64_t> place =
        options_.place ? options_.place(info.constant) : std::nullopt;
    proto.message(
        5, place ? placed_tensor_proto(view, names_[v], *place) : tensor_proto(view, names_[v]));
  }
}

void Exporter::write_nodes(const Region& region, WireWriter& proto) {
  for (NodeId node : region.nodes) proto.message(1, node_proto(graph_.node(node)));
}

WireWriter Exporter::node_proto(const Node& node) {
  WireWriter proto;
  switch (node.kind) {
    case NodeKind::kExec:
      write_exec(node, proto);
      break;
    case NodeKind::kWhile:
      write_while(node, proto);
      break;
    case NodeKind::kCaseOf:
      write_case(node, proto);
      break;
  }
  proto.bytes(3, node.name);
  for (ValueId output : node.outputs) proto.bytes(2, name(output));
  if (!node.device.empty()) proto.message(9, entry_proto("eddy.device", node.device));
  return proto;
}

void Exporter::write_exec(const Node& node, WireWriter& proto) const {
  proto.bytes(4, node.op->name);
  const std::string domain = domain_of(node);
  if (!domain.empty()) proto.bytes(7, domain);
  write_inputs(node.inputs, proto);
  for (const Attributes::Entry& entry : node.attributes.entries()) write_attribute(entry, proto);
}

void Exporter::write_inputs(std::span<const ValueId> inputs, WireWriter& proto) const {
  for (ValueId input : inputs) proto.bytes(1, name_or_empty(input));
}

void Exporter::write_attribute(const Attributes::Entry& entry, WireWriter& proto) const {
  const auto write = [&](OnnxAttributeType type, const auto& fill) {
    WireWriter attribute = attribute_start(entry.name, type);
    fill(attribute);
    proto.message(5, attribute);
  };
  using Type = OnnxAttributeType;
  static_assert(std::variant_size_v<AttributeValue> == 8, "each kind is written below");
  const AttributeValue& value = entry.value;
  if (const auto* i = std::get_if<int64_t>(&value)) {
    write(Type::kInt, [&](WireWriter& to) { to.integer(3, *i); });
  } else if (const auto* f = std::get_if<float>(&value)) {
    write(Type::kFloat, [&](WireWriter& to) { to.float32(2, *f); });
  } else if (const auto* s = std::get_if<std::string>(&value)) {
    write(Type::kString, [&](WireWriter& to) { to.bytes(4, *s); });
  } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&value)) {
    write(Type::kInts, [&](WireWriter& to) { to.packed_integers(8, *ints); });
  } else if (const auto* floats = std::get_if<std::vector<float>>(&value)) {
    write(Type::kFloats, [&](WireWriter& to) { to.packed_floats(7, *floats); });
  } else if (const auto* strings = std::get_if<std::vector<std::string>>(&value)) {
    write(Type::kStrings, [&](WireWriter& to) {
      for (const std::string& text : *strings) to.bytes(9, text);
    });
  } else if (const auto* constant = std::get_if<Constant>(&value)) {
    write(Type::kTensor,
          [&](WireWriter& to) { to.message(5, tensor_proto(constant->view(), "")); });
  } else if (const auto* type = std::get_if<ValueType>(&value)) {
    const auto symbol = [&](int64_t dim) { return graph_.symbol(dim); };
    write(Type::kType, [&](WireWriter& to) { to.message(14, type_proto(*type, symbol)); });
  }
}

std::string Exporter::forward(std::string_view from, const std::string& to, WireWriter& proto) {
  WireWriter node;
  node.bytes(1, from);
  node.bytes(2, to);
  node.bytes(4, "Identity");
  node.message(9, entry_proto("eddy.forward", "1"));
  proto.message(1, node);
  return to;
}

void Exporter::write_results(const Region& region, std::span<const ValueId> results,
                             WireWriter& proto) {
  std::unordered_set<std::string> listed;
  for (ValueId result : results) {
    const ValueInfo& info = graph_.value(result);
    const bool is_produced_here = info.origin == ValueOrigin::kNodeOutput &&
                                  &graph_.region(info.region) == &region &&
                                  listed.insert(name(result)).second;
    const std::string output =
        is_produced_here ? name(result) : forward(name(result), made_up(""), proto);
    proto.message(12, value_info(output, info.type));
  }
}

WireWriter Exporter::value_info(std::string_view name, const ValueType& type) const {
  WireWriter proto;
  proto.bytes(1, name);
  proto.message(2, type_proto(type, [&](int64_t dim) { return graph_.symbol(dim); }));
  return proto;
}

Result<std::string> format_onnx(const Graph& graph, const ExportOptions& options) {
  for (uint32_t c = 0; c < graph.num_constants(); ++c) {
    const Constant& constant = graph.constant(ConstantId(c));
    if (constant.data != nullptr || constant.view().count() == 0) continue;
    return invalid_argument(
        "a constant of type " + to_string(ValueType(constant.type())) +
        " has let go of its bytes; export the graph before it becomes a session");
  }
  return Exporter(graph, options).run();
}

Status export_onnx(const Graph& graph, const std::string& path) {
  EDDY_ASSIGN_OR_RETURN(const std::string content, format_onnx(graph));
  return write_file(path, content);
}

}  // namespace eddy
