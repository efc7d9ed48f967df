// Claim: every operator beyond the core has a schema at every opset from the one that brought it
// (or 6) to the newest, and for each of float, int64, int32 and bool that the standard allows a
// plain kernel and a fast one, which agree. A wrong type, attribute or shape names the node and the
// rule.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "graph/ir/builder.h"
#include "graph/ir/opset.h"
#include "ops/cpu/cpu_kernels.h"
#include "ops/reference/reference_kernels.h"
#include "ops/schema/standard.h"
#include "tests/ops/operators/examples.h"

namespace eddy::testing {
namespace {

using Ints = std::vector<int64_t>;

class OperatorsTest : public ::testing::Test {
 protected:
  OperatorsTest() {
    EXPECT_TRUE(add_standard_schemas(table_).is_ok());
    add_reference_kernels(reference_);
    add_cpu_kernels(cpu_);
  }

  // The library of the kernel that is bound, or why there is none.
  std::string library_of(const OpCall& call, const KernelRegistry& kernels) {
    auto outputs = infer_op(call);
    if (!outputs.is_ok()) return outputs.status().to_string();
    std::vector<ValueType> inputs;
    std::vector<TensorView> constants;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      inputs.push_back(call.inputs[i].type());
      const bool is_constant = (call.constant_inputs >> i) & 1;
      const bool is_tensor = call.inputs[i].kind == TestValue::Kind::kTensor;
      constants.push_back(is_constant && is_tensor ? call.inputs[i].tensor().view() : TensorView());
    }
    auto kernel = kernels.bind(
        {*find_op(call), call.attributes, call.opset, call.op, inputs, *outputs, constants});
    return kernel.is_ok() ? std::string(kernel->provider) : kernel.status().to_string();
  }

  // The error of building a graph with the call as node "culprit".
  std::string refusal(const OpCall& call) {
    GraphBuilder b(table_);
    b.set_opset("", call.opset);
    std::vector<Value> inputs;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      if (call.inputs[i].kind == TestValue::Kind::kOmitted) {
        inputs.push_back({});
      } else if ((call.constant_inputs >> i) & 1) {
        inputs.push_back(b.constant(call.inputs[i].tensor().view(), ""));
      } else {
        inputs.push_back(b.input("x" + std::to_string(i), call.inputs[i].type()));
      }
    }
    OpOptions options;
    options.name = "culprit";
    options.num_outputs = static_cast<int>(call.num_outputs);
    const auto outputs = b.ops(call.op, inputs, call.attributes, options);
    return b.status().is_ok() ? "accepted" : b.status().to_string();
  }

  OpTable table_;
  KernelRegistry reference_, cpu_;
};

TEST_F(OperatorsTest, HaveASchemaAtEveryOpsetSinceTheyCame) {
  EXPECT_EQ(examples().size(), 62u);
  for (const Example& example : examples()) {
    for (int opset = example.first_opset; opset <= kNewestOpset; ++opset) {
      EXPECT_NE(table_.find_or_null("", example.op, opset), nullptr)
          << example.op << " at opset " << opset;
    }
  }
}

TEST_F(OperatorsTest, HaveAPlainAndAFastKernelThatAgreeForEveryType) {
  const std::set<std::string> copies = {"Flatten", "Dropout"};  // plain is fast
  for (const Example& example : examples()) {
    for (const ElementType element : example.elements) {
      SCOPED_TRACE(example.op + " of " + std::string(element_type_name(element)));
      const OpCall call = example.call(element, 1);
      EXPECT_EQ(library_of(call, reference_), "reference");
      if (!copies.contains(example.op)) {
        EXPECT_NE(library_of(call, cpu_), "reference");
      }
      for (uint64_t seed = 1; seed <= 5; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        compare_with_reference(example.call(element, seed), 1e-5, 1e-5);
      }
    }
  }
}

TEST_F(OperatorsTest, NameTheNodeAndTheTypesTheyTake) {
  for (const Example& example : examples()) {
    OpCall call = example.call(example.elements[0], 1);
    // Operators that take every type refuse a value that is no tensor.
    const bool takes_all = find_op(call)->inputs[0].types.contains(ElementType::kString);
    const TestTensor strings = TestTensor::of_strings({1}, {"text"});
    call.inputs[0] = takes_all ? TestValue::sequence(ElementType::kFloat, {}) : TestValue(strings);
    call.constant_inputs &= ~uint64_t{1};
    const std::string said = refusal(call);
    EXPECT_NE(said.find("culprit"), std::string::npos) << example.op << ": " << said;
    EXPECT_NE(said.find(takes_all ? "tensor" : "string"), std::string::npos)
        << example.op << ": " << said;
  }
}

