// Claim: whatever attributes, types, shapes and values a call has, each operator of the table ends
// in a result or in an error of one line, by the plain kernels and by the fast ones.
//
// EDDY_HOSTILE_CALLS sets how many calls are made, EDDY_HOSTILE_SEED from which seed; both are
// printed. A call that ends the process is named before it does.
#include <gtest/gtest.h>

#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "graph/ir/opset.h"
#include "ops/schema/standard.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

constexpr int64_t kMostElements = 1 << 16;  // of all results of a call; more are not computed

char current[4096];  // the call that is being made

void name_call(int signal) {
  const ssize_t ignored = write(STDERR_FILENO, current, strnlen(current, sizeof(current)));
  static_cast<void>(ignored);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

uint64_t number_of_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class Caller {
 public:
  explicit Caller(uint64_t seed) : random_(seed) {
    EXPECT_TRUE(add_standard_schemas(table_).is_ok());
  }

  OpCall next() {
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

 private:
  size_t below(uint64_t end) { return static_cast<size_t>(random_.below(end)); }

  Dims shape() {
    Dims dims;
    for (size_t rank = below(5); rank > 0; --rank) {
      dims.push_back(below(12) == 0 ? 0 : 1 + static_cast<int64_t>(below(4)));
    }
    return dims;
  }

  ElementType element(const FormalInput& input, int opset) {
    if (below(3) == 0 && input.takes(ElementType::kFloat, opset)) return ElementType::kFloat;
    std::vector<ElementType> types;
    for (int e = 1; e < kNumElementTypes; ++e) {
      if (input.takes(static_cast<ElementType>(e), opset)) {
        types.push_back(static_cast<ElementType>(e));
      }
    }
    return types.empty() ? ElementType::kFloat : types[below(types.size())];
  }

  TestTensor tensor(ElementType type, const Dims& dims, bool may_be_wild = true) {
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

  void add_input(OpCall& call, const FormalInput& input) {
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
  TestValue value(const FormalInput& input, ElementType type, const Dims& dims, bool may_be_wild) {
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

  int64_t integer() {
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
  float real() {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kValues[] = {
        0,     1,      -1,     0.5f,      -0.5f,      2,
        1e30f, -1e30f, 1e-30f, kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()};
    return kValues[below(std::size(kValues))];
  }
  std::string word() {
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
  std::vector<T> list(Make make) {
    std::vector<T> values(below(7));
    for (T& value : values) value = make();
    return values;
  }

  void add_attribute(OpCall& call, const FormalAttribute& attribute) {
    using enum AttributeKind;
    switch (attribute.kind) {
      case kInt:
        return call.attributes.set(attribute.name, integer());
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
        kept_ = tensor(below(2) == 0 ? ElementType::kFloat : ElementType::kInt64, shape());
        const TensorView view = kept_.view();
        return call.attributes.set(attribute.name,
                                   Constant{view.element, Dims(view.shape()), view.data});
      }
      case kType:
        return;
    }
  }

  OpTable table_;
  Random random_;
  std::vector<Dims> shapes_;
  ElementType shared_ = ElementType::kFloat;
  TestTensor kept_;
};

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

void expect_one_line(const Status& status, const OpCall& call) {
  if (status.is_ok()) return;
  const std::string& message = status.message();
  EXPECT_FALSE(message.empty()) << describe(call);
  EXPECT_EQ(message.find('\n'), std::string::npos) << describe(call) << ": " << message;
  EXPECT_NE(status.code(), StatusCode::kInternal) << describe(call) << ": " << message;
}

// Unknown sizes come from the data, which is small.
bool is_small(const std::vector<ValueType>& types) {
  int64_t elements = 0;
  for (const ValueType& type : types) {
    if (!type.is_tensor() || !type.tensor.is_static()) continue;
    const std::optional<int64_t> count = type.tensor.dims.count();
    if (!count || *count > kMostElements) return false;
    elements += *count;
  }
  return elements <= kMostElements;
}

TEST(HostileCalls, EndInAResultOrInOneLine) {
  const uint64_t num_calls = number_of_environment("EDDY_HOSTILE_CALLS", 20'000);
  const uint64_t seed = number_of_environment("EDDY_HOSTILE_SEED", 1);
  std::cout << num_calls << " calls from seed " << seed << std::endl;
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS}) std::signal(signal, name_call);
  Caller caller(seed);
  uint64_t num_run = 0;
  for (uint64_t i = 0; i < num_calls && !::testing::Test::HasFailure(); ++i) {
    const OpCall call = caller.next();
    std::snprintf(current, sizeof(current), "call %llu: %s\n", static_cast<unsigned long long>(i),
                  describe(call).c_str());
    const auto types = infer_op(call);
    expect_one_line(types.status(), call);
    if (!types.is_ok() || !is_small(*types)) continue;
    ++num_run;
    for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
      expect_one_line(run_op(call, kernels).status(), call);
    }
  }
  std::cout << num_run << " passed their schema's rule and ran" << std::endl;
  // Most are refused; enough must not be.
  EXPECT_GT(num_run, num_calls / 50);
}

}  // namespace
}  // namespace eddy::testing
