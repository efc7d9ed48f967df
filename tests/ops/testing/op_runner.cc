#include "tests/ops/testing/op_runner.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "graph/ir/builder.h"
#include "ops/contract/fault_status.h"
#include "ops/contract/registry.h"
#include "ops/cpu/cpu_kernels.h"
#include "ops/reference/parts/number.h"
#include "ops/reference/reference_kernels.h"
#include "ops/schema/standard.h"

namespace eddy::testing {
namespace {

// Tables are made once a process and only read.
const OpTable& standard_table() {
  static const OpTable* const table = [] {
    auto* made = new OpTable();
    const Status status = add_standard_schemas(*made);
    EDDY_CHECK(status.is_ok()) << status.to_string();
    return made;
  }();
  return *table;
}

const KernelRegistry& registry_of(KernelSet kernels) {
  static const auto* const both = [] {
    auto* made = new std::pair<KernelRegistry, KernelRegistry>();
    add_reference_kernels(made->first);
    add_cpu_kernels(made->second);
    return made;
  }();
  return kernels == KernelSet::kReference ? both->first : both->second;
}

// As a session limits the memory of its runs.
Status check_size(const Dims& dims) {
  constexpr int64_t kMostElements = int64_t{1} << 24;
  const std::optional<int64_t> count = dims.count();
  if (count && *count <= kMostElements) return Status::ok();
  return resource_exhausted("a tensor of shape " + to_string(dims) + " is too large for a test");
}

class TestScratch : public Scratch {
 public:
  void* reserve(size_t size_bytes) override {
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(64, (size_bytes + 64) / 64 * 64)));
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<std::byte, Free> memory_;
};

// Turns the outputs of a value kernel into TestValues.
class TestValueContext : public ValueContext {
 public:
  TestValueContext(const std::vector<TestValue>& inputs, size_t num_outputs,
                   const KernelState* state)
      : inputs_(inputs), outputs_(num_outputs), state_(state) {}

  size_t num_inputs() const override { return inputs_.size(); }
  bool has_input(size_t i) const override {
    return i < inputs_.size() && inputs_[i].kind != TestValue::Kind::kOmitted;
  }
  ValueKind kind(size_t i) const override {
    switch (inputs_[i].kind) {
      case TestValue::Kind::kTensor:
        return ValueKind::kTensor;
      case TestValue::Kind::kSequence:
        return ValueKind::kSequence;
      default:
        return ValueKind::kNone;
    }
  }
  TensorView tensor(size_t i) const override { return inputs_[i].tensor().view(); }
  size_t length(size_t i) const override { return inputs_[i].tensors.size(); }
  TensorView element(size_t i, size_t position) const override {
    return inputs_[i].tensors.at(position).view();
  }
  ElementType element_type(size_t i) const override { return inputs_[i].element; }

  Result<TensorView> allocate(size_t o, ElementType element, const Dims& dims) override {
    EDDY_RETURN_IF_ERROR(check_size(dims));
    outputs_[o] = TestTensor(element, dims);
    return outputs_[o].tensor().view();
  }
  // A full optional is its value, so what is shared is no optional any more.
  void share(size_t o, size_t i) override {
    outputs_[o] = inputs_[i];
    outputs_[o].is_optional = false;
  }
  void share_element(size_t o, size_t i, size_t position) override {
    outputs_[o] = inputs_[i].tensors.at(position);
  }
  void set_none(size_t o) override { outputs_[o] = TestValue::none(ElementType::kUndefined); }
  void begin_sequence(size_t o, ElementType element) override {
    outputs_[o] = TestValue::sequence(element, {});
  }
  void append_input(size_t o, size_t i) override {
    outputs_[o].tensors.push_back(inputs_[i].tensor());
  }
  void append_element(size_t o, size_t i, size_t position) override {
    outputs_[o].tensors.push_back(inputs_[i].tensors.at(position));
  }
  Result<TensorView> append_new(size_t o, ElementType element, const Dims& dims) override {
    EDDY_RETURN_IF_ERROR(check_size(dims));
    outputs_[o].tensors.emplace_back(element, dims);
    return outputs_[o].tensors.back().view();
  }
  void remove_last(size_t o) override { outputs_[o].tensors.pop_back(); }
  const KernelState* state() const override { return state_; }
  Scratch& scratch() override { return scratch_; }

