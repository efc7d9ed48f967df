#include "runtime/cpu/cpu_device.h"

#include <system_error>

#include "runtime/cpu/cpu_strands.h"
#include "runtime/cpu/cpu_stream.h"
#include "runtime/device/no_thread.h"

namespace eddy {

CpuDevice::CpuDevice(const CpuDeviceOptions& options)
    : allocator_(options.memory_limit_bytes, options.memory),
      pool_(options.workers ? options.workers : std::make_shared<WorkerPool>(options.num_threads)) {
}

Result<std::unique_ptr<Stream>> CpuDevice::create_stream() {
  try {
    pool_->prepare();
  } catch (const std::system_error& error) {
    return no_thread(error);
  }
  return std::unique_ptr<Stream>(std::make_unique<CpuStream>(*pool_));
}

Result<std::unique_ptr<Event>> CpuDevice::create_event() {
  return std::unique_ptr<Event>(std::make_unique<CpuStreamEvent>());
}

Result<std::shared_ptr<Gate>> CpuDevice::create_gate() {
  return std::shared_ptr<Gate>(std::make_shared<CpuGate>());
}

std::unique_ptr<StrandRunner> CpuDevice::create_runner_or_null(const StrandCode& code,
                                                               const Bindings& bindings) {
  return std::make_unique<CpuStrands>(*pool_, code, bindings);
}

}  // namespace eddy
