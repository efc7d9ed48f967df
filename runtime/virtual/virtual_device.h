// VirtualDevice: a deterministic device for finding bugs in what drives devices.
//
//   VirtualDevice device({.engine = {.order = {.policy = SchedulePolicy::kPct, .seed = 7}}});
//   SessionOptions options;
//   options.make_device = [&] { return std::make_shared<VirtualDevice>(...); };
//
// Semantics are CUDA's, time is counted in steps, the order in which streams and strands go on is
// a seeded adversary's, and faults happen where a plan says. It keeps its own books: memory in
// use, violations of the seam's rules, and what waits for what when nothing moves any more.
//
// It needs polling: nothing happens but in poll(). With the same options and the same calls every
// run is the same, step by step (digest()). So several threads that issue at once are legal but not
// repeatable; of a scheduler's thread that drives loops and a caller's, one may issue at a time.
//
// Errors: kDeviceLost once lost, kResourceExhausted where the plan fails an allocation. Threads: as
// runtime/device/device.h. Cost: some 100 ns a step.
#pragma once

#include "runtime/device/device.h"
#include "runtime/virtual/virtual_allocator.h"
#include "runtime/virtual/virtual_engine.h"

namespace eddy {

struct VirtualDeviceOptions {
  VirtualEngineOptions engine = {};
  size_t memory_limit_bytes = 0;  // 0: no limit
  int num_workers = 4;            // for planning
};

class VirtualDevice : public Device {
 public:
  explicit VirtualDevice(VirtualDeviceOptions options = {});

  std::string_view kind() const override { return "virtual"; }
  Allocator& allocator() override { return allocator_; }
  Result<std::unique_ptr<Stream>> create_stream() override;
  Result<std::unique_ptr<Event>> create_event() override;
  Result<std::shared_ptr<Gate>> create_gate() override;
  std::unique_ptr<StrandRunner> create_runner_or_null(const StrandCode& code,
                                                      const Bindings& bindings) override;
  int num_workers() const override { return num_workers_; }
  Status health() const override { return engine_.health(); }
  bool needs_polling() const override { return true; }
  bool poll() override { return engine_.step(); }

  // Steps done: the virtual time.
  uint64_t now() const { return engine_.now(); }
  // Of the order of all steps so far: equal for runs that went alike, step by step.
  uint64_t digest() const { return engine_.digest(); }
  // The lane whose step the calling thread is in; 0: none, the host.
  LaneNumber current_lane() const { return engine_.current_lane(); }
  // What waits for what, one line each; empty when nothing waits.
  std::string wait_graph() const { return engine_.wait_graph(); }
  // Events and gates that live; streams and strands that outlive the device are a CHECK.
  int num_events() const { return engine_.num_events(); }
  // Rules of the seam that were broken so far.
  std::vector<std::string> violations() const { return engine_.violations(); }

 private:
  Status check(FaultKind kind, const char* what);

  VirtualEngine engine_;
  VirtualAllocator allocator_;
  const int num_workers_;
};

}  // namespace eddy
