#include "runtime/virtual/virtual_device.h"

#include "runtime/virtual/virtual_strands.h"
#include "runtime/virtual/virtual_stream.h"

namespace eddy {

VirtualDevice::VirtualDevice(VirtualDeviceOptions options)
    : engine_(std::move(options.engine)),
      allocator_(engine_, options.memory_limit_bytes),
      num_workers_(options.num_workers) {}

Status VirtualDevice::check(FaultKind kind, const char* what) {
  EDDY_RETURN_IF_ERROR(engine_.health());
  if (!engine_.should_fail(kind)) return Status::ok();
  return resource_exhausted(std::string("the virtual device was told to have no ") + what +
                            " left");
}

Result<std::unique_ptr<Stream>> VirtualDevice::create_stream() {
  EDDY_RETURN_IF_ERROR(check(FaultKind::kCreateStream, "stream"));
  return std::unique_ptr<Stream>(std::make_unique<VirtualStream>(engine_));
}

Result<std::unique_ptr<Event>> VirtualDevice::create_event() {
  EDDY_RETURN_IF_ERROR(check(FaultKind::kCreateEvent, "event"));
  return std::unique_ptr<Event>(std::make_unique<VirtualEvent>(engine_));
}

Result<std::shared_ptr<Gate>> VirtualDevice::create_gate() {
  EDDY_RETURN_IF_ERROR(check(FaultKind::kCreateGate, "gate"));
  return std::shared_ptr<Gate>(std::make_shared<VirtualGate>(engine_));
}

std::unique_ptr<StrandRunner> VirtualDevice::create_runner_or_null(const StrandCode& code,
                                                                   const Bindings& bindings) {
  return std::make_unique<VirtualStrands>(engine_, code, bindings);
}

}  // namespace eddy