  std::vector<TestValue> take_outputs() { return std::move(outputs_); }

 private:
  const std::vector<TestValue>& inputs_;
  std::vector<TestValue> outputs_;
  const KernelState* state_;
  TestScratch scratch_;
};

ValueType forget(ValueType type, Known known) {
  if (known == Known::kShapes) return type;
  if (known == Known::kNothing) type.tensor = TensorType(type.tensor.element);
  for (int i = 0; i < type.tensor.dims.rank(); ++i) type.tensor.dims[i] = kUnknownDim;
  return type;
}

// The schema's outputs for a call of which `known` is known and `value_inputs` have known values.
Result<std::vector<ValueType>> infer_with(const OpCall& call, std::vector<ValueType> types,
                                          uint64_t value_inputs) {
  const OpDef* op = find_op(call);
  if (op == nullptr) return not_found("no operator " + call.op);
  std::vector<TensorView> views(call.inputs.size());
  std::vector<const ValueType*> inputs(call.inputs.size(), nullptr);
  std::vector<const TensorView*> values(call.inputs.size(), nullptr);
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i].kind == TestValue::Kind::kOmitted) continue;
    inputs[i] = &types[i];
    if (call.inputs[i].kind != TestValue::Kind::kTensor || !((value_inputs >> i) & 1)) continue;
    views[i] = call.inputs[i].tensor().view();
    values[i] = &views[i];
  }
  std::vector<ValueType> outputs(call.num_outputs);
  InferContext context(call.attributes, inputs, values, outputs, call.opset);
  EDDY_RETURN_IF_ERROR(infer_types(*op, context));
  return outputs;
}

std::vector<ValueType> input_types(const OpCall& call, Known known) {
  std::vector<ValueType> types;
  for (const TestValue& input : call.inputs) types.push_back(forget(input.type(), known));
  return types;
}

Result<BoundKernel> bind_call(const OpCall& call, const KernelRegistry& kernels) {
  const OpDef* op = find_op(call);
  if (op == nullptr) return not_found("no operator " + call.op);
  const std::vector<ValueType> inputs = input_types(call, call.known);
  EDDY_ASSIGN_OR_RETURN(const std::vector<ValueType> outputs,
                        infer_with(call, inputs, call.constant_inputs));
  std::vector<TensorView> constants(call.inputs.size());
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i].kind == TestValue::Kind::kTensor && ((call.constant_inputs >> i) & 1)) {
      constants[i] = call.inputs[i].tensor().view();
    }
  }
  const KernelInit init{*op, call.attributes, call.opset, call.op, inputs, outputs, constants};
  return kernels.bind(init);
}

// Output 0 in the buffer of an input, where the call requires that.
Result<TestTensor> make_output(const OpCall& call, size_t o, const TensorType& type,
                               std::vector<TestValue>& inputs) {
  if (!type.is_static()) {
    return internal_error("the schema leaves a shape open although all is known: " +
                          to_string(ValueType(type)));
  }
  EDDY_RETURN_IF_ERROR(check_size(type.dims));
  if (o != 0 || call.in_place_input < 0) return TestTensor(type.element, type.dims);
  const size_t i = static_cast<size_t>(call.in_place_input);
  TestTensor shared = inputs[i].tensor().copy();
  inputs[i] = TestValue(shared);
  return shared;
}