TEST_F(OperatorsTest, NameTheNodeAndAnAttributeThatTheyLackOrThatIsOfAnotherKind) {
  for (const Example& example : examples()) {
    OpCall call = example.call(example.elements[0], 1);
    call.attributes.set("flavour", int64_t{1});
    std::string said = refusal(call);
    EXPECT_NE(said.find("culprit"), std::string::npos) << example.op << ": " << said;
    EXPECT_NE(said.find("flavour"), std::string::npos) << example.op << ": " << said;
    for (const FormalAttribute& attribute : find_op(call)->attributes) {
      call = example.call(example.elements[0], 1);
      const bool is_text = attribute.kind == AttributeKind::kString;
      call.attributes.set(attribute.name, is_text ? AttributeValue(int64_t{1})
                                                  : AttributeValue(std::string("text")));
      said = refusal(call);
      EXPECT_NE(said.find("culprit"), std::string::npos) << example.op << ": " << said;
      EXPECT_NE(said.find("'" + attribute.name + "'"), std::string::npos)
          << example.op << ": " << said;
    }
  }
}

// One input or attribute that breaks a rule of the operator.
struct Broken {
  std::string op;
  int input = -1;  // with another tensor
  TestTensor tensor = {};
  std::string attribute = {};
  AttributeValue value = {};
  std::string rule;  // part of the message
};

Broken shape(const char* op, int input, const Dims& dims, const char* rule) {
  return {op, input, TestTensor(ElementType::kFloat, dims), "", {}, rule};
}
Broken content(const char* op, int input, const Ints& values, const char* rule) {
  return {op, input, TestTensor::of<int64_t>({static_cast<int64_t>(values.size())}, values),
          "", {},    rule};
}
Broken attribute(const char* op, const char* name, AttributeValue value, const char* rule) {
  return {op, -1, {}, name, std::move(value), rule};
}

