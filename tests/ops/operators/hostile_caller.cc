#include "tests/ops/operators/hostile_caller.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>

#include "graph/ir/opset.h"
#include "ops/schema/standard.h"
#include "tests/ops/operators/examples.h"
#include "tests/ops/operators/function_calls.h"

namespace eddy::testing {
namespace {

uint64_t number_of_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// The same elements in another shape: cut off, or repeated from the first one on.
TestTensor in_shape(const TestTensor& from, const Dims& dims) {
  TestTensor made(from.element(), dims);
  const int64_t count = from.count();
  if (count == 0 && from.element() == ElementType::kBool) {  // no byte is one but 0 and 1
    std::fill_n(made.view().mutable_as<uint8_t>(), made.count(), uint8_t{0});
  }
  if (count == 0) return made;
  if (from.element() == ElementType::kString) {
    for (int64_t i = 0; i < made.count(); ++i) {
      made.view().mutable_as<std::string>()[i] = from.view().as<std::string>()[i % count];
    }
    return made;
  }
  const size_t given = from.view().size_bytes(), wanted = made.view().size_bytes();
  for (size_t at = 0; at < wanted; at += given) {
    std::memcpy(made.view().mutable_as<std::byte>() + at, from.view().data,
                std::min(given, wanted - at));
  }
  return made;
}

}  // namespace

HostileCaller::HostileCaller(uint64_t seed) : random_(seed) {
  EXPECT_TRUE(add_standard_schemas(table_).is_ok());
  valid_ = function_calls(random_);
  for (const Example& example : examples()) {
    valid_.push_back(example.call(example.elements[0], seed));
  }
}

OpCall HostileCaller::random_call() {
  const auto& defs = table_.all();
  const OpDef& def = *defs[below(defs.size())];
  OpCall call;
  call.op = def.name;
  call.domain = def.domain;
  const int newest = def.domain.empty() ? kNewestOpset : def.since_version + 2;
  call.opset = def.since_version + static_cast<int>(below(8));
  call.opset = std::min(call.opset, std::max(newest, def.since_version));
  shapes_ = {shape(), shape()};
  for (const FormalInput& input : def.inputs) add_input(call, input);
  for (const FormalAttribute& attribute : def.attributes) {
    if (attribute.is_required || below(2) == 0) add_attribute(call, attribute);
  }
  const int most = std::min(def.max_outputs, 5);
  call.num_outputs = def.min_outputs + below(std::max(most - def.min_outputs, 0) + 1);
  call.known = static_cast<Known>(below(3));
  call.constant_inputs = below(3) == 0 ? random_.next() : 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {  // only tensors can be constants
    const bool is_tensor = call.inputs[i].kind == TestValue::Kind::kTensor;
    if (!is_tensor && i < 64) call.constant_inputs &= ~(uint64_t{1} << i);
  }
  return call;
}

Dims HostileCaller::shape() {
  Dims dims;
  for (size_t rank = below(5); rank > 0; --rank) {
    dims.push_back(below(12) == 0 ? 0 : 1 + static_cast<int64_t>(below(4)));
  }
  return dims;
}

ElementType HostileCaller::element(const FormalInput& input, int opset) {
  if (below(3) == 0 && input.takes(ElementType::kFloat, opset)) return ElementType::kFloat;
  std::vector<ElementType> types;
  for (int e = 1; e < kNumElementTypes; ++e) {
    if (input.takes(static_cast<ElementType>(e), opset)) {
      types.push_back(static_cast<ElementType>(e));
    }
  }
  return types.empty() ? ElementType::kFloat : types[below(types.size())];
}

TestTensor HostileCaller::tensor(ElementType type, const Dims& dims, bool may_be_wild) {
  TestTensor made(type, dims);
  const TensorView view = made.view();
  if (type == ElementType::kString) {
    for (int64_t i = 0; i < view.count(); ++i) view.mutable_as<std::string>()[i] = word();
    return made;
  }
  auto* bytes = view.mutable_as<uint8_t>();
  const bool is_wild = may_be_wild && below(8) == 0 && kFloatTypes.contains(type);
  if (is_wild || (!kNumericTypes.contains(type) && type != ElementType::kBool)) {
    const bool is_packed = kPackedTypes.contains(type);
    const uint64_t range = type == ElementType::kBool ? 2 : is_packed ? 2 : 256;
    for (size_t i = 0; i < view.size_bytes(); ++i) bytes[i] = static_cast<uint8_t>(below(range));
    return made;
  }
  return TestTensor::random(type, dims, random_, -2, 5);
}

void HostileCaller::add_input(OpCall& call, const FormalInput& input) {
  if (has_flag(input.flags, InputFlag::kOptional) && below(2) == 0) {
    call.inputs.push_back(TestValue::omitted());
    return;
  }
  const size_t count = has_flag(input.flags, InputFlag::kVariadic) ? 1 + below(3) : 1;
  if (call.inputs.empty()) shared_ = element(input, call.opset);
  for (size_t i = 0; i < count; ++i) {
    const bool is_shared = below(5) != 0 && input.takes(shared_, call.opset);
    const ElementType type = is_shared ? shared_ : element(input, call.opset);
    const bool is_host = has_flag(input.flags, InputFlag::kHostValue);
    const Dims dims = is_host && below(4) != 0 ? Dims{static_cast<int64_t>(below(5))}
                      : below(6) == 0          ? shape()
                                               : shapes_[below(shapes_.size())];
    // Sizes of results stay small: a session limits their memory, but not this test.
    call.inputs.push_back(value(input, type, dims, !is_host));
  }
}

// A sequence where the name asks for one, and now and then where sizes belong; optionals, too.
TestValue HostileCaller::value(const FormalInput& input, ElementType type, const Dims& dims,
                               bool may_be_wild) {
  const bool wants_sequence = input.name.find("sequence") != std::string::npos;
  const bool is_host = has_flag(input.flags, InputFlag::kHostValue);
  const bool is_sequence = wants_sequence ? below(8) != 0 : is_host && below(8) == 0;
  if (!is_sequence) return tensor(type, dims, may_be_wild);
  if (below(8) == 0) return TestValue::none(type);
  std::vector<TestTensor> elements;
  for (size_t count = below(4); count > 0; --count) {
    elements.push_back(tensor(type, below(3) == 0 ? shape() : dims, may_be_wild));
  }
  TestValue made = TestValue::sequence(type, std::move(elements));
  made.is_optional = below(8) == 0;
  return made;
}

int64_t HostileCaller::integer() {
  constexpr int64_t kValues[] = {INT64_MIN,
                                 -(int64_t{1} << 40),
                                 -2,
                                 -1,
                                 0,
                                 0,
                                 1,
                                 1,
                                 1,
                                 2,
                                 2,
                                 3,
                                 4,
                                 7,
                                 16,
                                 255,
                                 1 << 20,
                                 int64_t{1} << 31,
                                 int64_t{1} << 40,
                                 INT64_MAX};
  return below(3) != 0 ? static_cast<int64_t>(below(5)) : kValues[below(std::size(kValues))];
}

float HostileCaller::real() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kValues[] = {
      0,     1,      -1,     0.5f,      -0.5f,      2,
      1e30f, -1e30f, 1e-30f, kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()};
  return kValues[below(std::size(kValues))];
}

