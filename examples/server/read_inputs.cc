// read_inputs: a request's text, event by event, into the tensors that the model wants.
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "examples/server/json_values.h"
#include "graph/io/host_value.h"
#include "ops/reference/parts/number.h"

namespace eddy::server {
namespace {

using Json = nlohmann::json;

std::string names_of(std::span<const ValueDescription> inputs) {
  std::string names;
  for (const ValueDescription& input : inputs) names += (names.empty() ? "" : ", ") + input.name;
  return names.empty() ? "none" : names;
}

std::string_view own_name(std::string_view type) {
  if (type == "float32") return "float";
  return type == "float64" ? "double" : type;
}

// Lists in lists: how deep the elements are, and that all lists of one depth are equally long.
class Nesting {
 public:
  // False: deeper than any tensor, or beside an element.
  bool open() {
    if (depth_ == kMaxRank || depth_ == leaf_depth_) return false;
    counts_[static_cast<size_t>(depth_++)] = 0;
    rank_ = std::max(rank_, depth_);
    return true;
  }
  // False: another list of this depth was longer or shorter.
  bool close() {
    const auto level = static_cast<size_t>(--depth_);
    if (level > 0) ++counts_[level - 1];
    if (sizes_[level] < 0) sizes_[level] = counts_[level];
    return sizes_[level] == counts_[level];
  }
  // False: other elements are at another depth.
  bool add_element() {
    if (leaf_depth_ < 0) leaf_depth_ = depth_;
    if (depth_ > 0) ++counts_[static_cast<size_t>(depth_ - 1)];
    return depth_ == leaf_depth_ && depth_ == rank_;
  }
  bool is_full() const { return depth_ == kMaxRank; }
  bool is_inside() const { return depth_ > 0; }
  Dims dims() const { return Dims(std::span(sizes_.data(), static_cast<size_t>(rank_))); }

 private:
  int depth_ = 0;
  int rank_ = 0;         // how deep it has been
  int leaf_depth_ = -1;  // of the elements; -1: none yet
  std::array<int64_t, kMaxRank> counts_{};
  std::array<int64_t, kMaxRank> sizes_{-1, -1, -1, -1, -1, -1, -1, -1};
};
static_assert(kMaxRank == 8, "as many sizes are unknown at first");

// One input while it is read.
class InputValue {
 public:
  explicit InputValue(const ValueDescription& input)
      : input_(input), element_(input.type.tensor.element) {}

  Nesting nesting;
  bool has_type = false;
  bool has_data = false;
  std::optional<Dims> shape;

  Status fail(const std::string& what) const {
    return invalid_argument("input '" + input_.name + "' (" + input_.text + "): " + what);
  }
  Status check_type(const std::string& name) const {
    if (own_name(name) == element_type_name(element_)) return Status::ok();
    return fail("\"type\" is '" + name + "'; leave it out, or give " +
                std::string(element_type_name(element_)));
  }

  Status add_integer(const Number& number, const std::string& text) {
    if (element_ == ElementType::kBool || element_ == ElementType::kString) return misfit(text);
    const Number kept = append(number);
    const bool is_float = kFloatTypes.contains(element_);
    if (is_float ? std::isinf(kept.float_value) : !is_same(number, kept)) return too_large(text);
    return Status::ok();
  }
  Status add_float(double value, const std::string& text) {
    if (!kFloatTypes.contains(element_)) return misfit(text);
    if (std::isinf(append(Number::of_double(value)).float_value)) return too_large(text);
    return Status::ok();
  }
  Status add_bool(bool value) {
    if (element_ != ElementType::kBool) return misfit(value ? "true" : "false");
    append(Number::of_int(value ? 1 : 0));
    return Status::ok();
  }
  Status add_string(std::string& text) {
    if (element_ == ElementType::kString) {
      strings_.push_back(std::move(text));
      ++count_;
      return Status::ok();
    }
    const bool is_infinity = text == "Infinity" || text == "-Infinity";
    if (!kFloatTypes.contains(element_) || !(is_infinity || text == "NaN")) {
      return misfit("\"" + text + "\"");
    }
    const double size = is_infinity ? HUGE_VAL : std::nan("");
    append(Number::of_double(text[0] == '-' ? -size : size));
    return Status::ok();
  }

  // All of it has come.
  Result<Tensor> finish() {
    if (!has_data) return fail("has no \"data\"");
    const Dims nested = nesting.dims();
    const Dims dims = shape.value_or(nested);
    const std::optional<int64_t> count = dims.count();
    if (!count) return fail("a shape of " + to_string(dims) + " is too large");
    if (*count != count_) {
      return fail("\"shape\" " + to_string(dims) + " has " + std::to_string(*count) +
                  " elements, but \"data\" has " + std::to_string(count_));
    }
    if (nested.rank() > 1 && nested != dims) {
      return fail("\"shape\" is " + to_string(dims) + ", but the lists of \"data\" are nested as " +
                  to_string(nested));
    }
    const auto value = std::make_shared<HostValue>();
    value->kind = HostValue::Kind::kTensor;
    value->element = element_;
    value->dims = dims;
    value->bytes = std::move(bytes_);
    value->strings = std::move(strings_);
    return Tensor::adopt(value->view(), value);
  }

