// Storage types: what an element is to an operator that only moves it. 1, 2, 4, 8 or 16 bytes, or
// a std::string, which is assigned and never copied bytewise.
//
//   template <typename T> struct Slice { static bool run(const KernelArgs& args); };
//   return bind_storage<Slice>(init, init.inputs[0].tensor.element, std::move(state));
//
// Output tensors of strings hold constructed std::string objects before a kernel is called.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ops/contract/kernel.h"

namespace eddy {

struct Bytes16 {
  uint64_t low, high;
};
static_assert(sizeof(Bytes16) == 16, "an element of 16 bytes moves as one");

// Static, as gcc gives a template whose argument is a template of an unnamed namespace external
// linkage: two files' kernels of one name would silently become one.
template <template <typename> class Kernel>
static Result<BoundKernel> bind_storage(const KernelInit& init, ElementType element,
                                        std::unique_ptr<KernelState> state = nullptr) {
  BoundKernel kernel;
  kernel.state = std::move(state);
  if (element == ElementType::kString) {
    kernel.run = &Kernel<std::string>::run;
    return kernel;
  }
  switch (element_size_bytes(element)) {
    case 1:
      kernel.run = &Kernel<uint8_t>::run;
      return kernel;
    case 2:
      kernel.run = &Kernel<uint16_t>::run;
      return kernel;
    case 4:
      kernel.run = &Kernel<uint32_t>::run;
      return kernel;
    case 8:
      kernel.run = &Kernel<uint64_t>::run;
      return kernel;
    case 16:
      kernel.run = &Kernel<Bytes16>::run;
      return kernel;
    default:
      return unsupported("the element type of " + init.op.name + "'s input is not known");
  }
}

}  // namespace eddy