std::string HostileCaller::word() {
  static const char* const kWords[] = {"",
                                       "a",
                                       "nearest",
                                       "linear",
                                       "cubic",
                                       "bilinear",
                                       "SAME_UPPER",
                                       "VALID",
                                       "NOTSET",
                                       "constant",
                                       "reflect",
                                       "edge",
                                       "wrap",
                                       "mean",
                                       "sum",
                                       "none",
                                       "add",
                                       "mul",
                                       "max",
                                       "min",
                                       "forward",
                                       "reverse",
                                       "Tanh",
                                       "Relu",
                                       "NONE",
                                       "SOFTMAX",
                                       "LOGISTIC",
                                       "PROBIT",
                                       "SUM",
                                       "AVERAGE",
                                       "LEAF",
                                       "BRANCH_LEQ",
                                       "LINEAR",
                                       "RBF",
                                       "TF",
                                       "IDF",
                                       "LEFT",
                                       "RIGHT",
                                       "up",
                                       "tanh",
                                       "bidirectional",
                                       "ij,jk->ik",
                                       "ii->i",
                                       "...i->...",
                                       "->",
                                       "[a-",
                                       "[a-z]*",
                                       "L2"};
  return below(20) == 0 ? std::string(300, 'w') : kWords[below(std::size(kWords))];
}

