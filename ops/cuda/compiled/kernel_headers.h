// kernel_headers: the texts that the sources of fused kernels include, for NVRTC, which reads no
// files of ours at run time: fused_inl.h and what it includes, by the names it includes them by.
// Made of those files when Eddy is built.
#pragma once

#include <span>

namespace eddy {

struct KernelHeader {
  const char* name;
  const char* text;
};

std::span<const KernelHeader> kernel_headers();

}  // namespace eddy
