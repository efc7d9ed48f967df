#include "tests/tools/bench/rival.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iostream>

#include "tests/graph/io/model_writer.h"

namespace eddy::testing {
namespace {

using Ints = std::vector<int64_t>;

WireWriter to_proto(const Attributes::Entry& entry) {
  WireWriter proto;
  proto.bytes(1, entry.name);
  if (const auto* i = std::get_if<int64_t>(&entry.value)) {
    proto.integer(3, *i);
    proto.integer(20, 2);
  } else if (const auto* f = std::get_if<float>(&entry.value)) {
    proto.float32(2, *f);
    proto.integer(20, 1);
  } else if (const auto* s = std::get_if<std::string>(&entry.value)) {
    proto.bytes(4, *s);
    proto.integer(20, 3);
  } else if (const auto* ints = std::get_if<Ints>(&entry.value)) {
    for (const int64_t value : *ints) proto.integer(8, value);
    proto.integer(20, 7);
  } else if (const auto* floats = std::get_if<std::vector<float>>(&entry.value)) {
    for (const float value : *floats) proto.float32(7, value);
    proto.integer(20, 6);
  } else if (const auto* texts = std::get_if<std::vector<std::string>>(&entry.value)) {
    for (const std::string& value : *texts) proto.bytes(9, value);
    proto.integer(20, 8);
  } else if (const auto* tensor = std::get_if<Constant>(&entry.value)) {
    proto.message(5, tensor_proto(tensor->view(), ""));
    proto.integer(20, 4);
  } else {
    ADD_FAILURE() << "attribute " << entry.name;
  }
  return proto;
}

bool is_given(const OpCall& call, size_t i) {
  return call.inputs[i].kind != TestValue::Kind::kOmitted;
}
bool is_constant(const OpCall& call, size_t i) { return ((call.constant_inputs >> i) & 1) != 0; }
std::string input_name(size_t i) { return "x" + std::to_string(i); }
std::string output_name(size_t o) { return "y" + std::to_string(o); }

}  // namespace

::testing::AssertionResult is_within(const TestTensor& ours, const TestTensor& theirs,
                                     double steps) {
  if (!(ours.type() == theirs.type())) {
    return ::testing::AssertionFailure()
           << to_string(ValueType(ours.type())) << ", not " << to_string(ValueType(theirs.type()));
  }
  for (int64_t i = 0; i < ours.count(); ++i) {
    const double a = number_at(ours.view(), i), b = number_at(theirs.view(), i);
    if (std::fabs(a - b) <= steps) continue;
    return ::testing::AssertionFailure() << "element " << i << " is " << a << ", not " << b;
  }
  return ::testing::AssertionSuccess();
}

std::string model_of(const OpCall& call, const std::vector<ElementType>& outputs) {
  test::GraphParts parts;
  test::Names inputs, names;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    inputs.push_back(is_given(call, i) ? input_name(i) : "");
    if (!is_given(call, i)) continue;
    if (is_constant(call, i)) {
      parts.initializers.push_back(tensor_proto(call.inputs[i].tensor().view(), input_name(i)));
    } else {
      parts.inputs.push_back(test::info(inputs.back(), call.inputs[i].type()));
    }
  }
  for (size_t o = 0; o < call.num_outputs; ++o) {
    names.push_back(output_name(o));
    parts.outputs.push_back(test::info(names.back(), TensorType(outputs[o])));
  }
  test::Messages attributes;
  for (const auto& entry : call.attributes.entries()) attributes.push_back(to_proto(entry));
  parts.nodes = {test::node(call.op, inputs, names, attributes, "", call.domain)};
  if (call.domain.empty()) return test::model(test::graph(parts), call.opset);
  // Messages may follow each other: one more import.
  constexpr int64_t kOpset = 17;
  WireWriter import;
  import.message(8, test::opset_import(call.domain, call.opset));
  return test::model(test::graph(parts), kOpset) + import.data();
}

void RivalTest::SetUp() {
  auto library = OrtLibrary::open("");
  if (!library.is_ok()) GTEST_SKIP() << library.status().message();
  library_ = std::move(*library);
  std::cout << "seed " << kSeed << "\n";
}

OpCall RivalTest::call(const char* op, int opset, std::vector<TestValue> inputs,
                       Attributes attributes, size_t num_outputs) {
  OpCall call;
  call.op = op;
  call.opset = opset;
  call.inputs = std::move(inputs);
  call.attributes = std::move(attributes);
  call.num_outputs = num_outputs;
  return call;
}

void RivalTest::compare(const OpCall& call, const Tolerance& tolerance) {
  SCOPED_TRACE(call.op + " " + std::to_string(call.opset) + " case " +
               std::to_string(num_compared_));
  const auto found = run_op(call, KernelSet::kCpu);
  ASSERT_TRUE(found.is_ok()) << found.status().to_string();
  std::vector<ElementType> elements;
  for (const TestValue& value : *found) elements.push_back(value.element);
  const auto expected = run_rival(call, elements);
  if (!expected.is_ok()) {
    std::cout << call.op << " " << call.opset << " is left out: " << expected.status().message()
              << "\n";
    return;
  }
  ++num_compared_;
  for (size_t o = 0; o < std::min(call.num_outputs, tolerance.num_outputs); ++o) {
    const TestTensor &ours = (*found)[o].tensor(), &theirs = (*expected)[o];
    if (tolerance.steps > 0) {
      EXPECT_TRUE(is_within(ours, theirs, tolerance.steps)) << "output " << o;
    } else {
      EXPECT_TRUE(is_close(ours, theirs, tolerance.relative, tolerance.absolute)) << "output " << o;
    }
  }
}

Result<std::vector<TestTensor>> RivalTest::run_rival(const OpCall& call,
                                                     const std::vector<ElementType>& outputs) {
  const std::string path = ::testing::TempDir() + "/rival_operator.onnx";
  std::ofstream(path, std::ios::binary) << model_of(call, outputs);
  std::vector<HostValue> values(call.inputs.size());
  std::vector<std::pair<std::string, const HostValue*>> feed;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!is_given(call, i) || is_constant(call, i)) continue;
    values[i] = HostValue::copy_of(call.inputs[i].tensor().view());
    feed.emplace_back(input_name(i), &values[i]);
  }
  std::vector<std::string> names;
  for (size_t o = 0; o < call.num_outputs; ++o) names.push_back(output_name(o));
  EDDY_ASSIGN_OR_RETURN(auto model, OrtModel::load(*library_, path, 1, feed, names));
  EDDY_RETURN_IF_ERROR(model->run());
  EDDY_ASSIGN_OR_RETURN(const std::vector<HostValue> made, model->outputs());
  std::vector<TestTensor> results;
  for (const HostValue& value : made) {
    const TensorView view = value.view();
    TestTensor tensor(view.element, Dims(view.shape()));
    if (view.size_bytes() > 0) std::memcpy(tensor.view().data, view.data, view.size_bytes());
    results.push_back(tensor);
  }
  return results;
}

}  // namespace eddy::testing
