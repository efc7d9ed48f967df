#include "tools/gpu/resident_values.h"

#include "graph/ir/builder.h"

namespace eddy {

Result<std::unique_ptr<ResidentValues>> ResidentValues::make(const MakeDevice& make_device,
                                                             const NamedTensors& inputs,
                                                             const NamedTensors& like) {
  auto made = std::make_unique<ResidentValues>();
  made->make_device_ = make_device;
  EDDY_ASSIGN_OR_RETURN(made->device_, make_device());
  for (const auto& [name, input] : inputs) {
    EDDY_ASSIGN_OR_RETURN(Tensor resident, made->add(input, true));
    made->inputs_.push_back(std::move(resident));
  }
  for (const auto& [name, output] : like) {
    EDDY_ASSIGN_OR_RETURN(Tensor resident, made->add(output, false));
    made->outputs_.emplace_back(name, std::move(resident));
  }
  return made;
}

Result<Tensor> ResidentValues::add(const Tensor& like, bool is_written) {
  if (!like.is_tensor()) return invalid_argument("only tensors lie in a GPU's memory");
  Staging* const staging = device_.device->staging_or_null();
  if (staging == nullptr) return unsupported("the device has no memory of its own");
  TensorView view = like.view();
  EDDY_ASSIGN_OR_RETURN(BufferRef buffer, device_.device->allocator().allocate(view.size_bytes()));
  if (is_written) EDDY_RETURN_IF_ERROR(staging->write(buffer.data(), view.data, view.size_bytes()));
  view.data = buffer.data();
  buffers_.push_back(std::move(buffer));
  return Tensor::adopt(view, nullptr, 0);
}

Status ResidentValues::bind(Call& call) const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    EDDY_RETURN_IF_ERROR(call.bind_input(i, inputs_[i]));
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    EDDY_RETURN_IF_ERROR(call.bind_device_output(i, outputs_[i].second.view()));
  }
  return Status::ok();
}

Result<NamedTensors> ResidentValues::read(const Library& library) const {
  GraphBuilder b(library.ops(), "read");
  for (const auto& [name, tensor] : outputs_) {
    const Value from = b.input(name, tensor_type(tensor.element_type(), tensor.dims()));
    // An addition of nothing, where Identity would be a view.
    const Value zero = b.constant(Tensor::zeros(tensor.element_type(), {}).view(), name + "_zero");
    b.output(name, b.op("Add", {from, zero}, {}, {.name = name + "_read"}));
  }
  EDDY_ASSIGN_OR_RETURN(Graph graph, b.finish());
  SessionOptions options;
  options.make_devices = {make_device_};
  options.simplify = false;
  EDDY_ASSIGN_OR_RETURN(const auto session, Session::create(library, std::move(graph), options));
  return session->run(outputs_);
}

}  // namespace eddy
