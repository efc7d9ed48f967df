// CudaLauncher: how a kernel's host half reaches a GPU without knowing the runtime.
//
// Implemented by runtime/cuda on a module of the driver, and by tests on the host. A kernel takes
// one parameter, a struct passed by value.
// Threads: any. Errors: launch() returns the driver's error; the kernel passes it to args.fail().
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "graph/base/status.h"
#include "ops/contract/kernel.h"
#include "ops/cuda/text/fused_text.h"

namespace eddy {

// One kernel of the loaded image; outlives every launch.
using CudaFunction = const void*;

class CudaLauncher {
 public:
  virtual ~CudaLauncher() = default;
  // kUnsupported when the image has no kernel of that name.
  virtual Result<CudaFunction> find(std::string_view name) = 0;
  // Makes a kernel from its source, once for each name. kUnsupported where there is no compiler, or
  // it refuses.
  virtual Result<CudaFunction> compile(const cuda::KernelSource& source) {
    return unsupported("there is no compiler for the kernel " + source.name);
  }
  // Enqueues `num_blocks` blocks of cuda::kBlockThreads threads on the stream; does not block.
  virtual Status launch(CudaFunction function, uint32_t num_blocks, const void* params,
                        NativeStream stream) = 0;
  // Makes calls of a library that uses the current device: the device's context is current
  // meanwhile. Refused with the device's own status once it is lost.
  virtual Status in_context(const std::function<Status()>& calls) = 0;
  // The same for calls that may synchronize the device, which spoils recordings of other sessions:
  // none is open meanwhile. It waits, and fails where the calling thread may not.
  virtual Status alone_in_context(const std::function<Status()>& calls) {
    return in_context(calls);
  }
  // The same for all launchers of a device, and what that is; to be compared only.
  virtual const void* device() const { return nullptr; }
  // From now on to the end of the process the device is kept as it is, whatever goes, with all that
  // libraries have there.
  virtual Status keep_device() { return Status::ok(); }
  // Calls `keeper` with each native stream that ends, until forget_streams(key): what a library
  // keeps by stream goes then. The stream is idle (or its device lost) and still there, the
  // device's context current; the keeper neither ends streams nor calls these three.
  virtual void on_stream_end([[maybe_unused]] const void* key,
                             [[maybe_unused]] std::function<void(NativeStream)> keeper) {}
  // Likewise with each native stream that is made for recordings, while none records on it.
  virtual void on_recording_stream([[maybe_unused]] const void* key,
                                   [[maybe_unused]] std::function<void(NativeStream)> keeper) {}
  virtual void forget_streams([[maybe_unused]] const void* key) {}
  // How many blocks fill the device once.
  virtual uint32_t num_resident_blocks() const = 0;
};

}  // namespace eddy
