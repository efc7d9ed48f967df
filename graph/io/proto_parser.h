// ProtoParser: the machinery under parse_model.h: where we are in the file, the first error, and
// typed access to fields. Internal to graph/io.
//
// Each parsing function takes the reader of its message and fills one struct; it just returns
// when something fails, and the status names it. Recursion is bounded by limits.max_nesting.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "graph/base/check.h"
#include "graph/io/import_limits.h"
#include "graph/io/memory_budget.h"
#include "graph/io/onnx_model.h"
#include "graph/io/wire_reader.h"

namespace eddy {

class ProtoParser {
 public:
  ProtoParser(const ImportLimits& limits, MemoryBudget& budget)
      : limits_(limits), budget_(budget) {}

  void parse(WireReader reader, OnnxModel& model);
  void parse(WireReader reader, OnnxGraph& graph);
  void parse(WireReader reader, OnnxTraining& training);
  void parse(WireReader reader, OnnxNode& node);
  void parse(WireReader reader, OnnxFunction& function);
  void parse(WireReader reader, OnnxAttribute& attribute);
  void parse(WireReader reader, OnnxTensor& tensor);
  void parse(WireReader reader, OnnxSparseTensor& sparse);
  void parse(WireReader reader, OnnxValueInfo& info);
  void parse(WireReader reader, OnnxType& type);
  void parse(WireReader reader, OnnxOpset& opset);
  void parse(WireReader reader, OnnxEntry& entry);
  // SequenceProto and OptionalProto have the same fields.
  void parse(WireReader reader, OnnxValue& value);

  const Status& status() const { return status_; }

 private:
  struct PathPart {
    const char* name;
    size_t index;  // kNoIndex: not repeated
  };
  static constexpr size_t kNoIndex = SIZE_MAX;

  // Next field; false at the end or after an error, which is recorded.
  bool next(WireReader& reader);
  void fail(size_t offset, const char* field, std::string_view what);
  void fail_limit(size_t offset, std::string_view what);
  bool expect(const WireReader& reader, WireType type, const char* field);
  // Before something is allocated. Lists are charged twice: they grow by copying.
  bool charge(size_t offset, uint64_t size_bytes) {
    if (budget_.charge(size_bytes)) return true;
    fail_limit(offset, budget_.message());
    return false;
  }

  void get(const WireReader& reader, const char* field, int64_t* value);
  void get(const WireReader& reader, const char* field, int32_t* value);
  void get(const WireReader& reader, const char* field, float* value);
  void get_bytes(const WireReader& reader, const char* field, std::span<const std::byte>* value);
  void get_string(const WireReader& reader, const char* field, std::string_view* value);
  // As get_string; the text must be fit for names and messages.
  void get_name(const WireReader& reader, const char* field, std::string_view* value);
  void add_name(const WireReader& reader, const char* field, std::vector<std::string_view>& to);
  void add_string(const WireReader& reader, const char* field, std::vector<std::string_view>& to);
  // Repeated numbers, packed or one by one.
  template <typename T>
  void add_integers(const WireReader& reader, const char* field, std::vector<T>& to);
  template <typename T>
  void add_fixed(const WireReader& reader, const char* field, std::vector<T>& to);

  // One submessage, single or the next of a repeated field.
  template <typename T>
  void get_message(const WireReader& reader, const char* field, T& value, size_t index = kNoIndex);
  template <typename T>
  void add_message(const WireReader& reader, const char* field, std::vector<T>& to);

  // Counts a level of nesting while it lives.
  class Nest;
  void parse_tensor_type(WireReader reader, OnnxType& type);
  void parse_shape(WireReader reader, OnnxType& type);
  void parse_dim(WireReader reader, OnnxDim& dim);
  void parse_layer(WireReader reader, OnnxType::Layer layer, OnnxType& type);
  void parse_map(WireReader reader, OnnxType& type);
  void parse_values_field(const WireReader& reader, OnnxValue& value);

  const ImportLimits& limits_;
  MemoryBudget& budget_;
  Status status_;
  std::vector<PathPart> path_;
  int nesting_ = 0;
  int64_t num_messages_ = 0;
};

class ProtoParser::Nest {
 public:
  Nest(ProtoParser& parser, size_t offset) : parser_(parser) {
    if (++parser_.nesting_ > parser_.limits_.max_nesting) {
      parser_.fail_limit(offset, "graphs or types are nested more than " +
                                     std::to_string(parser_.limits_.max_nesting) + " deep");
    }
  }
  ~Nest() {
    EDDY_DCHECK(parser_.nesting_ > 0) << "a level is left twice";
    --parser_.nesting_;
  }
  Nest(const Nest&) = delete;
  Nest& operator=(const Nest&) = delete;

 private:
  ProtoParser& parser_;
};

template <typename T>
void ProtoParser::get_message(const WireReader& reader, const char* field, T& value, size_t index) {
  if (!expect(reader, WireType::kBytes, field)) return;
  if (++num_messages_ > limits_.max_messages) {
    return fail_limit(reader.offset(), "the file holds more than " +
                                           std::to_string(limits_.max_messages) + " messages");
  }
  path_.push_back({field, index});
  const size_t depth = path_.size();
  parse(WireReader(reader.bytes(), reader.payload_offset()), value);
  EDDY_CHECK(path_.size() == depth) << "a message inside " << field << " was not left";
  path_.pop_back();
}

template <typename T>
void ProtoParser::add_message(const WireReader& reader, const char* field, std::vector<T>& to) {
  if (!charge(reader.offset(), 2 * sizeof(T))) return;
  const size_t index = to.size();
  get_message(reader, field, to.emplace_back(), index);
}

template <typename T>
void ProtoParser::add_integers(const WireReader& reader, const char* field, std::vector<T>& to) {
  if (reader.type() == WireType::kVarint) {
    if (!charge(reader.offset(), 2 * sizeof(T))) return;
    to.push_back(static_cast<T>(reader.number()));
    return;
  }
  if (!expect(reader, WireType::kBytes, field)) return;
  const auto ends_number = [](std::byte b) { return (b & std::byte{0x80}) == std::byte{0}; };
  const auto count =
      static_cast<size_t>(std::count_if(reader.bytes().begin(), reader.bytes().end(), ends_number));
  if (!charge(reader.offset(), 2 * count * sizeof(T))) return;
  if (to.empty()) to.reserve(count);
  PackedReader packed(reader.bytes());
  for (uint64_t value = 0; packed.next(&value);) to.push_back(static_cast<T>(value));
  if (!packed.is_ok()) fail(reader.offset(), field, "the packed numbers are cut off or too long");
}

}  // namespace eddy
