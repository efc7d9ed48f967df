// KernelCompiler: machine code of fused kernels, by NVRTC or from the cache on disk.
//
// The key of the cache is all that decides the code: the source, the headers' texts, the options
// with the architecture, and NVRTC's version.
//
// Errors: kUnsupported with the first line of NVRTC's log; the nodes then stay unfused.
// Threads: any. Cost: some 100 ms to some seconds where NVRTC compiles, else reading a small file.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "ops/cuda/compiled/code_cache.h"
#include "ops/cuda/compiled/nvrtc.h"
#include "ops/cuda/text/fused_text.h"

namespace eddy {

class KernelCompiler {
 public:
  // `cache_folder` "": nothing is cached.
  KernelCompiler(std::shared_ptr<const NvrtcApi> api, std::string cache_folder);

  // A cubin for devices of this compute capability (90 is 9.0); PTX of a source that decides.
  Result<std::string> compile(const cuda::KernelSource& source, int compute_capability);

  uint64_t num_compiled() const { return num_compiled_; }  // by NVRTC
  uint64_t num_found() const { return num_found_; }        // on disk

 private:
  Result<std::string> ask_nvrtc(const cuda::KernelSource& source, const std::string& architecture);

  const std::shared_ptr<const NvrtcApi> api_;
  const CodeCache cache_;
  std::string made_with_;  // NVRTC's version and the headers, for keys
  std::atomic<uint64_t> num_compiled_{0};
  std::atomic<uint64_t> num_found_{0};
};

}  // namespace eddy