template <typename T, typename Make>
std::vector<T> HostileCaller::list(Make make) {
  std::vector<T> values(below(7));
  for (T& value : values) value = make();
  return values;
}

void HostileCaller::add_attribute(OpCall& call, const FormalAttribute& attribute) {
  using enum AttributeKind;
  switch (attribute.kind) {
    case kInt: {
      const bool is_right = attribute.is_flag && below(8) != 0;
      return call.attributes.set(attribute.name,
                                 is_right ? static_cast<int64_t>(below(2)) : integer());
    }
    case kFloat:
      return call.attributes.set(attribute.name, real());
    case kString:
      return call.attributes.set(attribute.name, word());
    case kInts:
      return call.attributes.set(attribute.name, list<int64_t>([&] { return integer(); }));
    case kFloats:
      return call.attributes.set(attribute.name, list<float>([&] { return real(); }));
    case kStrings:
      return call.attributes.set(attribute.name, list<std::string>([&] { return word(); }));
    case kTensor: {
      // Kept: the attribute borrows its bytes.
      kept_.push_back(tensor(below(2) == 0 ? ElementType::kFloat : ElementType::kInt64, shape()));
      const TensorView view = kept_.back().view();
      return call.attributes.set(attribute.name,
                                 Constant{view.element, Dims(view.shape()), view.data});
    }
    case kType:
      return;
  }
}

OpCall HostileCaller::changed_call() {
  OpCall call = valid_[below(valid_.size())];
  for (size_t changes = below(3); changes > 0; --changes) change(call);
  call.known = static_cast<Known>(below(3));
  return call;
}

void HostileCaller::change(OpCall& call) {
  if (below(3) == 0 || call.inputs.empty()) return change_attribute(call);
  const size_t i = below(call.inputs.size());
  switch (below(12)) {
    case 0:
      call.inputs[i] = TestValue::omitted();
      call.constant_inputs &= ~(uint64_t{1} << i);
      return;
    case 1:
      call.inputs[i] = call.inputs[below(call.inputs.size())];
      if (call.inputs[i].kind != TestValue::Kind::kTensor) {
        call.constant_inputs &= ~(uint64_t{1} << i);
      }
      return;
    default:
      return change_input(call.inputs[i]);
  }
}

void HostileCaller::change_input(TestValue& input) {
  if (input.kind != TestValue::Kind::kTensor) return;
  const TestTensor& given = input.tensor();
  const bool is_index =
      given.element() == ElementType::kInt64 || given.element() == ElementType::kInt32;
  if (is_index && given.count() > 0 && below(2) == 0) {
    TestTensor other = given.copy();
    const size_t i = below(static_cast<uint64_t>(given.count()));
    const int64_t value = below(8) == 0 ? integer() : static_cast<int64_t>(below(12)) - 4;
    if (given.element() == ElementType::kInt64) {
      other.view().mutable_as<int64_t>()[i] = value;
    } else {
      other.view().mutable_as<int32_t>()[i] = static_cast<int32_t>(value);
    }
    input = other;
    return;
  }
  if (below(10) == 0) {
    constexpr ElementType kTypes[] = {ElementType::kFloat,   ElementType::kDouble,
                                      ElementType::kFloat16, ElementType::kInt32,
                                      ElementType::kInt64,   ElementType::kInt8};
    input = tensor(kTypes[below(std::size(kTypes))], given.dims());
    return;
  }
  input = in_shape(given, changed(given.dims()));
}

Dims HostileCaller::changed(Dims dims) {
  const size_t rank = static_cast<size_t>(dims.rank());
  if (rank == 0 || (rank < 5 && below(8) == 0)) {  // one axis more, in front or behind
    Dims more;
    const auto size = static_cast<int64_t>(1 + below(2));
    const bool is_first = below(2) == 0;
    if (is_first) more.push_back(size);
    for (const int64_t dim : dims.span()) more.push_back(dim);
    if (!is_first) more.push_back(size);
    return more;
  }
  const size_t axis = below(rank);
  if (below(8) == 0) {  // one less
    Dims less;
    for (size_t i = 0; i < rank; ++i) {
      if (i != axis) less.push_back(dims[static_cast<int>(i)]);
    }
    return less;
  }
  int64_t& dim = dims[static_cast<int>(axis)];
  const int64_t sizes[] = {
      0, 1, dim + 1, std::max<int64_t>(dim - 1, 0), 2 * dim, static_cast<int64_t>(below(6))};
  dim = sizes[below(std::size(sizes))];
  return dims;
}

