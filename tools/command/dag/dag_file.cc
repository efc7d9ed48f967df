#include "tools/command/dag/dag_file.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "graph/base/check.h"

namespace eddy {
namespace {

using Json = nlohmann::json;

// Gives equal keys equal numbers, in order of appearance.
class Names {
 public:
  uint32_t number(const std::string& key, const std::string& name) {
    const auto [place, is_new] = numbers_.try_emplace(key, static_cast<uint32_t>(names_.size()));
    if (is_new) names_.push_back(name);
    return place->second;
  }
  size_t size() const { return names_.size(); }
  std::vector<std::string> take() { return std::move(names_); }
  // The string "0" beside the integer 0 keeps its quotes.
  std::vector<std::string> take_distinct() {
    for (const auto& [key, number] : numbers_) {
      const std::string name = names_[number];
      if (key == "s" + name && numbers_.contains("i" + name)) names_[number] = '"' + name + '"';
    }
    return take();
  }

 private:
  std::unordered_map<std::string, uint32_t> numbers_;
  std::vector<std::string> names_;
};

// One scalar of the document, as far as it matters here.
struct Scalar {
  enum class Kind { kInteger, kHugeInteger, kFloat, kString, kOther };
  Kind kind = Kind::kOther;
  int64_t integer = 0;
  double number = 0;  // of integers too
  const std::string* string = nullptr;
  std::string text;  // for messages
};

// Receives the parser's events; depth_ counts open brackets, the outermost object included.
class DagReader {
 public:
  using string_t = std::string;
  using number_integer_t = int64_t;
  using number_unsigned_t = uint64_t;
  using number_float_t = double;
  using binary_t = Json::binary_t;

  explicit DagReader(const DagFileLimits& limits) : limits_(limits) {}
  Result<DagFile> finish();

  bool null() { return scalar({.text = "null"}); }
  bool boolean(bool value) { return scalar({.text = value ? "true" : "false"}); }
  bool number_integer(int64_t value) {
    return scalar({.kind = Scalar::Kind::kInteger,
                   .integer = value,
                   .number = static_cast<double>(value),
                   .text = std::to_string(value)});
  }
  bool number_unsigned(uint64_t value) {
    const bool fits = value <= static_cast<uint64_t>(INT64_MAX);
    return scalar({.kind = fits ? Scalar::Kind::kInteger : Scalar::Kind::kHugeInteger,
                   .integer = static_cast<int64_t>(value),
                   .number = static_cast<double>(value),
                   .text = fits && field_ == Field::kEdges ? "" : std::to_string(value)});
  }
  bool number_float(double value, const std::string& text) {
    // Integers beyond 64 bits arrive here, too.
    const bool is_integer = text.find_first_of(".eE") == std::string::npos;
    const auto kind = is_integer ? Scalar::Kind::kHugeInteger : Scalar::Kind::kFloat;
    return scalar({.kind = kind, .number = value, .text = text});
  }
  bool string(std::string& value) {
    return scalar({.kind = Scalar::Kind::kString, .string = &value, .text = "a string"});
  }
  bool binary(binary_t&) { return scalar({.text = "binary data"}); }
  bool start_object(size_t);
  bool end_object();
  bool start_array(size_t);
  bool end_array();
  bool key(std::string& name);
  bool parse_error(size_t position, const std::string& token, const Json::exception& error);

 private:
  enum class Field { kNone, kUnknown, kNodes, kEdges, kCommands, kCosts, kDevices };

  bool fail(const std::string& message) {
    status_ = invalid_argument(message);
    return false;
  }
  bool misshapen();
  // "edge 17", "cost 3", ...: the entry being read.
  std::string place() const;
  uint32_t max_depth() const;
  bool scalar(const Scalar& value);
  bool read_nodes(const Scalar& value);
  bool read_edge_end(const Scalar& value);
  bool read_command(const Scalar& value);
  bool read_cost(const Scalar& value);
  bool read_device(const Scalar& value);
  Status check_length(const char* name, Field field, size_t length) const;
  bool is_seen(Field field) const { return seen_ & (1u << static_cast<uint32_t>(field)); }