// As a run infers them: of inputs whose content decides shapes, and of constants, that is known.
Result<std::vector<ValueType>> infer_in_run(const OpCall& call) {
  uint64_t values = call.constant_inputs;
  for (size_t i = 0; i < std::min<size_t>(call.inputs.size(), 64); ++i) {
    const bool is_host = has_flag(find_op(call)->input_flags(i), InputFlag::kHostValue);
    if (is_host) values |= uint64_t{1} << i;
  }
  return infer_with(call, input_types(call, Known::kShapes), values);
}

Result<std::vector<TestValue>> run_dense(const OpCall& call, const BoundKernel& kernel) {
  EDDY_ASSIGN_OR_RETURN(const std::vector<ValueType> types, infer_in_run(call));
  std::vector<TestValue> inputs = call.inputs;
  std::vector<TestValue> outputs;
  std::vector<TensorView> in_views, out_views;
  for (size_t o = 0; o < types.size(); ++o) {
    EDDY_ASSIGN_OR_RETURN(TestTensor made, make_output(call, o, types[o].tensor, inputs));
    outputs.push_back(made);
  }
  for (const TestValue& input : inputs) {
    in_views.push_back(input.kind == TestValue::Kind::kTensor ? input.tensor().view()
                                                              : TensorView());
  }
  // Dimensions must outlive the views: those of the outputs live in `outputs`.
  for (const TestValue& output : outputs) out_views.push_back(output.tensor().view());
  for (size_t o = 0; o < types.size(); ++o) {
    out_views[o].dims = types[o].tensor.dims.data();
    out_views[o].rank = types[o].tensor.dims.rank();
    out_views[o].element = types[o].tensor.element;
  }
  TestScratch scratch;
  DeviceFault fault;
  Status error;
  KernelArgs args;
  if (kernel.may_fault) args.fault = &fault;
  args.inputs = in_views.data();
  args.outputs = out_views.data();
  args.state = kernel.state.get();
  args.scratch = &scratch;
  args.error = &error;
  args.num_inputs = static_cast<uint32_t>(in_views.size());
  args.num_outputs = static_cast<uint32_t>(out_views.size());
  if (!kernel.run(args)) {
    return error.is_ok() ? internal_error("the kernel failed without a message") : error;
  }
  EDDY_RETURN_IF_ERROR(fault_status(fault));
  return outputs;
}

Status check_made(const std::vector<TestValue>& made, const std::vector<ValueType>& expected) {
  for (size_t o = 0; o < made.size(); ++o) {
    if (made[o].kind == TestValue::Kind::kNone) continue;
    ValueType type = expected[o];
    if (type.is_optional()) type = type.unwrapped();
    if (!is_compatible(made[o].type(), type)) {
      return internal_error("output " + std::to_string(o) + " is " + to_string(made[o].type()) +
                            " but the schema says " + to_string(expected[o]));
    }
  }
  return Status::ok();
}

}  // namespace

const OpDef* find_op(const OpCall& call) {
  const OpDef* op = standard_table().find_or_null(call.domain, call.op, call.opset);
  EXPECT_NE(op, nullptr) << call.op << " at opset " << call.opset;
  return op;
}

Result<std::vector<ValueType>> infer_op(const OpCall& call) {
  return infer_with(call, input_types(call, Known::kShapes), ~uint64_t{0});
}

Result<std::vector<ValueType>> infer_op_types(const OpCall& call,
                                              const std::vector<ValueType>& inputs) {
  OpCall typed = call;
  typed.inputs.clear();
  // Only whether an input is there matters.
  for (const ValueType& type : inputs) {
    typed.inputs.push_back(TestValue::none(type.tensor.element));
  }
  return infer_with(typed, inputs, 0);
}

Result<std::vector<TestValue>> run_op(const OpCall& call, KernelSet kernels) {
  return run_op(call, registry_of(kernels));
}

