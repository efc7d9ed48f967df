#include "graph/io/parse_model.h"

#include "graph/io/proto_parser.h"

namespace eddy {

void ProtoParser::parse(WireReader reader, OnnxModel& model) {
  while (next(reader)) {
    switch (reader.field()) {
      case 1:
        get(reader, "ir_version", &model.ir_version);
        break;
      case 7:
        if (model.has_graph) return fail(reader.offset(), "graph", "the model has two graphs");
        model.has_graph = true;
        get_message(reader, "graph", model.graph);
        break;
      case 8:
        add_message(reader, "opset_import", model.opsets);
        break;
      case 14:
        add_message(reader, "metadata_props", model.metadata);
        break;
      case 20:
        add_message(reader, "training_info", model.training);
        break;
      case 25:
        add_message(reader, "functions", model.functions);
        break;
      default:
        break;
    }
  }
  // Before IR version 3 there was no opset_import, and opset 1 was meant.
  const bool is_before_opsets = model.ir_version == 1 || model.ir_version == 2;
  if (is_before_opsets && model.opsets.empty()) model.opsets.push_back({"", 1});
}

void ProtoParser::parse(WireReader reader, OnnxGraph& graph) {
  const Nest nest(*this, reader.offset());
  while (next(reader)) {
    switch (reader.field()) {
      case 1:
        add_message(reader, "node", graph.nodes);
        break;
      case 2:
        get_name(reader, "name", &graph.name);
        break;
      case 5:
        add_message(reader, "initializer", graph.initializers);
        break;
      case 11:
        add_message(reader, "input", graph.inputs);
        break;
      case 12:
        add_message(reader, "output", graph.outputs);
        break;
      case 15:
        add_message(reader, "sparse_initializer", graph.sparse_initializers);
        break;
      default:
        break;
    }
  }
}

void ProtoParser::parse(WireReader reader, OnnxTraining& training) {
  while (next(reader)) {
    switch (reader.field()) {
      case 1:
        training.has_initialization = true;
        get_message(reader, "initialization", training.initialization);
        break;
      case 2:
        get_message(reader, "algorithm", training.algorithm);
        break;
      case 3:
        add_message(reader, "initialization_binding", training.initialization_binding);
        break;
      case 4:
        add_message(reader, "update_binding", training.update_binding);
        break;
      default:
        break;
    }
  }
}

void ProtoParser::parse(WireReader reader, OnnxNode& node) {
  while (next(reader)) {
    switch (reader.field()) {
      case 1:
        add_name(reader, "input", node.inputs);
        break;
      case 2:
        add_name(reader, "output", node.outputs);
        break;
      case 3:
        get_name(reader, "name", &node.name);
        break;
      case 4:
        get_name(reader, "op_type", &node.op_type);
        break;
      case 5:
        add_message(reader, "attribute", node.attributes);
        break;
      case 7:
        get_name(reader, "domain", &node.domain);
        break;
      case 8:
        get_name(reader, "overload", &node.overload);
        break;
      case 9:
        add_message(reader, "metadata_props", node.metadata);
        break;
      default:
        break;
    }
  }
}

void ProtoParser::parse(WireReader reader, OnnxFunction& function) {
  while (next(reader)) {
    switch (reader.field()) {
      case 1:
        get_name(reader, "name", &function.name);
        break;
      case 4:
        add_name(reader, "input", function.inputs);
        break;
      case 5:
        add_name(reader, "output", function.outputs);
        break;
      case 6:
        add_name(reader, "attribute", function.attributes);
        break;
      case 7:
        add_message(reader, "node", function.nodes);
        break;
      case 9:
        add_message(reader, "opset_import", function.opsets);
        break;
      case 10:
        get_name(reader, "domain", &function.domain);
        break;
      case 11:
        add_message(reader, "attribute_proto", function.default_attributes);
        break;
      case 13:
        get_name(reader, "overload", &function.overload);
        break;
      default:
        break;
    }
  }
}

namespace {

// Files older than IR version 2 may leave the type out: what is present decides.
OnnxAttributeType implied_type(uint32_t field) {
  switch (field) {
    case 2:
      return OnnxAttributeType::kFloat;
    case 3:
      return OnnxAttributeType::kInt;
    case 4:
      return OnnxAttributeType::kString;
    case 5:
      return OnnxAttributeType::kTensor;
    case 6:
      return OnnxAttributeType::kGraph;
    case 7:
      return OnnxAttributeType::kFloats;
    case 8:
      return OnnxAttributeType::kInts;
    case 9:
      return OnnxAttributeType::kStrings;
    case 10:
      return OnnxAttributeType::kTensors;
    case 11:
      return OnnxAttributeType::kGraphs;
    case 14:
      return OnnxAttributeType::kType;
    case 15:
      return OnnxAttributeType::kTypes;
    case 22:
      return OnnxAttributeType::kSparseTensor;
    case 23:
      return OnnxAttributeType::kSparseTensors;
    default:
      return OnnxAttributeType::kUndefined;
  }
}

}  // namespace

void ProtoParser::parse(WireReader reader, OnnxAttribute& attribute) {
  OnnxAttributeType implied = OnnxAttributeType::kUndefined;
  int32_t written = 0;
  while (next(reader)) {
    if (const auto type = implied_type(reader.field()); type != OnnxAttributeType::kUndefined) {
      implied = type;
    }
    switch (reader.field()) {
      case 1:
        get_name(reader, "name", &attribute.name);
        break;
      case 2:
        get(reader, "f", &attribute.f);
        break;
      case 3:
        get(reader, "i", &attribute.i);
        break;
      case 4:
        get_string(reader, "s", &attribute.s);
        break;
      case 5:
      case 10:
        add_message(reader, "tensor", attribute.tensors);
        break;
      case 6:
      case 11:
        add_message(reader, "graph", attribute.graphs);
        break;
      case 7:
        add_fixed(reader, "floats", attribute.floats);
        break;
      case 8:
        add_integers(reader, "ints", attribute.ints);
        break;
      case 9:
        add_string(reader, "strings", attribute.strings);
        break;
      case 14:
      case 15:
        add_message(reader, "type_proto", attribute.types);
        break;
      case 22:
      case 23:
        add_message(reader, "sparse_tensor", attribute.sparse_tensors);
        break;
      case 20:
        get(reader, "type", &written);
        break;
      case 21:
        get_name(reader, "ref_attr_name", &attribute.ref_name);
        break;
      default:
        break;
    }
  }
  if (written < 0 || written > static_cast<int32_t>(OnnxAttributeType::kTypes)) {
    return fail(reader.offset(), "type",
                "attribute type " + std::to_string(written) + " does not exist");
  }
  attribute.type = written != 0 ? static_cast<OnnxAttributeType>(written) : implied;
}

void ProtoParser::parse(WireReader reader, OnnxOpset& opset) {
  while (next(reader)) {
    switch (reader.field()) {
      case 1:
        get_name(reader, "domain", &opset.domain);
        break;
      case 2:
        get(reader, "version", &opset.version);
        break;
      default:
        break;
    }
  }
}

void ProtoParser::parse(WireReader reader, OnnxEntry& entry) {
  while (next(reader)) {
    switch (reader.field()) {
      case 1:
        get_string(reader, "key", &entry.key);
        break;
      case 2:
        get_string(reader, "value", &entry.value);
        break;
      default:
        break;
    }
  }
}

Result<OnnxModel> parse_model(std::span<const std::byte> bytes, const ImportLimits& limits) {
  MemoryBudget budget(limits);
  budget.add_file(bytes.size());
  return parse_model(bytes, limits, budget);
}

Result<OnnxModel> parse_model(std::span<const std::byte> bytes, const ImportLimits& limits,
                              MemoryBudget& budget) {
  ProtoParser parser(limits, budget);
  OnnxModel model;
  parser.parse(WireReader(bytes), model);
  if (!parser.status().is_ok()) return parser.status();
  if (!model.has_graph) {
    return invalid_argument(
        "not an ONNX model: the file has no graph; check that it is a .onnx "
        "file and was written completely");
  }
  return model;
}

}  // namespace eddy