 private:
  static bool is_same(const Number& given, const Number& kept) {
    if (given.kind == Number::Kind::kSigned) {  // JSON's negative numbers
      return kept.kind == Number::Kind::kSigned && kept.signed_value == given.signed_value;
    }
    if (kept.kind == Number::Kind::kUnsigned) return kept.unsigned_value == given.unsigned_value;
    return kept.signed_value >= 0 &&
           static_cast<uint64_t>(kept.signed_value) == given.unsigned_value;
  }
  // The number as the tensor holds it.
  Number append(const Number& number) {
    bytes_.resize(bytes_.size() + element_size_bytes(element_));
    const TensorView view{bytes_.data(), nullptr, 0, element_};
    store_number(view, count_, number);
    return load_number(view, count_++);
  }
  Status misfit(const std::string& text) const {
    return fail("element " + std::to_string(count_) + " is " + text + ", which is no " +
                std::string(element_type_name(element_)));
  }
  Status too_large(const std::string& text) const {
    return fail("element " + std::to_string(count_ - 1) + " is " + text +
                ", which is beyond the range of " + std::string(element_type_name(element_)));
  }

  const ValueDescription& input_;
  const ElementType element_;
  int64_t count_ = 0;
  std::vector<std::byte> bytes_;
  std::vector<std::string> strings_;
};

// The events of nlohmann's parser; false ends it, with the reason in status_.
class InputReader {
 public:
  explicit InputReader(std::span<const ValueDescription> inputs)
      : inputs_(inputs), is_given_(inputs.size()) {}

  Status take_status() { return std::move(status_); }
  Result<NamedTensors> take_values() {
    if (!has_inputs_) return invalid_argument(kForm);
    return std::move(values_);
  }

  bool key(std::string& name) {
    switch (place_) {
      case Place::kRequest:
        if (name != "inputs") return fail(invalid_argument("there is no field '" + name + kFields));
        if (std::exchange(has_inputs_, true)) {
          return fail(invalid_argument("\"inputs\" is given twice; leave one out"));
        }
        return true;
      case Place::kInputs:
        return begin_input(name);
      default:
        return begin_field(name);
    }
  }
  bool start_object(size_t) {
    if (place_ == Place::kStart) return go(Place::kRequest);
    if (place_ == Place::kRequest) return go(Place::kInputs);
    if (place_ == Place::kInput) return go(Place::kTensor);
    return misplaced("an object");
  }
  bool end_object() {
    if (place_ == Place::kRequest) return go(Place::kEnd);
    if (place_ == Place::kInputs) return go(Place::kRequest);
    return end_input();
  }
  bool start_array(size_t) {
    if (place_ == Place::kShapeNext) {
      value_->shape = Dims();
      return go(Place::kShape);
    }
    if (!begin_data()) return misplaced("a list");
    if (value_->nesting.is_full()) {
      return fail(value_->fail("lists are nested more than " + std::to_string(kMaxRank) + " deep"));
    }
    return value_->nesting.open() || ragged();
  }
  bool end_array() {
    if (place_ == Place::kShape) return go(Place::kTensor);
    return value_->nesting.close() ? end_data() : ragged();
  }

  bool null() { return misplaced("null"); }
  bool boolean(bool value) {
    return add(value ? "true" : "false", [&] { return value_->add_bool(value); });
  }
  bool number_integer(int64_t value) {
    const std::string text = std::to_string(value);
    if (place_ == Place::kShape) return fail(value_->fail("\"shape\" has " + text));
    return add(text, [&] { return value_->add_integer(Number::of_int(value), text); });
  }
  bool number_unsigned(uint64_t value) {
    if (place_ == Place::kShape) return add_dim(value);
    const std::string text = std::to_string(value);
    return add(text, [&] { return value_->add_integer(Number::of_uint(value), text); });
  }
  bool number_float(double value, const std::string& text) {
    return add(text, [&] { return value_->add_float(value, text); });
  }
  bool string(std::string& text) {
    if (place_ == Place::kTypeNext) return check(value_->check_type(text)) && go(Place::kTensor);
    return add("a string", [&] { return value_->add_string(text); });
  }
  bool binary(Json::binary_t&) { return misplaced("bytes"); }
  bool parse_error(size_t, const std::string& token, const Json::exception& error) {
    constexpr int kNumberOverflow = 406;
    if (error.id == kNumberOverflow) {
      return fail(invalid_argument("the number " + token + " does not fit a double"));
    }
    // Without "[json.exception.parse_error.101] ".
    const std::string words = error.what();
    const size_t prefix_end = words.find("] ");
    return fail(invalid_argument("the request is no JSON: " +
                                 words.substr(prefix_end == words.npos ? 0 : prefix_end + 2)));
  }