Result<Graph> graph_of_call(GraphBuilder& b, const OpCall& call,
                            const std::vector<ValueType>& types) {
  std::vector<Value> inputs;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i].kind == TestValue::Kind::kOmitted) {
      inputs.push_back({});
    } else if ((call.constant_inputs >> i) & 1) {
      inputs.push_back(b.constant(call.inputs[i].tensor().view()));
    } else {
      inputs.push_back(b.input("input_" + std::to_string(i), types[i]));
    }
  }
  OpOptions options;
  options.name = call.op;
  options.domain = call.domain;
  options.opset_version = call.opset;
  options.num_outputs = static_cast<int>(call.num_outputs);
  const std::vector<Value> outputs = b.ops(call.op, inputs, call.attributes, options);
  EDDY_RETURN_IF_ERROR(b.status());
  for (size_t o = 0; o < outputs.size(); ++o) b.output("output_" + std::to_string(o), outputs[o]);
  return b.finish();
}

namespace {

// The nodes that the call stands for, one after the other.
Result<std::vector<TestValue>> run_function(const OpCall& call, const KernelRegistry& kernels) {
  GraphBuilder builder(standard_table());
  EDDY_ASSIGN_OR_RETURN(const Graph graph,
                        graph_of_call(builder, call, input_types(call, call.known)));
  std::vector<TestValue> values(graph.num_values());
  for (uint32_t v = 0; v < graph.num_values(); ++v) {
    const ValueInfo& info = graph.value(ValueId(v));
    if (info.origin != ValueOrigin::kConstant) continue;
    values[v] = TestTensor::copy_of(graph.constant(info.constant).view());
  }
  size_t next_input = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const bool is_given = call.inputs[i].kind != TestValue::Kind::kOmitted;
    if (!is_given || ((call.constant_inputs >> i) & 1)) continue;
    values[graph.inputs()[next_input++].index()] = call.inputs[i];
  }
  for (const NodeId id : graph.region(Graph::kRoot).nodes) {
    const Node& node = graph.node(id);
    OpCall inner;
    inner.op = node.op->name;
    inner.domain = node.op->domain;
    inner.opset = node.opset_version;
    inner.attributes = node.attributes;
    inner.num_outputs = node.outputs.size();
    inner.known = call.known;
    for (const ValueId input : node.inputs) {
      inner.inputs.push_back(input.is_none() ? TestValue::omitted() : values[input.index()]);
    }
    auto outputs = run_op(inner, kernels);
    if (!outputs.is_ok()) return std::move(outputs.take_status().prepend_path(node.name));
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      values[node.outputs[o].index()] = (*outputs)[o];
    }
  }
  std::vector<TestValue> results;
  for (const ValueId output : graph.outputs()) results.push_back(values[output.index()]);
  return results;
}

}  // namespace

Result<std::vector<TestValue>> run_op(const OpCall& call, const KernelRegistry& kernels) {
  const OpDef* op = find_op(call);
  if (op != nullptr && op->expand != nullptr) return run_function(call, kernels);
  EDDY_ASSIGN_OR_RETURN(const BoundKernel kernel, bind_call(call, kernels));
  return run_bound(call, kernel);
}

Result<BoundKernel> bind_op(const OpCall& call, KernelSet kernels) {
  return bind_call(call, registry_of(kernels));
}

Result<std::vector<TestValue>> run_bound(const OpCall& call, const BoundKernel& kernel) {
  if (kernel.run != nullptr) return run_dense(call, kernel);
  EDDY_RETURN_IF_ERROR(infer_in_run(call).status());
  TestValueContext context(call.inputs, call.num_outputs, kernel.state.get());
  EDDY_RETURN_IF_ERROR(kernel.run_value(context));
  std::vector<TestValue> outputs = context.take_outputs();
  EDDY_ASSIGN_OR_RETURN(const std::vector<ValueType> types, infer_op(call));
  EDDY_RETURN_IF_ERROR(check_made(outputs, types));
  return outputs;
}

TestTensor run_one(const OpCall& call, KernelSet kernels) {
  Result<std::vector<TestValue>> result = run_op(call, kernels);
  if (!result.is_ok() || result->empty() || (*result)[0].kind != TestValue::Kind::kTensor) {
    ADD_FAILURE() << call.op << ": "
                  << (result.is_ok() ? "output 0 is no tensor" : result.status().to_string());
    return TestTensor(ElementType::kFloat, {0});
  }
  return (*result)[0].tensor();
}

