// Tensors from and to DLPack, without a copy: how arrays of other libraries, in the host's memory
// or a GPU's, become inputs of a run, and results become theirs.
//
//   EDDY_ASSIGN_OR_RETURN(Tensor x, tensor_from_dlpack(array.toDLPack()));
//   session->run({{"x", x}});
//
// A tensor in a GPU's memory is an input for sessions with that accelerator, where nodes of the
// GPU read it; what was asked of it on other streams must have been done (Session::adopt_stream and
// run_on put a run behind a stream of the caller's). view() of such a tensor is no memory of the
// host's. Outputs are in host memory, or where Call::bind_device_output puts them.
//
// Ownership: tensor_from_dlpack takes the tensor over when it succeeds, and calls its deleter when
// the last copy of the result goes. tensor_to_dlpack's tensor shares the memory until its own
// deleter is called. Errors: kUnsupported for types, strides and devices that Eddy has not,
// kInvalidArgument for tensors that contradict themselves. Threads: any.
#pragma once

#include <dlpack/dlpack.h>

#include "graph/base/status.h"
#include "runtime/api/tensor.h"

namespace eddy {

Result<Tensor> tensor_from_dlpack(DLManagedTensor* managed);
// Of a tensor with elements of a fixed size.
Result<DLManagedTensor*> tensor_to_dlpack(const Tensor& tensor);

// What both forms of DLPack have in common, for a managed struct of another version. `owner` is let
// go with the last copy of the result, and only kept when that succeeds.
Result<Tensor> tensor_of(const DLTensor& tensor, std::shared_ptr<const void> owner);
// Shows `tensor`, whose sizes `shape` has to keep.
Result<DLTensor> dl_tensor_of(const Tensor& tensor, std::vector<int64_t>& shape);

}  // namespace eddy
