#include "tools/check/oracle_values.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "graph/base/check.h"
#include "tools/check/digest.h"
#include "tools/check/hash_ops.h"

namespace eddy::check {
namespace {

class HeapScratch : public Scratch {
 public:
  void* reserve(size_t size_bytes) override {
    bytes_ = std::make_unique<std::byte[]>(size_bytes + 64);
    void* data = bytes_.get();
    size_t space = size_bytes + 64;
    return std::align(64, size_bytes, data, space);
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
};

// ---- Hash operators: their meaning once more, from the words of hash_ops.h.

// `count` words, written where they stay.
Tensor numbered(uint64_t state, uint64_t count, uint64_t first = 0) {
  Tensor words = Tensor::zeros(ElementType::kInt64, {static_cast<int64_t>(count)});
  int64_t* const to = words.view().mutable_as<int64_t>();
  for (uint64_t i = 0; i < count; ++i) to[i] = static_cast<int64_t>(mix(state, first + i));
  return words;
}

Tensor scalar_of(ElementType type, int64_t value) {
  if (type == ElementType::kBool) return Tensor::scalar(value != 0);
  if (type == ElementType::kInt32) return Tensor::scalar(static_cast<int32_t>(value));
  return Tensor::scalar(value);
}

Tensor mixed(uint64_t state, const Tensor& x) {
  const auto given = x.values<int64_t>();
  Tensor made = Tensor::zeros(ElementType::kInt64, x.dims());
  int64_t* const to = made.view().mutable_as<int64_t>();
  for (size_t i = 0; i < given.size(); ++i) {
    to[i] = static_cast<int64_t>(mix(mix(state, i), static_cast<uint64_t>(given[i])));
  }
  return made;
}

Tensor floats_of(uint64_t state) {
  float values[4];
  for (uint64_t i = 0; i < 4; ++i) {
    // The upper 24 bits, as a signed number, over 2^23.
    auto bits = static_cast<int64_t>(mix(state, i) >> 40);
    if (bits >= 1 << 23) bits -= 1 << 24;
    values[i] = static_cast<float>(bits) / 8388608.0f;
  }
  return Tensor::of<float>({4}, std::span<const float>(values));
}

Result<std::vector<Tensor>> evaluate_hash(const Node& node, std::span<const Tensor> inputs) {
  const std::string& name = node.op->name;
  const Attributes& given = node.attributes;
  uint64_t state = static_cast<uint64_t>(given.get_int("id", 0));
  if (name == "Fold") {
    state = mix(state, inputs[0].elements().size());
    for (const Tensor& element : inputs[0].elements()) state = taken_in(state, element.view());
    return std::vector<Tensor>{numbered(state, 3)};
  }
  const bool leaves_first_out = name == "Mix" || name == "MixInPlace" || name == "Go";
  for (const Tensor& input : inputs.subspan(leaves_first_out ? 1 : 0)) {
    state = taken_in(state, input.view());
  }
  const auto choices = given.get_ints("choices");
  const int64_t chosen = choices.empty() ? 0 : choices[state % choices.size()];
  if (name == "Mix" || name == "MixInPlace") return std::vector<Tensor>{mixed(state, inputs[0])};
  if (name == "Row") return std::vector<Tensor>{numbered(state, 3)};
  if (name == "Resize") return std::vector<Tensor>{numbered(state, state % 6)};
  if (name == "Floats") return std::vector<Tensor>{floats_of(state)};
  if (name == "Trips") return std::vector<Tensor>{Tensor::scalar(chosen)};
  if (name == "Twins") {
    return std::vector<Tensor>{numbered(state, 3), numbered(state, 2, 16)};
  }
  if (name == "Go") {
    const auto early = static_cast<uint64_t>(given.get_int("early", 0));
    const bool leaves = early > 0 && (state >> 32) % early == 0;
    return std::vector<Tensor>{Tensor::scalar(!leaves && inputs[0].values<int64_t>()[0] < chosen)};
  }
  if (name == "Pick") {
    const auto range = static_cast<uint64_t>(given.get_int("count", 1));
    const auto type =
        static_cast<ElementType>(given.get_int("type", static_cast<int64_t>(ElementType::kInt64)));
    const int64_t picked = given.get_int("low", 0) + static_cast<int64_t>(state % range);
    return std::vector<Tensor>{scalar_of(type, picked)};
  }
  return internal_error("the oracle does not know the hash operator " + name);
}

// ---- All other operators: the library's kernels.

// What a value kernel sees: inputs as they are, outputs as plain tensors.
class TensorContext : public ValueContext {
 public:
  TensorContext(std::span<const Tensor> inputs, size_t num_outputs, const KernelState* state)
      : inputs_(inputs), outputs_(num_outputs), rows_(num_outputs), state_(state) {}