namespace {

::testing::AssertionResult is_same_type(const TestTensor& actual, const TestTensor& expected) {
  if (actual.type() == expected.type()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << to_string(ValueType(actual.type())) << ", not "
                                       << to_string(ValueType(expected.type()));
}

bool is_near(double a, double b, double rtol, double atol) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::fabs(a - b) <= atol + rtol * std::fabs(b);
}

}  // namespace

::testing::AssertionResult is_close(const TestTensor& actual, const TestTensor& expected,
                                    double rtol, double atol) {
  if (auto same = is_same_type(actual, expected); !same) return same;
  if (actual.element() == ElementType::kString) {
    if (actual.strings() == expected.strings()) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << ::testing::PrintToString(actual.strings()) << ", not "
                                         << ::testing::PrintToString(expected.strings());
  }
  if (!kFloatTypes.contains(actual.element())) return is_same_bits(actual, expected);
  for (int64_t i = 0; i < actual.count(); ++i) {
    const double a = number_at(actual.view(), i);
    const double b = number_at(expected.view(), i);
    if (!is_near(a, b, rtol, atol)) {
      return ::testing::AssertionFailure() << "element " << i << " is " << a << ", not " << b;
    }
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult is_same_bits(const TestTensor& actual, const TestTensor& expected) {
  if (auto same = is_same_type(actual, expected); !same) return same;
  if (actual.element() == ElementType::kString) return is_close(actual, expected, 0, 0);
  const size_t width = element_size_bytes(actual.element());
  const auto* a = actual.view().as<std::byte>();
  const auto* b = expected.view().as<std::byte>();
  for (int64_t i = 0; i < actual.count(); ++i) {
    const size_t at = static_cast<size_t>(i) * width;
    if (std::memcmp(a + at, b + at, width) == 0) continue;
    auto failure = ::testing::AssertionFailure() << "the bits of element " << i << " differ";
    if (!kNumberTypes.contains(actual.element())) return failure;
    return failure << ": " << number_at(actual.view(), i) << ", not "
                   << number_at(expected.view(), i);
  }
  return ::testing::AssertionSuccess();
}

void compare_with_reference(const OpCall& call, double rtol, double atol) {
  compare_with_reference(call, registry_of(KernelSet::kCpu), rtol, atol);
}

void compare_with_reference(const OpCall& call, const KernelRegistry& kernels, double rtol,
                            double atol) {
  const Result<std::vector<TestValue>> expected = run_op(call, KernelSet::kReference);
  ASSERT_TRUE(expected.is_ok()) << call.op << ": " << expected.status().to_string();
  Result<std::vector<TestValue>> first = run_op(call, kernels);
  for (Known known : {Known::kShapes, Known::kRanks, Known::kNothing}) {
    OpCall varied = call;
    varied.known = known;
    const Result<std::vector<TestValue>> actual = run_op(varied, kernels);
    ASSERT_TRUE(actual.is_ok()) << call.op << ": " << actual.status().to_string();
    for (size_t o = 0; o < call.num_outputs; ++o) {
      ASSERT_EQ((*actual)[o].kind, (*expected)[o].kind);
      ASSERT_EQ((*actual)[o].tensors.size(), (*expected)[o].tensors.size());
      for (size_t t = 0; t < (*actual)[o].tensors.size(); ++t) {
        const TestTensor& tensor = (*actual)[o].tensors[t];
        EXPECT_TRUE(is_close(tensor, (*expected)[o].tensors[t], rtol, atol))
            << call.op << " output " << o << " known " << static_cast<int>(known);
        EXPECT_TRUE(is_same_bits(tensor, (*first)[o].tensors[t]))
            << call.op << " output " << o << " known " << static_cast<int>(known);
      }
    }
  }
}

}  // namespace eddy::testing
