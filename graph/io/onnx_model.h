// An ONNX file as plain structs: what parse_model() makes and the importer reads.
//
// Strings and raw bytes are views into the file's bytes and live as long as those. Only what
// Eddy uses is kept (no doc strings). Nothing here has been interpreted yet:
// names may clash, types may be nonsense, references may dangle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace eddy {

struct OnnxEntry {  // StringStringEntryProto
  std::string_view key;
  std::string_view value;
};

struct OnnxTensor {
  std::string_view name;
  int32_t data_type = 0;
  std::vector<int64_t> dims;
  bool has_raw_data = false;
  std::span<const std::byte> raw_data;  // little-endian
  std::vector<float> float_data;
  std::vector<int32_t> int32_data;
  std::vector<int64_t> int64_data;
  std::vector<double> double_data;
  std::vector<uint64_t> uint64_data;
  std::vector<std::string_view> string_data;
  bool is_external = false;
  bool is_segment = false;
  std::vector<OnnxEntry> external_data;
  size_t offset = 0;  // in the file, for messages
};

// SparseTensorProto. Its name is that of its values.
struct OnnxSparseTensor {
  OnnxTensor values;
  bool has_indices = false;
  OnnxTensor indices;
  std::vector<int64_t> dims;  // of the dense tensor
};

struct OnnxDim {
  enum class Kind : uint8_t { kUnknown, kValue, kParam } kind = Kind::kUnknown;
  int64_t value = 0;
  std::string_view param;
};

// TypeProto, flattened: sequence and optional layers around a tensor.
struct OnnxType {
  enum class Layer : uint8_t { kSequence, kOptional };
  std::vector<Layer> layers;    // outermost first
  bool is_tensor = false;       // the innermost type is a tensor
  const char* other = nullptr;  // "map", "opaque" or "sparse tensor": none of values
  int32_t map_key = 0;          // element types of a map to tensors, else 0
  int32_t map_value = 0;
  int32_t element = 0;
  bool has_shape = false;
  std::vector<OnnxDim> dims;
};

struct OnnxValueInfo {
  std::string_view name;
  bool has_type = false;
  OnnxType type;
};

struct OnnxGraph;

enum class OnnxAttributeType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
  kTensors = 9,
  kGraphs = 10,
  kSparseTensor = 11,
  kSparseTensors = 12,
  kType = 13,
  kTypes = 14,
};

struct OnnxAttribute {
  std::string_view name;
  std::string_view ref_name;  // non-empty: stands for the calling node's attribute of that name
  OnnxAttributeType type = OnnxAttributeType::kUndefined;  // as written, else what was present
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::vector<OnnxTensor> tensors;               // one for kTensor
  std::vector<OnnxGraph> graphs;                 // one for kGraph
  std::vector<OnnxSparseTensor> sparse_tensors;  // one for kSparseTensor
  std::vector<OnnxType> types;                   // one for kType
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
};

struct OnnxNode {
  std::string_view name;
  std::string_view op_type;
  std::string_view domain;
  std::string_view overload;
  std::vector<std::string_view> inputs;   // empty: omitted
  std::vector<std::string_view> outputs;  // empty: not wanted
  std::vector<OnnxAttribute> attributes;
  std::vector<OnnxEntry> metadata;

  std::string_view metadata_or_empty(std::string_view key) const {
    for (const OnnxEntry& entry : metadata) {
      if (entry.key == key) return entry.value;
    }
    return {};
  }
};

struct OnnxGraph {
  std::string_view name;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> initializers;
  std::vector<OnnxSparseTensor> sparse_initializers;
  std::vector<OnnxValueInfo> inputs;
  std::vector<OnnxValueInfo> outputs;
};

struct OnnxOpset {
  std::string_view domain;
  int64_t version = 0;
};

struct OnnxFunction {
  std::string_view name;
  std::string_view domain;
  std::string_view overload;
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  std::vector<std::string_view> attributes;       // without a default
  std::vector<OnnxAttribute> default_attributes;  // with one
  std::vector<OnnxNode> nodes;
  std::vector<OnnxOpset> opsets;
};

// TrainingInfoProto: what changes initializers, of the graph or its own.
struct OnnxTraining {
  bool has_initialization = false;
  OnnxGraph initialization;
  OnnxGraph algorithm;  // its nodes may read what the model's graph makes
  std::vector<OnnxEntry> initialization_binding;  // initializer, output of `initialization`
  std::vector<OnnxEntry> update_binding;          // initializer, output of `algorithm`
};

struct OnnxModel {
  int64_t ir_version = 0;
  std::vector<OnnxOpset> opsets;
  bool has_graph = false;
  OnnxGraph graph;
  std::vector<OnnxFunction> functions;
  std::vector<OnnxEntry> metadata;
  std::vector<OnnxTraining> training;
};

// "ai.onnx" and "" are the same domain; this is the one Eddy uses.
inline std::string_view canonical_domain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}

// SequenceProto or OptionalProto of test data (their fields have the same numbers). kind follows
// the proto's own enumeration.
struct OnnxValue {
  enum class Kind : int32_t { kNone = 0, kTensor = 1, kSequence = 3, kOptional = 5, kOther = 99 };
  Kind kind = Kind::kNone;  // of the elements or the content
  std::vector<OnnxTensor> tensors;
  std::vector<OnnxValue> values;  // sequences or optionals
};

}  // namespace eddy