  size_t num_inputs() const override { return inputs_.size(); }
  bool has_input(size_t i) const override {
    return i < inputs_.size() && inputs_[i].kind() != ValueKind::kNone;
  }
  ValueKind kind(size_t i) const override { return inputs_[i].kind(); }
  TensorView tensor(size_t i) const override { return inputs_[i].view(); }
  size_t length(size_t i) const override { return inputs_[i].elements().size(); }
  TensorView element(size_t i, size_t position) const override {
    return inputs_[i].elements()[position].view();
  }
  ElementType element_type(size_t i) const override { return inputs_[i].element_type(); }

  Result<TensorView> allocate(size_t o, ElementType element, const Dims& dims) override {
    outputs_[o] = Tensor::zeros(element, dims);
    return outputs_[o].view();
  }
  void share(size_t o, size_t i) override {
    outputs_[o] = inputs_[i];
    if (inputs_[i].kind() != ValueKind::kSequence) return;
    begin_sequence(o, inputs_[i].element_type());
    rows_[o].elements = inputs_[i].elements();
  }
  void share_element(size_t o, size_t i, size_t position) override {
    outputs_[o] = inputs_[i].elements()[position];
  }
  void set_none(size_t o) override { outputs_[o] = Tensor(); }
  void begin_sequence(size_t o, ElementType element) override {
    rows_[o].is_sequence = true;
    rows_[o].element = element;
  }
  void append_input(size_t o, size_t i) override { rows_[o].elements.push_back(inputs_[i]); }
  void append_element(size_t o, size_t i, size_t position) override {
    rows_[o].elements.push_back(inputs_[i].elements()[position]);
  }
  Result<TensorView> append_new(size_t o, ElementType element, const Dims& dims) override {
    rows_[o].elements.push_back(Tensor::zeros(element, dims));
    return rows_[o].elements.back().view();
  }
  void remove_last(size_t o) override { rows_[o].elements.pop_back(); }
  const KernelState* state() const override { return state_; }
  Scratch& scratch() override { return scratch_; }

  std::vector<Tensor> take() {
    for (size_t o = 0; o < outputs_.size(); ++o) {
      if (!rows_[o].is_sequence) continue;
      outputs_[o] = Tensor::sequence(rows_[o].element, std::move(rows_[o].elements));
    }
    return std::move(outputs_);
  }

