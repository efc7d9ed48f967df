// kernel_names: every kernel that the images of ops/cuda should have ("eddy_Add_f32"), from the
// lists that their sources are made of (kernel_list.h and its kin): what an image is held against.
// Kernels of loops and of libraries are not among them.
#pragma once

#include <string>
#include <vector>

namespace eddy::cuda {

// The names of all kernels, in the order of the lists.
std::vector<std::string> kernel_names();

}  // namespace eddy::cuda
