#pragma once

#include <string>

namespace eddy {

// The smallest program for a GPU: proves that the compiler, the device linker and the
// runtime that the build found fit together.
struct DeviceSum {
  int sum = 0;
  std::string error;  // Why there is no sum; empty when there is one.
};

// Adds on the first GPU.
DeviceSum add_on_device(int left, int right);

// Whether CUDA code was compiled.
bool has_cuda();

}  // namespace eddy