 private:
  struct Sequence {
    bool is_sequence = false;
    ElementType element = ElementType::kUndefined;
    std::vector<Tensor> elements;
  };
  std::span<const Tensor> inputs_;
  std::vector<Tensor> outputs_;
  std::vector<Sequence> rows_;
  const KernelState* state_;
  HeapScratch scratch_;
};

Result<std::vector<Tensor>> evaluate_dense(const Node& node, const BoundKernel& kernel,
                                           std::span<const Tensor> inputs) {
  EDDY_CHECK(inputs.size() == node.inputs.size())
      << inputs.size() << " inputs for the " << node.inputs.size() << " of " << node.name;
  std::vector<TensorView> views(inputs.size());
  std::vector<ValueType> input_types(inputs.size());
  std::vector<const ValueType*> types(inputs.size(), nullptr);
  std::vector<const TensorView*> contents(inputs.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (node.inputs[i].is_none()) continue;
    if (!inputs[i].is_tensor()) {
      return run_failed("input " + std::to_string(i) + " of " + node.op->name + " is not a tensor");
    }
    views[i] = inputs[i].view();
    input_types[i] = TensorType(inputs[i].element_type(), inputs[i].dims());
    types[i] = &input_types[i];
    contents[i] = &views[i];
  }
  std::vector<ValueType> output_types(node.outputs.size());
  InferContext shapes(node.attributes, types, contents, output_types, node.opset_version);
  EDDY_RETURN_IF_ERROR(node.op->infer(shapes));
  std::vector<Tensor> outputs;
  std::vector<TensorView> out_views;
  for (const ValueType& type : output_types) {
    if (!type.tensor.is_static())
      return internal_error("the rule of " + node.op->name + " is open");
    outputs.push_back(Tensor::zeros(type.tensor.element, type.tensor.dims));
  }
  for (const Tensor& output : outputs) out_views.push_back(output.view());
  HeapScratch scratch;
  Status error;
  const KernelArgs args{views.data(),
                        out_views.data(),
                        kernel.state.get(),
                        &scratch,
                        nullptr,
                        &error,
                        nullptr,
                        static_cast<uint32_t>(views.size()),
                        static_cast<uint32_t>(out_views.size())};
  if (!kernel.run(args)) return error;
  return outputs;
}

Result<std::vector<Tensor>> evaluate_host(const Library& library, const Node& node,
                                          std::span<const Tensor> inputs) {
  const std::string name(node.attributes.get_string("name", ""));
  const auto* named = library.host_function_or_null(name);
  if (named == nullptr) return not_found("there is no host function '" + name + "'");
  std::vector<TensorView> views;
  for (const Tensor& input : inputs) views.push_back(input.view());
  EDDY_ASSIGN_OR_RETURN(const int64_t decided, named->function(views));
  const AttributeValue* type = node.attributes.find_or_null("type");
  const ElementType element =
      type == nullptr ? ElementType::kBool : std::get<ValueType>(*type).tensor.element;
  return std::vector<Tensor>{scalar_of(element, decided)};
}

}  // namespace

Result<const BoundKernel*> OracleKernels::kernel(NodeId id) {
  BoundKernel& kernel = kernels_[id.index()];
  if (kernel.run != nullptr || kernel.run_value != nullptr) return &kernel;
  const Node& node = graph_.node(id);
  std::vector<ValueType> inputs;
  std::vector<TensorView> constants;
  for (ValueId value : node.inputs) {
    inputs.push_back(value.is_none() ? ValueType() : graph_.value(value).type);
    const bool is_constant =
        !value.is_none() && graph_.value(value).origin == ValueOrigin::kConstant;
    constants.push_back(is_constant ? graph_.constant(graph_.value(value).constant).view()
                                    : TensorView());
  }
  std::vector<ValueType> outputs;
  for (ValueId value : node.outputs) outputs.push_back(graph_.value(value).type);
  const KernelInit init{*node.op, node.attributes, node.opset_version, node.name,
                        inputs,   outputs,         constants};
  EDDY_ASSIGN_OR_RETURN(kernel, registry_.bind(init));
  return &kernel;
}

Result<std::vector<Tensor>> evaluate(OracleKernels& kernels, NodeId id, const Node& node,
                                     std::span<const Tensor> inputs) {
  if (node.op->domain == kHashDomain) return evaluate_hash(node, inputs);
  if (node.op->domain == "eddy") return evaluate_host(kernels.library(), node, inputs);
  EDDY_ASSIGN_OR_RETURN(const BoundKernel* kernel, kernels.kernel(id));
  if (kernel->run_value == nullptr) return evaluate_dense(node, *kernel, inputs);
  TensorContext context(inputs, node.outputs.size(), kernel->state.get());
  EDDY_RETURN_IF_ERROR(kernel->run_value(context));
  return context.take();
}

Result<Tensor> stack(std::span<const Tensor> rows, const TensorType& row_type) {
  Dims dims = {static_cast<int64_t>(rows.size())};
  if (rows.empty()) {
    if (row_type.is_ranked) {
      for (int64_t dim : row_type.dims) dims.push_back(dim < 0 ? 0 : dim);
    }
    return Tensor::zeros(row_type.element, dims);
  }
  for (int64_t dim : rows[0].dims()) dims.push_back(dim);
  Tensor stacked = Tensor::zeros(rows[0].element_type(), dims);
  const size_t row_bytes = rows[0].view().size_bytes();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!(rows[i].dims() == rows[0].dims())) {
      return run_failed("the scan row of iteration " + std::to_string(i) + " has shape " +
                        to_string(rows[i].dims()) + ", earlier rows have " +
                        to_string(rows[0].dims()));
    }
    if (row_bytes == 0) continue;
    std::memcpy(stacked.view().mutable_as<char>() + i * row_bytes, rows[i].view().data, row_bytes);
  }
  return stacked;
}

}  // namespace eddy::check
