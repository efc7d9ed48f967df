// Claim: the CPU device keeps every device's promises, and its command buffers decide loops and
// branches by themselves.
#include "runtime/cpu/cpu_device.h"

#include "tests/runtime/device/command_buffer_conformance.h"
#include "tests/runtime/device/conformance.h"

namespace eddy::testing {
namespace {

std::unique_ptr<TestedDevice> make_two_workers() {
  return std::make_unique<TestedDevice>(
      std::make_unique<CpuDevice>(CpuDeviceOptions{.num_threads = 2, .memory_limit_bytes = 0}));
}

INSTANTIATE_TEST_SUITE_P(Cpu, DeviceConformance, ::testing::Values(make_two_workers));
INSTANTIATE_TEST_SUITE_P(Cpu, CommandBufferConformance, ::testing::Values(make_two_workers));

}  // namespace
}  // namespace eddy::testing