 private:
  enum class Place : uint8_t {
    kStart,
    kRequest,    // {"inputs":
    kInputs,     // {"x":
    kInput,      // the value of an input comes
    kTensor,     // {"type": …, "shape": …, "data": …}
    kTypeNext,   // the value of the field comes
    kShapeNext,  //
    kDataNext,   //
    kShape,      // in the list
    kData,       // in lists
    kEnd,
  };
  static constexpr const char* kFields = "'; a request is {\"inputs\": {\"NAME\": ...}}";
  static constexpr const char* kForm = "a request is {\"inputs\": {\"NAME\": ...}}";

  bool fail(Status status) {
    status_ = std::move(status);
    return false;
  }
  bool check(Status status) { return status.is_ok() || fail(std::move(status)); }
  bool go(Place place) {
    place_ = place;
    return true;
  }

  bool begin_input(const std::string& name) {
    size_t i = 0;
    while (i < inputs_.size() && inputs_[i].name != name) ++i;
    if (i == inputs_.size()) {
      return fail(invalid_argument("there is no input '" + name +
                                   "'; the model's inputs are: " + names_of(inputs_)));
    }
    if (is_given_[i]) {
      return fail(invalid_argument("input '" + name + "' is given twice; leave one out"));
    }
    is_given_[i] = true;
    index_ = i;
    value_.emplace(inputs_[i]);
    is_object_ = false;
    return go(Place::kInput);
  }
  bool begin_field(const std::string& name) {
    is_object_ = true;
    const bool is_type = name == "type";
    const bool is_shape = name == "shape";
    if (!is_type && !is_shape && name != "data") {
      return fail(value_->fail("there is no field '" + name + "'; type, shape and data are"));
    }
    const bool is_known = is_type    ? std::exchange(value_->has_type, true)
                          : is_shape ? value_->shape.has_value()
                                     : value_->has_data;
    if (is_known) return fail(value_->fail("\"" + name + "\" is given twice; leave one out"));
    return go(is_type ? Place::kTypeNext : is_shape ? Place::kShapeNext : Place::kDataNext);
  }

  // False: this is no place for data.
  bool begin_data() {
    if (place_ != Place::kData && place_ != Place::kDataNext && place_ != Place::kInput)
      return false;
    value_->has_data = true;
    return go(Place::kData);
  }
  bool end_data() {
    if (value_->nesting.is_inside()) return true;
    return is_object_ ? go(Place::kTensor) : end_input();
  }
  bool end_input() {
    Result<Tensor> tensor = value_->finish();
    if (!tensor.is_ok()) return fail(tensor.take_status());
    values_.emplace_back(inputs_[index_].name, std::move(*tensor));
    return go(Place::kInputs);
  }
  template <typename Add>
  bool add(const std::string& what, const Add& add_element) {
    if (!begin_data()) return misplaced(what);
    if (!check(add_element())) return false;
    return value_->nesting.add_element() ? end_data() : ragged();
  }
  bool add_dim(uint64_t size) {
    Dims& shape = *value_->shape;
    if (shape.rank() == kMaxRank) {
      return fail(value_->fail("\"shape\" has more than " + std::to_string(kMaxRank) + " sizes"));
    }
    if (size > INT64_MAX) return fail(value_->fail("\"shape\" has " + std::to_string(size)));
    shape.push_back(static_cast<int64_t>(size));
    return true;
  }

  bool ragged() {
    return fail(
        value_->fail("the lists of its data differ in length or depth; a tensor has none "
                     "that do"));
  }
  bool misplaced(const std::string& what) {
    switch (place_) {
      case Place::kStart:
      case Place::kRequest:
      case Place::kEnd:
        return fail(invalid_argument(what + " stands in a wrong place; " + kForm));
      case Place::kShape:
      case Place::kShapeNext:
        return fail(value_->fail(what + " stands in \"shape\", which is a list of sizes"));
      case Place::kTypeNext:
        return fail(value_->fail(what + " stands behind \"type\", which is a name"));
      case Place::kInputs:
      case Place::kTensor:
        return fail(invalid_argument(what + " stands without a name; " + kForm));
      default:
        return fail(value_->fail(what + " stands in its data"));
    }
  }

  const std::span<const ValueDescription> inputs_;
  std::vector<bool> is_given_;
  Place place_ = Place::kStart;
  bool has_inputs_ = false;
  size_t index_ = 0;                 // of value_
  std::optional<InputValue> value_;  // the last one
  bool is_object_ = false;           // as which it is given
  NamedTensors values_;
  Status status_;
};

}  // namespace

Result<NamedTensors> read_inputs(std::string_view text, std::span<const ValueDescription> inputs) {
  InputReader reader(inputs);
  if (!Json::sax_parse(text.begin(), text.end(), &reader)) return reader.take_status();
  return reader.take_values();
}

}  // namespace eddy::server