std::vector<Broken> broken_calls() {
  std::vector<Broken> all = {
      shape("PRelu", 1, {4}, "the slope of shape [4] does not stretch over X of shape [2,3,5]"),
      shape("Clip", 1, {2}, "min must have one element, not the shape [2]"),
      shape("Mean", 1, {4}, "inputs 0 and 1 do not broadcast: [2,3] and [4]"),
      shape("Sum", 1, {4}, "inputs 0 and 1 do not broadcast: [2,3] and [4]"),
      shape("Xor", 1, {4}, "inputs 0 and 1 do not broadcast: [2,3] and [4]"),
      attribute("Gelu", "approximate", std::string("rough"),
                "'approximate' must be none or tanh, not 'rough'"),
      attribute("LogSoftmax", "axis", int64_t{3}, "axis 3 is out of range for rank 3: -3..2"),
      attribute("ArgMax", "axis", int64_t{3}, "axis 3 is out of range for rank 3: -3..2"),
      attribute("ArgMin", "axis", int64_t{-4}, "axis -4 is out of range for rank 3: -3..2"),
      attribute("TopK", "axis", int64_t{3}, "axis 3 is out of range for rank 3: -3..2"),
      content("TopK", 1, {10}, "K is 10, but axis 1 of [2,9,3] has only 9"),
      shape("AveragePool", 0, {2, 3, 7}, "kernel_shape must have 1 values, not 2"),
      attribute("MaxPool", "kernel_shape", Ints{30, 2},
                "the kernel spans 30 elements on spatial axis 0 but the padded input has only 9"),
      attribute("MaxPool", "strides", Ints{0, 1}, "strides must hold values of 1..65536, not 0"),
      attribute("AveragePool", "auto_pad", std::string("SOME"),
                "auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, not SOME"),
      shape("GlobalAveragePool", 0, {3}, "X of a pool must have at least 3 dimensions, not [3]"),
      shape("GlobalMaxPool", 0, {3}, "X of a pool must have at least 3 dimensions, not [3]"),
      shape("ConvTranspose", 1, {3, 3, 3, 2}, "X has 2 channels but W takes 3"),
      attribute("ConvTranspose", "group", int64_t{0}, "group must be at least 1, not 0"),
      shape("BatchNormalization", 1, {4},
            "scale must hold one value for each channel (3), not [4]"),
      shape("InstanceNormalization", 2, {4}, "B must hold one value for each channel (3), not [4]"),
      shape("LayerNormalization", 1, {7}, "Scale does not broadcast to X: [7] to [2,3,8]"),
      attribute("LayerNormalization", "axis", int64_t{3},
                "axis 3 is out of range for rank 3: -3..2"),
      attribute("LRN", "size", int64_t{0}, "size of LRN must be at least 1, not 0"),
      content("Resize", 3, {1, 2, 6}, "sizes must hold 4 values, not [3]"),
      attribute("Resize", "mode", std::string("best"),
                "mode must be one of nearest, linear, cubic, not best"),
      shape("Gemm", 1, {4, 6}, "A of Gemm has 5 columns but B has 6 rows"),
      shape("Gemm", 2, {5}, "C of Gemm does not broadcast to the result: [5] to [3,4]"),
      shape("MatMulInteger", 1, {6, 4}, "A has 5 columns but B has 6 rows: [3,5] times [6,4]"),
      shape("GRU", 1, {1, 11, 5}, "W must have 3 times the hidden size on axis 1, not [1,11,5]"),
      shape("RNN", 2, {1, 4, 3}, "R must have size 4 on axis 2, not [1,4,3]"),
      attribute("GRU", "direction", std::string("sideways"),
                "direction must be forward, reverse or bidirectional, not sideways"),
      shape("DequantizeLinear", 1, {4},
            "a scale of shape [4] does not fit x of shape [2,3] on axis 1"),
      shape("QuantizeLinear", 1, {4}, "the zero point must have the scale's shape: [] and [4]"),
      shape("EyeLike", 0, {3}, "the input must have two dimensions, not [3]"),
      attribute("Flatten", "axis", int64_t{4}, "axis 4 is out of range for rank 3: -3..3"),
      content("GatherElements", 1, {0, 1},
              "data and indices must have the same rank, not [2,4] and [2]"),
      shape("GatherND", 0, {3},
            "the index tuples of [2,2] have 2 entries, but data [3] takes 1 to 1"),
      shape("OneHot", 2, {3}, "values must be [off, on], not of shape [3]"),
      shape("ScatterElements", 2, {2, 2},
            "indices and updates must have the same shape, not [1,2] and [2,2]"),
      attribute("ScatterElements", "reduction", std::string("median"),
                "reduction 'median' is none of none, add, mul"),
      shape("ScatterND", 2, {2, 5}, "updates must be [2,4], not [2,5]"),
      shape("Trilu", 0, {4}, "the input must have at least two dimensions, not [4]"),
  };
  for (const char* op : {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
                         "ReduceMin", "ReduceProd", "ReduceSumSquare"}) {
    all.push_back(content(op, 1, {3}, "axis 3 is out of range for rank 3: -3..2"));
    all.push_back(content(op, 1, {1, -2}, "axis -2 is given twice"));
  }
  return all;
}

TEST_F(OperatorsTest, NameTheNodeAndTheRuleThatAShapeOrAnAttributeBreaks) {
  for (const Broken& broken : broken_calls()) {
    const auto example = std::ranges::find(examples(), broken.op, &Example::op);
    ASSERT_NE(example, examples().end()) << broken.op;
    OpCall call = example->call(example->elements[0], 1);
    if (broken.input >= 0) {
      TestValue& input = call.inputs[static_cast<size_t>(broken.input)];
      const ElementType element = input.type().tensor.element;
      const TensorView given = broken.tensor.view();
      const bool keeps = given.element == ElementType::kInt64;
      input = keeps ? broken.tensor : TestTensor(element, Dims(given.shape()));
    } else {
      call.attributes.set(broken.attribute, broken.value);
    }
    const std::string said = refusal(call);
    EXPECT_NE(said.find("culprit"), std::string::npos) << broken.op << ": " << said;
    EXPECT_NE(said.find(broken.rule), std::string::npos) << broken.op << ": " << said;
  }
}

}  // namespace
}  // namespace eddy::testing
