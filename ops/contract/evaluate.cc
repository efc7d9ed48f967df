#include "ops/contract/evaluate.h"

namespace eddy {
namespace {

class HeapScratch : public Scratch {
 public:
  void* reserve(size_t size_bytes) override {
    bytes_ = std::make_unique<std::byte[]>(size_bytes + kAlignment);
    void* data = bytes_.get();
    size_t space = size_bytes + kAlignment;
    return std::align(kAlignment, size_bytes, data, space);
  }

 private:
  static constexpr size_t kAlignment = 64;
  std::unique_ptr<std::byte[]> bytes_;
};

Result<OwnedTensor> make_output(const ValueType& type) {
  if (!type.is_tensor() || type.tensor.element == ElementType::kString) {
    return unsupported("only dense tensors of plain elements can be evaluated");
  }
  const auto count = type.tensor.dims.count();
  if (!type.tensor.is_static() || !count) return unsupported("the output shape depends on data");
  OwnedTensor tensor{type.tensor.element, type.tensor.dims, nullptr};
  const size_t bytes = static_cast<size_t>(*count) * element_size_bytes(tensor.element);
  tensor.bytes = std::make_unique<std::byte[]>(bytes);
  return tensor;
}

}  // namespace

Result<std::vector<OwnedTensor>> evaluate_node(const KernelRegistry& registry, const OpDef& op,
                                               const Attributes& attributes, int opset_version,
                                               std::span<const TensorView> inputs,
                                               size_t num_outputs) {
  std::vector<ValueType> input_types;
  for (const TensorView& input : inputs) {
    if (input.element == ElementType::kString) return unsupported("strings are not evaluated");
    input_types.push_back(input.is_omitted() ? ValueType()
                                             : TensorType(input.element, Dims(input.shape())));
  }
  std::vector<const ValueType*> types;
  std::vector<const TensorView*> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    types.push_back(inputs[i].is_omitted() ? nullptr : &input_types[i]);
    values.push_back(inputs[i].is_omitted() || inputs[i].data == nullptr ? nullptr : &inputs[i]);
  }
  std::vector<ValueType> output_types(num_outputs);
  InferContext context(attributes, types, values, output_types, opset_version);
  EDDY_RETURN_IF_ERROR(infer_types(op, context));
  std::vector<OwnedTensor> outputs;
  std::vector<TensorView> views;
  for (const ValueType& type : output_types) {
    EDDY_ASSIGN_OR_RETURN(OwnedTensor output, make_output(type));
    outputs.push_back(std::move(output));
  }
  views.reserve(outputs.size());
  for (const OwnedTensor& output : outputs) views.push_back(output.view());
  const std::vector<TensorView> no_constants(inputs.size());
  const KernelInit init{op,          attributes,   opset_version, "evaluated",
                        input_types, output_types, no_constants};
  EDDY_ASSIGN_OR_RETURN(const BoundKernel kernel, registry.bind(init));
  if (kernel.run == nullptr) return unsupported("value kernels are not evaluated");
  HeapScratch scratch;
  Status error;
  KernelArgs args;
  args.inputs = inputs.data();
  args.outputs = views.data();
  args.state = kernel.state.get();
  args.scratch = &scratch;
  args.error = &error;
  args.num_inputs = static_cast<uint32_t>(inputs.size());
  args.num_outputs = static_cast<uint32_t>(num_outputs);
  RunKeep keep;  // a run of this call alone
  if (kernel.keeps_of_runs) args.keep = &keep;
  if (!kernel.run(args)) return error;
  return outputs;
}

}  // namespace eddy