  DagFileLimits limits_;
  DagFile file_;
  Status status_;
  Names command_names_;
  Names device_names_;
  std::vector<uint32_t> latest_node_on_;  // by device
  Field field_ = Field::kNone;
  uint32_t depth_ = 0;
  uint32_t seen_ = 0;
  uint32_t items_ = 0;  // of the innermost list: ids of an edge, devices of a node
  Edge edge_{};
};

std::string DagReader::place() const {
  switch (field_) {
    case Field::kNodes:
      return "\"nodes\"";
    case Field::kEdges:
      return "edge " + std::to_string(file_.edges.size());
    case Field::kCommands:
      return "command " + std::to_string(file_.commands.size());
    case Field::kCosts:
      return "cost " + std::to_string(file_.costs.size());
    case Field::kDevices:
      return "device of node " + std::to_string(file_.devices.size() - (items_ > 0 ? 1 : 0));
    case Field::kNone:
    case Field::kUnknown:
      break;
  }
  return "the document";
}

bool DagReader::misshapen() {
  switch (field_) {
    case Field::kNodes:
      return fail("\"nodes\" must be the number of nodes");
    case Field::kEdges:
      return fail(place() + ": \"edges\" must be a list of pairs [from, to]");
    case Field::kCommands:
      return fail(place() + ": \"commands\" must be a list of strings");
    case Field::kCosts:
      return fail(place() + ": \"costs\" must be a list of numbers >= 0");
    case Field::kDevices:
      return fail(place() + ": \"devices\" must be a list of strings, integers or lists of these");
    case Field::kNone:
    case Field::kUnknown:
      break;
  }
  return fail("a DAG file must be one JSON object with \"nodes\" and \"edges\"");
}

// The most brackets that may be open within the field's value.
uint32_t DagReader::max_depth() const {
  switch (field_) {
    case Field::kNone:
      return 0;
    case Field::kUnknown:
      return UINT32_MAX;
    case Field::kNodes:
      return 1;
    case Field::kEdges:
    case Field::kDevices:
      return 3;
    case Field::kCommands:
    case Field::kCosts:
      return 2;
  }
  return 0;
}

bool DagReader::start_object(size_t) {
  if (depth_ > 0 && field_ != Field::kUnknown) return misshapen();
  ++depth_;
  return true;
}

bool DagReader::end_object() {
  EDDY_CHECK(depth_ > 0) << "an object ends that never began";
  --depth_;
  return true;
}

bool DagReader::start_array(size_t) {
  if (depth_ >= max_depth()) return misshapen();
  ++depth_;
  items_ = 0;
  return true;
}

bool DagReader::end_array() {
  EDDY_CHECK(depth_ > 0) << "a list ends that never began";
  if (depth_ == 3 && field_ == Field::kEdges) {
    if (items_ != 2) return misshapen();
    if (file_.edges.size() >= limits_.max_edges) {
      return fail("more than the " + std::to_string(limits_.max_edges) + " edges accepted");
    }
    file_.edges.push_back(edge_);
  }
  if (depth_ == 3 && field_ == Field::kDevices && items_ == 0) return misshapen();
  items_ = 0;
  if (--depth_ == 1) field_ = Field::kUnknown;  // what follows is in no list
  return true;
}

bool DagReader::key(std::string& name) {
  if (depth_ > 1) return true;
  static constexpr std::pair<std::string_view, Field> kFields[] = {
      {"nodes", Field::kNodes}, {"edges", Field::kEdges},     {"commands", Field::kCommands},
      {"costs", Field::kCosts}, {"devices", Field::kDevices},
  };
  field_ = Field::kUnknown;
  for (const auto& [known, field] : kFields) {
    if (name == known) field_ = field;
  }
  if (field_ == Field::kUnknown) return true;
  if (is_seen(field_)) return fail("key \"" + name + "\" appears twice");
  seen_ |= 1u << static_cast<uint32_t>(field_);
  return true;
}

bool DagReader::scalar(const Scalar& value) {
  switch (field_) {
    case Field::kUnknown:
      return true;
    case Field::kNone:
      return misshapen();
    case Field::kNodes:
      return read_nodes(value);
    case Field::kEdges:
      return depth_ == 3 ? read_edge_end(value) : misshapen();
    case Field::kCommands:
      return depth_ == 2 ? read_command(value) : misshapen();
    case Field::kCosts:
      return depth_ == 2 ? read_cost(value) : misshapen();
    case Field::kDevices:
      return depth_ >= 2 ? read_device(value) : misshapen();
  }
  return misshapen();
}

bool DagReader::read_nodes(const Scalar& value) {
  const bool is_huge = value.kind == Scalar::Kind::kHugeInteger;
  const bool is_integer = is_huge || value.kind == Scalar::Kind::kInteger;
  if (is_integer && (is_huge ? value.number > 0 : value.integer > limits_.max_nodes)) {
    return fail("\"nodes\" is " + value.text + ", out of range: more than the " +
                std::to_string(limits_.max_nodes) + " accepted");
  }
  if (!is_integer || value.number < 0) {
    return fail("\"nodes\" must be the number of nodes, found " + value.text);
  }
  file_.num_nodes = static_cast<uint32_t>(value.integer);
  return true;
}

bool DagReader::read_edge_end(const Scalar& value) {
  const bool is_huge = value.kind == Scalar::Kind::kHugeInteger;
  if (value.kind != Scalar::Kind::kInteger && !is_huge) {
    return fail(place() + ": an id must be an integer, found " + value.text);
  }
  if (is_huge || value.integer < 0 || value.integer >= UINT32_MAX) {
    return fail(place() + ": id " + (is_huge ? value.text : std::to_string(value.integer)) +
                " is out of range");
  }
  (items_ == 0 ? edge_.from : edge_.to) = static_cast<uint32_t>(value.integer);
  return ++items_ <= 2 || misshapen();
}

bool DagReader::read_command(const Scalar& value) {
  if (value.kind != Scalar::Kind::kString) {
    return fail(place() + ": must be a string, found " + value.text);
  }
  file_.commands.push_back(command_names_.number(*value.string, *value.string));
  return true;
}

bool DagReader::read_cost(const Scalar& value) {
  const bool is_number = value.kind == Scalar::Kind::kInteger ||
                         value.kind == Scalar::Kind::kHugeInteger ||
                         value.kind == Scalar::Kind::kFloat;
  if (!is_number || !std::isfinite(value.number) || value.number < 0) {
    return fail(place() + ": must be a finite number >= 0, found " + value.text);
  }
  file_.costs.push_back(value.number);
  return true;
}

bool DagReader::read_device(const Scalar& value) {
  const bool is_string = value.kind == Scalar::Kind::kString;
  if (value.kind == Scalar::Kind::kHugeInteger) {
    return fail(place() + ": device " + value.text + " is out of range");
  }
  if (!is_string && value.kind != Scalar::Kind::kInteger) {
    return fail(place() + ": must be a string or an integer, found " + value.text);
  }
  const std::string name = is_string ? *value.string : value.text;
  const uint32_t device = device_names_.number((is_string ? "s" : "i") + name, name);
  const bool is_first = depth_ == 2 || items_ == 0;
  if (depth_ == 3) ++items_;
  if (is_first) file_.devices.push_back(device);
  const uint32_t node = static_cast<uint32_t>(file_.devices.size()) - 1;
  EDDY_CHECK(device <= latest_node_on_.size() && !file_.devices.empty())
      << "device " << device << " was not numbered in turn";
  if (device == latest_node_on_.size()) latest_node_on_.push_back(UINT32_MAX);
  const bool is_repeated = std::exchange(latest_node_on_[device], node) == node;
  if (is_repeated) return fail(place() + ": lists device " + name + " twice");
  if (!is_first) file_.further_devices.push_back({node, device});
  return true;
}

bool DagReader::parse_error(size_t, const std::string&, const Json::exception& error) {
  // "[json.exception.parse_error.101] parse error at line 1, column 9: ..."
  std::string text = error.what();
  const size_t prefix_end = text.find("] ");
  if (prefix_end != std::string::npos) text.erase(0, prefix_end + 2);
  return fail(field_ == Field::kNone || field_ == Field::kUnknown ? text : place() + ": " + text);
}

Status DagReader::check_length(const char* name, Field field, size_t length) const {
  if (!is_seen(field) || length == file_.num_nodes) return Status::ok();
  return invalid_argument("\"" + std::string(name) + "\" has " + std::to_string(length) +
                          " entries, the graph has " + std::to_string(file_.num_nodes) + " nodes");
}

Result<DagFile> DagReader::finish() {
  EDDY_RETURN_IF_ERROR(std::move(status_));
  if (!is_seen(Field::kNodes)) return invalid_argument("a DAG file needs the key \"nodes\"");
  if (!is_seen(Field::kEdges)) return invalid_argument("a DAG file needs the key \"edges\"");
  EDDY_RETURN_IF_ERROR(check_length("commands", Field::kCommands, file_.commands.size()));
  EDDY_RETURN_IF_ERROR(check_length("costs", Field::kCosts, file_.costs.size()));
  EDDY_RETURN_IF_ERROR(check_length("devices", Field::kDevices, file_.devices.size()));
  EDDY_CHECK(device_names_.size() == latest_node_on_.size()) << "a device on no node";
  file_.listed_devices = file_.further_devices;
  std::sort(file_.further_devices.begin(), file_.further_devices.end());
  file_.command_names = command_names_.take();
  file_.device_names = device_names_.take_distinct();
  return std::move(file_);
}

}  // namespace

Result<DagFile> parse_dag_file(std::string_view json, const DagFileLimits& limits) {
  DagReader reader(limits);
  // False means that the reader holds a Status.
  static_cast<void>(Json::sax_parse(json.begin(), json.end(), &reader));
  return reader.finish();
}

}  // namespace eddy
