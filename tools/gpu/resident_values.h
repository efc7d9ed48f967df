// ResidentValues: a session's inputs and outputs in a GPU's memory of their own, as a program has
// them whose values stay there: what a run takes without the copies from and to the host.
//
//   EDDY_ASSIGN_OR_RETURN(const auto values, ResidentValues::make(what.make_device, inputs, like));
//   EDDY_RETURN_IF_ERROR(values->bind(*call));
//   call->run();
//   EDDY_ASSIGN_OR_RETURN(const NamedTensors outputs, values->read(library));
//
// Ownership: must stay while the call runs. Errors: the device's; invalid_argument for what is no
// tensor. Threads: one. Cost: a device in the same context, and the memory.
#pragma once

#include <memory>
#include <vector>

#include "runtime/api/session.h"
#include "runtime/device/execution_device.h"

namespace eddy {

class ResidentValues {
 public:
  // `like`: the outputs, in order, for their types and shapes.
  static Result<std::unique_ptr<ResidentValues>> make(const MakeDevice& make_device,
                                                      const NamedTensors& inputs,
                                                      const NamedTensors& like);
  Status bind(Call& call) const;
  // What the last run has made, by way of a session that copies.
  Result<NamedTensors> read(const Library& library) const;

 private:
  Result<Tensor> add(const Tensor& like, bool is_written);

  MakeDevice make_device_;
  ExecutionDevice device_;
  std::vector<BufferRef> buffers_;
  std::vector<Tensor> inputs_;
  NamedTensors outputs_;  // as inputs of others
};

}  // namespace eddy