void HostileCaller::change_attribute(OpCall& call) {
  const OpDef* const def = find_op(call);
  if (def == nullptr || def->attributes.empty()) return;
  const FormalAttribute& formal = def->attributes[below(def->attributes.size())];
  const std::span<const int64_t> given = call.attributes.get_ints(formal.name);
  if (given.empty() || below(4) == 0) return add_attribute(call, formal);
  std::vector<int64_t> ints(given.begin(), given.end());
  ints[below(ints.size())] = integer();
  call.attributes.set(formal.name, std::move(ints));
}

std::string describe(const OpCall& call) {
  std::string text =
      (call.domain.empty() ? "" : call.domain + ".") + call.op + " " + std::to_string(call.opset);
  for (const TestValue& input : call.inputs) {
    text += input.kind == TestValue::Kind::kOmitted ? " -" : " " + to_string(input.type());
  }
  for (const auto& [name, value] : call.attributes.entries()) {
    text += " " + name;
    if (const auto* i = std::get_if<int64_t>(&value)) text += "=" + std::to_string(*i);
    if (const auto* s = std::get_if<std::string>(&value)) text += "=" + s->substr(0, 20);
    if (const auto* all = std::get_if<std::vector<int64_t>>(&value)) {
      for (const int64_t i : *all) text += "," + std::to_string(i);
    }
  }
  return text;
}

uint64_t number_of_hostile_calls(uint64_t otherwise) {
  return number_of_environment("EDDY_HOSTILE_CALLS", otherwise);
}
uint64_t hostile_seed() { return number_of_environment("EDDY_HOSTILE_SEED", 1); }

// Unknown sizes come from the data, which is small.
bool is_small(const std::vector<ValueType>& types) {
  constexpr int64_t kMostElements = 1 << 16;
  int64_t elements = 0;
  for (const ValueType& type : types) {
    if (!type.is_tensor() || !type.tensor.is_static()) continue;
    const std::optional<int64_t> count = type.tensor.dims.count();
    if (!count || *count > kMostElements) return false;
    elements += *count;
  }
  return elements <= kMostElements;
}

namespace {

bool is_same(const TestValue& a, const TestValue& b) {
  if (a.kind != b.kind || a.tensors.size() != b.tensors.size()) return false;
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    if (!is_close(a.tensors[i], b.tensors[i], 1e-3, 1e-3)) return false;
  }
  return true;
}

bool is_short_of(const Outcome& outcome, StatusCode code) {
  return !outcome.is_ok() && outcome.status().code() == code;
}

bool is_empty(const std::vector<TestValue>& values) {
  return std::ranges::all_of(values, [](const TestValue& value) {
    return std::ranges::all_of(value.tensors, [](const TestTensor& t) { return t.count() == 0; });
  });
}

}  // namespace

std::string text_of(const Outcome& outcome) {
  return outcome.is_ok() ? "a result" : outcome.status().to_string();
}

void expect_same_end(const Outcome& known, const Outcome& less, const OpCall& call) {
  if (is_short_of(known, StatusCode::kResourceExhausted) ||
      is_short_of(less, StatusCode::kResourceExhausted) ||
      is_short_of(less, StatusCode::kUnsupported)) {
    return;
  }
  if (known.is_ok() && is_empty(*known) && !less.is_ok()) return;
  ASSERT_EQ(known.is_ok(), less.is_ok())
      << describe(call) << ": " << text_of(known) << ", but where less is known " << text_of(less);
  for (size_t o = 0; known.is_ok() && o < known->size(); ++o) {
    EXPECT_TRUE(is_same((*known)[o], (*less)[o])) << describe(call) << ": output " << o;
  }
}

}  // namespace eddy::testing
